//! The provider's keys: fetched when they are needed, and not more often than they may be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use super::fetch::{FetchError, Provider};
use super::settings::{InvalidJwtSettings, JwtSettings};

/// A key that signatures are checked with.
pub(super) struct Key {
    kid: String,
    algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// All keys of a provider that can be used.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

impl KeySet {
    /// What the provider answered. A key that cannot be used hurts no other one.
    fn read(body: &[u8]) -> Result<Self, FetchError> {
        let mut answer: Value = serde_json::from_slice(body).map_err(|_| FetchError::NoSet)?;
        let Some(Value::Array(all)) = answer.get_mut("keys").map(Value::take) else {
            return Err(FetchError::NoSet);
        };
        Ok(Self(all.into_iter().filter_map(usable).collect()))
    }

    fn has(&self, kid: &str) -> bool {
        self.0.iter().any(|key| key.kid == kid)
    }

    /// The key of this id that checks signatures of this kind.
    pub(super) fn find(&self, kid: &str, algorithm: Algorithm) -> Option<&Key> {
        self.0.iter().find(|key| key.kid == kid && key.algorithms.contains(&algorithm))
    }
}

/// A key with an id that is meant for signatures, of a kind that we know.
fn usable(value: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let common = &jwk.common;
    let kid = common.key_id.clone().filter(|kid| !kid.is_empty())?;
    if common.public_key_use.as_ref().is_some_and(|it| *it != PublicKeyUse::Signature) {
        return None;
    }
    let is_verifying = |all: &Vec<KeyOperations>| all.contains(&KeyOperations::Verify);
    if !common.key_operations.as_ref().is_none_or(is_verifying) {
        return None;
    }
    let mut algorithms = algorithms_of(&jwk.algorithm);
    if let Some(only) = common.key_algorithm {
        algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == only);
    }
    if algorithms.is_empty() {
        return None;
    }
    Some(Key { kid, algorithms, key: DecodingKey::from_jwk(&jwk).ok()? })
}

/// What a key of this type can check. A shared secret checks nothing here.
fn algorithms_of(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match parameters {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            vec![EdDSA]
        }
        _ => Vec::new(),
    }
}

/// The keys, and when they are fetched.
pub(super) struct Keys {
    provider: Provider,
    times: Times,
    state: Mutex<State>,
    /// Held by whoever fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    cache: Duration,
    refresh: Duration,
    stale: Duration,
}

/// What is known.
#[derive(Clone, Default)]
struct State {
    set: Option<(Arc<KeySet>, Instant)>,
    tried: Option<Instant>,
    has_failed: bool,
}

/// Why there is no key for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The provider has none of this id.
    Unknown,
    /// It cannot be asked now.
    Away {
        /// After how many seconds it is asked again.
        seconds: u64,
    },
}

/// What is done about a token with this key.
enum Step {
    /// The key is there.
    Use(Arc<KeySet>),
    /// It is there, and should be fetched again.
    Renew(Arc<KeySet>),
    /// It is not there, and may be fetched.
    Fetch,
    /// It is not there, and was looked for not long ago.
    Refuse(Missing),
}

impl State {
    fn step(&self, kid: &str, now: Instant, times: Times) -> Step {
        let age = |at: Instant| now.saturating_duration_since(at);
        let waited = self.tried.map_or(Duration::MAX, age);
        let may_fetch = waited >= times.refresh;
        let usable = self.set.as_ref().filter(|(_, at)| age(*at) < times.stale);
        match usable {
            Some((set, at)) if set.has(kid) => match age(*at) >= times.cache && may_fetch {
                true => Step::Renew(Arc::clone(set)),
                false => Step::Use(Arc::clone(set)),
            },
            _ if may_fetch => Step::Fetch,
            Some(_) if !self.has_failed => Step::Refuse(Missing::Unknown),
            _ => {
                let rest = times.refresh.saturating_sub(waited);
                Step::Refuse(Missing::Away { seconds: rest.as_secs().max(1) })
            }
        }
    }
}

impl Keys {
    /// No keys yet.
    pub(super) fn new(settings: &JwtSettings) -> Result<Self, InvalidJwtSettings> {
        let times =
            Times { cache: settings.cache(), refresh: settings.refresh(), stale: settings.stale() };
        Ok(Self {
            provider: Provider::new(settings)?,
            times,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    /// A set that has the key of this id.
    pub(super) async fn with(self: &Arc<Self>, kid: &str) -> Result<Arc<KeySet>, Missing> {
        match self.step(kid) {
            Step::Use(set) => return Ok(set),
            // Somebody else does it already.
            Step::Renew(set) if self.fetching.try_lock().is_err() => return Ok(set),
            // What somebody else is fetching may have it.
            Step::Refuse(missing) if self.fetching.try_lock().is_ok() => return Err(missing),
            Step::Renew(_) | Step::Fetch | Step::Refuse(_) => {}
        }
        // It is finished even if whoever asked goes away: otherwise they could keep us without keys.
        let keys = Arc::clone(self);
        let asked = kid.to_owned();
        let fetched = tokio::spawn(async move { keys.fetch(&asked).await });
        let _ = fetched.await;
        match self.step(kid) {
            Step::Use(set) | Step::Renew(set) => Ok(set),
            Step::Refuse(missing) => Err(missing),
            Step::Fetch => Err(Missing::Away { seconds: 1 }),
        }
    }

    fn step(&self, kid: &str) -> Step {
        self.state().step(kid, Instant::now(), self.times)
    }

    /// Fetches the keys, one at a time; not if somebody has done so meanwhile.
    async fn fetch(&self, kid: &str) {
        let _only = self.fetching.lock().await;
        if !matches!(self.step(kid), Step::Fetch | Step::Renew(_)) {
            return;
        }
        let begun = Instant::now();
        self.state().tried = Some(begun);
        let fetched = self.provider.fetch().await.and_then(|body| KeySet::read(&body));
        let mut state = self.state();
        state.has_failed = fetched.is_err();
        match fetched {
            Ok(set) => {
                let count = set.0.len();
                tracing::info!(target: "prowess::server", count, "the provider's keys were fetched");
                state.set = Some((Arc::new(set), begun));
            }
            Err(error) => {
                tracing::warn!(target: "prowess::server", "the provider's keys cannot be fetched: {error}");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TIMES: Times = Times {
        cache: Duration::from_secs(600),
        refresh: Duration::from_secs(10),
        stale: Duration::from_secs(3600),
    };
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn set() -> Arc<KeySet> {
        let body = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": X}]});
        Arc::new(KeySet::read(body.to_string().as_bytes()).unwrap())
    }

    fn word(step: &Step) -> String {
        match step {
            Step::Use(_) => "use".into(),
            Step::Renew(_) => "renew".into(),
            Step::Fetch => "fetch".into(),
            Step::Refuse(Missing::Unknown) => "unknown".into(),
            Step::Refuse(Missing::Away { seconds }) => format!("away {seconds}"),
        }
    }

    #[test]
    fn keys_are_fetched_when_they_are_needed_and_old_ones_used_for_a_while() {
        let begin = Instant::now();
        // Fetched at, tried at, whether that failed; which key is asked for, and when.
        for (fetched, tried, has_failed, kid, now, expected) in [
            (None, None, false, "a", 0, "fetch"),
            (None, Some(0), true, "a", 0, "away 10"),
            (None, Some(0), true, "a", 9, "away 1"),
            (None, Some(0), true, "a", 10, "fetch"),
            (Some(0), Some(0), false, "a", 0, "use"),
            (Some(0), Some(0), false, "a", 599, "use"),
            (Some(0), Some(0), false, "a", 600, "renew"),
            // The provider is away: what is there is used, and asked for every ten seconds.
            (Some(0), Some(600), true, "a", 609, "use"),
            (Some(0), Some(600), true, "a", 610, "renew"),
            (Some(0), Some(3595), true, "a", 3599, "use"),
            (Some(0), Some(3595), true, "a", 3600, "away 5"),
            (Some(0), Some(3595), true, "a", 3605, "fetch"),
            // A key that nobody knows.
            (Some(0), Some(0), false, "b", 0, "unknown"),
            (Some(0), Some(0), false, "b", 9, "unknown"),
            (Some(0), Some(0), false, "b", 10, "fetch"),
            (Some(0), Some(20), false, "b", 29, "unknown"),
            (Some(0), Some(20), true, "b", 21, "away 9"),
        ] {
            let at = |seconds| begin + Duration::from_secs(seconds);
            let state = State {
                set: fetched.map(|seconds| (set(), at(seconds))),
                tried: tried.map(at),
                has_failed,
            };
            let step = word(&state.step(kid, at(now), TIMES));
            assert_eq!(step, expected, "{fetched:?} {tried:?} {has_failed} {kid} {now}");
        }
    }

    #[test]
    fn a_key_is_used_for_what_it_is_meant_for_and_a_bad_one_hurts_no_other() {
        let ec = |curve: &str| json!({"kty": "EC", "crv": curve, "x": X, "y": X});
        let rsa = || json!({"kty": "RSA", "n": X, "e": "AQAB"});
        let okp = |curve: &str| json!({"kty": "OKP", "crv": curve, "x": X});
        let with = |mut key: Value, more: Value| {
            for (name, value) in more.as_object().unwrap() {
                key[name] = value.clone();
            }
            key
        };
        use Algorithm::{ES256, ES384, EdDSA, HS256, PS256, RS256, RS512};
        for (key, good, bad) in [
            (rsa(), vec![RS256, RS512, PS256], vec![ES256, EdDSA, HS256]),
            (with(rsa(), json!({"alg": "RS256"})), vec![RS256], vec![RS512, PS256]),
            (with(rsa(), json!({"use": "sig"})), vec![RS256], vec![]),
            (with(rsa(), json!({"use": "enc"})), vec![], vec![RS256]),
            (with(rsa(), json!({"alg": "RSA-OAEP"})), vec![], vec![RS256]),
            (with(rsa(), json!({"key_ops": ["verify"]})), vec![RS256], vec![]),
            (with(rsa(), json!({"key_ops": ["encrypt"]})), vec![], vec![RS256]),
            (ec("P-256"), vec![ES256], vec![ES384, RS256, EdDSA, HS256]),
            (ec("P-384"), vec![ES384], vec![ES256]),
            (ec("P-521"), vec![], vec![ES256, ES384]),
            (ec("secp256k1"), vec![], vec![ES256]),
            (okp("Ed25519"), vec![EdDSA], vec![ES256]),
            (okp("X25519"), vec![], vec![EdDSA]),
            (json!({"kty": "oct", "k": X}), vec![], vec![HS256, RS256]),
            (json!({"kty": "oct", "k": X, "alg": "HS256"}), vec![], vec![HS256]),
            (with(rsa(), json!({"n": "*"})), vec![], vec![RS256]),
            (with(rsa(), json!({"kid": ""})), vec![], vec![RS256]),
            (with(rsa(), json!({"kid": 7})), vec![], vec![RS256]),
            (json!(7), vec![], vec![RS256]),
        ] {
            let named = match key.get("kid") {
                None if key.is_object() => with(key.clone(), json!({"kid": "k"})),
                _ => key.clone(),
            };
            let all =
                json!({"keys": [named, {"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": X}]});
            let set = KeySet::read(all.to_string().as_bytes()).unwrap();
            assert!(set.find("a", EdDSA).is_some(), "{key}");
            for algorithm in good {
                assert!(set.find("k", algorithm).is_some(), "{key} {algorithm:?}");
            }
            for algorithm in bad {
                assert!(set.find("k", algorithm).is_none(), "{key} {algorithm:?}");
            }
        }
    }

    #[test]
    fn what_is_no_set_is_refused_and_an_empty_one_is_a_set() {
        for body in ["", "[]", "{}", "{\"keys\": {}}", "<html>", "null"] {
            assert!(KeySet::read(body.as_bytes()).is_err(), "{body}");
        }
        assert!(KeySet::read(b"{\"keys\": []}").is_ok_and(|set| !set.has("a")));
    }
}
