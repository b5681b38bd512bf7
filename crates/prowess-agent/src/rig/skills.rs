//! Skills for an agent of rig.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use prowess_runtime::{AgentName, Runtime, SessionKey, Tool};
use rig_agent::Agent;
use rig_agent::tool::{RegisteredTool, ToolSet};
use rig_core::effect::EffectId;

use super::session::RigSession;
use super::tools::{ServedTool, Ticket, registered_tool};

/// Skills for an agent of rig. The agent stays what it is, with its model, preamble, memory and
/// hooks; it gets the tools of an engine, and runs get a session of that engine.
///
/// Every tool call of such a run takes the way of the dispatcher, for the tools that the agent had
/// before too: gate, policy, interceptors, events.
///
/// ```
/// use prowess_agent::rig::RigSkills;
/// use prowess_catalog::{Catalog, MemorySource};
/// use prowess_runtime::Runtime;
/// use rig_agent::AgentBuilder;
/// use rig_core::test_utils::{MockCompletionModel, MockTurn};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let model = MockCompletionModel::from_turns([
/// #     MockTurn::tool_call("1", "load_skill", json!({"skill": "greet"})),
/// #     MockTurn::text("Good day."),
/// # ]);
/// # let requests = model.clone();
/// // What you have: an agent of rig, here with a model that plays a script.
/// let agent = AgentBuilder::new(model).preamble("You are a clerk.").default_max_turns(8).build();
///
/// // What you add: skills, and a session for each run.
/// let text = "---\nname: greet\ndescription: Greets people.\n---\nSay: good day.\n";
/// let source = MemorySource::new("built-in").with_skill("greet", text);
/// let runtime = Runtime::builder(Catalog::builder().source(source).build()).build()?;
/// let skills = RigSkills::attach(&runtime, &agent)?;
/// let answer = agent
///     .prompt("Hello!")
///     .add_hook(skills.session("shop/alice/1".parse()?))
///     .run()
///     .await?;
/// assert_eq!(answer.output(), "Good day.");
/// # let told = requests.requests()[0].system_instructions().unwrap_or_default().to_owned();
/// # assert!(told.starts_with("You are a clerk.") && told.contains("- greet: Greets people."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct RigSkills {
    shared: Arc<Shared>,
}

/// What tools and hooks know of each other.
pub(super) struct Shared {
    pub(super) runtime: Runtime,
    /// The tools that take the way of the dispatcher.
    pub(super) names: BTreeSet<String>,
    calls: Mutex<HashMap<EffectId, Ticket>>,
}

/// Why skills cannot be attached to an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RigSkillsError {
    /// The agent has a tool that is called like one of the engine.
    #[error(
        "the agent and the engine both have a tool '{name}'; rename one, or attach skills once only"
    )]
    SameName {
        /// What both are called.
        name: String,
    },
    /// rig does not take a tool of the engine.
    #[error("rig does not take the tool '{name}': {cause}")]
    Refused {
        /// Which.
        name: String,
        /// What it says.
        cause: String,
    },
}

impl RigSkillsError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SameName { .. } => "same_tool_name",
            Self::Refused { .. } => "tool_refused",
        }
    }
}

impl RigSkills {
    /// Gives an agent the tools of an engine, once. The agent's own tools become tools of the host
    /// in an engine of the same sessions, so that skills can bring or forbid them; what is added
    /// to the agent later is refused in runs that have a session. The tools must not be shared
    /// with agents that have other skills or none.
    pub fn attach(runtime: &Runtime, agent: &Agent) -> Result<Self, RigSkillsError> {
        let handle = agent.tool_server_handle();
        let own = handle.toolset();
        let brought = runtime.tools();
        if let Some(same) = brought.iter().find(|tool| own.contains(&tool.name)) {
            return Err(RigSkillsError::SameName { name: same.name.clone() });
        }
        let hosts: Vec<Arc<dyn Tool>> =
            own.iter().filter_map(|(_, tool)| registered_tool(tool)).collect();
        let runtime = runtime.with_tools(hosts);
        let declarations = runtime.tools();
        let names = declarations.iter().map(|tool| tool.name.clone()).collect();
        let shared = Arc::new(Shared { runtime, names, calls: Mutex::default() });
        let exposed: BTreeSet<&str> = own.always_exposed_names().collect();
        let (mut always, mut retrieved) = (ToolSet::default(), ToolSet::default());
        for declaration in declarations {
            let name = declaration.name.clone();
            let before = own.get(&name).cloned();
            let is_retrieved = before.is_some() && !exposed.contains(name.as_str());
            let served = ServedTool { declaration, shared: Arc::clone(&shared), own: before };
            let tool = RegisteredTool::from_handler(served).map_err(|report| {
                RigSkillsError::Refused { name, cause: report.message.clone() }
            })?;
            let tools = if is_retrieved { &mut retrieved } else { &mut always };
            tools.add_registered_tool(tool);
        }
        always.add_retrievable_tools(retrieved);
        handle.add_tools(always);
        Ok(Self { shared })
    }

    /// The engine, with the agent's own tools among those of the host.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// A session, as a hook of rig: for one run (`agent.prompt(…).add_hook(…)`), or for all runs of
    /// an agent (`AgentBuilder::add_hook`).
    pub fn session(&self, session: SessionKey) -> RigSession {
        RigSession::new(Arc::clone(&self.shared), session)
    }
}

impl Shared {
    /// A call is about to be served; says whether it can be told from all others.
    pub(super) fn issue(&self, id: EffectId, ticket: Ticket) -> bool {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.entry(id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(ticket);
                true
            }
        }
    }

    /// A call is over; whoever was denied has not used its ticket.
    pub(super) fn withdraw(&self, id: EffectId, session: &SessionKey, agent: &AgentName) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.get(&id).is_some_and(|it| it.session == *session && it.agent == *agent) {
            calls.remove(&id);
        }
    }

    /// Whose call it is, once.
    pub(super) fn take(&self, id: EffectId) -> Option<Ticket> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("runtime", &self.runtime)
            .field("tools", &self.names)
            .finish_non_exhaustive()
    }
}
