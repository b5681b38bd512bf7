//! Content in Redis.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prowess_catalog::{ContentError, ContentStore};
use prowess_format::Digest;
use redis::cmd;
use tokio::runtime::Handle;

use super::link::{Link, Unavailable};
use super::script::{Call, DROP, PUT};

/// Younger content is not garbage: whoever has put it may not have said yet who needs it.
const GRACE: Duration = Duration::from_secs(600);
/// Content that was put so recently need not be put again.
const FRESH: Duration = Duration::from_secs(60);
/// So many bytes are kept in memory.
const CACHED_BYTES: usize = 16 << 20;
/// A larger one is not.
const CACHED_ENTRY_BYTES: usize = 1 << 20;

/// Content in Redis, each under a tag of its own. What was read or put lately is kept in memory.
///
/// Its calls block: they are made on threads that may, never on one that runs tasks of the runtime
/// that the store was opened in.
#[derive(Clone, Debug)]
pub struct RedisContent {
    link: Link,
    runtime: Handle,
    grace: Duration,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Debug, Default)]
struct Cache {
    entries: HashMap<Digest, (Arc<[u8]>, Option<Instant>)>,
    order: VecDeque<Digest>,
    bytes: usize,
}

impl Cache {
    fn add(&mut self, digest: Digest, bytes: &Arc<[u8]>, put: Option<Instant>) {
        if bytes.len() > CACHED_ENTRY_BYTES {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&digest) {
            entry.1 = put.or(entry.1);
            return;
        }
        self.entries.insert(digest, (Arc::clone(bytes), put));
        self.order.push_back(digest);
        self.bytes += bytes.len();
        while self.bytes > CACHED_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            let removed = self.entries.remove(&oldest);
            self.bytes -= removed.map_or(0, |(bytes, _)| bytes.len());
        }
    }

    fn remove(&mut self, digest: &Digest) {
        if let Some((bytes, _)) = self.entries.remove(digest) {
            self.bytes -= bytes.len();
            self.order.retain(|it| it != digest);
        }
    }

    fn is_fresh(&self, digest: &Digest) -> bool {
        let put = self.entries.get(digest).and_then(|(_, put)| *put);
        put.is_some_and(|put| put.elapsed() < FRESH)
    }
}

impl RedisContent {
    pub(super) fn new(link: Link, runtime: Handle) -> Self {
        Self { link, runtime, grace: GRACE, cache: Arc::default() }
    }

    /// How long content is spared by [`ContentStore::collect_garbage`] after it was put.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an operation, which the runtime works on meanwhile.
    fn wait<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, Unavailable>> + Send + 'static,
    ) -> Result<T, ContentError> {
        let (answer, answered) = sync_channel(1);
        let link = self.link.clone();
        self.runtime.spawn(async move {
            // Whoever does not wait any more needs no answer.
            let _ = answer.send(link.operate(operation).await);
        });
        let late = || Unavailable("Redis has not answered".to_owned());
        let time = self.link.answer_time() * 2;
        let result = answered.recv_timeout(time).unwrap_or_else(|_| Err(late()));
        result.map_err(|Unavailable(cause)| ContentError::Unavailable(cause))
    }
}

/// Keeps content: first its name is in the list of all, then it is there.
async fn put(link: Link, digest: Digest, bytes: Arc<[u8]>) -> Result<(), Unavailable> {
    let time: (u64, u64) = link.ask(&cmd("TIME")).await?;
    let list = link.names().of_registry(":content");
    link.ask::<()>(cmd("ZADD").arg(list).arg(time.0).arg(digest.hex())).await?;
    let name = link.names().content(&digest);
    // What is there already need not be sent again.
    if !link.run::<bool>(&Call::new(&PUT, &name)).await? {
        link.run::<bool>(&Call::new(&PUT, &name).arg(&bytes[..])).await?;
    }
    Ok(())
}

async fn remove(link: &Link, digest: &Digest, grace: Duration) -> Result<bool, Unavailable> {
    let call = Call::new(&DROP, &link.names().content(digest)).arg(grace.as_secs());
    let removed: i64 = link.run(&call).await?;
    if removed >= 0 {
        let mut again = cmd("EXISTS");
        again.arg(link.names().content(digest));
        let list = link.names().of_registry(":content");
        // Somebody may have put it again meanwhile; then its name stays.
        if !link.ask::<bool>(&again).await? {
            let time: (u64, u64) = link.ask(&cmd("TIME")).await?;
            let before = time.0.saturating_sub(grace.as_secs());
            let score: Option<u64> = link.ask(cmd("ZSCORE").arg(&list).arg(digest.hex())).await?;
            if score.is_some_and(|score| score <= before) {
                link.ask::<()>(cmd("ZREM").arg(&list).arg(digest.hex())).await?;
            }
        }
    }
    Ok(removed > 0)
}

async fn all(link: Link) -> Result<Vec<String>, Unavailable> {
    let list = link.names().of_registry(":content");
    link.ask(cmd("ZRANGE").arg(list).arg(0).arg(-1)).await
}

impl ContentStore for RedisContent {
    fn put(&self, bytes: &[u8]) -> Result<Digest, ContentError> {
        let digest = Digest::of(bytes);
        if self.cache().is_fresh(&digest) {
            return Ok(digest);
        }
        let (bytes, now): (Arc<[u8]>, _) = (bytes.into(), Instant::now());
        self.wait(put(self.link.clone(), digest, Arc::clone(&bytes)))?;
        self.cache().add(digest, &bytes, Some(now));
        Ok(digest)
    }

    fn get(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, ContentError> {
        if let Some((bytes, _)) = self.cache().entries.get(digest) {
            return Ok(Some(Arc::clone(bytes)));
        }
        let (link, name) = (self.link.clone(), self.link.names().content(digest));
        let bytes: Option<Vec<u8>> =
            self.wait(async move { link.ask(cmd("HGET").arg(name).arg("bytes")).await })?;
        let Some(bytes) = bytes else { return Ok(None) };
        if Digest::of(&bytes) != *digest {
            // Nobody may be given it; somebody can put it again.
            let (link, name) = (self.link.clone(), self.link.names().content(digest));
            self.wait(async move { link.ask::<()>(cmd("UNLINK").arg(name)).await })?;
            return Err(ContentError::Corrupt(*digest));
        }
        let bytes: Arc<[u8]> = bytes.into();
        self.cache().add(*digest, &bytes, None);
        Ok(Some(bytes))
    }

    fn collect_garbage(&self, referenced: &HashSet<Digest>) -> Result<usize, ContentError> {
        let mut removed = 0;
        let all = self.wait(all(self.link.clone()))?;
        for digest in all.iter().filter_map(|hex| hex.parse().ok()) {
            let (link, grace) = (self.link.clone(), self.grace);
            let is_removed = !referenced.contains(&digest)
                && self.wait(async move { remove(&link, &digest, grace).await })?;
            // What another process removes may still be given from here: it is what its name says.
            if is_removed {
                self.cache().remove(&digest);
                removed += 1;
            }
        }
        Ok(removed)
    }
}
