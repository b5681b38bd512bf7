//! A project whose skills have something to run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Run, Sandbox, binary, minimal, skip};

/// A project with the skill `demo`, and a home of its own for Prowess, in a folder that everybody
/// can enter: commands of root run as somebody else.
pub(crate) struct Project {
    pub(crate) sandbox: Sandbox,
}

impl Project {
    /// The project; or says that a test cannot run here.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !is_there("bwrap") {
            skip(test, "there is no bwrap; install bubblewrap");
            return None;
        }
        let sandbox = Sandbox::new();
        set_mode(sandbox.path(), 0o755);
        sandbox.write("skills/demo/SKILL.md", minimal("demo"));
        sandbox.write("skills/demo/greeting.txt", "hello\n");
        Some(Self { sandbox })
    }

    /// The same, if there is also a `python3`.
    pub(crate) fn with_python(test: &str) -> Option<Self> {
        if !Path::new("/usr/bin/python3").exists() {
            skip(test, "there is no /usr/bin/python3");
            return None;
        }
        Self::new(test)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.sandbox.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        self.sandbox.write(path, text)
    }

    /// Makes a command see nothing but this project.
    pub(crate) fn within(&self, mut command: Command) -> Command {
        command.env("HOME", self.path("user")).env("PROWESS_HOME", self.path("home"));
        command.env("PROWESS_SKILLS", self.path("skills"));
        for name in [
            "PROWESS_WORKSPACES",
            "PROWESS_SUPERVISOR",
            "PROWESS_CACHE_DIR",
            "SKILLS_ROOT",
            "SKILLS_CACHE_DIR",
            "XDG_CONFIG_HOME",
        ] {
            command.env_remove(name);
        }
        command.current_dir(self.sandbox.path());
        command
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.within(Command::new(binary()));
        command.args(arguments);
        command
    }

    pub(crate) fn prowess(&self, arguments: &[&str]) -> Run {
        self.sandbox.run(self.command(arguments), b"")
    }

    /// `prowess run demo OPTIONS -- LINE`
    pub(crate) fn run(&self, options: &[&str], line: &str) -> Run {
        self.prowess(&[&["run", "demo"], options, &["--", line]].concat())
    }

    /// The same with `--json`: how it ended, and what was printed.
    pub(crate) fn run_as_json(&self, options: &[&str], line: &str) -> (i32, Value) {
        let run = self.run(&[options, &["--json"]].concat(), line);
        (run.code, run.json())
    }

    /// The workspaces that are there.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("home/workspaces")) else { return Vec::new() };
        let entries = entries.map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.file_name().unwrap().to_str().unwrap() != ".locks")
            .filter(|path| path.file_name().unwrap().to_str().unwrap() != ".trash")
            .collect()
    }

    /// A text without what differs from run to run.
    pub(crate) fn stable(&self, text: &str) -> String {
        text.replace(&self.sandbox.path().display().to_string(), "[PROJECT]")
    }
}

/// The files below a folder with what they hold, in the order of their names.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => walk(root, &entry.path(), found),
                false => {
                    let path = entry.path();
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                    found.push((name, fs::read(&path).unwrap()));
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether a program is on the path.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether a process is there whose arguments hold this text.
pub(crate) fn is_running(text: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(text)
    })
}

/// Waits until something holds, for a long while.
pub(crate) fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..3000 {
        if holds() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    false
}

/// The examples among the skills; a copy of them, where they cannot be reached.
pub(crate) fn examples() -> String {
    let root = std::env::var("INSTA_WORKSPACE_ROOT").unwrap_or_else(|_| repository());
    format!("{root}/{EXAMPLES}")
}

fn repository() -> String {
    format!("{}/../..", env!("CARGO_MANIFEST_DIR"))
}

const EXAMPLES: &str = "examples/skills";
const SNAPSHOTS: &str = "crates/prowess-cli/tests/snapshots";

/// Runs the tests of this program again as an ordinary user, but for the one with this name, if we
/// are root. The user gets copies: what was built may lie where nobody else can go.
pub(crate) fn repeat_as_a_user(but: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o777);
    let at = |name: &str| folder.path().join(name);
    for (name, from) in [("tests", std::env::current_exe().unwrap()), ("prowess", binary())] {
        fs::copy(from, at(name)).unwrap();
        set_mode(&at(name), 0o755);
    }
    for name in [EXAMPLES, SNAPSHOTS] {
        fs::create_dir_all(at(name)).unwrap();
        let from = format!("{}/{name}/.", repository());
        assert!(Command::new("cp").arg("-r").arg(from).arg(at(name)).status().unwrap().success());
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "1000", "--regid", "1000", "--clear-groups"]);
    command.arg(at("tests")).args(["--skip", but]).current_dir(folder.path());
    command.env("TMPDIR", folder.path()).env("PROWESS_TEST_BINARY", at("prowess"));
    command.env("INSTA_WORKSPACE_ROOT", folder.path()).env("INSTA_UPDATE", "no");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok."), "{text}");
}
