//! The methods that the skill `jira` binds its tools to, against a Jira of either edition.

#![cfg(feature = "jira")]

mod jira_support;

use std::collections::BTreeSet;

use jira_support::{Edition, ISSUES, TOKEN, jira, settings, toolkit, toolkit_at, toolkit_of};
use prowess_runtime::Toolkit;
use prowess_toolkits::{JiraSettings, JiraToolkit};
use serde_json::{Value, json};

const EDITIONS: [Edition; 2] = [Edition::Cloud, Edition::DataCenter];

const METHODS: [&str; 9] = [
    "get_boards",
    "get_changelog",
    "get_comments",
    "get_issue",
    "get_sprint_issues",
    "get_sprints",
    "get_worklogs",
    "list_projects",
    "search_issues",
];

/// What people and models read of every method.
#[tokio::test]
async fn every_method_answers_in_the_words_of_the_reference() {
    let calls = [
        ("search_issues", json!({"jql": "project = SMALL"})),
        ("search_issues", json!({"jql": "project = PROJ", "limit": 2})),
        ("search_issues", json!({"jql": "project = EMPTY"})),
        ("get_issue", json!({"issue_key": "PROJ-1"})),
        ("get_issue", json!({"issue_key": "PROJ-2"})),
        ("list_projects", json!({})),
        ("list_projects", json!({"limit": 1, "cursor": "1"})),
        ("get_boards", json!({})),
        ("get_boards", json!({"project_key": "PROJ", "board_type": "all"})),
        ("get_boards", json!({"board_type": "simple"})),
        ("get_sprints", json!({"board_id": 1})),
        ("get_sprints", json!({"board_id": 1, "state_filter": "all", "limit": 1})),
        ("get_sprints", json!({"board_id": 1, "state_filter": "future"})),
        ("get_sprint_issues", json!({"sprint_id": 7, "limit": 2})),
        ("get_sprint_issues", json!({"sprint_id": 8})),
        ("get_changelog", json!({"issue_key": "PROJ-1", "limit": 2})),
        ("get_comments", json!({"issue_key": "PROJ-1", "max_results": 2})),
        ("get_comments", json!({"issue_key": "PROJ-2"})),
        ("get_worklogs", json!({"issue_key": "PROJ-1"})),
        ("get_worklogs", json!({"issue_key": "PROJ-1", "limit": 1})),
        ("get_worklogs", json!({"issue_key": "PROJ-2"})),
    ];
    for edition in EDITIONS {
        let server = jira(edition);
        let jira = toolkit(&server);
        let mut all = String::new();
        for (method, arguments) in &calls {
            let outcome = jira.call(method, arguments).await;
            assert!(!outcome.is_error, "{method} {arguments}: {}", outcome.content);
            assert_eq!(outcome.data["untrusted"], true);
            all.push_str(&format!("=== {method} {arguments}\n{}\n", outcome.content));
        }
        insta::assert_snapshot!(format!("words_{edition:?}"), all);
    }
}

/// Goes through a list to its end, and gives all entries and what each part said.
async fn walk(
    jira: &JiraToolkit,
    method: &str,
    arguments: Value,
    list: &str,
) -> (Vec<Value>, Vec<String>) {
    let (mut all, mut texts, mut arguments) = (Vec::new(), Vec::new(), arguments);
    for _ in 0..200 {
        let outcome = jira.call(method, &arguments).await;
        assert!(!outcome.is_error, "{}", outcome.content);
        all.extend(outcome.data[list].as_array().unwrap().clone());
        texts.push(outcome.content);
        match outcome.data["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => return (all, texts),
        }
    }
    panic!("the list has no end");
}

#[tokio::test]
async fn a_list_is_walked_to_its_end_by_cursors_on_both_editions() {
    for edition in EDITIONS {
        let server = jira(edition);
        let jira = toolkit(&server);
        let search = json!({"jql": "project = PROJ", "limit": 50});
        let (issues, texts) = walk(&jira, "search_issues", search, "issues").await;
        let keys: Vec<&str> = issues.iter().map(|issue| issue["key"].as_str().unwrap()).collect();
        let expected: Vec<String> = (1..=ISSUES).map(|number| format!("PROJ-{number}")).collect();
        assert_eq!(keys, expected, "{edition:?}");
        assert_eq!(texts.len(), 3);
        let total = if edition == Edition::Cloud { "approximately 120" } else { "120" };
        assert!(
            texts[0].starts_with(&format!("Found {total} issues (showing 50):")),
            "{}",
            texts[0]
        );
        assert!(texts[1].contains(&format!("Showing 51-100 of {total}.")), "{}", texts[1]);
        assert!(texts[2].contains("Showing 101-120 of 120."), "{}", texts[2]);

        let (changes, _) =
            walk(&jira, "get_changelog", json!({"issue_key": "PROJ-1", "limit": 10}), "changes")
                .await;
        let ids: Vec<u64> = changes.iter().map(|change| change["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (1..=25).rev().collect::<Vec<_>>(), "newest first, {edition:?}");

        for (method, list, count, arguments) in [
            ("get_comments", "comments", 3, json!({"issue_key": "PROJ-1", "limit": 1})),
            ("get_worklogs", "worklogs", 2, json!({"issue_key": "PROJ-1", "limit": 1})),
            ("list_projects", "projects", 3, json!({"limit": 2})),
            (
                "get_sprints",
                "sprints",
                3,
                json!({"board_id": 1, "state_filter": "all", "limit": 2}),
            ),
            ("get_sprint_issues", "issues", 3, json!({"sprint_id": 7, "limit": 2})),
        ] {
            let (entries, _) = walk(&jira, method, arguments, list).await;
            let distinct: BTreeSet<String> = entries.iter().map(Value::to_string).collect();
            assert_eq!(entries.len(), count, "{method} {edition:?}");
            assert!(
                distinct.len() == count || list == "projects" || list == "worklogs",
                "{method}"
            );
        }
    }
}

/// What does not fit into an answer comes with the next one, and the answer says so.
#[tokio::test]
async fn entries_that_do_not_fit_are_left_for_the_next_page() {
    for edition in EDITIONS {
        let server = jira(edition);
        let jira = toolkit_at(&server.url("context"), settings().with_max_answer_bytes(500));
        let search = json!({"jql": "project = PROJ"});
        let (issues, texts) = walk(&jira, "search_issues", search, "issues").await;
        let keys: Vec<&str> = issues.iter().map(|issue| issue["key"].as_str().unwrap()).collect();
        let expected: Vec<String> = (1..=ISSUES).map(|number| format!("PROJ-{number}")).collect();
        assert_eq!(keys, expected, "{edition:?}");
        assert!(texts[0].contains("did not fit (max_answer_bytes)"), "{}", texts[0]);
    }
}

#[tokio::test]
async fn no_request_but_reading_ones_is_ever_sent() {
    for edition in EDITIONS {
        let server = jira(edition);
        let jira = toolkit(&server);
        jira.opening().await;
        for method in METHODS {
            let all = json!({"jql": "project = PROJ", "issue_key": "PROJ-1", "board_id": 1, "sprint_id": 7, "limit": 1});
            assert!(!jira.call(method, &all).await.is_error, "{method}");
        }
        for request in server.seen() {
            let is_count = request.path.ends_with("/search/approximate-count");
            let expected = if is_count { "POST" } else { "GET" };
            assert_eq!(request.method, expected, "{}", request.path);
            assert!(request.path.starts_with("/context/rest/"), "{}", request.path);
            assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
        }
        let asked = server.seen().iter().filter(|it| it.path.ends_with("serverInfo")).count();
        assert_eq!(asked, 1, "the edition is asked for once");
    }
}

#[tokio::test]
async fn the_version_can_be_set_and_a_cloud_searches_by_its_own() {
    let server = jira(Edition::Cloud);
    let url = server.url("context");
    let with = |version| {
        let all = [("JIRA_URL", url.as_str()), ("JIRA_PAT", TOKEN), ("JIRA_API_VERSION", version)];
        toolkit_of(&all, settings())
    };
    let search = json!({"jql": "project = SMALL"});
    let outcome = with("3").call("search_issues", &search).await;
    assert!(outcome.content.starts_with("Found 2 issues (showing 2):"), "{}", outcome.content);
    // A Cloud answers to both versions, and searches by one.
    let older = with("2");
    for number in 0..2 {
        let outcome = older.call("search_issues", &search).await;
        assert!(outcome.content.starts_with("Found 2 issues (showing 2):"), "{}", outcome.content);
        let removed = server.seen().iter().filter(|it| it.path.ends_with("/search")).count();
        assert_eq!(removed, 1, "the search that is gone is asked for once: {number}");
    }
    // Its cursors lead on, in another process too.
    let first = json!({"jql": "project = SMALL", "limit": 1});
    let cursor = older.call("search_issues", &first).await.data["next_cursor"].clone();
    let rest = json!({"jql": "project = SMALL", "limit": 1, "cursor": cursor});
    let outcome = with("2").call("search_issues", &rest).await;
    assert!(outcome.content.contains("showing 2-2"), "{}", outcome.content);
    for (method, arguments) in [
        ("get_issue", json!({"issue_key": "PROJ-1"})),
        ("get_changelog", json!({"issue_key": "PROJ-1"})),
        ("get_comments", json!({"issue_key": "PROJ-1"})),
        ("list_projects", json!({})),
    ] {
        let outcome = older.call(method, &arguments).await;
        assert!(!outcome.is_error, "{method}: {}", outcome.content);
    }
    let is_of = |version: &str| {
        let part = format!("/api/{version}/issue/PROJ-1");
        server.seen().iter().any(|it| it.path.contains(&part))
    };
    assert!(is_of("2") && !is_of("3"), "the rest is asked by the version that is set");
    assert!(server.seen().iter().all(|request| !request.path.ends_with("serverInfo")));
}

#[tokio::test]
async fn basic_authentication_and_the_gateway_of_oauth_are_spoken() {
    let server = jira(Edition::DataCenter);
    let url = server.url("context");
    let basic =
        [("JIRA_URL", url.as_str()), ("JIRA_EMAIL", "me@example.com"), ("JIRA_API_TOKEN", "abcd")];
    let outcome = toolkit_of(&basic, settings()).call("list_projects", &json!({})).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    assert_eq!(server.seen()[0].headers["authorization"], "Basic bWVAZXhhbXBsZS5jb206YWJjZA==");

    let gateway = jira_support::Server::start(|request| {
        let path = request.path.replacen("/ex/jira/11aa-22", "/context", 1);
        assert_ne!(path, request.path);
        jira_support::answer(Edition::Cloud, &jira_support::Request { path, ..request.clone() })
    });
    let oauth = [("JIRA_CLOUD_ID", "11aa-22"), ("JIRA_BEARER_TOKEN", TOKEN)];
    let jira = toolkit_of(&oauth, settings().with_gateway(gateway.url("")));
    let outcome = jira.call("get_issue", &json!({"issue_key": "PROJ-1"})).await;
    assert!(outcome.content.starts_with("# PROJ-1: It breaks"), "{}", outcome.content);
    assert_eq!(gateway.seen()[0].path, "/ex/jira/11aa-22/rest/api/3/issue/PROJ-1");
}

#[tokio::test]
async fn loading_shows_the_configuration_and_the_projects() {
    let mut all = String::new();
    for edition in EDITIONS {
        let server = jira(edition);
        let limited = settings().with_opening_projects(2);
        let opening = toolkit_at(&server.url("context"), limited).opening().await;
        assert!(!opening.is_error && !opening.content.contains(TOKEN));
        let text = opening.content.replace(&server.port().to_string(), "PORT");
        all.push_str(&format!("=== {edition:?}\n{text}\n"));
    }
    let none = toolkit_of(&[], settings()).opening().await;
    all.push_str(&format!("=== unconfigured\n{}\n", none.content));
    insta::assert_snapshot!(all);

    // Two of the lines fit, at the edge, and no more.
    let server = jira(Edition::Cloud);
    let lines = "- **PROJ**: The Project\n- **OPS**: Operations\n".len();
    for (bytes, shown) in [(lines, "Showing 2 of 3."), (lines - 1, "Showing 1 of 3.")] {
        let limited = settings().with_opening_bytes(bytes);
        let opening = toolkit_at(&server.url("context"), limited).opening().await;
        assert!(opening.content.contains(shown), "{}", opening.content);
        assert!(opening.content.contains("jira_list_projects lists all of them."));
    }

    // Nobody listens there any more.
    let gone = jira(Edition::Cloud).url("context");
    let opening = toolkit_at(&gone, settings()).opening().await;
    assert!(!opening.is_error, "a skill can be loaded without Jira");
    assert!(opening.content.starts_with("## Jira Skill Activated"));
    assert!(opening.content.contains("The projects could not be listed: Jira cannot be reached"));
    let wrong = jira(Edition::Cloud);
    let variables = [("JIRA_URL", wrong.url("context")), ("JIRA_PAT", "expired-token".to_owned())];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let opening = toolkit_of(&variables, settings()).opening().await;
    assert!(opening.content.contains("could not be listed: Jira authentication failed (401)."));
}

#[tokio::test]
async fn arguments_that_cannot_be_used_are_told_before_anything_is_sent() {
    let server = jira(Edition::Cloud);
    let jira = toolkit_at(&server.url("context"), settings().with_max_jql_bytes(20));
    let table = [
        ("search_issues", json!({}), "'jql' must be"),
        ("search_issues", json!({"jql": " "}), "'jql' must be"),
        ("search_issues", json!({"jql": "x".repeat(21)}), "(max_jql_bytes); it has 21"),
        ("search_issues", json!({"jql": "a = b", "limit": 0}), "from 1 to 100 (max_limit)"),
        ("search_issues", json!({"jql": "a = b", "limit": 101}), "from 1 to 100 (max_limit)"),
        ("search_issues", json!({"jql": "a = b", "cursor": "x"}), "'cursor' must be"),
        ("search_issues", json!({"jql": "a = b", "cursor": "1.2.a b"}), "'cursor' must be"),
        ("get_comments", json!({"issue_key": "PROJ-1", "cursor": "0.0.tok"}), "'cursor' must be"),
        ("list_projects", json!({"cursor": "4294967296"}), "'cursor' must be"),
        ("get_comments", json!({"issue_key": "PROJ-1", "max_results": 0}), "at least 1"),
        ("get_issue", json!({"issue_key": "proj-1"}), "a key such as PROJ-123"),
        ("get_sprints", json!({}), "'board_id' must be given"),
        ("get_sprints", json!({"board_id": -1}), "not negative"),
        ("get_sprints", json!({"board_id": "1/../../x"}), "not negative"),
        (
            "get_sprints",
            json!({"board_id": 1, "state_filter": "x"}),
            "one of active, future, closed, all",
        ),
        ("get_boards", json!({"board_type": "x"}), "one of scrum, kanban, simple, all"),
        ("get_boards", json!({"project_key": "a&b"}), "a key such as PROJ"),
    ];
    for (method, arguments, expected) in table {
        let outcome = jira.call(method, &arguments).await;
        assert_eq!(
            (outcome.code.as_ref(), outcome.is_error),
            ("invalid_arguments", true),
            "{arguments}"
        );
        assert!(outcome.content.contains(expected), "{}", outcome.content);
        assert!(outcome.hint.is_some());
    }
    assert!(server.seen().is_empty());
    // At the edge.
    let fits = json!({"jql": "x".repeat(20), "limit": 100});
    assert!(!jira.call("search_issues", &fits).await.is_error);
    assert_eq!(jira.call("delete_issue", &json!({})).await.code, "unknown_method");
}

#[tokio::test]
async fn without_a_configuration_every_method_says_what_is_missing() {
    let jira = toolkit_of(&[], JiraSettings::default());
    for method in METHODS {
        let outcome = jira.call(method, &json!({"jql": "a", "issue_key": "PROJ-1"})).await;
        assert_eq!((outcome.code.as_ref(), outcome.is_error), ("jira_unconfigured", true));
        assert_eq!(
            outcome.content,
            "Jira not configured. Set JIRA_URL and JIRA_BEARER_TOKEN environment variables."
        );
        assert!(outcome.hint.unwrap().contains("JIRA_API_TOKEN"));
    }
}

#[test]
fn the_skill_binds_every_method_and_no_other() {
    let handlers = toolkit_of(&[], JiraSettings::default()).handlers();
    let offered = format!("{handlers:?}");
    for method in METHODS {
        assert!(offered.contains(&format!("\"{method}\"")), "{offered}");
    }
    assert!(offered.contains("skill: Some(\"jira\")") && offered.contains("opening: true"));
    let skill = concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills/jira/SKILL.md");
    let skill = std::fs::read_to_string(skill).unwrap();
    let methods: BTreeSet<&str> =
        skill.lines().filter_map(|line| line.trim().strip_prefix("method: ")).collect();
    let expected: BTreeSet<&str> = METHODS.into_iter().chain(["load_details"]).collect();
    assert_eq!(methods, expected);
}
