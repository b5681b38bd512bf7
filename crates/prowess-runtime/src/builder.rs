//! How an engine is put together.

use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwapOption;
use prowess_catalog::{Catalog, ContentStore};

use crate::event::EventSink;
use crate::gate::ToolTable;
use crate::interceptor::Interceptor;
use crate::prompt::TokenCounter;
use crate::runtime::{Inner, Runtime};
use crate::settings::Settings;
use crate::store::SessionStore;
use crate::texts::{Texts, TextsError};
use crate::tool::{Tool, Toolkit};
use crate::visibility::{Visibilities, VisibilityFilter};

/// Puts a [`Runtime`] together.
pub struct RuntimeBuilder {
    pub(crate) catalog: Catalog,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) content: Arc<dyn ContentStore>,
    pub(crate) tools: ToolTable,
    pub(crate) toolkits: Vec<Arc<dyn Toolkit>>,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) settings: Settings,
    pub(crate) filter: Option<Arc<dyn VisibilityFilter>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
}

impl RuntimeBuilder {
    /// Where sessions live. In memory unless said otherwise.
    pub fn sessions(mut self, sessions: Arc<dyn SessionStore>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Where content lives. In memory unless said otherwise.
    pub fn content(mut self, content: Arc<dyn ContentStore>) -> Self {
        self.content = content;
        self
    }

    /// Adds a tool of the host. It takes the place of a tool of the same name.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(tool, None);
        self
    }

    /// Adds a tool that can be called only while a skill is loaded.
    pub fn skill_tool(mut self, skill: impl Into<String>, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(tool, Some(skill.into()));
        self
    }

    /// Adds a set of tools.
    pub fn toolkit(mut self, toolkit: Arc<dyn Toolkit>) -> Self {
        for tool in toolkit.tools() {
            self.tools.insert(tool, None);
        }
        self.toolkits.push(toolkit);
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

    /// Other settings than the default ones.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
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

    /// The engine.
    pub fn build(self) -> Result<Runtime, TextsError> {
        let mut texts = Texts::prowess()?;
        if let Some(template) = &self.settings.listing.template {
            texts.set_listing(template)?;
        }
        let inner = Inner {
            catalog: self.catalog,
            shared: ArcSwapOption::empty(),
            scoped: Mutex::default(),
            visibilities: Visibilities {
                settings: self.settings.visibility.clone(),
                filter: self.filter,
            },
            counter: self.counter,
            sessions: self.sessions,
            content: self.content,
            tools: self.tools,
            toolkits: self.toolkits,
            interceptors: self.interceptors,
            sinks: self.sinks,
            settings: self.settings,
            texts,
            declarations: OnceLock::new(),
            guidance: OnceLock::new(),
        };
        Ok(Runtime { inner: Arc::new(inner) })
    }
}
