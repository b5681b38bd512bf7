//! What a Redis server must be like to be opened, and what is said of it.

mod support;

use std::sync::Arc;

use prowess_catalog::{ContentFile, ContentStore, ResourcePath, SkillContents};
use prowess_format::{Options, Skill};
use prowess_store::{
    About, Actor, Eviction, NewVersion, RedisOpenError, RedisSettings, RedisStore, Registry, Store,
    VersionStore,
};
use support::redis_server::{ALWAYS, EVERY_SECOND, IN_MEMORY, RedisServer};
use support::{key, say};

async fn open(server: &RedisServer) -> Result<RedisStore, RedisOpenError> {
    RedisStore::open(&server.url(), RedisStore::PREFIX).await
}

fn new(id: &str) -> NewVersion {
    let text = format!("---\nname: {id}\ndescription: For tests.\n---\nDo it.\n");
    let about = About::of(&Skill::parse_bytes(text.as_bytes(), &Options::new()).skill.unwrap());
    let file = ContentFile::new(ResourcePath::parse("SKILL.md").unwrap(), false, text);
    let contents = SkillContents::of(vec![file]).into();
    NewVersion::new(id.parse().unwrap(), contents, about, Actor::local())
}

fn names(registry: &Registry) -> Vec<String> {
    registry.all().iter().map(|it| it.skill.id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_lost_its_data_is_used_on_and_opened_again() {
    let test = "a_server_that_has_lost_its_data_is_used_on_and_opened_again";
    let Some(mut server) = RedisServer::start(test) else { return };
    let store = open(&server).await.unwrap();
    let registry = Registry::new(Arc::new(store.versions()));
    for id in ["a", "b", "c"] {
        store.versions().append(new(id)).await.unwrap();
    }
    registry.refresh().await.unwrap();
    assert_eq!(names(&registry), ["a", "b", "c"]);
    server.start_again();
    // Whoever has it open goes on, and writes.
    while let Err(error) = say(&store.sessions(), &key("s"), 0, "after").await {
        assert_eq!(error.code(), "store_unavailable", "{error}");
    }
    store.versions().append(new("b")).await.unwrap();
    let content = store.content();
    tokio::task::spawn_blocking(move || content.put(b"after").unwrap()).await.unwrap();
    assert!(registry.refresh().await.unwrap());
    assert_eq!(names(&registry), ["b"], "what is gone is still told");
    let again = open(&server).await.unwrap();
    assert_eq!(again.versions().changes(None).await.unwrap().skills.len(), 1);
    say(&again.sessions(), &key("s"), 1, "again").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_removes_keys_is_opened_only_by_who_accepts_that() {
    let test = "a_server_that_removes_keys_is_opened_only_by_who_accepts_that";
    let settings = ["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = RedisServer::start_with(test, &settings) else { return };
    let error = open(&server).await.unwrap_err();
    assert_eq!(error.code(), "store_evicts");
    assert!(error.to_string().contains("allkeys-lru"), "{error}");
    let mut accepting = RedisSettings::default();
    accepting.eviction = Eviction::Accept;
    RedisStore::open_with(&server.url(), RedisStore::PREFIX, accepting).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_may_be_lost_is_told() {
    for (settings, told) in [
        (ALWAYS, None),
        (EVERY_SECOND, Some("appendfsync everysec")),
        (IN_MEMORY, Some("appendonly yes")),
    ] {
        let Some(server) = RedisServer::start_with("whatever_may_be_lost_is_told", settings) else {
            return;
        };
        let caution = Store::from(&open(&server).await.unwrap()).caution;
        assert_eq!(caution.is_some(), told.is_some(), "{caution:?}");
        assert!(told.is_none_or(|told| caution.unwrap().contains(told)), "{caution:?}");
    }
}
