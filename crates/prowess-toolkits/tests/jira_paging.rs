//! Pages of servers that count in their own way.

#![cfg(feature = "jira")]

mod jira_support;

use jira_support::{Answer, Edition, Manner, Request, Server, answer, settings, toolkit_at};
use serde_json::{Value, json};

/// A Cloud that gives no more than so many changes at once, whatever it is asked for.
fn changelog(total: u64, most: u64) -> Server {
    Server::start(move |request| {
        if !request.path.ends_with("/changelog") {
            return answer(Edition::Cloud, request);
        }
        let number = |name: &str| request.query[name].parse::<u64>().unwrap();
        let (start, limit) = (number("startAt"), number("maxResults").min(most));
        let change = |number: u64| json!({"id": number.to_string(), "items": []});
        let values: Vec<Value> = (start..total.min(start + limit)).map(change).collect();
        Answer::ok(
            &json!({"startAt": start, "maxResults": limit, "total": total, "values": values}),
        )
    })
}

#[tokio::test]
async fn small_pages_of_a_changelog_are_put_together() {
    for (total, most, limit) in
        [(25, 4, 10), (25, 1, 25), (3, 2, 50), (25, 25, 25), (100, 7, 100), (1, 1, 1)]
    {
        let server = changelog(total, most);
        let jira = toolkit_at(&server.url("context"), settings());
        let (mut ids, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let arguments = json!({"issue_key": "PROJ-1", "limit": limit, "cursor": cursor});
            let outcome = jira.call("get_changelog", &arguments).await;
            assert!(!outcome.is_error, "{total} {most}: {}", outcome.content);
            let changes = outcome.data["changes"].as_array().unwrap();
            assert!(changes.len() as u64 <= limit);
            ids.extend(changes.iter().map(|change| change["id"].as_u64().unwrap()));
            cursor = outcome.data["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(ids, (0..total).rev().collect::<Vec<_>>(), "{total} in parts of {most}");
    }
}

#[tokio::test]
async fn a_changelog_that_ends_too_early_is_told() {
    let server = Server::start(|request| match request.path.ends_with("/changelog") {
        true => Answer::ok(&json!({"startAt": 0, "total": 5, "values": []})),
        false => answer(Edition::Cloud, request),
    });
    let jira = toolkit_at(&server.url("context"), settings());
    let outcome = jira.call("get_changelog", &json!({"issue_key": "PROJ-1"})).await;
    assert_eq!(outcome.code, "jira_invalid_answer");
    assert!(outcome.content.ends_with("0 changes of 5 were given"), "{}", outcome.content);
}

/// A Cloud whose search answers as this says for each token.
fn search(page: impl Fn(&str, &Request) -> Answer + Send + Sync + 'static) -> Server {
    Server::start(move |request| match request.path.ends_with("/search/jql") {
        true => page(request.query.get("nextPageToken").map_or("", String::as_str), request),
        false => answer(Edition::Cloud, request),
    })
}

fn empty(next: &str) -> Answer {
    Answer::ok(&json!({"issues": [], "nextPageToken": next, "isLast": false}))
}

#[tokio::test]
async fn pages_without_entries_are_passed_over() {
    let server = search(|token, _| match token {
        "" => empty("a"),
        "a" => empty("b"),
        "b" => Answer::ok(&json!({"issues": [{"key": "PROJ-7"}], "nextPageToken": "c"})),
        "c" => empty("d"),
        _ => Answer::ok(&json!({"issues": [], "isLast": true})),
    });
    let jira = toolkit_at(&server.url("context"), settings());
    let outcome = jira.call("search_issues", &json!({"jql": "project = PROJ"})).await;
    assert!(outcome.content.contains("**PROJ-7**"), "{}", outcome.content);
    assert_eq!(outcome.data["next_cursor"], "1.0.c");
    let again = json!({"jql": "project = PROJ", "cursor": "1.0.c"});
    let outcome = jira.call("search_issues", &again).await;
    assert!(outcome.content.starts_with("Nothing more"), "{}", outcome.content);
    assert_eq!((&outcome.data["next_cursor"], &outcome.data["total"]), (&Value::Null, &json!(1)));
}

#[tokio::test]
async fn a_list_that_goes_on_is_not_called_empty() {
    // The page after the second one does not come in time.
    let server = search(|token, _| match token {
        "" => empty("a"),
        _ => empty("b").in_manner(Manner::Silent),
    });
    let limited = settings().with_deadline_seconds(1);
    let jira = toolkit_at(&server.url("context"), limited);
    let outcome = jira.call("search_issues", &json!({"jql": "project = PROJ"})).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    assert!(outcome.content.contains("but the list goes on"), "{}", outcome.content);
    assert!(!outcome.content.contains("No issues found"), "{}", outcome.content);
    assert_eq!(outcome.data["next_cursor"], "0.0.a");
}

#[tokio::test]
async fn tokens_that_lead_in_a_circle_are_left() {
    let server = search(|token, _| if token == "a" { empty("b") } else { empty("a") });
    let jira = toolkit_at(&server.url("context"), settings());
    let outcome = jira.call("search_issues", &json!({"jql": "project = PROJ"})).await;
    assert_eq!(outcome.code, "jira_invalid_answer");
    assert!(outcome.content.ends_with("leads in a circle"), "{}", outcome.content);
    assert!(server.seen().len() < 6, "{}", server.seen().len());
}

#[tokio::test]
async fn a_server_that_gives_more_than_it_is_asked_for_is_read_in_parts() {
    let keys = |range: std::ops::Range<u64>| -> Vec<Value> {
        range.map(|number| json!({"key": format!("PROJ-{number}")})).collect()
    };
    let server = search(move |token, _| match token {
        "" => Answer::ok(&json!({"issues": keys(0..5), "nextPageToken": "a"})),
        _ => Answer::ok(&json!({"issues": keys(5..8), "isLast": true})),
    });
    let jira = toolkit_at(&server.url("context"), settings());
    let (mut found, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let arguments = json!({"jql": "project = PROJ", "limit": 2, "cursor": cursor});
        let outcome = jira.call("search_issues", &arguments).await;
        let issues = outcome.data["issues"].as_array().unwrap();
        assert!((1..=2).contains(&issues.len()), "{}", outcome.content);
        found.extend(issues.iter().map(|issue| issue["key"].as_str().unwrap().to_owned()));
        cursor = outcome.data["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let expected: Vec<String> = (0..8).map(|number| format!("PROJ-{number}")).collect();
    assert_eq!(found, expected);
}
