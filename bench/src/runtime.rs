//! The engine: gate, loads, commits, many sessions at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use prowess_catalog::{Blocking, Catalog, DirectorySource, MemorySource};
use prowess_format::Digest;
use prowess_runtime::{
    AgentName, Caps, Change, Event, EventKind, LoadedSkill, Revision, Runtime, SessionDelta,
    SessionKey, SessionState, SessionStore, StateDelta, ToolCall, ToolDeclaration, ToolOutcome,
    TurnRequest, tool_fn,
};
use prowess_store::SqliteSessions;
use serde_json::json;

use crate::measure::medians;
use crate::results::Row;

const FILES: [&str; 4] =
    ["scripts/run.py", "scripts/check.sh", "references/api.md", "references/faq.md"];

/// How many calls a throughput is measured with.
const CALLS: usize = 40_000;
const SESSIONS: usize = 1_000;
/// More loads than are measured.
const LOADS: usize = 20_000;

pub(crate) fn run() -> Result<Vec<Row>> {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let folder = tempfile::tempdir()?;
    let mut rows = vec![gate_row(&tokio)?];
    rows.extend(load_rows(&tokio, folder.path())?);
    rows.push(size_row(&tokio, folder.path())?);
    rows.push(commit_row(&tokio, folder.path())?);
    rows.push(sessions_row(&tokio)?);
    Ok(rows)
}

fn micros(seconds: f64) -> String {
    format!("{:.2} µs", seconds * 1e6)
}

/// A tool that does nothing.
fn idle(name: &str) -> Arc<dyn prowess_runtime::Tool> {
    let declaration = ToolDeclaration::new(name, "Does nothing.", json!({"type": "object"}));
    tool_fn(declaration, |_| async { ToolOutcome::text("") })
}

/// 1,000 skills that declare a tool each, 10 of them loaded.
fn gate_row(tokio: &tokio::runtime::Runtime) -> Result<Row> {
    let mut source = MemorySource::new("bench");
    let mut builder_tools = Vec::new();
    for at in 0..1_000 {
        let (name, tool) = (format!("skill-{at:04}"), format!("tool_{at:04}"));
        let text = format!(
            "---\nname: {name}\ndescription: D.\nmetadata:\n  include_tools: {tool}\n---\nBody\n"
        );
        source = source.with_skill(&name, text);
        builder_tools.push(idle(&tool));
    }
    let catalog = Catalog::builder().source(source).build();
    tokio.block_on(catalog.refresh());
    let mut builder = Runtime::builder(catalog);
    for tool in builder_tools {
        builder = builder.tool(tool);
    }
    let runtime = builder.build()?;
    let session = SessionKey::new("bench", "gate", "1")?;
    let snapshot = tokio.block_on(runtime.snapshot(&session, &AgentName::default()));
    let mut state = SessionState::default();
    for at in 0..10 {
        let mut skill = LoadedSkill::new(format!("skill-{at:04}"), Digest::of(b""));
        skill.tools.brings = vec![format!("tool_{at:04}")];
        let change = Change::Load { skill: Box::new(skill), model: None };
        state.apply(&[StateDelta::new(at, at.to_string(), vec![change])], &Caps::default());
    }
    let call = |tool: &str| ToolCall::new("gate", tool, json!({}));
    let (open, shut) = (call("tool_0009"), call("tool_0500"));
    ensure!(runtime.check(&open, &state, &snapshot).is_ok(), "its skill is loaded");
    ensure!(runtime.check(&shut, &state, &snapshot).is_err(), "its skill is not loaded");
    let [open, shut] =
        medians([&|| drop(std::hint::black_box(runtime.check(&open, &state, &snapshot))), &|| {
            drop(std::hint::black_box(runtime.check(&shut, &state, &snapshot)));
        }]);
    let worst = open.max(shut);
    let detail = format!("open {}, shut {}", micros(open), micros(shut));
    Ok(Row::at_most("gate and look-up per call, to 1 µs", worst * 1e6, 1.0, &detail))
}

/// A skill of 3 KB with two scripts and two references.
fn write_skill(root: &Path, name: &str) -> Result<PathBuf> {
    let folder = root.join(name);
    let mut text =
        format!("---\nname: {name}\ndescription: Does the job {name}.\n---\n\n# Job\n\n");
    while text.len() < 3_000 {
        text.push_str("Do the next step with care, and look at the result twice.\n");
    }
    text.truncate(3_000);
    fs::create_dir_all(folder.join("scripts"))?;
    fs::create_dir_all(folder.join("references"))?;
    fs::write(folder.join("SKILL.md"), text)?;
    for file in FILES {
        fs::write(folder.join(file), format!("# {file} of {name}\n").repeat(20))?;
    }
    Ok(folder)
}

fn folder_runtime(tokio: &tokio::runtime::Runtime, root: &Path) -> Result<Runtime> {
    let source = DirectorySource::new(root).with_blocking(Blocking::Here);
    let catalog = Catalog::builder().source(source).build();
    tokio.block_on(catalog.refresh());
    Ok(Runtime::builder(catalog).build()?)
}

/// Loads, each in a session of its own, against reading and hashing what they read.
fn load_rows(tokio: &tokio::runtime::Runtime, folder: &Path) -> Result<Vec<Row>> {
    let root = folder.join("load");
    let skill = write_skill(&root, "job")?;
    let runtime = folder_runtime(tokio, &root)?;
    let agent = AgentName::default();
    // Beginning a session is not part of a load.
    let sessions: Vec<SessionKey> = (0..LOADS)
        .map(|at| SessionKey::new("bench", "load", &at.to_string()))
        .collect::<Result<_, _>>()?;
    for session in &sessions {
        tokio.block_on(runtime.begin_turn(session, &agent, TurnRequest::new()))?;
    }
    let number = std::cell::Cell::new(0);
    let load = || {
        let session = &sessions[number.replace(number.get() + 1)];
        let call = ToolCall::new("1", "load_skill", json!({"skill": "job"}));
        let outcome = tokio.block_on(runtime.dispatch(session, &agent, call));
        assert!(outcome.is_ok_and(|outcome| outcome.code == "loaded"), "it is loaded");
    };
    let hash = |path: &Path| fs::read(path).map(|bytes| Digest::of(&bytes)).ok();
    let [ours, file, files] = medians([
        &load,
        &|| {
            std::hint::black_box(hash(&skill.join("SKILL.md")));
        },
        &|| {
            std::hint::black_box(hash(&skill.join("SKILL.md")));
            for inside in ["", "scripts", "references"] {
                for entry in fs::read_dir(skill.join(inside)).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                        std::hint::black_box(hash(&entry.path()));
                    }
                }
            }
        },
    ]);
    let detail = |other: f64| format!("{} to {}", micros(ours), micros(other));
    Ok(vec![
        Row::at_most("load_skill to reading and hashing SKILL.md", ours / file, 1.5, &detail(file)),
        Row::bound(
            "load_skill to listing, reading and hashing all files of the skill, which pins it",
            ours / files,
            &detail(files),
        ),
    ])
}

fn size_row(tokio: &tokio::runtime::Runtime, folder: &Path) -> Result<Row> {
    let root = folder.join("size");
    for at in 0..10 {
        write_skill(&root, &format!("skill-{at:02}"))?;
    }
    let runtime = folder_runtime(tokio, &root)?;
    let (session, agent) = (SessionKey::new("bench", "size", "1")?, AgentName::default());
    for at in 0..10 {
        let arguments = json!({"skill": format!("skill-{at:02}")});
        let call = ToolCall::new(at.to_string(), "load_skill", arguments);
        let outcome = tokio.block_on(runtime.dispatch(&session, &agent, call))?;
        ensure!(!outcome.is_error, "{}", outcome.content);
    }
    let stored = tokio.block_on(runtime.sessions().get(&session))?.context("no session")?;
    let bytes = serde_json::to_string(&stored.session)?.len();
    let what = "a session with 10 loaded skills, serialized, to 8 KiB";
    Ok(Row::at_most(what, bytes as f64 / 8192.0, 1.0, &format!("{bytes} bytes")))
}

/// A commit with a state, two messages and an event, against a bare transaction of one row.
fn commit_row(tokio: &tokio::runtime::Runtime, folder: &Path) -> Result<Row> {
    let store = SqliteSessions::open(folder.join("commit.db"))?;
    let bare = rusqlite::Connection::open(folder.join("bare.db"))?;
    bare.pragma_update(None, "journal_mode", "WAL")?;
    bare.pragma_update(None, "synchronous", "FULL")?;
    bare.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, state TEXT NOT NULL) STRICT")?;
    bare.execute("INSERT INTO rows VALUES (1, '')", [])?;
    let (session, agent) = (SessionKey::new("bench", "commit", "1")?, AgentName::default());
    let revision = std::sync::atomic::AtomicU64::new(0);
    let commit = || {
        let at = revision.load(std::sync::atomic::Ordering::Relaxed);
        let skill = LoadedSkill::new("skill", Digest::of(b""));
        let change = Change::Load { skill: Box::new(skill), model: None };
        let delta = SessionDelta::new(agent.clone(), Caps::default())
            .with_deltas(vec![StateDelta::new(0, at.to_string(), vec![change])])
            .with_messages(vec![
                prowess_runtime::Message::assistant("calls"),
                prowess_runtime::Message::user("result"),
            ]);
        let events = vec![Event::new(EventKind::SkillLoaded, &agent, 0, "loaded")];
        let committed = tokio.block_on(store.commit(&session, Revision(at), delta, events));
        if let Ok(next) = committed {
            revision.store(next.0, std::sync::atomic::Ordering::Relaxed);
        }
    };
    // Another text each time: SQLite does not write what is the same.
    let number = std::cell::Cell::new(0_u64);
    let [ours, floor] = medians([&commit, &|| {
        number.set(number.get() + 1);
        let text = format!("{:0500}", number.get());
        let update = bare.prepare_cached("UPDATE rows SET state = ?1 WHERE id = 1");
        let _ = update.and_then(|mut update| update.execute([&text]));
    }]);
    let last: String = bare.query_row("SELECT state FROM rows", [], |row| row.get(0))?;
    ensure!(last == format!("{:0500}", number.get()), "the floor did not commit");
    ensure!(revision.into_inner() > 0, "nothing was committed");
    let detail = format!("{} to {}", micros(ours), micros(floor));
    let what = "commit on SQLite to a bare single-row transaction";
    Ok(Row::at_most(what, ours / floor, 1.5, &detail))
}

/// Calls per second of one session, and of 1,000 at once on all cores.
fn sessions_row(tokio: &tokio::runtime::Runtime) -> Result<Row> {
    let text = "---\nname: job\ndescription: D.\n---\nBody\n";
    let source = MemorySource::new("bench").with_skill("job", text);
    let catalog = Catalog::builder().source(source).build();
    tokio.block_on(catalog.refresh());
    let cores = 2;
    let mut ratios = Vec::new();
    let mut best = (0.0, 0.0);
    for round in 0..5 {
        let one = tokio.block_on(throughput(&catalog, 1, CALLS / SESSIONS, round))?;
        let many = tokio.block_on(throughput(&catalog, SESSIONS, CALLS / SESSIONS, round))?;
        ratios.push(many / (one * cores as f64));
        best = (one, many);
    }
    ratios.sort_by(f64::total_cmp);
    let detail = format!("{:.0} calls/s to {:.0} calls/s × {cores} cores", best.1, best.0);
    let what = "1,000 interleaved sessions to 1 session × cores, calls per second";
    Ok(Row::at_least(what, ratios[ratios.len() / 2], 0.8, &detail))
}

/// Calls per second of so many sessions at once. One session takes as many calls as all of them
/// would, in sessions one after the other, so that all are equally long.
async fn throughput(catalog: &Catalog, at_once: usize, calls: usize, round: usize) -> Result<f64> {
    let runtime = Runtime::builder(catalog.clone()).build()?;
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    let per_task = SESSIONS / at_once;
    for task in 0..at_once {
        let runtime = runtime.clone();
        tasks.spawn(async move {
            let agent = AgentName::default();
            for session in 0..per_task {
                let id = format!("{round}-{task}-{session}");
                let session = SessionKey::new("bench", "many", &id)?;
                for at in 0..calls {
                    let (tool, arguments) = match at % 4 {
                        0 => ("load_skill", json!({"skill": "job"})),
                        3 => ("unload_skill", json!({"skill": "job"})),
                        _ => ("list_loaded_skills", json!({})),
                    };
                    let call = ToolCall::new(at.to_string(), tool, arguments);
                    let outcome = runtime.dispatch(&session, &agent, call).await?;
                    ensure!(!outcome.is_error, "{}", outcome.content);
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(CALLS as f64 / began.elapsed().as_secs_f64())
}
