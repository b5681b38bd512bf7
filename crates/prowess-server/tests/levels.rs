//! Levels 2 and 3 of skills of which something is made when it is asked for, and of skills that the
//! engine cannot use.

mod support;

use prowess_runtime::estimate_tokens;
use serde_json::{Value, json};
use support::{Answer, Running};

const BODY: &str = "Look at what is above.\n";

fn document(id: &str) -> Value {
    json!({
        "id": id, "name": "Some Skill", "description": "Does something for tests.",
        "core_content": BODY,
        "resources": [{"name": "notes.md", "content": "Some notes."}],
        "resource_configs": [
            {"name": "rows", "dynamic": true, "method": "rows"},
            {"name": "notes", "file": "notes.md"},
        ],
    })
}

async fn create(server: &Running, id: &str) -> Answer {
    let made = server.post("/api/v1/skills", document(id)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    made
}

async fn load(server: &Running, id: &str) -> Answer {
    server.post(&format!("/api/v1/skills/{id}/load"), json!({"session_id": "s"})).await
}

async fn metrics(server: &Running, id: &str) -> Value {
    server.get(&format!("/api/v1/skills/{id}/metrics")).await.json()["totals"].clone()
}

/// A call in the session `s`.
async fn call(server: &Running, id: &str, name: &str, arguments: Value) -> String {
    let calls = json!({"calls": [{"id": id, "name": name, "arguments": arguments}]});
    let answer = server.post("/api/v1/sessions/s/calls", calls).await.json();
    assert_eq!(answer["results"][0]["is_error"], false, "{answer}");
    answer["results"][0]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn loading_gives_what_a_session_is_given_and_no_session_knows_of_it() {
    let server = Running::start().await;
    create(&server, "made").await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let in_session = call(&server, "1", "load_skill", json!({"skill": "made"})).await;
    let text = format!("## Made\n- Number: 1\n\n{BODY}");
    assert!(in_session.starts_with(&text), "{in_session}");
    let before = server.get("/api/v1/sessions/s").await.json();
    let counted = metrics(&server, "made").await;
    let loaded = load(&server, "made").await;
    assert_eq!(loaded.status, 200, "{}", loaded.text());
    // The same, made anew.
    let text = text.replace("Number: 1", "Number: 2");
    assert_eq!(loaded.json()["content"], text.as_str());
    assert_eq!(loaded.json()["tokens"], estimate_tokens(&text));
    assert_eq!(
        (&loaded.json()["name"], &loaded.json()["version_number"]),
        (&json!("Some Skill"), &json!(1))
    );
    assert_eq!(load(&server, "made").await.json()["content"], text.replace("2", "3"));
    // What was given is what is counted.
    let now = metrics(&server, "made").await;
    let more = |key: &str| now[key].as_u64().unwrap() - counted[key].as_u64().unwrap();
    assert_eq!(more("loads"), 2);
    assert_eq!(more("bytes_disclosed"), 2 * text.len() as u64);
    assert_eq!(more("tokens_disclosed"), 2 * estimate_tokens(&text) as u64);
    assert_eq!(server.get("/api/v1/sessions/s").await.json(), before);
    // The control: nothing is made for a skill of another name.
    let mut plain = document("plain");
    plain["resource_configs"] = json!([]);
    assert_eq!(server.post("/api/v1/skills", plain).await.status, 201);
    assert_eq!(load(&server, "plain").await.json()["content"], BODY);
}

#[tokio::test]
async fn a_resource_that_is_made_is_given_and_counted() {
    let server = Running::start().await;
    create(&server, "made").await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    call(&server, "1", "load_skill", json!({"skill": "made"})).await;
    for resource in ["rows", "notes"] {
        let arguments = json!({"skill": "made", "resource": resource});
        let in_session = call(&server, resource, "load_skill_detail", arguments).await;
        let before = metrics(&server, "made").await;
        let path = format!("/api/v1/skills/made/resources/{resource}");
        let given = server.get(&path).await;
        assert_eq!(given.status, 200, "{}", given.text());
        assert_eq!(given.json()["content"], in_session);
        let now = metrics(&server, "made").await;
        let more = |key: &str| now[key].as_u64().unwrap() - before[key].as_u64().unwrap();
        assert_eq!((more("details"), more("bytes_disclosed")), (1, in_session.len() as u64));
    }
    let rows = server.get("/api/v1/skills/made/resources/rows").await.json();
    assert_eq!((&rows["content"], &rows["path"]), (&json!("id | name\n1 | ann"), &Value::Null));
}

#[tokio::test]
async fn what_is_made_stands_above_the_active_version() {
    let server = Running::start().await;
    create(&server, "made").await;
    let change = json!({"core_content": "Another body for tests.\n"});
    let put = server.send("PUT", "/api/v1/skills/made", &[("if-match", "*")], Some(change)).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let text = load(&server, "made").await.json()["content"].clone();
    assert_eq!(text, "## Made\n- Number: 1\n\nAnother body for tests.\n");
    server.send("POST", "/api/v1/skills/made/versions/1/activate", &[], None).await;
    let back = load(&server, "made").await.json();
    assert_eq!(back["content"], format!("## Made\n- Number: 2\n\n{BODY}"));
    assert_eq!(back["version_number"], 1);
    let old = server.get("/api/v1/skills/made/resources/rows?version=2").await;
    assert_eq!((old.status, &old.json()["version_number"]), (200, &json!(2)));
}

#[tokio::test]
async fn a_skill_that_the_engine_cannot_use_is_not_served_as_if_it_could() {
    let server = Running::start().await;
    // Nobody offers `rows` to a skill of this name.
    create(&server, "broken").await;
    for answer in
        [load(&server, "broken").await, server.get("/api/v1/skills/broken/resources/rows").await]
    {
        assert_eq!((answer.status, answer.code().as_str()), (409, "skill_invalid"));
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("bound to 'rows', which nobody here offers"), "{detail}");
    }
    assert_eq!(metrics(&server, "broken").await["loads"], 0);
    // A session says the same, and whoever mends it can read it.
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let calls =
        json!({"calls": [{"id": "1", "name": "load_skill", "arguments": {"skill": "broken"}}]});
    let answer = server.post("/api/v1/sessions/s/calls", calls).await.json();
    assert_eq!(answer["results"][0]["code"], "skill_invalid", "{answer}");
    assert_eq!(server.get("/api/v1/skills/broken").await.json()["core_content"], BODY);
    assert_eq!(server.get("/api/v1/skills/broken/resources/notes").await.status, 200);
    let change = json!({"resource_configs": [{"name": "notes", "file": "notes.md"}]});
    server.send("PUT", "/api/v1/skills/broken", &[("if-match", "*")], Some(change)).await;
    assert_eq!(load(&server, "broken").await.json()["content"], BODY);
}

#[tokio::test]
async fn what_cannot_be_made_is_said_and_not_counted() {
    let server = Running::start().await;
    create(&server, "failing").await;
    for answer in
        [load(&server, "failing").await, server.get("/api/v1/skills/failing/resources/rows").await]
    {
        assert_eq!((answer.status, answer.code().as_str()), (502, "database_gone"));
        assert_eq!(answer.json()["detail"], "the database is gone");
    }
    let counted = metrics(&server, "failing").await;
    assert_eq!((&counted["loads"], &counted["details"]), (&json!(0), &json!(0)));
}
