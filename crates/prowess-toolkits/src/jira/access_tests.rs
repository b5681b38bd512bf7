use super::super::credentials::without;
use super::*;

type Variables = &'static [(&'static str, &'static str)];

fn read(variables: Variables) -> Result<JiraAccess, InvalidJiraSettings> {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
    let variable = |name: &str| find(name).map(|(_, value)| (*value).to_owned());
    JiraAccess::from_variables(&JiraSettings::default(), variable)
}

const URL: (&str, &str) = ("JIRA_URL", "https://jira.example.com/jira/");

const CLOUD: (&str, &str) = ("JIRA_CLOUD_ID", "11aa-22");
const CLIENT: [(&str, &str); 2] =
    [("JIRA_CLIENT_ID", "client"), ("JIRA_CLIENT_SECRET", "client-s3cret")];
const REFRESH: (&str, &str) = ("JIRA_REFRESH_TOKEN", "refresh-s3cret");

#[test]
fn a_token_that_can_be_renewed_is_shown_nowhere() {
    let bearer = ("JIRA_BEARER_TOKEN", "access-s3cret");
    for variables in [
        &[CLOUD, CLIENT[0], CLIENT[1], REFRESH][..],
        &[CLOUD, CLIENT[0], CLIENT[1], REFRESH, bearer],
    ] {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let access = JiraAccess::from_variables(&JiraSettings::default(), variable).unwrap();
        let place = access.place.as_ref().unwrap();
        assert_eq!(place.credentials.scheme, Scheme::OAuth);
        assert!(place.credentials.fixed().is_none());
        let shown = format!("{access:?} {:?}", place.credentials);
        assert!(!shown.contains("s3cret"), "{shown}");
        let said = place.credentials.hide("x client-s3cret y refresh-s3cret z");
        assert_eq!(said, "x [hidden] y [hidden] z");
    }
}

#[test]
fn one_way_to_say_who_we_are_is_taken() {
    let table: [(Variables, Scheme, &str); 7] = [
        (&[URL, ("JIRA_BEARER_TOKEN", " abcd\n")], Scheme::Bearer, "Bearer abcd"),
        (&[URL, ("JIRA_PAT", "abcd")], Scheme::Bearer, "Bearer abcd"),
        (
            &[URL, ("JIRA_PAT", "abcd"), ("JIRA_BEARER_TOKEN", "abcd")],
            Scheme::Bearer,
            "Bearer abcd",
        ),
        (&[URL, ("JIRA_PAT", "abcd"), ("JIRA_API_TOKEN", " ")], Scheme::Bearer, "Bearer abcd"),
        (
            &[URL, ("JIRA_EMAIL", "me@x.org"), ("JIRA_BEARER_TOKEN", "abcd")],
            Scheme::Bearer,
            "Bearer abcd",
        ),
        (
            &[URL, ("JIRA_EMAIL", "me@x.org"), ("JIRA_API_TOKEN", "abcd")],
            Scheme::Basic,
            "Basic bWVAeC5vcmc6YWJjZA==",
        ),
        (
            &[URL, ("JIRA_USERNAME", "me"), ("JIRA_API_TOKEN", "abcd")],
            Scheme::Basic,
            "Basic bWU6YWJjZA==",
        ),
    ];
    for (variables, scheme, header) in table {
        let access = read(variables).unwrap();
        let place = access.place.as_ref().unwrap();
        assert_eq!(place.credentials.scheme, scheme, "{variables:?}");
        assert_eq!(place.credentials.fixed().unwrap().to_str().unwrap(), header);
        assert!(place.credentials.fixed().unwrap().is_sensitive());
        let shown = format!("{access:?} {:?}", place.credentials);
        assert!(!shown.contains("abcd") && !shown.contains("YWJjZA"), "{shown}");
    }
}

#[test]
fn what_contradicts_itself_is_an_error_at_the_start() {
    let table: [(Variables, &str, &str); 22] = [
        (
            &[URL, ("JIRA_PAT", "a"), ("JIRA_BEARER_TOKEN", "b")],
            "jira_contradiction",
            "JIRA_BEARER_TOKEN and JIRA_PAT contradict",
        ),
        (
            &[URL, ("JIRA_PAT", "a"), ("JIRA_EMAIL", "e"), ("JIRA_API_TOKEN", "b")],
            "jira_contradiction",
            "JIRA_PAT and JIRA_API_TOKEN",
        ),
        (
            &[("JIRA_BEARER_TOKEN", "a"), ("JIRA_API_TOKEN", "b")],
            "jira_contradiction",
            "JIRA_BEARER_TOKEN and JIRA_API_TOKEN",
        ),
        (
            &[("JIRA_EMAIL", "a"), ("JIRA_USERNAME", "b")],
            "jira_contradiction",
            "JIRA_EMAIL and JIRA_USERNAME",
        ),
        (
            &[("JIRA_CLOUD_ID", "a"), ("JIRA_PAT", "b")],
            "jira_contradiction",
            "JIRA_CLOUD_ID and JIRA_PAT",
        ),
        (
            &[("JIRA_CLOUD_ID", "a"), ("JIRA_API_VERSION", "2")],
            "jira_contradiction",
            "JIRA_API_VERSION=2",
        ),
        (
            &[URL, ("JIRA_API_TOKEN", "b")],
            "jira_unusable_variable",
            "needs JIRA_EMAIL or JIRA_USERNAME",
        ),
        (
            &[CLOUD, CLIENT[0], CLIENT[1], REFRESH, ("JIRA_PAT", "a")],
            "jira_contradiction",
            "JIRA_REFRESH_TOKEN and JIRA_PAT",
        ),
        (
            &[CLOUD, CLIENT[0], CLIENT[1], REFRESH, ("JIRA_API_TOKEN", "a")],
            "jira_contradiction",
            "JIRA_REFRESH_TOKEN and JIRA_API_TOKEN",
        ),
        (
            &[URL, CLIENT[0], CLIENT[1], REFRESH],
            "jira_unusable_variable",
            "JIRA_REFRESH_TOKEN needs JIRA_CLOUD_ID",
        ),
        (
            &[CLOUD, CLIENT[0], REFRESH],
            "jira_unusable_variable",
            "needs JIRA_CLIENT_ID and JIRA_CLIENT_SECRET",
        ),
        (
            &[CLOUD, CLIENT[0], CLIENT[1], REFRESH, ("JIRA_BEARER_TOKEN", "a b")],
            "jira_unusable_variable",
            "JIRA_BEARER_TOKEN holds a character",
        ),
        (
            &[URL, ("JIRA_API_VERSION", "latest")],
            "jira_unusable_variable",
            "JIRA_API_VERSION must be 2 or 3",
        ),
        (&[URL, ("JIRA_PAT", "a\nb")], "jira_unusable_variable", "JIRA_PAT holds a character"),
        (&[URL, ("JIRA_PAT", "äb")], "jira_unusable_variable", "JIRA_PAT holds a character"),
        (
            &[URL, ("JIRA_EMAIL", "a:b"), ("JIRA_API_TOKEN", "c")],
            "jira_unusable_variable",
            "a colon",
        ),
        (&[("JIRA_URL", "jira.example.com")], "jira_unusable_variable", "JIRA_URL is no URL"),
        (
            &[("JIRA_URL", "file:///etc/passwd")],
            "jira_unusable_variable",
            "must begin with https://",
        ),
        (
            &[("JIRA_URL", "https://me:pw@jira.example.com")],
            "jira_unusable_variable",
            "holds a user name",
        ),
        (
            &[("JIRA_URL", "https://jira.example.com/?a=b")],
            "jira_unusable_variable",
            "holds a query",
        ),
        (&[("JIRA_CLOUD_ID", "../x")], "jira_unusable_variable", "JIRA_CLOUD_ID must be an id"),
        (&[("JIRA_CLOUD_ID", "a/b")], "jira_unusable_variable", "JIRA_CLOUD_ID must be an id"),
    ];
    for (variables, code, words) in table {
        let error = read(variables).unwrap_err();
        assert_eq!(error.code(), code, "{variables:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn what_is_missing_is_said_and_no_error() {
    let table: [(Variables, &str); 4] = [
        (&[], "JIRA_URL and JIRA_BEARER_TOKEN"),
        (&[("JIRA_PAT", "a")], "JIRA_URL"),
        (&[URL], "JIRA_BEARER_TOKEN, JIRA_PAT"),
        (&[URL, ("JIRA_EMAIL", "me@x.org")], "JIRA_BEARER_TOKEN, JIRA_PAT"),
    ];
    for (variables, words) in table {
        let access = read(variables).unwrap();
        assert!(access.place.is_none());
        let hint = access.lack().outcome(None).hint.unwrap();
        assert!(hint.starts_with(&format!("Whoever runs this must set {words}")), "{hint}");
    }
}

#[test]
fn the_environment_counts_more_than_the_section() {
    let settings = JiraSettings {
        url: Some("https://section.example".into()),
        user: Some("section".into()),
        api_version: Some("2".into()),
        ..JiraSettings::default()
    };
    let with = |variables: Variables| {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        JiraAccess::from_variables(&settings, |name| {
            find(name).map(|(_, value)| (*value).to_owned())
        })
    };
    let access = with(&[("JIRA_API_TOKEN", "abcd")]).unwrap();
    let place = access.place.unwrap();
    assert_eq!(place.base.as_str(), "https://section.example/");
    assert_eq!(place.credentials.fixed().unwrap().to_str().unwrap(), "Basic c2VjdGlvbjphYmNk");
    assert_eq!(access.version, Some(ApiVersion::Two));
    let access =
        with(&[URL, ("JIRA_API_TOKEN", "abcd"), ("JIRA_EMAIL", "me"), ("JIRA_API_VERSION", "3")]);
    let access = access.unwrap();
    assert_eq!(access.version, Some(ApiVersion::Three));
    let place = access.place.unwrap();
    assert_eq!(place.base.as_str(), URL.1);
    assert_eq!(place.credentials.fixed().unwrap().to_str().unwrap(), "Basic bWU6YWJjZA==");
}

#[test]
fn secrets_are_hidden_in_what_others_say() {
    let basic = Credentials::basic("me", "abcd").unwrap();
    assert_eq!(basic.hide("x abcd y bWU6YWJjZA== z"), "x [hidden] y [hidden] z");
    // A short password may be a word of the text; a long one is none.
    let mut answer = serde_json::json!({"a": ["x abcd y", 7], "b": {"c": "abcd"}});
    let as_it_was = answer.clone();
    basic.conceal(&mut answer);
    assert_eq!(answer, as_it_was);
    let token = "0123456789abcdef";
    let mut answer = serde_json::json!({"a": [format!("x {token} y"), 7], "b": {"c": token}});
    Credentials::bearer(token).unwrap().conceal(&mut answer);
    assert_eq!(answer, serde_json::json!({"a": ["x [hidden] y", 7], "b": {"c": "[hidden]"}}));
    // As it is written in an address.
    assert_eq!(basic.hide("/bWU6YWJjZA%3D%3D/bWU6YWJjZA%3d%3d/"), "/[hidden]/[hidden]/");
    // One secret is the beginning of another.
    let secrets = ["abcd".to_owned(), "abcdefgh".to_owned()];
    assert_eq!(without("x abcdefgh y abcd", &secrets), "x [hidden] y [hidden]");
}
