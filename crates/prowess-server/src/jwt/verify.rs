//! Whether a token is good.

use jiff::Timestamp;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use prowess_store::Role;
use serde_json::Value;

use super::claims::{claim, plain_name, role};
use super::crypto;
use super::keys::KeySet;
use super::settings::JwtSettings;

/// What a token must be.
pub(super) struct Rules {
    validation: Validation,
    algorithms: Vec<Algorithm>,
    role_claim: String,
    name_claim: String,
    max_bytes: usize,
}

/// What a token says about itself; nothing of it is believed yet.
pub(super) struct Head {
    pub(super) kid: String,
    algorithm: Algorithm,
}

/// A token that is good.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Whose it is, made plain.
    pub(super) name: String,
    /// What they may do, if it says so.
    pub(super) role: Option<Role>,
    /// The second at which it ends, leeway included.
    pub(super) expires: i64,
}

/// Why a token is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("it has more than {0} bytes (server.jwt.max_token_bytes)")]
    TooLarge(usize),
    #[error("it is no signed token (JWS) whose header we can read")]
    Malformed,
    #[error("how it is signed is not among server.jwt.algorithms")]
    Algorithm,
    #[error("its header names no key (kid)")]
    NoKeyId,
    #[error("its header asks for what we do not know (crit)")]
    Critical,
    #[error("the provider has no key of its kid")]
    UnknownKey,
    #[error("the key of its kid is not for how it is signed (alg)")]
    KeyAlgorithm,
    #[error("its signature is wrong")]
    Signature,
    #[error("it has expired (exp); get a new one from your provider")]
    Expired,
    #[error("it is not valid yet (nbf); check the clocks")]
    NotYet,
    #[error("it is of another issuer (iss) than server.jwt.issuer")]
    Issuer,
    #[error("it is for another audience (aud) than server.jwt.audience")]
    Audience,
    #[error("its claim '{0}' is missing or has not the form that it must have")]
    Claim(String),
}

impl Refused {
    /// The stable name of the error.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Expired => "token_expired",
            _ => "invalid_token",
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error.into_kind() {
            ErrorKind::InvalidSignature => Self::Signature,
            ErrorKind::ExpiredSignature => Self::Expired,
            ErrorKind::ImmatureSignature => Self::NotYet,
            ErrorKind::InvalidIssuer => Self::Issuer,
            ErrorKind::InvalidAudience => Self::Audience,
            ErrorKind::InvalidAlgorithm => Self::Algorithm,
            ErrorKind::MissingRequiredClaim(name) | ErrorKind::InvalidClaimFormat(name) => {
                Self::Claim(name)
            }
            _ => Self::Malformed,
        }
    }
}

impl Rules {
    pub(super) fn new(settings: &JwtSettings) -> Self {
        crypto::install();
        // How it is signed is put in by each token, from those that are allowed.
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.leeway = settings.leeway_seconds;
        validation.validate_nbf = true;
        validation.set_issuer(&[&settings.issuer]);
        validation.set_audience(&[&settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        Self {
            validation,
            algorithms: settings.algorithms.iter().map(|it| (*it).into()).collect(),
            role_claim: settings.role_claim.clone(),
            name_claim: settings.name_claim.clone(),
            max_bytes: settings.max_token_bytes,
        }
    }

    /// The claim with the role.
    pub(super) fn role_claim(&self) -> &str {
        &self.role_claim
    }

    /// Reads which key a token is to be checked with. Nothing is asked for before this is good.
    pub(super) fn head(&self, text: &str) -> Result<Head, Refused> {
        if text.len() > self.max_bytes {
            return Err(Refused::TooLarge(self.max_bytes));
        }
        let header = decode_header(text).map_err(|_| Refused::Malformed)?;
        if !self.algorithms.contains(&header.alg) {
            return Err(Refused::Algorithm);
        }
        if header.crit.is_some() {
            return Err(Refused::Critical);
        }
        let kid = header.kid.filter(|kid| !kid.is_empty()).ok_or(Refused::NoKeyId)?;
        Ok(Head { kid, algorithm: header.alg })
    }

    /// Checks a token with the key that it names.
    pub(super) fn verify(&self, text: &str, head: &Head, keys: &KeySet) -> Result<Token, Refused> {
        let key = keys.find(&head.kid, head.algorithm).ok_or(Refused::KeyAlgorithm)?;
        let mut validation = self.validation.clone();
        validation.algorithms = vec![head.algorithm];
        let claims = decode::<Value>(text, &key.key, &validation)?.claims;
        // The crate takes a list of issuers too; a token has one.
        if !claims.get("iss").is_some_and(Value::is_string) {
            return Err(Refused::Issuer);
        }
        let missing = |name: &str| Refused::Claim(name.to_owned());
        let name = claim(&claims, &self.name_claim).and_then(Value::as_str);
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| missing(&self.name_claim))?;
        let expires = claims.get("exp").and_then(Value::as_f64).ok_or_else(|| missing("exp"))?;
        let expires = (expires as i64).saturating_add_unsigned(self.validation.leeway);
        // The crate lets the second of the end pass; it is over then.
        if expires <= Timestamp::now().as_second() {
            return Err(Refused::Expired);
        }
        Ok(Token {
            name: plain_name(name),
            role: claim(&claims, &self.role_claim).and_then(role),
            expires,
        })
    }
}
