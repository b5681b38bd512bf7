//! From the paths that a person types to the text of skills.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use prowess_catalog::{ScanLimits, TreeDigest, find_skill_files, path_not_utf8};
use prowess_format::{Code, Diagnostic, Digest, Level, Options, Profile, Skill};

use crate::report::Identity;

/// The path that stands for standard input.
const STDIN: &str = "-";

/// A place where a skill is or should be.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    /// The skill's folder, as it was typed or found; for standard input `-`.
    pub(crate) folder: PathBuf,
    /// Its file, or what stands in the way.
    pub(crate) file: Result<PathBuf, Diagnostic>,
}

/// What was found at the paths, and what was not searched.
pub(crate) struct Search {
    pub(crate) located: Vec<Located>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Finds the skills at these paths: a skill folder, a `SKILL.md`, or any folder above skills. A
/// path without a skill is located too, with the reason.
pub(crate) fn search(paths: &[PathBuf], profile: Profile, limits: ScanLimits) -> Search {
    let mut search = Search { located: Vec::new(), diagnostics: Vec::new() };
    for path in paths {
        match locate(path, profile) {
            Located { folder, file: Err(diagnostic) }
                if diagnostic.code == Code::MissingSkillFile =>
            {
                let found = find_skill_files(&folder, limits);
                let failed = found.diagnostics.iter().any(|found| found.level == Level::Error);
                if found.files.is_empty() && !failed {
                    search.located.push(Located { folder, file: Err(diagnostic) });
                }
                search.located.extend(found.files.into_iter().map(|file| Located {
                    folder: file.parent().map(Path::to_owned).unwrap_or_default(),
                    file: Ok(file),
                }));
                search.diagnostics.extend(found.diagnostics);
            }
            located => search.located.push(located),
        }
    }
    search
}

/// The skill at exactly this path.
pub(crate) fn locate(path: &Path, profile: Profile) -> Located {
    let failed = |code: Code, message: String, help: &str| Located {
        folder: path.to_owned(),
        file: Err(finding(code, profile, path, message).with_help(help)),
    };
    if path.as_os_str() == STDIN {
        return Located { folder: path.to_owned(), file: Ok(path.to_owned()) };
    }
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("Path does not exist: {shown}");
            return failed(Code::PathNotFound, message, "check the spelling");
        }
        Err(error) => {
            let message = format!("Cannot read {shown}: {error}");
            return failed(Code::UnreadableFile, message, "check the permissions");
        }
    };
    if !metadata.is_dir() {
        let name = path.file_name().unwrap_or_default();
        if !name.eq_ignore_ascii_case("skill.md") {
            let message = format!("Not a directory: {shown}");
            return failed(Code::NotADirectory, message, "give a skill folder or a SKILL.md");
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        return Located { folder, file: Ok(path.to_owned()) };
    }
    match skill_file(path) {
        Some(file) => Located { folder: path.to_owned(), file: Ok(file) },
        None => failed(
            Code::MissingSkillFile,
            "Missing required file: SKILL.md".to_owned(),
            "create one with `prowess create`",
        ),
    }
}

/// `SKILL.md`, or else `skill.md`.
fn skill_file(folder: &Path) -> Option<PathBuf> {
    ["SKILL.md", "skill.md"]
        .into_iter()
        .map(|name| folder.join(name))
        .find(|file| fs::symlink_metadata(file).is_ok())
}

/// A finding about a path as a whole.
fn finding(code: Code, profile: Profile, path: &Path, message: String) -> Diagnostic {
    let level = code.level(profile).unwrap_or(Level::Error);
    Diagnostic::new(code, level, message).with_path(path.display().to_string())
}

/// A place that was looked at, and what came of it.
pub(crate) struct Checked {
    /// The skill's folder.
    pub(crate) folder: PathBuf,
    /// The file; none if there is none.
    pub(crate) file: Option<PathBuf>,
    /// The digest of the file; none if it could not be read.
    pub(crate) digest: Option<Digest>,
    /// The text; empty if it could not be read.
    pub(crate) source: String,
    /// The skill, if it can be used.
    pub(crate) skill: Option<Skill>,
    /// What there is to say, in the order of the rules.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads and checks the skill at a place. Whatever goes wrong is a diagnostic with the path.
pub(crate) fn check(
    located: Located,
    profile: Profile,
    links: Links,
    limits: ScanLimits,
) -> Checked {
    let Located { folder, file } = located;
    let bytes = file.and_then(|file| match read_bytes(&file, limits.file_bytes) {
        Ok(bytes) => Ok((file, bytes)),
        Err((code, message, help)) => Err(finding(code, profile, &file, message).with_help(help)),
    });
    let (file, bytes) = match bytes {
        Ok(read) => read,
        Err(diagnostic) => {
            let diagnostics = vec![diagnostic];
            let (source, skill) = (String::new(), None);
            return Checked { folder, file: None, digest: None, source, skill, diagnostics };
        }
    };
    let folder_name = folder_name(&folder);
    let file_exists = |link: &str| is_file_of_skill(&folder, link);
    let mut options = Options::new().with_profile(profile);
    if let Some(name) = &folder_name {
        options = options.in_folder(name);
        if links == Links::Check {
            options = options.checking_links(&file_exists);
        }
    }
    let parsed = Skill::parse_bytes(&bytes, &options);
    let mut diagnostics = parsed.diagnostics;
    if file.file_name().is_some_and(|name| name != "SKILL.md" && name != STDIN)
        && let Some(level) = Code::FileNameCase.level(profile)
    {
        let message = "The file is not named SKILL.md; most runtimes find nothing else";
        let diagnostic = Diagnostic::new(Code::FileNameCase, level, message);
        diagnostics.push(diagnostic.with_help("rename it"));
    }
    diagnostics.extend(path_not_utf8(&file));
    for diagnostic in &mut diagnostics {
        diagnostic.path = Some(shown(&file).into());
    }
    let digest = Some(Digest::of(&bytes));
    let source = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Checked { folder, file: Some(file), digest, source, skill: parsed.skill, diagnostics }
}

impl Checked {
    /// What identifies the skill, if it could be read.
    pub(crate) fn identity(&self, limits: ScanLimits) -> Option<Identity> {
        let (file, digest) = (self.file.as_deref()?, self.digest?);
        let path = shown(file);
        if file.as_os_str() == STDIN {
            return Some(Identity { path, digest, tree_digest: None });
        }
        let name = file.file_name()?.to_str()?;
        let tree_digest = TreeDigest::of_folder(&self.folder, name, digest, limits);
        Some(Identity { path, digest, tree_digest: Some(tree_digest) })
    }
}

/// Whether relative links in a body are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// They are.
    Check,
    /// They are not.
    Ignore,
}

/// A path for people: standard input has a name of its own.
pub(crate) fn shown(path: &Path) -> String {
    match path.as_os_str() == STDIN {
        true => "<stdin>".to_owned(),
        false => path.display().to_string(),
    }
}

/// The name of a folder, even if it was typed as `.` or `..`.
fn folder_name(folder: &Path) -> Option<String> {
    if folder.as_os_str() == STDIN {
        return None;
    }
    let real;
    let name = match folder.components().next_back() {
        Some(Component::Normal(name)) => name,
        _ => {
            real = fs::canonicalize(folder).ok()?;
            real.file_name()?
        }
    };
    Some(name.to_string_lossy().into_owned())
}

/// Whether a relative link leads to something inside the skill's folder.
fn is_file_of_skill(folder: &Path, link: &str) -> bool {
    let inside = Path::new(link).components().try_fold(0_usize, |depth, part| match part {
        Component::Normal(_) => Some(depth + 1),
        Component::CurDir => Some(depth),
        Component::ParentDir => depth.checked_sub(1),
        Component::RootDir | Component::Prefix(_) => None,
    });
    inside.is_some() && folder.join(link).exists()
}

type Problem = (Code, String, &'static str);

/// The bytes of a regular file, or of standard input, up to the limit.
fn read_bytes(file: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    let name = shown(file);
    let unreadable = |error: io::Error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "the link leads nowhere; mend or remove it",
            _ => "check the permissions",
        };
        (Code::UnreadableFile, format!("Cannot read {name}: {error}"), help)
    };
    let too_large = |bytes: u64| {
        let message = format!("{name} has {bytes} bytes or more, the limit is {limit}");
        (Code::FileTooLarge, message, "move long text into files of the skill")
    };
    let mut reader: Box<dyn io::Read> = if file.as_os_str() == STDIN {
        Box::new(io::stdin().lock())
    } else {
        // A named pipe would block on opening.
        let metadata = fs::metadata(file).map_err(unreadable)?;
        if !metadata.is_file() {
            let message = format!("Cannot read {name}: it is not a regular file");
            return Err((Code::UnreadableFile, message, "SKILL.md must be a file"));
        }
        if metadata.len() > limit {
            return Err(too_large(metadata.len()));
        }
        Box::new(fs::File::open(file).map_err(unreadable)?)
    };
    let mut bytes = Vec::new();
    reader.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= limit => Ok(bytes),
        _ => Err(too_large(limit.saturating_add(1))),
    }
}
