//! What a host can set: the section `[exec]` of `prowess.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use prowess_catalog::{CatalogSkill, Trust};
use prowess_workspace::{
    Capability, CollectLimits, ContainerSettings, Limits, Network, Unsandboxed,
};
use serde::{Deserialize, Serialize};

use super::interactive::SessionSettings;
use crate::policy::{CommandError, CommandPolicy, InvalidCommandList, is_posix};

/// How commands of skills are run: the section `[exec]` of `prowess.toml`.
///
/// ```toml
/// [exec]
/// require_skill_loaded = true      # or a skill that is not loaded runs as the catalog has it
/// default_timeout = 300            # seconds
/// max_timeout = 600
/// shown_output_bytes = 16384       # of standard output, and of standard error
/// primary_output_bytes = 32768
/// max_inline_bytes = 65536         # of all output files in one result
/// max_output_files = 100
/// max_output_file_bytes = 4194304
/// max_output_total_bytes = 67108864
/// max_output_depth = 32            # names in the path of an output file
/// max_output_entries = 200000      # of folders that are looked at for output files
/// max_output_globs = 64            # of a call
/// max_output_refused = 100         # output files that are left out and named; the rest is counted
/// max_delivered_files = 10000      # brought to a folder of the user, as `prowess run --output` does
/// max_delivered_bytes = 1073741824
/// max_inputs = 100
/// max_skill_bytes = 268435456      # of all files of a skill
/// host_inputs = ["/srv/shared"]    # the folders that `host://` may read; none unless named
/// network = ["web-research"]       # the skills that may use the network
/// require = ["fs_write", "net"]    # what must be enforced, or nothing is started
/// allow_unsandboxed = false        # where there is no sandbox, for trusted sources only
/// allowed_commands = ["python3"]   # with either of these, single commands without a shell:
/// denied_commands = []             # see `CommandPolicy`, also for variables that hold them
/// interactive = false              # whether there is `skill_exec` with its family
/// workspace_exec = false           # whether there is `workspace_exec` with its family
/// executor = "local"               # or "container": Docker or Podman, as [exec.container] says
///
/// [exec.env]                       # variables of this program that a skill gets, by name
/// deploy = ["DEPLOY_TOKEN"]
///
/// [exec.limits]
/// memory_bytes = 536870912         # and the other fields of `LimitSettings`
///
/// [exec.sessions]
/// max_sessions = 16                # and the other fields of `SessionSettings`
/// ```
///
/// The section `[exec.container]` is that of [`ContainerSettings`].
///
/// A skill in `network` and `env` is named as a session names it. A bare name means a skill of a
/// trusted source; one that is not trusted must be named with its source, as in `deploy@vendor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ExecSettings {
    /// Whether a skill must be loaded before its commands run.
    pub require_skill_loaded: bool,
    /// Seconds that a command may take unless it asks for another time.
    pub default_timeout: u64,
    /// Seconds that a command may take at most.
    pub max_timeout: u64,
    /// Bytes of standard output, and of standard error, that a result shows.
    pub shown_output_bytes: usize,
    /// Bytes of a text file that may be the primary output.
    pub primary_output_bytes: usize,
    /// Bytes of all output files together whose content a result shows.
    pub max_inline_bytes: usize,
    /// Output files of a call; it may ask for fewer.
    pub max_output_files: u64,
    /// Bytes of an output file; a call may ask for fewer.
    pub max_output_file_bytes: u64,
    /// Bytes of all output files; a call may ask for fewer.
    pub max_output_total_bytes: u64,
    /// Names in the path of an output file, as in [`CollectLimits::max_depth`].
    pub max_output_depth: u64,
    /// Entries of folders that are looked at for output files.
    pub max_output_entries: u64,
    /// Globs of a call.
    pub max_output_globs: u64,
    /// Output files that are left out and named; the rest is counted.
    pub max_output_refused: u64,
    /// Files that are brought to a folder of the user at once.
    pub max_delivered_files: u64,
    /// Bytes of all files that are brought to a folder of the user at once.
    pub max_delivered_bytes: u64,
    /// Inputs of a call.
    pub max_inputs: usize,
    /// Bytes of all files of a skill.
    pub max_skill_bytes: u64,
    /// The folders of this machine that `host://` may read.
    pub host_inputs: Vec<PathBuf>,
    /// The skills that may use the network.
    pub network: BTreeSet<String>,
    /// What must be enforced, or nothing is started.
    pub require: BTreeSet<Capability>,
    /// Whether skills of trusted sources run where there is no sandbox.
    pub allow_unsandboxed: bool,
    /// The only commands that may be run, if it is not empty. With this or the next one, no shell
    /// runs them; see [`CommandPolicy`].
    pub allowed_commands: Vec<String>,
    /// Commands that may not be run, nor what would run them.
    pub denied_commands: Vec<String>,
    /// Whether there are tools to talk to commands of skills: `skill_exec` with its family.
    pub interactive: bool,
    /// Whether there are tools for commands on writable copies of skills: `workspace_exec` with its
    /// family.
    pub workspace_exec: bool,
    /// What runs commands; whoever makes the executor decides.
    pub executor: ExecutorChoice,
    /// Variables of this program that a skill gets, by their names.
    pub env: BTreeMap<String, BTreeSet<String>>,
    /// How much a command may use.
    pub limits: LimitSettings,
    /// How commands are talked to.
    pub sessions: SessionSettings,
    /// How containers are made.
    pub container: ContainerSettings,
}

/// What runs commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorChoice {
    /// This machine, in a sandbox.
    #[default]
    Local,
    /// Containers of Docker or Podman on this machine.
    Container,
}

/// How much a command may use: the section `[exec.limits]`. What is not said is as in [`Limits`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LimitSettings {
    /// Milliseconds to end after it was asked to.
    pub grace_ms: Option<u64>,
    /// Seconds of processor time, per process.
    pub cpu_seconds: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Bytes of a single file.
    pub file_bytes: Option<u64>,
    /// Files that a process has open at once.
    pub open_files: Option<u64>,
    /// Bytes that the workspace may hold.
    pub disk_bytes: Option<u64>,
    /// Files and folders that the workspace may hold.
    pub disk_files: Option<u64>,
    /// Bytes of standard output, and of standard error, that are kept.
    pub output_bytes: Option<usize>,
    /// Bytes of standard input.
    pub stdin_bytes: Option<u64>,
}

/// Why a section `[exec]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidExecSettings {
    /// It is not what it should be.
    #[error("[exec]: {0}")]
    Invalid(Box<toml::de::Error>),
    /// A folder for inputs is none.
    #[error("[exec] host_inputs: '{}' is not absolute; write the whole path", path.display())]
    RelativeFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The name of a variable is none.
    #[error("[exec.env] {skill}: '{name}' is no name of a variable")]
    Variable {
        /// The skill that it is for.
        skill: String,
        /// The name.
        name: String,
    },
    /// A list of commands cannot be used.
    #[error("[exec] {0}")]
    Commands(#[from] InvalidCommandList),
    /// A limit is higher than what can be done.
    #[error("[exec.limits] {key}: {value} is too much; write at most {most}")]
    TooMuch {
        /// The limit.
        key: &'static str,
        /// What it is set to.
        value: u64,
        /// What it can be.
        most: u64,
    },
}

impl InvalidExecSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "invalid_exec_settings"
    }
}

impl Default for ExecSettings {
    fn default() -> Self {
        let collect = CollectLimits::default();
        Self {
            require_skill_loaded: true,
            default_timeout: 300,
            max_timeout: 600,
            shown_output_bytes: 16 << 10,
            primary_output_bytes: 32 << 10,
            max_inline_bytes: 64 << 10,
            max_output_files: collect.max_files,
            max_output_file_bytes: collect.max_file_bytes,
            max_output_total_bytes: collect.max_total_bytes,
            max_output_depth: collect.max_depth,
            max_output_entries: collect.max_entries,
            max_output_globs: collect.max_globs,
            max_output_refused: collect.max_refused,
            max_delivered_files: 10_000,
            max_delivered_bytes: 1 << 30,
            max_inputs: 100,
            max_skill_bytes: 256 << 20,
            host_inputs: Vec::new(),
            network: BTreeSet::new(),
            require: BTreeSet::new(),
            allow_unsandboxed: false,
            allowed_commands: Vec::new(),
            denied_commands: Vec::new(),
            interactive: false,
            workspace_exec: false,
            executor: ExecutorChoice::default(),
            env: BTreeMap::new(),
            limits: LimitSettings::default(),
            sessions: SessionSettings::default(),
            container: ContainerSettings::default(),
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`ExecSettings::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl ExecSettings {
    setters! {
        with_require_skill_loaded require_skill_loaded: bool;
        with_default_timeout default_timeout: u64;
        with_max_timeout max_timeout: u64;
        with_shown_output_bytes shown_output_bytes: usize;
        with_primary_output_bytes primary_output_bytes: usize;
        with_max_inline_bytes max_inline_bytes: usize;
        with_max_output_files max_output_files: u64;
        with_max_output_file_bytes max_output_file_bytes: u64;
        with_max_output_total_bytes max_output_total_bytes: u64;
        with_max_output_depth max_output_depth: u64;
        with_max_output_entries max_output_entries: u64;
        with_max_output_globs max_output_globs: u64;
        with_max_output_refused max_output_refused: u64;
        with_max_delivered_files max_delivered_files: u64;
        with_max_delivered_bytes max_delivered_bytes: u64;
        with_max_inputs max_inputs: usize;
        with_max_skill_bytes max_skill_bytes: u64;
        with_host_inputs host_inputs: Vec<PathBuf>;
        with_network network: BTreeSet<String>;
        with_require require: BTreeSet<Capability>;
        with_allow_unsandboxed allow_unsandboxed: bool;
        with_allowed_commands allowed_commands: Vec<String>;
        with_denied_commands denied_commands: Vec<String>;
        with_env env: BTreeMap<String, BTreeSet<String>>;
        with_limits limits: LimitSettings;
        with_executor executor: ExecutorChoice;
        with_container container: ContainerSettings;
        with_interactive interactive: bool;
        with_workspace_exec workspace_exec: bool;
        with_sessions sessions: SessionSettings;
    }

    /// The settings in a section `[exec]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidExecSettings> {
        let settings: Self =
            table.try_into().map_err(|error| InvalidExecSettings::Invalid(Box::new(error)))?;
        if let Some(path) = settings.host_inputs.iter().find(|path| !path.is_absolute()) {
            return Err(InvalidExecSettings::RelativeFolder { path: path.clone() });
        }
        for (skill, names) in &settings.env {
            if let Some(name) = names.iter().find(|name| !is_posix(name)) {
                let (skill, name) = (skill.clone(), name.clone());
                return Err(InvalidExecSettings::Variable { skill, name });
            }
        }
        let (allowed, denied) = (&settings.allowed_commands, &settings.denied_commands);
        CommandPolicy::with_environment(allowed, denied, |_| None)?;
        let most = u64::from(u32::MAX);
        match settings.limits.stdin_bytes.filter(|value| *value > most) {
            Some(value) => Err(InvalidExecSettings::TooMuch { key: "stdin_bytes", value, most }),
            None => Ok(settings),
        }
    }

    /// Which commands may be run: as the lists say, or, where they are empty, the environment.
    pub(crate) fn command_policy(&self) -> Result<CommandPolicy, CommandError> {
        Ok(CommandPolicy::new(&self.allowed_commands, &self.denied_commands)?)
    }

    /// How much is collected of what a command wrote.
    pub(crate) fn collect_limits(&self) -> CollectLimits {
        let mut limits = CollectLimits::default();
        limits.max_files = self.max_output_files;
        limits.max_file_bytes = self.max_output_file_bytes;
        limits.max_total_bytes = self.max_output_total_bytes;
        limits.max_depth = self.max_output_depth;
        limits.max_entries = self.max_output_entries;
        limits.max_globs = self.max_output_globs;
        limits.max_refused = self.max_output_refused;
        limits
    }

    /// How much is brought to a folder of the user: more than a result may hold.
    pub fn delivery_limits(&self) -> CollectLimits {
        let mut limits = self.collect_limits();
        limits.max_files = self.max_delivered_files;
        limits.max_file_bytes = self.max_delivered_bytes;
        limits.max_total_bytes = self.max_delivered_bytes;
        limits
    }

    /// How much a command may use that asks for this time; and whether that is less than it asked
    /// for.
    pub(crate) fn run_limits(&self, timeout: Option<Duration>) -> (Limits, bool) {
        let most = Duration::from_secs(self.max_timeout);
        let asked = timeout.unwrap_or(Duration::from_secs(self.default_timeout));
        let mut limits = Limits::default();
        limits.wall = asked.min(most);
        let own = &self.limits;
        limits.grace = own.grace_ms.map_or(limits.grace, Duration::from_millis);
        limits.cpu_seconds = own.cpu_seconds.unwrap_or(limits.cpu_seconds);
        limits.memory_bytes = own.memory_bytes.unwrap_or(limits.memory_bytes);
        limits.processes = own.processes.unwrap_or(limits.processes);
        limits.file_bytes = own.file_bytes.unwrap_or(limits.file_bytes);
        limits.open_files = own.open_files.unwrap_or(limits.open_files);
        limits.disk_bytes = own.disk_bytes.unwrap_or(limits.disk_bytes);
        limits.disk_files = own.disk_files.unwrap_or(limits.disk_files);
        limits.output_bytes = own.output_bytes.unwrap_or(limits.output_bytes);
        limits.stdin_bytes = own.stdin_bytes.unwrap_or(limits.stdin_bytes);
        (limits, timeout.is_some() && asked > most)
    }

    /// What a skill is granted.
    pub(crate) fn grants(&self, skill: &CatalogSkill) -> Grants {
        let (is_trusted, bare) = (skill.trust() == Trust::Trusted, skill.name());
        self.grants_of(bare, &skill.qualified_name(), is_trusted)
    }

    fn grants_of(&self, bare: &str, qualified: &str, is_trusted: bool) -> Grants {
        let is_meant = |name: &String| name == qualified || (is_trusted && name == bare);
        let network = match self.network.iter().any(is_meant) {
            true => Network::Host,
            false => Network::None,
        };
        let env = self.env.iter().filter(|(name, _)| is_meant(name));
        let mut require = self.require.clone();
        if network == Network::Host {
            // What the host grants it does not forbid.
            require.remove(&Capability::Net);
        }
        Grants {
            network,
            env: env.flat_map(|(_, names)| names.clone()).collect(),
            require,
            unsandboxed: match self.allow_unsandboxed && is_trusted {
                true => Unsandboxed::Allow,
                false => Unsandboxed::Refuse,
            },
        }
    }
}

/// What a skill is granted.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grants {
    pub(crate) network: Network,
    pub(crate) env: BTreeSet<String>,
    pub(crate) require: BTreeSet<Capability>,
    pub(crate) unsandboxed: Unsandboxed,
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
