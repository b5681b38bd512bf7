//! Who somebody is, by a token that a provider of identities has signed.

mod claims;
mod crypto;
mod fetch;
mod keys;
mod settings;
mod verify;

use std::sync::Arc;

use jiff::Timestamp;

use crate::identity::Identity;
use crate::problem::Problem;
use keys::{Keys, Missing};
use verify::{Refused, Rules};

pub use settings::{InvalidJwtSettings, JwtSettings, TokenAlgorithm};

/// What tells people apart by their tokens.
pub(crate) struct Tokens {
    rules: Rules,
    keys: Arc<Keys>,
}

/// Why somebody is not let in.
pub(crate) enum Denied {
    /// The token is not good. Whoever shows many of these must wait.
    Token(Problem),
    /// It may be good.
    Other(Problem),
}

impl Tokens {
    /// Reads the settings; the keys are fetched when the first token comes.
    pub(crate) fn new(settings: &JwtSettings) -> Result<Self, InvalidJwtSettings> {
        let keys = Arc::new(Keys::new(settings)?);
        Ok(Self { rules: Rules::new(settings), keys })
    }

    /// Whether this has the form of a token: three parts, of which keys have one.
    pub(crate) fn is_token(text: &str) -> bool {
        text.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Who shows this token.
    pub(crate) async fn owner(&self, text: &str) -> Result<Identity, Denied> {
        let head = self.rules.head(text).map_err(|refused| denied(&refused))?;
        let keys = match self.keys.with(&head.kid).await {
            Ok(keys) => keys,
            Err(Missing::Unknown) => return Err(denied(&Refused::UnknownKey)),
            Err(Missing::Away { seconds }) => return Err(Denied::Other(away(seconds))),
        };
        let token = self.rules.verify(text, &head, &keys).map_err(|refused| denied(&refused))?;
        let expires = Timestamp::from_second(token.expires).unwrap_or(Timestamp::MAX);
        let Some(role) = token.role else {
            return Err(Denied::Other(self.no_role(&token.name)));
        };
        Ok(Identity::of_token(&token.name, role, expires))
    }

    fn no_role(&self, name: &str) -> Problem {
        let claim = self.rules.role_claim();
        let message = format!(
            "the token of jwt:{name} gives no role: its claim '{claim}' names none of viewer, editor, \
             publisher and admin; have your provider add one, or name another claim in server.jwt.role_claim"
        );
        Problem::new(403, "no_role", message)
    }
}

fn denied(refused: &Refused) -> Denied {
    let message = format!("the token is refused: {refused}");
    Denied::Token(Problem::unauthenticated(refused.code(), &message))
}

fn away(seconds: u64) -> Problem {
    let message = "the keys that tokens are checked with cannot be fetched (server.jwt.jwks_url); \
                   the log says why; try again";
    Problem::new(503, "jwks_unavailable", message).retry_after(seconds)
}
