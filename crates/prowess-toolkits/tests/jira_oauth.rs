//! OAuth with a refresh token: access tokens that end are renewed, once, and at one address.

#![cfg(feature = "jira")]

mod jira_support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jira_support::{
    Answer, Edition, Request, Server, TOKEN, access_of, answer, settings, toolkit_of,
};
use prowess_runtime::ToolOutcome;
use prowess_toolkits::{JiraSettings, JiraToolkit};
use serde_json::{Value, json};

const CLIENT_SECRET: &str = "client-s3cret-of-the-test";

/// A server of tokens and a gateway in one. `refresh-N` is good for `access-N+1` and `refresh-N+1`,
/// and for nothing after that.
#[derive(Clone, Default)]
struct Atlassian {
    issued: Arc<AtomicU64>,
    /// No access token before this one is good.
    good: Arc<AtomicU64>,
}

impl Atlassian {
    fn start(&self) -> Server {
        let own = self.clone();
        Server::start(move |request| own.answer(request))
    }

    fn answer(&self, request: &Request) -> Answer {
        let issued = self.issued.load(Ordering::SeqCst);
        if request.path == "/oauth/token" {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let expected = json!({
                "grant_type": "refresh_token", "client_id": "client",
                "client_secret": CLIENT_SECRET, "refresh_token": format!("refresh-{issued}"),
            });
            if body != expected {
                let error = json!({
                    "error": "unauthorized_client",
                    "error_description": format!("refresh_token is invalid: {}", request.body),
                });
                return Answer::json(403, &error);
            }
            let next = self.issued.fetch_add(1, Ordering::SeqCst) + 1;
            let tokens = json!({
                "access_token": format!("access-{next}"), "expires_in": 3600,
                "refresh_token": format!("refresh-{next}"), "token_type": "Bearer",
            });
            return Answer::ok(&tokens);
        }
        let sent = request.headers.get("authorization").map_or("", String::as_str);
        if sent != format!("Bearer access-{issued}") || issued < self.good.load(Ordering::SeqCst) {
            return Answer::json(401, &json!({"message": "Unauthorized"}));
        }
        let mut request = request.clone();
        request.path = request.path.replacen("/ex/jira/11aa-22", "/context", 1);
        request.headers.insert("authorization".into(), format!("Bearer {TOKEN}"));
        answer(Edition::Cloud, &request)
    }

    /// The access token that is known comes to its end.
    fn expire(&self) {
        self.good.store(self.issued.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
    }
}

const VARIABLES: [(&str, &str); 4] = [
    ("JIRA_CLOUD_ID", "11aa-22"),
    ("JIRA_CLIENT_ID", "client"),
    ("JIRA_CLIENT_SECRET", CLIENT_SECRET),
    ("JIRA_REFRESH_TOKEN", "refresh-0"),
];

fn settings_of(server: &Server) -> JiraSettings {
    settings().with_gateway(server.url("")).with_token_url(server.url("oauth/token"))
}

fn toolkit(server: &Server) -> JiraToolkit {
    toolkit_of(&VARIABLES, settings_of(server))
}

async fn issue(jira: &JiraToolkit) -> ToolOutcome {
    jira.call("get_issue", &json!({"issue_key": "PROJ-1"})).await
}

/// How often tokens were asked for, and how often Jira was.
fn counts(server: &Server) -> (usize, usize) {
    let seen = server.seen();
    let renewals = seen.iter().filter(|request| request.path == "/oauth/token").count();
    (renewals, seen.len() - renewals)
}

#[tokio::test]
async fn a_token_that_ended_is_renewed_and_the_question_repeated() {
    let atlassian = Atlassian::default();
    let server = atlassian.start();
    let jira = toolkit(&server);
    let outcome = issue(&jira).await;
    assert!(outcome.content.starts_with("# PROJ-1: It breaks"), "{}", outcome.content);
    assert_eq!(counts(&server), (1, 1), "the first one is asked for before anything else");
    let renewal = &server.seen()[0];
    assert_eq!(renewal.method, "POST");
    assert!(!renewal.headers.contains_key("authorization"));
    assert!(!issue(&jira).await.is_error);
    assert_eq!(counts(&server), (1, 2), "it is kept");
    for times in 2..4 {
        // Each time with the refresh token that came with the one before.
        atlassian.expire();
        assert!(!issue(&jira).await.is_error);
        assert_eq!(counts(&server).0, times);
    }
    assert_eq!(counts(&server).1, 6);
    let opening = jira.opening().await;
    assert!(
        opening.content.contains("OAuth (renewed with a refresh token)"),
        "{}",
        opening.content
    );
}

#[tokio::test]
async fn a_first_access_token_is_used_until_it_ends() {
    let atlassian = Atlassian::default();
    let server = atlassian.start();
    let variables = [&VARIABLES[..], &[("JIRA_BEARER_TOKEN", "access-0")]].concat();
    let jira = toolkit_of(&variables, settings_of(&server));
    assert!(!issue(&jira).await.is_error);
    assert_eq!(counts(&server), (0, 1));
    atlassian.expire();
    assert!(!issue(&jira).await.is_error);
    assert_eq!(counts(&server), (1, 3));
}

#[tokio::test]
async fn many_calls_whose_token_ended_renew_it_once() {
    let atlassian = Atlassian::default();
    let server = atlassian.start();
    let jira = toolkit(&server);
    for expected in 1..4 {
        let calls = (0..8).map(|_| {
            let jira = jira.clone();
            tokio::spawn(async move { issue(&jira).await })
        });
        for call in calls.collect::<Vec<_>>() {
            let outcome = call.await.unwrap();
            assert!(!outcome.is_error, "{}", outcome.content);
        }
        assert_eq!(counts(&server).0, expected);
        atlassian.expire();
    }
}

#[tokio::test]
async fn a_fresh_token_that_is_not_accepted_is_not_renewed_again() {
    let atlassian = Atlassian::default();
    atlassian.good.store(u64::MAX, Ordering::SeqCst);
    let server = atlassian.start();
    let jira = toolkit(&server);
    let outcome = issue(&jira).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("jira_unauthorized", true));
    assert!(outcome.hint.unwrap().contains("JIRA_CLOUD_ID"));
    assert_eq!(counts(&server), (2, 2), "one to begin with, and one more");
}

#[tokio::test]
async fn a_renewal_that_is_refused_names_the_remedy_and_no_secret() {
    let atlassian = Atlassian::default();
    atlassian.issued.store(7, Ordering::SeqCst);
    let server = atlassian.start();
    let jira = toolkit(&server);
    let outcome = issue(&jira).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("jira_refresh_refused", true));
    assert!(
        outcome.content.contains("Forbidden (403): unauthorized_client: refresh_token is invalid"),
        "{}",
        outcome.content
    );
    assert!(outcome.content.contains("[hidden]"), "what is sent back is hidden");
    let shown = format!("{outcome:?} {jira:?} {:?}", jira.opening().await);
    assert!(!shown.contains(CLIENT_SECRET) && !shown.contains("refresh-0"), "{shown}");
    assert!(outcome.hint.unwrap().contains("JIRA_REFRESH_TOKEN"));
    assert_eq!(counts(&server).1, 0, "Jira was not asked");

    for answer in [
        Answer::ok(&json!({"access_token": ""})),
        Answer::ok(&json!({"access_token": "a\r\nX-Evil: 1"})),
        Answer::ok(&json!({"access_token": 7})),
        Answer::html(200, "<html>"),
        Answer::html(404, ""),
    ] {
        let server = Server::of(vec![answer]);
        let outcome = issue(&toolkit(&server)).await;
        assert_eq!(outcome.code, "jira_refresh_refused", "{}", outcome.content);
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_renewal_that_fails_is_tried_again_within_the_time() {
    let atlassian = Atlassian::default();
    let failures = Mutex::new(vec![
        Answer::html(429, "").with("Retry-After", "0"),
        Answer::html(503, ""),
        Answer::html(500, ""),
    ]);
    let own = atlassian.clone();
    let server = Server::start(move |request| match request.path.as_str() {
        "/oauth/token" => {
            let failure = failures.lock().unwrap().pop();
            failure.unwrap_or_else(|| own.answer(request))
        }
        _ => own.answer(request),
    });
    let outcome = issue(&toolkit(&server)).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    assert_eq!(counts(&server), (4, 1));
    let down = Server::of(vec![Answer::html(503, "")]);
    let jira = toolkit_of(&VARIABLES, settings_of(&down).with_max_retries(1));
    let outcome = issue(&jira).await;
    assert_eq!((outcome.code.as_ref(), down.seen().len()), ("jira_refresh_failed", 2));
    assert!(outcome.hint.unwrap().contains("token_url"));
}

/// The answer holds the only refresh token that is still good.
#[tokio::test]
async fn a_renewal_is_not_lost_when_the_caller_has_no_time_left() {
    let atlassian = Atlassian::default();
    let own = atlassian.clone();
    let server = Server::start(move |request| {
        let answer = own.answer(request);
        if request.path == "/oauth/token" {
            std::thread::sleep(Duration::from_millis(1500));
        }
        answer
    });
    let jira = toolkit_of(&VARIABLES, settings_of(&server).with_deadline_seconds(1));
    assert_eq!(issue(&jira).await.code, "jira_timeout");
    assert!(!issue(&jira).await.is_error);
    assert_eq!(counts(&server).0, 1);
}

#[tokio::test]
async fn what_renews_tokens_goes_to_one_address() {
    let thief = Server::start(|_| Answer::ok(&json!({"access_token": "a"})));
    let target = thief.url("oauth/token");
    let server = Server::start(move |_| Answer::html(307, "").with("Location", &target));
    // What follows gives the secrets away.
    let send = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head = format!(
            "POST /oauth/token HTTP/1.1\r\nContent-Length: {}\r\n\r\n{CLIENT_SECRET}",
            CLIENT_SECRET.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    if send(server.port()).contains(&format!("Location: {}", thief.url("oauth/token"))) {
        send(thief.port());
    }
    assert_eq!(thief.seen()[0].body, CLIENT_SECRET, "the naive one is robbed");

    let outcome = issue(&toolkit(&server)).await;
    assert_eq!(outcome.code, "jira_refresh_refused");
    assert!(outcome.content.contains("a redirect, which is not followed"), "{}", outcome.content);
    assert_eq!(thief.seen().len(), 1, "it was not sent there");
}

#[tokio::test]
async fn secrets_may_be_in_files() {
    let atlassian = Atlassian::default();
    let server = atlassian.start();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (secret, refresh) =
        (write("secret", &format!("{CLIENT_SECRET}\n")), write("refresh", "refresh-0"));
    let variables = [
        VARIABLES[0],
        VARIABLES[1],
        ("JIRA_CLIENT_SECRET_FILE", secret.as_str()),
        ("JIRA_REFRESH_TOKEN_FILE", refresh.as_str()),
    ];
    let jira = toolkit_of(&variables, settings_of(&server));
    assert!(!issue(&jira).await.is_error);

    let both = [&variables[..], &[("JIRA_REFRESH_TOKEN", "refresh-0")]].concat();
    let wrong = access_of(&both, &settings()).unwrap_err();
    let expected = "JIRA_REFRESH_TOKEN and JIRA_REFRESH_TOKEN_FILE contradict each other";
    assert!(wrong.to_string().starts_with(expected), "{wrong}");

    let token = write("token", TOKEN);
    let cloud = jira_support::jira(Edition::Cloud);
    let url = cloud.url("context");
    let bearer = [("JIRA_URL", url.as_str()), ("JIRA_BEARER_TOKEN_FILE", token.as_str())];
    assert!(!issue(&toolkit_of(&bearer, settings())).await.is_error);
    let basic =
        [("JIRA_URL", url.as_str()), ("JIRA_EMAIL", "me"), ("JIRA_API_TOKEN_FILE", token.as_str())];
    assert!(!issue(&toolkit_of(&basic, settings())).await.is_error);
}
