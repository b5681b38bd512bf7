//! The example of Eino's skill middleware, here: a backend, the middleware, an agent with it among
//! its handlers. `cargo run --example skill_handler [FOLDER]`

use std::sync::Arc;

use prowess::agent::{
    Agent, ChatModel, Reply, RunRequest, SameAgent, ScriptedModel, SkillsMiddleware,
};
use prowess::catalog::{Catalog, DirectorySource};
use prowess::runtime::{Dialect, Message, ToolCall};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "examples/skills".to_owned());

    // 1. The backend: folders, memory, or a `Source` of your own.
    let catalog = Catalog::builder().source(DirectorySource::new(&folder)).build();

    // 2. The middleware, in Eino's words; the hubs are for skills that ask for an agent of their
    // own, or for a model.
    let models = |_: &str| None::<Arc<dyn ChatModel>>;
    let handler = SkillsMiddleware::new(catalog)
        .with_dialect(Dialect::named("eino")?)
        .with_agents(SameAgent)
        .with_models(models);

    // 3. The agent; a scripted model stands in for a real one.
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([ToolCall::new("1", "skill", json!({"skill": "release-notes"}))]),
        Reply::text("I have read how release notes are written here."),
    ]));
    let agent = Agent::builder(model.clone()).middleware(handler).build()?;
    let outcome = agent.run(RunRequest::new("demo".parse()?, "Write release notes.")).await?;

    let requests = model.requests();
    for result in requests[1].messages.iter().flat_map(Message::tool_results) {
        println!("{}\n", result.content);
    }
    println!("{}", outcome.text());
    Ok(())
}
