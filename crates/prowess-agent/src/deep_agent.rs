//! The standard stack.

use std::path::Path;
use std::sync::Arc;

use prowess_catalog::{Catalog, DirectorySource};

use crate::agent::{Agent, AgentBuilder};
use crate::hub::SameAgent;
use crate::model::ChatModel;
use crate::skills::SkillsMiddleware;
use crate::sub_agents::SubAgentMiddleware;
use crate::summarization::SummarizationMiddleware;
use crate::todos::TodoMiddleware;

/// An agent with the standard stack of middleware over these folders of skills, the last one with
/// the highest precedence: a list of what is to be done, sub-agents, summaries of conversations
/// that become too long, and skills, of which those that ask for an agent of their own get one like
/// this. More can be added before it is built.
///
/// ```no_run
/// # async fn example(model: std::sync::Arc<dyn prowess_agent::ChatModel>) -> Result<(), prowess_agent::AgentError> {
/// use prowess_agent::{Runner, create_deep_agent};
///
/// let agent = create_deep_agent(model, ["skills"]).system("You are a release manager.").build()?;
/// let outcome = Runner::new("notes", agent).run("alice", "s1", "What changed since 1.4?").await?;
/// println!("{}", outcome.text());
/// # Ok(()) }
/// ```
pub fn create_deep_agent<P: AsRef<Path>>(
    model: Arc<dyn ChatModel>,
    skills: impl IntoIterator<Item = P>,
) -> AgentBuilder {
    let mut catalog = Catalog::builder();
    for folder in skills {
        catalog = catalog.source(DirectorySource::new(folder.as_ref()));
    }
    Agent::builder(model)
        .middleware(TodoMiddleware::new())
        .middleware(SubAgentMiddleware::new())
        .middleware(SummarizationMiddleware::new())
        .middleware(SkillsMiddleware::new(catalog.build()).with_agents(SameAgent))
}
