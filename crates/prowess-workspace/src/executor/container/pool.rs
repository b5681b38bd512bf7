//! Containers that wait for a run.

use std::time::{Duration, Instant};

use super::plan::Plan;

/// What waits, the longest waiting first.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    waiting: Vec<(Plan, Instant, T)>,
    /// What is being made.
    coming: Vec<Plan>,
    most: usize,
    longest: Duration,
}

impl<T> Pool<T> {
    /// At most so many wait, for no longer than this.
    pub(crate) fn new(most: usize, longest: Duration) -> Self {
        Self { waiting: Vec::new(), coming: Vec::new(), most, longest }
    }

    /// One that was made for this, and used last.
    pub(crate) fn take(&mut self, plan: &Plan, now: Instant) -> (Option<T>, Vec<T>) {
        let old = self.overdue(now);
        let at = self.waiting.iter().rposition(|(made_for, ..)| made_for == plan);
        (at.map(|at| self.waiting.remove(at).2), old)
    }

    /// Lets one wait. Those that have to go for it are returned.
    #[must_use]
    pub(crate) fn put(&mut self, plan: Plan, one: T, now: Instant) -> Vec<T> {
        let mut old = self.overdue(now);
        self.waiting.push((plan, now, one));
        let over = self.waiting.len().saturating_sub(self.most);
        old.extend(self.waiting.drain(..over).map(|(_, _, one)| one));
        old
    }

    /// How many more must be made until so many wait for this. They are expected from now on.
    #[must_use]
    pub(crate) fn call_for(&mut self, plan: &Plan, wanted: usize) -> usize {
        let waiting = self.waiting.iter().map(|(made_for, ..)| made_for);
        let there = waiting.chain(&self.coming).filter(|made_for| *made_for == plan).count();
        let missing = wanted.min(self.most).saturating_sub(there);
        self.coming.extend(std::iter::repeat_n(plan.clone(), missing));
        missing
    }

    /// One that was expected is there, or will not come.
    pub(crate) fn came(&mut self, plan: &Plan) {
        if let Some(at) = self.coming.iter().position(|coming| coming == plan) {
            self.coming.remove(at);
        }
    }

    /// Those that have waited for too long.
    #[must_use]
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<T> {
        let is_over = |since: &Instant| now.saturating_duration_since(*since) >= self.longest;
        self.waiting.extract_if(.., |(_, since, _)| is_over(since)).map(|(_, _, one)| one).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::Network;
    use super::*;

    fn plan(workspace: &str) -> Plan {
        Plan {
            workspace: workspace.into(),
            writable: Vec::new(),
            folders: Vec::new(),
            network: Network::None,
            memory_bytes: 1,
            processes: 1,
            disk_bytes: 1,
        }
    }

    #[test]
    fn only_what_was_made_for_it_is_taken() {
        let now = Instant::now();
        let mut pool = Pool::new(4, Duration::from_secs(1));
        assert!(pool.put(plan("a"), 1, now).is_empty());
        assert!(pool.put(plan("b"), 2, now).is_empty());
        assert!(pool.put(plan("a"), 3, now).is_empty());
        let other = Plan { network: Network::Host, ..plan("a") };
        assert_eq!(pool.take(&other, now), (None, vec![]));
        assert_eq!(pool.take(&plan("a"), now), (Some(3), vec![]));
        assert_eq!(pool.take(&plan("a"), now), (Some(1), vec![]));
        assert_eq!(pool.take(&plan("a"), now), (None, vec![]));
    }

    #[test]
    fn as_many_are_expected_as_are_missing() {
        let now = Instant::now();
        let mut pool = Pool::new(3, Duration::from_secs(1));
        assert!(pool.put(plan("a"), 1, now).is_empty());
        assert_eq!(pool.call_for(&plan("a"), 2), 1);
        assert_eq!((pool.call_for(&plan("a"), 2), pool.call_for(&plan("b"), 1)), (0, 1));
        pool.came(&plan("a"));
        assert_eq!(pool.call_for(&plan("a"), 9), 2, "no more than may wait");
        assert_eq!(pool.call_for(&plan("a"), 0), 0);
    }

    #[test]
    fn no_more_wait_than_may_and_none_for_too_long() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut pool = Pool::new(2, Duration::from_secs(10));
        assert!(pool.put(plan("a"), 1, at(0)).is_empty());
        assert!(pool.put(plan("b"), 2, at(1)).is_empty());
        assert_eq!(pool.put(plan("c"), 3, at(2)), [1]);
        assert_eq!(pool.take(&plan("b"), at(10)), (Some(2), vec![]));
        assert_eq!(pool.take(&plan("c"), at(12)), (None, vec![3]));
        // None may wait at all.
        let mut none = Pool::new(0, Duration::from_secs(10));
        assert_eq!(none.put(plan("a"), 1, begun), [1]);
    }
}
