//! Globs, as relative to a workspace.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::path::WorkspacePath;
use crate::workspace::{WorkspaceError, shown};

/// The most bytes of a glob.
const MAX_BYTES: usize = 1024;

/// A glob that can be matched with paths below the root of a workspace.
#[derive(Debug)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    /// The names that it begins with and that hold no wildcard, but not its last name.
    base: Vec<String>,
    /// How many names a path has that matches, if that is known.
    names: Option<usize>,
}

/// Where variables lead that a glob may begin with.
fn folder_of<'a>(variable: &str, run_dir: Option<&'a WorkspacePath>) -> Option<&'a str> {
    match variable {
        "WORKSPACE_DIR" => Some(""),
        "SKILLS_DIR" => Some("skills"),
        "WORK_DIR" => Some("work"),
        "OUTPUT_DIR" => Some("out"),
        "RUN_DIR" => run_dir.map(WorkspacePath::as_str),
        _ => None,
    }
}

impl Pattern {
    /// Takes a glob as it was written. `redirect` is asked about a path that a staged skill's own
    /// link may stand in, and gives the path that is meant.
    pub(super) fn parse(
        glob: &str,
        run_dir: Option<&WorkspacePath>,
        redirect: impl Fn(&WorkspacePath) -> WorkspacePath,
    ) -> Result<Self, WorkspaceError> {
        let refused = |cause: &str| WorkspaceError::Glob { glob: shown(glob), cause: cause.into() };
        if glob.len() > MAX_BYTES {
            return Err(refused("it is too long"));
        }
        if glob.chars().any(char::is_control) {
            return Err(refused("it has a control character"));
        }
        let (folder, rest) = match split_variable(glob) {
            Some((variable, rest)) => {
                let folder = folder_of(variable, run_dir);
                let folder = folder.ok_or_else(|| {
                    refused(
                        "it begins with a variable that is not one of WORKSPACE_DIR, SKILLS_DIR, \
                         WORK_DIR, OUTPUT_DIR, RUN_DIR",
                    )
                })?;
                (folder, rest)
            }
            None if glob.starts_with('/') => {
                return Err(refused("it is absolute; globs are relative to the workspace"));
            }
            None => ("", glob),
        };
        let mut names: Vec<String> =
            folder.split('/').filter(|name| !name.is_empty()).map(globset::escape).collect();
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." => return Err(refused("it leaves the workspace")),
                name => names.push(name.to_owned()),
            }
        }
        // What ends with a slash is a folder: all that is in it is meant.
        if names.is_empty() || rest.ends_with('/') {
            names.push("**".to_owned());
        }
        let literal = names.iter().take_while(|name| is_literal(name)).count();
        let base = names.get(..literal.min(names.len() - 1)).unwrap_or_default().join("/");
        if let Ok(base) = WorkspacePath::parse(&base) {
            let meant = redirect(&base);
            if meant != base {
                let rest = names.split_off(base.names().count());
                names = meant.names().map(globset::escape).collect();
                names.extend(rest);
            }
        }
        let literal = names.iter().take_while(|name| is_literal(name)).count();
        let base = names.iter().take(literal.min(names.len() - 1)).cloned().collect();
        let is_bounded = !names.iter().any(|name| name.contains("**") || name.contains('{'));
        let matcher = GlobBuilder::new(&names.join("/"))
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| refused(&error.kind().to_string()))?
            .compile_matcher();
        Ok(Self { matcher, base, names: is_bounded.then_some(names.len()) })
    }

    pub(super) fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path)
    }

    /// The folder in which everything is that can match.
    pub(super) fn base(&self) -> &[String] {
        &self.base
    }

    /// Whether something in a folder can match; the folder is given by its names.
    pub(super) fn reaches(&self, folder: &[String]) -> bool {
        let common = self.base.len().min(folder.len());
        self.base[..common] == folder[..common]
            && self.names.is_none_or(|names| folder.len() < names)
    }
}

/// A name without wildcards stands for itself.
fn is_literal(name: &str) -> bool {
    !name.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
}

/// `$NAME/rest` and `${NAME}/rest`, also without a rest.
fn split_variable(glob: &str) -> Option<(&str, &str)> {
    let rest = glob.strip_prefix('$')?;
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    if let Some(rest) = rest.strip_prefix('{') {
        let (name, rest) = rest.split_once('}')?;
        return (rest.is_empty() || rest.starts_with('/')).then_some((name, rest));
    }
    let end = rest.find('/').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    is_name(name).then_some((name, rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::Pattern;
    use crate::path::WorkspacePath;
    use crate::workspace::WorkspaceError;

    fn parse(glob: &str) -> Result<Pattern, WorkspaceError> {
        let run = WorkspacePath::parse("runs/run_1").unwrap();
        let redirect = |path: &WorkspacePath| match path.as_str().strip_prefix("skills/x/out") {
            Some(rest) => WorkspacePath::parse(&format!("out{rest}")).unwrap(),
            None => path.clone(),
        };
        Pattern::parse(glob, Some(&run), redirect)
    }

    #[test]
    fn globs_match_what_they_should() {
        for (glob, path, expected) in [
            ("out/*.txt", "out/a.txt", true),
            ("out/*.txt", "out/b/a.txt", false),
            ("out/**", "out/b/a.txt", true),
            ("out/**/*.txt", "out/a.txt", true),
            ("./out//a.txt", "out/a.txt", true),
            ("out/", "out/b/a.txt", true),
            ("$OUTPUT_DIR/*.txt", "out/a.txt", true),
            ("${OUTPUT_DIR}/*.txt", "out/a.txt", true),
            ("$OUTPUT_DIR", "out/a.txt", false),
            ("$OUTPUT_DIR/", "out/a.txt", true),
            ("$WORK_DIR/a", "work/a", true),
            ("$SKILLS_DIR/x/a", "skills/x/a", true),
            ("$WORKSPACE_DIR/out/a", "out/a", true),
            ("$RUN_DIR/a", "runs/run_1/a", true),
            ("${RUN_DIR}/a", "runs/run_2/a", false),
            ("skills/x/out/*", "out/a", true),
            ("skills/x/out/b/*.txt", "out/b/a.txt", true),
            ("skills/y/out/*", "out/a", false),
            ("out/{a,b}.txt", "out/b.txt", true),
            ("out/[ab].txt", "out/[ab].txt", false),
            ("out/\\[ab\\].txt", "out/[ab].txt", true),
            ("out/[[]ab].txt", "out/[ab].txt", true),
            ("$a", "$a", true),
            ("out/?.txt", "out/a.txt", true),
        ] {
            let pattern = parse(glob).unwrap();
            assert_eq!(pattern.matches(Path::new(path)), expected, "{glob} {path}");
            if expected {
                let folder: Vec<_> = path.split('/').map(str::to_owned).collect();
                let folder = &folder[..folder.len() - 1];
                assert!((0..=folder.len()).all(|n| pattern.reaches(&folder[..n])), "{glob} {path}");
            }
        }
    }

    #[test]
    fn globs_that_lead_out_are_refused() {
        let long = "a".repeat(1025);
        for glob in [
            "../x",
            "out/../../x",
            "/etc/passwd",
            "/**",
            "$OUTPUT_DIR/../../x",
            "$HOME/x",
            "${HOME}/x",
            "out/\0",
            "out/[",
            &long,
        ] {
            assert_eq!(parse(glob).unwrap_err().code(), "invalid_glob", "{glob:?}");
        }
    }

    #[test]
    fn only_folders_are_walked_that_can_hold_a_match() {
        let names = |path: &str| -> Vec<String> { path.split('/').map(str::to_owned).collect() };
        let pattern = parse("out/a/*.txt").unwrap();
        assert_eq!(pattern.base(), names("out/a"));
        for (folder, expected) in
            [("out", true), ("out/a", true), ("out/a/b", false), ("work", false), ("out/b", false)]
        {
            assert_eq!(pattern.reaches(&names(folder)), expected, "{folder}");
        }
        assert!(parse("out/**").unwrap().reaches(&names("out/a/b/c/d")));
    }
}
