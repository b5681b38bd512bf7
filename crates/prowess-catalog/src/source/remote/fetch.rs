//! Fetches over HTTP, within limits, from vetted addresses only.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_format::Digest;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{
    ACCEPT_ENCODING, ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::{Host, Url};

use super::address::Reach;
use super::error::{AddressRefused, InvalidLocation, RemoteError};
use super::location::vet;
use crate::remote_limits::RemoteLimits;

/// Finds the addresses of a name.
pub type Lookup = Arc<
    dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync,
>;

/// Asks the system.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// What a server said of a content, to ask whether it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Validators {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_modified: Option<String>,
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is still what it was.
    NotModified,
    /// It is this.
    Content { digest: Digest, validators: Validators },
}

/// How much of one thing is fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) limit: &'static str,
    pub(super) bytes: u64,
}

/// Fetches things for one source. It has a runtime of its own, so that it works in any thread that
/// may block, whatever runtime the program has.
pub(super) struct Fetcher {
    client: Client,
    runtime: Option<tokio::runtime::Runtime>,
    reach: Reach,
    limits: RemoteLimits,
    deadline: Instant,
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        // Nobody waits for a name that is still being looked up.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Fetcher {
    pub(super) fn new(
        limits: RemoteLimits,
        reach: Reach,
        lookup: Lookup,
    ) -> Result<Self, RemoteError> {
        // Only if the program has not chosen another one.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let failed = |cause: String| RemoteError::Unreachable { url: "the network".into(), cause };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let resolver = Vetted { reach: reach.clone(), lookup };
        let client = Client::builder()
            .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")))
            // Every step is vetted; a proxy would look names up where nobody vets them.
            .redirect(Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(resolver))
            .connect_timeout(Duration::from_secs(limits.connect_seconds))
            .read_timeout(Duration::from_secs(limits.idle_seconds))
            .build()
            .map_err(|error| failed(describe(&error)))?;
        let deadline = Instant::now() + limits.fetch_time();
        Ok(Self { client, runtime: Some(runtime), reach, limits, deadline })
    }

    /// Fetches a URL into a file, and says what it is. `progress` is told how many bytes have come,
    /// and how many there will be.
    pub(super) fn get(
        &self,
        url: &Url,
        known: &Validators,
        most: Most,
        into: &mut File,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Answer, RemoteError> {
        let Some(runtime) = &self.runtime else {
            return Err(RemoteError::Unreachable { url: url.to_string(), cause: "closed".into() });
        };
        runtime.block_on(async {
            let work = self.follow(url, known, most, into, progress);
            let deadline = tokio::time::Instant::from_std(self.deadline);
            tokio::time::timeout_at(deadline, work).await.unwrap_or_else(|_| {
                Err(self.too_slow(url, "fetch_seconds", self.limits.fetch_seconds))
            })
        })
    }

    fn too_slow(&self, url: &Url, limit: &'static str, most: u64) -> RemoteError {
        RemoteError::TooSlow { url: url.to_string(), limit, most }
    }

    async fn follow(
        &self,
        url: &Url,
        known: &Validators,
        most: Most,
        into: &mut File,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Answer, RemoteError> {
        let mut at = url.clone();
        for _ in 0..=self.limits.redirects {
            vet(&at)?;
            vet_literal(&at, &self.reach)?;
            let response = self.ask(&at, known).await?;
            let status = response.status();
            if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                at = redirected(&at, response.headers())?;
                continue;
            }
            let has_validators = *known != Validators::default();
            return match status {
                StatusCode::NOT_MODIFIED if has_validators => Ok(Answer::NotModified),
                StatusCode::OK => self.receive(&at, response, most, into, progress).await,
                _ => Err(RemoteError::Status { url: at.to_string(), status: status.as_u16() }),
            };
        }
        let why = "there are too many of them (`redirects`)";
        Err(RemoteError::Redirect { to: at.to_string(), why })
    }

    async fn ask(&self, url: &Url, known: &Validators) -> Result<Response, RemoteError> {
        let mut request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        if let Some(etag) = &known.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(time) = &known.last_modified {
            request = request.header(IF_MODIFIED_SINCE, time);
        }
        request.send().await.map_err(|error| self.failed(url, &error))
    }

    async fn receive(
        &self,
        url: &Url,
        mut response: Response,
        most: Most,
        into: &mut File,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Answer, RemoteError> {
        let Most { limit, bytes: most } = most;
        let too_large = || RemoteError::TooLarge { url: url.to_string(), limit, most };
        let declared = response.content_length();
        if declared.is_some_and(|declared| declared > most) {
            return Err(too_large());
        }
        let header = |name: HeaderName| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned()).filter(|value| value.len() <= 1024)
        };
        let validators = Validators { etag: header(ETAG), last_modified: header(LAST_MODIFIED) };
        let mut hasher = Sha256::new();
        let mut bytes = 0;
        while let Some(part) = response.chunk().await.map_err(|error| self.failed(url, &error))? {
            bytes += part.len() as u64;
            if bytes > most {
                return Err(too_large());
            }
            hasher.update(&part);
            into.write_all(&part).map_err(RemoteError::io("the download"))?;
            progress(bytes, declared);
        }
        let digest = Digest::from_bytes(hasher.finalize().into());
        Ok(Answer::Content { digest, validators })
    }

    /// What went wrong, in our words.
    fn failed(&self, url: &Url, error: &reqwest::Error) -> RemoteError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(current) = cause {
            if let Some(refused) = current.downcast_ref::<AddressRefused>() {
                return refused.clone().into();
            }
            cause = current.source();
        }
        if error.is_timeout() {
            let RemoteLimits { connect_seconds, idle_seconds, .. } = self.limits;
            return match error.is_connect() {
                true => self.too_slow(url, "connect_seconds", connect_seconds),
                false => self.too_slow(url, "idle_seconds", idle_seconds),
            };
        }
        RemoteError::Unreachable { url: url.to_string(), cause: describe(error) }
    }
}

/// An error with the innermost cause, which says most.
fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// An address in a URL is not looked up by anybody, and is vetted here. However it is written
/// (`0x7f.1`, `2130706433`, `[::ffff:7f00:1]`), a parsed URL holds the address itself.
fn vet_literal(url: &Url, reach: &Reach) -> Result<(), AddressRefused> {
    let address: IpAddr = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    match reach.includes(address) {
        true => Ok(()),
        false => Err(AddressRefused { host: url.host_str().unwrap_or_default().into(), address }),
    }
}

/// Where a redirect leads to, if we go there.
fn redirected(from: &Url, headers: &HeaderMap) -> Result<Url, RemoteError> {
    let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
    let refused = |why| RemoteError::Redirect { to: to.chars().take(200).collect(), why };
    if to.is_empty() {
        return Err(refused("it says not where"));
    }
    let mut next = from.join(to).map_err(|_| refused("it is no URL"))?;
    next.set_fragment(None);
    match vet(&next) {
        Err(InvalidLocation::Scheme { .. }) => Err(refused("only http and https are followed")),
        Err(_) => Err(refused("it holds a user name or a password")),
        Ok(()) if from.scheme() == "https" && next.scheme() != "https" => {
            Err(refused("it leads from https to http"))
        }
        Ok(()) => Ok(next),
    }
}

/// Looks names up, and gives out nothing but vetted addresses: what is vetted is what is connected
/// to, since nobody looks a second time.
struct Vetted {
    reach: Reach,
    lookup: Lookup,
}

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, reach) = (name.as_str().to_owned(), self.reach.clone());
        let found = (self.lookup)(host.clone());
        Box::pin(async move {
            let found = found.await?;
            // One private address is enough: no honest name has both.
            if let Some(address) = found.iter().copied().find(|found| !reach.includes(*found)) {
                return Err(AddressRefused { host, address }.into());
            }
            let addresses: Vec<SocketAddr> =
                found.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
