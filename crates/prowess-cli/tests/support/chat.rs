//! Conversations with a provider of ours.

use std::process::Command;

use serde_json::Value;

use super::provider::Provider;
use super::{Run, Sandbox};

/// A project with skills of every kind, and a home of its own.
pub(crate) fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    let skill = |name: &str, fields: &str, body: &str| {
        let text = format!(
            "---\nname: {name}\ndescription: Does {name}. Use it for {name}.\n{fields}---\n{body}\n"
        );
        sandbox.write(&format!("skills/{name}/SKILL.md"), text);
    };
    skill("greet", "argument-hint: '[whom]'\n", "# Greet\nSay good day to $ARGUMENTS.");
    skill("deploy", "disable-model-invocation: true\n", "# Deploy\nGo to $ARGUMENTS.");
    skill("style", "user-invocable: false\n", "# Style\nBe brief.");
    skill("help", "", "# Help\nThe skill that is called help.");
    sandbox
}

pub(crate) fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.args(arguments).env("PROWESS_HOME", sandbox.path().join("home"));
    command.env("PROWESS_SKILLS", sandbox.path().join("skills")).env("HOME", sandbox.path());
    for name in [
        "SKILLS_ROOT",
        "XDG_CONFIG_HOME",
        "PROWESS_WORKSPACES",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command
}

/// `prowess chat` with the model of a provider of ours.
pub(crate) fn chat_at(sandbox: &Sandbox, url: &str, arguments: &[&str], input: &str) -> Run {
    let all = [&["chat", "--model", "openai:test", "--base-url", url], arguments].concat();
    sandbox.run(command(sandbox, &all), input.as_bytes())
}

pub(crate) fn chat(sandbox: &Sandbox, provider: &Provider, arguments: &[&str], input: &str) -> Run {
    chat_at(sandbox, &provider.url, arguments, input)
}

/// A text without the names of sessions, which differ from run to run.
pub(crate) fn stable(text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    for word in &mut words {
        if let Some(rest) = word.strip_prefix("chat-20") {
            *word = if rest.contains('\n') { "[SESSION]\n" } else { "[SESSION]" };
        }
    }
    words.join(" ")
}

pub(crate) fn events(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a session holds: loaded skills, and the roles of its messages.
pub(crate) fn stored(sandbox: &Sandbox, session: &str) -> (Vec<String>, Vec<String>) {
    let run = sandbox.run(command(sandbox, &["session", "show", session, "--json"]), b"");
    let value = run.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let agent = &value["agents"]["main"];
    let loaded = agent["state"]["loaded"].as_array().cloned().unwrap_or_default();
    let messages = agent["messages"].as_array().cloned().unwrap();
    let loaded = loaded.iter().map(|skill| text(&skill["name"])).collect();
    (loaded, messages.iter().map(|message| text(&message["role"])).collect())
}
