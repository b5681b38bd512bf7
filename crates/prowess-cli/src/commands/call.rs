//! `prowess call`

use std::io::{IsTerminal, Read, Write};

use prowess_runtime::{RuntimeError, ToolCall, ToolOutcome, TurnRequest};
use prowess_workspace::Tier;
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::CallArgs;
use crate::engine::{LocalEngine, Parts};
use crate::finder::{Form, complain};
use crate::report;
use crate::terminal::{safe, safe_line};
use crate::toolkits::Ready;

pub(crate) fn run(arguments: &CallArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.json);
    let text = match arguments.arguments.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        text => text.to_owned(),
    };
    let parsed = match serde_json::from_str::<Value>(&text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = format!("the arguments are no JSON: {error}");
            complain("invalid_json", &message, form)?;
            return Ok(Outcome::Usage);
        }
    };
    let mut parts = Parts::open(&arguments.catalog, Some(&arguments.dialect))?;
    parts.toolkits.run_by(&arguments.executor, Tier::T2, Ready::No);
    let engine = LocalEngine::for_call(parts)?;
    let call = ToolCall::new(uuid::Uuid::now_v7().to_string(), &arguments.tool, parsed);
    let id = call.id.clone();
    let outcome = match engine.wait(call_tool(&engine, arguments, call)) {
        Ok(outcome) => outcome,
        Err(error) => {
            complain(error.code(), &error.to_string(), form)?;
            return Ok(Outcome::Findings);
        }
    };
    print(&outcome, &id, form)?;
    if let Some(session) = still_running(&outcome) {
        anstream::eprintln!(
            "Note: the command is ended now: session {} was this program's",
            safe_line(session)
        );
    }
    Ok(if outcome.is_error { Outcome::Findings } else { Outcome::Ok })
}

async fn call_tool(
    engine: &LocalEngine,
    arguments: &CallArgs,
    call: ToolCall,
) -> Result<ToolOutcome, RuntimeError> {
    let (session, agent) = (&arguments.place.session, &arguments.place.agent);
    if arguments.new_turn {
        engine.runtime.begin_turn(session, agent, TurnRequest::new()).await?;
    }
    engine.runtime.dispatch(session, agent, call).await
}

/// The session of a command that has not ended, and ends with this program.
fn still_running(outcome: &ToolOutcome) -> Option<&str> {
    let is_running = outcome.data["status"] == "running";
    outcome.data["session_id"].as_str().filter(|_| is_running && outcome.code == "running")
}

fn print(outcome: &ToolOutcome, id: &str, form: Form) -> anyhow::Result<()> {
    if form == Form::Json {
        let mut value = serde_json::to_value(outcome)?;
        value["call_id"] = json!(id);
        return report::print_json(&value);
    }
    let mut out = std::io::stdout().lock();
    match std::io::stdout().is_terminal() {
        true => out.write_all(safe(&outcome.content).as_bytes())?,
        false => out.write_all(outcome.content.as_bytes())?,
    }
    if !outcome.content.ends_with('\n') {
        writeln!(out)?;
    }
    if let Some(hint) = &outcome.hint {
        anstream::eprintln!("Hint: {}", safe_line(hint));
    }
    Ok(())
}
