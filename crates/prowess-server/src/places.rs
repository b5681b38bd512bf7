//! How much of something everybody may have at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// So many places for everybody.
#[derive(Debug)]
pub(crate) struct Places<K> {
    most: usize,
    taken: Arc<Mutex<HashMap<K, usize>>>,
}

/// A place that somebody has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken<K: Eq + Hash> {
    key: K,
    taken: Arc<Mutex<HashMap<K, usize>>>,
}

impl<K: Eq + Hash + Clone> Places<K> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// One more place, if there is one.
    pub(crate) fn take(&self, key: K) -> Option<Taken<K>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.get(&key).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        taken.insert(key.clone(), count + 1);
        Some(Taken { key, taken: Arc::clone(&self.taken) })
    }
}

impl<K: Eq + Hash> Drop for Taken<K> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_as_many_places_as_may_be_and_gives_them_back() {
        let places = Places::new(2);
        let (one, two) = (places.take("a").unwrap(), places.take("a").unwrap());
        assert!(places.take("a").is_none());
        let other = places.take("b").expect("others are not hurt");
        drop(one);
        let again = places.take("a").unwrap();
        assert!(places.take("a").is_none());
        drop((two, other, again));
        assert!(places.taken.lock().unwrap().is_empty(), "nobody is remembered");
    }
}
