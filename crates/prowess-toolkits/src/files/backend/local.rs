//! Files in a folder of this machine.

use std::io;
use std::path::Path;
use std::sync::Arc;

use prowess_workspace::{
    CollectedFile, Entries, Executor, Expected, Jail, Limits, Run, Workspace, WorkspaceError,
    WorkspacePath, Wrote,
};

use super::{Backend, BackendFuture, CommandLimits, CommandOutcome, FileError, Shell, blocking};
use crate::place::folder;
use crate::policy::CommandPolicy;

/// A folder of this machine. Nothing outside of it is opened, and no link is followed, not even one
/// that stays inside; files with several names are not read, since they may be anybody's.
///
/// ```no_run
/// use prowess_toolkits::{FilesToolkit, LocalBackend};
///
/// let files = FilesToolkit::on(LocalBackend::new("/srv/notes")?);
/// # let _ = files;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct LocalBackend {
    jail: Jail,
    shell: Option<Arc<LocalShell>>,
}

struct LocalShell {
    workspace: Workspace,
    executor: Arc<dyn Executor>,
    policy: CommandPolicy,
}

impl LocalBackend {
    /// The folder at this path, which must be there. There are no commands.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { jail: Jail::open(root)?, shell: None })
    }

    /// The folder `work/` of a workspace, with commands that an executor runs there: in its
    /// sandbox, or not at all. They have no network. Which ones may be run, the environment can
    /// say, as for [`CommandPolicy::new`].
    pub fn in_workspace(workspace: Workspace, executor: Arc<dyn Executor>) -> io::Result<Self> {
        let policy = CommandPolicy::new(&[], &[]).map_err(io::Error::other)?;
        Self::in_workspace_with(workspace, executor, policy)
    }

    /// The same with the commands that this policy allows, whatever the environment says.
    pub fn in_workspace_with(
        workspace: Workspace,
        executor: Arc<dyn Executor>,
        policy: CommandPolicy,
    ) -> io::Result<Self> {
        let jail = Jail::open(workspace.path().join(WORK))?;
        Ok(Self { jail, shell: Some(Arc::new(LocalShell { workspace, executor, policy })) })
    }

    /// Where it is: absolute, without links.
    pub fn root(&self) -> &Path {
        self.jail.path()
    }

    async fn blocking<T: Send + 'static>(
        &self,
        path: &WorkspacePath,
        work: impl FnOnce(&Jail, &WorkspacePath) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, FileError> {
        let (jail, place) = (self.jail.clone(), path.clone());
        blocking(path, move || work(&jail, &place)).await.map_err(|error| match error {
            FileError::NotAFile { path, what: "a folder" } => FileError::IsFolder { path },
            error => error,
        })
    }
}

const WORK: &str = "work";

impl std::fmt::Debug for LocalBackend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LocalBackend").field("root", &self.root()).finish_non_exhaustive()
    }
}

impl Backend for LocalBackend {
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries> {
        Box::pin(self.blocking(folder, move |jail, path| jail.list(path, most)))
    }

    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile> {
        Box::pin(self.blocking(file, move |jail, path| jail.read(path, limit)))
    }

    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote> {
        let bytes = bytes.to_vec();
        let expected = OwnedExpected::from(expected);
        Box::pin(self.blocking(file, move |jail, path| jail.write(path, &bytes, expected.get())))
    }

    fn shell(&self) -> Option<&dyn Shell> {
        self.shell.as_deref().map(|shell| shell as &dyn Shell)
    }
}

/// What is expected, for another thread.
pub(super) enum OwnedExpected {
    Anything,
    Nothing,
    Content(Vec<u8>),
}

impl From<Expected<'_>> for OwnedExpected {
    fn from(expected: Expected<'_>) -> Self {
        match expected {
            Expected::Anything => Self::Anything,
            Expected::Nothing => Self::Nothing,
            Expected::Content(bytes) => Self::Content(bytes.to_vec()),
        }
    }
}

impl OwnedExpected {
    pub(super) fn get(&self) -> Expected<'_> {
        match self {
            Self::Anything => Expected::Anything,
            Self::Nothing => Expected::Nothing,
            Self::Content(bytes) => Expected::Content(bytes),
        }
    }
}

impl Shell for LocalShell {
    fn execute<'a>(
        &'a self,
        command: &'a str,
        limits: CommandLimits,
    ) -> BackendFuture<'a, CommandOutcome> {
        Box::pin(async move {
            let mut run = Run::new(self.workspace.path(), self.policy.command(command)?);
            run.cwd = folder(WORK);
            run.run_dir = folder(WORK);
            let mut allowed = Limits::default();
            allowed.wall = limits.timeout;
            run.limits = allowed;
            let ended = self.executor.run(run).await?;
            let streams = [&ended.stdout, &ended.stderr];
            let most = limits.output_bytes;
            let told: Vec<String> = streams.iter().map(|it| it.text(most)).collect();
            let is_cut = streams.iter().any(|it| it.is_cut() || it.total_bytes > most as u64);
            let mut outcome = CommandOutcome::new(ended.exit_code, told.concat());
            (outcome.timed_out, outcome.truncated) = (ended.timed_out, is_cut);
            Ok(outcome)
        })
    }
}
