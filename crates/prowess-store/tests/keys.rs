//! Keys on a real database.

mod support;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use prowess_store::{
    Actor, KeyError, KeyStore, PresentedKey, Role, SqliteKeys, SqliteStore, Store,
};
use support::place::{Place, on_each_durable_store};

on_each_durable_store! {
    keys_are_listed_revoked_by_name_or_id_and_every_change_is_audited
    a_name_is_given_again_when_its_key_is_revoked
    a_key_ends_when_its_time_is_over
    of_many_who_want_a_name_one_gets_it
}

fn keys() -> (tempfile::TempDir, SqliteKeys) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("prowess.db")).unwrap();
    (folder, store.keys())
}

/// What the log says, the oldest first: actor, action, subject, detail.
async fn audit(store: &Store) -> Vec<[String; 4]> {
    let log = store.versions.audit(None, 100).await.unwrap();
    let shown = log
        .into_iter()
        .rev()
        .map(|it| [it.actor.to_string(), it.action, it.subject, it.detail.to_string()]);
    shown.collect()
}

#[tokio::test]
async fn a_key_is_whole_only_when_it_is_made_and_its_bytes_are_nowhere_on_the_disk() {
    let (folder, keys) = keys();
    let (key, secret) = keys.create("ci", Role::Editor, None, &Actor::local()).await.unwrap();
    let presented = PresentedKey::parse(secret.expose()).unwrap();
    let stored = keys.find(presented.id()).await.unwrap().unwrap();
    assert_eq!(stored.key, key);
    assert!(stored.has_secret(&presented));
    let secret_part = secret.expose().rsplit_once(presented.id()).unwrap().1;
    let (needle, control) = (&secret_part.as_bytes()[1..], key.id.as_bytes());
    let holds = |bytes: &[u8], it: &[u8]| bytes.windows(it.len()).any(|window| window == it);
    let mut found_id = false;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!holds(&bytes, needle));
        found_id |= holds(&bytes, control);
    }
    assert!(found_id, "the control was not found");
    drop(keys);
}

async fn keys_are_listed_revoked_by_name_or_id_and_every_change_is_audited(place: Place) {
    let store = place.open().await;
    let keys = &store.keys;
    let actor = Actor("key:boss".into());
    let (one, _) = keys.create("one", Role::Viewer, None, &actor).await.unwrap();
    let (two, _) = keys.create("two", Role::Admin, None, &Actor::local()).await.unwrap();
    assert_eq!(keys.usable().await, Ok(2));
    let revoked = keys.revoke(&one.id, &actor).await.unwrap();
    assert!(revoked.revoked.is_some() && !revoked.is_usable(Timestamp::now()));
    assert_eq!(keys.revoke("one", &actor).await.unwrap(), revoked, "the first time counts");
    assert_eq!(keys.usable().await, Ok(1));
    assert_eq!(keys.list().await.unwrap(), [revoked, two]);
    assert_eq!(keys.revoke("three", &actor).await, Err(KeyError::NoKey("three".into())));
    let log = audit(&store).await;
    let what: Vec<[&str; 3]> = log.iter().map(|it| [&*it[0], &*it[1], &*it[2]]).collect();
    assert_eq!(
        what,
        [
            ["key:boss", "key.create", "one"],
            ["local", "key.create", "two"],
            ["key:boss", "key.revoke", "one"]
        ]
    );
    assert_eq!(log[2][3], format!(r#"{{"id":"{}"}}"#, one.id));
}

async fn a_name_is_given_again_when_its_key_is_revoked(place: Place) {
    let store = place.open().await;
    let (keys, actor) = (&store.keys, Actor::local());
    let (old, secret) = keys.create("ci", Role::Viewer, None, &actor).await.unwrap();
    let taken = keys.create("ci", Role::Admin, None, &actor).await.unwrap_err();
    assert_eq!(taken, KeyError::Exists("ci".into()));
    assert_eq!(audit(&store).await.len(), 1, "what failed is in no log");
    let old = keys.revoke(&old.id, &actor).await.unwrap();
    let (new, _) = keys.create("ci", Role::Admin, None, &actor).await.unwrap();
    assert_eq!(keys.list().await.unwrap(), [old.clone(), new.clone()]);
    // The old one opens nothing, and the name means the new one.
    let presented = PresentedKey::parse(secret.expose()).unwrap();
    let found = keys.find(presented.id()).await.unwrap().unwrap();
    assert!(found.has_secret(&presented) && !found.key.is_usable(Timestamp::now()));
    let taken = keys.create("ci", Role::Viewer, None, &actor).await.unwrap_err();
    assert_eq!(taken, KeyError::Exists("ci".into()));
    let revoked = keys.revoke("ci", &actor).await.unwrap();
    assert_eq!((&revoked.id, revoked.role), (&new.id, Role::Admin));
    assert_eq!(keys.revoke("ci", &actor).await.unwrap(), revoked, "the newest one is meant");
    assert_eq!(keys.usable().await, Ok(0));
    // An id is nobody's name.
    let taken = keys.create(&old.id, Role::Viewer, None, &actor).await.unwrap_err();
    assert_eq!(taken, KeyError::Exists(old.id));
}

async fn a_key_ends_when_its_time_is_over(place: Place) {
    let store = place.open().await;
    let keys = &store.keys;
    let now = Timestamp::now();
    let past = keys.create("old", Role::Viewer, Some(now), &Actor::local()).await.unwrap_err();
    assert_eq!(past.code(), "key_expired");
    let soon = now + SignedDuration::from_secs(3600);
    let (key, _) = keys.create("new", Role::Viewer, Some(soon), &Actor::local()).await.unwrap();
    let expires = key.expires.unwrap();
    let moment = SignedDuration::from_millis(1);
    assert!(key.is_usable(expires - moment) && !key.is_usable(expires));
}

async fn of_many_who_want_a_name_one_gets_it(place: Place) {
    let store = place.open().await;
    let keys = &store.keys;
    let wanted: Vec<_> = (0..20)
        .map(|_| {
            let keys = Arc::clone(keys);
            tokio::spawn(
                async move { keys.create("ci", Role::Viewer, None, &Actor::local()).await },
            )
        })
        .collect();
    let mut made = 0;
    for wanted in wanted {
        match wanted.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(error.code(), "key_exists"),
        }
    }
    assert_eq!(made, 1);
}
