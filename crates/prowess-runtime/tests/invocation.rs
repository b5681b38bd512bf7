//! What a tool of a toolkit may ask about skills.

mod support;

use std::sync::Arc;

use prowess_runtime::{Dialect, Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome};
use serde_json::json;
use support::Plan;

/// Says what it finds out about a skill.
struct Ask(ToolDeclaration);

impl Ask {
    fn tool() -> Arc<dyn Tool> {
        Arc::new(Self(ToolDeclaration::new("ask", "Asks.", json!({"type": "object"}))))
    }
}

impl Tool for Ask {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let name = invocation.call.arguments["skill"].as_str().unwrap_or_default();
            let answer = || {
                let loaded = match invocation.call.arguments["loaded"].as_bool() {
                    Some(false) => None,
                    _ => Some(invocation.loaded_skill(name)?),
                };
                let skill = invocation.skill(name)?;
                if invocation.call.arguments["wrong"].as_bool() == Some(true) {
                    return Err(invocation.invalid_arguments("it is wrong"));
                }
                let pinned = loaded.and_then(|it| it.tree_digest);
                let data =
                    json!({"name": invocation.name_of(skill), "is_pinned": pinned.is_some()});
                Ok(ToolOutcome::coded("no_words_for_this", data).with_data("more", 1).about(name))
            };
            answer().unwrap_or_else(|failure| failure)
        })
    }
}

fn plan() -> Plan {
    let manual =
        "---\nname: manual\ndescription: Does it.\ndisable-model-invocation: true\n---\nBody.\n";
    Plan::new()
        .skill("demo", "Body.\n")
        .file("manual/SKILL.md", manual)
        .change(|builder| builder.tool(Ask::tool()))
}

#[tokio::test]
async fn a_tool_learns_what_the_session_has_pinned() {
    let world = plan().build();
    world.load("demo").await;
    let outcome = world.call("ask", json!({"skill": "demo"})).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("no_words_for_this", false));
    // The dialect has no words for the code: the data is what is said.
    assert_eq!(outcome.content, r#"{"name":"demo","is_pinned":true,"more":1}"#);
}

#[tokio::test]
async fn a_skill_that_is_not_loaded_is_said_in_the_words_of_the_dialect() {
    let world = plan().build();
    let outcome = world.call("ask", json!({"skill": "demo"})).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("skill_not_loaded", true));
    assert!(outcome.content.starts_with("The 'ask' tool requires the 'demo' skill"));

    let world = plan().dialect(Dialect::named("trpc").unwrap()).build();
    let outcome = world.call("ask", json!({"skill": "demo"})).await;
    assert_eq!(outcome.code, "skill_not_loaded");
    assert_eq!(outcome.content, r#"ask requires skill_load first for "demo""#);
    let outcome = world.call("ask", json!({"skill": "dem"})).await;
    assert_eq!(
        (outcome.code.as_ref(), &*outcome.content),
        ("skill_not_found", "unknown skill: dem")
    );
}

#[tokio::test]
async fn a_skill_that_only_people_load_is_not_there_before_they_did() {
    let world = plan().build();
    let outcome = world.call("ask", json!({"skill": "manual", "loaded": false})).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("manual_only", true));
    let outcome = world.call("ask", json!({"skill": "demo", "loaded": false})).await;
    assert_eq!(outcome.content, r#"{"name":"demo","is_pinned":false,"more":1}"#);
}

#[tokio::test]
async fn wrong_arguments_are_said_with_the_name_of_the_tool() {
    let world = plan().build();
    let outcome = world.call("ask", json!({"skill": "demo", "loaded": false, "wrong": true})).await;
    assert_eq!(outcome.code, "invalid_arguments");
    assert_eq!(outcome.content, "Error: Invalid arguments for ask: it is wrong");
}
