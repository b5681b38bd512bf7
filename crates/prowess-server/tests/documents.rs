//! What is sent beside the address: documents that GET gave, names of whoever asks, options.

mod support;

use serde_json::{Value, json};
use support::Running;

const API: &str = "/api/v1/skills";

fn document(id: &str) -> Value {
    json!({
        "id": id, "name": "My Skill", "description": "Does something for tests.",
        "category": "custom", "core_content": "Do it, and do it well.\n", "author": "ann",
        "resources": [{"name": "examples", "description": "Some", "content": "# Examples\n"}],
        "scripts": [{"name": "run.py", "content": "print(1)\n"}],
        "tool_configs": [{"name": "do_it", "method": "do_it",
            "args": [{"name": "n", "type": "integer", "required": true}]}],
        "resource_configs": [
            {"name": "inline", "content": "inline text"},
            {"name": "schema", "dynamic": true, "method": "read_schema"},
        ],
        "mcp_tool_configs": [{"server": "files", "tools": ["read"]}],
    })
}

#[tokio::test]
async fn what_get_gives_is_changed_and_put_back_or_posted_elsewhere() {
    let server = Running::start().await;
    assert_eq!(server.post(API, document("a")).await.status, 201);
    let got = server.get("/api/v1/skills/a").await;
    let tag = got.header("etag").unwrap().to_owned();
    let mut changed = got.json();
    changed["core_content"] = json!("Do it better.\n");
    changed["version_number"] = json!(77);
    let put = async |path: &str, body: &Value| {
        server.send("PUT", path, &[("if-match", tag.as_str())], Some(body.clone())).await
    };
    let mut other = changed.clone();
    other["id"] = json!("b");
    let refused = put("/api/v1/skills/a", &other).await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["loc"], json!(["body", "id"]));
    let answer = put("/api/v1/skills/a", &changed).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let now = server.get("/api/v1/skills/a").await.json();
    assert_eq!(
        (&now["core_content"], &now["version_number"]),
        (&json!("Do it better.\n"), &json!(2))
    );
    let elsewhere = Running::start().await;
    let posted = elsewhere.post(API, now.clone()).await;
    assert_eq!(posted.status, 201, "{}", posted.text());
    assert_eq!((&posted.json()["id"], &posted.json()["version_number"]), (&json!("a"), &json!(1)));
    let copy = elsewhere.get("/api/v1/skills/a").await.json();
    for key in document("a").as_object().unwrap().keys() {
        assert_eq!(copy[key], now[key], "{key}");
    }
    // What nobody knows is refused as before.
    let mut wrong = now;
    wrong["revison"] = json!(1);
    let refused = elsewhere.post(API, wrong).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("revison"), "{}", refused.text());
}

#[tokio::test]
async fn a_resource_that_nobody_here_makes_is_another_thing_than_none() {
    let server = Running::start().await;
    server.post(API, document("a")).await;
    let dynamic = server.get("/api/v1/skills/a/resources/schema").await;
    assert_eq!((dynamic.status, dynamic.code().as_str()), (409, "skill_invalid"));
    assert!(
        dynamic.text().contains("'read_schema', which nobody here offers"),
        "{}",
        dynamic.text()
    );
    assert_eq!(server.get("/api/v1/skills/a/resources/nope").await.code(), "resource_not_found");
}

#[tokio::test]
async fn a_load_is_for_whom_the_address_or_the_body_says() {
    let server = Running::start().await;
    let mut usable = document("a");
    usable["resource_configs"] = json!([]);
    server.post(API, usable).await;
    let load = async |query: &str, body: Value| {
        server.post(&format!("/api/v1/skills/a/load{query}"), body).await.status
    };
    for (query, body) in [
        ("?session_id=s1&agent=one", json!({})),
        ("?session=s1&agent=one", json!({})),
        ("", json!({"session": "s1", "agent": "one"})),
        ("?session=other&agent=one", json!({"session_id": "s1"})),
    ] {
        assert_eq!(load(query, body.clone()).await, 200, "{query} {body}");
    }
    let metrics = server.get("/api/v1/skills/a/metrics").await.json();
    assert_eq!((&metrics["total_loads"], &metrics["unique_sessions"]), (&json!(4), &json!(1)));
    assert_eq!(metrics["by_agent"]["one"]["loads"], 4);
    for (query, body) in [
        ("", json!({"sesion_id": "s1"})),
        ("?session_id=", json!({"session_id": "s1"})),
        ("?session=", json!({})),
        ("?sesion_id=s1", json!({})),
    ] {
        assert_eq!(load(query, body.clone()).await, 422, "{query} {body}");
    }
    assert_eq!(server.get("/api/v1/skills/a/metrics").await.json()["total_loads"], 4);
}

#[tokio::test]
async fn parameters_that_nobody_knows_are_named_and_flags_have_any_case() {
    let server = Running::start().await;
    let refused = server.get("/api/v1/skills?categroy=x&limit=1").await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "invalid_request"));
    assert_eq!(refused.json()["details"][0]["loc"], json!(["query", "categroy"]));
    assert!(refused.text().contains("category"), "{}", refused.text());
    assert_eq!(server.get("/health?x=1").await.status, 200, "whoever watches asks as they like");
    for (flag, active) in [("False", Value::Null), ("TRUE", json!(1))] {
        let id = flag.to_lowercase();
        let made = server.post(&format!("{API}?activate={flag}"), document(&id)).await;
        assert_eq!(made.json()["active_version"], active, "{}", made.text());
    }
    assert_eq!(server.post(&format!("{API}?activate=yes"), document("x")).await.status, 422);
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    assert_eq!(server.get("/api/v1/sessions/s/events?follow=FALSE").await.status, 200);
}
