//! What the engine does between two calls of a model, and how many runs it carries at once.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use prowess_agent::{
    Agent, ChatModel, ModelFuture, ModelRequest, ModelResponse, RunLimits, RunRequest, Runner,
    SkillsMiddleware,
};
use prowess_catalog::{Blocking, Catalog, DirectorySource};
use prowess_runtime::{Message, Tool, ToolCall, ToolDeclaration, ToolOutcome, tool_fn};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats};
use tokio::sync::Barrier;

use crate::discovery::project;
use crate::results::Row;

const SKILLS: usize = 1_000;
const LOADED: usize = 10;
/// So many messages are few, and so many are many.
const FEW: usize = 200;
const MANY: usize = 2_000;
/// So many calls around each count.
const WINDOW: usize = 20;
const RUNS: usize = 200;

pub(crate) fn run() -> Result<Vec<Row>> {
    let root = project(SKILLS)?.join(".claude/skills");
    let mut rows = per_call(&root)?;
    rows.extend(at_once()?);
    Ok(rows)
}

/// What happened between an answer and the next question.
#[derive(Clone, Copy)]
struct Gap {
    messages: usize,
    seconds: f64,
    bytes: f64,
}

/// Loads skills, then calls a tool until there are many messages.
struct Busy {
    answered: Mutex<Option<(Instant, Stats)>>,
    gaps: Mutex<Vec<Gap>>,
    asked: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChatModel for Busy {
    fn name(&self) -> &'static str {
        "busy"
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let now = (Instant::now(), INSTRUMENTED_SYSTEM.stats());
        if let Some((instant, stats)) = lock(&self.answered).take() {
            lock(&self.gaps).push(Gap {
                messages: request.messages.len(),
                seconds: (now.0 - instant).as_secs_f64(),
                bytes: (now.1 - stats).bytes_allocated as f64,
            });
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let message = match number {
            _ if request.messages.len() >= MANY + WINDOW => Message::assistant("Done."),
            ..LOADED => {
                let skill = json!({"skill": format!("skill-{number:05}")});
                Message::calling([ToolCall::new(format!("c{number}"), "load_skill", skill)])
            }
            _ => Message::calling([ToolCall::new(format!("c{number}"), "work", json!({}))]),
        };
        let response = ModelResponse::new(message);
        *lock(&self.answered) = Some((Instant::now(), INSTRUMENTED_SYSTEM.stats()));
        Box::pin(std::future::ready(Ok(response)))
    }
}

fn work(name: &str, answer: impl Fn() -> ToolOutcome + Send + Sync + 'static) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new(name, "Does nothing.", json!({"type": "object"}));
    tool_fn(declaration, move |_: Value| std::future::ready(answer()))
}

fn per_call(root: &Path) -> Result<Vec<Row>> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let source = DirectorySource::new(root).with_blocking(Blocking::Here);
    let catalog = Catalog::builder().source(source).build();
    let model = Arc::new(Busy {
        answered: Mutex::default(),
        gaps: Mutex::default(),
        asked: AtomicUsize::new(0),
    });
    let agent = Agent::builder(model.clone())
        .middleware(SkillsMiddleware::new(catalog))
        .tool(work("work", || ToolOutcome::text("ok")))
        .limits(RunLimits::default().with_max_steps(usize::MAX))
        .build()?;
    let session: prowess_runtime::SessionKey = "bench".parse()?;
    tokio.block_on(agent.run(RunRequest::new(session.clone(), "Go.")))?;
    let state = tokio.block_on(agent.runtime().state(&session, agent.name()))?;
    ensure!(state.loaded.len() == LOADED, "{} skills are loaded", state.loaded.len());
    let gaps = lock(&model.gaps).clone();
    let around = |count: usize| -> Vec<Gap> {
        let near = |gap: &&Gap| gap.messages.abs_diff(count) <= WINDOW;
        gaps.iter().filter(near).copied().collect()
    };
    let (few, many) = (around(FEW), around(MANY));
    ensure!(few.len() >= WINDOW && many.len() >= WINDOW / 2, "too few calls");
    let bytes = |gaps: &[Gap]| gaps.iter().map(|gap| gap.bytes).sum::<f64>() / gaps.len() as f64;
    let detail = format!(
        "{:.0} to {:.0} bytes per call, {:.0} to {:.0} µs",
        bytes(&many),
        bytes(&few),
        median(&many) * 1e6,
        median(&few) * 1e6,
    );
    let what = "bytes allocated per model call at 2,000 messages, to those at 200";
    let mut rows = vec![Row::at_most(what, bytes(&many) / bytes(&few), 1.2, &detail)];
    let what = "engine work per model call, 1,000 skills, 10 loaded: deepagents' time to ours";
    rows.push(match peer(root) {
        Ok(theirs) => {
            let ours = median(&few);
            let detail = format!("{:.2} ms to {:.1} µs, at 200 messages", theirs * 1e3, ours * 1e6);
            Row::at_least(what, theirs / ours, 50.0, &detail)
        }
        Err(error) => Row::not_measured(what, "≥ 50×", &format!("{error:#}").replace('\n', " ")),
    });
    Ok(rows)
}

fn median(gaps: &[Gap]) -> f64 {
    let mut seconds: Vec<f64> = gaps.iter().map(|gap| gap.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The seconds that deepagents takes between two calls of a fake model.
fn peer(root: &Path) -> Result<f64> {
    let python =
        std::env::var("PROWESS_PEERS_DEEPAGENTS").context("PROWESS_PEERS_DEEPAGENTS is not set")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python/agent.py");
    let output = Command::new(python).arg(script).arg(root).arg(FEW.to_string()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Calls a tool, and is done.
struct Once;

impl ChatModel for Once {
    fn name(&self) -> &'static str {
        "once"
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let message = match request.messages.len() {
            1 => Message::calling([ToolCall::new("c", "wait", json!({}))]),
            _ => Message::assistant("Done."),
        };
        Box::pin(std::future::ready(Ok(ModelResponse::new(message))))
    }
}

/// How long a tool waits.
const WAIT: Duration = Duration::from_millis(250);

fn at_once() -> Result<Vec<Row>> {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let timed = |runs: usize| -> Result<(f64, f64)> {
        // Everybody is inside a tool when the memory is looked at.
        let barrier = Arc::new(Barrier::new(runs + 1));
        let inside = Arc::clone(&barrier);
        let declaration = ToolDeclaration::new("wait", "Waits.", json!({"type": "object"}));
        let tool = tool_fn(declaration, move |_| {
            let barrier = Arc::clone(&inside);
            async move {
                tokio::time::sleep(WAIT).await;
                barrier.wait().await;
                barrier.wait().await;
                ToolOutcome::text("ok")
            }
        });
        let runner = Runner::new("bench", Agent::builder(Arc::new(Once)).tool(tool).build()?);
        let live = || {
            let stats = INSTRUMENTED_SYSTEM.stats();
            stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
        };
        let before = live();
        let begin = Instant::now();
        tokio.block_on(async {
            let spawn = |number: usize| {
                let runner = runner.clone();
                tokio::spawn(async move { runner.run("u", &number.to_string(), "Go.").await })
            };
            let all: Vec<_> = (0..runs).map(spawn).collect();
            barrier.wait().await;
            let (seconds, open) = (begin.elapsed().as_secs_f64(), live() - before);
            barrier.wait().await;
            for run in all {
                run.await??;
            }
            Ok((seconds, open))
        })
    };
    timed(1)?;
    let (one, _) = timed(1)?;
    let (half, some) = timed(RUNS / 2)?;
    let (all, most) = timed(RUNS)?;
    let detail =
        format!("{:.0} to {:.0} ms, the tool waits {} ms", all * 1e3, one * 1e3, WAIT.as_millis());
    let what = "200 runs at once, each inside a tool: time to that of one run";
    let memory = format!(
        "{:.0} to {:.0} bytes per run ({:.0} ms)",
        most / RUNS as f64,
        some / (RUNS / 2) as f64,
        half * 1e3
    );
    Ok(vec![
        Row::at_most(what, all / one, 1.5, &detail),
        Row::at_most(
            "memory of 200 open runs, to twice that of 100",
            most / (2.0 * some),
            1.1,
            &memory,
        ),
    ])
}
