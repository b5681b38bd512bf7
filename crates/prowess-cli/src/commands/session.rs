//! `prowess session`

use std::io::{Read, Write};
use std::path::PathBuf;

use anstream::stdout;
use anyhow::Context;
use prowess_runtime::interop::{self, Imported};
use prowess_runtime::{
    AgentName, Change, Event, LoadedSkill, Message, SessionKey, SessionState, StoredSession,
};
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::cli::{CatalogArgs, SessionCommand, SessionImportArgs, SessionShowArgs};
use crate::engine::LocalEngine;
use crate::finder::{Form, complain};
use crate::report::{self, counted};
use crate::terminal::safe_line;

/// So many events are shown.
const EVENTS_SHOWN: usize = 20;

pub(crate) fn run(command: &SessionCommand) -> anyhow::Result<Outcome> {
    match command {
        SessionCommand::List { json } => list(*json),
        SessionCommand::Show(arguments) => show(arguments),
        SessionCommand::Import(arguments) => import(arguments),
        SessionCommand::End { session, json } => end(session, *json),
    }
}

/// No skills are needed.
fn without_skills() -> CatalogArgs {
    CatalogArgs { sources: Vec::new(), no_default_roots: true }
}

fn list(json: bool) -> anyhow::Result<Outcome> {
    let engine = LocalEngine::open(&without_skills(), None)?;
    let sessions = engine.wait(engine.runtime.sessions().list())?;
    if json {
        report::print_json(&json!({"sessions": sessions}))?;
        return Ok(Outcome::Ok);
    }
    if sessions.is_empty() {
        anstream::eprintln!("No sessions. `prowess call load_skill …` makes one.");
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    let keys: Vec<String> =
        sessions.iter().map(|session| safe_line(&session.key.to_string())).collect();
    let width = keys.iter().map(|key| key.chars().count()).max().unwrap_or_default().max(7);
    writeln!(out, "{:width$}  {:>8}  LAST USED", "SESSION", "REVISION")?;
    for (session, key) in sessions.iter().zip(&keys) {
        let updated = session.updated.strftime("%Y-%m-%d %H:%M:%S UTC");
        writeln!(out, "{key:width$}  {:>8}  {updated}", session.revision.0)?;
    }
    Ok(Outcome::Ok)
}

fn show(arguments: &SessionShowArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.json);
    let engine = LocalEngine::open(&arguments.catalog, None)?;
    let key = &arguments.session;
    let Some(stored) = engine.wait(engine.runtime.sessions().get(key))? else {
        return no_session(key, form);
    };
    let wanted = |agent: &&AgentName| arguments.agent.as_ref().is_none_or(|it| it == *agent);
    let agents: Vec<&AgentName> = stored.session.agents.keys().filter(wanted).collect();
    if let (Some(agent), true) = (&arguments.agent, agents.is_empty()) {
        let message = format!("session {key} has no agent '{agent}'");
        complain("unknown_agent", &message, form)?;
        return Ok(Outcome::Findings);
    }
    if let Some(system) = arguments.format {
        let agent = arguments.agent.clone().unwrap_or_default();
        let state = stored.session.state(&agent);
        let snapshot = engine.wait(engine.runtime.snapshot(key, &agent));
        report::print_json(&interop::export(system, &state, &agent, &snapshot))?;
        return Ok(Outcome::Ok);
    }
    if arguments.json {
        return show_json(&engine, key, &stored, &agents);
    }
    let mut out = stdout().lock();
    writeln!(out, "session {} at revision {}", safe_line(&key.to_string()), stored.revision.0)?;
    for agent in agents {
        show_agent(&mut out, &engine, key, agent, &stored.session.state(agent))?;
    }
    let events = all_events(&engine, key)?;
    let hidden = events.len().saturating_sub(EVENTS_SHOWN);
    writeln!(out, "\n{}", counted(events.len(), "event"))?;
    if hidden > 0 {
        writeln!(out, "  … {hidden} earlier ones; --json shows all")?;
    }
    for event in &events[hidden..] {
        let time = event.time.strftime("%H:%M:%S");
        writeln!(out, "  {time} {}", safe_line(&event.message))?;
    }
    Ok(Outcome::Ok)
}

fn show_agent(
    out: &mut impl Write,
    engine: &LocalEngine,
    key: &SessionKey,
    agent: &AgentName,
    state: &SessionState,
) -> anyhow::Result<()> {
    let messages = engine.wait(engine.runtime.sessions().messages(key, agent))?;
    let (turn, count) = (state.turn, counted(messages.len(), "message"));
    writeln!(out, "\nagent {}: turn {turn}, {count}", safe_line(agent.as_str()))?;
    if let Some(model) = &state.model {
        writeln!(out, "  model {} for skill {}", safe_line(&model.model), safe_line(&model.skill))?;
    }
    if state.loaded.is_empty() {
        writeln!(out, "  no skills are loaded")?;
    }
    for skill in &state.loaded {
        writeln!(out, "  {}", describe(skill))?;
    }
    Ok(())
}

fn describe(skill: &LoadedSkill) -> String {
    let mut text = safe_line(&skill.name);
    if let Some(version) = &skill.version {
        text.push_str(&format!(" {}", safe_line(version)));
    }
    let digest = skill.digest.hex();
    text.push_str(&format!(" ({}, loaded {} time(s)", &digest[..12], skill.load_count));
    if skill.pinned {
        text.push_str(", pinned");
    }
    let resources = skill.resources.len();
    if resources > 0 {
        let count = usize::try_from(resources).unwrap_or(usize::MAX);
        text.push_str(&format!(", {}", counted(count, "resource")));
    }
    text.push(')');
    if !skill.docs.is_empty() {
        let docs: Vec<String> = skill.docs.paths().into_iter().map(safe_line).collect();
        text.push_str(&format!(" docs: {}", docs.join(", ")));
    }
    text
}

fn show_json(
    engine: &LocalEngine,
    key: &SessionKey,
    stored: &StoredSession,
    agents: &[&AgentName],
) -> anyhow::Result<Outcome> {
    let mut shown = Map::new();
    for agent in agents {
        let messages: Vec<Message> = engine.wait(engine.runtime.sessions().messages(key, agent))?;
        let state = stored.session.state(agent);
        shown.insert(agent.to_string(), json!({"state": state, "messages": messages}));
    }
    report::print_json(&json!({
        "session": key,
        "revision": stored.revision,
        "agents": shown,
        "events": all_events(engine, key)?,
    }))?;
    Ok(Outcome::Ok)
}

fn all_events(engine: &LocalEngine, key: &SessionKey) -> anyhow::Result<Vec<Event>> {
    Ok(engine.wait(engine.runtime.sessions().events(key, 0, usize::MAX))?)
}

fn no_session(key: &SessionKey, form: Form) -> anyhow::Result<Outcome> {
    let message = format!("there is no session {key}; `prowess session list` shows them");
    complain("unknown_session", &message, form)?;
    Ok(Outcome::Findings)
}

fn import(arguments: &SessionImportArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.json);
    let text = read(&arguments.file)?;
    let value: Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("{} is no JSON: {error}", arguments.file.display());
            complain("invalid_json", &message, form)?;
            return Ok(Outcome::Usage);
        }
    };
    let engine = LocalEngine::open(&arguments.catalog, None)?;
    let (session, agent) = (&arguments.place.session, &arguments.place.agent);
    let snapshot = engine.wait(engine.runtime.snapshot(session, agent));
    let imported = match interop::import(arguments.format, &value, agent, &snapshot) {
        Ok(imported) => imported,
        Err(error) => {
            complain("invalid_state", &error.to_string(), form)?;
            return Ok(Outcome::Findings);
        }
    };
    let Imported { state, problems, .. } = imported;
    let loaded: Vec<String> = state.loaded_names().into_iter().map(str::to_owned).collect();
    let adopt = vec![Change::Adopt { state: Box::new(state) }];
    let revision = engine.wait(engine.runtime.change(session, agent, adopt))?;
    if arguments.json {
        report::print_json(&json!({
            "session": session, "agent": agent, "revision": revision,
            "loaded": loaded, "problems": problems,
        }))?;
    } else {
        anstream::println!(
            "{} carried over into session {}",
            counted(loaded.len(), "skill"),
            safe_line(&session.to_string())
        );
        for problem in &problems {
            anstream::eprintln!("Warning: {}", safe_line(problem));
        }
    }
    Ok(if problems.is_empty() { Outcome::Ok } else { Outcome::Findings })
}

fn read(file: &PathBuf) -> anyhow::Result<String> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn end(key: &SessionKey, json: bool) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(json);
    let engine = LocalEngine::open(&without_skills(), None)?;
    if !engine.wait(engine.runtime.sessions().delete(key))? {
        return no_session(key, form);
    }
    // The session is gone, even if what it needed cannot be told from what others need.
    let (removed, problem) = match engine.wait(engine.runtime.collect_garbage()) {
        Ok(removed) => (removed, None),
        Err(error) => (0, Some(format!("its content is kept: {error}"))),
    };
    match form {
        Form::Json => {
            let problems: Vec<&String> = problem.iter().collect();
            let ended = json!({"ended": key, "content_removed": removed, "problems": problems});
            report::print_json(&ended)?;
        }
        Form::Text => anstream::println!("Session {} ended.", safe_line(&key.to_string())),
    }
    if let Some(problem) = &problem {
        anstream::eprintln!("Warning: {}", safe_line(problem));
    }
    Ok(Outcome::Ok)
}
