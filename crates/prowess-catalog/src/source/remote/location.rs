//! Where skills are fetched from.

use std::path::{Path, PathBuf};

use prowess_format::Digest;
use url::Url;

use super::error::InvalidLocation;
use crate::source::Trust;

/// Where skills are fetched from: a URL or a file, and what must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub(super) place: Place,
    pin: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A file on this machine.
    File(PathBuf),
    /// An archive or a `SKILL.md`.
    Url(Url),
    /// Indexes of skills, to be tried in turn.
    Index(Vec<Url>),
}

const PIN: &str = "sha256=";
const INDEX: &str = ".well-known/agent-skills/index.json";
const OLD_INDEX: &str = ".well-known/skills/index.json";

impl Location {
    /// Reads a URL or the path of a file, with or without `#sha256=` and a digest behind it. The
    /// URL of a host alone stands for its index of skills.
    ///
    /// ```
    /// use prowess_catalog::Location;
    ///
    /// assert!(Location::parse("https://example.com/skills.zip").is_ok());
    /// assert!(Location::parse("https://example.com").is_ok());
    /// assert!(Location::parse("ftp://example.com/skills.zip").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidLocation> {
        if !Self::is_url(text) {
            let (path, pin) = match text.rsplit_once(&format!("#{PIN}")) {
                Some((path, digest)) => (path, Some(parse_pin(&format!("{PIN}{digest}"))?)),
                None => (text, None),
            };
            return Ok(Self { place: Place::File(path.into()), pin });
        }
        let parsed = Url::parse(text);
        let mut url =
            parsed.map_err(|cause| InvalidLocation::Url { text: text.to_owned(), cause })?;
        let pin = url.fragment().filter(|fragment| !fragment.is_empty()).map(parse_pin);
        let pin = pin.transpose()?;
        url.set_fragment(None);
        let place = match url.scheme() {
            "file" => {
                let path = url.to_file_path();
                Place::File(path.map_err(|()| InvalidLocation::Host { text: text.to_owned() })?)
            }
            _ => {
                vet(&url)?;
                match index_of(&url) {
                    Some(indexes) => Place::Index(indexes),
                    None => Place::Url(url),
                }
            }
        };
        Ok(Self { place, pin })
    }

    /// Whether a text is meant as a URL, and not as a path.
    pub fn is_url(text: &str) -> bool {
        text.contains("://")
    }

    /// What must be there.
    pub fn pin(&self) -> Option<Digest> {
        self.pin
    }

    /// The same place, where nothing but this is accepted.
    pub fn pinned(mut self, digest: Digest) -> Self {
        self.pin = Some(digest);
        self
    }

    /// The file, if it is on this machine.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            _ => None,
        }
    }

    /// What is fetched is believed only if it is known before.
    pub fn trust(&self) -> Trust {
        if self.pin.is_some() { Trust::Trusted } else { Trust::Untrusted }
    }

    /// The place, without the pin.
    pub fn shown(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Url(url) => url.to_string(),
            Place::Index(urls) => urls.first().map(Url::to_string).unwrap_or_default(),
        }
    }

    /// The place with the pin: what is fetched for one pin is never taken for another.
    pub(super) fn key(&self) -> String {
        match self.pin {
            Some(pin) => format!("{}#{PIN}{}", self.shown(), pin.hex()),
            None => self.shown(),
        }
    }

    /// Whether others on the way can read and change what is fetched.
    pub(super) fn is_open(&self) -> bool {
        let url = match &self.place {
            Place::File(_) => return false,
            Place::Url(url) => Some(url),
            Place::Index(urls) => urls.first(),
        };
        self.pin.is_none() && url.is_some_and(|url| url.scheme() != "https")
    }

    /// The name of the file, which says what it is.
    pub(super) fn file_name(&self) -> String {
        match &self.place {
            Place::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into(),
            Place::Url(url) => file_name(url),
            Place::Index(_) => String::new(),
        }
    }

    /// The label of the source: what the archive is called; if that says little, the host.
    pub(super) fn label(&self) -> String {
        let host = match &self.place {
            Place::File(path) => path
                .parent()
                .and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned()),
            Place::Url(url) => match file_name(url).eq_ignore_ascii_case("SKILL.md") {
                true => folder_name(url).or_else(|| url.host_str().map(str::to_owned)),
                false => url.host_str().map(str::to_owned),
            },
            Place::Index(urls) => urls.first().and_then(Url::host_str).map(str::to_owned),
        };
        let name = self.file_name();
        let end = name.to_ascii_lowercase();
        let suffix = [".zip", ".tar.gz", ".tgz", ".tar"].into_iter().find(|s| end.ends_with(s));
        let stem = suffix.map(|suffix| &name[..name.len() - suffix.len()]).unwrap_or_default();
        let generic = ["", "skills", "skill", "main", "master", "latest", "download"];
        match (generic.contains(&stem.to_ascii_lowercase().as_str()), host) {
            (true, Some(host)) => host,
            (true, None) => "remote".to_owned(),
            (false, _) => stem.to_owned(),
        }
    }
}

fn parse_pin(fragment: &str) -> Result<Digest, InvalidLocation> {
    let digest = fragment.strip_prefix(PIN).and_then(|hex| hex.parse().ok());
    digest.ok_or_else(|| InvalidLocation::Pin { fragment: fragment.to_owned() })
}

/// The last name in the path of a URL.
pub(super) fn file_name(url: &Url) -> String {
    url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default().to_owned()
}

fn folder_name(url: &Url) -> Option<String> {
    let name = url.path_segments()?.rev().nth(1)?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether a URL is one that is fetched at all, wherever it comes from.
pub(super) fn vet(url: &Url) -> Result<(), InvalidLocation> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(InvalidLocation::Scheme { scheme: url.scheme().to_owned() });
    }
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(()),
        false => Err(InvalidLocation::Credentials),
    }
}

/// The indexes that a URL stands for, if it stands for any: the newer form first.
fn index_of(url: &Url) -> Option<Vec<Url>> {
    let path = url.path().trim_end_matches("/index.json").trim_end_matches('/');
    let at = |path: &str| {
        let mut index = url.clone();
        index.set_path(path);
        index
    };
    if let Some(base) = path.strip_suffix("/.well-known/agent-skills") {
        return Some(vec![at(&format!("{base}/{INDEX}"))]);
    }
    if let Some(base) = path.strip_suffix("/.well-known/skills") {
        return Some(vec![at(&format!("{base}/{OLD_INDEX}"))]);
    }
    let is_host = url.path() == "/" && url.query().is_none();
    is_host.then(|| vec![at(&format!("/{INDEX}")), at(&format!("/{OLD_INDEX}"))])
}
