//! Where a command of `workspace_exec` begins.

use prowess_workspace::{Command, Workspace, WorkspaceError, WorkspacePath};

use super::super::cwd::{Begin, CannotBegin, InvalidCwd, made_first};
use super::copies::skills_dir;
use crate::place::{PlaceError, Places, below, folder};

/// Where a command begins that asks for this folder: in `work/`, if it asks for nothing. `skills/`
/// means the copies that it may change. Blocks.
pub(crate) fn begin(
    asked: &str,
    run_dir: &WorkspacePath,
    workspace: &Workspace,
    command: Command,
) -> Result<Begin, CannotBegin> {
    // What the host has listed by its path could be another file here.
    if let Command::Installed { words, .. } = &command
        && words.first().is_some_and(|name| name.contains('/') && !name.starts_with('/'))
    {
        return Err(InvalidCwd::RelativePath.into());
    }
    let places = Places { workspace: workspace.path(), run_dir: Some(run_dir) };
    let cwd = place(asked, &places)?;
    let asked = || asked.to_owned();
    match workspace.list(&cwd) {
        Ok(_) => Ok(Begin { cwd, command }),
        Err(WorkspaceError::NotFound { .. }) => {
            let is_skill = cwd.as_str().starts_with(skills_dir().as_str());
            let begin = if is_skill { None } else { made_first(&cwd, command) };
            begin.ok_or_else(|| InvalidCwd::NotFound { asked: asked() }.into())
        }
        Err(WorkspaceError::NotAFolder { .. }) => {
            Err(InvalidCwd::NotAFolder { asked: asked() }.into())
        }
        Err(error) => Err(CannotBegin::Workspace(error)),
    }
}

fn place(asked: &str, places: &Places<'_>) -> Result<WorkspacePath, InvalidCwd> {
    if matches!(asked, "" | ".") {
        return Ok(folder("work"));
    }
    let elsewhere = || InvalidCwd::Elsewhere { asked: asked.to_owned() };
    let root = WorkspacePath::root();
    let place = match places.fixed(asked) {
        Ok(Some(place)) => place,
        Ok(None) => below(&root, asked, asked)?,
        Err(PlaceError::Outside { .. }) => return Err(elsewhere()),
        Err(error) => return Err(error.into()),
    };
    let top = place.names().next().unwrap_or_default().to_owned();
    match top.as_str() {
        "skills" => {
            let rest = place.names().skip(1).collect::<Vec<_>>().join("/");
            let rest = WorkspacePath::parse(&rest).map_err(|_| elsewhere())?;
            Ok(skills_dir().join(&rest))
        }
        "work" | "out" | "runs" => Ok(place),
        _ => Err(elsewhere()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_folder_is_below_one_of_four_and_skills_are_the_copies() {
        let run = folder("runs/run_1");
        let places = Places { workspace: Path::new("/data/ws"), run_dir: Some(&run) };
        let table = [
            ("", Some("work")),
            (".", Some("work")),
            ("work/a", Some("work/a")),
            ("out", Some("out")),
            ("runs", Some("runs")),
            ("$RUN_DIR/x", Some("runs/run_1/x")),
            ("skills", Some("work/skills")),
            ("skills/demo/data", Some("work/skills/demo/data")),
            ("$SKILLS_DIR/demo", Some("work/skills/demo")),
            ("/workspace/skills/demo", Some("work/skills/demo")),
            ("/skills/demo", Some("work/skills/demo")),
            ("elsewhere", None),
            ("$WORKSPACE_DIR", None),
            ("/", None),
            ("/etc", None),
            ("..", None),
            ("work/../../etc", None),
            ("skills/../metadata.json", None),
            ("$HOME", None),
        ];
        for (asked, expected) in table {
            let found = place(asked, &places).ok().map(|place| place.to_string());
            assert_eq!(found.as_deref(), expected, "{asked}");
        }
    }
}
