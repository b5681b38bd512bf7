//! What goes wrong between us and Jira: it is told in words, with a stable code, within limits.

#![cfg(feature = "jira")]

mod jira_support;

use jira_support::{
    Answer, Edition, Manner, Server, TOKEN, answer, settings, toolkit_at, toolkit_of,
};
use prowess_runtime::ToolOutcome;
use prowess_toolkits::JiraSettings;
use serde_json::{Value, json};

/// Asks a server for an issue, as if it were Data Center.
async fn issue_of(server: &Server, settings: JiraSettings) -> ToolOutcome {
    let url = server.url("context");
    let variables = [("JIRA_URL", url.as_str()), ("JIRA_PAT", TOKEN), ("JIRA_API_VERSION", "2")];
    toolkit_of(&variables, settings).call("get_issue", &json!({"issue_key": "PROJ-1"})).await
}

fn issue() -> Answer {
    Answer::ok(&json!({"key": "PROJ-1", "fields": {"summary": "It breaks"}}))
}

fn said(text: &str) -> Value {
    json!({"errorMessages": [text, "and more"], "errors": {"jql": "wrong"}})
}

#[tokio::test]
async fn every_status_has_a_code_a_sentence_and_a_hint() {
    let table = [
        (
            Answer::json(400, &said("Bad")),
            "jira_bad_request",
            "Jira API error (400): Bad; and more; jql: wrong",
        ),
        (
            Answer::json(401, &said("No")),
            "jira_unauthorized",
            "Jira authentication failed (401). Your OAuth token may be expired. Please refresh it.",
        ),
        (
            Answer::json(403, &said("No")),
            "jira_forbidden",
            "Jira forbidden (403). Your token may lack required scopes (read:jira-work, read:jira-user).",
        ),
        (
            Answer::json(404, &json!({"message": "Gone fishing"})),
            "jira_not_found",
            "Jira API error (404): Gone fishing",
        ),
        (
            Answer::json(410, &said("Removed")),
            "jira_gone",
            "Jira API error (410): Removed; and more; jql: wrong",
        ),
        (
            Answer::html(418, "<b>teapot</b>\n\u{1b}[2J"),
            "jira_error",
            "Jira API error (418): <b>teapot</b>\\n\\u{1b}[2J",
        ),
        (Answer::html(429, ""), "jira_rate_limited", "Jira API error (429): Too Many Requests"),
        (
            Answer::json(500, &json!({"nothing": 1})),
            "jira_unavailable",
            "Jira API error (500): {\"nothing\":1}",
        ),
        (Answer::html(503, "busy"), "jira_unavailable", "Jira API error (503): busy"),
        (
            Answer::html(200, "<html>log in</html>"),
            "jira_invalid_answer",
            "Jira's answer cannot be used: it is no JSON (line 1, column 1); it is called text/html",
        ),
        (
            Answer::of(200, "application/json", "{\"key\": \"PROJ"),
            "jira_invalid_answer",
            "Jira's answer cannot be used: it is no JSON (line 1, column 13); it is called application/json",
        ),
        (
            Answer::of(200, "application/json", ""),
            "jira_invalid_answer",
            "Jira's answer cannot be used: it is no JSON (line 1, column 0); it is called application/json",
        ),
        (
            Answer::ok(&json!({"key": "PROJ-1"})),
            "jira_invalid_answer",
            "Jira's answer cannot be used: it has no 'fields'",
        ),
        (
            Answer::ok(&json!([1, 2])),
            "jira_invalid_answer",
            "Jira's answer cannot be used: it has no 'fields'",
        ),
    ];
    for (answer, code, sentence) in table {
        let server = Server::of(vec![answer]);
        let outcome = issue_of(&server, settings().with_max_retries(1)).await;
        assert_eq!((outcome.code.as_ref(), outcome.is_error), (code, true), "{sentence}");
        assert_eq!(outcome.content, sentence);
        assert!(outcome.hint.is_some(), "{code}");
        assert!(!format!("{outcome:?}").contains(TOKEN));
    }
}

#[tokio::test]
async fn what_is_not_jsons_label_is_taken_if_it_is_json() {
    let body = json!({"key": "PROJ-1", "fields": {}}).to_string();
    let server = Server::of(vec![Answer::of(200, "text/plain", body)]);
    assert!(!issue_of(&server, settings()).await.is_error);
}

#[tokio::test]
async fn what_may_pass_is_asked_again() {
    let broken = || issue().in_manner(Manner::BreakOff);
    let date = "Thu, 01 Jan 1970 00:00:00 GMT";
    let table = [
        vec![
            Answer::html(429, "").with("Retry-After", "0"),
            Answer::html(429, "").with("Retry-After", date),
        ],
        vec![Answer::html(502, ""), Answer::html(503, ""), Answer::html(504, "")],
        vec![broken(), broken()],
    ];
    for failures in table {
        let count = failures.len();
        let server = Server::of([failures, vec![issue()]].concat());
        let outcome = issue_of(&server, settings().with_max_retries(3)).await;
        assert!(outcome.content.starts_with("# PROJ-1: It breaks"), "{}", outcome.content);
        assert_eq!(server.seen().len(), count + 1);
    }
}

#[tokio::test]
async fn it_is_asked_no_more_often_than_the_settings_say() {
    let table = [
        (Answer::html(503, ""), 0, 1),
        (Answer::html(503, ""), 2, 3),
        (Answer::html(500, ""), 2, 1),
    ];
    for (answer, max_retries, requests) in table {
        let server = Server::of(vec![answer]);
        let outcome = issue_of(&server, settings().with_max_retries(max_retries)).await;
        assert_eq!((outcome.code.as_ref(), server.seen().len()), ("jira_unavailable", requests));
    }
}

#[tokio::test]
async fn a_wait_that_is_longer_than_the_time_is_told_and_not_made() {
    let server = Server::of(vec![Answer::html(429, "").with("Retry-After", "3600")]);
    let outcome = issue_of(&server, settings()).await;
    assert_eq!(outcome.code, "jira_rate_limited");
    assert_eq!(outcome.data["retry_after"], 3600);
    assert!(outcome.hint.unwrap().contains("3600 s"));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left_at_the_deadline() {
    let server = Server::of(vec![issue().in_manner(Manner::Silent)]);
    let outcome = issue_of(&server, settings().with_deadline_seconds(1)).await;
    assert_eq!(outcome.code, "jira_timeout");
    assert_eq!(outcome.content, "Jira did not answer within 1 s (deadline_seconds)");
    // One request has its own time, and is made again.
    let server = Server::of(vec![issue().in_manner(Manner::Silent), issue()]);
    let outcome = issue_of(&server, settings().with_request_seconds(1)).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    let server = Server::of(vec![issue().in_manner(Manner::Silent)]);
    let outcome = issue_of(&server, settings().with_request_seconds(1).with_max_retries(0)).await;
    assert_eq!(outcome.content, "Jira did not answer within 1 s (request_seconds)");
}

#[tokio::test]
async fn nobody_listens() {
    let url = Server::of(vec![issue()]).url("context");
    let jira = toolkit_at(&url, settings().with_max_retries(1));
    let outcome = jira.call("list_projects", &json!({})).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("jira_unreachable", true));
    assert!(outcome.content.starts_with("Jira cannot be reached: "), "{}", outcome.content);
}

#[tokio::test]
async fn an_answer_has_its_limits_at_the_edge() {
    let answer = issue();
    let length = answer.body.len() as u64;
    let server = Server::of(vec![answer]);
    let with = |most| settings().with_max_response_bytes(most);
    assert!(!issue_of(&server, with(length)).await.is_error);
    let outcome = issue_of(&server, with(length - 1)).await;
    assert_eq!(outcome.code, "jira_too_large");
    let expected = format!("Jira's answer is larger than {} (max_response_bytes)", length - 1);
    assert_eq!(outcome.content, expected);
    // Without a length too, and for errors.
    let endless = Server::of(vec![issue().in_manner(Manner::Endless)]);
    assert_eq!(issue_of(&endless, with(100_000)).await.code, "jira_too_large");
    let endless = Server::of(vec![Answer::html(404, "").in_manner(Manner::Endless)]);
    let outcome = issue_of(&endless, with(100_000)).await;
    assert_eq!(
        (outcome.code.as_ref(), outcome.content.as_str()),
        ("jira_not_found", "Jira API error (404): Not Found")
    );

    let nested = format!("{}{}", "[".repeat(101), "]".repeat(101));
    let server = Server::of(vec![Answer::of(200, "application/json", nested)]);
    let outcome = issue_of(&server, settings()).await;
    assert_eq!(outcome.content, "Jira's answer is larger than 100 (max_json_depth)");
    let many = format!("[{}0]", "0,".repeat(1000));
    let server = Server::of(vec![Answer::of(200, "application/json", many)]);
    let outcome = issue_of(&server, settings().with_max_json_values(1000)).await;
    assert_eq!(outcome.content, "Jira's answer is larger than 1000 (max_json_values)");
    let server = Server::of(vec![Answer::html(404, &"x".repeat(501))]);
    let outcome = issue_of(&server, settings()).await;
    assert!(
        outcome.content.ends_with("x [cut: 500 of 501 bytes shown; max_message_bytes]"),
        "{}",
        outcome.content
    );
}

#[tokio::test]
async fn texts_have_their_limits_and_say_what_was_cut() {
    let adf = |text: &str| json!({"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]});
    let quote = |inner: Value| json!({"type": "blockquote", "content": [inner]});
    let fields = |description: Value, summary: &str| {
        Server::of(vec![Answer::ok(
            &json!({"key": "PROJ-1", "fields": {"summary": summary, "description": description}}),
        )])
    };
    let limited = settings().with_max_description_bytes(10).with_max_field_bytes(10);
    let server = fields(json!("0123456789"), "0123456789");
    let outcome = issue_of(&server, limited.clone()).await;
    assert!(!outcome.content.contains("[cut"), "{}", outcome.content);
    assert_eq!(outcome.data["description"]["is_cut"], false);
    let server = fields(json!("0123456789x"), "0123456789x");
    let outcome = issue_of(&server, limited.clone()).await;
    assert!(
        outcome
            .content
            .contains("# PROJ-1: 0123456789 [cut: 10 of 11 bytes shown; max_field_bytes]")
    );
    assert!(
        outcome
            .content
            .contains("> 0123456789\n> [cut: 10 of 11 bytes shown; max_description_bytes]")
    );
    assert_eq!(outcome.data["description"]["is_cut"], true);
    let server = fields(adf("0123456789x"), "s");
    let outcome = issue_of(&server, limited).await;
    assert!(
        outcome.content.contains("there is more; max_description_bytes]"),
        "{}",
        outcome.content
    );
    let deep = (0..4).fold(adf("core"), |inner, _| quote(inner));
    let outcome = issue_of(&fields(deep.clone(), "s"), settings().with_max_adf_depth(3)).await;
    assert!(
        outcome.content.contains("[deeper than 3 levels; max_adf_depth]"),
        "{}",
        outcome.content
    );
    let outcome = issue_of(&fields(deep, "s"), settings().with_max_adf_depth(8)).await;
    assert!(outcome.content.contains("> > > > > core"), "{}", outcome.content);

    let comments = json!({"startAt": 0, "total": 1, "comments": [{"body": "0123456789x"}]});
    let server = Server::of(vec![Answer::ok(&comments)]);
    let url = server.url("context");
    let variables = [("JIRA_URL", url.as_str()), ("JIRA_PAT", TOKEN), ("JIRA_API_VERSION", "2")];
    let call = async |bytes| {
        let jira = toolkit_of(&variables, settings().with_max_comment_bytes(bytes));
        jira.call("get_comments", &json!({"issue_key": "PROJ-1"})).await.content
    };
    assert!(
        call(10).await.contains("> 0123456789\n> [cut: 10 of 11 bytes shown; max_comment_bytes]")
    );
    assert!(call(11).await.contains("> 0123456789x\n"));
}

#[tokio::test]
async fn lists_that_are_none_are_refused() {
    let table = [
        (json!({"startAt": 0}), "it has no list 'issues'"),
        (json!({"issues": "many"}), "it has no list 'issues'"),
        (json!({"issues": [{}, 7]}), "issues[1] is no object"),
        (json!({"issues": [], "startAt": 5}), "it begins at 5, not at 0"),
        (json!(null), "it has no list 'issues'"),
        (json!("text"), "it has no list 'issues'"),
    ];
    for (body, expected) in table {
        let server = Server::of(vec![Answer::ok(&body)]);
        let jira = toolkit_at(&server.url(""), settings());
        let outcome = jira.call("get_sprint_issues", &json!({"sprint_id": 1})).await;
        assert_eq!(outcome.code, "jira_invalid_answer", "{body}");
        assert!(outcome.content.ends_with(expected), "{}", outcome.content);
    }
    for body in
        [json!("text"), json!({"changelog": []}), json!({"changelog": {"histories": 7}}), json!(7)]
    {
        let server = Server::of(vec![Answer::ok(&body)]);
        let url = server.url("");
        let variables =
            [("JIRA_URL", url.as_str()), ("JIRA_PAT", TOKEN), ("JIRA_API_VERSION", "2")];
        let jira = toolkit_of(&variables, settings());
        for method in ["get_changelog", "get_comments", "get_issue", "list_projects"] {
            let outcome = jira.call(method, &json!({"issue_key": "PROJ-1"})).await;
            assert_eq!(outcome.code, "jira_invalid_answer", "{method} {body}");
        }
    }
    // Entries that lack everything are shown as such.
    let server = Server::of(vec![Answer::ok(&json!({"issues": [{}], "total": 1}))]);
    let outcome = toolkit_at(&server.url(""), settings())
        .call("get_sprint_issues", &json!({"sprint_id": 1}))
        .await;
    assert!(outcome.content.contains("**?** [Unknown] - (no summary)"), "{}", outcome.content);
}

/// Old servers do not know how to sort comments, and that is said.
#[tokio::test]
async fn comments_that_come_in_another_order_are_called_so() {
    let comment =
        |day: u64| json!({"created": format!("2024-01-{day:02}T00:00:00.000+0000"), "body": "x"});
    for (days, order) in [([2, 1], "newest first"), ([1, 2], "oldest first")] {
        let comments = json!({"startAt": 0, "total": 2, "comments": days.map(comment)});
        let server = Server::of(vec![
            Answer::ok(&json!({"deploymentType": "Server"})),
            Answer::ok(&comments),
        ]);
        let jira = toolkit_at(&server.url(""), settings());
        let outcome = jira.call("get_comments", &json!({"issue_key": "PROJ-1"})).await;
        assert!(
            outcome.content.starts_with(&format!("**Comments for PROJ-1** ({order}):")),
            "{}",
            outcome.content
        );
    }
}

/// A page that leads to itself, or to nowhere, does not make the model ask for ever.
#[tokio::test]
async fn a_server_cannot_make_a_list_endless() {
    let cloud = |page: Value| {
        Server::start(move |request| match request.path.ends_with("/search/jql") {
            true => Answer::ok(&page),
            false => answer(Edition::Cloud, request),
        })
    };
    let page = json!({"issues": [{"key": "PROJ-1"}], "nextPageToken": "same"});
    let server = cloud(page);
    let jira = toolkit_at(&server.url("context"), settings());
    let again = json!({"jql": "project = PROJ", "cursor": "1.0.same"});
    assert_eq!(jira.call("search_issues", &again).await.data["next_cursor"], Value::Null);
    let server = cloud(json!({"issues": [], "nextPageToken": "a' \n b"}));
    let jira = toolkit_at(&server.url("context"), settings());
    let outcome = jira.call("search_issues", &json!({"jql": "project = PROJ"})).await;
    assert_eq!(outcome.code, "jira_invalid_answer");
    // Counting may fail without harm.
    let server = Server::start(|request| match request.path.ends_with("approximate-count") {
        true => Answer::html(500, ""),
        false => answer(Edition::Cloud, request),
    });
    let jira = toolkit_at(&server.url("context"), settings());
    let outcome = jira.call("search_issues", &json!({"jql": "project = PROJ", "limit": 2})).await;
    assert!(outcome.content.contains("Showing 2; Jira gives no total."), "{}", outcome.content);
    assert_eq!(outcome.data["total_is"], "unknown");
}

#[tokio::test]
async fn an_edition_that_cannot_be_found_out_is_asked_for_again_later() {
    let server = Server::start({
        let asked = std::sync::atomic::AtomicUsize::new(0);
        move |request| match request.path.ends_with("serverInfo") {
            true if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => {
                Answer::ok(&json!({}))
            }
            _ => answer(Edition::DataCenter, request),
        }
    });
    let jira = toolkit_at(&server.url("context"), settings());
    let outcome = jira.call("list_projects", &json!({})).await;
    assert_eq!(outcome.code, "jira_invalid_answer");
    assert!(!jira.call("list_projects", &json!({})).await.is_error);
}
