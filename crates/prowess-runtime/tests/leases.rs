//! Engines that share sessions: one works on a session at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use prowess_catalog::{Catalog, MemorySource};
use prowess_runtime::{
    AgentName, Fence, LeaseSettings, Lifetime, MemorySessions, Message, Revision, Runtime,
    RuntimeError, SessionDelta, SessionKey, SessionStore, StoreError, ToolCall, ToolDeclaration,
    ToolOutcome, tool_fn,
};
use serde_json::json;
use tokio::sync::Notify;

const SKILL: &str = "---\nname: greet\ndescription: Says hello.\n---\nSay hello.\n";

/// A tool that waits until it is told to go on, and says that it has begun.
#[derive(Clone, Default)]
struct Slow {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
    runs: Arc<AtomicUsize>,
}

/// An engine on this store, with this name.
async fn engine(store: &Arc<MemorySessions>, leases: LeaseSettings, slow: &Slow) -> Runtime {
    let catalog = Catalog::builder().source(MemorySource::new("a").with_skill("greet", SKILL));
    let catalog = catalog.build();
    catalog.refresh().await;
    let slow = slow.clone();
    let declaration = ToolDeclaration::new("slow", "Waits.", json!({"type": "object"}));
    let tool = tool_fn(declaration, move |_| {
        let slow = slow.clone();
        async move {
            slow.runs.fetch_add(1, Ordering::SeqCst);
            slow.begun.notify_one();
            slow.go_on.notified().await;
            ToolOutcome::text("done")
        }
    });
    let sessions = Arc::clone(store) as Arc<dyn SessionStore>;
    Runtime::builder(catalog).sessions(sessions).leases(leases).tool(tool).build().unwrap()
}

fn key() -> SessionKey {
    "s".parse().unwrap()
}

fn leases(holder: &str) -> LeaseSettings {
    LeaseSettings::new(holder)
}

async fn call(engine: &Runtime, id: &str, tool: &str) -> Result<ToolOutcome, RuntimeError> {
    let call = ToolCall::new(id, tool, json!({"skill": "greet"}));
    engine.dispatch(&key(), &AgentName::default(), call).await
}

/// Whoever is told this may try again.
fn code(result: &Result<ToolOutcome, RuntimeError>) -> &'static str {
    result.as_ref().map_or_else(RuntimeError::code, |_| "ok")
}

#[tokio::test]
async fn whoever_works_on_a_session_is_waited_for() {
    let (store, slow) = (Arc::default(), Slow::default());
    let one = engine(&store, leases("one"), &slow).await;
    let two = engine(&store, leases("two"), &slow).await;
    let busy = tokio::spawn(async move { call(&one, "1", "slow").await });
    slow.begun.notified().await;
    let mut waiting = tokio::spawn(async move { call(&two, "2", "load_skill").await });
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "it did not wait: {early:?}");
    slow.go_on.notify_one();
    assert_eq!(code(&busy.await.unwrap()), "ok");
    assert_eq!(code(&waiting.await.unwrap()), "ok");
    let stored = store.get(&key()).await.unwrap().unwrap();
    assert_eq!(stored.revision, Revision(2));
}

#[tokio::test]
async fn a_call_that_another_engine_is_carrying_out_is_carried_out_once() {
    let (store, slow) = (Arc::default(), Slow::default());
    let one = engine(&store, leases("one"), &slow).await;
    let two = engine(&store, leases("two"), &slow).await;
    let first = tokio::spawn(async move { call(&one, "1", "slow").await });
    slow.begun.notified().await;
    let again = tokio::spawn(async move { call(&two, "1", "slow").await });
    slow.go_on.notify_one();
    let (first, again) = (first.await.unwrap().unwrap(), again.await.unwrap().unwrap());
    assert_eq!((first.content.as_str(), again.content.as_str()), ("done", "done"));
    assert_eq!(slow.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_that_the_session_is_busy() {
    let (store, slow) = (Arc::<MemorySessions>::default(), Slow::default());
    store.lease(&key(), "another", Duration::from_secs(3600)).await.unwrap();
    let impatient = leases("one").with_patience(Duration::from_millis(20));
    let engine = engine(&store, impatient, &slow).await;
    assert_eq!(code(&call(&engine, "1", "load_skill").await), "session_busy");
    assert_eq!(store.get(&key()).await.unwrap(), None);
}

#[tokio::test]
async fn the_session_of_one_that_has_died_is_taken_over_and_it_comes_too_late() {
    let (store, slow) = (Arc::<MemorySessions>::default(), Slow::default());
    let fence = store.lease(&key(), "dead", Duration::from_millis(50)).await.unwrap();
    let engine = engine(&store, leases("alive"), &slow).await;
    assert_eq!(code(&call(&engine, "1", "load_skill").await), "ok");
    let messages = vec![Message::user("too late")];
    let late = SessionDelta::default().with_messages(messages).with_fence(Some(fence));
    let late = store.commit(&key(), Revision(1), late, Vec::new()).await;
    assert!(matches!(late, Err(StoreError::Fenced { .. })), "{late:?}");
    let stored = store.messages(&key(), &AgentName::default()).await.unwrap();
    assert!(stored.iter().all(|message| message.text() != "too late"));
}

/// A store whose time passes as the tasks' does.
fn store_in_step() -> Arc<MemorySessions> {
    let begun = tokio::time::Instant::now();
    let clock = move || Timestamp::UNIX_EPOCH + begun.elapsed();
    Arc::new(MemorySessions::new().with_lifetime(Lifetime::default().with_clock(clock)))
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_prolonged_as_long_as_somebody_works() {
    let (store, slow) = (store_in_step(), Slow::default());
    let one = engine(&store, leases("one"), &slow).await;
    let busy = tokio::spawn(async move { call(&one, "1", "slow").await });
    slow.begun.notified().await;
    // Many times as long as the lease lasts by itself.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let other = store.lease(&key(), "two", Duration::from_secs(1)).await;
    slow.go_on.notify_one();
    assert_eq!(code(&busy.await.unwrap()), "ok");
    assert!(matches!(other, Err(StoreError::Leased { .. })), "{other:?}");
    // Afterwards it is free.
    store.lease(&key(), "two", Duration::from_secs(1)).await.unwrap();
}

#[tokio::test]
async fn parts_of_one_engine_hold_a_session_together_and_the_last_one_gives_it_back() {
    let (store, slow) = (Arc::<MemorySessions>::default(), Slow::default());
    let engine = engine(&store, leases("one"), &slow).await;
    let others = async || store.lease(&key(), "two", Duration::from_secs(9)).await.is_ok();
    let whole = engine.hold(&key()).await.unwrap();
    assert_eq!(code(&call(&engine, "1", "load_skill").await), "ok");
    let part = engine.hold(&key()).await.unwrap();
    whole.release().await;
    assert!(!others().await);
    assert_eq!(code(&call(&engine, "2", "load_skill").await), "ok");
    part.release().await;
    assert!(others().await);
}

#[tokio::test]
async fn whoever_takes_no_leases_is_refused_while_somebody_holds_the_session() {
    let (store, slow) = (Arc::<MemorySessions>::default(), Slow::default());
    let engine = engine(&store, leases("one"), &slow).await;
    let hold = engine.hold(&key()).await.unwrap();
    let alone = store.commit(&key(), Revision(0), SessionDelta::default(), Vec::new()).await;
    assert!(matches!(alone, Err(StoreError::Leased { .. })), "{alone:?}");
    hold.release().await;
    store.commit(&key(), Revision(0), SessionDelta::default(), Vec::new()).await.unwrap();
}

/// An engine whose lease was taken over while it carried out a call, and given back.
async fn overtaken(store: &Arc<MemorySessions>, slow: &Slow) -> (Runtime, Call) {
    let lease = leases("one").with_time(Duration::from_secs(3));
    let one = engine(store, lease, slow).await;
    let first = one.clone();
    let busy = tokio::spawn(async move { call(&first, "1", "slow").await });
    slow.begun.notified().await;
    // It slept for too long, and another one came and went.
    let fence = store.steal(&key()).await;
    store.release(&key(), fence).await.unwrap();
    (one, busy)
}

type Call = tokio::task::JoinHandle<Result<ToolOutcome, RuntimeError>>;

/// Takes a session from whoever has it, as if their time were over.
trait Steal {
    async fn steal(&self, key: &SessionKey) -> Fence;
}

impl Steal for MemorySessions {
    async fn steal(&self, key: &SessionKey) -> Fence {
        self.lease(key, "one", Duration::ZERO).await.unwrap();
        self.lease(key, "two", Duration::from_secs(3600)).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_lease_the_session_is_taken_anew_while_the_old_call_still_runs() {
    let (store, slow) = (store_in_step(), Slow::default());
    let (one, busy) = overtaken(&store, &slow).await;
    // Until the lease would have been prolonged.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(code(&call(&one, "2", "load_skill").await), "ok");
    slow.go_on.notify_one();
    assert_eq!(code(&busy.await.unwrap()), "lease_lost");
    assert_eq!(store.get(&key()).await.unwrap().unwrap().revision, Revision(1));
    // And it is free again.
    store.lease(&key(), "three", Duration::from_secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_refused_shows_that_the_lease_is_lost() {
    let (store, slow) = (store_in_step(), Slow::default());
    let (one, busy) = overtaken(&store, &slow).await;
    assert_eq!(code(&call(&one, "2", "load_skill").await), "lease_lost");
    assert_eq!(code(&call(&one, "2", "load_skill").await), "ok");
    slow.go_on.notify_one();
    assert_eq!(code(&busy.await.unwrap()), "lease_lost");
}

#[tokio::test(start_paused = true)]
async fn whoever_holds_a_session_for_several_things_does_all_of_them_with_one_lease() {
    let (store, slow) = (store_in_step(), Slow::default());
    let one = engine(&store, leases("one"), &slow).await;
    let turn = one.hold(&key()).await.unwrap();
    let within = turn.during(async {
        let before = code(&call(&one, "1", "load_skill").await);
        let fence = store.steal(&key()).await;
        store.release(&key(), fence).await.unwrap();
        let first = code(&call(&one, "2", "unload_skill").await);
        (before, first, code(&call(&one, "3", "unload_skill").await))
    });
    assert_eq!(within.await, ("ok", "lease_lost", "lease_lost"));
    // Others of the engine are not bound to it.
    assert_eq!(code(&call(&one, "4", "unload_skill").await), "ok");
    turn.release().await;
}
