//! Tokens that are not what they say. Each of them succeeds against somebody who is less careful.

mod identity_provider;
mod support;

use identity_provider::{
    AUDIENCE, ISSUER, Provider, TestKey, claims, decode, encode, now, unsigned, with, without,
};
use ring::hmac;
use serde_json::{Value, json};
use support::Running;

/// Somebody who is less careful.
#[derive(Clone, Copy, Debug)]
enum Careless {
    /// Reads what a token says.
    Reads,
    /// Checks the signature in the way that the token itself names, with the key in the set.
    TrustsHeader,
    /// Checks that whoever signed has a key that the token brings along.
    TrustsItsKey,
    /// Checks the signature as it should be, and nothing else.
    ChecksSignature,
}

impl Careless {
    /// The role that they would give.
    fn role(self, token: &str, key: &TestKey, own: &TestKey) -> Option<Value> {
        let parts: Vec<&str> = token.split('.').collect();
        let [head, body, signature] = parts[..] else { return None };
        let header: Value = serde_json::from_slice(&decode(head)).ok()?;
        let claims: Value = serde_json::from_slice(&decode(body)).ok()?;
        let message = format!("{head}.{body}");
        let is_signed_by = |key: &TestKey| {
            // What is signed by Ed25519 and RSA is the same every time.
            encode(&key.sign(message.as_bytes())) == signature
        };
        let is_good = match self {
            Self::Reads => true,
            Self::ChecksSignature => is_signed_by(key),
            Self::TrustsItsKey => is_signed_by(own),
            Self::TrustsHeader => match header["alg"].as_str()?.to_lowercase().as_str() {
                "none" => true,
                "hs256" => {
                    let secret = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
                    hmac::verify(&secret, message.as_bytes(), &decode(signature)).is_ok()
                }
                _ => is_signed_by(key),
            },
        };
        is_good.then(|| claims["prowess_role"].clone())
    }
}

fn hs256(key: &TestKey, claims: &Value) -> String {
    let message = unsigned(&json!({"alg": "HS256", "kid": key.kid, "typ": "JWT"}), claims);
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
    format!("{message}.{}", encode(hmac::sign(&secret, message.as_bytes()).as_ref()))
}

#[tokio::test]
async fn a_token_that_is_not_what_it_says_is_refused() {
    let (key, own) = (TestKey::rsa("good"), TestKey::ed("own"));
    let provider = Provider::start(&[&key]).await;
    let secret = json!({"kty": "oct", "kid": "secret", "alg": "HS256", "k": encode(&key.bytes)});
    provider.publish(vec![key.public.clone(), secret]);
    let mut jwt = provider.settings();
    jwt.refresh_seconds = 3600;
    let server = Running::with(|it| {
        it.jwt = Some(jwt);
        it.max_failed_logins_per_minute = 10_000;
    })
    .await;
    let eve = || claims("eve", "admin");
    let header = |alg: &str| json!({"alg": alg, "kid": "good", "typ": "JWT"});
    let none = |alg: &str| format!("{}.", unsigned(&header(alg), &eve()));
    let signed = |claims: Value| key.token(&claims);
    let good = key.token(&claims("ada", "viewer"));
    let (head, rest) = good.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let tampered = format!("{head}.{}.{signature}", encode(eve().to_string().as_bytes()));
    let mut with_jwk = header("EdDSA");
    with_jwk["jwk"] = own.public.clone();
    let mut with_jku = header("EdDSA");
    with_jku["jku"] = json!(format!("http://{}/elsewhere", provider.address));
    let mut critical = header("RS256");
    critical["crit"] = json!(["exp"]);
    let with_secret = {
        let header = json!({"alg": "HS256", "kid": "secret"});
        let message = unsigned(&header, &eve());
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
        format!("{message}.{}", encode(hmac::sign(&secret, message.as_bytes()).as_ref()))
    };
    use Careless::{ChecksSignature, Reads, TrustsHeader, TrustsItsKey};
    let attacks = [
        ("alg none", none("none"), TrustsHeader),
        ("alg None", none("None"), TrustsHeader),
        ("alg NONE", none("NONE"), TrustsHeader),
        ("no signature", format!("{}.", unsigned(&header("RS256"), &eve())), Reads),
        ("HS256 with the public key as secret", hs256(&key, &eve()), TrustsHeader),
        ("HS256 with a secret of the set", with_secret, TrustsHeader),
        ("tampered claims", tampered, Reads),
        ("signed by somebody else", own.token_with(&header("EdDSA"), &eve()), TrustsItsKey),
        ("a key in the header", own.token_with(&with_jwk, &eve()), TrustsItsKey),
        ("a place of keys in the header", own.token_with(&with_jku, &eve()), TrustsItsKey),
        ("an unknown kid", own.token(&eve()), TrustsItsKey),
        ("no kid", key.token_with(&json!({"alg": "RS256"}), &eve()), ChecksSignature),
        (
            "an empty kid",
            key.token_with(&json!({"alg": "RS256", "kid": ""}), &eve()),
            ChecksSignature,
        ),
        (
            "a kid with a path",
            key.token_with(&json!({"alg": "RS256", "kid": "../good"}), &eve()),
            ChecksSignature,
        ),
        (
            "another algorithm than it is signed by",
            key.token_with(&header("RS512"), &eve()),
            ChecksSignature,
        ),
        (
            "an algorithm of another type of key",
            key.token_with(&header("ES256"), &eve()),
            ChecksSignature,
        ),
        (
            "something critical that nobody knows",
            key.token_with(&critical, &eve()),
            ChecksSignature,
        ),
        (
            "another issuer",
            signed(with(eve(), "iss", json!("https://evil.example.com"))),
            ChecksSignature,
        ),
        (
            "an issuer with a slash",
            signed(with(eve(), "iss", json!(format!("{ISSUER}/")))),
            ChecksSignature,
        ),
        ("a list of issuers", signed(with(eve(), "iss", json!([ISSUER, "x"]))), ChecksSignature),
        ("no issuer", signed(without(eve(), "iss")), ChecksSignature),
        ("another audience", signed(with(eve(), "aud", json!("other"))), ChecksSignature),
        (
            "other audiences",
            signed(with(eve(), "aud", json!(["other", "PROWESS"]))),
            ChecksSignature,
        ),
        (
            "an audience inside of another word",
            signed(with(eve(), "aud", json!(format!("{AUDIENCE} x")))),
            ChecksSignature,
        ),
        ("no audience", signed(without(eve(), "aud")), ChecksSignature),
        ("no audience at all", signed(with(eve(), "aud", json!([]))), ChecksSignature),
        ("expired", signed(with(eve(), "exp", json!(now() - 120))), ChecksSignature),
        ("without an end", signed(without(eve(), "exp")), ChecksSignature),
        ("an end that is a text", signed(with(eve(), "exp", json!("9999999999"))), ChecksSignature),
        ("an end that is null", signed(with(eve(), "exp", Value::Null)), ChecksSignature),
        ("an end before all time", signed(with(eve(), "exp", json!(-1))), ChecksSignature),
        ("not yet valid", signed(with(eve(), "nbf", json!(now() + 120))), ChecksSignature),
        ("a beginning that is a text", signed(with(eve(), "nbf", json!("0"))), ChecksSignature),
        (
            "a huge token",
            signed(with(eve(), "padding", json!("x".repeat(16 * 1024)))),
            ChecksSignature,
        ),
        ("no name", signed(without(eve(), "sub")), ChecksSignature),
        ("an empty name", signed(with(eve(), "sub", json!(""))), ChecksSignature),
        ("a name that is a list", signed(with(eve(), "sub", json!(["ada"]))), ChecksSignature),
    ];
    for (what, token, careless) in &attacks {
        assert_eq!(
            careless.role(token, &key, &own),
            Some(json!("admin")),
            "the control of: {what}"
        );
        let answer = server.get_as(token, "/api/v1/audit").await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text());
        assert!(matches!(answer.code().as_str(), "invalid_token" | "token_expired"), "{what}");
        assert!(!answer.text().contains(token.as_str()), "it is not repeated: {what}");
    }
    let forms = [
        format!("{good}."),
        format!("{good}.x"),
        good.replacen('.', "..", 1),
        format!("{good}="),
        good.replace('.', "+"),
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{}.{rest}", encode(b"{\"alg\":")),
    ];
    for form in forms {
        assert_eq!(server.get_as(&form, "/api/v1/audit").await.status, 401, "{form}");
    }
    assert_eq!(server.get_as(&good, "/api/v1/sessions").await.status, 200, "the control");
    let admin = key.token(&claims("root", "admin"));
    assert_eq!(server.get_as(&admin, "/api/v1/audit").await.status, 200, "the control");
    assert_eq!(provider.asked(), 1, "nothing of this made us ask more");
}

#[tokio::test]
async fn a_role_is_not_taken_from_what_only_looks_like_one() {
    let key = TestKey::ed("good");
    let provider = Provider::start(&[&key]).await;
    let jwt = provider.settings();
    let server = Running::with(|it| it.jwt = Some(jwt)).await;
    let ask = async |role: Value| {
        let token = key.token(&with(claims("eve", "viewer"), "prowess_role", role));
        server.get_as(&token, "/api/v1/audit").await
    };
    // Somebody who looks for the word in the text would let all of these in.
    for role in [
        json!(["viewer", "Admin"]),
        json!(["viewer", ["admin"]]),
        json!(["viewer", {"role": "admin"}]),
        json!(["viewer", "admin "]),
        json!(["viewer", "viewer,admin"]),
        json!(["viewer", "no-admin"]),
    ] {
        assert!(role.to_string().to_lowercase().contains("admin"), "the control");
        let answer = ask(role.clone()).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{role}");
        assert!(answer.text().contains("has the role viewer"), "{role}: {}", answer.text());
    }
    for role in [json!("Admin"), json!("viewer admin"), json!({"admin": true}), json!([["admin"]])]
    {
        let answer = ask(role.clone()).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "no_role"), "{role}");
    }
    assert_eq!(ask(json!(["viewer", "admin"])).await.status, 200, "the provider's word counts");
}

#[tokio::test]
async fn who_shows_too_many_wrong_tokens_must_wait_and_who_has_a_good_one_is_let_in() {
    let (key, own) = (TestKey::ed("good"), TestKey::ed("own"));
    let provider = Provider::start(&[&key]).await;
    let mut jwt = provider.settings();
    jwt.refresh_seconds = 3600;
    let server = Running::with(|it| {
        it.jwt = Some(jwt);
        it.max_failed_logins_per_minute = 3;
    })
    .await;
    let mut statuses = Vec::new();
    for number in 0..4 {
        let token = own.token(&claims(&format!("eve{number}"), "admin"));
        statuses.push(server.get_as(&token, "/api/v1/sessions").await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429]);
    let good = key.token(&claims("ada", "viewer"));
    assert_eq!(server.get_as(&good, "/api/v1/sessions").await.status, 200);
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn without_the_section_no_token_is_accepted() {
    let key = TestKey::ed("good");
    let server = Running::start().await;
    server.key("ci", prowess_store::Role::Viewer).await;
    let answer = server.get_as(&key.token(&claims("ada", "admin")), "/api/v1/sessions").await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "invalid_key"));
}
