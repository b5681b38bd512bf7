//! A provider of identities on loopback: keys that rotate, tokens of any kind, and bad days.

#![allow(dead_code, unreachable_pub)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, Uri};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prowess_server::JwtSettings;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use serde_json::{Value, json};

pub const ISSUER: &str = "https://id.example.com";
pub const AUDIENCE: &str = "prowess";

/// What the provider does when it is asked for its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Day {
    Good,
    /// It answers late, but it does.
    Slow,
    /// 500.
    Broken,
    /// The keys are elsewhere.
    Moved,
    /// More bytes than anybody wants, the keys among them.
    Large,
    /// It never answers.
    Silent,
    /// A page for people.
    Html,
}

pub struct Provider {
    pub address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    keys: Mutex<Vec<Value>>,
    day: Mutex<Day>,
    asked: AtomicUsize,
}

impl Provider {
    /// One that has these keys.
    pub async fn start(keys: &[&TestKey]) -> Self {
        let inner = Arc::new(Inner {
            keys: Mutex::default(),
            day: Mutex::new(Day::Good),
            asked: AtomicUsize::new(0),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum_serve(listener, router).await });
        let provider = Self { address, inner };
        provider.rotate(keys);
        provider
    }

    /// Has these keys from now on.
    pub fn rotate(&self, keys: &[&TestKey]) {
        *self.inner.keys.lock().unwrap() = keys.iter().map(|key| key.public.clone()).collect();
    }

    /// Has this set from now on.
    pub fn publish(&self, keys: Vec<Value>) {
        *self.inner.keys.lock().unwrap() = keys;
    }

    pub fn have(&self, day: Day) {
        *self.inner.day.lock().unwrap() = day;
    }

    /// How often it was asked for its keys.
    pub fn asked(&self) -> usize {
        self.inner.asked.load(Ordering::SeqCst)
    }

    pub fn settings(&self) -> JwtSettings {
        JwtSettings::new(format!("http://{}/jwks", self.address), ISSUER, AUDIENCE)
    }
}

async fn answer(State(inner): State<Arc<Inner>>, uri: Uri) -> Response<Body> {
    let keys = json!({"keys": *inner.keys.lock().unwrap()});
    if uri.path() != "/jwks" {
        return Response::new(keys.to_string().into());
    }
    inner.asked.fetch_add(1, Ordering::SeqCst);
    let day = *inner.day.lock().unwrap();
    let with = |status: u16, body: String| {
        Response::builder().status(status).body(Body::from(body)).unwrap()
    };
    match day {
        Day::Good => with(200, keys.to_string()),
        Day::Slow => {
            tokio::time::sleep(Duration::from_millis(300)).await;
            with(200, keys.to_string())
        }
        Day::Broken => with(500, keys.to_string()),
        Day::Moved => Response::builder()
            .status(302)
            .header("location", "/elsewhere")
            .body(Body::from(keys.to_string()))
            .unwrap(),
        Day::Large => {
            let mut large = keys;
            large["padding"] = json!("x".repeat(2 << 20));
            with(200, large.to_string())
        }
        Day::Silent => std::future::pending().await,
        Day::Html => with(200, "<html>Sign in</html>".to_owned()),
    }
}

async fn axum_serve(listener: tokio::net::TcpListener, router: Router) {
    use hyper_util::rt::TokioIo;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// A key that signs, and what is published of it.
pub struct TestKey {
    pub kid: String,
    pub algorithm: &'static str,
    pub public: Value,
    /// The bytes of the public key, as an attacker would use them for a secret.
    pub bytes: Vec<u8>,
    signer: Signer,
}

impl TestKey {
    pub fn rsa(kid: &str) -> Self {
        // A key of these tests and of nothing else. Making one takes too long.
        let pair = RsaKeyPair::from_pkcs8(include_bytes!("../fixtures/rsa_of_tests.pk8")).unwrap();
        let public: PublicKeyComponents<Vec<u8>> = pair.public().into();
        let jwk = json!({"kty": "RSA", "n": encode(&public.n), "e": encode(&public.e)});
        let bytes = pair.public().as_ref().to_vec();
        Self::new(kid, "RS256", jwk, bytes, Signer::Rsa(pair))
    }

    pub fn ec(kid: &str) -> Self {
        let random = SystemRandom::new();
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
                .unwrap();
        let bytes = pair.public_key().as_ref().to_vec();
        let jwk = json!({
            "kty": "EC", "crv": "P-256", "x": encode(&bytes[1..33]), "y": encode(&bytes[33..]),
        });
        Self::new(kid, "ES256", jwk, bytes, Signer::Ec(pair))
    }

    pub fn ed(kid: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let bytes = pair.public_key().as_ref().to_vec();
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": encode(&bytes)});
        Self::new(kid, "EdDSA", jwk, bytes, Signer::Ed(pair))
    }

    fn new(kid: &str, algorithm: &'static str, jwk: Value, bytes: Vec<u8>, signer: Signer) -> Self {
        let mut public = jwk;
        public["kid"] = json!(kid);
        public["use"] = json!("sig");
        Self { kid: kid.to_owned(), algorithm, public, bytes, signer }
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.signer {
            Signer::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Signer::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A good token that says this.
    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.algorithm, "kid": self.kid, "typ": "JWT"}), claims)
    }

    /// A token with a header of one's own, signed all the same.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = unsigned(header, claims);
        let signature = encode(&self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()))
}

pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

pub fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// What a good token says.
pub fn claims(name: &str, role: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": name, "prowess_role": role,
        "iat": now(), "nbf": now(), "exp": now() + 600,
    })
}

/// The same, but for this.
pub fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

/// The same without this.
pub fn without(mut claims: Value, name: &str) -> Value {
    claims.as_object_mut().unwrap().remove(name);
    claims
}
