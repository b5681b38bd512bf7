//! What every store of content promises that several machines share.

mod support;

use std::collections::HashSet;
use std::sync::Arc;

use prowess_catalog::ContentStore;
use prowess_format::Digest;
use support::place::{Place, on_each_shared_store};

on_each_shared_store! {
    what_is_put_is_given_to_every_machine
    what_was_put_just_now_is_no_garbage
    many_put_the_same_at_once
}

/// Does something where it may block.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn open(place: &Place) -> Arc<dyn ContentStore> {
    place.open().await.content.unwrap()
}

async fn what_is_put_is_given_to_every_machine(place: Place) {
    let (one, two) = (open(&place).await, open(&place).await);
    let long = vec![0xff; 3 << 20];
    for bytes in [&b""[..], b"a", b"\0\xff\r\n", &long] {
        let (one, two, bytes) = (Arc::clone(&one), Arc::clone(&two), bytes.to_vec());
        on_a_thread(move || {
            let digest = Digest::of(&bytes);
            assert_eq!(one.get(&digest).unwrap(), None);
            for _ in 0..2 {
                assert_eq!(one.put(&bytes).unwrap(), digest);
                assert_eq!(one.get(&digest).unwrap().as_deref(), Some(&bytes[..]));
                assert_eq!(two.get(&digest).unwrap().as_deref(), Some(&bytes[..]));
            }
            assert_eq!(two.put(&bytes).unwrap(), digest);
            assert!(!one.is_immediate());
        })
        .await;
    }
}

async fn what_was_put_just_now_is_no_garbage(place: Place) {
    let (one, two) = (open(&place).await, open(&place).await);
    on_a_thread(move || {
        let digest = one.put(b"somebody is about to refer to it").unwrap();
        assert_eq!(two.collect_garbage(&HashSet::new()).unwrap(), 0);
        assert_eq!(two.collect_garbage(&HashSet::from([digest])).unwrap(), 0);
        assert!(two.get(&digest).unwrap().is_some());
    })
    .await;
}

async fn many_put_the_same_at_once(place: Place) {
    let stores = [open(&place).await, open(&place).await];
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40_usize {
        let store = Arc::clone(&stores[number % 2]);
        tasks.spawn_blocking(move || {
            let bytes = vec![u8::try_from(number / 8).unwrap(); 10_000];
            let digest = store.put(&bytes).unwrap();
            assert_eq!(store.get(&digest).unwrap().as_deref(), Some(&bytes[..]));
        });
    }
    tasks.join_all().await;
}
