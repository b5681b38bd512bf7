//! Who may do what.

mod support;

use std::time::Duration;

use prowess_server::ServerError;
use prowess_store::{Actor, KeyStore, Role, SqliteStore};
use serde_json::json;
use support::{Running, parts, settings};

/// After this everything that was remembered of a key is looked up again.
const FRESH: Duration = Duration::from_millis(40);

#[tokio::test]
async fn without_keys_everybody_on_this_machine_may_and_with_one_nobody_without() {
    let server = Running::start().await;
    assert_eq!(server.get("/api/v1/sessions").await.status, 200);
    let key = server.key("ci", Role::Viewer).await;
    tokio::time::sleep(FRESH).await;
    let answer = server.get("/api/v1/sessions").await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "key_required"));
    assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"prowess\""));
    assert_eq!(server.get_as(&key, "/api/v1/sessions").await.status, 200);
    let header = [("x-api-key", key.as_str())];
    assert_eq!(server.send("GET", "/api/v1/sessions", &header, None).await.status, 200);
    for path in ["/health", "/ready", "/api/v1/health", "/docs/", "/api/v1/openapi.json"] {
        assert_eq!(server.get(path).await.status, 200, "{path} is open");
    }
}

#[tokio::test]
async fn a_revoked_key_stops_working_at_once_and_the_end_of_the_last_one_opens_nothing() {
    let server = Running::start().await;
    let key = server.key("ci", Role::Viewer).await;
    assert_eq!(server.get_as(&key, "/api/v1/sessions").await.status, 200);
    server.keys.revoke("ci", &Actor::local()).await.unwrap();
    tokio::time::sleep(FRESH).await;
    let answer = server.get_as(&key, "/api/v1/sessions").await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "invalid_key"));
    // It was asked for keys before.
    server.key("other", Role::Viewer).await;
    tokio::time::sleep(FRESH).await;
    assert_eq!(server.get("/api/v1/sessions").await.status, 401);
    server.keys.revoke("other", &Actor::local()).await.unwrap();
    tokio::time::sleep(FRESH).await;
    assert_eq!(server.get("/api/v1/sessions").await.status, 401);
}

#[tokio::test]
async fn who_has_ever_made_a_key_needs_one_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let before = SqliteStore::open(folder.path().join("prowess.db")).unwrap();
    before.keys().create("ci", Role::Viewer, None, &Actor::local()).await.unwrap();
    before.keys().revoke("ci", &Actor::local()).await.unwrap();
    let server = Running::at(folder, |_| {}).await;
    let answer = server.get("/api/v1/sessions").await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "key_required"));
    assert!(answer.text().contains("prowess keys create"), "{}", answer.text());
}

#[tokio::test]
async fn a_key_ends_when_its_time_is_over() {
    let server = Running::start().await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(800);
    let made = server.keys.create("brief", Role::Viewer, Some(soon), &Actor::local()).await;
    let key = made.unwrap().1.expose().to_owned();
    assert_eq!(server.get_as(&key, "/api/v1/sessions").await.status, 200);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(server.get_as(&key, "/api/v1/sessions").await.status, 401);
}

#[tokio::test]
async fn wrong_keys_are_refused_whatever_is_wrong_with_them() {
    let server = Running::start().await;
    let key = server.key("ci", Role::Viewer).await;
    let mut other = key.clone();
    let last = if other.pop() == Some('A') { 'B' } else { 'A' };
    other.push(last);
    let id = &key[8..20];
    let wrong = [
        other,
        key.replace(id, "000000000000"),
        key[..key.len() - 1].to_owned(),
        key.to_uppercase(),
        "' OR 1=1 --".to_owned(),
    ];
    for wrong in wrong {
        assert_eq!(server.get_as(&wrong, "/api/v1/sessions").await.status, 401, "{wrong}");
    }
    let basic = [("authorization", "Basic eDp5")];
    let answer = server.send("GET", "/api/v1/sessions", &basic, None).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "invalid_credentials"));
    assert_eq!(server.get_as(&key, "/api/v1/sessions").await.status, 200, "the control");
}

#[tokio::test]
async fn who_shows_too_many_wrong_keys_must_wait_and_who_has_a_key_is_let_in() {
    let server = Running::with(|it| it.max_failed_logins_per_minute = 3).await;
    let (good, late) =
        (server.key("good", Role::Viewer).await, server.key("late", Role::Viewer).await);
    assert_eq!(server.get_as(&good, "/api/v1/sessions").await.status, 200);
    let mut statuses = Vec::new();
    for number in 0..4 {
        statuses.push(server.get_as(&format!("wrong-{number}"), "/api/v1/sessions").await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429]);
    assert_eq!(
        server.get_as(&late, "/api/v1/sessions").await.status,
        200,
        "it was not seen before"
    );
    let blocked = server.get_as("wrong-4", "/api/v1/sessions").await;
    assert_eq!((blocked.status, blocked.code().as_str()), (429, "too_many_failed_logins"));
    assert!(blocked.header("retry-after").is_some());
    tokio::time::sleep(FRESH).await;
    assert_eq!(server.get_as(&good, "/api/v1/sessions").await.status, 200);
}

#[tokio::test]
async fn sessions_belong_to_keys_and_only_an_admin_sees_those_of_others() {
    let server = Running::start().await;
    let mut keys = Vec::new();
    for role in Role::ALL {
        keys.push((role, server.key(role.as_str(), role).await));
    }
    let send = |key: &str, method: &'static str, path: String, body| {
        let (server, value) = (&server, format!("Bearer {key}"));
        async move { server.send(method, &path, &[("authorization", &value)], body).await }
    };
    for (role, key) in &keys {
        let body = Some(json!({"session_id": format!("of-{role}")}));
        assert_eq!(send(key, "POST", "/api/v1/sessions".into(), body).await.status, 201);
    }
    // Everybody may do everything with a session of their own.
    let own = [
        ("GET", "", 200),
        ("GET", "/tools", 200),
        ("GET", "/prompt", 200),
        ("GET", "/events?follow=false", 200),
        ("POST", "/turns", 200),
    ];
    for (role, key) in &keys {
        for (method, rest, status) in own {
            let path = format!("/api/v1/sessions/of-{role}{rest}");
            assert_eq!(send(key, method, path, None).await.status, status, "{role} {rest}");
        }
        let listed = send(key, "GET", "/api/v1/sessions".into(), None).await.json();
        let expected = if *role == Role::Admin { 4 } else { 1 };
        assert_eq!(listed["total"], expected, "{role}: {listed}");
        // Under its name it is not there; as that of its owner only an admin sees it.
        let others = if *role == Role::Viewer { Role::Editor } else { Role::Viewer };
        let path = format!("/api/v1/sessions/of-{others}");
        assert_eq!(send(key, "GET", path.clone(), None).await.status, 404, "{role}");
        let allowed = if *role == Role::Admin { 200 } else { 403 };
        for rest in ["", "/tools", "/prompt"] {
            let path = format!("{path}{rest}?user={others}");
            assert_eq!(send(key, "GET", path, None).await.status, allowed, "{role} {rest}");
        }
        let path = format!("/api/v1/sessions?user={others}");
        assert_eq!(send(key, "GET", path, None).await.status, allowed, "{role}");
    }
    let (_, viewer) = &keys[0];
    let path = "/api/v1/sessions/of-admin?user=admin".to_owned();
    assert_eq!(send(viewer, "DELETE", path, None).await.status, 403);
    assert_eq!(send(viewer, "DELETE", "/api/v1/sessions/of-viewer".into(), None).await.status, 204);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_key_first() {
    let folder = tempfile::tempdir().unwrap();
    let (builder, store, _) = parts(&folder);
    let refused = builder.bind("0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert_eq!(refused.code(), "keys_required");
    assert!(refused.to_string().contains("prowess keys create"), "{refused}");
    store.keys().create("a", Role::Admin, None, &Actor::local()).await.unwrap();
    let (builder, ..) = parts(&folder);
    let bound =
        builder.settings(settings(|_| {})).bind("0.0.0.0:0".parse().unwrap()).await.unwrap();
    let (builder, ..) = parts(&folder);
    let address = format!("0.0.0.0:{}", bound.local_addr.port()).parse().unwrap();
    let taken = builder.bind(address).await.unwrap_err();
    assert!(matches!(taken, ServerError::InUse(_)), "{taken}");
    assert_eq!(taken.code(), "address_in_use");
}
