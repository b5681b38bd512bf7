//! Skills that wait for a publisher: those who make versions see them, others do not.

mod support;

use prowess_store::Role;
use serde_json::{Value, json};
use support::{Answer, Running};

const API: &str = "/api/v1/skills";

fn document() -> Value {
    json!({
        "id": "a", "name": "A", "description": "Does something for tests.",
        "core_content": "Do it, and do it well.\n",
        "resources": [{"name": "examples", "content": "# Examples\n"}],
    })
}

#[tokio::test]
async fn whoever_made_a_skill_finds_it_where_the_answer_says() {
    let server = Running::start().await;
    let mut keys = Vec::new();
    for role in Role::ALL {
        keys.push((role, server.key(role.as_str(), role).await));
    }
    let send = async |role: Role, method: &str, path: &str, body: Option<Value>| -> Answer {
        let key = &keys.iter().find(|it| it.0 == role).unwrap().1;
        server.send(method, path, &[("x-api-key", key), ("if-match", "*")], body).await
    };
    let made = send(Role::Editor, "POST", API, Some(document())).await;
    assert_eq!((made.status, made.header("location")), (201, Some("/api/v1/skills/a")));
    let got = send(Role::Editor, "GET", "/api/v1/skills/a", None).await;
    assert_eq!((got.status, got.header("etag")), (200, made.header("etag")), "{}", got.text());
    assert_eq!(got.json()["active_version"], Value::Null);
    assert_eq!(got.json()["core_content"], "Do it, and do it well.\n");
    let known = [("x-api-key", keys[1].1.as_str()), ("if-none-match", got.header("etag").unwrap())];
    assert_eq!(server.send("GET", "/api/v1/skills/a", &known, None).await.status, 304);
    // What it says can be changed by its tag.
    let if_match = [("x-api-key", keys[1].1.as_str()), ("if-match", got.header("etag").unwrap())];
    let change = Some(json!({"category": "other"}));
    assert_eq!(server.send("PUT", "/api/v1/skills/a", &if_match, change).await.status, 200);
    let places = [
        "/a",
        "/a/export",
        "/a/export?version=1",
        "/a/resources",
        "/a/resources/examples",
        "/a/versions",
        "/a/versions/1",
        "/a/diff?from=1&to=2",
        "/a/metrics",
    ];
    for role in Role::ALL {
        let expected = if role == Role::Viewer { 404 } else { 200 };
        for place in places {
            let answer = send(role, "GET", &format!("{API}{place}"), None).await;
            assert_eq!(answer.status, expected, "{role} {place}: {}", answer.text());
        }
        // Nobody uses it, and no list shows it.
        assert_eq!(send(role, "POST", "/api/v1/skills/a/load", None).await.status, 404);
        assert_eq!(send(role, "GET", API, None).await.json()["total"], 0);
    }
    let newest = send(Role::Editor, "GET", "/api/v1/skills/a", None).await.json();
    assert_eq!((&newest["version_number"], &newest["category"]), (&json!(2), &json!("other")));
    let path = "/api/v1/skills/a/versions/2/activate";
    assert_eq!(send(Role::Publisher, "POST", path, None).await.status, 200);
    for place in places {
        let answer = send(Role::Viewer, "GET", &format!("{API}{place}"), None).await;
        assert_eq!(answer.status, 200, "{place}: {}", answer.text());
    }
}
