//! A skill with tools of its own, in one file: what it tells a model, and the functions behind it.
//! `cargo run --example adding_a_skill`

use std::error::Error;
use std::sync::Arc;

use prowess::catalog::{Catalog, MemoryFile, MemorySource};
use prowess::format::ArgumentKind;
use prowess::runtime::{AgentName, Handlers, Parameter, Runtime, ToolCall, ToolOutcome};
use serde_json::{Value, json};

/// Step 1. The skill: level 1 is its description, level 2 its body, level 3 its resources. Each tool
/// names the function that carries it out.
const SKILL: &str = r#"---
name: my_skill
description: "Description shown in Level 1 metadata"
category: custom
version: "1.0.0"

tool_configs:
  - name: my_tool
    description: "Tool description"
    method: do_something
    args:
      - name: input
        type: string
        description: "Input parameter"
        required: true

resource_configs:
  - name: examples
    description: "Example usage"
    file: examples.md

  - name: dynamic_data
    description: "Dynamic data"
    dynamic: true
    method: get_dynamic_data
---

# My Custom Skill

## Core Purpose
What this skill does.

## Guidelines
- Guideline 1
- Guideline 2
"#;

/// Step 2. The functions. If one of them were missing, or took other arguments, the skill would not
/// be used, and `Runtime::quarantined` would say on which line.
fn my_skill() -> Handlers {
    let input = Parameter::required("input", ArgumentKind::String);
    Handlers::for_skill("my_skill")
        .opening(|_| async { ToolOutcome::text("## My Skill Activated") })
        .method("do_something", [input], |arguments: Value| async move {
            let input = arguments["input"].as_str().unwrap_or_default();
            ToolOutcome::text(format!("Processed: {input}"))
        })
        .method("get_dynamic_data", [], |_| async { ToolOutcome::text("as it is now") })
}

/// Step 3. An engine with both.
pub fn engine() -> Result<Runtime, Box<dyn Error>> {
    let source = MemorySource::new("mine").with_skill("my_skill", SKILL).with_file(
        "my_skill",
        "examples.md",
        MemoryFile::new("my_tool(input=\"hello\")"),
    );
    let catalog = Catalog::builder().source(source).build();
    Ok(Runtime::builder(catalog).toolkit(Arc::new(my_skill())).build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = engine()?;
    let calls = [
        ("my_tool", json!({"input": "too early"})),
        ("load_skill", json!({"skill": "my_skill"})),
        ("my_tool", json!({"input": "hello"})),
        ("load_skill_detail", json!({"skill": "my_skill", "resource": "examples"})),
        ("load_skill_detail", json!({"skill": "my_skill", "resource": "dynamic_data"})),
    ];
    for (at, (tool, arguments)) in calls.into_iter().enumerate() {
        println!("> {tool} {arguments}");
        let call = ToolCall::new(format!("call-{at}"), tool, arguments);
        let outcome = engine.dispatch(&"demo".parse()?, &AgentName::default(), call).await?;
        println!("{}\n", outcome.content);
    }
    Ok(())
}
