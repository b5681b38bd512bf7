//! What the tools cost in every request.

use std::sync::Arc;

use anyhow::{Result, ensure};
use prowess_catalog::{Catalog, MemorySource};
use prowess_runtime::{AgentName, PromptRequest, Runtime, SessionKey, Toolkit};
use prowess_toolkits::{ExecToolkit, FilesToolkit};
use prowess_workspace::LocalExecutor;

use super::Ground;
use crate::results::Row;

/// The most tokens that all tools and what is said about them may take.
const MOST: f64 = 1400.0;

pub(super) fn rows(ground: &Ground) -> Result<Vec<Row>> {
    let executor = Arc::new(LocalExecutor::builder().build());
    let exec = Arc::new(ExecToolkit::new(ground.workspaces.clone(), executor));
    let files = Arc::new(FilesToolkit::new(ground.workspaces.clone()));
    let counted = |toolkits: Vec<Arc<dyn Toolkit>>| ground.tokio.block_on(count(toolkits));
    let detail = |(tools, guidance): (usize, usize)| format!("{tools} + {guidance} tokens");
    let ratio = |(tools, guidance): (usize, usize)| (tools + guidance) as f64 / MOST;
    let (run, all) = (counted(vec![exec.clone()])?, counted(vec![exec, files])?);
    let what = "tools and guidance, load and exec, to 1,400 tokens";
    let more = "tools and guidance, load, exec and files, to 1,400 tokens";
    Ok(vec![
        Row::at_most(what, ratio(run), 1.0, &detail(run)),
        Row::bound(more, ratio(all), &detail(all)),
    ])
}

/// The tokens of the tools, and of what is said about them.
async fn count(toolkits: Vec<Arc<dyn Toolkit>>) -> Result<(usize, usize)> {
    let source = MemorySource::new("bench")
        .with_skill("job", "---\nname: job\ndescription: D.\n---\nBody\n");
    let catalog = Catalog::builder().source(source).build();
    catalog.refresh().await;
    let mut builder = Runtime::builder(catalog);
    for toolkit in toolkits {
        builder = builder.toolkit(toolkit);
    }
    let runtime = builder.build()?;
    let (session, agent) = (SessionKey::new("bench", "tokens", "1")?, AgentName::default());
    let prompt = runtime.prompt(&session, &agent, PromptRequest::new()).await?;
    let listing = runtime.listing(&session, &agent).await?.text;
    let mut tools = prompt.tools.to_vec();
    ensure!(tools.iter().any(|tool| tool.name == "skill_run"), "skill_run is not there");
    for tool in &mut tools {
        tool.description = tool.description.replacen(&listing, "", 1);
    }
    let tokens = |text: &str| tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len();
    let guidance = prompt.system.replacen(&listing, "", 1);
    Ok((tokens(&serde_json::to_string(&tools)?), tokens(&guidance)))
}
