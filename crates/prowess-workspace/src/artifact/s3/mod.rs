//! Artifacts in a bucket on S3-compatible storage.
//!
//! ```text
//! <prefix>/<app>/<user>/session_<session>/<name>/<generation>/0, 1, 2 …
//! <prefix>/<app>/<user>/user/<name>/<generation>/0, 1, 2 …
//! <prefix>/<app>/<user>/…/<name>/ended/<generation>
//! ```
//!
//! Every part is a key of what it stands for. A version is one object: a line of JSON that says
//! what it is, then the bytes. It is made only if there is none of that number, which a server does
//! for two savers at once; whoever comes late takes the next number. Numbers are contiguous, unless
//! a server crashed so that it refuses a number for which it has nothing; that one is passed over.
//!
//! A bucket cannot remove many objects at once. Therefore deleting a name makes a marker that ends
//! its generation, and then removes what is of no further use. A saver looks at the markers again
//! behind its version: if the generation has ended meanwhile, it saves into the next one.

mod bucket;
mod failure;
mod layout;
mod settings;

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::runtime::Runtime;
use uuid::Uuid;

use self::bucket::{Bucket, Made, split};
use self::failure::Failure;
use self::layout::{Known, by_name, ended_folder, ended_key, name_folder, version_key};
pub use self::settings::{InvalidS3Settings, S3Credentials, S3Settings};
use super::header::{DEFAULT_MAX_BYTES, Header, check_size};
use super::name::check_name;
use super::{Artifact, ArtifactError, ArtifactFuture, ArtifactScope, ArtifactStore, StoreTrouble};
use crate::workspace::shown;

/// So many headers are asked for at once.
const AT_ONCE: usize = 16;

/// Artifacts in a bucket on S3-compatible storage. Any number of processes on any number of machines
/// may use the same bucket.
///
/// What was acknowledged is what the server acknowledged; a saver that dies leaves no half version.
/// The server must honour `If-None-Match` in PUT, which is tried before the first save. Deleting a
/// name leaves one small object, by which savers know that a generation has ended.
///
/// It works in any executor: requests run on a thread of its own.
pub struct S3Artifacts {
    inner: Arc<Inner>,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

struct Inner {
    bucket: Bucket,
    settings: S3Settings,
    max_bytes: u64,
}

impl fmt::Debug for S3Artifacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("S3Artifacts")
            .field("settings", &self.inner.settings)
            .field("max_bytes", &self.inner.max_bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for S3Artifacts {
    fn drop(&mut self) {
        // A runtime that is dropped otherwise waits, and nobody may do that who is awaited.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl S3Artifacts {
    /// Artifacts in a bucket. Nothing is asked of the server yet.
    pub fn open(
        settings: S3Settings,
        credentials: &S3Credentials,
    ) -> Result<Self, InvalidS3Settings> {
        // Whoever was first has decided; it is one provider in any case.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bucket = Bucket::open(&settings, credentials)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("prowess-s3")
            .enable_all()
            .build()
            .map_err(|error| InvalidS3Settings::Thread { cause: error.to_string() })?;
        let inner = Inner { bucket, settings, max_bytes: DEFAULT_MAX_BYTES };
        Ok(Self { inner: Arc::new(inner), runtime: Some(runtime) })
    }

    /// The most bytes of one artifact, `max_artifact_bytes` (64 MiB).
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.max_bytes = max_bytes;
        }
        self
    }

    /// Does on its own thread, and within its time, what is to be done.
    fn run<T, W>(&self, doing: String, work: impl FnOnce(Arc<Inner>) -> W) -> ArtifactFuture<'_, T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Stop>> + Send + 'static,
    {
        let inner = self.inner.clone();
        let work = work(inner.clone());
        let Some(runtime) = &self.runtime else {
            let cause = io::Error::other("the store is closed");
            return Box::pin(async { Err(ArtifactError::Io { doing, cause }) });
        };
        let handle = runtime.handle().clone();
        Box::pin(async move {
            let most = inner.settings.operation_timeout();
            let timed = handle.spawn(async move { tokio::time::timeout(most, work).await });
            let failure = match timed.await {
                Ok(Ok(Ok(done))) => return Ok(done),
                Ok(Ok(Err(Stop::Known(error)))) => return Err(error),
                Ok(Ok(Err(Stop::Failed(failure)))) => failure,
                Ok(Err(_)) => {
                    let cause = format!(
                        "it took more than `operation_timeout_ms` = {}",
                        inner.settings.operation_timeout_ms
                    );
                    Failure::new(StoreTrouble::Unavailable, cause)
                }
                Err(error) => {
                    return Err(ArtifactError::Io { doing, cause: io::Error::other(error) });
                }
            };
            let Failure { trouble, cause, .. } = failure;
            let (bucket, server) = (&inner.settings.bucket, inner.settings.server());
            let place = format!("the bucket '{bucket}' at {server}");
            Err(ArtifactError::Store { trouble, doing, place, cause })
        })
    }
}

/// Why an operation ends early.
enum Stop {
    /// It says all itself.
    Known(ArtifactError),
    /// It is yet to be said what was tried.
    Failed(Failure),
}

impl From<ArtifactError> for Stop {
    fn from(error: ArtifactError) -> Self {
        Self::Known(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl ArtifactStore for S3Artifacts {
    fn save<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        mime_type: &'a str,
        bytes: Arc<[u8]>,
    ) -> ArtifactFuture<'a, u64> {
        let (scope, name, mime_type) = (scope.clone(), name.to_owned(), mime_type.to_owned());
        self.run(format!("save the artifact '{}'", shown(&name)), |inner| async move {
            check_name(&name)?;
            check_size(&name, bytes.len() as u64, inner.max_bytes)?;
            inner
                .save(&name_folder(&scope, &name), Header::of(&name, &mime_type, &bytes), bytes)
                .await
        })
    }

    fn load<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        version: Option<u64>,
    ) -> ArtifactFuture<'a, Option<Artifact>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.run(format!("load the artifact '{}'", shown(&name)), |inner| async move {
            check_name(&name)?;
            inner.load(&name_folder(&scope, &name), &name, version).await
        })
    }

    fn list<'a>(&'a self, scope: &'a ArtifactScope) -> ArtifactFuture<'a, Vec<String>> {
        let scope = scope.clone();
        self.run("list the artifacts of a session".to_owned(), |inner| async move {
            let mut names = Vec::new();
            for folder in [layout::session_folder(&scope), layout::user_folder(&scope)] {
                names.extend(inner.names(&folder).await?);
            }
            names.sort_unstable();
            Ok(names)
        })
    }

    fn versions<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
    ) -> ArtifactFuture<'a, Vec<u64>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.run(format!("list the versions of '{}'", shown(&name)), |inner| async move {
            check_name(&name)?;
            Ok(inner.known(&name_folder(&scope, &name)).await?.versions)
        })
    }

    fn delete<'a>(&'a self, scope: &'a ArtifactScope, name: &'a str) -> ArtifactFuture<'a, bool> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.run(format!("delete the artifact '{}'", shown(&name)), |inner| async move {
            check_name(&name)?;
            inner.delete(&name_folder(&scope, &name), &name).await
        })
    }
}

impl Inner {
    async fn known(&self, folder: &str) -> Result<Known, Failure> {
        let keys = self.bucket.list(folder).await?;
        Ok(Known::of(keys.iter().map(String::as_str)))
    }

    /// The generation that versions are saved into.
    async fn generation(&self, folder: &str) -> Result<u64, Failure> {
        let ended = self.bucket.list(&ended_folder(folder)).await?;
        let keys: Vec<String> = ended.iter().map(|it| format!("ended/{it}")).collect();
        Ok(Known::of(keys.iter().map(String::as_str)).generation)
    }

    async fn save(&self, folder: &str, header: Header, bytes: Arc<[u8]>) -> Result<u64, Stop> {
        let save = Uuid::now_v7().to_string();
        let header = Header { save: Some(save.clone()), ..header };
        let parts = [Bytes::from(line(&header)?), Bytes::from_owner(bytes)];
        loop {
            let known = self.known(folder).await?;
            // What a delete could not remove, or came late. That it cannot be removed harms nobody.
            let _ = self.remove_dead(folder, &known).await;
            let mut version = known.next();
            let key = |version| version_key(folder, known.generation, version);
            // A number that nobody can have is passed over, like one that somebody has.
            while self.bucket.make(&key(version), &save, &parts).await? != Made::New {
                version = version.saturating_add(1);
            }
            if self.generation(folder).await? == known.generation {
                return Ok(version);
            }
            // The name was deleted: then this is saved after that.
            self.bucket.remove(vec![key(version)]).await?;
        }
    }

    async fn load(
        &self,
        folder: &str,
        name: &str,
        version: Option<u64>,
    ) -> Result<Option<Artifact>, Stop> {
        let (generation, version) = match version {
            Some(version) => (self.generation(folder).await?, version),
            None => {
                let known = self.known(folder).await?;
                let Some(newest) = known.versions.last() else { return Ok(None) };
                (known.generation, *newest)
            }
        };
        let object = self.bucket.read(&version_key(folder, generation, version)).await?;
        let Some(object) = object else { return Ok(None) };
        let whole =
            split(&object).and_then(|(header, bytes)| header.artifact(name, version, bytes));
        let damaged = || ArtifactError::Damaged { name: shown(name), version };
        Ok(Some(whole.ok_or_else(damaged)?))
    }

    /// The names below a folder. What is removed meanwhile, or cannot be understood, is not there.
    async fn names(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let keys = self.bucket.list(folder).await?;
        let newest =
            by_name(keys.iter().map(String::as_str)).into_iter().filter_map(|(name, known)| {
                let newest = known.versions.last()?;
                Some(version_key(&format!("{folder}/{name}"), known.generation, *newest))
            });
        let newest: Vec<String> = newest.collect();
        let heads: Vec<Option<Bytes>> = stream::iter(newest)
            .map(|key| async move { self.bucket.head(&key).await })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let names = heads.iter().flatten().filter_map(|head| split(head));
        Ok(names.map(|(header, _)| header.name).collect())
    }

    /// Ends the generation, if it has versions, and removes what nobody needs any more.
    async fn delete(&self, folder: &str, name: &str) -> Result<bool, Stop> {
        let mut known = self.known(folder).await?;
        let mut had_any = false;
        if !known.versions.is_empty() {
            let save = Uuid::now_v7().to_string();
            let header = Header { save: Some(save.clone()), ..Header::of(name, "", b"") };
            let parts = [Bytes::from(line(&header)?)];
            let key = ended_key(folder, known.generation);
            had_any = match self.bucket.make(&key, &save, &parts).await? {
                Made::New => true,
                // Whoever else has ended it has deleted what there was.
                Made::Taken => false,
                Made::Hidden => return Err(hidden_marker().into()),
            };
            known = self.known(folder).await?;
        }
        self.remove_dead(folder, &known).await?;
        Ok(had_any)
    }

    async fn remove_dead(&self, folder: &str, known: &Known) -> Result<(), Failure> {
        if known.dead.is_empty() {
            return Ok(());
        }
        let dead = known.dead.iter().map(|key| format!("{folder}/{key}"));
        self.bucket.remove(dead.collect()).await
    }
}

fn hidden_marker() -> Failure {
    let cause = "the server refuses the marker of the end, and shows none; try again, or remove \
                 what it has of the key";
    Failure::new(StoreTrouble::Refused, cause)
}

fn line(header: &Header) -> Result<Vec<u8>, ArtifactError> {
    header.line().map_err(ArtifactError::io("write down what is saved"))
}
