//! An engine for somebody who may do less, or who brings tools of their own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwapOption;

use crate::bind::Bindings;
use crate::customise::Asked;
use crate::gate::ToolTable;
use crate::runtime::{Inner, Runtime};
use crate::tool::Tool;
use crate::visibility::Visibilities;

/// What is left of an engine for somebody who may do less. What is not said is left as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Narrowing {
    /// The tools of the host that are left. The load tools are never taken away.
    pub tools: Option<BTreeSet<String>>,
    /// The skills that are left.
    pub skills: Option<BTreeSet<String>>,
}

impl Narrowing {
    /// Everything is left.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these tools of the host.
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Only these skills.
    pub fn with_skills(mut self, skills: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.skills = Some(skills.into_iter().map(Into::into).collect());
        self
    }
}

impl Runtime {
    /// An engine with the same sessions, content, rules and listeners, and with fewer tools and
    /// skills: never with one that this engine does not have.
    pub fn narrowed(&self, narrowing: &Narrowing) -> Self {
        let inner = &*self.inner;
        let mut visibilities = inner.visibilities.clone();
        if let Some(skills) = &narrowing.skills {
            let is_left = |name: &&String| {
                visibilities.only.as_ref().is_none_or(|before| before.contains(*name))
            };
            let only = skills.iter().filter(is_left).cloned().collect();
            visibilities.only = Some(Arc::new(only));
        }
        let tools = match &narrowing.tools {
            Some(tools) => inner.tools.narrowed(tools),
            None => inner.tools.clone(),
        };
        self.with(tools, visibilities)
    }

    /// An engine with the same sessions, content, skills, rules and listeners, and with more tools
    /// of the host. They take the place of tools of the same name.
    pub fn with_tools(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = self.inner.tools.widened(tools);
        self.with(tools, self.inner.visibilities.clone())
    }

    fn with(&self, tools: ToolTable, visibilities: Visibilities) -> Self {
        let inner = &*self.inner;
        let changed = Inner {
            catalog: inner.catalog.clone(),
            shared: ArcSwapOption::empty(),
            scoped: Mutex::default(),
            visibilities,
            counter: Arc::clone(&inner.counter),
            sessions: Arc::clone(&inner.sessions),
            leased: inner.leased.clone(),
            in_flight: Arc::clone(&inner.in_flight),
            content: Arc::clone(&inner.content),
            tools,
            handlers: inner.handlers.clone(),
            bindings: Bindings::default(),
            interceptors: inner.interceptors.clone(),
            sinks: inner.sinks.clone(),
            settings: inner.settings.clone(),
            dialect: inner.dialect.clone(),
            customisation: inner.customisation.clone(),
            asked: Asked::default(),
            forker: inner.forker.clone(),
            commands: inner.commands.clone(),
            host_tools: OnceLock::new(),
            guidance: OnceLock::new(),
        };
        Self { inner: Arc::new(changed) }
    }
}
