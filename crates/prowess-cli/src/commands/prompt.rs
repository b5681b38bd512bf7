//! `prowess prompt`

use std::io::Write;

use anstream::stdout;
use prowess_runtime::{Message, Part, Prompt, PromptRequest, Role};

use crate::Outcome;
use crate::cli::PromptArgs;
use crate::engine::LocalEngine;
use crate::report;
use crate::terminal::{safe, safe_line};

pub(crate) fn run(arguments: &PromptArgs) -> anyhow::Result<Outcome> {
    let engine = LocalEngine::open(&arguments.catalog, Some(&arguments.dialect))?;
    let mut request = PromptRequest::new();
    request.system.clone_from(&arguments.system);
    let (session, agent) = (&arguments.place.session, &arguments.place.agent);
    let prompt = engine.wait(engine.runtime.prompt(session, agent, request))?;
    if arguments.json {
        report::print_json(&serde_json::to_value(&prompt)?)?;
    } else {
        print(&prompt)?;
    }
    for problem in &prompt.problems {
        anstream::eprintln!("Warning: {}", safe_line(problem));
    }
    Ok(Outcome::Ok)
}

fn print(prompt: &Prompt) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "── system ──\n{}\n\n── tools ──", safe(&prompt.system))?;
    for tool in prompt.tools.iter() {
        writeln!(out, "{}", safe_line(&serde_json::to_string(tool)?))?;
    }
    for message in prompt.messages.iter() {
        writeln!(out, "\n── {} ──", role(message.role))?;
        for part in &message.parts {
            writeln!(out, "{}", safe(&part_text(part)))?;
        }
    }
    Ok(())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// What a part says, as it is counted.
pub(crate) fn part_text(part: &Part) -> String {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.clone(),
        Part::ToolCall(call) => format!("{} {}", call.name, call.arguments),
        Part::ToolResult(result) => result.content.clone(),
        _ => String::new(),
    }
}

/// What a message says, as it is counted.
pub(crate) fn message_text(message: &Message) -> String {
    let parts: Vec<String> = message.parts.iter().map(part_text).collect();
    format!("{}\n{}\n", role(message.role), parts.join("\n"))
}
