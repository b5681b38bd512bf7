//! The registry of a running server, over REST.

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::time::Duration;

use prowess_catalog::{
    ArchiveKind, ContentFile, Executable, RemoteLimits, ResourcePath, SkillContents, pack,
    unpack_from,
};
use prowess_store::{FileDiff, SkillId, VersionError};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::desk::{DeskError, Push, Pushed, SkillRow, VersionRow};
use crate::cli::ServerKey;

/// So long it may take until somebody is there.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// So long nothing may come.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// The most bytes of an answer.
const ANSWER_BYTES: usize = 256 << 20;
/// So many versions are asked for at once; no server gives more.
const VERSION_PAGE: usize = 100;
/// The most characters of an answer that is no problem of ours.
const SHOWN_CHARS: usize = 200;

/// The registry of a running server.
pub(super) struct Remote {
    client: Client,
    /// Ends with a slash.
    base: Url,
    key: Option<HeaderValue>,
    limits: RemoteLimits,
}

/// What a server says is wrong.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    details: Option<Value>,
}

#[derive(Deserialize)]
struct SkillPage {
    skills: Vec<SkillRow>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct VersionPage {
    versions: Vec<VersionRow>,
    total: usize,
}

#[derive(Deserialize)]
struct DiffPage {
    files: Vec<FileDiff>,
    next_cursor: Option<usize>,
}

#[derive(Deserialize)]
struct Imported {
    skills: Vec<ImportedSkill>,
}

#[derive(Deserialize)]
struct ImportedSkill {
    status: String,
    version_number: u64,
}

/// The part of a skill that says which version is used.
#[derive(Deserialize)]
struct Active {
    active_version: u64,
}

impl Remote {
    /// A server at an address; nobody is asked yet.
    pub(super) fn new(
        address: &str,
        key: Option<&ServerKey>,
        limits: RemoteLimits,
    ) -> Result<Self, DeskError> {
        let invalid = |cause: &dyn ToString| DeskError::Address {
            address: without_secrets(address),
            cause: cause.to_string(),
        };
        let mut base = Url::parse(address).map_err(|error| invalid(&error))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(invalid(&"it must begin with http:// or https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(invalid(&"a key is given with --key or PROWESS_KEY"));
        }
        base.set_query(None);
        base.set_fragment(None);
        let path = base.path().trim_end_matches('/').trim_end_matches("/api/v1").to_owned();
        base.set_path(&format!("{path}/"));
        let key = key.filter(|key| !key.expose().is_empty()).map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
            if let Ok(value) = &mut value {
                value.set_sensitive(true);
            }
            value.map_err(|_| DeskError::Key)
        });
        // A key goes nowhere else than where it was sent.
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME)
            .read_timeout(IDLE_TIME)
            .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| invalid(&causes(&error)))?;
        Ok(Self { client, base, key: key.transpose()?, limits })
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}api/v1/{path}", self.base.path()));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.client.request(method, url);
        match &self.key {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        }
    }

    fn server(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    fn away(&self, error: reqwest::Error) -> DeskError {
        DeskError::Away { server: self.server(), cause: causes(&error.without_url()) }
    }

    fn strange(&self, cause: &dyn ToString) -> DeskError {
        DeskError::Strange { server: self.server(), cause: cause.to_string() }
    }

    /// Asks, and gives what was answered if that is no problem.
    async fn ask(&self, request: RequestBuilder) -> Result<Vec<u8>, DeskError> {
        let mut response = request.send().await.map_err(|error| self.away(error))?;
        let status = response.status();
        let body = self.body(&mut response).await?;
        match status.is_success() {
            true => Ok(body),
            false => Err(self.problem(status, &body)),
        }
    }

    async fn body(&self, response: &mut Response) -> Result<Vec<u8>, DeskError> {
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.away(error))? {
            if body.len() + part.len() > ANSWER_BYTES {
                return Err(self.strange(&format!("it sends more than {ANSWER_BYTES} bytes")));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    fn problem(&self, status: StatusCode, body: &[u8]) -> DeskError {
        match serde_json::from_slice(body) {
            Ok(Problem { code, detail, details }) => {
                DeskError::Problem { status: status.as_u16(), code, detail, details }
            }
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text: String = text.trim().chars().take(SHOWN_CHARS).collect();
                self.strange(&format!("{status} {text}"))
            }
        }
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, DeskError> {
        let body = self.ask(request).await?;
        serde_json::from_slice(&body).map_err(|error| self.strange(&error))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, DeskError> {
        self.json(self.request(Method::GET, path, query)).await
    }

    pub(super) async fn list(&self) -> Result<Vec<SkillRow>, DeskError> {
        let mut rows = Vec::new();
        let mut query = vec![("limit", "500".to_owned())];
        loop {
            let page: SkillPage = self.get("skills", &query).await?;
            rows.extend(page.skills);
            let Some(cursor) = page.next_cursor else { return Ok(rows) };
            query.truncate(1);
            query.push(("cursor", cursor));
        }
    }

    pub(super) async fn push(&self, push: Push) -> Result<Pushed, DeskError> {
        let Push { reading, contents, message, activate } = push;
        let zip = pack(&contents, reading.id.as_str())?;
        let mut query = vec![("conflict", "version".to_owned())];
        // Without this the server decides by the role.
        if !activate {
            query.push(("activate", "false".to_owned()));
        }
        let request = self.request(Method::POST, "skills/import", &query);
        let request = match message {
            None => request.header(CONTENT_TYPE, "application/zip").body(zip),
            Some(message) => {
                let (kind, body) = form(&message, &zip);
                request.header(CONTENT_TYPE, kind).body(body)
            }
        };
        let imported: Imported = self.json(request).await?;
        let missing = || self.strange(&"it does not say what came of the skill");
        let imported = imported.skills.into_iter().next().ok_or_else(missing)?;
        let rows = self.versions_until(&reading.id, |row| row.is_active).await?;
        let active = rows.iter().find(|row| row.is_active);
        Ok(Pushed {
            status: imported.status,
            version_number: imported.version_number,
            active_version: active.map(|row| row.version_number),
        })
    }

    pub(super) async fn versions(&self, skill: &SkillId) -> Result<Vec<VersionRow>, DeskError> {
        self.versions_until(skill, |_| false).await
    }

    /// The versions, the newest first, page by page until one is among them that is looked for.
    async fn versions_until(
        &self,
        skill: &SkillId,
        is_meant: impl Fn(&VersionRow) -> bool,
    ) -> Result<Vec<VersionRow>, DeskError> {
        let mut rows: Vec<VersionRow> = Vec::new();
        let mut offset = 0;
        loop {
            let query = [("limit", VERSION_PAGE.to_string()), ("offset", offset.to_string())];
            let page: VersionPage = self.get(&format!("skills/{skill}/versions"), &query).await?;
            offset += page.versions.len();
            let is_last = page.versions.is_empty() || offset >= page.total;
            let is_found = page.versions.iter().any(&is_meant);
            rows.extend(page.versions);
            // A version that was made meanwhile moves the others.
            rows.dedup_by_key(|row| row.version_number);
            if is_last || is_found {
                return Ok(rows);
            }
        }
    }

    /// A version of this number, or the active one; where none is, the newest one waits.
    async fn version(&self, skill: &SkillId, number: Option<u64>) -> Result<VersionRow, DeskError> {
        let is_meant = |row: &VersionRow| match number {
            Some(number) => row.version_number == number,
            None => row.is_active,
        };
        let rows = self.versions_until(skill, is_meant).await?;
        let newest = rows.first().filter(|_| number.is_none()).cloned();
        rows.into_iter().find(is_meant).or(newest).ok_or_else(|| match number {
            Some(number) => VersionError::NoVersion { skill: skill.clone(), number }.into(),
            None => self.strange(&"it has a skill without versions"),
        })
    }

    pub(super) async fn contents(
        &self,
        skill: &SkillId,
        version: Option<u64>,
    ) -> Result<(u64, SkillContents), DeskError> {
        let row = self.version(skill, version).await?;
        let number = row.version_number;
        let query = [("format", "zip".to_owned()), ("version", number.to_string())];
        let request = self.request(Method::GET, &format!("skills/{skill}/export"), &query);
        let contents = self.unpacked(skill, &self.ask(request).await?)?;
        match contents.tree_digest.to_string() == row.tree_digest {
            true => Ok((number, contents)),
            false => Err(DeskError::Damaged(skill.clone())),
        }
    }

    /// The files of a skill in an archive, below a folder that is called as it is.
    fn unpacked(&self, skill: &SkillId, zip: &[u8]) -> Result<SkillContents, DeskError> {
        let scratch = tempfile::Builder::new().prefix("prowess-pull-").tempdir();
        let scratch = scratch.map_err(|error| io(&std::env::temp_dir(), error))?;
        let root = scratch.path();
        let zipped = ArchiveKind::Zip;
        let unpacked = unpack_from(Cursor::new(zip), zipped, root, &self.limits, &mut |_| {})?;
        let folder = format!("{skill}/");
        let mut files = Vec::with_capacity(unpacked.files.len());
        for file in unpacked.files {
            let inside = file.path.as_str().strip_prefix(&folder);
            let path = inside.and_then(|path| ResourcePath::parse(path).ok());
            let path = path.ok_or_else(|| DeskError::Damaged(skill.clone()))?;
            let place = root.join(file.path.as_str());
            let bytes = fs::read(&place).map_err(|error| io(&place, error))?;
            files.push(ContentFile::new(path, file.executable == Executable::Yes, bytes));
        }
        Ok(SkillContents::of(files))
    }

    pub(super) async fn activate(&self, skill: &SkillId, version: u64) -> Result<(), DeskError> {
        let path = format!("skills/{skill}/versions/{version}/activate");
        self.json::<Active>(self.request(Method::POST, &path, &[])).await?;
        Ok(())
    }

    pub(super) async fn diff(
        &self,
        skill: &SkillId,
        from: u64,
        to: u64,
    ) -> Result<Vec<FileDiff>, DeskError> {
        let mut files = Vec::new();
        let mut query = vec![("from", from.to_string()), ("to", to.to_string())];
        loop {
            let page: DiffPage = self.get(&format!("skills/{skill}/diff"), &query).await?;
            files.extend(page.files);
            let Some(cursor) = page.next_cursor else { return Ok(files) };
            query.truncate(2);
            query.push(("cursor", cursor.to_string()));
        }
    }

    pub(super) async fn reset(&self, skill: &SkillId) -> Result<u64, DeskError> {
        let request = self.request(Method::POST, &format!("skills/{skill}/reset"), &[]);
        let Active { active_version } = self.json(request).await?;
        Ok(active_version)
    }

    pub(super) async fn delete(&self, skill: &SkillId) -> Result<(), DeskError> {
        self.ask(self.request(Method::DELETE, &format!("skills/{skill}"), &[])).await?;
        Ok(())
    }
}

/// A form with a reason and an archive: its kind and its bytes.
fn form(message: &str, zip: &[u8]) -> (String, Vec<u8>) {
    let boundary = format!("prowess-{}", uuid::Uuid::now_v7().simple());
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"change_summary\"\r\n\r\n\
         {message}\r\n--{boundary}\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"skill.zip\"\r\n\
         content-type: application/zip\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let body = [head.as_bytes(), zip, tail.as_bytes()].concat();
    (format!("multipart/form-data; boundary={boundary}"), body)
}

fn io(path: &std::path::Path, cause: std::io::Error) -> DeskError {
    prowess_catalog::ArchiveError::Io { path: path.into(), cause }.into()
}

/// An error with what led to it.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(&format!(": {cause_text}"));
        }
        next = cause.source();
    }
    text
}

/// An address without what may be a password.
fn without_secrets(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => address.to_owned(),
    }
}
