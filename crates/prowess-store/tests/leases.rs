//! What every store promises to whoever works on a session alone.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_runtime::{
    Fence, Lifetime, Message, Revision, SessionDelta, SessionKey, SessionStore, StoreError,
};
use support::place::{Place, on_each_durable_store, on_each_store};
use support::{event, key, main_agent, remember, say, transcript};

on_each_store! {
    a_session_is_taken_once_whether_it_exists_or_not
    who_is_refused_is_told_by_whom_and_for_how_long
    the_same_holder_takes_it_from_itself_under_a_new_number
    numbers_grow_and_are_never_given_twice
    a_lease_whose_time_is_over_can_be_taken
    a_lease_whose_time_is_over_and_that_nobody_took_can_be_renewed
    a_renewed_lease_lasts
    what_is_released_can_be_taken_and_a_lease_that_is_gone_stays_gone
    a_late_commit_is_refused_and_changes_nothing
    a_commit_without_a_lease_is_refused_while_somebody_has_one
    other_sessions_are_free
    a_deleted_session_is_still_leased
    a_lease_beyond_all_time_is_for_ever
    of_many_who_want_a_session_one_gets_it
    a_session_that_is_passed_around_loses_nothing
}

mod of_another_process {
    use super::*;

    on_each_durable_store! { counts_too }

    async fn counts_too(place: Place) {
        let (one, two) =
            (place.sessions(Lifetime::default()).await, place.sessions(Lifetime::default()).await);
        let key = key("a");
        let fence = one.lease(&key, "one", HOUR).await.unwrap();
        assert_leased(&two.lease(&key, "two", HOUR).await.unwrap_err(), "one");
        say_with(&*two, &key, 0, "x", None).await.unwrap_err();
        say_with(&*one, &key, 0, "x", Some(fence)).await.unwrap();
        one.release(&key, fence).await.unwrap();
        let next = two.lease(&key, "two", HOUR).await.unwrap();
        assert!(next > fence);
        assert_fenced(&say_with(&*one, &key, 1, "late", Some(fence)).await.unwrap_err(), fence);
        say_with(&*two, &key, 1, "y", Some(next)).await.unwrap();
        assert_eq!(transcript(&*one, &key, &main_agent()).await, ["x", "y"]);
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(1);

fn assert_leased(error: &StoreError, by: &str) {
    let StoreError::Leased { holder, expires_in } = error else { panic!("{error:?}") };
    assert_eq!(holder, by);
    assert!(*expires_in > Duration::ZERO && *expires_in <= HOUR, "{expires_in:?}");
    assert_eq!(error.code(), "session_busy");
}

fn assert_fenced(error: &StoreError, gone: Fence) {
    assert!(matches!(error, StoreError::Fenced { fence, .. } if *fence == gone), "{error:?}");
    assert_eq!(error.code(), "lease_lost");
}

/// A commit with a lease, or without one.
async fn say_with(
    store: &dyn SessionStore,
    key: &SessionKey,
    expected: u64,
    text: &str,
    fence: Option<Fence>,
) -> Result<Revision, StoreError> {
    let agent = main_agent();
    let delta: SessionDelta =
        remember(&agent, "said", text).with_messages(vec![Message::user(text)]).with_fence(fence);
    store.commit(key, Revision(expected), delta, vec![event(&agent, text)]).await
}

/// Takes a session as soon as whoever has it has had it long enough.
async fn insist(store: &dyn SessionStore, key: &SessionKey, holder: &str) -> Fence {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match store.lease(key, holder, HOUR).await {
            Ok(fence) => return fence,
            Err(StoreError::Leased { .. }) if Instant::now() < end => {
                tokio::time::sleep(MOMENT).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn a_session_is_taken_once_whether_it_exists_or_not(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    say(&*store, &key("old"), 0, "x").await.unwrap();
    for name in ["old", "new"] {
        let key = key(name);
        store.lease(&key, "one", HOUR).await.unwrap();
        assert_leased(&store.lease(&key, "two", HOUR).await.unwrap_err(), "one");
    }
    // Whoever takes a session has not made it.
    assert_eq!(store.get(&key("new")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap().len(), 1);
    assert!(!store.delete(&key("new")).await.unwrap());
}

async fn who_is_refused_is_told_by_whom_and_for_how_long(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let holder = "engine 'ä' \"1\" \\ 😀";
    store.lease(&key, holder, HOUR).await.unwrap();
    let error = store.lease(&key, "two", HOUR).await.unwrap_err();
    assert_leased(&error, holder);
    let StoreError::Leased { expires_in, .. } = error else { unreachable!() };
    assert!(expires_in > HOUR / 2, "{expires_in:?}");
}

async fn the_same_holder_takes_it_from_itself_under_a_new_number(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let first = store.lease(&key, "one", HOUR).await.unwrap();
    let second = store.lease(&key, "one", HOUR).await.unwrap();
    assert!(second > first);
    assert_fenced(&store.renew(&key, first, HOUR).await.unwrap_err(), first);
    assert_fenced(&say_with(&*store, &key, 0, "x", Some(first)).await.unwrap_err(), first);
    say_with(&*store, &key, 0, "x", Some(second)).await.unwrap();
}

async fn numbers_grow_and_are_never_given_twice(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let mut last = Fence(0);
    for round in 0..20 {
        for name in ["a", "b"] {
            let fence = store.lease(&key(name), "one", HOUR).await.unwrap();
            assert!(fence > last, "{fence:?} {last:?}");
            last = fence;
            if round % 2 == 0 {
                store.release(&key(name), fence).await.unwrap();
            }
            if round % 3 == 0 {
                store.delete(&key(name)).await.unwrap();
            }
        }
    }
}

async fn a_lease_whose_time_is_over_can_be_taken(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let first = store.lease(&key, "one", MOMENT).await.unwrap();
    let second = insist(&*store, &key, "two").await;
    assert!(second > first);
    assert_fenced(&store.renew(&key, first, HOUR).await.unwrap_err(), first);
    assert_leased(&store.lease(&key, "one", HOUR).await.unwrap_err(), "two");
}

async fn a_lease_whose_time_is_over_and_that_nobody_took_can_be_renewed(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let fence = store.lease(&key, "one", Duration::ZERO).await.unwrap();
    // Without a lease it goes as well, because nobody has one any more.
    say_with(&*store, &key, 0, "x", None).await.unwrap();
    say_with(&*store, &key, 1, "y", Some(fence)).await.unwrap();
    store.renew(&key, fence, HOUR).await.unwrap();
    assert_leased(&store.lease(&key, "two", HOUR).await.unwrap_err(), "one");
}

async fn a_renewed_lease_lasts(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let fence = store.lease(&key, "one", MOMENT).await.unwrap();
    store.renew(&key, fence, HOUR).await.unwrap();
    tokio::time::sleep(MOMENT * 2).await;
    assert_leased(&store.lease(&key, "two", HOUR).await.unwrap_err(), "one");
    say_with(&*store, &key, 0, "x", None).await.unwrap_err();
    // And not longer than it was renewed for.
    store.renew(&key, fence, MOMENT).await.unwrap();
    insist(&*store, &key, "two").await;
}

async fn what_is_released_can_be_taken_and_a_lease_that_is_gone_stays_gone(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    for round in 0..2 {
        let first = store.lease(&key, "one", HOUR).await.unwrap();
        store.release(&key, first).await.unwrap();
        assert_fenced(&store.renew(&key, first, HOUR).await.unwrap_err(), first);
        assert_fenced(&say_with(&*store, &key, round, "x", Some(first)).await.unwrap_err(), first);
        let second = store.lease(&key, "two", HOUR).await.unwrap();
        // It does not take the next one with it.
        store.release(&key, first).await.unwrap();
        assert_leased(&store.lease(&key, "one", HOUR).await.unwrap_err(), "two");
        say_with(&*store, &key, round, "x", Some(second)).await.unwrap();
        store.release(&key, second).await.unwrap();
        store.release(&key, second).await.unwrap();
    }
    say_with(&*store, &key, 2, "x", None).await.unwrap();
}

async fn a_late_commit_is_refused_and_changes_nothing(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let first = store.lease(&key, "one", MOMENT).await.unwrap();
    say_with(&*store, &key, 0, "in time", Some(first)).await.unwrap();
    let second = insist(&*store, &key, "two").await;
    for revision in [0, 1, 2] {
        let late = say_with(&*store, &key, revision, "late", Some(first)).await.unwrap_err();
        assert_fenced(&late, first);
    }
    let never = Fence(second.0 + 1_000);
    assert_fenced(&say_with(&*store, &key, 1, "never", Some(never)).await.unwrap_err(), never);
    assert_eq!(say_with(&*store, &key, 1, "next", Some(second)).await.unwrap(), Revision(2));
    assert_eq!(transcript(&*store, &key, &main_agent()).await, ["in time", "next"]);
    // Also when nobody has it any more.
    store.release(&key, second).await.unwrap();
    assert_fenced(&say_with(&*store, &key, 2, "late", Some(second)).await.unwrap_err(), second);
}

async fn a_commit_without_a_lease_is_refused_while_somebody_has_one(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let fence = store.lease(&key, "one", HOUR).await.unwrap();
    assert_leased(&say_with(&*store, &key, 0, "x", None).await.unwrap_err(), "one");
    say_with(&*store, &key, 0, "mine", Some(fence)).await.unwrap();
    assert_leased(&say_with(&*store, &key, 1, "x", None).await.unwrap_err(), "one");
    // With a lease the revision counts all the same.
    let error = say_with(&*store, &key, 0, "x", Some(fence)).await.unwrap_err();
    assert_eq!(error.code(), "conflict");
    store.release(&key, fence).await.unwrap();
    say_with(&*store, &key, 1, "free", None).await.unwrap();
    assert_eq!(transcript(&*store, &key, &main_agent()).await, ["mine", "free"]);
}

async fn other_sessions_are_free(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let fence = store.lease(&key("a/b/c"), "one", HOUR).await.unwrap();
    for name in ["a/b/C", "a/c/b", "A/b/c", "a/b/cc"] {
        say(&*store, &key(name), 0, "x").await.unwrap();
        let own = store.lease(&key(name), "two", HOUR).await.unwrap();
        assert_ne!(own, fence);
        let wrong = say_with(&*store, &key(name), 1, "x", Some(fence)).await.unwrap_err();
        assert_fenced(&wrong, fence);
    }
}

async fn a_deleted_session_is_still_leased(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let fence = store.lease(&key, "one", HOUR).await.unwrap();
    say_with(&*store, &key, 0, "old", Some(fence)).await.unwrap();
    assert!(store.delete(&key).await.unwrap());
    assert_eq!(store.get(&key).await.unwrap(), None);
    assert_leased(&store.lease(&key, "two", HOUR).await.unwrap_err(), "one");
    say_with(&*store, &key, 0, "new", Some(fence)).await.unwrap();
    assert_eq!(transcript(&*store, &key, &main_agent()).await, ["new"]);
}

async fn a_lease_beyond_all_time_is_for_ever(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let fence = store.lease(&key, "one", Duration::MAX).await.unwrap();
    let error = store.lease(&key, "two", HOUR).await.unwrap_err();
    assert_eq!(error.code(), "session_busy");
    store.renew(&key, fence, Duration::MAX).await.unwrap();
    store.release(&key, fence).await.unwrap();
    store.lease(&key, "two", HOUR).await.unwrap();
}

async fn of_many_who_want_a_session_one_gets_it(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    for round in 0..10 {
        let key = key(&format!("round {round}"));
        let mut tasks = tokio::task::JoinSet::new();
        for holder in 0..16 {
            let (store, key) = (Arc::clone(&store), key.clone());
            tasks.spawn(async move { store.lease(&key, &holder.to_string(), HOUR).await.is_ok() });
        }
        let taken = tasks.join_all().await.into_iter().filter(|it| *it).count();
        assert_eq!(taken, 1, "round {round}");
    }
}

/// Several take a session in turn, and each finds what the one before it has left.
async fn a_session_that_is_passed_around_loses_nothing(place: Place) {
    const HOLDERS: u64 = 8;
    const TURNS: u64 = 10;
    let store = place.sessions(Lifetime::default()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for holder in 0..HOLDERS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let key = key("a");
            for turn in 0..TURNS {
                let fence = insist(&*store, &key, &holder.to_string()).await;
                let revision = store.get(&key).await.unwrap().unwrap_or_default().revision.0;
                let text = format!("{holder} {turn}");
                // Nobody else commits meanwhile: no conflict.
                say_with(&*store, &key, revision, &text, Some(fence)).await.unwrap();
                store.release(&key, fence).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let stored = store.get(&key("a")).await.unwrap().unwrap();
    assert_eq!(stored.revision, Revision(HOLDERS * TURNS));
    let said = transcript(&*store, &key("a"), &main_agent()).await;
    assert_eq!(said.len() as u64, HOLDERS * TURNS);
}
