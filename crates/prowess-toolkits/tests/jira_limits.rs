//! What an answer holds at most: in its text, and in its data.

#![cfg(feature = "jira")]

mod jira_support;

use jira_support::{Answer, Server, TOKEN, settings, toolkit_of};
use prowess_runtime::ToolOutcome;
use prowess_toolkits::{JiraSettings, JiraToolkit};
use serde_json::{Value, json};

/// Asks a server that answers everything with this, as if it were Data Center.
async fn ask(method: &str, body: Value, settings: JiraSettings) -> ToolOutcome {
    let server = Server::of(vec![Answer::ok(&body)]);
    let url = server.url("");
    let variables = [("JIRA_URL", url.as_str()), ("JIRA_PAT", TOKEN), ("JIRA_API_VERSION", "2")];
    let arguments = json!({
        "jql": "a = b", "issue_key": "PROJ-1", "board_id": 1, "sprint_id": 1, "limit": 5});
    let outcome = toolkit_of(&variables, settings).call(method, &arguments).await;
    assert!(!outcome.is_error, "{method}: {}", outcome.content);
    outcome
}

#[tokio::test]
async fn data_is_cut_like_the_text_and_says_so() {
    let long = "x".repeat(100_000);
    let person = json!({"displayName": long});
    let named = json!({"name": long});
    let issue = json!({"key": long, "fields": {
        "summary": long, "issuetype": named, "status": named, "priority": named,
        "assignee": person, "reporter": person, "created": long, "updated": long,
        "labels": [long, long], "description": long}});
    let item = json!({"field": long, "fromString": long, "toString": long});
    let change = json!({"created": long, "author": person, "items": [item]});
    let table = [
        ("search_issues", json!({"issues": [issue], "total": 1})),
        ("get_sprint_issues", json!({"issues": [issue], "total": 1})),
        ("get_issue", issue.clone()),
        ("list_projects", json!([{"key": long, "name": long}])),
        (
            "get_boards",
            json!({"values": [{"name": long, "type": long, "location": {
                "projectName": long, "projectKey": long}}]}),
        ),
        (
            "get_sprints",
            json!({"values": [{"name": long, "state": long, "goal": long, "startDate": long,
                "endDate": long}]}),
        ),
        ("get_changelog", json!({"changelog": {"histories": [change]}})),
        (
            "get_comments",
            json!({"comments": [{"author": person, "created": long, "body": long}], "total": 1}),
        ),
        (
            "get_worklogs",
            json!({"worklogs": [{"author": person, "started": long, "timeSpent": long,
                "comment": long}], "total": 1}),
        ),
    ];
    for (method, body) in table {
        let limited = settings().with_max_field_bytes(10).with_max_comment_bytes(10);
        let outcome = ask(method, body, limited.with_max_description_bytes(10)).await;
        let data = serde_json::to_string(&outcome.data).unwrap();
        assert!(data.len() < 2000, "{method}: {} bytes", data.len());
        assert!(outcome.content.len() < 2000, "{method}: {} bytes", outcome.content.len());
        let note = "xxxxxxxxxx [cut: 10 of 100000 bytes shown; max_field_bytes]";
        assert!(data.contains(note), "{method}: {data}");
    }
}

#[tokio::test]
async fn labels_that_are_left_out_are_counted() {
    let issue = json!({"key": "PROJ-1", "fields": {"labels": ["one", "two", "three"]}});
    for (bytes, labels, left_out) in
        [(15, json!(["one", "two", "three"]), 0), (14, json!(["one", "two"]), 1)]
    {
        let outcome = ask("get_issue", issue.clone(), settings().with_max_field_bytes(bytes)).await;
        assert_eq!(outcome.data["labels"], labels);
        assert_eq!(outcome.data["labels_left_out"], left_out);
    }
}

fn change_of(items: usize, value: &str) -> Value {
    let item = json!({"field": "labels", "fromString": value, "toString": value});
    json!({"changelog": {"histories": [{"id": "1", "items": vec![item; items]}]}})
}

#[tokio::test]
async fn a_change_shows_so_many_fields_and_counts_the_rest() {
    let limited = settings().with_max_change_items(3);
    for (items, left_out) in [(3, 0), (4, 1), (5000, 4997)] {
        let outcome = ask("get_changelog", change_of(items, "a"), limited.clone()).await;
        assert_eq!(outcome.content.matches("- labels: 'a' → 'a'").count(), 3);
        let change = &outcome.data["changes"][0];
        assert_eq!(change["items"].as_array().unwrap().len(), 3);
        assert_eq!(change["items_left_out"], left_out);
        let note = format!("[{left_out} more of this change not shown; max_change_items]");
        assert_eq!(outcome.content.contains(&note), left_out > 0, "{}", outcome.content);
    }
}

#[tokio::test]
async fn one_entry_alone_keeps_to_the_size_of_an_answer() {
    // What steers becomes longer when it is shown.
    let value = "\u{1b}".repeat(100);
    let limited = settings().with_max_answer_bytes(20_000).with_max_change_items(usize::MAX);
    let outcome = ask("get_changelog", change_of(5000, &value), limited.clone()).await;
    assert!(outcome.content.len() < 20_500, "{}", outcome.content.len());
    let left_out = &outcome.data["changes"][0]["items_left_out"];
    let note = format!("[{left_out} more of this change not shown; max_answer_bytes]");
    assert!(outcome.content.contains(&note), "{note}");
    assert!(serde_json::to_string(&outcome.data).unwrap().len() < 40_000);

    let comments = json!({"comments": [{"body": "y\n".repeat(4000)}], "total": 1});
    let limited = settings().with_max_answer_bytes(500);
    let outcome = ask("get_comments", comments, limited).await;
    assert!(outcome.content.len() < 1000, "{}", outcome.content.len());
    assert!(outcome.content.contains("[cut: 500 of "), "{}", outcome.content);
    assert!(outcome.content.contains("bytes shown; max_answer_bytes]"), "{}", outcome.content);
}

/// A host may set what no file could: it is no reason to fall over.
#[tokio::test]
async fn times_without_end_are_no_panic() {
    let server = jira_support::jira(jira_support::Edition::Cloud);
    let variables = [("JIRA_URL", server.url("context")), ("JIRA_PAT", TOKEN.to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let access = jira_support::access_of(&variables, &settings()).unwrap();
    let endless = settings()
        .with_deadline_seconds(u64::MAX)
        .with_request_seconds(u64::MAX)
        .with_connect_seconds(u64::MAX)
        .with_opening_seconds(u64::MAX);
    let jira = JiraToolkit::new(endless, access);
    assert!(!jira.call("list_projects", &json!({})).await.is_error);
    assert!(jira.opening().await.content.contains("The Project"));
}
