//! Who makes a request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use prowess_runtime::SessionKey;
use prowess_store::{Actor, ApiKey, Role};

use crate::problem::Problem;

/// Who makes a request, and what they may do. Every request has one once it has passed the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Who it is in the audit log: `local`, `key:NAME` or `jwt:NAME`.
    pub actor: Actor,
    /// What they may do.
    pub role: Role,
    /// Whose sessions are theirs.
    pub(crate) user: Arc<str>,
    /// What they have shown.
    pub(crate) shown: Shown,
}

/// What somebody has shown to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing: none was asked for.
    Nothing,
    /// The key with this id.
    Key(Arc<str>),
    /// A token that ends then.
    Token(Timestamp),
}

impl Identity {
    /// Whoever uses this machine, where no keys are asked for.
    pub(crate) fn local() -> Self {
        Self {
            actor: Actor::local(),
            role: Role::Admin,
            user: SessionKey::DEFAULT_USER.into(),
            shown: Shown::Nothing,
        }
    }

    /// The owner of a key.
    pub(crate) fn of(key: &ApiKey) -> Self {
        Self {
            actor: Actor(format!("key:{}", key.name).into()),
            role: key.role,
            user: key.name.as_str().into(),
            shown: Shown::Key(key.id.as_str().into()),
        }
    }

    /// Whoever a provider calls so. No key has a colon in its name: sessions of keys are others'.
    pub(crate) fn of_token(name: &str, role: Role, expires: Timestamp) -> Self {
        let user: Arc<str> = format!("jwt:{name}").into();
        Self { actor: Actor(Arc::clone(&user)), role, user, shown: Shown::Token(expires) }
    }

    /// Whether the time of the token that they have shown is over.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.shown, Shown::Token(expires) if expires <= Timestamp::now())
    }

    /// The name of the user whose sessions are theirs.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whether they see versions that wait for a publisher: whoever makes some does.
    pub(crate) fn sees_what_waits(&self) -> bool {
        self.role >= Role::Editor
    }

    /// Whether they have at least this role; else 403.
    pub fn require(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let message =
            format!("this needs the role {role}; {} has the role {}", self.actor, self.role);
        Err(Problem::new(403, "forbidden", message))
    }
}

/// Somebody who may change skills: at least an editor. Others are refused before anything of a body
/// is read.
#[derive(Clone, Debug)]
pub(crate) struct Editor(pub(crate) Identity);

impl<S: Sync> FromRequestParts<S> for Editor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let identity = Identity::from_request_parts(parts, state).await?;
        identity.require(Role::Editor)?;
        Ok(Self(identity))
    }
}

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let found = parts.extensions.get::<Self>().cloned();
        found.ok_or_else(|| Problem::unauthenticated("key_required", "nobody makes this request"))
    }
}
