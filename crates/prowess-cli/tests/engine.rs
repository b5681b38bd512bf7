//! `call` and `session`: the engine on its embedded defaults (S03, 7).

mod support;

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Run, Sandbox};

/// A project with skills, and a home of its own for the engine.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    let skill = |name: &str, body: &str| {
        format!("---\nname: {name}\ndescription: Does {name}. Use it for {name}.\n---\n{body}")
    };
    sandbox.write("skills/deploy/SKILL.md", skill("deploy", "# Deploy to $ARGUMENTS\n"));
    sandbox.write("skills/deploy/guide.md", "The guide.\n");
    sandbox.write("skills/deploy/scripts/run.sh", "echo\n");
    sandbox.write("skills/review/SKILL.md", skill("review", "# Review\n"));
    sandbox
}

fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.args(arguments).env("PROWESS_HOME", sandbox.path().join("home"));
    command.env("PROWESS_SKILLS", sandbox.path().join("skills"));
    command.env("HOME", sandbox.path()).env_remove("SKILLS_ROOT").env_remove("XDG_CONFIG_HOME");
    command
}

fn prowess(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.run(command(sandbox, arguments), b"")
}

fn call(sandbox: &Sandbox, tool: &str, arguments: &Value, more: &[&str]) -> Value {
    let arguments = arguments.to_string();
    let all = [&["call", tool, &arguments, "--json"], more].concat();
    let run = prowess(sandbox, &all);
    assert_eq!(run.stderr, "", "{run:?}");
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let expected = if value["is_error"] == json!(true) { 1 } else { 0 };
    assert_eq!(run.code, expected, "{run:?}");
    value
}

fn loaded(sandbox: &Sandbox, session: &str) -> Vec<String> {
    let run = prowess(sandbox, &["session", "show", session, "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let skills = value["agents"]["main"]["state"]["loaded"].as_array().cloned().unwrap_or_default();
    skills.iter().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_call_prints_what_the_model_would_see() {
    let sandbox = project();
    let arguments = r#"{"skill": "deploy", "arguments": "staging", "docs": ["guide.md"]}"#;
    let run = prowess(&sandbox, &["call", "load_skill", arguments]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout);
    let again = prowess(&sandbox, &["call", "load_skill", r#"{"skill_name": "deploy"}"#]);
    assert_eq!(
        again.stdout,
        "Skill 'deploy' is already loaded. Its instructions are already active.\n"
    );
    let failed = prowess(&sandbox, &["call", "load_skill", r#"{"skill_id": "deplyo"}"#]);
    assert_eq!(failed.code, 1);
    assert_eq!(
        failed.stdout,
        "Error: Skill 'deplyo' not found. Available skills: deploy, review\n"
    );
    assert_eq!(failed.stderr, "Hint: Did you mean 'deploy'?\n");
}

#[test]
fn programs_get_every_part_of_an_outcome() {
    let sandbox = project();
    let outcome = call(&sandbox, "load_skill", &json!({"skill": "review"}), &[]);
    for key in ["content", "stub", "is_error", "code", "hint", "delta", "data", "call_id"] {
        assert!(outcome.get(key).is_some(), "{key}");
    }
    assert_eq!(outcome["content"], "# Review");
    assert_eq!(outcome["stub"], "loaded: review");
    assert_eq!(outcome["delta"][0]["change"], "load");
    assert_eq!(outcome["delta"][0]["skill"]["name"], "review");
    let failed = call(&sandbox, "unload_skill", &json!({"skill": "deploy"}), &[]);
    assert_eq!((&failed["is_error"], &failed["code"]), (&json!(true), &json!("skill_not_loaded")));
    assert_eq!(failed["hint"], "Call load_skill with skill 'deploy' first.");
    assert_eq!(failed["delta"], json!([]));
}

#[test]
fn sessions_and_agents_are_apart_and_last() {
    let sandbox = project();
    call(&sandbox, "load_skill", &json!({"skill": "deploy"}), &[]);
    call(&sandbox, "load_skill", &json!({"skill": "review"}), &["--session", "two"]);
    call(&sandbox, "load_skill", &json!({"skill": "review"}), &["--agent", "helper"]);
    assert_eq!(loaded(&sandbox, "default"), ["deploy"]);
    assert_eq!(loaded(&sandbox, "two"), ["review"]);
    let other = call(&sandbox, "list_loaded_skills", &json!({}), &["--session", "app/user/two"]);
    assert!(other["content"].as_str().unwrap().starts_with("No skills have been loaded yet."));
    let listed: Value =
        serde_json::from_str(&prowess(&sandbox, &["session", "list", "--json"]).stdout).unwrap();
    let keys: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["app/user/two", "prowess/local/default", "prowess/local/two"]);
}

#[test]
fn a_session_is_shown_and_ended() {
    let sandbox = project();
    let empty = prowess(&sandbox, &["session", "list"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (0, ""));
    assert!(empty.stderr.starts_with("No sessions."));
    call(&sandbox, "load_skill", &json!({"skill": "deploy", "include_all_docs": true}), &[]);
    call(&sandbox, "load_skill", &json!({"skill": "nope"}), &["--new-turn"]);
    let shown = prowess(&sandbox, &["session", "show"]);
    let digest = without_times(&shown.stdout);
    insta::assert_snapshot!(digest);
    let content = sandbox.path().join("home/content");
    assert!(content.exists());
    let ended = prowess(&sandbox, &["session", "end", "default"]);
    assert_eq!(ended.stdout, "Session prowess/local/default ended.\n");
    let gone = prowess(&sandbox, &["session", "show", "default", "--json"]);
    assert_eq!(gone.code, 1);
    let error: Value = serde_json::from_str(&gone.stdout).unwrap();
    assert_eq!(error["error"]["code"], "unknown_session");
    let again = prowess(&sandbox, &["session", "end", "default"]);
    assert_eq!(again.code, 1);
}

#[test]
fn a_session_ends_even_if_another_one_cannot_be_read() {
    let sandbox = project();
    for session in ["good", "newer"] {
        call(&sandbox, "load_skill", &json!({"skill": "deploy"}), &["--session", session]);
    }
    let database = rusqlite::Connection::open(sandbox.path().join("home/prowess.db")).unwrap();
    let sql = "UPDATE sessions SET state = replace(state, '\"version\":1', '\"version\":2') \
               WHERE session = 'newer'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    let newer = prowess(&sandbox, &["session", "show", "newer", "--json"]);
    assert!(newer.stdout.contains("session_corrupt"), "{newer:?}");
    let ended = prowess(&sandbox, &["session", "end", "good"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "Session prowess/local/good ended.\n"));
    assert!(ended.stderr.starts_with("Warning: its content is kept:"), "{}", ended.stderr);
    let ended = prowess(&sandbox, &["session", "end", "newer"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "it can be ended, too");
}

/// Times and digests differ from run to run.
fn without_times(text: &str) -> String {
    let line = |line: &str| {
        let words = line.split(' ').map(|word| {
            let is_time = word.len() == 8 && word.matches(':').count() == 2;
            if is_time { "TIME" } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_new_turn_clears_what_the_load_mode_clears() {
    let sandbox = project();
    sandbox.write("prowess.toml", "[runtime]\nload_mode = \"turn\"\n");
    call(&sandbox, "load_skill", &json!({"skill": "deploy"}), &[]);
    let listed = call(&sandbox, "list_loaded_skills", &json!({}), &[]);
    assert!(listed["content"].as_str().unwrap().contains("deploy"));
    let listed = call(&sandbox, "list_loaded_skills", &json!({}), &["--new-turn"]);
    assert!(listed["content"].as_str().unwrap().starts_with("No skills"));
}

#[test]
fn settings_come_from_prowess_toml_and_mistakes_are_told() {
    let sandbox = project();
    sandbox.write("prowess.toml", "[runtime]\nmax_loaded_skills = 1\n");
    call(&sandbox, "load_skill", &json!({"skill": "deploy"}), &[]);
    let refused = call(&sandbox, "load_skill", &json!({"skill": "review"}), &[]);
    assert_eq!(refused["code"], "load_limit");
    sandbox.write("prowess.toml", "[runtime]\nmax_loaded_skills = 1\nwhen_full = \"evict\"\n");
    let evicting = call(&sandbox, "load_skill", &json!({"skill": "review"}), &[]);
    assert_eq!(evicting["code"], "loaded");
    assert_eq!(loaded(&sandbox, "default"), ["review"]);
    sandbox.write("prowess.toml", "[runtime]\nmax_loaded = 1\n");
    let wrong = prowess(&sandbox, &["call", "list_loaded_skills"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("unknown field `max_loaded`"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("prowess.toml"), "{}", wrong.stderr);
}

#[test]
fn wrong_usage_is_told() {
    let sandbox = project();
    let broken = prowess(&sandbox, &["call", "load_skill", "{skill: deploy}"]);
    assert_eq!(broken.code, 2);
    assert!(broken.stderr.contains("the arguments are no JSON"), "{}", broken.stderr);
    let session = prowess(&sandbox, &["call", "load_skill", "{}", "--session", "a/b"]);
    assert_eq!(session.code, 2);
    assert!(session.stderr.contains("write `session` or `app/user/session`"), "{}", session.stderr);
    let input =
        sandbox.run(command(&sandbox, &["call", "load_skill", "-"]), br#"{"skill": "review"}"#);
    assert_eq!((input.code, input.stdout.as_str()), (0, "# Review\n"));
}

#[test]
fn states_of_other_systems_are_carried_over_and_back() {
    let sandbox = project();
    sandbox.write(
        "state.json",
        r#"{"skills_loaded": ["deploy", "gone"], "skill_load_count": {"deploy": 3}}"#,
    );
    let import = ["session", "import", "state.json", "--format", "langchain_docker", "--json"];
    let run = prowess(&sandbox, &import);
    assert_eq!(run.code, 1, "not everything could be carried over");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["loaded"], json!(["deploy"]));
    assert!(report["problems"][0].as_str().unwrap().starts_with("'gone' is not loaded any more"));
    let export = prowess(&sandbox, &["session", "show", "--format", "trpc"]);
    let value: Value = serde_json::from_str(&export.stdout).unwrap();
    assert_eq!(value["temp:skill:loaded_by_agent:main/deploy"], "1");
    let deepagents = prowess(&sandbox, &["session", "show", "--format", "deepagents"]);
    let value: Value = serde_json::from_str(&deepagents.stdout).unwrap();
    assert_eq!(value["skills_loaded"], json!(["deploy"]));
}

#[test]
fn many_processes_share_one_session_and_lose_nothing() {
    let sandbox = project();
    for at in 0..12 {
        let name = format!("extra-{at}");
        let text = format!("---\nname: {name}\ndescription: Extra.\n---\nText {at}\n");
        sandbox.write(&format!("skills/{name}/SKILL.md"), text);
    }
    let children: Vec<_> = (0..12)
        .map(|at| {
            let arguments = json!({"skill": format!("extra-{at}")}).to_string();
            let mut command = command(&sandbox, &["call", "load_skill", &arguments, "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let outcomes: Vec<Value> = children
        .into_iter()
        .map(|child| serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    let count = |code: &str| outcomes.iter().filter(|outcome| outcome["code"] == code).count();
    // The limit is decided at the commit, whoever comes first.
    assert_eq!((count("loaded"), count("load_limit")), (10, 2));
    assert_eq!(loaded(&sandbox, "default").len(), 10);
    let run = prowess(&sandbox, &["session", "show", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["revision"], json!(12));
    assert_eq!(value["agents"]["main"]["messages"].as_array().unwrap().len(), 24);
}

#[test]
fn what_was_loaded_is_given_again_after_its_folder_is_gone() {
    let sandbox = project();
    call(&sandbox, "load_skill", &json!({"skill": "review"}), &[]);
    std::fs::remove_dir_all(sandbox.path().join("skills/review")).unwrap();
    let again = call(&sandbox, "load_skill", &json!({"skill": "review", "arguments": "now"}), &[]);
    assert_eq!(again["code"], "loaded");
    assert_eq!(again["content"], "# Review\n\nARGUMENTS: now");
}
