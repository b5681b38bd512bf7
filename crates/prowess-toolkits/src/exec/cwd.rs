//! Where a command begins.

use prowess_workspace::{Command, Workspace, WorkspaceError, WorkspacePath};

use crate::place::{PlaceError, Places};

/// A command, and the folder that it begins in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) cwd: WorkspacePath,
    pub(crate) command: Command,
}

/// Why no command can begin in the folder that a call asks for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidCwd {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("a command that is named by its path begins in the skill's folder; leave 'cwd' out")]
    NamedByPath,
    #[error(
        "'{asked}' is not below one of the folders skills, work, out and runs; begin in one of them"
    )]
    Elsewhere { asked: String },
    #[error(
        "a command that is named by a relative path could be a file that was written here; use its \
         name alone"
    )]
    RelativePath,
    #[error("there is no folder '{asked}'")]
    NotFound { asked: String },
    #[error("'{asked}' is not a folder")]
    NotAFolder { asked: String },
}

/// Why a command cannot begin there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotBegin {
    /// The call asks for something wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidCwd),
    /// The workspace fails.
    #[error(transparent)]
    Workspace(WorkspaceError),
}

/// Where a command begins that asks for this folder: in that of its skill, if it asks for nothing.
/// A folder below `work/`, `out/` or `runs/` that is not there is made, inside of the sandbox.
/// Blocks.
pub(crate) fn begin(
    asked: &str,
    skill: &WorkspacePath,
    run_dir: &WorkspacePath,
    workspace: &Workspace,
    command: Command,
) -> Result<Begin, CannotBegin> {
    let asked_for = || asked.to_owned();
    let places = Places { workspace: workspace.path(), run_dir: Some(run_dir) };
    let cwd = places.resolve(asked, skill).map_err(InvalidCwd::Place)?;
    if cwd == *skill {
        return Ok(Begin { cwd, command });
    }
    if let Command::Installed { words, .. } = &command
        && words.first().is_some_and(|name| name.contains('/'))
    {
        return Err(InvalidCwd::NamedByPath.into());
    }
    match workspace.list(&cwd) {
        Ok(_) => Ok(Begin { cwd, command }),
        Err(WorkspaceError::NotFound { .. }) => match made_first(&cwd, command) {
            Some(begin) => Ok(begin),
            None => Err(InvalidCwd::NotFound { asked: asked_for() }.into()),
        },
        Err(WorkspaceError::NotAFolder { .. }) => {
            Err(InvalidCwd::NotAFolder { asked: asked_for() }.into())
        }
        Err(error) => Err(CannotBegin::Workspace(error)),
    }
}

/// A command that makes its folder, goes there, and goes on; if the folder can be made.
pub(crate) fn made_first(cwd: &WorkspacePath, command: Command) -> Option<Begin> {
    let top = cwd.names().next().filter(|top| matches!(*top, "work" | "out" | "runs"))?;
    let Command::Shell(line) = command else { return None };
    let quoted = cwd.as_str().replace('\'', r"'\''");
    let at = format!("\"$WORKSPACE_DIR\"/'{quoted}'");
    let line = format!("mkdir -p -- {at} && cd -- {at} || exit 1; {line}");
    Some(Begin { cwd: WorkspacePath::parse(top).ok()?, command: Command::Shell(line) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_where_commands_may_write() {
        let path = |text| WorkspacePath::parse(text).unwrap();
        let line = || Command::Shell("pwd".to_owned());
        let begin = made_first(&path("work/it's/deep"), line()).unwrap();
        let expected = r#"mkdir -p -- "$WORKSPACE_DIR"/'work/it'\''s/deep' && cd -- "$WORKSPACE_DIR"/'work/it'\''s/deep' || exit 1; pwd"#;
        assert_eq!(begin.command, Command::Shell(expected.to_owned()));
        assert_eq!(begin.cwd, path("work"));
        assert_eq!(made_first(&path("skills/demo/x"), line()), None);
        assert_eq!(made_first(&path("x"), line()), None);
        let listed = Command::Installed { words: vec!["pwd".to_owned()], denied: Vec::new() };
        assert_eq!(made_first(&path("work/x"), listed), None);
    }
}
