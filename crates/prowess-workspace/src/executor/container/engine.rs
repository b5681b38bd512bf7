//! The engine of containers: what Prowess wants of Docker and Podman.

use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, test_kill_process};
use tokio::net::UnixListener;

use super::super::ExecError;
use super::super::work::io;
use super::listing::list;
use super::plan::{Common, Plan, user};
use crate::supervisor::start_time;

/// Who made a container, on which machine, and the folder that it called from.
const OWNER: &str = "prowess.owner";
const MACHINE: &str = "prowess.machine";
const FOLDER: &str = "prowess.folder";

/// How the names of such folders begin.
const FOLDER_PREFIX: &str = "prowess-line-";

/// A socket that an engine answers on.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(crate) socket: PathBuf,
    docker: Docker,
}

/// What an engine says of itself.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) cpus: i64,
    pub(crate) is_rootless: bool,
}

/// Milliseconds to wait before a container is removed again.
const REMOVE_AGAIN: [u64; 8] = [20, 50, 100, 200, 500, 1000, 2000, 5000];

fn failed(doing: impl Into<String>) -> impl FnOnce(Error) -> ExecError {
    let doing = doing.into();
    move |cause| {
        let cause = match cause {
            Error::DockerResponseServerError { message, .. } => message,
            Error::RequestTimeoutError => "it takes too long (engine_seconds)".to_owned(),
            other => other.to_string(),
        };
        ExecError::Engine { cause: format!("{doing}: {cause}") }
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

impl Engine {
    /// The engine that is named, or that of the environment, or the first one at the usual places.
    pub(crate) async fn find(named: &str, patience: Duration) -> Result<Self, ExecError> {
        let socket = socket(named, |name| std::env::var(name).ok(), Path::exists)?;
        let at = socket.display().to_string();
        let connected =
            Docker::connect_with_unix(&at, patience.as_secs(), bollard::API_DEFAULT_VERSION);
        let docker = connected.map_err(failed(&at))?;
        let docker = docker.negotiate_version().await.map_err(failed(&at))?;
        Ok(Self { socket, docker })
    }

    pub(crate) async fn about(&self) -> Result<About, ExecError> {
        let info = self.docker.info().await.map_err(failed("what it is"))?;
        let version = self.docker.version().await.map_err(failed("what it is"))?;
        let parts = version.components.unwrap_or_default();
        let is_podman = parts.iter().any(|part| part.name.contains("Podman"));
        let options = info.security_options.unwrap_or_default();
        let is_rootless = options.iter().any(|option| option.contains("rootless"));
        if is_rootless && !is_podman {
            let cause = "it is a Docker without root, in which a workspace would belong to somebody \
                         else; use Podman, or a Docker that root runs";
            return Err(ExecError::Engine { cause: cause.to_owned() });
        }
        Ok(About { cpus: info.ncpu.unwrap_or(1), is_rootless })
    }

    /// What an image holds: its name may mean another one later.
    pub(crate) async fn image(&self, name: &str) -> Result<String, ExecError> {
        match self.docker.inspect_image(name).await {
            Ok(about) => Ok(about.id.unwrap_or_else(|| name.to_owned())),
            Err(error) if is_missing(&error) => Err(ExecError::Image { image: name.to_owned() }),
            Err(error) => Err(failed(format!("the image {name}"))(error)),
        }
    }

    /// Makes a container and starts it. What its first process says comes over the line.
    pub(crate) async fn make(
        &self,
        common: &Common,
        plan: &Plan,
        patience: Duration,
    ) -> Result<(String, std::os::unix::net::UnixStream, tempfile::TempDir), ExecError> {
        const SOCKET: &str = "call";
        let preparing = || io("preparing a container");
        // Whoever else could enter it could answer in place of the first process.
        let mode: Permissions = PermissionsExt::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).permissions(mode).tempdir();
        let folder = folder.map_err(preparing())?;
        let line = folder.path().join("line");
        std::fs::create_dir(&line).map_err(preparing())?;
        let listener = UnixListener::bind(line.join(SOCKET)).map_err(preparing())?;
        for (path, mode) in [(line.clone(), 0o755), (line.join(SOCKET), 0o777)] {
            let mode = PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, mode).map_err(preparing())?;
        }
        for (from, ..) in common.mounts(plan, &line) {
            keep_out(&self.socket, &from)?;
        }
        let name = format!("prowess-{}", uuid::Uuid::now_v7());
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let mut body = common.body(plan, &line, SOCKET);
        let place = folder.path().to_string_lossy().into_owned();
        body.labels.get_or_insert_default().insert(FOLDER.to_owned(), place);
        let made = self.docker.create_container(Some(options), body).await;
        let called = async {
            let id = made.map_err(failed("making a container"))?.id;
            let started = self.docker.start_container(&id, None).await;
            started.map_err(failed("starting a container"))?;
            let called = self.called(&listener, &id, patience).await?;
            // Nobody else inside can call.
            std::fs::remove_file(line.join(SOCKET)).map_err(preparing())?;
            Ok((id, called))
        };
        match called.await {
            Ok((id, called)) => Ok((id, called, folder)),
            Err(error) => {
                // It may have been made though nobody said so.
                self.remove(&name).await;
                Err(error)
            }
        }
    }

    /// Waits until the first process of a container calls.
    async fn called(
        &self,
        listener: &UnixListener,
        id: &str,
        patience: Duration,
    ) -> Result<std::os::unix::net::UnixStream, ExecError> {
        let gone = async {
            loop {
                tokio::time::sleep(Duration::from_millis(250)).await;
                let all = list(&self.socket, OWNER, patience).await.unwrap_or_default();
                if all.iter().any(|it| it.id == id && it.has_ended()) {
                    let cause = "the supervisor does not run in the image; is it an image for this \
                                 kind of machine?";
                    return ExecError::Engine { cause: cause.to_owned() };
                }
            }
        };
        let too_long = || ExecError::Engine {
            cause: "a container takes too long to start (engine_seconds)".to_owned(),
        };
        tokio::select! {
            called = listener.accept() => {
                let (line, _) = called.map_err(io("connecting a container"))?;
                let line = line.into_std().map_err(io("connecting a container"))?;
                let caller = socket_peercred(&line).map_err(|it| io("connecting a container")(it.into()))?;
                if caller.uid.as_raw() != user().0 {
                    let cause = format!("user {} called in its place", caller.uid.as_raw());
                    return Err(ExecError::Engine { cause });
                }
                line.set_nonblocking(false).map_err(io("connecting a container"))?;
                Ok(line)
            }
            error = gone => Err(error),
            () = tokio::time::sleep(patience) => Err(too_long()),
        }
    }

    /// Ends a container and removes it.
    pub(crate) async fn remove(&self, id: &str) {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        // One that is just ending cannot be removed for a moment.
        for pause in REMOVE_AGAIN {
            match self.docker.remove_container(id, Some(options.clone())).await {
                Err(error) if !is_missing(&error) => {
                    tracing::debug!(container = id, %error, "it cannot be removed yet");
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                _ => return,
            }
        }
        tracing::warn!(container = id, "a container could not be removed");
    }

    /// Removes containers that nobody uses any more: those that have ended, and those whose owner
    /// was killed.
    pub(crate) async fn reap(&self, patience: Duration) -> Result<(), ExecError> {
        let all = list(&self.socket, OWNER, patience).await;
        for container in all.map_err(io("listing containers"))? {
            if container.has_ended() || is_abandoned(&container.labels) {
                tracing::debug!(container = container.id, "an abandoned container is removed");
                self.remove(&container.id).await;
                remove_folder(&container.labels);
            }
        }
        Ok(())
    }
}

/// What tells our containers from those of others.
pub(crate) fn labels() -> HashMap<String, String> {
    let own = std::process::id();
    let owner = format!("{own}-{}", start_time(own));
    HashMap::from([(OWNER.to_owned(), owner), (MACHINE.to_owned(), machine())])
}

/// The processes that can be seen from here: those of this start of this machine, in this namespace.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), processes.display())
}

/// Whether whoever made a container is gone. Of another machine nobody knows.
fn is_abandoned(labels: &HashMap<String, String>) -> bool {
    let owner = labels.get(OWNER).and_then(|owner| {
        let (pid, started) = owner.split_once('-')?;
        Some((pid.parse::<u32>().ok()?, started))
    });
    let is_here = labels.get(MACHINE).is_some_and(|it| *it == machine());
    is_here && owner.is_some_and(|(pid, started)| !is_alive(pid, started))
}

/// Whether a process is there that began then. One of somebody else may be hidden.
fn is_alive(pid: u32, started: &str) -> bool {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let is_gone = number.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    let began = start_time(pid);
    !is_gone && (began.is_empty() || began == started)
}

/// Removes the folder of a container whose owner is gone.
fn remove_folder(labels: &HashMap<String, String>) {
    let folder = labels.get(FOLDER).filter(|_| is_abandoned(labels)).map(Path::new);
    let is_ours = |folder: &&Path| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(FOLDER_PREFIX) && folder.is_absolute()
    };
    if let Some(folder) = folder.filter(is_ours) {
        // Whoever may not remove it leaves it to its owner.
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Whoever has the engine's socket has the machine.
fn keep_out(socket: &Path, mount: &Path) -> Result<(), ExecError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match real(socket).starts_with(real(mount)) {
        false => Ok(()),
        true => Err(ExecError::Start {
            cause: format!(
                "{} would be seen in the container, and holds the engine's socket {}; keep them \
                 apart",
                mount.display(),
                socket.display()
            ),
        }),
    }
}

/// The socket of an engine.
fn socket(
    named: &str,
    variable: impl Fn(&str) -> Option<String>,
    exists: impl Fn(&Path) -> bool,
) -> Result<PathBuf, ExecError> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let said = match named {
        "" => ["DOCKER_HOST", "CONTAINER_HOST"].into_iter().find_map(|name| {
            let value = variable(name)?;
            Some((name, value))
        }),
        named => Some(("[exec.container] engine", named.to_owned())),
    };
    if let Some((place, said)) = said {
        let no_socket = || ExecError::Engine {
            cause: format!("{place}: '{said}' is no socket of this machine; write unix:///PATH"),
        };
        let path = said.strip_prefix("unix://").or(said.starts_with('/').then_some(&said));
        let path = PathBuf::from(path.ok_or_else(no_socket)?);
        return match path.is_absolute() && exists(&path) {
            true => Ok(path),
            false => Err(ExecError::Engine {
                cause: format!(
                    "{place}: there is no socket at {}; is the engine running?",
                    path.display()
                ),
            }),
        };
    }
    let mut usual: Vec<PathBuf> =
        ["/var/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from).into();
    if let Some(folder) = variable("XDG_RUNTIME_DIR") {
        usual.extend(["docker.sock", "podman/podman.sock"].map(|it| Path::new(&folder).join(it)));
    }
    let tried: Vec<String> = usual.iter().map(|path| path.display().to_string()).collect();
    usual.into_iter().find(|path| exists(path)).ok_or_else(|| ExecError::Engine {
        cause: format!(
            "there is none at {}; start Docker or Podman (`systemctl start podman.socket`), or name \
             its socket in DOCKER_HOST",
            tried.join(", ")
        ),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_the_named_one_or_that_of_the_environment_or_a_usual_one() {
        let none = |_: &str| None;
        let docker_host = |name: &str| (name == "DOCKER_HOST").then(|| "unix:///a".to_owned());
        let both = |name: &str| match name {
            "CONTAINER_HOST" => Some("unix:///b".to_owned()),
            "XDG_RUNTIME_DIR" => Some("/run/user/1".to_owned()),
            _ => None,
        };
        let all = |_: &Path| true;
        let find = |named: &str,
                    variable: &dyn Fn(&str) -> Option<String>,
                    exists: &dyn Fn(&Path) -> bool| {
            socket(named, variable, exists).map(|path| path.display().to_string())
        };
        assert_eq!(find("unix:///x", &docker_host, &all).unwrap(), "/x");
        assert_eq!(find("/x", &docker_host, &all).unwrap(), "/x");
        assert_eq!(find("", &docker_host, &all).unwrap(), "/a");
        assert_eq!(find("", &both, &all).unwrap(), "/b");
        assert_eq!(find("", &none, &all).unwrap(), "/var/run/docker.sock");
        let podman = |path: &Path| path.ends_with("run/podman/podman.sock");
        assert_eq!(find("", &none, &podman).unwrap(), "/run/podman/podman.sock");
        let own = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/1".to_owned());
        let only_own = |path: &Path| path.starts_with("/run/user");
        assert_eq!(find("", &own, &only_own).unwrap(), "/run/user/1/docker.sock");
        for (named, variable, said) in [
            (
                "tcp://1.2.3.4:1",
                &none as &dyn Fn(&str) -> Option<String>,
                "[exec.container] engine: 'tcp://1.2.3.4:1' is no socket",
            ),
            ("unix:///none", &none, "there is no socket at /none"),
            ("unix://x", &none, "there is no socket at x"),
            ("", &docker_host, "DOCKER_HOST: there is no socket at /a"),
            ("", &none, "there is none at /var/run/docker.sock, /run/podman/podman.sock"),
        ] {
            let error = find(named, variable, &|_| false).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.code(), "container_engine");
        }
    }

    #[test]
    fn only_containers_of_processes_that_are_gone_are_abandoned() {
        let mut own = labels();
        assert!(!is_abandoned(&own));
        own.insert(OWNER.to_owned(), format!("{}-1", std::process::id()));
        assert!(is_abandoned(&own));
        own.insert(MACHINE.to_owned(), "another".to_owned());
        assert!(!is_abandoned(&own));
        assert!(!is_abandoned(&HashMap::new()));
    }
}
