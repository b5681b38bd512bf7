//! `prowess chat`: skills with agents of their own, commands in their text, code in answers.

mod support;

use serde_json::json;
use support::chat::{chat, project};
use support::exec::Project;
use support::provider::{Provider, Reply};

fn skill(name: &str, fields: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{fields}---\n{body}\n")
}

#[test]
fn a_skill_runs_in_an_agent_of_its_own() {
    let sandbox = project();
    sandbox.write("skills/report/SKILL.md", skill("report", "context: fork\n", "Write a report."));
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "report"})),
        Reply::call("load_skill", json!({"skill": "greet"})),
        Reply::text("The report."),
        Reply::text("Here it is."),
    ]);
    let run = chat(&sandbox, &provider, &["--prompt", "Report."], "");
    assert_eq!((run.code, run.stdout.as_str()), (0, "Here it is.\n"), "{run:?}");
    assert!(run.stderr.contains("⏺ report › load_skill greet … loaded ("), "{run:?}");
    assert!(run.stderr.contains("⏺ load_skill report … forked ("), "{run:?}");
    let inside = provider.messages(1);
    assert_eq!(inside[1], ("user".to_owned(), "Write a report.".to_owned()));
    assert!(provider.messages(3).pop().unwrap().1.ends_with("Result:\nThe report."));
}

/// A person may have cloned the project from anywhere: only their own file turns commands on.
#[test]
fn commands_in_skill_text_are_run_if_ones_own_file_says_so() {
    let Some(project) = Project::new("chat_skills::commands_in_skill_text") else { return };
    let text = skill("now", "", "Here is !`echo $((6 * 7)) $ARGUMENTS`.");
    project.write("skills/now/SKILL.md", text);
    let asked = |expected: &str| {
        let provider = Provider::answering([Reply::text("Seen.")]);
        let run = project.prowess(&[
            "chat",
            "--model",
            "openai:test",
            "--base-url",
            &provider.url,
            "--prompt",
            "/now 'a; b'",
        ]);
        assert_eq!(run.code, 0, "{run:?}");
        let said = format!("{:?}", provider.messages(0));
        assert!(said.contains(expected), "{expected}: {said}");
        run
    };
    let literal = "Here is !`echo $((6 * 7)) $ARGUMENTS`.";
    let literal = literal.replace("$ARGUMENTS", "'a; b'");
    asked(&literal);
    project.write("prowess.toml", "[runtime]\nembedded_commands = \"people\"\n");
    let run = asked(&literal);
    assert!(run.stderr.contains("embedded_commands in [runtime] counts only in"), "{run:?}");
    std::fs::remove_file(project.path("prowess.toml")).unwrap();
    project.write("home/prowess.toml", "[runtime]\nembedded_commands = \"people\"\n");
    asked("Here is 42 a; b.");
}

#[test]
fn code_in_an_answer_is_run_if_it_is_asked_for() {
    let Some(project) = Project::new("chat_skills::code_in_an_answer") else { return };
    let answer = "So:\n```bash\necho $((6 * 7))\n```\n";
    let arguments = |url: &str| {
        ["chat", "--model", "openai:test", "--base-url", url, "--prompt", "Compute."]
            .map(str::to_owned)
    };
    let ask = |provider: &Provider| {
        let arguments = arguments(&provider.url);
        let run = project.prowess(&arguments.each_ref().map(String::as_str));
        assert_eq!(run.code, 0, "{run:?}");
    };
    let provider = Provider::answering([Reply::text(answer)]);
    ask(&provider);
    assert_eq!(provider.came().len(), 1, "off by default");
    project.write("home/prowess.toml", "[chat]\ncode_blocks = \"run\"\n");
    let provider = Provider::answering([Reply::text(answer), Reply::text("42.")]);
    ask(&provider);
    assert_eq!(provider.messages(1).pop().unwrap(), ("tool".to_owned(), "42\n".to_owned()));
}
