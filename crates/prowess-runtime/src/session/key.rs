//! Which conversation is meant.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A conversation: an app, a user, a session.
///
/// ```
/// use prowess_runtime::SessionKey;
///
/// let key: SessionKey = "shop/alice/42".parse().unwrap();
/// assert_eq!((key.app(), key.user(), key.session()), ("shop", "alice", "42"));
/// // A session alone belongs to the app `prowess` and the user `local`.
/// assert_eq!("demo".parse::<SessionKey>().unwrap().to_string(), "prowess/local/demo");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionKey {
    app: String,
    user: String,
    session: String,
}

/// Why a text names no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' names no session: {why}; write `session` or `app/user/session`")]
pub struct InvalidSessionKey {
    text: String,
    why: &'static str,
}

impl SessionKey {
    /// The app of a session that is named alone.
    pub const DEFAULT_APP: &str = "prowess";
    /// The user of a session that is named alone.
    pub const DEFAULT_USER: &str = "local";
    /// The most bytes of one name.
    pub const MAX_NAME_BYTES: usize = 128;

    /// A session of a user of an app.
    pub fn new(app: &str, user: &str, session: &str) -> Result<Self, InvalidSessionKey> {
        for name in [app, user, session] {
            check_name(name)
                .map_err(|why| InvalidSessionKey { text: [app, user, session].join("/"), why })?;
        }
        Ok(Self { app: app.to_owned(), user: user.to_owned(), session: session.to_owned() })
    }

    /// The app.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// The user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The session.
    pub fn session(&self) -> &str {
        &self.session
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.trim().is_empty() {
        return Err("a name is empty");
    }
    if name.len() > SessionKey::MAX_NAME_BYTES {
        return Err("a name is longer than 128 bytes");
    }
    if name.chars().any(|c| c == '/' || c.is_control()) {
        return Err("a name has a character that no name has");
    }
    Ok(())
}

impl fmt::Display for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.app, self.user, self.session)
    }
}

impl FromStr for SessionKey {
    type Err = InvalidSessionKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names: Vec<&str> = text.split('/').collect();
        match names.as_slice() {
            [session] => Self::new(Self::DEFAULT_APP, Self::DEFAULT_USER, session),
            [app, user, session] => Self::new(app, user, session),
            _ => Err(InvalidSessionKey {
                text: text.to_owned(),
                why: "it has neither one name nor three",
            }),
        }
        .map_err(|error| InvalidSessionKey { text: text.to_owned(), ..error })
    }
}

impl TryFrom<String> for SessionKey {
    type Error = InvalidSessionKey;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SessionKey> for String {
    fn from(key: SessionKey) -> Self {
        key.to_string()
    }
}

/// An agent within a session. Agents do not see each other's skills.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// An agent of this name.
    pub fn new(name: &str) -> Result<Self, InvalidAgentName> {
        match check_name(name) {
            Ok(()) => Ok(Self(name.to_owned())),
            Err(why) => Err(InvalidAgentName { name: name.to_owned(), why }),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A sub-agent of this one, or of the one that this one is a sub-agent of: `main>report~1a2b`.
    pub fn sub_agent(&self, label: &str) -> Result<Self, InvalidAgentName> {
        Self::new(&format!("{}{SUB}{label}", self.of()))
    }

    /// The agent whose sub-agent it is, or itself: what counts for that agent counts for it.
    pub fn of(&self) -> &str {
        self.0.split(SUB).next().unwrap_or(&self.0)
    }

    /// What it is called among the sub-agents of an agent; its name if it is none.
    pub fn label(&self) -> &str {
        self.0.split_once(SUB).map_or(&self.0, |(_, label)| label)
    }
}

/// What stands between an agent and its sub-agent.
const SUB: char = '>';

impl TryFrom<String> for AgentName {
    type Error = InvalidAgentName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(&name)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

/// Why a text is no agent's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no agent's name: {why}")]
pub struct InvalidAgentName {
    name: String,
    why: &'static str,
}

impl Default for AgentName {
    /// The agent of a session that has only one: `main`.
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
