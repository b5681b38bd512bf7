//! `prowess skills push`

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use prowess_catalog::{
    Blocking, Catalog, DirectorySource, ReadError, RemoteLimits, ScanLimits, SkillContents,
    read_archive,
};
use prowess_format::{Code, Diagnostic, Level, Profile};
use prowess_store::{DocumentError, SkillId, SkillReading};
use serde_json::{Value, json};

use super::desk::{Desk, DeskError, Push, Pushed};
use crate::Outcome;
use crate::cli::PushArgs;
use crate::finder::Finder;
use crate::locate::{self, Links, Located};
use crate::report;
use crate::terminal::safe_line;

/// The most bytes of all files of a skill.
const SKILL_BYTES: u64 = 64 << 20;

/// A place where a skill was looked for.
struct Candidate {
    path: String,
    /// Its files, unless something is wrong.
    contents: Option<SkillContents>,
    findings: Vec<Finding>,
}

/// What keeps a skill from being pushed.
struct Finding {
    code: String,
    message: String,
    path: String,
    /// Line and column.
    place: Option<(u32, u32)>,
    help: Option<String>,
}

pub(super) async fn run(
    desk: &Desk,
    arguments: &PushArgs,
    finder: &Finder,
) -> anyhow::Result<Outcome> {
    let limits = (finder.config.limits, finder.config.remote);
    let mut all = Vec::new();
    for path in &arguments.paths {
        all.extend(candidates(path, limits).await);
    }
    refuse_doubles(&mut all);
    let (mut rows, mut refused) = (Vec::new(), 0_usize);
    for candidate in all {
        let row = push(desk, candidate, arguments).await?;
        refused += usize::from(row["status"] == "refused");
        rows.push(row);
    }
    if arguments.json {
        report::print_json(&json!({"skills": rows, "refused": refused}))?;
    } else if refused > 0 {
        let of = report::counted(rows.len(), "skill");
        anstream::eprintln!("{refused} of {of} refused");
    }
    Ok(if refused > 0 { Outcome::Findings } else { Outcome::Ok })
}

/// Refuses skills that are there more than once under one id: which of them is meant nobody knows. The
/// same place, named twice, is one.
fn refuse_doubles(all: &mut Vec<Candidate>) {
    let mut seen = HashSet::new();
    all.retain(|candidate| candidate.contents.is_none() || seen.insert(candidate.place()));
    let mut places: HashMap<SkillId, Vec<String>> = HashMap::new();
    for (id, path) in all.iter().filter_map(|it| Some((it.id()?, &it.path))) {
        places.entry(id).or_default().push(path.clone());
    }
    for candidate in all {
        let Some(id) = candidate.id() else { continue };
        let others = places.get(&id).into_iter().flatten().filter(|it| **it != candidate.path);
        let others: Vec<&str> = others.map(String::as_str).collect();
        if !others.is_empty() {
            let message = format!("'{id}' is also in {}; push one of them", others.join(", "));
            candidate.contents = None;
            candidate.findings.push(Finding::plain("sent_twice", message, &candidate.path));
        }
    }
}

/// Pushes a skill if nothing is wrong with it, and says what came of it.
async fn push(desk: &Desk, candidate: Candidate, arguments: &PushArgs) -> anyhow::Result<Value> {
    let Candidate { path, contents, mut findings } = candidate;
    let left_out = contents.as_ref().map(|it| left_out(it, &path)).unwrap_or_default();
    let reading = match contents.as_ref().map(SkillReading::of) {
        None => None,
        Some(Ok(reading)) => {
            let errors = reading.diagnostics.iter().filter(|it| it.level == Level::Error);
            findings.extend(errors.map(|it| Finding::of(it, &path)));
            Some(reading)
        }
        Some(Err(error)) => {
            findings.extend(of_document(&error, &path));
            None
        }
    };
    let mut id = None;
    if let (Some(reading), Some(contents), true) = (reading, contents, findings.is_empty()) {
        let skill = reading.id.clone();
        let push = Push {
            reading,
            contents: contents.into(),
            message: arguments.message.clone(),
            activate: !arguments.no_activate,
        };
        match desk.push(push).await {
            Ok(pushed) => {
                return Ok(told(skill.as_str(), &path, &pushed, &left_out, arguments.json));
            }
            Err(error) if error.is_about_skill() => findings.extend(of_registry(&error, &path)),
            Err(error) => return Err(error.into()),
        }
        id = Some(skill);
    }
    if !arguments.json {
        anstream::eprintln!("refused    {}", safe_line(&path));
        for finding in &findings {
            anstream::eprintln!("  {}", safe_line(&finding.line()));
        }
    }
    let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
    Ok(json!({"skill_id": id, "path": path, "status": "refused", "findings": findings}))
}

/// Says what came of a skill.
fn told(skill: &str, path: &str, pushed: &Pushed, left_out: &[Value], json: bool) -> Value {
    let Pushed { status, version_number, active_version } = pushed;
    if !json {
        let waits = match active_version {
            None => " (waits until a publisher activates it)".to_owned(),
            Some(active) if active == version_number => String::new(),
            Some(active) => format!(" (version {active} is still used)"),
        };
        let (status, skill) = (safe_line(status), safe_line(skill));
        anstream::println!("{status:9}  {skill}  version {version_number}{waits}");
        for left in left_out {
            let text = |key: &str| safe_line(left[key].as_str().unwrap_or_default());
            anstream::eprintln!("Warning: {} is left out: {}", text("path"), text("why"));
        }
    }
    json!({
        "skill_id": skill, "path": path, "status": status, "version_number": version_number,
        "active_version": active_version, "findings": [], "left_out": left_out,
    })
}

/// What is in the folder of a skill and is no content.
fn left_out(contents: &SkillContents, path: &str) -> Vec<Value> {
    let shown = |inside: &str| format!("{path}/{inside}");
    let all = contents.left_out.iter();
    all.map(|left| json!({"path": shown(&left.path), "why": left.reason.as_str()})).collect()
}

/// The skills at a path.
async fn candidates(path: &Path, limits: (ScanLimits, RemoteLimits)) -> Vec<Candidate> {
    let (scan, remote) = limits;
    if path.as_os_str() == "-" {
        let message = "standard input is not pushed; give a folder, a SKILL.md or an archive";
        return vec![Candidate::refused(path, "not_a_skill", message.to_owned())];
    }
    let is_text = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("skill.md"));
    if path.is_file() && !is_text {
        return archived(path, &remote);
    }
    let found = locate::search(&[path.to_owned()], Profile::default(), scan);
    let mut all = Vec::new();
    for located in found.located {
        all.push(from_folder(located, scan).await);
    }
    for error in found.diagnostics.iter().filter(|it| it.level == Level::Error) {
        let path = path.display().to_string();
        let findings = vec![Finding::of(error, &path)];
        all.push(Candidate { path, contents: None, findings });
    }
    all
}

async fn from_folder(located: Located, limits: ScanLimits) -> Candidate {
    let checked = locate::check(located, Profile::default(), Links::Check, limits);
    let path = checked.folder.display().to_string();
    let errors = checked.diagnostics.iter().filter(|it| it.level == Level::Error);
    let findings: Vec<_> = errors.map(|it| Finding::of(it, &path)).collect();
    if !findings.is_empty() {
        return Candidate { path, contents: None, findings };
    }
    match contents(&checked.folder, limits).await {
        Ok(contents) => Candidate { path, contents: Some(contents), findings },
        Err(error) => Candidate::refused(&checked.folder, error.code(), error.to_string()),
    }
}

/// All files of the skill in a folder.
async fn contents(folder: &Path, limits: ScanLimits) -> Result<SkillContents, ReadError> {
    let source = DirectorySource::new(folder).with_limits(limits).with_blocking(Blocking::Here);
    let snapshot = Catalog::builder().source(source).build().refresh().await;
    let own = snapshot.skills().iter().find(|it| it.found().folder.as_os_str().is_empty());
    let missing = || ReadError::NotFound { path: folder.display().to_string() };
    own.ok_or_else(missing)?.contents(SKILL_BYTES).await
}

/// The skills in an archive, and what cannot be used of it.
fn archived(path: &Path, limits: &RemoteLimits) -> Vec<Candidate> {
    let shown = path.display().to_string();
    let read = fs::metadata(path).and_then(|about| match about.len() <= limits.download_bytes {
        true => fs::read(path),
        false => {
            let most = limits.download_bytes;
            Err(std::io::Error::other(format!("it has more than {most} bytes (download_bytes)")))
        }
    });
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) => return vec![Candidate::refused(path, "io", error.to_string())],
    };
    let found = match read_archive(&bytes, limits) {
        Ok(found) => found,
        Err(error) => return vec![Candidate::refused(path, error.code(), error.to_string())],
    };
    let place = |inside: &str| match inside.is_empty() {
        true => shown.clone(),
        false => format!("{shown}:{inside}"),
    };
    let mut all = Vec::new();
    let mut errors: Vec<&Diagnostic> =
        found.diagnostics.iter().filter(|it| it.level == Level::Error).collect();
    for skill in found.skills {
        let text = PathBuf::from(&skill.folder).join("SKILL.md").display().to_string();
        // What is wrong with its text is found when that is read.
        errors.retain(|it| it.path.as_deref() != Some(text.as_str()));
        let path = place(&skill.folder);
        all.push(Candidate { path, contents: Some(skill.contents), findings: Vec::new() });
    }
    // One for each text that is no skill.
    for error in errors {
        let path = place(error.path.as_deref().unwrap_or_default());
        let finding = Finding::of(error, &path);
        match all.iter_mut().find(|it| it.contents.is_none() && it.path == path) {
            Some(other) => other.findings.push(finding),
            None => all.push(Candidate { path, contents: None, findings: vec![finding] }),
        }
    }
    if all.is_empty() {
        let message = "there is no skill in the archive that can be used".to_owned();
        return vec![Candidate::refused(path, Code::MissingSkillFile.as_str(), message)];
    }
    all
}

impl Candidate {
    /// Where it is, by whichever way it was named.
    fn place(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| PathBuf::from(&self.path))
    }

    /// The id of the skill that it is, if it is one.
    fn id(&self) -> Option<SkillId> {
        SkillReading::of(self.contents.as_ref()?).ok().map(|reading| reading.id)
    }

    fn refused(path: &Path, code: &str, message: String) -> Self {
        let path = path.display().to_string();
        let findings = vec![Finding::plain(code, message, &path)];
        Self { path, contents: None, findings }
    }
}

impl Finding {
    fn of(diagnostic: &Diagnostic, path: &str) -> Self {
        let own = diagnostic.path.as_deref().filter(|own| *own != "SKILL.md");
        let own = own.map_or_else(|| format!("{path}/SKILL.md"), str::to_owned);
        Self {
            code: diagnostic.code.as_str().to_owned(),
            message: diagnostic.message.clone(),
            path: own,
            place: diagnostic.span.map(|span| (span.line, span.column)),
            help: diagnostic.help.as_ref().map(ToString::to_string),
        }
    }

    fn plain(code: &str, message: String, path: &str) -> Self {
        let (code, path) = (code.to_owned(), path.to_owned());
        Self { code, message, path, place: None, help: None }
    }

    /// `path:line:column: error[code]: message`
    fn line(&self) -> String {
        let place = self.place.map(|(line, column)| format!(":{line}:{column}"));
        let help = self.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let (path, code, message) = (&self.path, &self.code, &self.message);
        format!("{path}{}: error[{code}]: {message}{help}", place.unwrap_or_default())
    }

    fn json(&self) -> Value {
        json!({
            "code": self.code, "level": "error", "message": self.message, "path": self.path,
            "line": self.place.map(|it| it.0), "column": self.place.map(|it| it.1),
            "help": self.help,
        })
    }
}

fn of_document(error: &DocumentError, path: &str) -> Vec<Finding> {
    match error.diagnostics() {
        [] => vec![Finding::plain(error.code(), error.to_string(), path)],
        diagnostics => {
            let errors = diagnostics.iter().filter(|it| it.level == Level::Error);
            errors.map(|it| Finding::of(it, path)).collect()
        }
    }
}

/// What a registry says against a skill; a server may say it line by line.
fn of_registry(error: &DeskError, path: &str) -> Vec<Finding> {
    let whole = Finding::plain(error.code(), error.to_string(), path);
    let DeskError::Problem { details: Some(Value::Array(details)), .. } = error else {
        return vec![whole];
    };
    let number = |value: &Value| value.as_u64().and_then(|it| u32::try_from(it).ok());
    let parts = details.iter().filter_map(|detail| {
        let message = detail["msg"].as_str().or(detail["message"].as_str())?.to_owned();
        let code = detail["code"].as_str().unwrap_or(error.code());
        let place = number(&detail["line"]).map(|it| (it, number(&detail["column"]).unwrap_or(1)));
        Some(Finding { place, ..Finding::plain(code, message, path) })
    });
    let parts: Vec<Finding> = parts.collect();
    if parts.is_empty() { vec![whole] } else { parts }
}
