//! Where skills are looked for when nobody says where.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::source::Trust;

/// The surroundings that decide on roots, so that deciding needs no process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Environment {
    /// The working directory.
    pub working_directory: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `PROWESS_HOME`.
    pub prowess_home: Option<PathBuf>,
    /// `PROWESS_SKILLS`: paths, separated by colons.
    pub prowess_skills: Option<std::ffi::OsString>,
    /// `SKILLS_ROOT`: a path or a URL.
    pub skills_root: Option<std::ffi::OsString>,
    /// `PROWESS_CACHE_DIR`, else `SKILLS_CACHE_DIR`.
    pub cache: Option<PathBuf>,
}

impl Environment {
    /// The surroundings of this process.
    pub fn of_process() -> std::io::Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Ok(Self {
            working_directory: std::env::current_dir()?,
            home: variable("HOME").map(PathBuf::from),
            config_home: variable("XDG_CONFIG_HOME").map(PathBuf::from),
            prowess_home: variable("PROWESS_HOME").map(PathBuf::from),
            prowess_skills: variable("PROWESS_SKILLS"),
            skills_root: variable("SKILLS_ROOT"),
            cache: variable("PROWESS_CACHE_DIR")
                .or_else(|| variable("SKILLS_CACHE_DIR"))
                .map(PathBuf::from),
        })
    }

    /// The surroundings of a program in this folder.
    pub fn in_folder(working_directory: impl Into<PathBuf>) -> Self {
        Self { working_directory: working_directory.into(), ..Self::default() }
    }

    /// Sets the user's home.
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets `PROWESS_SKILLS`.
    pub fn with_prowess_skills(mut self, paths: impl Into<std::ffi::OsString>) -> Self {
        self.prowess_skills = Some(paths.into());
        self
    }

    /// Sets `SKILLS_ROOT`.
    pub fn with_skills_root(mut self, path: impl Into<std::ffi::OsString>) -> Self {
        self.skills_root = Some(path.into());
        self
    }

    /// Sets where what is fetched is kept.
    pub fn with_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Where what is fetched is kept: `PROWESS_CACHE_DIR`, `SKILLS_CACHE_DIR`, or `cache` in
    /// Prowess' own home.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        let named = self.cache.as_ref().map(|folder| self.expand(folder.clone()));
        let named = named.map(|folder| self.working_directory.join(folder));
        named.or_else(|| Some(self.prowess_home()?.join("cache")))
    }

    /// Where a text leads that names a source: a URL as it is, `file://` and other paths from a
    /// folder on.
    pub(crate) fn resolve(&self, folder: &Path, source: PathBuf) -> PathBuf {
        let source = strip_file_scheme(source);
        match is_url(&source) {
            true => source,
            false => folder.join(self.expand(source)),
        }
    }

    /// A path with `~` as the user's home.
    pub fn expand(&self, path: PathBuf) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }

    /// Where Prowess keeps what is its own: `PROWESS_HOME`, or `.prowess` in the user's home.
    pub fn prowess_home(&self) -> Option<PathBuf> {
        self.prowess_home.clone().or_else(|| Some(self.home.as_ref()?.join(".prowess")))
    }

    /// The folders from the repository's root down to the working directory. Without a marker
    /// of a repository there is no walking up.
    pub fn project_folders(&self) -> Vec<PathBuf> {
        let here = &self.working_directory;
        let marked = |folder: &&Path| folder.join(".git").exists();
        let Some(top) = here.ancestors().find(marked) else { return vec![here.clone()] };
        let mut folders: Vec<PathBuf> = here
            .ancestors()
            .take_while(|folder| folder.starts_with(top))
            .map(Path::to_path_buf)
            .collect();
        folders.reverse();
        folders
    }
}

/// Who put a root there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootOrigin {
    /// The user's home.
    User,
    /// The project.
    Project,
    /// `SKILLS_ROOT` or `PROWESS_SKILLS`.
    Variable,
    /// `prowess.toml`.
    Configuration,
    /// A flag.
    Flag,
}

/// A folder, an archive or a URL to look for skills in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// Where: a path, or a URL as it was written.
    pub path: PathBuf,
    /// Who put it there.
    pub origin: RootOrigin,
    /// How far it is believed. Without it a folder is trusted, and what is fetched is only if it
    /// is pinned.
    pub trust: Option<Trust>,
}

impl Root {
    /// A place to look for skills in.
    pub fn new(path: impl Into<PathBuf>, origin: RootOrigin) -> Self {
        Self { path: path.into(), origin, trust: None }
    }

    /// Sets how far it is believed.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// The URL, if it is one.
    pub fn url(&self) -> Option<&str> {
        self.path.to_str().filter(|_| is_url(&self.path))
    }
}

/// What stands for the skills that come with the program, where a path is expected.
pub const BUILT_IN: &str = "builtin:";

/// Whether a path is a URL.
fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://") || text == BUILT_IN)
}

/// Folders inside a project that hold skills, lowest precedence first.
const PROJECT_ROOTS: [&str; 3] = [".agents/skills", ".claude/skills", ".prowess/skills"];

/// The roots that exist by convention, lowest precedence first: the user's, then the project's,
/// the nearest last. Only those that are there.
pub fn default_roots(environment: &Environment) -> Vec<Root> {
    let mut paths = Vec::new();
    let config_of_home = environment.home.as_ref().map(|home| home.join(".config"));
    if let Some(config) = environment.config_home.clone().or(config_of_home) {
        paths.push((config.join("agents/skills"), RootOrigin::User));
    }
    if let Some(home) = &environment.home {
        paths.push((home.join(".agents/skills"), RootOrigin::User));
        paths.push((home.join(".claude/skills"), RootOrigin::User));
    }
    if let Some(own) = environment.prowess_home() {
        paths.push((own.join("skills"), RootOrigin::User));
    }
    for folder in environment.project_folders() {
        for root in PROJECT_ROOTS {
            paths.push((folder.join(root), RootOrigin::Project));
        }
    }
    let mut roots: Vec<Root> = paths
        .into_iter()
        .filter(|(path, _)| is_there(path))
        .map(|(path, origin)| Root::new(path, origin))
        .collect();
    // Who works in his home has the same folder twice: the user's place counts.
    let mut seen = HashSet::new();
    roots.retain(|root| std::fs::canonicalize(&root.path).map_or(true, |real| seen.insert(real)));
    roots
}

/// The roots that variables name, lowest precedence first. They need not exist: whoever names
/// one wants to be told.
pub fn variable_roots(environment: &Environment) -> Vec<Root> {
    let one = environment.skills_root.iter().map(PathBuf::from);
    let many = environment.prowess_skills.iter().flat_map(|paths| split_paths(paths));
    one.chain(many)
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| {
            let path = environment.resolve(&environment.working_directory, path);
            Root::new(path, RootOrigin::Variable)
        })
        .collect()
}

/// Whether something is there, even if it is no folder or cannot be looked at: whoever put it there
/// wants to be told.
fn is_there(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

/// Paths between colons, except the colons of URLs.
fn split_paths(paths: &std::ffi::OsStr) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for part in std::env::split_paths(paths) {
        match out.last_mut().filter(|before| belongs_to(before, &part)) {
            Some(before) => {
                let mut joined = before.as_os_str().to_owned();
                joined.push(":");
                joined.push(part.as_os_str());
                *before = joined.into();
            }
            None => out.push(part),
        }
    }
    out
}

/// Whether a part behind a colon goes on with the URL before it: behind the scheme, or as the port.
fn belongs_to(before: &Path, part: &Path) -> bool {
    let (Some(before), Some(part)) = (before.to_str(), part.to_str()) else { return false };
    if matches!(before, "file" | "http" | "https") {
        return part.starts_with("//");
    }
    let host = ["http://", "https://"].iter().find_map(|scheme| before.strip_prefix(scheme));
    let port = part.split('/').next().unwrap_or_default();
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ':'])) && is_port
}

/// `file:///path` is a path.
fn strip_file_scheme(path: PathBuf) -> PathBuf {
    let stripped = path.to_str().and_then(|text| {
        let rest = text.strip_prefix("file://")?;
        Some(PathBuf::from(rest.strip_prefix("localhost").unwrap_or(rest)))
    });
    stripped.unwrap_or(path)
}
