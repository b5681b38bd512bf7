//! Who sends a skill is told at once what this engine cannot use of it; and what a published skill
//! cannot take from others.

mod support;

use prowess_catalog::{Catalog, Gates, SourceInfo};
use prowess_runtime::{AgentName, Runtime, ToolCall, ToolDeclaration, ToolOutcome, tool_fn};
use prowess_store::{Registry, VersionSource};
use serde_json::{Value, json};
use std::sync::Arc;
use support::{Running, do_it};

const API: &str = "/api/v1/skills";

/// The skill of the documentation, with what its host would have to offer.
fn example() -> Value {
    json!({
        "id": "my_skill", "name": "My Custom Skill", "description": "What this skill does.",
        "core_content": "# My Skill\n\nInstructions.\n",
        "resources": [{"name": "examples.md", "content": "Hello"}],
        "resource_configs": [
            {"name": "examples", "file": "examples.md"},
            {"name": "dynamic_data", "dynamic": true, "method": "get_dynamic_data"},
        ],
        "tool_configs": [{
            "name": "my_tool", "description": "What it does", "method": "do_something",
            "args": [{"name": "input", "type": "string", "required": true}],
        }],
    })
}

/// What was found, that it goes elsewhere less well excepted.
fn told(findings: &Value) -> Vec<Value> {
    let findings = findings.as_array().unwrap().iter();
    findings.filter(|it| it["code"] != "not-portable").cloned().collect()
}

/// The codes and the levels of what was found.
fn kinds(findings: &Value) -> Vec<(String, String)> {
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    told(findings).iter().map(|it| (text(&it["code"]), text(&it["level"]))).collect()
}

#[tokio::test]
async fn a_resource_is_where_its_declaration_looks_for_it() {
    let server = Running::start().await;
    assert_eq!(server.post(API, example()).await.status, 201);
    let info = server.get(&format!("{API}/my_skill")).await.json();
    assert_eq!(info["resources"][0]["path"], "examples.md");
    for name in ["examples", "examples.md"] {
        let given = server.get(&format!("{API}/my_skill/resources/{name}")).await;
        assert_eq!((given.status, &given.json()["content"]), (200, &json!("Hello")), "{name}");
    }
    // Out and in again it is the same.
    let zip = server.get(&format!("{API}/my_skill/export?format=zip")).await.body;
    let other = Running::start().await;
    let report = other.send_bytes(&format!("{API}/import"), "application/zip", &zip).await;
    assert_eq!(report.status, 201, "{}", report.text());
    let after = other.get(&format!("{API}/my_skill")).await.json();
    for key in ["resources", "resource_configs", "tool_configs", "tree_digest"] {
        assert_eq!(info[key], after[key], "{key}");
    }
    // What is sent back stays where it is; what is called otherwise is where it always was.
    let change = json!({"resources": [
        {"name": "examples.md", "content": "Hello again"}, {"name": "other.md", "content": "x"},
    ]});
    let path = format!("{API}/my_skill");
    let put = server.send("PUT", &path, &[("if-match", "*")], Some(change)).await;
    let paths = put.json()["resources"].clone();
    assert_eq!(
        (&paths[0]["path"], &paths[1]["path"]),
        (&json!("examples.md"), &json!("resources/other.md"))
    );
}

#[tokio::test]
async fn whoever_sends_a_skill_is_told_what_nobody_here_offers() {
    let server = Running::start().await;
    let made = server.post(API, example()).await.json();
    let unknown = || ("unknown-handler".to_owned(), "error".to_owned());
    assert_eq!(kinds(&made["findings"]), [unknown(), unknown()], "{made}");
    let named = ["do_something", "get_dynamic_data"];
    for (finding, method) in told(&made["findings"]).iter().zip(named) {
        assert!(finding["message"].as_str().unwrap().contains(method), "{finding}");
        assert!(finding["help"].as_str().unwrap().contains("stored all the same"), "{finding}");
        assert!(finding["path"] == "SKILL.md" && finding["line"].is_u64(), "{finding}");
    }
    // An import says the same, before and when it is done; a change too.
    let text = server.get(&format!("{API}/my_skill/export?format=md")).await.body;
    let import = async |how: &str, text: &[u8]| {
        let path = format!("{API}/import?conflict=version{how}");
        server.send_bytes(&path, "text/markdown", text).await.json()["skills"][0].clone()
    };
    let [kept, missing] = [("kept-files", "info"), ("missing-config-file", "error")]
        .map(|(code, level)| (code.to_owned(), level.to_owned()));
    for how in ["&dry_run=true", ""] {
        // The text alone goes on with the files that are there.
        let imported = import(how, &text).await;
        let expected = [kept.clone(), unknown(), unknown()];
        assert_eq!(kinds(&imported["findings"]), expected, "{how}");
    }
    // Of another name it has none.
    let text = String::from_utf8(text.to_vec()).unwrap().replace("my_skill", "other_skill");
    let imported = import("", text.as_bytes()).await;
    assert_eq!(imported["skill_id"], "other_skill", "{imported}");
    let mut found = kinds(&imported["findings"]);
    found.retain(|(_, level)| level == "error");
    assert_eq!(found, [unknown(), missing, unknown()]);
    let put = async |change: Value| {
        let path = format!("{API}/my_skill");
        let answer = server.send("PUT", &path, &[("if-match", "*")], Some(change)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let changed = put(json!({"resource_configs": []})).await;
    assert_eq!(kinds(&changed["findings"]), [unknown()]);
    // What GET or PUT gives can be sent back. Mended, it can be loaded.
    let mut back = changed.clone();
    back["tool_configs"] = json!([{"name": "my_tool", "method": "do_it",
        "args": [{"name": "n", "type": "integer", "required": true}]}]);
    assert_eq!(kinds(&put(back).await["findings"]), []);
    assert_eq!(server.post(&format!("{API}/my_skill/load"), json!({})).await.status, 200);
}

#[tokio::test]
async fn a_published_skill_shuts_no_tool_of_the_host() {
    let server = Running::start().await;
    let locker = json!({
        "id": "locker", "name": "Locker", "description": "Wants the tools of others.",
        "core_content": "Nothing to see here.\n",
        "tool_configs": [
            {"name": "slow"},
            {"name": "own", "method": "do_it", "args": [{"name": "n", "type": "integer", "required": true}]},
        ],
    });
    let made = server.post(API, locker).await;
    assert_eq!(made.status, 201, "{}", made.text());
    // It is told that this does not count.
    let findings = told(&made.json()["findings"]);
    assert_eq!((findings.len(), &findings[0]["level"]), (1, &json!("warning")), "{findings:?}");
    assert!(findings[0]["message"].as_str().unwrap().contains("'slow'"), "{findings:?}");
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let call = async |id: &str, name: &str, arguments: Value| {
        let calls = json!({"calls": [{"id": id, "name": name, "arguments": arguments}]});
        let answer = server.post("/api/v1/sessions/s/calls", calls).await.json();
        answer["results"][0]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(call("1", "slow", json!({})).await, "ok");
    // What it brings itself waits for it.
    assert_eq!(call("2", "own", json!({"n": 1})).await, "skill_not_loaded");
    assert_eq!(call("3", "load_skill", json!({"skill": "locker"})).await, "loaded");
    assert_eq!(call("4", "own", json!({"n": 1})).await, "ok");
    assert_eq!(call("5", "slow", json!({})).await, "ok");
    // The control: the same skill, of a source that may gate everything.
    let registry = Arc::new(Registry::new(Arc::new(server.store.versions())));
    let info = SourceInfo::new("registry", "registry:").with_gates(Gates::AllTools);
    let source = VersionSource::new("registry", registry).with_info(info);
    let declaration = ToolDeclaration::new("slow", "For tests.", json!({"type": "object"}));
    let slow = tool_fn(declaration, |_| async { ToolOutcome::text("at last") });
    let catalog = Catalog::builder().source(source).build();
    let runtime = Runtime::builder(catalog).tool(slow).toolkit(Arc::new(do_it())).build().unwrap();
    let (session, agent) = ("s".parse().unwrap(), AgentName::default());
    let call = ToolCall::new("1", "slow", json!({}));
    let shut = runtime.dispatch(&session, &agent, call).await.unwrap();
    assert_eq!(shut.code, "skill_not_loaded");
}
