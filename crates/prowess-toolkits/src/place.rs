//! Paths as models write them: `$WORK_DIR/a`, `/out/b`, `c`.

use std::path::Path;

use prowess_workspace::{InvalidPath, WorkspacePath};

/// Why a text is no place in a workspace; with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error(
        "'{text}' begins with an unknown variable; use $WORKSPACE_DIR, $SKILLS_DIR, $WORK_DIR, \
         $OUTPUT_DIR or $RUN_DIR"
    )]
    Variable { text: String },
    #[error(
        "'{text}' is outside of the workspace; use a relative path, or one that begins with \
         $WORK_DIR, $OUTPUT_DIR, $SKILLS_DIR, $RUN_DIR or $WORKSPACE_DIR"
    )]
    Outside { text: String },
    #[error("'{text}' leaves the folder that it begins in; write it without '..'")]
    Escapes { text: String },
    #[cfg(feature = "exec")]
    #[error("'{text}' is no file below work/, out/ or runs/; name one that is")]
    NotOurs { text: String },
    #[error("'{text}': {cause}")]
    Path { text: String, cause: InvalidPath },
}

/// The folders at the root of a workspace.
const FOLDERS: [&str; 4] = ["skills", "work", "out", "runs"];

/// What the workspace is called inside of a sandbox with a root of its own.
const INSIDE: &str = "/workspace";

/// What a path may begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The root of the workspace on this machine: commands see it in their variables.
    pub(crate) workspace: &'a Path,
    /// The folder of this run, where there is one.
    pub(crate) run_dir: Option<&'a WorkspacePath>,
}

impl Places<'_> {
    /// The place that a text means which begins with a variable, or at the root; `None` if it is
    /// relative to whatever the reader takes for its beginning.
    pub(crate) fn fixed(&self, text: &str) -> Result<Option<WorkspacePath>, PlaceError> {
        if text.starts_with('$') {
            return self.variable(text).map(Some);
        }
        let Some(rest) = text.strip_prefix('/') else { return Ok(None) };
        let outside = || PlaceError::Outside { text: text.to_owned() };
        let inside = |root: &Path| Path::new(text).strip_prefix(root).ok();
        let own = inside(self.workspace).or_else(|| inside(Path::new(INSIDE)));
        let rest = match own {
            Some(own) => own.to_str().ok_or_else(outside)?,
            None => rest,
        };
        let rest = rest.trim_start_matches('/');
        let (first, names) = rest.split_once('/').unwrap_or((rest, ""));
        match FOLDERS.into_iter().find(|name| *name == first) {
            Some(first) => below(&folder(first), names, text).map(Some),
            None if own.is_some() || rest.is_empty() => {
                below(&WorkspacePath::root(), rest, text).map(Some)
            }
            None => Err(outside()),
        }
    }

    /// The place that a text means, relative to a folder unless it says otherwise.
    pub(crate) fn resolve(
        &self,
        text: &str,
        base: &WorkspacePath,
    ) -> Result<WorkspacePath, PlaceError> {
        match self.fixed(text)? {
            Some(place) => Ok(place),
            None => below(base, text, text),
        }
    }

    fn variable(&self, text: &str) -> Result<WorkspacePath, PlaceError> {
        let unknown = || PlaceError::Variable { text: text.to_owned() };
        let after = text.strip_prefix('$').ok_or_else(unknown)?;
        let (name, rest) = match after.strip_prefix('{') {
            Some(inside) => inside.split_once('}').ok_or_else(unknown)?,
            None => after.split_at(after.find('/').unwrap_or(after.len())),
        };
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(unknown());
        }
        let base = match (name, self.run_dir) {
            ("WORKSPACE_DIR", _) => WorkspacePath::root(),
            ("SKILLS_DIR", _) => folder("skills"),
            ("WORK_DIR", _) => folder("work"),
            ("OUTPUT_DIR", _) => folder("out"),
            ("RUN_DIR", Some(run_dir)) => run_dir.clone(),
            _ => return Err(unknown()),
        };
        below(&base, rest, text)
    }
}

/// A folder whose name is written here, in the source.
pub(crate) fn folder(path: &'static str) -> WorkspacePath {
    WorkspacePath::parse(path).unwrap_or_default()
}

/// A path below a folder; `..` may lead back, but not out of the folder.
pub(crate) fn below(
    base: &WorkspacePath,
    rest: &str,
    text: &str,
) -> Result<WorkspacePath, PlaceError> {
    let mut names: Vec<&str> = Vec::new();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or_else(|| PlaceError::Escapes { text: text.to_owned() })?;
            }
            name => names.push(name),
        }
    }
    let below = WorkspacePath::parse(&names.join("/"))
        .map_err(|cause| PlaceError::Path { text: text.to_owned(), cause })?;
    Ok(base.join(&below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<String, PlaceError> {
        let run = folder("runs/run_1");
        let places = Places { workspace: Path::new("/data/ws"), run_dir: Some(&run) };
        places.resolve(text, &folder("skills/demo")).map(|place| place.to_string())
    }

    #[test]
    fn paths_begin_where_they_say() {
        let table = [
            ("", "skills/demo"),
            (".", "skills/demo"),
            ("scripts", "skills/demo/scripts"),
            ("./scripts//a/../b", "skills/demo/scripts/b"),
            ("$WORK_DIR", "work"),
            ("${WORK_DIR}", "work"),
            ("$WORK_DIR/a", "work/a"),
            ("${OUTPUT_DIR}/a/b", "out/a/b"),
            ("$SKILLS_DIR/other", "skills/other"),
            ("$WORKSPACE_DIR", ""),
            ("$WORKSPACE_DIR/work", "work"),
            ("$RUN_DIR/x", "runs/run_1/x"),
            ("/", ""),
            ("/work/a", "work/a"),
            ("/skills/demo", "skills/demo"),
            ("/out", "out"),
            ("/runs", "runs"),
            ("/data/ws/work/a", "work/a"),
            ("/data/ws", ""),
            ("/workspace/out/a", "out/a"),
            ("/workspace", ""),
        ];
        for (text, expected) in table {
            assert_eq!(resolve(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_errors() {
        use PlaceError::{Escapes, Outside, Path, Variable};
        let text = |text: &str| text.to_owned();
        let path = |text: &str, cause| Path { text: text.to_owned(), cause };
        let table = [
            ("..", Escapes { text: text("..") }),
            ("a/../../b", Escapes { text: text("a/../../b") }),
            ("../../work", Escapes { text: text("../../work") }),
            ("$WORK_DIR/..", Escapes { text: text("$WORK_DIR/..") }),
            ("$WORK_DIR/../../etc", Escapes { text: text("$WORK_DIR/../../etc") }),
            ("/work/../etc", Escapes { text: text("/work/../etc") }),
            ("/etc", Outside { text: text("/etc") }),
            ("/workspaces", Outside { text: text("/workspaces") }),
            ("/workspace/../etc", Escapes { text: text("/workspace/../etc") }),
            ("/workshop", Outside { text: text("/workshop") }),
            ("/data/wsx", Outside { text: text("/data/wsx") }),
            ("/data/ws/../other", Escapes { text: text("/data/ws/../other") }),
            ("$HOME", Variable { text: text("$HOME") }),
            ("$WORK_DIRx", Variable { text: text("$WORK_DIRx") }),
            ("${WORK_DIR", Variable { text: text("${WORK_DIR") }),
            ("${WORK_DIR}x", Variable { text: text("${WORK_DIR}x") }),
            ("a\\b", path("a\\b", InvalidPath::Character)),
            ("a\0b", path("a\0b", InvalidPath::Character)),
        ];
        for (text, expected) in table {
            assert_eq!(resolve(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_run_that_is_not_there_has_no_folder() {
        let places = Places { workspace: Path::new("/data/ws"), run_dir: None };
        assert!(places.fixed("$RUN_DIR/x").is_err());
        assert_eq!(places.fixed("out/x"), Ok(None));
    }
}
