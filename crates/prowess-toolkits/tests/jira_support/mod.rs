//! A Jira on loopback, of either edition. It ends with the test.

#![allow(dead_code, unused_imports, reason = "every test file uses some of it")]

mod server;

use std::collections::BTreeMap;

use prowess_toolkits::{JiraAccess, JiraSettings, JiraToolkit};
use serde_json::{Value, json};
pub(crate) use server::{Answer, Manner, Request, Server};

/// The token that the server takes.
pub(crate) const TOKEN: &str = "s3cret-token-of-the-test";

/// How many issues there are.
pub(crate) const ISSUES: u64 = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edition {
    Cloud,
    DataCenter,
}

/// A server of this edition below `/context`.
pub(crate) fn jira(edition: Edition) -> Server {
    Server::start(move |request| answer(edition, request))
}

/// Settings that do not wait long.
pub(crate) fn settings() -> JiraSettings {
    JiraSettings::default().with_backoff_millis(1)
}

/// The toolkit for an address, with a personal access token.
pub(crate) fn toolkit_at(url: &str, settings: JiraSettings) -> JiraToolkit {
    toolkit_of(&[("JIRA_URL", url), ("JIRA_BEARER_TOKEN", TOKEN)], settings)
}

pub(crate) fn toolkit_of(variables: &[(&str, &str)], settings: JiraSettings) -> JiraToolkit {
    let access = access_of(variables, &settings).unwrap();
    JiraToolkit::new(settings, access)
}

pub(crate) fn access_of(
    variables: &[(&str, &str)],
    settings: &JiraSettings,
) -> Result<JiraAccess, prowess_toolkits::InvalidJiraSettings> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    JiraAccess::from_variables(settings, variable)
}

pub(crate) fn toolkit(server: &Server) -> JiraToolkit {
    toolkit_at(&server.url("context/"), settings())
}

/// Where a page begins and how long it is.
fn window(request: &Request) -> (u64, u64) {
    let number =
        |name: &str, default| request.query.get(name).map_or(default, |text| text.parse().unwrap());
    (number("startAt", 0), number("maxResults", 50))
}

fn part<T: Clone>(all: &[T], start: u64, limit: u64) -> Vec<T> {
    all.iter().skip(start as usize).take(limit as usize).cloned().collect()
}

fn adf(text: &str) -> Value {
    json!({"type": "doc", "version": 1, "content": [
        {"type": "paragraph", "content": [{"type": "text", "text": text}]}]})
}

/// A text as this edition writes it.
fn rich(edition: Edition, text: &str) -> Value {
    match edition {
        Edition::Cloud => adf(text),
        Edition::DataCenter => json!(text),
    }
}

fn listed(number: u64) -> Value {
    let assignee = match number % 2 {
        0 => json!({"displayName": "Jane Doe"}),
        _ => Value::Null,
    };
    json!({"id": number.to_string(), "key": format!("PROJ-{number}"), "fields": {
        "summary": format!("Issue {number}"), "issuetype": {"name": "Bug"},
        "status": {"name": "Open"}, "priority": {"name": "High"}, "assignee": assignee}})
}

fn found(jql: &str) -> Vec<Value> {
    match jql {
        "project = EMPTY" => Vec::new(),
        "project = SMALL" => (1..=2).map(listed).collect(),
        _ => (1..=ISSUES).map(listed).collect(),
    }
}

fn changes() -> Vec<Value> {
    let change = |number: u64| {
        json!({"id": number.to_string(), "author": {"displayName": "Jane Doe"},
            "created": format!("2024-01-{number:02}T10:30:00.000+0000"),
            "items": [{"field": "status", "fromString": format!("S{}", number - 1),
                "toString": format!("S{number}")}]})
    };
    (1..=25).map(change).collect()
}

/// What a request is answered with.
pub(crate) fn answer(edition: Edition, request: &Request) -> Answer {
    let Some(path) = request.path.strip_prefix("/context/rest/") else {
        return Answer::html(404, "<html>Not Jira</html>");
    };
    let is_allowed = request
        .headers
        .get("authorization")
        .is_some_and(|header| header == &format!("Bearer {TOKEN}") || header.starts_with("Basic "));
    if !is_allowed {
        return Answer::json(401, &json!({"errorMessages": ["No."]}));
    }
    let jql = request.query.get("jql").cloned().unwrap_or_default();
    if jql.contains("nonsense") {
        let said = "Field 'nonsense' does not exist";
        return Answer::json(400, &json!({"errorMessages": [said], "errors": {}}));
    }
    let parts: Vec<&str> = path.split('/').collect();
    let (start, limit) = window(request);
    let gone =
        "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API.";
    let none = || Answer::json(404, &json!({"errorMessages": ["Issue does not exist"]}));
    match (edition, parts.as_slice()) {
        (edition, ["api", "2", "serverInfo"]) => {
            let kind = if edition == Edition::Cloud { "Cloud" } else { "Server" };
            Answer::ok(&json!({"deploymentType": kind, "version": "9.12.0"}))
        }
        (Edition::Cloud, ["api", "2" | "3", "search"]) => {
            Answer::json(410, &json!({"errorMessages": [gone]}))
        }
        (Edition::Cloud, ["api", "3", "search", "jql"]) => {
            let all = found(&jql);
            let token = request.query.get("nextPageToken");
            let start = token.map_or(0, |token| token["opaque-".len()..].parse().unwrap());
            let mut issues = part(&all, start, limit);
            if !request.query.contains_key("fields") {
                issues = issues.iter().map(|issue| json!({"id": issue["id"]})).collect();
            }
            let after = start + issues.len() as u64;
            let mut page = json!({"issues": issues, "isLast": after >= all.len() as u64});
            if after < all.len() as u64 {
                page["nextPageToken"] = json!(format!("opaque-{after}"));
            }
            Answer::ok(&page)
        }
        (Edition::Cloud, ["api", "3", "search", "approximate-count"]) => {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            Answer::ok(&json!({"count": found(body["jql"].as_str().unwrap()).len()}))
        }
        (Edition::DataCenter, ["api", "2", "search"]) => {
            let all = found(&jql);
            let issues = part(&all, start, limit);
            Answer::ok(
                &json!({"startAt": start, "maxResults": limit, "total": all.len(), "issues": issues}),
            )
        }
        // Cloud answers to both, to the older one as Data Center does.
        (Edition::Cloud, ["api", "3", rest @ ..]) => {
            api(Edition::Cloud, rest, request).unwrap_or_else(none)
        }
        (_, ["api", "2", rest @ ..]) => {
            api(Edition::DataCenter, rest, request).unwrap_or_else(none)
        }
        (_, ["api", ..]) => Answer::html(404, "<html>no such version</html>"),
        (_, ["agile", "1.0", rest @ ..]) => agile(rest, request).unwrap_or_else(none),
        _ => none(),
    }
}

fn api(edition: Edition, path: &[&str], request: &Request) -> Option<Answer> {
    let (start, limit) = window(request);
    let projects = [("PROJ", "The Project"), ("OPS", "Operations"), ("HR", "People")];
    let projects: Vec<Value> =
        projects.iter().map(|(key, name)| json!({"id": "1", "key": key, "name": name})).collect();
    let paged = |name: &str, all: &[Value]| json!({"startAt": start, "maxResults": limit, "total": all.len(), name: part(all, start, limit)});
    let answer = match (edition, path) {
        (Edition::Cloud, ["project", "search"]) => paged("values", &projects),
        (Edition::DataCenter, ["project"]) => json!(projects),
        (Edition::Cloud, ["issue", "PROJ-1", "changelog"]) => paged("values", &changes()),
        (Edition::DataCenter, ["issue", "PROJ-1"]) if request.query.contains_key("expand") => {
            json!({"key": "PROJ-1", "changelog": {"histories": changes()}})
        }
        (_, ["issue", "PROJ-1"]) => json!({"key": "PROJ-1", "fields": {
            "summary": "It breaks", "issuetype": {"name": "Bug"}, "status": {"name": "Open"},
            "priority": {"name": "High"}, "assignee": {"displayName": "Jane Doe"},
            "reporter": {"name": "john"}, "created": "2024-01-01T00:00:00.000+0000",
            "updated": "2024-01-02T00:00:00.000+0000", "labels": ["one", "two"],
            "description": rich(edition, "Steps:\nOpen it.")}}),
        (_, ["issue", "PROJ-2"]) => {
            json!({"key": "PROJ-2", "fields": {"summary": "Bare", "description": null}})
        }
        (_, ["issue", "PROJ-1", "comment"]) => {
            let comment = |number: u64| {
                json!({"id": number.to_string(), "author": {"displayName": "Jane Doe"},
                "created": format!("2024-02-{number:02}T08:00:00.000+0000"),
                "body": rich(edition, &format!("Comment {number}"))})
            };
            let mut all: Vec<Value> = (1..=3).map(comment).collect();
            if request.query.get("orderBy").map(String::as_str) == Some("-created") {
                all.reverse();
            }
            paged("comments", &all)
        }
        (_, ["issue", "PROJ-1", "worklog"]) => {
            let log = |seconds: u64, spent: &str, text: Value| {
                json!({"id": "7", "author": {"displayName": "Jane Doe"},
                "started": "2024-01-03T09:00:00.000+0000", "timeSpent": spent, "timeSpentSeconds": seconds, "comment": text})
            };
            let all =
                [log(3600, "1h", rich(edition, "Looked at it")), log(1800, "30m", Value::Null)];
            match edition {
                Edition::Cloud => paged("worklogs", &all),
                // It gives all of them, whatever was asked for.
                Edition::DataCenter => {
                    json!({"startAt": 0, "maxResults": 2, "total": 2, "worklogs": all})
                }
            }
        }
        (_, ["issue", "PROJ-2", "comment"]) => paged("comments", &[]),
        (_, ["issue", "PROJ-2", "worklog"]) => paged("worklogs", &[]),
        (Edition::Cloud, ["issue", "PROJ-2", "changelog"]) => paged("values", &[]),
        _ => return None,
    };
    Some(Answer::ok(&answer))
}

fn agile(path: &[&str], request: &Request) -> Option<Answer> {
    let (start, limit) = window(request);
    let state = request.query.get("state").map(String::as_str);
    let answer = match path {
        ["board"] => {
            let boards = [
                json!({"id": 1, "name": "Scrum board", "type": "scrum", "location": {"projectName": "The Project", "projectKey": "PROJ"}}),
                json!({"id": 2, "name": "Flow", "type": "kanban"}),
            ];
            let kind = request.query.get("type");
            let of_kind = |board: &&Value| kind.is_none_or(|kind| board["type"] == **kind);
            let boards: Vec<Value> = boards.iter().filter(of_kind).cloned().collect();
            json!({"startAt": start, "maxResults": limit, "isLast": true, "values": part(&boards, start, limit)})
        }
        ["board", "1", "sprint"] => {
            let sprint = |id: u64, state: &str| json!({"id": id, "name": format!("Sprint {id}"), "state": state, "startDate": "2024-01-01T00:00:00.000Z"});
            let all = [sprint(6, "closed"), sprint(7, "active"), sprint(8, "active")];
            let all: Vec<Value> = all
                .iter()
                .filter(|sprint| state.is_none_or(|state| sprint["state"] == state))
                .cloned()
                .collect();
            let page = part(&all, start, limit);
            let is_last = start + page.len() as u64 >= all.len() as u64;
            json!({"startAt": start, "maxResults": limit, "isLast": is_last, "values": page})
        }
        ["sprint", "7", "issue"] => {
            let all: Vec<Value> = (1..=3).map(listed).collect();
            json!({"startAt": start, "maxResults": limit, "total": 3, "issues": part(&all, start, limit)})
        }
        ["sprint", "8", "issue"] => {
            json!({"startAt": 0, "maxResults": limit, "total": 0, "issues": []})
        }
        _ => return None,
    };
    Some(Answer::ok(&answer))
}
