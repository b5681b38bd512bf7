//! Which edition a Jira is, found out once and within the time.

#![cfg(feature = "jira")]

mod jira_support;

use std::time::{Duration, Instant};

use jira_support::{Answer, Edition, Manner, Server, answer, settings, toolkit_at};
use serde_json::json;

#[tokio::test]
async fn the_name_of_the_edition_is_taken_in_any_case() {
    for (kind, path) in [
        ("Cloud", "/search/jql"),
        ("cloud", "/search/jql"),
        ("CLOUD", "/search/jql"),
        ("Server", "/search"),
        ("data center", "/search"),
    ] {
        let server = Server::start(move |request| match request.path.ends_with("serverInfo") {
            true => Answer::ok(&json!({"deploymentType": kind})),
            false => Answer::ok(&json!({"issues": [], "total": 0, "isLast": true})),
        });
        let jira = toolkit_at(&server.url("context"), settings());
        let outcome = jira.call("search_issues", &json!({"jql": "project = PROJ"})).await;
        assert!(!outcome.is_error, "{}", outcome.content);
        assert!(server.seen()[1].path.ends_with(path), "{kind}: {:?}", server.seen()[1].path);
    }
}

#[tokio::test]
async fn who_waits_for_the_edition_keeps_its_own_time() {
    let server = Server::start(|request| match request.path.ends_with("serverInfo") {
        true => Answer::ok(&json!({})).in_manner(Manner::Silent),
        false => answer(Edition::Cloud, request),
    });
    let limited = settings().with_deadline_seconds(8).with_request_seconds(8);
    let jira = toolkit_at(&server.url("context"), limited.with_opening_seconds(1));
    let patient = tokio::spawn({
        let jira = jira.clone();
        async move { jira.call("list_projects", &json!({})).await }
    });
    while server.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begun = Instant::now();
    let opening = jira.opening().await;
    let waited = begun.elapsed();
    assert!(opening.content.contains("within 1 s (opening_seconds)"), "{}", opening.content);
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(server.seen().len(), 1, "the edition was asked for by one of them");
    patient.abort();
}
