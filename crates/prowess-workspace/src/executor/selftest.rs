//! What a sandbox enforces, found out by trying to break out of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ground::Ground;
use super::live::Live;
use super::local::LocalExecutor;
use super::supervised::{Supervised, Waiting, supervise};
use super::work::io;
use super::{
    Capability, Command, Enforcement, ExecError, Isolation, LimitHit, Limits, Protection, Run, Tier,
};
use crate::path::WorkspacePath;
use crate::supervisor::{ASKED, CANARY, Finding, Groups, Hoard, Order};

/// What was found out.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// What runs are given.
    pub(crate) isolation: Isolation,
    /// Which limits hold for all processes of a run together.
    pub(crate) groups: Groups,
    pub(crate) report: SandboxReport,
}

impl Verdict {
    pub(crate) fn why_none(&self) -> String {
        let tried = self.report.tried.iter();
        let causes = tried.filter_map(|it| Some(format!("{:?}: {}", it.tier, it.cause.as_ref()?)));
        match causes.collect::<Vec<_>>().join("; ") {
            none if none.is_empty() => "none was to be tried".to_owned(),
            causes => causes,
        }
    }
}

/// What every sandbox that was tried does and does not enforce.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SandboxReport {
    /// The one that is used.
    pub isolation: Isolation,
    /// All that were tried, the best one first.
    pub tried: Vec<TriedTier>,
}

/// A sandbox that was tried.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TriedTier {
    /// Which.
    pub tier: Tier,
    /// What it enforces, if it could be set up.
    pub isolation: Option<Isolation>,
    /// Why it is not used.
    pub cause: Option<String>,
}

/// What a sandbox must enforce to be used at all.
const ESSENTIAL: [Capability; 6] = [
    Capability::FsRead,
    Capability::FsWrite,
    Capability::Net,
    Capability::UnixSockets,
    Capability::Env,
    Capability::Kill,
];

/// A sandbox that can be tried.
pub(crate) trait Cage {
    fn tier(&self) -> Tier;

    /// The words that start the supervisor inside.
    fn supervisor(&self) -> Vec<String>;

    /// Sockets of this machine that nobody inside may reach, besides those of the test.
    fn sockets(&self) -> Vec<PathBuf>;

    fn order(&self, run: &Run<'_>) -> Result<Order, ExecError>;

    fn carry_out(&self, run: &Run<'_>, order: &Order) -> Result<Supervised, ExecError>;
}

/// A sandbox on this machine.
struct Local<'a> {
    executor: &'a LocalExecutor,
    supervisor: &'a Path,
    tier: Tier,
}

impl Cage for Local<'_> {
    fn tier(&self) -> Tier {
        self.tier
    }

    fn supervisor(&self) -> Vec<String> {
        let path = match self.tier {
            Tier::T2 | Tier::T3 => PathBuf::from(crate::supervisor::INSIDE),
            Tier::T0 | Tier::T1 => self.supervisor.to_owned(),
        };
        vec![path.to_string_lossy().into_owned()]
    }

    fn sockets(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn order(&self, run: &Run<'_>) -> Result<Order, ExecError> {
        let mut order = self.executor.order(run, self.tier, Groups::default())?;
        order.readable.push(self.supervisor.to_owned());
        Ok(order)
    }

    fn carry_out(&self, _: &Run<'_>, order: &Order) -> Result<Supervised, ExecError> {
        let waiting = Waiting::start(self.supervisor, order.sandbox())?;
        supervise(waiting, order, Live::default(), None, None)
    }
}

/// Tries a container. Blocks.
#[cfg(feature = "container")]
pub(crate) fn judge_one(cage: &impl Cage) -> Result<Verdict, ExecError> {
    let (isolation, groups) = test(cage)?;
    if let Some(cause) = not_enough(&isolation) {
        return Err(ExecError::NoSandbox { cause });
    }
    let tried =
        vec![TriedTier { tier: cage.tier(), isolation: Some(isolation.clone()), cause: None }];
    let report = SandboxReport { isolation: isolation.clone(), tried };
    Ok(Verdict { isolation, groups, report })
}

/// Why a sandbox cannot be used at all, if it cannot.
fn not_enough(isolation: &Isolation) -> Option<String> {
    let missing = isolation.missing(ESSENTIAL);
    let names: Vec<&str> = missing.iter().map(|it| it.as_str()).collect();
    (!missing.is_empty()).then(|| format!("it does not enforce {}", names.join(", ")))
}

/// Tries the sandboxes, the best one first, until one holds. Blocks.
pub(crate) fn judge(executor: &LocalExecutor) -> Result<Verdict, ExecError> {
    let supervisor = &executor.supervisor()?;
    let mut tried = Vec::new();
    for tier in executor.tiers() {
        match test(&Local { executor, supervisor, tier }) {
            Ok((isolation, groups)) => {
                let cause = not_enough(&isolation);
                let is_used = cause.is_none();
                tried.push(TriedTier { tier, isolation: Some(isolation.clone()), cause });
                if is_used {
                    let report = SandboxReport { isolation: isolation.clone(), tried };
                    return Ok(Verdict { isolation, groups, report });
                }
            }
            Err(error) => {
                tried.push(TriedTier { tier, isolation: None, cause: Some(error.to_string()) });
            }
        }
    }
    // Nothing but what needs no right at all.
    let (isolation, groups) = test(&Local { executor, supervisor, tier: Tier::T0 })?;
    tried.push(TriedTier { tier: Tier::T0, isolation: Some(isolation.clone()), cause: None });
    let report = SandboxReport { isolation: isolation.clone(), tried };
    Ok(Verdict { isolation, groups, report })
}

/// How long the attempts may take.
const TEST_TIME: Duration = Duration::from_secs(60);
const TEST_MEMORY: u64 = 64 << 20;
const TEST_PROCESSES: u64 = 32;
/// So many threads are begun unless something stops it. A limit that a user's processes share gives
/// way by as many as have ended meanwhile.
const TEST_THREADS: u64 = 16 * TEST_PROCESSES;

/// Tries to break out of one sandbox.
fn test(cage: &impl Cage) -> Result<(Isolation, Groups), ExecError> {
    let tier = cage.tier();
    let ground = Ground::new().map_err(io("preparing the self-test"))?;
    let workspace = ground.workspace();
    let limits = Limits {
        wall: TEST_TIME,
        processes: TEST_PROCESSES,
        memory_bytes: TEST_MEMORY,
        ..Limits::default()
    };
    let run = |words: [&str; 2], limits: Limits| -> Result<Supervised, ExecError> {
        let words = [ASKED, CANARY].into_iter().chain(words).map(str::to_owned);
        let words = cage.supervisor().into_iter().chain(words).collect();
        let mut run = Run::new(&workspace, Command::Program(words));
        run.limits = limits;
        run.run_dir = WorkspacePath::parse("runs").unwrap_or_default();
        cage.carry_out(&run, &cage.order(&run)?)
    };
    let order = cage.order(&Run::new(&workspace, Command::Shell(String::new())))?;
    let attempts = ground.attempts(order, TEST_THREADS, cage.sockets());
    let attempts = attempts.map_err(io("preparing the self-test"))?;
    let text = serde_json::to_string(&attempts).map_err(|it| io("asking the canary")(it.into()))?;
    // The memory for its threads is not what is tested here.
    let roomy = Limits { memory_bytes: 1 << 30, ..limits.clone() };
    let attempted = run(["attempt", &text], roomy)?;
    let groups = attempted.0.groups;
    let finding: Finding = answer(&attempted)?;
    let was_reached = ground.was_reached();
    if !finding.left_one {
        return Err(unable("leave a process behind for a moment"));
    }
    let is_left = ground.is_held();
    let hoarded = run(["hoard", &TEST_MEMORY.to_string()], limits)?;
    let hoard: Hoard = match answer(&hoarded) {
        // Whoever keeps the books may be the one that is killed.
        Err(_) if hoarded.0.limits_hit.contains(&LimitHit::Memory) => Hoard::default(),
        Ok(Hoard { is_able: false, .. }) => return Err(unable("take any memory")),
        answered => answered?,
    };
    let protections = protections(tier, &finding, hoard, was_reached, is_left, groups);
    Ok((Isolation::new(tier, protections), groups))
}

/// An attempt that does not even begin shows nothing.
fn unable(what: &str) -> ExecError {
    ExecError::Start { cause: format!("the canary could not {what}, so that nothing is known") }
}

fn answer<T: DeserializeOwned>(supervised: &Supervised) -> Result<T, ExecError> {
    let (ended, _, [stdout, stderr]) = supervised;
    serde_json::from_slice(&stdout.head).map_err(|error| ExecError::Start {
        cause: format!(
            "the canary did not answer ({error}; exit code {}) {}",
            ended.exit_code,
            stderr.text(1000)
        ),
    })
}

/// What the findings mean.
fn protections(
    tier: Tier,
    finding: &Finding,
    hoard: Hoard,
    was_reached: bool,
    is_left: bool,
    groups: Groups,
) -> BTreeMap<Capability, Protection> {
    let by = |namespaces: &'static str, rules: &'static str| match tier {
        Tier::T0 => "nothing",
        Tier::T1 => rules,
        Tier::T2 | Tier::T3 => namespaces,
    };
    let judged = |has_failed: bool, by: &str| match has_failed {
        true if by == "nothing" => Protection::new(Enforcement::None, by),
        true => Protection::new(Enforcement::None, format!("an attempt succeeded against {by}")),
        false => Protection::new(Enforcement::Enforced, by),
    };
    let mounts = if tier == Tier::T3 {
        "the root of a container, Landlock"
    } else {
        "a root of its own, Landlock"
    };
    let metadata = match (finding.changed, finding.saw) {
        (false, true) => Protection::new(
            Enforcement::Partial,
            "seccomp refuses changes; names, sizes and times can be seen",
        ),
        (changed, _) => judged(changed, by(mounts, "seccomp")),
    };
    let has_net = finding.connected || was_reached || !finding.odd_sockets.is_empty();
    let own_limit = match tier {
        _ if groups.pids => Some("a cgroup"),
        Tier::T3 => Some("a cgroup"),
        Tier::T2 if !rustix::process::geteuid().is_root() => {
            Some("a limit for the user in its namespace")
        }
        _ => None,
    };
    let pids = match own_limit {
        Some(by) => judged(finding.threads > TEST_PROCESSES, by),
        None if finding.threads == TEST_THREADS => Protection::new(Enforcement::None, "nothing"),
        None => Protection::new(Enforcement::Partial, "a limit for the user, shared by all runs"),
    };
    let memory = match (hoard.together, hoard.alone) {
        (true, true) => Protection::new(Enforcement::None, "nothing"),
        (true, false) => Protection::new(
            Enforcement::Partial,
            match hoard.shared {
                true => "a limit for each process; none for memory that processes share",
                false => "a limit for each process",
            },
        ),
        (false, _) => Protection::new(Enforcement::Enforced, "a cgroup"),
    };
    let ending = by("a namespace of processes", "the supervisor, which all processes fall to");
    let ending =
        if tier == Tier::T0 { "the supervisor, which all processes fall to" } else { ending };
    let foreign = match tier {
        Tier::T0 => "an empty environment",
        _ => by("an empty environment, a namespace of processes", "an empty environment, Landlock"),
    };
    BTreeMap::from([
        (Capability::FsRead, judged(finding.read, by(mounts, "Landlock"))),
        (Capability::FsWrite, judged(finding.wrote, by(mounts, "Landlock"))),
        (Capability::Metadata, metadata),
        (
            Capability::Net,
            judged(has_net, by("a network of its own, seccomp", "seccomp, Landlock")),
        ),
        (Capability::UnixSockets, judged(finding.connected_here, by(mounts, "seccomp"))),
        (Capability::Env, judged(!finding.variables.is_empty(), foreign)),
        (Capability::Pids, pids),
        (Capability::Memory, memory),
        (Capability::Kill, judged(is_left, ending)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit of a run's own holds exactly; one that all processes of a user share gives way as
    /// others end, and is none only if nothing stops the canary.
    #[test]
    fn how_many_threads_could_be_begun_decides_on_processes() {
        let own = |pids| Groups { pids, ..Groups::default() };
        let table = [
            (Tier::T1, true, TEST_PROCESSES, Enforcement::Enforced),
            (Tier::T1, true, TEST_PROCESSES + 1, Enforcement::None),
            (Tier::T3, false, TEST_PROCESSES, Enforcement::Enforced),
            (Tier::T3, false, TEST_PROCESSES + 1, Enforcement::None),
            (Tier::T1, false, TEST_PROCESSES, Enforcement::Partial),
            (Tier::T1, false, TEST_THREADS - 1, Enforcement::Partial),
            (Tier::T1, false, TEST_THREADS, Enforcement::None),
            (Tier::T0, false, TEST_THREADS, Enforcement::None),
        ];
        for (tier, pids, threads, expected) in table {
            let finding = Finding { threads, ..Finding::default() };
            let found = protections(tier, &finding, Hoard::default(), false, false, own(pids));
            let enforced = found[&Capability::Pids].state;
            assert_eq!(enforced, expected, "{tier:?} {pids} {threads}");
        }
    }
}
