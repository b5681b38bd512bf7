//! Tokens of a provider beside keys.

mod identity_provider;
mod support;

use std::time::Duration;

use futures_util::future::join_all;
use identity_provider::{Day, Provider, TestKey, claims, now, with, without};
use prowess_server::JwtSettings;
use prowess_store::Role;
use serde_json::{Value, json};
use support::{Answer, Running, parts, settings};

const SESSIONS: &str = "/api/v1/sessions";
/// Nothing here takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

async fn server(provider: &Provider, change: impl FnOnce(&mut JwtSettings)) -> Running {
    let mut jwt = provider.settings();
    change(&mut jwt);
    Running::with(|it| {
        it.jwt = Some(jwt);
        it.max_failed_logins_per_minute = 10_000;
    })
    .await
}

async fn send(server: &Running, token: &str, method: &str, path: &str, body: Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let body = (!body.is_null()).then_some(body);
    server.send(method, path, &[("authorization", &bearer)], body).await
}

async fn status(server: &Running, token: &str) -> u16 {
    server.get_as(token, SESSIONS).await.status
}

/// Asks with new tokens until this is the answer.
async fn until(server: &Running, expected: u16, token: impl Fn() -> String) -> Answer {
    let asking = async {
        loop {
            let answer = server.get_as(&token(), SESSIONS).await;
            if answer.status == expected {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, asking).await;
    found.unwrap_or_else(|_| panic!("it was never {expected}"))
}

#[tokio::test]
async fn a_token_of_any_kind_lets_in_with_its_role_and_is_named_in_the_log() {
    let keys = [TestKey::rsa("r"), TestKey::ec("c"), TestKey::ed("d")];
    let provider = Provider::start(&[&keys[0], &keys[1], &keys[2]]).await;
    let server = server(&provider, |_| {}).await;
    assert_eq!(provider.asked(), 0, "keys are fetched when they are needed");
    let refused = server.get(SESSIONS).await;
    assert_eq!((refused.status, refused.code().as_str()), (401, "key_required"));
    assert!(refused.text().contains("token of your provider"), "{}", refused.text());
    let document = |id: &str| json!({"id": id, "name": id, "description": "For tests.", "core_content": "Do it, and do it well.\n"});
    for key in &keys {
        let kind = key.algorithm.to_lowercase();
        let viewer = key.token(&claims("vera", "viewer"));
        let editor = key.token(&claims("ed/itor", "editor"));
        assert_eq!(status(&server, &viewer).await, 200, "{kind}");
        let made = send(&server, &viewer, "POST", "/api/v1/skills", document(&kind)).await;
        assert_eq!((made.status, made.code().as_str()), (403, "forbidden"), "{kind}");
        assert!(made.text().contains("jwt:vera has the role viewer"), "{}", made.text());
        let made = send(&server, &editor, "POST", "/api/v1/skills", document(&kind)).await;
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let admin = keys[0].token(&claims("root", "admin"));
    let log = send(&server, &admin, "GET", "/api/v1/audit", Value::Null).await;
    assert_eq!(log.status, 200, "{}", log.text());
    assert!(log.text().contains("\"jwt:ed%2Fitor\""), "{}", log.text());
    assert_eq!(provider.asked(), 1, "and only once");
}

#[tokio::test]
async fn keys_work_beside_tokens() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let server = server(&provider, |_| {}).await;
    let key = server.key("ci", Role::Viewer).await;
    assert_eq!(status(&server, &key).await, 200);
    assert_eq!(provider.asked(), 0, "a key is no business of the provider");
    assert_eq!(status(&server, &ed.token(&claims("ada", "viewer"))).await, 200);
    assert_eq!(status(&server, "prowess_0123456789ab_x").await, 401);
}

#[tokio::test]
async fn roles_and_names_come_from_the_claims_that_are_set() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let server = server(&provider, |it| {
        it.role_claim = "realm_access.roles".into();
        it.name_claim = "email".into();
    })
    .await;
    let token = |roles: Value| {
        let claims = with(claims("ada", "admin"), "email", json!("ada@example.com"));
        ed.token(&with(claims, "realm_access", json!({"roles": roles})))
    };
    let made = |roles: Value| {
        let (server, token) = (&server, token(roles));
        async move { send(server, &token, "GET", "/api/v1/audit", Value::Null).await }
    };
    assert_eq!(made(json!(["offline_access", "viewer", "admin"])).await.status, 200);
    let viewer = made(json!(["viewer"])).await;
    assert_eq!(viewer.status, 403, "a role in another claim does not count");
    assert!(viewer.text().contains("jwt:ada@example.com has the role viewer"), "{}", viewer.text());
    let nobody = made(json!(["uma_authorization"])).await;
    assert_eq!((nobody.status, nobody.code().as_str()), (403, "no_role"));
    for remedy in ["realm_access.roles", "viewer, editor, publisher and admin", "role_claim"] {
        assert!(nobody.text().contains(remedy), "{}", nobody.text());
    }
    let nameless = ed.token(&claims("ada", "admin"));
    assert_eq!(status(&server, &nameless).await, 401);
}

#[tokio::test]
async fn rotated_keys_are_fetched_and_those_that_are_gone_open_nothing() {
    let (old, new) = (TestKey::ed("old"), TestKey::ec("new"));
    let provider = Provider::start(&[&old]).await;
    let server = server(&provider, |it| it.refresh_seconds = 1).await;
    let number = std::sync::atomic::AtomicUsize::new(0);
    let name = || format!("n{}", number.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let of = |key: &TestKey| key.token(&claims(&name(), "viewer"));
    assert_eq!(status(&server, &of(&old)).await, 200);
    provider.rotate(&[&old, &new]);
    until(&server, 200, || of(&new)).await;
    assert_eq!(status(&server, &of(&old)).await, 200, "both are published");
    assert_eq!(provider.asked(), 2);
    provider.rotate(&[&new]);
    // Nobody looks before the cache is old, or somebody comes with a key that is not known.
    assert_eq!(status(&server, &of(&old)).await, 200);
    let third = TestKey::ed("third");
    provider.rotate(&[&new, &third]);
    until(&server, 200, || of(&third)).await;
    let gone = server.get_as(&of(&old), SESSIONS).await;
    assert_eq!((gone.status, gone.code().as_str()), (401, "invalid_token"));
    assert!(gone.text().contains("no key of its kid"), "{}", gone.text());
}

#[tokio::test]
async fn many_who_come_at_once_and_many_unknown_keys_cause_one_fetch() {
    let (ed, unknown) = (TestKey::ed("d"), TestKey::ed("u"));
    let provider = Provider::start(&[&ed]).await;
    provider.have(Day::Slow);
    let server = server(&provider, |it| it.refresh_seconds = 3600).await;
    let tokens: Vec<String> =
        (0..30).map(|number| ed.token(&claims(&format!("n{number}"), "viewer"))).collect();
    let all = join_all(tokens.iter().map(|token| status(&server, token))).await;
    assert_eq!(all, vec![200; 30]);
    assert_eq!(provider.asked(), 1);
    let flood: Vec<String> = (0..100)
        .map(|number| {
            let header = json!({"alg": "EdDSA", "kid": format!("k{number}")});
            unknown.token_with(&header, &claims("eve", "admin"))
        })
        .collect();
    let all = join_all(flood.iter().map(|token| status(&server, token))).await;
    assert_eq!(all, vec![401; 100]);
    assert_eq!(provider.asked(), 1, "not one fetch more");
    assert_eq!(status(&server, &ed.token(&claims("late", "viewer"))).await, 200);
}

#[tokio::test]
async fn whoever_goes_away_while_keys_are_fetched_keeps_them_from_nobody() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    provider.have(Day::Slow);
    let server = server(&provider, |it| it.refresh_seconds = 3600).await;
    let token = ed.token(&claims("ada", "viewer"));
    let brief = tokio::time::timeout(Duration::from_millis(100), status(&server, &token)).await;
    assert!(brief.is_err(), "the provider takes longer");
    until(&server, 200, || ed.token(&claims("bob", "viewer"))).await;
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn while_the_provider_is_away_old_keys_are_used_and_without_any_it_is_503() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let token = || ed.token(&claims("ada", "viewer"));
    let short = |it: &mut JwtSettings| (it.cache_seconds, it.refresh_seconds) = (1, 1);
    let known = server(&provider, short).await;
    assert_eq!(status(&known, &token()).await, 200);
    provider.have(Day::Broken);
    // It is asked again, and answers nothing of use.
    let asked = provider.asked();
    let waiting = async {
        while provider.asked() < asked + 2 {
            assert_eq!(status(&known, &token()).await, 200);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(status(&known, &token()).await, 200);
    let empty = server(&provider, short).await;
    let away = empty.get_as(&token(), SESSIONS).await;
    assert_eq!((away.status, away.code().as_str()), (503, "jwks_unavailable"));
    assert_eq!(away.header("retry-after"), Some("1"));
    let stranger = TestKey::ed("other").token(&claims("eve", "admin"));
    assert_eq!(status(&known, &stranger).await, 503, "its key may be a new one");
    provider.have(Day::Good);
    until(&empty, 200, token).await;
    until(&known, 401, || TestKey::ed("other").token(&claims("eve", "admin"))).await;
}

#[tokio::test]
async fn keys_become_too_old_while_the_provider_is_away() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let server = server(&provider, |it| {
        (it.cache_seconds, it.refresh_seconds, it.stale_seconds) = (1, 1, 2);
    })
    .await;
    assert_eq!(status(&server, &ed.token(&claims("ada", "viewer"))).await, 200);
    provider.have(Day::Broken);
    let away = until(&server, 503, || ed.token(&claims("ada", "viewer"))).await;
    assert_eq!(away.code(), "jwks_unavailable");
}

#[tokio::test]
async fn a_provider_that_answers_something_else_gives_no_keys() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    for day in [Day::Moved, Day::Large, Day::Silent, Day::Html, Day::Broken] {
        provider.have(day);
        let server = server(&provider, |it| it.fetch_seconds = 1).await;
        let answer = server.get_as(&ed.token(&claims("ada", "viewer")), SESSIONS).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "jwks_unavailable"), "{day:?}");
    }
    provider.have(Day::Good);
    let control = server(&provider, |_| {}).await;
    assert_eq!(status(&control, &ed.token(&claims("ada", "viewer"))).await, 200, "the control");
}

#[tokio::test]
async fn sessions_belong_to_names_of_tokens_as_they_do_to_keys() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let server = server(&provider, |_| {}).await;
    let names = ["ada", "local", "a/b", "a_b"];
    let tokens: Vec<String> = names.iter().map(|name| ed.token(&claims(name, "viewer"))).collect();
    for token in &tokens {
        let body = json!({"session_id": "mine"});
        assert_eq!(send(&server, token, "POST", SESSIONS, body).await.status, 201);
        let listed = server.get_as(token, SESSIONS).await.json();
        assert_eq!(listed["total"], 1, "{listed}");
        let others = format!("{SESSIONS}/mine?user=jwt:someone");
        assert_eq!(server.get_as(token, &others).await.status, 403);
    }
    // A key of the same name is somebody else.
    let key = server.key("ada", Role::Viewer).await;
    assert_eq!(server.get_as(&key, SESSIONS).await.json()["total"], 0);
    assert_eq!(server.get_as(&key, &format!("{SESSIONS}/mine")).await.status, 404);
    let admin = ed.token(&claims("root", "admin"));
    assert_eq!(server.get_as(&admin, SESSIONS).await.json()["total"], 4);
    for user in ["jwt:ada", "jwt:local", "jwt:a%252Fb", "jwt:a_b"] {
        let path = format!("{SESSIONS}/mine?user={user}");
        assert_eq!(server.get_as(&admin, &path).await.status, 200, "{user}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let server = server(&provider, |it| it.leeway_seconds = 0).await;
    let long = ed.token(&claims("ada", "viewer"));
    let body = json!({"session_id": "s"});
    assert_eq!(send(&server, &long, "POST", SESSIONS, body).await.status, 201);
    let brief = ed.token(&with(claims("ada", "viewer"), "exp", json!(now() + 10)));
    let path = format!("{SESSIONS}/s/events");
    let heard = tokio::time::timeout(PATIENCE, server.get_as(&brief, &path)).await;
    assert_eq!(heard.expect("it ends").status, 200);
    let after = server.get_as(&brief, SESSIONS).await;
    assert_eq!((after.status, after.code().as_str()), (401, "token_expired"));
}

#[tokio::test]
async fn an_address_that_others_reach_may_have_tokens_instead_of_keys() {
    let folder = tempfile::tempdir().unwrap();
    let anywhere = "0.0.0.0:0".parse().unwrap();
    let (builder, ..) = parts(&folder);
    assert_eq!(builder.bind(anywhere).await.unwrap_err().code(), "keys_required", "the control");
    let with = |url: &str| {
        let jwt = JwtSettings::new(url, "https://id.example.com", "prowess");
        parts(&folder).0.settings(settings(|it| it.jwt = Some(jwt)))
    };
    let refused = with("http://id.example.com/jwks").bind(anywhere).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_jwt_settings");
    // Nobody is asked for keys before somebody comes.
    with("https://id.example.com/jwks").bind(anywhere).await.unwrap();
}

#[tokio::test]
async fn a_token_may_lack_what_it_need_not_have() {
    let ed = TestKey::ed("d");
    let provider = Provider::start(&[&ed]).await;
    let server = server(&provider, |_| {}).await;
    let good = || claims("ada", "viewer");
    for claims in [
        without(without(good(), "nbf"), "iat"),
        with(good(), "aud", json!(["other", "prowess"])),
        with(good(), "exp", json!(now() - 30)),
        with(good(), "nbf", json!(now() + 30)),
        with(good(), "exp", json!((now() + 60) as f64 + 0.5)),
    ] {
        assert_eq!(status(&server, &ed.token(&claims)).await, 200, "{claims}");
    }
}
