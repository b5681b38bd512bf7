//! What the tests of the sandbox share.

#![allow(dead_code, unreachable_pub, reason = "not every test file uses all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use prowess_workspace::{Command, ExecError, Executor, LocalExecutor, Run, RunOutcome, Tier};
#[cfg(feature = "container")]
use prowess_workspace::{ContainerExecutor, ContainerSettings};

/// Whether this program tests containers: it holds the tests of another one.
pub fn is_about_containers() -> bool {
    env!("CARGO_CRATE_NAME").starts_with("container")
}

/// The sandboxes that must hold.
pub fn tiers() -> Vec<Tier> {
    match (is_about_containers(), std::env::var_os("PROWESS_TEST_ENGINE")) {
        (false, _) => vec![Tier::T2, Tier::T1],
        (true, Some(_)) => vec![Tier::T3],
        (true, None) => {
            skip("there is no container engine (PROWESS_TEST_ENGINE)");
            Vec::new()
        }
    }
}

/// Says, once, that this test could not run here, and why. `./dev test` counts and prints it.
fn skip(why: &str) {
    use std::io::Write;

    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    if !SAID.lock().unwrap().insert(test.clone()) {
        return;
    }
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}

/// The engine and the image of the tests.
#[cfg(feature = "container")]
pub fn container_settings() -> ContainerSettings {
    let mut settings = ContainerSettings::default();
    settings.engine = format!("unix://{}", std::env::var("PROWESS_TEST_ENGINE").unwrap());
    settings.image = std::env::var("PROWESS_TEST_IMAGE").unwrap();
    settings
}

/// Whom commands run as when the tests run as root.
pub const NOBODY: u32 = 65534;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The supervisor; a copy of it, where the one that was built cannot be reached.
pub fn supervisor() -> PathBuf {
    let copy = std::env::var_os("PROWESS_TEST_SUPERVISOR").map(PathBuf::from);
    copy.unwrap_or_else(|| env!("CARGO_BIN_EXE_prowess-supervisor").into())
}

/// Runs this test program again as an ordinary user, if we are root.
pub fn repeat_as_a_user(arguments: &[&str]) {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o777);
    for (name, from) in [("tests", std::env::current_exe().unwrap()), ("supervisor", supervisor())]
    {
        std::fs::copy(from, folder.path().join(name)).unwrap();
        set_mode(&folder.path().join(name), 0o755);
    }
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", "1000", "--regid", "1000", "--clear-groups"])
        .arg(folder.path().join("tests"))
        .args(arguments)
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .env("PROWESS_TEST_SUPERVISOR", folder.path().join("supervisor"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok."), "{text}");
}

/// An executor that uses this sandbox.
pub fn executor(tier: Tier) -> Arc<dyn Executor> {
    static EXECUTORS: Mutex<BTreeMap<Tier, Arc<dyn Executor>>> = Mutex::new(BTreeMap::new());
    let mut executors = EXECUTORS.lock().unwrap();
    Arc::clone(executors.entry(tier).or_insert_with(|| new_executor(tier)))
}

/// The same, used by nobody else.
pub fn new_executor(tier: Tier) -> Arc<dyn Executor> {
    match tier {
        #[cfg(feature = "container")]
        Tier::T3 => {
            let builder = ContainerExecutor::builder(container_settings());
            Arc::new(builder.supervisor(supervisor()).build())
        }
        tier => Arc::new(LocalExecutor::builder().best_tier(tier).supervisor(supervisor()).build()),
    }
}

/// A workspace, and a folder beside it that is none of its business.
pub struct Ground {
    pub folder: tempfile::TempDir,
}

impl Default for Ground {
    fn default() -> Self {
        Self::new()
    }
}

impl Ground {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Self { folder };
        set_mode(ground.folder.path(), 0o711);
        for name in ["workspace", "workspace/skills", "workspace/skills/demo", "outside"] {
            std::fs::create_dir_all(ground.at(name)).unwrap();
            set_mode(&ground.at(name), 0o755);
        }
        for name in ["work", "out", "runs", "skills/demo/.venv"] {
            std::fs::create_dir_all(ground.workspace().join(name)).unwrap();
            theirs(&ground.workspace().join(name));
        }
        std::fs::write(ground.workspace().join("skills/demo/SKILL.md"), "text").unwrap();
        std::fs::write(ground.workspace().join("metadata.json"), "{}").unwrap();
        set_mode(&ground.at("outside"), 0o777);
        ground.put("outside/secret", "hunter2");
        ground
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn workspace(&self) -> PathBuf {
        self.at("workspace")
    }

    /// A file that belongs to whom commands run as.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::write(&path, text).unwrap();
        theirs(&path);
        set_mode(&path, 0o666);
        path
    }

    /// Runs a line in a sandbox.
    pub async fn run(&self, tier: Tier, line: &str) -> RunOutcome {
        self.run_with(tier, line, |_| {}).await.unwrap()
    }

    pub async fn run_with(
        &self,
        tier: Tier,
        line: &str,
        change: impl FnOnce(&mut Run<'_>),
    ) -> Result<RunOutcome, ExecError> {
        let executor = executor(tier);
        assert_eq!(executor.isolation().await?.tier, tier);
        let workspace = self.workspace();
        let mut run = Run::new(&workspace, Command::Shell(line.to_owned()));
        run.skill = Some("demo");
        change(&mut run);
        executor.run(run).await
    }

    /// Runs a line as a program without any sandbox would: with our environment, as whom commands
    /// run as.
    pub fn unprotected(&self, line: &str) -> std::process::Output {
        self.unprotected_command(line).output().unwrap()
    }

    pub fn unprotected_command(&self, line: &str) -> std::process::Command {
        let mut command = match is_root() {
            true => {
                let mut command = std::process::Command::new("setpriv");
                command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash"]);
                command
            }
            false => std::process::Command::new("bash"),
        };
        command.args(["-c", line]).current_dir(self.workspace()).stdin(Stdio::null());
        command.env("WORK_DIR", self.workspace().join("work"));
        command
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Gives a path to whom commands run as.
pub fn theirs(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// What a command said on both streams.
pub fn said(outcome: &RunOutcome) -> String {
    format!("{}{}", outcome.stdout.text(1 << 20), outcome.stderr.text(1 << 20))
}

/// Whether a process is there whose arguments hold this text.
pub fn is_running(text: &str) -> bool {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let is_other = entry.file_name().to_str() != Some(own.as_str());
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        is_other && String::from_utf8_lossy(&words).contains(text)
    })
}

/// Whether a process is there whose arguments begin with this text.
pub fn is_running_as(text: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.starts_with(text.as_bytes())
    })
}

/// Waits until something holds, for a while.
pub fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(60) {
        if holds() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    false
}
