//! What the tests of workspaces share.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use prowess_workspace::{
    CollectLimits, Collected, RefusedReason, SkillFile, Workspace, WorkspaceId, WorkspacePath,
    Workspaces,
};

pub(crate) const SECRET: &str = "the host's secret";

/// Workspaces in a new folder, and beside them what nobody may touch.
pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) workspaces: Workspaces,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Staged skills are read-only, and an ordinary user could not remove them.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.folder.path()).output();
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::named("all")
    }

    pub(crate) fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("host")).unwrap();
        fs::write(folder.path().join("host/secret"), SECRET).unwrap();
        let workspaces = Workspaces::new(folder.path().join(name));
        Self { folder, workspaces }
    }

    pub(crate) fn host(&self) -> PathBuf {
        self.folder.path().join("host")
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.host().join("secret")
    }

    pub(crate) fn open(&self, session: &str) -> Workspace {
        self.workspaces.open(&id(session)).unwrap()
    }

    pub(crate) fn assert_host_is_intact(&self) {
        let names: Vec<_> =
            fs::read_dir(self.host()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs::read_to_string(self.secret()).unwrap(), SECRET);
    }
}

pub(crate) fn id(session: &str) -> WorkspaceId {
    WorkspaceId::new("app", "user", session)
}

pub(crate) fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

pub(crate) fn file<'a>(path: &'a str, bytes: &'a str) -> SkillFile<'a> {
    SkillFile { path, executable: path.ends_with(".sh"), bytes: bytes.as_bytes().into() }
}

pub(crate) fn collect(workspace: &Workspace, globs: &[&str]) -> Collected {
    let globs: Vec<_> = globs.iter().map(|glob| (*glob).to_owned()).collect();
    workspace.collect(&globs, None, &CollectLimits::default()).unwrap()
}

pub(crate) fn names(collected: &Collected) -> Vec<&str> {
    collected.files.iter().map(|file| file.name.as_str()).collect()
}

pub(crate) fn refused(collected: &Collected) -> Vec<(&str, RefusedReason)> {
    collected.refused.iter().map(|it| (it.name.as_str(), it.reason)).collect()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs all tests of this file once more as an ordinary user, where this one is root.
pub(crate) fn again_as_an_ordinary_user(except: &[&str]) {
    if !is_root() {
        println!("this is an ordinary user: the other tests say it all");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tests");
    // By another program: what a process writes while it starts others cannot be run at once.
    let copy = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copy.unwrap().success());
    let mut command = Command::new(&program);
    command.uid(65534).gid(65534).current_dir("/");
    for name in except {
        command.args(["--skip", name]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok"), "{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}

/// This program again, in which only the test `child` does something.
pub(crate) fn spawn(role: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env("PROWESS_TEST_ROLE", role)
        .env("PROWESS_TEST_FOLDER", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What this process is to do as a child.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    let role = std::env::var("PROWESS_TEST_ROLE").ok()?;
    Some((role, std::env::var_os("PROWESS_TEST_FOLDER")?.into()))
}

/// The lines that a child says, those of the test program left out.
pub(crate) fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter_map(|line| line.split_once("said: ").map(|(_, said)| said.to_owned()))
}

pub(crate) fn say(text: impl std::fmt::Display) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "\nsaid: {text}");
    let _ = out.flush();
}

/// All files below a folder with their content; links by their targets.
pub(crate) fn tree(folder: &Path) -> std::collections::BTreeMap<PathBuf, String> {
    fn walk(folder: &Path, top: &Path, into: &mut std::collections::BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let short = path.strip_prefix(top).unwrap().to_owned();
            if kind.is_dir() {
                walk(&path, top, into);
            } else if kind.is_symlink() {
                into.insert(short, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else {
                into.insert(short, String::from_utf8_lossy(&fs::read(&path).unwrap()).into());
            }
        }
    }
    let mut files = std::collections::BTreeMap::new();
    walk(folder, folder, &mut files);
    files
}

pub(crate) fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Folders one below the other, far deeper than a path can be long.
pub(crate) fn deep(folder: &Path, depth: usize) {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat(CWD, folder, flags, Mode::empty()).unwrap();
    let name = OsStr::new("deeper");
    for _ in 0..depth {
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = openat(&here, name, flags, Mode::empty()).unwrap();
    }
}
