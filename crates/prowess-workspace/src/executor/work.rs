//! What all executors do around a run.

use std::task::Poll;

use tokio_util::sync::CancellationToken;

use super::live::Stop;
use super::selftest::Verdict;
use super::supervised::Supervised;
use super::{
    Capability, Enforcement, ExecError, Isolation, Network, Protection, Run, RunOutcome, Stdin,
    Tier, Unsandboxed,
};

/// What is enforced for a run, if it may take place.
pub(crate) fn admit(run: &Run<'_>, verdict: &Verdict) -> Result<Isolation, ExecError> {
    if let Stdin::Bytes(bytes) = &run.stdin {
        let (size_bytes, most) = (bytes.len() as u64, run.limits.stdin_bytes);
        if size_bytes > most {
            return Err(ExecError::Stdin { size_bytes, most });
        }
    }
    if verdict.isolation.tier == Tier::T0 && run.unsandboxed == Unsandboxed::Refuse {
        return Err(ExecError::NoSandbox { cause: verdict.why_none() });
    }
    let mut isolation = verdict.isolation.clone();
    if run.network == Network::Host {
        let granted = Protection::new(Enforcement::Granted, "granted by the host");
        isolation.protections.insert(Capability::Net, granted);
    }
    let missing = isolation.missing(run.require.iter().copied());
    match missing.is_empty() {
        true => Ok(isolation),
        false => Err(ExecError::NotEnforced { missing }),
    }
}

/// What the work comes to. If the token is cancelled meanwhile, it is asked to stop.
pub(crate) async fn stoppable<T>(
    work: impl Future<Output = T>,
    token: Option<CancellationToken>,
    stop: Option<Stop>,
) -> T {
    let asked = async {
        if let (Some(token), Some(stop)) = (token, stop) {
            token.cancelled().await;
            stop.ask();
        }
        std::future::pending().await
    };
    first(work, asked).await
}

/// What the work comes to, while something else is done beside it that never ends.
async fn first<T>(work: impl Future<Output = T>, beside: impl Future<Output = T>) -> T {
    let (mut work, mut beside) = (std::pin::pin!(work), std::pin::pin!(beside));
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => beside.as_mut().poll(context),
        done => done,
    })
    .await
}

/// What came of a run.
pub(crate) fn outcome(supervised: Supervised, isolation: Isolation) -> RunOutcome {
    let (ended, duration, [stdout, stderr]) = supervised;
    RunOutcome {
        exit_code: ended.exit_code,
        timed_out: ended.timed_out,
        duration,
        stdout,
        stderr,
        isolation,
        limits_hit: ended.limits_hit,
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecError> + Send + 'static,
) -> Result<T, ExecError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ExecError::Lost { cause: error.to_string() }))
}

pub(crate) fn io(doing: &'static str) -> impl Fn(std::io::Error) -> ExecError {
    move |cause| ExecError::Io { doing, cause }
}
