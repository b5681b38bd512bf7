//! A bucket: objects that are made once, read, listed and removed.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, GetOptions, GetRange, ObjectStore, PutMode, PutPayload,
    RetryConfig,
};
use tokio::sync::OnceCell;

use super::failure::Failure;
use super::settings::{InvalidS3Settings, S3Credentials, S3Settings};
use crate::artifact::StoreTrouble;
use crate::artifact::header::{Header, MAX_HEADER_BYTES};

/// The object that shows whether the server makes an object once only.
const PROBE: &str = "conditional-put";

/// Whether an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is ours.
    New,
    /// Somebody else's is there.
    Taken,
    /// The server says that there is one, and shows none, however often it is asked. A server that
    /// crashed between two parts of its work may say so of a key for ever.
    Hidden,
}

/// A bucket below a prefix. Keys are relative to it.
pub(super) struct Bucket {
    store: AmazonS3,
    prefix: Path,
    max_retries: u32,
    /// Set once the server has refused to make an object twice.
    is_conditional: OnceCell<()>,
}

impl Bucket {
    pub(super) fn open(
        settings: &S3Settings,
        credentials: &S3Credentials,
    ) -> Result<Self, InvalidS3Settings> {
        settings.check()?;
        let wrong = |key, cause: String| InvalidS3Settings::Value { key, cause };
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(5),
                base: 2.0,
            },
            max_retries: settings.max_retries.try_into().unwrap_or(usize::MAX),
            retry_timeout: settings.operation_timeout(),
        };
        let client = ClientOptions::new()
            .with_allow_http(settings.is_plain_http())
            .with_connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            .with_timeout(Duration::from_millis(settings.request_timeout_ms));
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_access_key_id(&credentials.access_key_id)
            .with_secret_access_key(&credentials.secret_access_key)
            .with_virtual_hosted_style_request(!settings.path_style)
            .with_retry(retry)
            .with_client_options(client);
        if !settings.endpoint.is_empty() {
            builder = builder.with_endpoint(settings.endpoint.trim_end_matches('/'));
        }
        if let Some(token) = &credentials.session_token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(|error| wrong("endpoint", error.to_string()))?;
        let prefix =
            Path::parse(&settings.prefix).map_err(|error| wrong("prefix", error.to_string()))?;
        let is_conditional = OnceCell::new();
        Ok(Self { store, prefix, max_retries: settings.max_retries, is_conditional })
    }

    fn path(&self, key: &str) -> Path {
        self.prefix.parts().chain(Path::from(key).parts()).collect()
    }

    /// Makes an object unless there is one. Its bytes begin with a header that names this save, so
    /// that an object whose making was not answered for is known again.
    pub(super) async fn make(
        &self,
        key: &str,
        save: &str,
        parts: &[Bytes],
    ) -> Result<Made, Failure> {
        self.is_conditional.get_or_try_init(|| self.probe()).await?;
        let path = self.path(key);
        let payload: PutPayload = parts.iter().cloned().collect();
        let mut attempt = 0;
        loop {
            let put = self.store.put_opts(&path, payload.clone(), create()).await;
            let Err(error) = put else { return Ok(Made::New) };
            // "Conflict" may also mean that somebody is at work there, and nothing is made in the end.
            let is_conflict = matches!(error, Error::AlreadyExists { .. });
            let failure = Failure::from(error);
            if !is_conflict && !failure.is_uncertain {
                return Err(failure);
            }
            let last = match self.head(key).await {
                Ok(Some(head)) if said_by(&head, save) => return Ok(Made::New),
                Ok(Some(_)) => return Ok(Made::Taken),
                Ok(None) if is_conflict => Ok(Made::Hidden),
                Ok(None) => Err(failure),
                // The server went away in between: what it said of a conflict is not why.
                Err(later) if later.is_uncertain => Err(later),
                Err(later) => return Err(later),
            };
            if attempt >= self.max_retries {
                return last;
            }
            pause(attempt).await;
            attempt += 1;
        }
    }

    /// Finds out whether the server makes an object once only. One that does not would let savers
    /// overwrite each other.
    async fn probe(&self) -> Result<(), Failure> {
        let path = self.path(PROBE);
        let (mut made, mut failed) = (0, 0);
        while made < 2 {
            let text = "The server must refuse to make this object twice.\n";
            let failure = match self.store.put_opts(&path, text.into(), create()).await {
                Err(Error::AlreadyExists { .. }) => return Ok(()),
                Err(error) => Failure::from(error),
                Ok(_) => {
                    made += 1;
                    continue;
                }
            };
            if !failure.is_uncertain || failed >= self.max_retries {
                return Err(failure);
            }
            pause(failed).await;
            failed += 1;
        }
        Err(Failure::new(StoreTrouble::Unsafe, "the server replaces objects that it must keep"))
    }

    /// The beginning of an object, as far as a header goes; `None` if there is no object.
    pub(super) async fn head(&self, key: &str) -> Result<Option<Bytes>, Failure> {
        let range = Some(GetRange::Bounded(0..MAX_HEADER_BYTES));
        self.get(key, GetOptions { range, ..GetOptions::default() }).await
    }

    /// An object; `None` if there is none.
    pub(super) async fn read(&self, key: &str) -> Result<Option<Bytes>, Failure> {
        self.get(key, GetOptions::default()).await
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Option<Bytes>, Failure> {
        let got = match self.store.get_opts(&self.path(key), options).await {
            Ok(got) => got.bytes().await,
            Err(error) => Err(error),
        };
        match got.map_err(Failure::from) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(failure) if failure.is_missing => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The keys below a folder, without it, however many there are.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let folder = self.path(folder);
        let found: Vec<_> = self.store.list(Some(&folder)).try_collect().await?;
        let below = |path: &Path| {
            let parts: Vec<_> = path.prefix_match(&folder)?.collect();
            Some(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/"))
        };
        Ok(found.iter().filter_map(|object| below(&object.location)).collect())
    }

    /// Removes objects; that one of them is missing is no failure.
    pub(super) async fn remove(&self, keys: Vec<String>) -> Result<(), Failure> {
        let paths: Vec<Path> = keys.iter().map(|key| self.path(key)).collect();
        let mut attempt = 0;
        loop {
            match self.remove_once(paths.clone()).await {
                Err(failure) if failure.is_uncertain && attempt < self.max_retries => {
                    pause(attempt).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn remove_once(&self, paths: Vec<Path>) -> Result<(), Failure> {
        let mut removed = self.store.delete_stream(stream::iter(paths).map(Ok).boxed());
        while let Some(result) = removed.next().await {
            match result.map_err(Failure::from) {
                Ok(_) => {}
                // Most servers do not even say so.
                Err(failure) if failure.is_missing => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// Waits before something is tried again, longer every time.
async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(100 << attempt.min(5))).await;
}

fn create() -> object_store::PutOptions {
    PutMode::Create.into()
}

/// The line in front of an object's bytes, and the bytes.
pub(super) fn split(object: &[u8]) -> Option<(Header, &[u8])> {
    let end = object.iter().position(|byte| *byte == b'\n')?;
    Some((Header::read(&object[..end])?, &object[end + 1..]))
}

/// Whether an object that begins so was made by this save.
fn said_by(head: &[u8], save: &str) -> bool {
    split(head).is_some_and(|(header, _)| header.save.as_deref() == Some(save))
}
