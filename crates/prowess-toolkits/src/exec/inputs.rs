//! What a command is given: artifacts, files of this machine, of the workspace and of skills.

use std::path::{Component, Path, PathBuf};

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{
    ArtifactError, ArtifactRef, ArtifactStore, CopiedIn, InputMode, InputRecord, Workspace,
    WorkspaceError, WorkspacePath,
};

use super::arguments::InputArguments;
use super::settings::ExecSettings;
use super::stage::{Loading, stage};
use crate::invalid::InvalidArguments;
use crate::place::{PlaceError, Places, below, folder};
use crate::session::{artifact_failure, blocking, scope_of, workspace_failure};

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    Artifact(ArtifactRef),
    Host(PathBuf),
    Workspace(WorkspacePath),
    Skill { name: String, path: WorkspacePath },
}

/// Why something cannot be brought, or not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidInput {
    #[error(
        "'{text}' cannot be an input; write artifact://name[@version], host:///path, \
         workspace://path or skill://name/path"
    )]
    Scheme { text: String },
    #[error("'{text}' names no skill; write skill://<name>/<path>")]
    NoSkill { text: String },
    #[error("'{text}' is not absolute; write host:///<path>")]
    Relative { text: String },
    #[error("'{text}' goes up, or has a control character; write it without")]
    NotPlain { text: String },
    #[error("an input without a name of its own needs 'to'")]
    NoName,
    #[error("nothing is written to '{to}'; write below work/, out/ or runs/")]
    NotWritable { to: String },
    #[error("inputs[{other}] goes to '{to}' too; say 'to' for one of them")]
    Taken { other: usize, to: WorkspacePath },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

impl From {
    /// Reads a text such as `artifact://name@2`; else says what is wrong with it.
    fn parse(text: &str) -> Result<Self, InvalidInput> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(unknown_scheme(text));
        };
        let place = |rest: &str| below(&WorkspacePath::root(), rest, text);
        match scheme {
            "artifact" => Ok(Self::Artifact(ArtifactRef::parse(rest)?)),
            "host" => host_path(rest, text).map(Self::Host),
            "workspace" => Ok(Self::Workspace(aliased(place(rest)?))),
            "skill" => {
                let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
                if name.is_empty() || name == ".." {
                    return Err(InvalidInput::NoSkill { text: text.to_owned() });
                }
                let path = place(path)?;
                Ok(Self::Skill { name: name.to_owned(), path })
            }
            _ => Err(unknown_scheme(text)),
        }
    }

    /// The name that it has by itself.
    fn base_name(&self) -> &str {
        match self {
            Self::Artifact(artifact) => {
                let name = artifact.name.rsplit('/').next().unwrap_or_default();
                name.strip_prefix("user:").unwrap_or(name)
            }
            Self::Host(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
            Self::Skill { name, path } if path.as_str().is_empty() => name,
            Self::Workspace(path) | Self::Skill { path, .. } => {
                path.as_str().rsplit('/').next().unwrap_or_default()
            }
        }
    }
}

fn unknown_scheme(text: &str) -> InvalidInput {
    InvalidInput::Scheme { text: text.to_owned() }
}

fn host_path(rest: &str, text: &str) -> Result<PathBuf, InvalidInput> {
    let path = Path::new(rest);
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() {
        return Err(InvalidInput::Relative { text: text.to_owned() });
    }
    if !path.components().all(is_plain) || rest.chars().any(char::is_control) {
        return Err(InvalidInput::NotPlain { text: text.to_owned() });
    }
    Ok(path.components().collect())
}

/// `inputs/x` is `work/inputs/x`.
fn aliased(path: WorkspacePath) -> WorkspacePath {
    let is_alias = path.names().next() == Some("inputs");
    match is_alias {
        true => folder("work").join(&path),
        false => path,
    }
}

/// Where an input goes: below `work/inputs/` by its own name, unless something else is said.
fn destination(to: &str, from: &From, places: Places<'_>) -> Result<WorkspacePath, InvalidInput> {
    let inputs = folder("work/inputs");
    let asked = match to {
        "" | "." => inputs.clone(),
        to => aliased(places.resolve(to, &WorkspacePath::root())?),
    };
    let place = match asked == inputs || to.ends_with('/') {
        false => asked,
        true => {
            let name = from.base_name();
            let name = below(&WorkspacePath::root(), name, name)?;
            if name.as_str().is_empty() {
                return Err(InvalidInput::NoName);
            }
            asked.join(&name)
        }
    };
    let is_writable = matches!(place.names().next(), Some("work" | "out" | "runs"));
    let is_below = place.names().nth(1).is_some();
    match is_writable && is_below {
        true => Ok(place),
        false => Err(InvalidInput::NotWritable { to: to.to_owned() }),
    }
}

/// The folder of an allow-list that a path lies in: the innermost, if there are several.
fn allowed_folder<'a>(allowed: &'a [PathBuf], path: &Path) -> Option<&'a PathBuf> {
    let holding = allowed.iter().filter(|folder| path.starts_with(folder));
    holding.max_by_key(|folder| folder.components().count())
}

/// What inputs come into.
pub(crate) struct Staging<'a> {
    pub(crate) invocation: Invocation<'a>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) run_dir: &'a WorkspacePath,
    pub(crate) settings: &'a ExecSettings,
    pub(crate) artifacts: Option<&'a dyn ArtifactStore>,
    pub(crate) loading: Loading,
}

impl Staging<'_> {
    /// Brings all inputs into the workspace, in their order, or says which one cannot come.
    /// Returns what there is to say of those that did.
    pub(crate) async fn bring(
        &self,
        inputs: &[InputArguments],
    ) -> Result<Vec<String>, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(self.invocation);
        let most = self.settings.max_inputs;
        if inputs.len() > most {
            let count = inputs.len();
            return Err(invalid(InvalidArguments::TooManyInputs { count, most }));
        }
        let places = Places { workspace: self.workspace.path(), run_dir: Some(self.run_dir) };
        // All of them are understood before one of them is brought.
        let mut understood: Vec<(&InputArguments, From, WorkspacePath)> = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            let said = |cause| invalid(InvalidArguments::Input { at, cause });
            let from = From::parse(&input.from).map_err(said)?;
            let to = destination(&input.to, &from, places).map_err(said)?;
            if let Some(other) = understood.iter().position(|(_, _, taken)| *taken == to) {
                return Err(said(InvalidInput::Taken { other, to }));
            }
            if let From::Host(path) = &from
                && allowed_folder(&self.settings.host_inputs, path).is_none()
            {
                return Err(self.not_allowed(&input.from));
            }
            understood.push((input, from, to));
        }
        let mut warnings = Vec::new();
        for (input, from, to) in understood {
            self.bring_one(input, from, to, &mut warnings).await?;
        }
        Ok(warnings)
    }

    async fn bring_one(
        &self,
        input: &InputArguments,
        from: From,
        to: WorkspacePath,
        warnings: &mut Vec<String>,
    ) -> Result<(), ToolOutcome> {
        let text = &input.from;
        let mut record = InputRecord {
            from: text.clone(),
            to: to.to_string(),
            resolved: String::new(),
            version: None,
            mode: InputMode::Copy,
            at: String::new(),
        };
        let workspace = self.workspace.clone();
        let copied = match from {
            From::Artifact(artifact) => {
                let (name, pin) = (artifact.name.clone(), input.pin);
                let (version, bytes) = self.artifact(artifact, pin, &to, text, warnings).await?;
                (record.resolved, record.version) = (name, Some(version));
                let put = move || workspace.put(&to, &bytes).map(|_| CopiedIn::default());
                self.done(text, put).await?
            }
            From::Host(path) => {
                let Some(allowed) = allowed_folder(&self.settings.host_inputs, &path) else {
                    return Err(self.not_allowed(text));
                };
                let allowed = allowed.clone();
                record.resolved = path.display().to_string();
                self.done(text, move || workspace.copy_in(&allowed, &path, &to)).await?
            }
            From::Workspace(path) => {
                record.resolved = path.to_string();
                record.mode = input.mode;
                self.within(text, path, to, input.mode).await?
            }
            From::Skill { name, path } => {
                let Self { invocation, workspace, loading, .. } = *self;
                let limit = self.settings.max_skill_bytes;
                let ready = stage(invocation, workspace, &name, loading, limit).await?;
                let path = ready.staged.path.join(&path);
                record.resolved = path.to_string();
                record.mode = input.mode;
                self.within(text, path, to, input.mode).await?
            }
        };
        if input.mode != record.mode {
            warnings.push(format!("{text} was copied: it cannot be linked"));
        }
        if let Some(first) = copied.refused.first() {
            let (count, name, why) = (copied.refused.len(), &first.name, first.reason.as_str());
            warnings.push(format!("{text}: {count} left out, such as '{name}' ({why})"));
        }
        let workspace = self.workspace.clone();
        blocking(move || workspace.record_input(record))
            .await?
            .map_err(|error| workspace_failure(&error))
    }

    /// An artifact: the version that is asked for, or that was taken before if it is to stay, or
    /// the newest one.
    async fn artifact(
        &self,
        artifact: ArtifactRef,
        pin: bool,
        to: &WorkspacePath,
        text: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(u64, std::sync::Arc<[u8]>), ToolOutcome> {
        let Some(store) = self.artifacts else {
            let message = format!("Error: {text} cannot be read: no artifact store is configured");
            return Err(ToolOutcome::error("no_artifact_store", message));
        };
        let ArtifactRef { name, version, .. } = artifact;
        let pinned = match version {
            None if pin => {
                let (workspace, to, name) = (self.workspace.clone(), to.clone(), name.clone());
                let known = blocking(move || workspace.recorded_input(&to, &name)).await?;
                known.map_err(|error| workspace_failure(&error))?.and_then(|it| it.version)
            }
            _ => None,
        };
        let scope = scope_of(self.invocation.session);
        let load = |version| store.load(&scope, &name, version);
        let failed = |error| artifact_failure(&error);
        let mut found = load(version.or(pinned)).await.map_err(failed)?;
        if let (None, Some(pinned)) = (&found, pinned) {
            warnings.push(format!("version {pinned} of {text} is gone; the newest one was taken"));
            found = load(None).await.map_err(failed)?;
        }
        let found = found.ok_or_else(|| not_found(text))?;
        Ok((found.version, found.bytes))
    }

    async fn within(
        &self,
        text: &str,
        from: WorkspacePath,
        to: WorkspacePath,
        mode: InputMode,
    ) -> Result<CopiedIn, ToolOutcome> {
        let workspace = self.workspace.clone();
        let work = move || match mode {
            InputMode::Copy => workspace.copy_within(&from, &to),
            InputMode::Link => workspace.link_within(&from, &to).map(|()| CopiedIn::default()),
        };
        self.done(text, work).await
    }

    async fn done(
        &self,
        text: &str,
        work: impl FnOnce() -> Result<CopiedIn, WorkspaceError> + Send + 'static,
    ) -> Result<CopiedIn, ToolOutcome> {
        blocking(work).await?.map_err(|error| match error {
            WorkspaceError::NotFound { .. } => not_found(text),
            error => {
                let message = format!("Error: The input {text} cannot be brought: {error}");
                ToolOutcome::error(error.code(), message)
            }
        })
    }

    fn not_allowed(&self, text: &str) -> ToolOutcome {
        let message = match self.settings.host_inputs.is_empty() {
            true => format!("Error: {text} is not allowed: no folder of this machine is"),
            false => format!("Error: {text} is not allowed: it is in none of the allowed folders"),
        };
        let remedy = "Ask the user to add its folder to `host_inputs` in [exec] of prowess.toml.";
        ToolOutcome::error("input_not_allowed", message).with_hint(remedy)
    }
}

fn not_found(text: &str) -> ToolOutcome {
    ToolOutcome::error("input_not_found", format!("Error: There is no {text}"))
}

#[cfg(test)]
#[path = "inputs_tests.rs"]
mod tests;
