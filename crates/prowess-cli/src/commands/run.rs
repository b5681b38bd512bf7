//! `prowess run`

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use prowess_catalog::{CatalogSkill, Snapshot};
use prowess_runtime::{AgentName, SessionKey, ToolCall, ToolOutcome};
use prowess_workspace::{
    CollectLimits, Collected, CollectedFile, OutputStream, Watcher, WorkspaceId, Workspaces,
};
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::RunArgs;
use crate::deliver::{NotDelivered, deliver};
use crate::engine::LocalEngine;
use crate::finder::{Form, complain};
use crate::progress::while_showing_unless;
use crate::report;
use crate::terminal::{safe, safe_line};
use crate::toolkits::{Ready, Toolkits};

/// Its time was over.
const TIMED_OUT: u8 = 124;
/// It was not started.
const NOT_STARTED: u8 = 125;

pub(crate) fn run(arguments: &RunArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.json);
    let is_heard = Arc::new(AtomicBool::new(false));
    let (call, inputs) = match brought(&arguments.inputs)
        .and_then(|inputs| Ok((call(arguments, &inputs, form)?, inputs)))
    {
        Ok(understood) => understood,
        Err(error) => {
            complain("invalid_arguments", &format!("{error:#}"), form)?;
            return Ok(Outcome::Exit(NOT_STARTED));
        }
    };
    // Whatever is wrong with it is known before anything runs.
    if let Some(folder) = &arguments.output
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        complain("output_folder", &format!("{}: {error}", folder.display()), form)?;
        return Ok(Outcome::Exit(NOT_STARTED));
    }
    let mut place = None;
    let change = |toolkits: &mut Toolkits, snapshot: &Snapshot| {
        toolkits.run_by(&arguments.executor, arguments.sandbox.best(), Ready::No);
        let Toolkits { exec, watcher, workspaces, .. } = toolkits;
        exec.require_skill_loaded = false;
        exec.host_inputs.extend(inputs.iter().map(|path| folder_of(path).to_owned()));
        exec.allow_unsandboxed |= arguments.allow_unsandboxed;
        exec.max_timeout = exec.max_timeout.max(arguments.timeout.unwrap_or(0));
        // Whatever is brought is also told.
        exec.max_output_files = exec.max_delivered_files;
        if arguments.network {
            // Whoever types it means this skill, whether its source is trusted or not.
            exec.network.extend(snapshot.get(&arguments.skill).map(CatalogSkill::qualified_name));
        }
        if form == Form::Text {
            *watcher = Some(printer(Arc::clone(&is_heard)));
        }
        place = Some((workspaces.clone(), exec.delivery_limits()));
    };
    let engine = LocalEngine::for_run(&arguments.catalog, arguments.session.is_some(), change)?;
    let (workspaces, limits) = place.context("there are no workspaces")?;
    let fresh = || format!("run-{}", uuid::Uuid::now_v7()).parse::<SessionKey>();
    let session = arguments.session.clone().map_or_else(fresh, Ok)?;
    let agent = AgentName::default();
    let work = || engine.wait(engine.runtime.dispatch(&session, &agent, call));
    let outcome = match while_showing_unless("Running", &is_heard, work) {
        Ok(outcome) => outcome,
        Err(error) => {
            complain(error.code(), &error.to_string(), form)?;
            return Ok(Outcome::Exit(NOT_STARTED));
        }
    };
    let place = Place { workspaces, limits, session, is_fresh: arguments.session.is_none() };
    let files = place.deliver(arguments.output.as_deref())?;
    tell(&outcome, &files, form)?;
    Ok(Outcome::Exit(exit_code(&outcome)))
}

/// The call of `skill_run` that was typed.
fn call(arguments: &RunArgs, inputs: &[PathBuf], form: Form) -> anyhow::Result<ToolCall> {
    let command = match arguments.command.as_slice() {
        [line] => line.clone(),
        words => shlex::try_join(words.iter().map(String::as_str)).context("the command")?,
    };
    let mut env = BTreeMap::new();
    for text in &arguments.env {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (text.as_str(), std::env::var(text).with_context(|| format!("--env {text}"))?),
        };
        env.insert(name.to_owned(), value);
    }
    let mut from = Vec::new();
    for path in inputs {
        let Some(path) = path.to_str() else { bail!("{}: no UTF-8", path.display()) };
        from.push(json!({"from": format!("host://{path}")}));
    }
    let mut stdin = String::new();
    if arguments.stdin {
        std::io::stdin().read_to_string(&mut stdin).context("standard input")?;
    }
    let mut call = json!({
        "skill": arguments.skill, "command": command, "env": env, "inputs": from, "stdin": stdin,
    });
    if form == Form::Json {
        call["output_files"] = json!(["out/**"]);
        call["omit_inline_content"] = json!(true);
    }
    if let Some(timeout) = arguments.timeout {
        call["timeout"] = json!(timeout);
    }
    Ok(ToolCall::new(uuid::Uuid::now_v7().to_string(), "skill_run", call))
}

/// What is to be brought, by its whole path. Each has a name of its own below `inputs/`.
fn brought(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in inputs {
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        if let Some(other) = paths.iter().find(|other| other.file_name() == path.file_name()) {
            let (one, other) = (other.display(), path.display());
            bail!("{one} and {other} would both be {}", in_inputs(&path).display());
        }
        paths.push(path);
    }
    Ok(paths)
}

/// Where an input is brought to.
fn in_inputs(path: &Path) -> PathBuf {
    Path::new("inputs").join(path.file_name().unwrap_or_default())
}

/// The folder that an input is in: whoever types a path allows it.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Prints what a command writes while it runs. On a terminal it cannot do more than write.
fn printer(is_heard: Arc<AtomicBool>) -> Watcher {
    let is_terminal = [std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    let rest = Mutex::new([Vec::new(), Vec::new()]);
    Watcher::new(move |stream, bytes: &[u8]| {
        is_heard.store(true, Ordering::Relaxed);
        let at = usize::from(stream == OutputStream::Stderr);
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match is_terminal[at] {
            true => whole_characters(&mut rest[at], bytes),
            false => bytes.to_vec(),
        };
        // If nobody reads it, the command still goes on.
        let _ = match stream {
            OutputStream::Stdout => std::io::stdout().write_all(&text),
            OutputStream::Stderr => std::io::stderr().write_all(&text),
        };
        let _ = std::io::stdout().flush();
    })
}

/// What can be shown by now: a character that is cut off waits for the rest of it.
fn whole_characters(rest: &mut Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    rest.extend_from_slice(bytes);
    let is_over = bytes.is_empty();
    let end = match std::str::from_utf8(rest) {
        Err(error) if error.error_len().is_none() && !is_over => error.valid_up_to(),
        _ => rest.len(),
    };
    let whole: Vec<u8> = rest.drain(..end).collect();
    safe(&String::from_utf8_lossy(&whole)).into_owned().into_bytes()
}

/// Where a command ran.
struct Place {
    workspaces: Workspaces,
    /// How much is brought.
    limits: CollectLimits,
    session: SessionKey,
    /// Whether it is of no further use.
    is_fresh: bool,
}

/// What a command left.
struct Left {
    files: Collected,
    /// Where it is now.
    place: Option<PathBuf>,
    /// What was not brought there, and why.
    left_out: Vec<(String, String)>,
    /// Where that is.
    rest: Option<PathBuf>,
}

impl Place {
    /// Brings what is in `out/` to a folder, or leaves it where it is. What cannot be brought stays.
    fn deliver(&self, to: Option<&Path>) -> anyhow::Result<Left> {
        let session = &self.session;
        let id = WorkspaceId::new(session.app(), session.user(), session.session());
        let workspace = self.workspaces.open(&id)?;
        let mut files = workspace.collect(&["out/**".to_owned()], None, &self.limits)?;
        let refused = files.refused.iter();
        let mut left_out: Vec<(String, String)> =
            refused.map(|it| (it.name.clone(), it.reason.as_str().to_owned())).collect();
        if let Some(folder) = to {
            files.files.retain(|file| match bring(file, folder) {
                Ok(()) => true,
                Err(why) => {
                    left_out.push((file.name.clone(), why.to_string()));
                    false
                }
            });
        }
        let out = workspace.path().join("out");
        let is_empty = files.files.is_empty() && left_out.is_empty();
        let is_kept = if to.is_some() { !left_out.is_empty() } else { !is_empty };
        let rest = (to.is_some() && is_kept).then(|| out.clone());
        let place = to.map(Path::to_owned).or_else(|| is_kept.then_some(out));
        drop(workspace);
        if self.is_fresh && !is_kept {
            self.workspaces.remove(&id)?;
        }
        Ok(Left { files, place, left_out, rest })
    }
}

/// Brings a file to a folder; else says why not.
fn bring(file: &CollectedFile, folder: &Path) -> Result<(), NotDelivered> {
    if file.truncated {
        return Err(NotDelivered::TooLarge);
    }
    let name = file.name.strip_prefix("out/").unwrap_or(&file.name);
    deliver(folder, name, &file.bytes)
}

fn exit_code(outcome: &ToolOutcome) -> u8 {
    match (&*outcome.code, outcome.data["exit_code"].as_i64()) {
        ("timed_out", _) => TIMED_OUT,
        (_, Some(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        (_, None) => NOT_STARTED,
    }
}

fn tell(outcome: &ToolOutcome, left: &Left, form: Form) -> anyhow::Result<()> {
    if form == Form::Json {
        let mut value = match outcome.is_error {
            true => json!({"error": {"code": outcome.code, "message": outcome.content}}),
            false => outcome.data.clone(),
        };
        value["output_folder"] = json!(left.place);
        if !left.left_out.is_empty() {
            let left_out = left.left_out.iter();
            let left_out = left_out.map(|(name, why)| json!({"name": name, "reason": why}));
            value["left_out"] = left_out.collect();
            value["left_out_folder"] = json!(left.rest);
        }
        return report::print_json(&value);
    }
    let say = |word: &str, text: &str| anstream::eprintln!("{word}: {}", safe_line(text));
    if outcome.is_error {
        let text = outcome.content.strip_prefix("Error: ").unwrap_or(&outcome.content);
        say("Error", text);
        // Some of it is for a model: here the user is told.
        let hint = outcome.hint.as_deref().unwrap_or_default();
        let hint = hint.strip_prefix("Tell the user.").unwrap_or(hint).trim();
        if !hint.is_empty() {
            say("Hint", hint);
        }
        return Ok(());
    }
    if outcome.code == "timed_out" {
        let seconds = outcome.data["duration_ms"].as_u64().unwrap_or(0) as f64 / 1000.0;
        say(
            "Error",
            &format!("the command was ended after {seconds:.1} s; --timeout gives it more"),
        );
    }
    for limit in strings(&outcome.data["limits_hit"]) {
        if limit != "wall" {
            say("Warning", &format!("the command reached its limit: {limit}"));
        }
    }
    for warning in strings(&outcome.data["warnings"]) {
        // What it wrote was shown while it ran, all of it.
        if !["stdout truncated", "stderr truncated"].iter().any(|it| warning.starts_with(it)) {
            say("Warning", warning);
        }
    }
    for (name, why) in &left.left_out {
        say("Warning", &format!("{name} was left out: {why}"));
    }
    let more = left.files.refused_count.saturating_sub(left.files.refused.len() as u64);
    if more > 0 {
        say("Warning", &format!("{more} more files were left out"));
    }
    for file in left.files.files.iter().filter(|file| file.truncated) {
        say("Warning", &format!("{} is cut off: it has {} bytes", file.name, file.size_bytes));
    }
    if let Some(rest) = &left.rest {
        say("Warning", &format!("what was left out is in {}", rest.display()));
    }
    if let Some(place) = &left.place {
        for file in &left.files.files {
            let name = file.name.strip_prefix("out/").unwrap_or(&file.name);
            say("Output", &format!("{} ({} bytes)", place.join(name).display(), file.size_bytes));
        }
    }
    Ok(())
}

/// The texts in a list.
fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_cut_off_waits_for_the_rest() {
        let mut rest = Vec::new();
        let mut shown = Vec::new();
        for bytes in [&b"gr\xc3"[..], b"\xb6\xc3", b"\x9fe \x1b[2J\xe2\x82"] {
            shown.extend(whole_characters(&mut rest, bytes));
        }
        assert_eq!(String::from_utf8_lossy(&shown), "größe \\u{1b}[2J");
        assert_eq!(whole_characters(&mut rest, b""), "\u{fffd}".as_bytes());
    }
}
