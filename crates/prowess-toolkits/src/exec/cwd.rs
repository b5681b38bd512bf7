//! Where a command begins.

use prowess_workspace::{Command, Workspace, WorkspaceError, WorkspacePath};

use crate::place::Places;

/// A command, and the folder that it begins in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) cwd: WorkspacePath,
    pub(crate) command: Command,
}

/// Why a command cannot begin there.
#[derive(Debug)]
pub(crate) enum CannotBegin {
    /// The call asks for something wrong.
    Invalid(String),
    /// The workspace fails.
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
    let invalid = |cause: &str| Err(CannotBegin::Invalid(format!("cwd: {cause}")));
    let places = Places { workspace: workspace.path(), run_dir: Some(run_dir) };
    let cwd = match places.resolve(asked, skill) {
        Ok(cwd) => cwd,
        Err(why) => return invalid(&why.to_string()),
    };
    if cwd == *skill {
        return Ok(Begin { cwd, command });
    }
    if let Command::Program(words) = &command
        && words.first().is_some_and(|name| name.contains('/'))
    {
        let cause = "a command that is named by its path begins in the skill's folder; leave \
                     'cwd' out";
        return invalid(cause);
    }
    match workspace.list(&cwd) {
        Ok(_) => Ok(Begin { cwd, command }),
        Err(WorkspaceError::NotFound { .. }) => match made_first(&cwd, command) {
            Some(begin) => Ok(begin),
            None => invalid(&format!("there is no folder '{asked}'")),
        },
        Err(WorkspaceError::NotAFolder { .. }) => invalid(&format!("'{asked}' is not a folder")),
        Err(error) => Err(CannotBegin::Workspace(error)),
    }
}

/// A command that makes its folder, goes there, and goes on; if the folder can be made.
fn made_first(cwd: &WorkspacePath, command: Command) -> Option<Begin> {
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
        assert_eq!(made_first(&path("work/x"), Command::Program(vec!["pwd".to_owned()])), None);
    }
}
