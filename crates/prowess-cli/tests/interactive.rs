//! `prowess call` with tools that talk to commands: one process for each call.

mod support;

use serde_json::Value;
use support::Run;
use support::exec::{Project, eventually, is_running};

fn call(project: &Project, tool: &str, arguments: &str) -> (Run, Value) {
    let run = project.prowess(&["call", tool, arguments, "--json"]);
    let json = run.json();
    (run, json)
}

fn loaded(test: &str) -> Option<Project> {
    let project = Project::new(test)?;
    let run = project.prowess(&["call", "load_skill", r#"{"skill": "demo"}"#]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    Some(project)
}

#[test]
fn a_call_needs_no_configuration_and_ends_what_it_began() {
    let Some(project) = loaded("a_call_needs_no_configuration_and_ends_what_it_began") else {
        return;
    };
    let arguments = r#"{"skill": "demo", "command": "(setsid sleep 98741 &); cat greeting.txt; sleep 98741", "yield_ms": 30000}"#;
    let (run, json) = call(&project, "skill_exec", arguments);
    assert_eq!((run.code, &json["code"]), (0, &Value::from("running")), "{}", run.stderr);
    assert_eq!(json["data"]["output"], "hello\n");
    let id = json["data"]["session_id"].as_str().unwrap();
    let note = format!("Note: the command is ended now: session {id} was this program's");
    assert!(run.stderr.contains(&note), "{}", run.stderr);
    assert!(eventually(|| !is_running("sleep\098741")));
    let (run, json) = call(&project, "skill_poll_session", &format!(r#"{{"session_id": "{id}"}}"#));
    assert_eq!((run.code, &json["code"]), (1, &Value::from("unknown_session")));
}

#[test]
fn a_command_that_has_ended_is_told_without_a_note() {
    let Some(project) = loaded("a_command_that_has_ended_is_told_without_a_note") else { return };
    let arguments = r#"{"skill": "demo", "command": "cat greeting.txt", "yield_ms": 30000}"#;
    let (run, json) = call(&project, "skill_exec", arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{json}");
    assert_eq!(json["data"]["result"]["stdout"], "hello\n");
}

#[test]
fn a_copy_that_was_changed_is_there_in_the_next_process() {
    let Some(project) = loaded("a_copy_that_was_changed_is_there_in_the_next_process") else {
        return;
    };
    let arguments = r#"{"command": "echo changed > $SKILLS_DIR/demo/greeting.txt; echo report > $OUTPUT_DIR/r"}"#;
    let (run, json) = call(&project, "workspace_exec", arguments);
    assert_eq!((run.code, &json["data"]["exit_code"]), (0, &Value::from(0)), "{}", run.stderr);
    let arguments = r#"{"command": "cat greeting.txt", "cwd": "skills/demo"}"#;
    let (_, json) = call(&project, "workspace_exec", arguments);
    assert_eq!(json["data"]["output"], "changed\n", "{json}");
    let arguments = r#"{"skill": "demo", "command": "cat greeting.txt"}"#;
    let (_, json) = call(&project, "skill_run", arguments);
    assert_eq!(json["data"]["stdout"], "hello\n", "{json}");
    let (_, json) = call(&project, "workspace_save_artifact", r#"{"path": "out/r"}"#);
    assert_eq!(json["data"]["ref"], "artifact://out/r@0", "{json}");
}
