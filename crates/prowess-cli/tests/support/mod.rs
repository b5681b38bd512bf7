//! What the tests of the command line share.

#![allow(dead_code)]

pub(crate) mod chat;
pub(crate) mod exec;
pub(crate) mod provider;
pub(crate) mod terminal;
pub(crate) mod typist;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder of its own for one test, with the command line in it.
pub(crate) struct Sandbox {
    root: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Writes a file and the folders above it.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs `prowess` in the folder.
    pub(crate) fn prowess(&self, arguments: &[&str]) -> Run {
        self.prowess_with(arguments, b"")
    }

    /// Runs `prowess` in the folder with this on standard input.
    pub(crate) fn prowess_with(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut command = Command::new(binary());
        command.args(arguments);
        self.run(command, input)
    }

    /// Runs a command in the folder.
    pub(crate) fn run(&self, mut command: Command, input: &[u8]) -> Run {
        command.current_dir(self.path()).env_remove("CLICOLOR_FORCE").env("COLUMNS", "100");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may have closed it.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    /// Everything in one text, for snapshots.
    pub(crate) fn text(&self) -> String {
        let Self { code, stdout, stderr } = self;
        format!("exit {code}\n--- stdout ---\n{stdout}--- stderr ---\n{stderr}")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The program; a copy of it, where the one that was built cannot be reached.
pub(crate) fn binary() -> PathBuf {
    let copy = std::env::var_os("PROWESS_TEST_BINARY").map(PathBuf::from);
    copy.unwrap_or_else(|| env!("CARGO_BIN_EXE_prowess").into())
}

/// A minimal skill with this name.
pub(crate) fn minimal(name: &str) -> String {
    format!("---\nname: {name}\ndescription: A test skill\n---\n# My Skill\n")
}

/// Says that a test could not run here, and why. `./dev test` counts and prints it.
pub(crate) fn skip(test: &str, why: &str) {
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}
