//! How much of all bodies may be in memory at once.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Room for the bodies of all requests together.
#[derive(Debug)]
pub(crate) struct Bodies {
    free: Arc<Semaphore>,
}

/// What one request has of it, as long as this or a clone of it is there.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Bodies {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))) }
    }

    /// Nothing of it yet, for a request that begins.
    pub(crate) fn room(&self) -> Room {
        Room { free: Arc::clone(&self.free), taken: Arc::default() }
    }
}

impl Room {
    /// Takes room for so many bytes more; 503 if there is none.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Problem> {
        let full = || {
            let message =
                "the bodies of other requests take all the room (max_bodies_bytes); try again";
            Problem::new(503, "no_room_for_body", message).retry_after(1)
        };
        let bytes = u32::try_from(bytes).map_err(|_| full())?;
        let more = Arc::clone(&self.free).try_acquire_many_owned(bytes).map_err(|_| full())?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.as_mut() {
            Some(taken) => taken.merge(more),
            None => *taken = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_take_all_the_room_and_give_it_back() {
        let bodies = Bodies::new(10);
        let (one, other) = (bodies.room(), bodies.room());
        one.take(4).unwrap();
        one.take(3).unwrap();
        other.take(3).unwrap();
        assert_eq!(other.take(1).unwrap_err().status(), 503);
        let clone = one.clone();
        drop(one);
        assert!(other.take(1).is_err(), "it is still used");
        drop(clone);
        other.take(7).unwrap();
        assert!(other.take(1).is_err());
    }
}
