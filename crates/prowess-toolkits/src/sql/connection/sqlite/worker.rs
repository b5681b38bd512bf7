//! The thread that has a file, and what becomes of it when it does not come back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::Terms;

/// So much longer than a statement may take it is waited for: SQLite looks at the clock between two
/// steps, and a step can be long.
const GRACE: Duration = Duration::from_millis(500);

/// So long it is looked for something before one sleeps.
const AWAKE: Duration = Duration::from_micros(100);
/// So often one sleeps at once, at most, after that was in vain.
const MOST_NAPS: u32 = 63;

pub(super) type Job = Box<dyn FnOnce(&Terms, &Path, &mut Option<Connection>, &Current) + Send>;
pub(super) type Current = Arc<Mutex<Watch>>;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// The same, with SQL of ours, which may look at everything.
    Catalogue,
    Write,
}

/// When what is being done has to end; nothing is done without a deadline.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) seconds: u64,
    pub(super) is_ours: bool,
    is_write: bool,
    deadline: Option<Instant>,
    cancelled: Option<Arc<AtomicBool>>,
}

impl Watch {
    pub(super) fn new(access: Access, timeout: Duration, cancelled: Arc<AtomicBool>) -> Self {
        Self {
            seconds: timeout.as_secs(),
            is_ours: access == Access::Catalogue,
            is_write: access == Access::Write,
            deadline: Some(Instant::now() + timeout),
            cancelled: Some(cancelled),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether it should have ended long ago. What writes is waited for.
    fn is_stuck(&self) -> bool {
        let is_late = |deadline| Instant::now() >= deadline + GRACE;
        !self.is_write && self.deadline.is_some_and(is_late)
    }
}

/// Stops what is being done if nobody waits for it any more.
pub(super) struct StopOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether to look for something for a moment before one sleeps: to be woken takes longer than a
/// small statement. Where that is in vain, because nothing comes or others need the processors, one
/// sleeps at once the next times, twice as often after each failure.
#[derive(Default)]
pub(super) struct Lookout {
    /// How often one sleeps at once.
    naps: AtomicU32,
    /// How often one did after the last failure; nothing after a success.
    last: AtomicU32,
}

impl Lookout {
    /// Until when to look, if at all.
    pub(super) fn begin(&self) -> Option<Instant> {
        let relaxed = Ordering::Relaxed;
        let nap = self.naps.fetch_update(relaxed, relaxed, |naps| naps.checked_sub(1));
        nap.is_err().then(|| Instant::now() + AWAKE)
    }

    /// It was there.
    pub(super) fn found(&self) {
        self.last.store(0, Ordering::Relaxed);
    }

    /// Whether it was in vain.
    pub(super) fn is_over(&self, end: Instant) -> bool {
        let is_over = Instant::now() >= end;
        if is_over {
            let naps = (self.last.load(Ordering::Relaxed) * 2 + 1).min(MOST_NAPS);
            self.last.store(naps, Ordering::Relaxed);
            self.naps.store(naps, Ordering::Relaxed);
        }
        is_over
    }
}

/// A job that one of the threads takes which it was sent to.
#[derive(Clone)]
pub(super) struct Waiting(Arc<Mutex<Option<Job>>>);

impl Waiting {
    pub(super) fn new(job: Job) -> Self {
        Self(Arc::new(Mutex::new(Some(job))))
    }

    /// Whether nobody has begun it.
    pub(super) fn is_there(&self) -> bool {
        self.0.lock().is_ok_and(|job| job.is_some())
    }

    fn take(&self) -> Option<Job> {
        self.0.lock().ok()?.take()
    }
}

/// A thread.
pub(super) struct Worker {
    jobs: Mutex<Option<Sender<Waiting>>>,
    current: Current,
    is_lost: Arc<AtomicBool>,
    lost: Arc<AtomicUsize>,
}

impl Worker {
    pub(super) fn start(
        terms: &Terms,
        path: &Path,
        lost: &Arc<AtomicUsize>,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let worker = Self {
            jobs: Mutex::new(Some(sender)),
            current: Current::default(),
            is_lost: Arc::default(),
            lost: Arc::clone(lost),
        };
        let (terms, path, current) = (terms.clone(), path.to_owned(), Arc::clone(&worker.current));
        let (is_lost, lost) = (Arc::clone(&worker.is_lost), Arc::clone(lost));
        std::thread::Builder::new().name("prowess-sqlite".to_owned()).spawn(move || {
            work_through(&terms, &path, &receiver, &current, &is_lost);
            if is_lost.load(Ordering::Acquire) {
                lost.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(worker)
    }

    /// Whether it takes a job.
    pub(super) fn send(&self, job: &Waiting) -> bool {
        let Ok(jobs) = self.jobs.lock() else { return false };
        jobs.as_ref().is_some_and(|jobs| jobs.send(job.clone()).is_ok())
    }

    /// Whether what it does should have ended long ago.
    pub(super) fn is_stuck(&self) -> bool {
        self.current.lock().is_ok_and(|watch| watch.is_stuck())
    }

    /// Whether it was given up.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Gives it up if it is still stuck, and says whether that was done here. It ends after what it
    /// does, and begins nothing more.
    pub(super) fn lose(&self) -> bool {
        let (Ok(mut jobs), Ok(watch)) = (self.jobs.lock(), self.current.lock()) else {
            return false;
        };
        if jobs.is_none() || !watch.is_stuck() {
            return false;
        }
        // Counted before the thread can see that it is lost.
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.is_lost.store(true, Ordering::Release);
        *jobs = None;
        true
    }
}

/// Does what is sent until nobody can send any more.
fn work_through(
    terms: &Terms,
    path: &Path,
    jobs: &Receiver<Waiting>,
    current: &Current,
    is_lost: &AtomicBool,
) {
    let (mut open, lookout) = (None, Lookout::default());
    while let Some(job) = next(jobs, &lookout) {
        // Nobody gives it up in between.
        let taken = match current.lock() {
            Ok(_watch) if !is_lost.load(Ordering::Acquire) => job.take(),
            _ => return,
        };
        if let Some(job) = taken {
            job(terms, path, &mut open, current);
        }
    }
}

/// What is sent next; nothing if nobody can send any more.
fn next(jobs: &Receiver<Waiting>, lookout: &Lookout) -> Option<Waiting> {
    if let Some(end) = lookout.begin() {
        while !lookout.is_over(end) {
            match jobs.try_recv() {
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                sent => {
                    lookout.found();
                    return sent.ok();
                }
            }
        }
    }
    jobs.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_in_vain_sleeps_at_once_and_longer_each_time() {
        let lookout = Lookout::default();
        let now = Instant::now();
        let naps =
            || std::iter::repeat_with(|| lookout.begin()).take_while(Option::is_none).count();
        assert!(lookout.begin().is_some_and(|end| end > now));
        assert!(!lookout.is_over(now + Duration::from_secs(60)));
        assert_eq!(naps(), 0);
        for expected in [1, 3, 7, 15, 31, 63, 63] {
            assert!(lookout.is_over(now));
            assert_eq!(naps(), expected);
        }
        lookout.found();
        assert!(lookout.is_over(now));
        assert_eq!(naps(), 1);
    }
}
