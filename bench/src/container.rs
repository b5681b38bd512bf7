//! Commands in containers, against what the engine itself takes for the same.

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use prowess_workspace::{
    Command, ContainerExecutor, ContainerSettings, Executor, Limits, Reuse, Run, Workspace,
    WorkspaceId, Workspaces,
};
use serde_json::{Value, json};

use crate::measure::turns;
use crate::results::Row;

const EXEC: &str = "a run in a container that waits to the engine's own exec, both `bash -c :`";
const FRESH: &str =
    "a run in a container that nobody has used, kept ready, to the engine's run of a new one";

/// How often the contenders take turns.
const EXEC_ROUNDS: usize = 60;
const FRESH_ROUNDS: usize = 20;

/// Containers that are kept ready.
const WARM: usize = 2;

pub(crate) fn run() -> Result<Vec<Row>> {
    let (Some(socket), Ok(image)) =
        (std::env::var_os("PROWESS_TEST_ENGINE"), std::env::var("PROWESS_TEST_IMAGE"))
    else {
        let why = "there is no container engine";
        return Ok(vec![
            Row::not_measured(EXEC, "≤ 1.3×", why),
            Row::not_measured(FRESH, "≤ 0.5×", why),
        ]);
    };
    let ground = Ground::new(socket.into(), image)?;
    Ok(vec![ground.exec()?, ground.fresh()?])
}

struct Ground {
    tokio: tokio::runtime::Runtime,
    engine: Engine,
    workspace: Workspace,
    _folder: tempfile::TempDir,
}

impl Ground {
    fn new(socket: PathBuf, image: String) -> Result<Self> {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        let workspaces = Workspaces::new(folder.path().join("workspaces"));
        let workspace = workspaces.open(&WorkspaceId::new("bench", "container", "1"))?;
        Ok(Self { tokio, engine: Engine { socket, image }, workspace, _folder: folder })
    }

    fn executor(&self, change: impl FnOnce(&mut ContainerSettings)) -> Result<ContainerExecutor> {
        let mut settings = ContainerSettings::default();
        settings.engine = format!("unix://{}", self.engine.socket.display());
        settings.image.clone_from(&self.engine.image);
        change(&mut settings);
        let executor = ContainerExecutor::builder(settings).build();
        self.run(&executor)?;
        Ok(executor)
    }

    fn run(&self, executor: &ContainerExecutor) -> Result<()> {
        let run = Run::new(self.workspace.path(), Command::Shell(":".to_owned()));
        let outcome = self.tokio.block_on(executor.run(run))?;
        ensure!(outcome.exit_code == 0, "{}", outcome.stderr.text(1000));
        Ok(())
    }

    fn exec(&self) -> Result<Row> {
        let executor = self.executor(|settings| settings.warm = 0)?;
        let container = self.engine.create(&["sleep", "3600"], self.workspace.path())?;
        self.engine.start(&container)?;
        let failed = RefCell::new(Ok(()));
        let check = |done: Result<()>| {
            if done.is_err() {
                *failed.borrow_mut() = done;
            }
        };
        let [ours, theirs] = turns(
            EXEC_ROUNDS,
            [&|| check(self.run(&executor)), &|| check(self.engine.exec(&container))],
        );
        self.engine.remove(&container)?;
        failed.into_inner()?;
        let detail = format!("{:.1} to {:.1} ms", ours * 1e3, theirs * 1e3);
        Ok(Row::at_most(EXEC, ours / theirs, 1.3, &detail))
    }

    fn fresh(&self) -> Result<Row> {
        let executor = self.executor(|settings| {
            settings.reuse = Reuse::Never;
            settings.warm = WARM;
        })?;
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..FRESH_ROUNDS {
            // What is made for the next run is not at work while one is timed.
            self.wait_until_ready()?;
            let begun = Instant::now();
            self.run(&executor)?;
            ours.push(begun.elapsed().as_secs_f64());
            self.wait_until_ready()?;
            let begun = Instant::now();
            self.engine.run(self.workspace.path())?;
            theirs.push(begun.elapsed().as_secs_f64());
        }
        let median = |mut samples: Vec<f64>| {
            samples.sort_by(f64::total_cmp);
            samples[samples.len() / 2]
        };
        let (ours, theirs) = (median(ours), median(theirs));
        let detail = format!("{:.1} to {:.1} ms", ours * 1e3, theirs * 1e3);
        Ok(Row::at_most(FRESH, ours / theirs, 0.5, &detail))
    }

    /// Waits until as many containers wait as should, and the engine has nothing else to do.
    fn wait_until_ready(&self) -> Result<()> {
        for _ in 0..200 {
            let listed = self.engine.ask("GET", "/containers/json?all=true", None)?;
            let states: Vec<&str> = (listed.as_array().into_iter().flatten())
                .filter(|it| it["Labels"]["prowess.owner"].is_string())
                .filter_map(|it| it["State"].as_str())
                .collect();
            if states.len() == WARM && states.iter().all(|state| *state == "running") {
                std::thread::sleep(Duration::from_millis(200));
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        anyhow::bail!("the containers are not ready")
    }
}

/// The engine, asked as any client would ask it, and nothing around it.
struct Engine {
    socket: PathBuf,
    image: String,
}

impl Engine {
    /// A container with the same limits as ours.
    fn create(&self, words: &[&str], workspace: &Path) -> Result<String> {
        let limits = Limits::default();
        let work = format!("{}:/workspace/work", workspace.join("work").display());
        let body = json!({
            "Image": self.image, "Cmd": words, "User": "65534:65534",
            "HostConfig": {
                "NetworkMode": "none", "ReadonlyRootfs": true, "Binds": [work],
                "Memory": limits.memory_bytes, "PidsLimit": limits.processes, "NanoCpus": 2_000_000_000_i64,
                "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"],
            },
        });
        let made = self.ask("POST", "/containers/create", Some(body))?;
        Ok(made["Id"].as_str().context("no container was made")?.to_owned())
    }

    fn start(&self, container: &str) -> Result<()> {
        self.ask("POST", &format!("/containers/{container}/start"), None).map(drop)
    }

    fn remove(&self, container: &str) -> Result<()> {
        self.ask("DELETE", &format!("/containers/{container}?force=true"), None).map(drop)
    }

    fn exec(&self, container: &str) -> Result<()> {
        let body = json!({"Cmd": ["bash", "-c", ":"], "AttachStdout": true, "AttachStderr": true});
        let made = self.ask("POST", &format!("/containers/{container}/exec"), Some(body))?;
        let id = made["Id"].as_str().context("no exec was made")?;
        let body = json!({"Detach": false, "Tty": false});
        self.answer("POST", &format!("/exec/{id}/start"), Some(body))?;
        let about = self.ask("GET", &format!("/exec/{id}/json"), None)?;
        ensure!(about["ExitCode"] == 0, "{about}");
        Ok(())
    }

    /// A new container for one command, with what it wrote and how it ended.
    fn run(&self, workspace: &Path) -> Result<()> {
        let container = self.create(&["bash", "-c", ":"], workspace)?;
        self.start(&container)?;
        let ended = self.ask("POST", &format!("/containers/{container}/wait"), None)?;
        ensure!(ended["StatusCode"] == 0, "{ended}");
        self.answer("GET", &format!("/containers/{container}/logs?stdout=1&stderr=1"), None)?;
        self.remove(&container)
    }

    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let answer = self.answer(method, path, body)?;
        let text = String::from_utf8_lossy(&answer);
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn answer(&self, method: &str, path: &str, body: Option<Value>) -> Result<Vec<u8>> {
        let mut line = UnixStream::connect(&self.socket)?;
        let body = body.map(|it| it.to_string()).unwrap_or_default();
        let length = body.len();
        // This version has no chunks, and ends with the answer.
        write!(
            line,
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = Vec::new();
        line.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n").context("no answer")?;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap_or_default();
        let is_good = status.starts_with('2') || matches!(status, "101" | "304");
        ensure!(is_good, "{method} {path}: {head} {}", String::from_utf8_lossy(&answer[end..]));
        Ok(answer[end + 4..].to_vec())
    }
}
