//! Who somebody is, by the key or the token that they show.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use jiff::Timestamp;
use prowess_store::{KeyStore, PresentedKey};
use sha2::{Digest, Sha256};

use crate::buckets::{Buckets, neighbour};
use crate::identity::{Identity, Shown};
use crate::jwt::{Denied, Tokens};
use crate::problem::Problem;

/// So long a key or a token that was found good is not looked at again.
const FRESH: Duration = Duration::from_millis(20);
/// So long it is not looked at again whether there are keys at all.
const KEYS_FRESH: Duration = Duration::from_millis(20);
/// So many keys are remembered.
const REMEMBERED: usize = 1024;

/// Whether a server asks for keys. Where tokens are accepted, one of both is always needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// Always.
    Always,
    /// As soon as there has ever been one: that the last key ends opens nothing.
    IfThereAreAny,
}

/// Tells people apart by their keys, and by their tokens where these are accepted.
pub(crate) struct Doorman {
    keys: Arc<dyn KeyStore>,
    tokens: Option<Tokens>,
    has_asked: AtomicBool,
    looked: Mutex<Option<Instant>>,
    known: Mutex<HashMap<[u8; 32], Known>>,
    failures: Buckets<IpAddr>,
}

#[derive(Clone)]
struct Known {
    identity: Identity,
    at: Instant,
}

impl Doorman {
    pub(crate) fn new(
        keys: Arc<dyn KeyStore>,
        tokens: Option<Tokens>,
        needed: Needed,
        failures_per_minute: u32,
    ) -> Self {
        Self {
            keys,
            has_asked: AtomicBool::new(needed == Needed::Always || tokens.is_some()),
            tokens,
            looked: Mutex::default(),
            known: Mutex::default(),
            failures: Buckets::new(failures_per_minute, Duration::from_secs(60)),
        }
    }

    /// Whether everybody needs a key.
    async fn asks(&self, now: Instant) -> Result<bool, Problem> {
        if self.has_asked.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|at| now.saturating_duration_since(at) < KEYS_FRESH) {
            return Ok(false);
        }
        let has_keys = self.keys.has_any().await?;
        if has_keys {
            self.has_asked.store(true, Ordering::Relaxed);
        } else {
            *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
        Ok(has_keys)
    }

    /// Who makes a request.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
    ) -> Result<Identity, Problem> {
        let now = Instant::now();
        match shown(headers)? {
            Some(text) => self.owner(text, neighbour(address), now).await,
            None if self.asks(now).await? => Err(self.nothing_shown()),
            None => Ok(Identity::local()),
        }
    }

    async fn owner(&self, text: &str, address: IpAddr, now: Instant) -> Result<Identity, Problem> {
        let print: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let known = self.known().get(&print).cloned();
        if let Some(known) = known
            && now.saturating_duration_since(known.at) < FRESH
            && !known.identity.has_ended()
        {
            return Ok(known.identity);
        }
        if let Some(tokens) = &self.tokens
            && Tokens::is_token(text)
        {
            let identity = match tokens.owner(text).await {
                Ok(identity) => identity,
                Err(Denied::Other(problem)) => return Err(problem),
                Err(Denied::Token(problem)) => {
                    return Err(self.failed(&print, address, now, problem));
                }
            };
            self.remember(print, &identity, now);
            return Ok(identity);
        }
        let found = match PresentedKey::parse(text) {
            Some(presented) => {
                let stored = self.keys.find(presented.id()).await?;
                stored.filter(|stored| {
                    stored.has_secret(&presented) && stored.key.is_usable(Timestamp::now())
                })
            }
            None => None,
        };
        // Only failures count: whoever has a key is let in, whatever others do from there.
        let Some(stored) = found else {
            let problem = Problem::unauthenticated(
                "invalid_key",
                "the key is unknown, revoked or expired; `prowess keys list` shows those that are there, \
                 `prowess keys create` makes one",
            );
            return Err(self.failed(&print, address, now, problem));
        };
        let identity = Identity::of(&stored.key);
        self.remember(print, &identity, now);
        Ok(identity)
    }

    /// Why somebody who has shown something wrong is not let in.
    fn failed(&self, print: &[u8; 32], address: IpAddr, now: Instant, problem: Problem) -> Problem {
        self.known().remove(print);
        self.failures.take(address, now).map_or_else(too_many, |()| problem)
    }

    fn remember(&self, print: [u8; 32], identity: &Identity, now: Instant) {
        let mut known = self.known();
        if known.len() >= REMEMBERED && !known.contains_key(&print) {
            known.retain(|_, known| now.saturating_duration_since(known.at) < FRESH);
            if known.len() >= REMEMBERED {
                known.clear();
            }
        }
        known.insert(print, Known { identity: identity.clone(), at: now });
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody who was let in may stay.
    pub(crate) async fn may_stay(&self, identity: &Identity) -> bool {
        match &identity.shown {
            Shown::Key(id) => {
                let found = self.keys.find(id).await;
                // A store that fails for a moment revokes nothing.
                found.map_or(true, |stored| {
                    stored.is_some_and(|stored| stored.key.is_usable(Timestamp::now()))
                })
            }
            Shown::Token(_) => !identity.has_ended(),
            Shown::Nothing => !self.asks(Instant::now()).await.unwrap_or(false),
        }
    }

    fn nothing_shown(&self) -> Problem {
        let message = match self.tokens.is_some() {
            true => {
                "this server asks for a token of your provider or for a key: `Authorization: Bearer \
                 TOKEN`; `prowess keys create` makes keys"
            }
            false => {
                "this server asks for a key: `Authorization: Bearer KEY`; `prowess keys create` makes one"
            }
        };
        Problem::unauthenticated("key_required", message)
    }
}

fn too_many(seconds: u64) -> Problem {
    let message =
        "too many wrong keys or tokens were shown from this address; wait, and check yours";
    Problem::new(429, "too_many_failed_logins", message).retry_after(seconds)
}

/// The key that a request shows, if it shows one.
fn shown(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let wrong = || {
        let message = "show one key: `Authorization: Bearer KEY` or `X-API-Key: KEY`";
        Problem::unauthenticated("invalid_credentials", message)
    };
    let mut all = Vec::new();
    for value in headers.get_all(AUTHORIZATION) {
        let text = value.to_str().map_err(|_| wrong())?;
        let (scheme, key) = text.split_once(' ').ok_or_else(wrong)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(wrong());
        }
        all.push(key.trim());
    }
    for value in headers.get_all("x-api-key") {
        all.push(value.to_str().map_err(|_| wrong())?.trim());
    }
    all.dedup();
    match all.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_in_one_of_two_ways() {
        let read = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            shown(&headers).map(|it| it.map(str::to_owned)).map_err(|problem| problem.status())
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("authorization", "Bearer k")]), Ok(Some("k".into())));
        assert_eq!(read(&[("authorization", "bearer  k ")]), Ok(Some("k".into())));
        assert_eq!(read(&[("x-api-key", "k")]), Ok(Some("k".into())));
        assert_eq!(
            read(&[("x-api-key", "k"), ("authorization", "Bearer k")]),
            Ok(Some("k".into()))
        );
        assert_eq!(read(&[("x-api-key", "k"), ("authorization", "Bearer j")]), Err(401));
        assert_eq!(read(&[("authorization", "Basic k")]), Err(401));
        assert_eq!(read(&[("authorization", "k")]), Err(401));
    }
}
