//! When skills were loaded last, as lists say it: asked of the store at most once a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prowess_store::{LastLoad, Shelved, UsageStore, VersionError};

/// What a list says of loads by other instances is never older than this.
const OLDEST: Duration = Duration::from_secs(1);

/// When skills were loaded last. What this instance counts is in the next list that is asked for;
/// what others count, in one that is asked for a second later.
#[derive(Debug, Default)]
pub(crate) struct LastLoads {
    /// Grows with everything that may have loaded skills which nobody here knows the names of.
    generation: AtomicU64,
}

impl LastLoads {
    /// Skills may have been loaded.
    pub(crate) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// When each of these skills was loaded last.
    pub(crate) async fn of(
        &self,
        skills: &[Arc<Shelved>],
        usage: &dyn UsageStore,
    ) -> Result<Vec<Option<Timestamp>>, VersionError> {
        let (generation, now) = (self.generation.load(Ordering::Acquire), Instant::now());
        let is_true = |known: &LastLoad| {
            known.generation == generation && now.duration_since(known.asked) < OLDEST
        };
        let known: Vec<Option<LastLoad>> =
            skills.iter().map(|it| it.last_load().filter(is_true)).collect();
        let unknown = skills.iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown: Vec<&Arc<Shelved>> = unknown.map(|(skill, _)| skill).collect();
        let mut asked = Vec::new();
        if !unknown.is_empty() {
            let ids = unknown.iter().map(|it| it.skill.id.to_string()).collect();
            let last = usage.last_loads(ids).await?;
            let keep = |(skill, at): (&Arc<Shelved>, Option<Timestamp>)| {
                skill.keep_last_load(LastLoad { at, asked: now, generation }).at
            };
            asked = unknown.into_iter().zip(last).map(keep).collect();
        }
        let mut asked = asked.into_iter();
        let told = known.into_iter().map(|known| match known {
            Some(known) => known.at,
            None => asked.next().flatten(),
        });
        Ok(told.collect())
    }
}
