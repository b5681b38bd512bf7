//! From the paths that a person types to the text of skills.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use prowess_format::{Code, Diagnostic, Options, Profile, Skill};

/// A larger `SKILL.md` is not read.
pub(crate) const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;
/// How deep below a path skills are searched.
const MAX_DEPTH: usize = 6;
/// How many folders are searched below a path.
const MAX_FOLDERS: usize = 20_000;
/// Folders that are never searched.
const SKIPPED_FOLDERS: [&str; 4] = [".git", ".hg", ".svn", "node_modules"];

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
pub(crate) fn search(paths: &[PathBuf], profile: Profile) -> Search {
    let mut search = Search {
        located: Vec::new(),
        diagnostics: Vec::new(),
    };
    for path in paths {
        match locate(path, profile) {
            Located {
                folder,
                file: Err(diagnostic),
            } if diagnostic.code == Code::MissingSkillFile => {
                let mut walk = Walk::new(profile);
                walk.folder(&folder, 0);
                if walk.found.is_empty() && walk.diagnostics.is_empty() {
                    search.located.push(Located {
                        folder,
                        file: Err(diagnostic),
                    });
                }
                search.located.append(&mut walk.found);
                search.diagnostics.append(&mut walk.diagnostics);
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
        return Located {
            folder: path.to_owned(),
            file: Ok(path.to_owned()),
        };
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
            return failed(
                Code::NotADirectory,
                message,
                "give a skill folder or a SKILL.md",
            );
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        return Located {
            folder,
            file: Ok(path.to_owned()),
        };
    }
    match skill_file(path) {
        Some(file) => Located {
            folder: path.to_owned(),
            file: Ok(file),
        },
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

struct Walk {
    profile: Profile,
    found: Vec<Located>,
    diagnostics: Vec<Diagnostic>,
    seen: HashSet<PathBuf>,
    folders: usize,
}

impl Walk {
    fn new(profile: Profile) -> Self {
        Self {
            profile,
            found: Vec::new(),
            diagnostics: Vec::new(),
            seen: HashSet::new(),
            folders: 0,
        }
    }

    /// Searches a folder in the order of names. A skill is a leaf; a folder that was seen by
    /// another way is passed over.
    fn folder(&mut self, folder: &Path, depth: usize) {
        if !fs::canonicalize(folder).is_ok_and(|real| self.seen.insert(real)) {
            return;
        }
        self.folders += 1;
        if self.folders > MAX_FOLDERS {
            if self.folders == MAX_FOLDERS + 1 {
                self.limit(
                    folder,
                    &format!("The search stopped here, after {MAX_FOLDERS} folders"),
                );
            }
            return;
        }
        if let Some(file) = skill_file(folder) {
            self.found.push(Located {
                folder: folder.to_owned(),
                file: Ok(file),
            });
            return;
        }
        let mut children = match fs::read_dir(folder) {
            Ok(entries) => entries
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .filter(|path| path.is_dir() && !is_skipped(path))
                .collect::<Vec<_>>(),
            Err(error) => {
                let message = format!("Cannot read {}: {error}", folder.display());
                let diagnostic = finding(Code::UnreadableFile, self.profile, folder, message);
                self.diagnostics
                    .push(diagnostic.with_help("check the permissions"));
                return;
            }
        };
        if depth == MAX_DEPTH && !children.is_empty() {
            self.limit(
                folder,
                &format!("Folders more than {MAX_DEPTH} levels down are not searched"),
            );
            return;
        }
        children.sort();
        for child in children {
            self.folder(&child, depth + 1);
        }
    }

    fn limit(&mut self, folder: &Path, message: &str) {
        let diagnostic = finding(Code::ScanLimit, self.profile, folder, message.to_owned());
        self.diagnostics
            .push(diagnostic.with_help("name the folders of the skills"));
    }
}

fn is_skipped(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped))
}

/// A finding about a path as a whole.
fn finding(code: Code, profile: Profile, path: &Path, message: String) -> Diagnostic {
    let level = code.level(profile).unwrap_or(prowess_format::Level::Error);
    Diagnostic::new(code, level, message).with_path(path.display().to_string())
}

/// A place that was looked at, and what came of it.
pub(crate) struct Checked {
    /// The skill's folder.
    pub(crate) folder: PathBuf,
    /// The text; empty if it could not be read.
    pub(crate) source: String,
    /// The skill, if it can be used.
    pub(crate) skill: Option<Skill>,
    /// What there is to say, in the order of the rules.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads and checks the skill at a place. Whatever goes wrong is a diagnostic with the path.
pub(crate) fn check(located: Located, profile: Profile, links: Links) -> Checked {
    let Located { folder, file } = located;
    let bytes = file.and_then(|file| match read_bytes(&file) {
        Ok(bytes) => Ok((file, bytes)),
        Err((code, message, help)) => Err(finding(code, profile, &file, message).with_help(help)),
    });
    let (file, bytes) = match bytes {
        Ok(read) => read,
        Err(diagnostic) => {
            let diagnostics = vec![diagnostic];
            return Checked {
                folder,
                source: String::new(),
                skill: None,
                diagnostics,
            };
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
    if file
        .file_name()
        .is_some_and(|name| name != "SKILL.md" && name != STDIN)
        && let Some(level) = Code::FileNameCase.level(profile)
    {
        let message = "The file is not named SKILL.md; most runtimes find nothing else";
        let diagnostic = Diagnostic::new(Code::FileNameCase, level, message);
        diagnostics.push(diagnostic.with_help("rename it"));
    }
    for diagnostic in &mut diagnostics {
        diagnostic.path = Some(shown(&file).into());
    }
    let source = String::from_utf8_lossy(&bytes).into_owned();
    Checked {
        folder,
        source,
        skill: parsed.skill,
        diagnostics,
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
    let inside = Path::new(link)
        .components()
        .try_fold(0_usize, |depth, part| match part {
            Component::Normal(_) => Some(depth + 1),
            Component::CurDir => Some(depth),
            Component::ParentDir => depth.checked_sub(1),
            Component::RootDir | Component::Prefix(_) => None,
        });
    inside.is_some() && folder.join(link).exists()
}

type Problem = (Code, String, &'static str);

/// The bytes of a regular file, or of standard input, up to the limit.
fn read_bytes(file: &Path) -> Result<Vec<u8>, Problem> {
    let name = shown(file);
    let unreadable = |error: io::Error| {
        (
            Code::UnreadableFile,
            format!("Cannot read {name}: {error}"),
            "check the permissions",
        )
    };
    let too_large = |bytes: u64| {
        let message = format!("{name} has {bytes} bytes or more, the limit is {MAX_FILE_BYTES}");
        (
            Code::FileTooLarge,
            message,
            "move long text into files of the skill",
        )
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
        if metadata.len() > MAX_FILE_BYTES {
            return Err(too_large(metadata.len()));
        }
        Box::new(fs::File::open(file).map_err(unreadable)?)
    };
    let mut bytes = Vec::new();
    reader
        .by_ref()
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_FILE_BYTES => Ok(bytes),
        _ => Err(too_large(MAX_FILE_BYTES + 1)),
    }
}
