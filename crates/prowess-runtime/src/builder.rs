//! How an engine is put together.

use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwapOption;
use prowess_catalog::{Catalog, ContentStore};

use crate::bind::Bindings;
use crate::command::CommandRunner;
use crate::customise::{Asked, Customisation};
use crate::dialect::{Dialect, DialectError};
use crate::event::EventSink;
use crate::exposure::Exposure;
use crate::fork::Forker;
use crate::gate::{Registered, ToolTable};
use crate::handlers::{HandlerTable, Handlers};
use crate::interceptor::Interceptor;
use crate::prompt::TokenCounter;
use crate::runtime::{Inner, Runtime};
use crate::settings::Settings;
use crate::store::{LeaseSettings, LeasedSessions, SessionStore};
use crate::tool::{Tool, Toolkit};
use crate::tools::LOAD;
use crate::visibility::{Visibilities, VisibilityFilter};

/// Puts a [`Runtime`] together.
pub struct RuntimeBuilder {
    pub(crate) catalog: Catalog,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) leases: Option<LeaseSettings>,
    pub(crate) content: Arc<dyn ContentStore>,
    pub(crate) tools: Vec<Registered>,
    pub(crate) handlers: Vec<Handlers>,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) settings: Option<Settings>,
    pub(crate) filter: Option<Arc<dyn VisibilityFilter>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) customisation: Customisation,
    pub(crate) forker: Option<Arc<dyn Forker>>,
    pub(crate) commands: Option<Arc<dyn CommandRunner>>,
}

impl RuntimeBuilder {
    /// Other skills.
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Where sessions live. In memory unless said otherwise.
    pub fn sessions(mut self, sessions: Arc<dyn SessionStore>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sessions are shared with other engines: they are taken before they are changed, so that one
    /// engine works on a session at a time. Unless this is said, nobody is waited for.
    pub fn leases(mut self, leases: LeaseSettings) -> Self {
        self.leases = Some(leases);
        self
    }

    /// Where content lives. In memory unless said otherwise.
    pub fn content(mut self, content: Arc<dyn ContentStore>) -> Self {
        self.content = content;
        self
    }

    /// Adds a tool of the host. It takes the place of a tool of the same name.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(Registered::host(tool));
        self
    }

    /// Adds a tool that can be called only while a skill is loaded.
    pub fn skill_tool(mut self, skill: impl Into<String>, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(Registered::tied(tool, skill.into()));
        self
    }

    /// Adds a set of tools, and what skills can bind theirs to.
    #[expect(clippy::needless_pass_by_value, reason = "given as everything else is")]
    pub fn toolkit(mut self, toolkit: Arc<dyn Toolkit>) -> Self {
        self.tools.extend(toolkit.tools().into_iter().map(Registered::host));
        self.handlers.extend(toolkit.handlers());
        self
    }

    /// Adds an interceptor inside those that are there.
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    /// Adds somebody who sees all events.
    pub fn sink(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Speaks to the model in another dialect, with the settings that fit it unless others are
    /// set.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Other settings than those of the dialect.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Decides for users, sessions and agents which skills they see.
    pub fn visibility(mut self, filter: Arc<dyn VisibilityFilter>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Counts tokens. Estimated unless said otherwise.
    pub fn token_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// Puts other words in the place of ours.
    pub fn customise(mut self, customisation: Customisation) -> Self {
        self.customisation = customisation;
        self
    }

    /// Runs skills in sub-agents that ask for one. Without it they cannot be loaded by a model.
    pub fn forker(mut self, forker: Arc<dyn Forker>) -> Self {
        self.forker = Some(forker);
        self
    }

    /// Runs commands in the text of skills, where the settings say so.
    pub fn commands(mut self, runner: Arc<dyn CommandRunner>) -> Self {
        self.commands = Some(runner);
        self
    }

    /// The engine.
    pub fn build(self) -> Result<Runtime, DialectError> {
        let mut dialect = match self.dialect {
            Some(dialect) => dialect,
            None => Dialect::built_in()?,
        };
        let settings = self.settings.unwrap_or_else(|| dialect.settings().clone());
        if let Some(name) = &self.customisation.skill_tool_name {
            dialect.rename_tool(LOAD, name)?;
        }
        if let Some(template) = &settings.listing.template {
            dialect.set_listing(template)?;
        }
        let has_generic = settings.exposure == Exposure::Generic;
        let tools = ToolTable::new(&dialect, has_generic, self.tools);
        let leased =
            self.leases.map(|settings| LeasedSessions::new(Arc::clone(&self.sessions), settings));
        let sessions = match &leased {
            Some(leased) => Arc::clone(leased) as Arc<dyn SessionStore>,
            None => self.sessions,
        };
        let inner = Inner {
            catalog: self.catalog,
            shared: ArcSwapOption::empty(),
            scoped: Mutex::default(),
            visibilities: Visibilities {
                settings: settings.visibility.clone(),
                filter: self.filter,
                only: None,
            },
            counter: self.counter,
            sessions,
            leased,
            in_flight: Arc::default(),
            content: self.content,
            tools,
            handlers: HandlerTable::new(self.handlers),
            bindings: Bindings::default(),
            interceptors: self.interceptors,
            sinks: self.sinks,
            settings,
            dialect,
            customisation: self.customisation,
            asked: Asked::default(),
            forker: self.forker,
            commands: self.commands,
            host_tools: OnceLock::new(),
            guidance: OnceLock::new(),
        };
        Ok(Runtime { inner: Arc::new(inner) })
    }
}
