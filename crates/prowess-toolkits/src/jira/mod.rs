//! Jira: issues, sprints, boards and what happened to them. It is read, and never changed.

mod access;
mod adf;
mod arguments;
mod client;
mod credentials;
mod endpoint;
mod error;
mod fields;
mod history;
mod http;
mod issues;
mod json;
mod key;
mod listed;
mod oauth;
mod opening;
mod page;
mod places;
mod retry;
mod secrets;
mod settings;
mod text;

use std::sync::Arc;

use prowess_format::ArgumentKind;
use prowess_runtime::{Handler, Handlers, Invocation, Parameter, ToolFuture, ToolOutcome, Toolkit};
use serde_json::Value;

pub use access::JiraAccess;
use arguments::Arguments;
use client::Client;
use error::JiraError;
pub use settings::{InvalidJiraSettings, JiraSettings};

/// What the tools of the skill `jira` are bound to. Requests that change something cannot be made
/// with it.
///
/// ```
/// use prowess_toolkits::{JiraSettings, JiraToolkit};
///
/// let jira = JiraToolkit::from_environment(JiraSettings::default())?;
/// # let _ = jira;
/// # Ok::<(), prowess_toolkits::InvalidJiraSettings>(())
/// ```
#[derive(Clone)]
pub struct JiraToolkit {
    client: Client,
}

impl JiraToolkit {
    /// Asks this Jira.
    pub fn new(settings: JiraSettings, access: JiraAccess) -> Self {
        Self { client: Client::new(settings, access) }
    }

    /// Asks the Jira that the variables of this process name. Without any, every tool says what is
    /// missing; variables that contradict each other are an error.
    pub fn from_environment(settings: JiraSettings) -> Result<Self, InvalidJiraSettings> {
        let access = JiraAccess::from_environment(&settings)?;
        Ok(Self::new(settings, access))
    }

    /// Asks no Jira: every tool, and the skill when it is loaded, says why.
    ///
    /// ```
    /// use prowess_toolkits::{JiraAccess, JiraSettings, JiraToolkit};
    ///
    /// // This may be meant for another program.
    /// let variables = |name: &str| (name == "JIRA_API_TOKEN").then(|| "NjM4NTk".to_owned());
    /// let settings = JiraSettings::default();
    /// let jira = match JiraAccess::from_variables(&settings, variables) {
    ///     Ok(access) => JiraToolkit::new(settings, access),
    ///     Err(why) => JiraToolkit::unconfigured(settings, &why),
    /// };
    /// # let _ = jira;
    /// ```
    pub fn unconfigured(settings: JiraSettings, why: &InvalidJiraSettings) -> Self {
        Self::new(settings, JiraAccess::unusable(why))
    }

    /// Does what a tool of the skill is bound to, without an engine: `search_issues`, `get_issue`,
    /// `list_projects`, `get_sprints`, `get_sprint_issues`, `get_changelog`, `get_comments`,
    /// `get_worklogs`, `get_boards`. Another method is the error `unknown_method`.
    pub async fn call(&self, method: &str, arguments: &Value) -> ToolOutcome {
        match METHODS.iter().find(|known| known.name == method) {
            Some(known) => self.run(known.what, arguments).await,
            None => {
                let names: Vec<&str> = METHODS.iter().map(|known| known.name).collect();
                ToolOutcome::error("unknown_method", "Jira has no such method")
                    .with_hint(format!("There are {}.", names.join(", ")))
            }
        }
    }

    /// What stands above the text of the skill when it is loaded: whether Jira is configured and
    /// can be reached, and its projects. It is never an error.
    pub async fn opening(&self) -> ToolOutcome {
        self.client.opening().await
    }

    async fn run(&self, what: What, arguments: &Value) -> ToolOutcome {
        let client = &self.client;
        let arguments = Arguments { values: arguments, settings: &client.settings };
        let outcome: Result<ToolOutcome, JiraError> = match what {
            _ if client.access.place.is_none() => client.place().map(|_| ToolOutcome::text("")),
            What::Search => client.search_issues(arguments).await,
            What::Issue => client.get_issue(arguments).await,
            What::Projects => client.list_projects(arguments).await,
            What::Sprints => client.get_sprints(arguments).await,
            What::SprintIssues => client.get_sprint_issues(arguments).await,
            What::Changelog => client.get_changelog(arguments).await,
            What::Comments => client.get_comments(arguments).await,
            What::Worklogs => client.get_worklogs(arguments).await,
            What::Boards => client.get_boards(arguments).await,
        };
        outcome.unwrap_or_else(|error| error.outcome(client.access.scheme()))
    }
}

impl std::fmt::Debug for JiraToolkit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("JiraToolkit")
            .field("access", &self.client.access)
            .field("settings", &self.client.settings)
            .finish()
    }
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Search,
    Issue,
    Projects,
    Sprints,
    SprintIssues,
    Changelog,
    Comments,
    Worklogs,
    Boards,
}

/// A method that skills bind tools to.
struct Method {
    name: &'static str,
    what: What,
    required: &'static [(&'static str, ArgumentKind)],
    optional: &'static [(&'static str, ArgumentKind)],
}

const LIMIT: (&str, ArgumentKind) = ("limit", ArgumentKind::Integer);
const CURSOR: (&str, ArgumentKind) = ("cursor", ArgumentKind::String);
const KEY: (&str, ArgumentKind) = ("issue_key", ArgumentKind::String);

const METHODS: &[Method] = &[
    Method {
        name: "search_issues",
        what: What::Search,
        required: &[("jql", ArgumentKind::String)],
        optional: &[LIMIT, CURSOR],
    },
    Method { name: "get_issue", what: What::Issue, required: &[KEY], optional: &[] },
    Method {
        name: "list_projects",
        what: What::Projects,
        required: &[],
        optional: &[LIMIT, CURSOR],
    },
    Method {
        name: "get_sprints",
        what: What::Sprints,
        required: &[("board_id", ArgumentKind::Integer)],
        optional: &[("state_filter", ArgumentKind::String), LIMIT, CURSOR],
    },
    Method {
        name: "get_sprint_issues",
        what: What::SprintIssues,
        required: &[("sprint_id", ArgumentKind::Integer)],
        optional: &[LIMIT, CURSOR],
    },
    Method {
        name: "get_changelog",
        what: What::Changelog,
        required: &[KEY],
        optional: &[LIMIT, CURSOR],
    },
    Method {
        name: "get_comments",
        what: What::Comments,
        required: &[KEY],
        optional: &[("max_results", ArgumentKind::Integer), LIMIT, CURSOR],
    },
    Method {
        name: "get_worklogs",
        what: What::Worklogs,
        required: &[KEY],
        optional: &[LIMIT, CURSOR],
    },
    Method {
        name: "get_boards",
        what: What::Boards,
        required: &[],
        optional: &[
            ("project_key", ArgumentKind::String),
            ("board_type", ArgumentKind::String),
            LIMIT,
            CURSOR,
        ],
    },
];

/// A method, bound to a Jira.
struct JiraMethod {
    jira: JiraToolkit,
    what: What,
    parameters: Vec<Parameter>,
}

impl Handler for JiraMethod {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(self.jira.run(self.what, &invocation.call.arguments))
    }
}

/// What stands above the text of the skill.
struct Opening(JiraToolkit);

impl Handler for Opening {
    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn call<'a>(&'a self, _: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(self.0.opening())
    }
}

impl Toolkit for JiraToolkit {
    fn handlers(&self) -> Vec<Handlers> {
        let handlers = METHODS.iter().fold(Handlers::for_skill("jira"), |handlers, method| {
            let required = method.required.iter();
            let required = required.map(|(name, kind)| Parameter::required(*name, *kind));
            let optional = method.optional.iter();
            let optional = optional.map(|(name, kind)| Parameter::optional(*name, *kind));
            let parameters = required.chain(optional).collect();
            let (jira, what) = (self.clone(), method.what);
            handlers.handler(method.name, Arc::new(JiraMethod { jira, what, parameters }))
        });
        vec![handlers.opening_by(Arc::new(Opening(self.clone())))]
    }
}
