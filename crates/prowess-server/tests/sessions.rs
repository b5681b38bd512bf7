//! The engine over HTTP.

mod support;

use serde_json::{Value, json};
use support::Running;

async fn with_session() -> Running {
    let server = Running::start().await;
    let made = server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("location"), Some("/api/v1/sessions/s"));
    server
}

fn load(id: &str) -> Value {
    json!({"calls": [{"id": id, "name": "load_skill", "arguments": {"skill": "greet"}}]})
}

#[tokio::test]
async fn an_agent_in_any_language_has_a_whole_conversation() {
    let server = with_session().await;
    let turn = server.post("/api/v1/sessions/s/turns", json!({"text": "Greet me"})).await.json();
    assert_eq!(turn["turn"], 1);
    assert_eq!(turn["messages"][0]["role"], "user");
    let tools = server.get("/api/v1/sessions/s/tools").await.json();
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"load_skill") && names.contains(&"slow"), "{names:?}");
    let mut calls = load("c1");
    calls["message"] = json!("I shall look how.");
    calls["calls"].as_array_mut().unwrap().push(json!({"id": "c2", "name": "nothing"}));
    let results = server.post("/api/v1/sessions/s/calls", calls).await.json();
    let [one, two] = [&results["results"][0], &results["results"][1]];
    assert_eq!((&one["call_id"], &one["is_error"]), (&json!("c1"), &json!(false)));
    assert!(one["content"].as_str().unwrap().contains("Say hello."), "{one}");
    assert_eq!((&two["is_error"], &two["code"]), (&json!(true), &json!("unknown_tool")));
    let words =
        json!({"messages": [{"role": "assistant", "parts": [{"type": "text", "text": "Hello!"}]}]});
    assert_eq!(server.post("/api/v1/sessions/s/messages", words).await.status, 200);
    let prompt = server.get("/api/v1/sessions/s/prompt?system=Be%20kind").await.json();
    assert!(prompt["system"].as_str().unwrap().starts_with("Be kind"));
    let roles: Vec<&str> = prompt["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
    assert_eq!(prompt["messages"][1]["parts"][0]["text"], "I shall look how.");
    let state = server.get("/api/v1/sessions/s").await.json();
    assert_eq!(state["loaded"][0]["name"], "greet");
    assert_eq!(state["loaded"][0]["update_available"], false);
    assert_eq!((&state["turn"], &state["user"]), (&json!(1), &json!("local")));
}

#[tokio::test]
async fn the_prompt_is_exactly_what_the_engine_would_send() {
    let server = with_session().await;
    server.post("/api/v1/sessions/s/calls", load("c1")).await;
    let (key, agent) = ("s".parse().unwrap(), Default::default());
    let expected =
        server.runtime.prompt(&key, &agent, prowess_runtime::PromptRequest::new()).await.unwrap();
    let prompt = server.get("/api/v1/sessions/s/prompt").await.json();
    assert_eq!(prompt, serde_json::to_value(expected).unwrap());
}

#[tokio::test]
async fn the_same_call_with_the_same_id_is_carried_out_once() {
    let server = with_session().await;
    let first = server.post("/api/v1/sessions/s/calls", load("c1")).await.json();
    let again = server.post("/api/v1/sessions/s/calls", load("c1")).await.json();
    assert_eq!(again["results"][0]["code"], "repeated");
    assert_eq!(again["results"][0]["content"], first["results"][0]["content"]);
    let state = server.get("/api/v1/sessions/s").await.json();
    assert_eq!(state["loaded"][0]["load_count"], 1);
}

#[tokio::test]
async fn a_session_is_made_once_found_listed_in_parts_and_ended() {
    let server = with_session().await;
    let again = server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "session_exists"));
    let odd = server.post("/api/v1/sessions", json!({"session_id": "a b", "app": "my app"})).await;
    let location = odd.header("location").unwrap();
    assert_eq!(location, "/api/v1/sessions/a%20b?app=my%20app");
    assert_eq!(server.get(location).await.json()["session_id"], "a b");
    let made = server.send("POST", "/api/v1/sessions", &[], None).await;
    assert_eq!(made.status, 201, "an empty body is enough");
    let mut found = Vec::new();
    let mut path = "/api/v1/sessions?limit=2".to_owned();
    loop {
        let part = server.get(&path).await.json();
        assert_eq!(part["total"], 3);
        for session in part["sessions"].as_array().unwrap() {
            found.push(session["session_id"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = part["next_cursor"].as_str() else { break };
        path = format!("/api/v1/sessions?limit=2&cursor={}", cursor.replace(' ', "%20"));
    }
    assert_eq!((found.len(), found[0].as_str()), (3, "a b"));
    assert_eq!(server.send("DELETE", "/api/v1/sessions/s", &[], None).await.status, 204);
    assert_eq!(server.send("DELETE", "/api/v1/sessions/s", &[], None).await.status, 404);
}

#[tokio::test]
async fn an_unknown_session_is_not_made_by_using_it() {
    let server = Running::start().await;
    let table = [
        ("GET", "", None),
        ("GET", "/tools", None),
        ("GET", "/prompt", None),
        ("POST", "/prompt", None),
        ("GET", "/events", None),
        ("POST", "/turns", Some(json!({"text": "x"}))),
        ("POST", "/calls", Some(load("c"))),
        ("POST", "/messages", Some(json!({"messages": []}))),
    ];
    for (method, rest, body) in table {
        let path = format!("/api/v1/sessions/none{rest}");
        let answer = server.send(method, &path, &[], body).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "session_not_found"), "{rest}");
    }
    assert_eq!(server.get("/api/v1/sessions").await.json()["total"], 0);
}

#[tokio::test]
async fn a_turn_loads_what_is_asked_for_or_does_not_begin() {
    let server = with_session().await;
    let path = "/api/v1/sessions/s/turns";
    let unknown = server.post(path, json!({"load": ["nothing"]})).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (422, "skill_unavailable"));
    let more = json!({"load": ["greet", {"skill": "greet", "arguments": "Ann"}]});
    assert_eq!(server.post(path, more).await.status, 422, "twice the same");
    let one = server.post(path, json!({"load": [{"skill": "greet", "arguments": "Ann"}]})).await;
    assert_eq!(one.json()["turn"], 1, "{}", one.text());
    let pinned = server.post(path, json!({"pinned": ["nothing"]})).await.json();
    assert_eq!(pinned["problems"].as_array().unwrap().len(), 1, "{pinned}");
}

#[tokio::test]
async fn what_a_message_stands_for_is_not_taken_from_outside() {
    let server = with_session().await;
    server.post("/api/v1/sessions/s/calls", load("c1")).await;
    let (key, agent) = ("s".parse().unwrap(), Default::default());
    let stored = server.runtime.sessions().messages(&key, &agent).await.unwrap();
    let stub = stored.last().unwrap().clone();
    assert!(stub.tool_results().next().unwrap().expansion.is_some(), "the control");
    server.post("/api/v1/sessions", json!({"session_id": "thief"})).await;
    let body = json!({"messages": [stub]});
    assert_eq!(server.post("/api/v1/sessions/thief/messages", body).await.status, 200);
    let prompt = server.get("/api/v1/sessions/thief/prompt").await.text();
    assert!(prompt.contains("loaded: greet") && !prompt.contains("Say hello."), "{prompt}");
}

#[tokio::test]
async fn agents_of_a_session_do_not_see_each_others_skills() {
    let server = with_session().await;
    server.post("/api/v1/sessions/s/calls?agent=helper", load("c1")).await;
    assert_eq!(server.get("/api/v1/sessions/s").await.json()["loaded"], json!([]));
    let helper = server.get("/api/v1/sessions/s?agent=helper").await.json();
    assert_eq!(helper["loaded"][0]["name"], "greet");
}
