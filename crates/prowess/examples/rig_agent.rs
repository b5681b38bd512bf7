//! An agent of rig that somebody has already gets skills.
//! `cargo run -p prowess --features rig --example rig_agent [FOLDER]`

use prowess::agent::rig::RigSkills;
use prowess::catalog::{Catalog, DirectorySource};
use prowess::runtime::Runtime;
use rig_agent::AgentBuilder;
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "examples/skills".to_owned());

    // 1. The agent as it is; a scripted model stands in for a real one.
    let model = MockCompletionModel::from_turns([
        MockTurn::tool_call("1", "load_skill", json!({"skill": "release-notes"})),
        MockTurn::text("I have read how release notes are written here."),
    ]);
    let agent = AgentBuilder::new(model.clone())
        .preamble("You are a release manager.")
        .default_max_turns(8)
        .build();

    // 2. The skills, once.
    let catalog = Catalog::builder().source(DirectorySource::new(&folder)).build();
    let skills = RigSkills::attach(&Runtime::builder(catalog).build()?, &agent)?;

    // 3. A session for each run.
    let session = skills.session("notes/alice/1".parse()?);
    let answer = agent.prompt("Write release notes.").add_hook(session).run().await?;

    for request in model.requests() {
        let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        println!("{} messages, tools: {}", request.chat_history.len(), tools.join(", "));
    }
    println!("{}", answer.output());
    Ok(())
}
