//! What calls answer that talk to commands.

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::{Map, Value, json};

use super::super::after::code_of;
use super::super::result::brief_isolation;
use super::screen::{Exit, View, Want};
use super::session::{Family, Session};
use super::sessions::Sessions;

/// What there is to see of a session now. A command that could not be run is a failure, and its
/// session is gone.
pub(crate) async fn answer(
    sessions: &Sessions,
    session: &Session,
    want: Want,
    warnings: Vec<String>,
    invocation: Invocation<'_>,
) -> ToolOutcome {
    let view = session.screen().view(want);
    let exit = match view.end.as_ref().map(|end| &end.exit) {
        Some(Err(failure)) => {
            drop(sessions.take(&session.id));
            return (**failure).clone();
        }
        Some(Ok(exit)) => Some(exit),
        None => None,
    };
    let mut shown = page(session, &view, exit);
    let mut data = shown.clone();
    add_exit(&mut shown, &mut data, exit, session.family);
    if !warnings.is_empty() {
        shown.insert("warnings".to_owned(), json!(warnings));
        data.insert("warnings".to_owned(), json!(warnings));
    }
    let told = match exit {
        Some(_) => session.told().await,
        None => None,
    };
    if exit.is_some() {
        session.see();
    }
    let code = exit.map_or("running", |exit| code_of(exit.timed_out, exit.exit_code));
    let Some((told, is_new)) = told else {
        return outcome(shown, data, code);
    };
    match &*told {
        Ok(told) => {
            shown.insert("result".to_owned(), told.written.shown.clone());
            data.insert("result".to_owned(), told.written.data.clone());
            let (shown, data) = (Value::Object(shown), Value::Object(data));
            let mut outcome = told.outcome(shown, data, invocation.state);
            if is_new {
                outcome.artifacts = told.artifacts.clone();
            } else {
                outcome.changes.clear();
            }
            outcome
        }
        Err(failure) => failure.clone(),
    }
}

/// What a call comes to.
pub(crate) fn outcome(
    shown: Map<String, Value>,
    data: Map<String, Value>,
    code: &'static str,
) -> ToolOutcome {
    let mut outcome = ToolOutcome::json(Value::Object(shown));
    outcome.data = Value::Object(data);
    outcome.code = code.into();
    outcome
}

fn page(session: &Session, view: &View, exit: Option<&Exit>) -> Map<String, Value> {
    let page = &view.page;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("status", json!(if exit.is_some() { "exited" } else { "running" }));
    set("session_id", json!(session.id));
    set("output", json!(page.text));
    set("offset", json!(page.offset));
    set("next_offset", json!(page.next.line));
    if page.dropped > 0 {
        set("dropped_lines", json!(page.dropped));
    }
    if page.remaining > 0 {
        set("remaining_lines", json!(page.remaining));
    }
    if let Some(interaction) = &view.interaction {
        set("interaction", json!(interaction));
    }
    fields
}

/// Adds how a command ended. Where a result follows, that says the rest.
pub(crate) fn add_exit(
    shown: &mut Map<String, Value>,
    data: &mut Map<String, Value>,
    exit: Option<&Exit>,
    family: Family,
) {
    let Some(exit) = exit else { return };
    for fields in [&mut *shown, &mut *data] {
        fields.insert("exit_code".to_owned(), json!(exit.exit_code));
        if family == Family::Workspace {
            if exit.timed_out {
                fields.insert("timed_out".to_owned(), json!(true));
            }
            if !exit.limits_hit.is_empty() {
                fields.insert("limits_hit".to_owned(), json!(exit.limits_hit));
            }
        }
    }
    if family == Family::Workspace {
        shown.insert("isolation".to_owned(), brief_isolation(&exit.isolation));
        data.insert("isolation".to_owned(), json!(exit.isolation));
    }
}
