//! `--dialect` on `call`, `prompt`, `tokens` and `cache` (S05, 4).

mod support;

use std::process::Command;

use serde_json::Value;
use support::{Run, Sandbox};

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    let text = "---\nname: deploy\ndescription: Deploys it.\n---\n# Deploy\n";
    sandbox.write("skills/deploy/SKILL.md", text);
    sandbox
}

fn prowess(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.args(arguments).env("PROWESS_HOME", sandbox.path().join("home"));
    command.env("PROWESS_SKILLS", sandbox.path().join("skills"));
    command.env("HOME", sandbox.path()).env_remove("SKILLS_ROOT").env_remove("XDG_CONFIG_HOME");
    sandbox.run(command, b"")
}

#[test]
fn a_call_is_made_in_the_words_of_a_dialect() {
    let table = [
        ("trpc", "skill_load", r#"{"skill": "deploy"}"#, "loaded: deploy\n"),
        ("deepagents", "load_skill", r#"{"skill_name": "deploy"}"#, "---\nname: deploy\n"),
        ("eino", "skill", r#"{"skill": "deploy"}"#, "Launching skill: deploy\n"),
        (
            "langchain_docker",
            "load_skill",
            r#"{"skill_id": "deploy"}"#,
            "## Skill Loaded: Deploy\n",
        ),
        ("prowess", "load_skill", r#"{"skill": "deploy"}"#, "# Deploy\n"),
    ];
    for (dialect, tool, arguments, expected) in table {
        let sandbox = project();
        let run = prowess(&sandbox, &["call", tool, arguments, "--dialect", dialect]);
        assert!(run.code == 0 && run.stdout.starts_with(expected), "{dialect}: {run:?}");
        let run = prowess(&sandbox, &["prompt", "--dialect", dialect, "--json"]);
        let prompt: Value = serde_json::from_str(&run.stdout).unwrap();
        let tools = prompt["tools"].as_array().unwrap();
        assert!(tools.iter().any(|it| it["name"] == tool), "{dialect}: {prompt}");
    }
}

#[test]
fn a_sixth_dialect_is_a_file() {
    let sandbox = project();
    let text = "name = \"house\"\n[tools.load_skill]\nname = \"open_manual\"\ndescription = \"Open.\"\n\
                parameters.skill = { name = \"manual\", description = \"Which.\" }\n\
                [outcomes.loaded]\ntext = \"Opened: {{ body }}\"\nstub = \"opened\"\n";
    sandbox.write("house.toml", text);
    let arguments = r#"{"manual": "deploy"}"#;
    let call = ["call", "open_manual", arguments];
    let run = prowess(&sandbox, &[&call[..], &["--dialect", "house.toml"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, "Opened: # Deploy\n"), "{run:?}");
    // The same by configuration, from where the configuration is.
    sandbox.write("prowess.toml", "[runtime]\ndialect = \"house.toml\"\n");
    let run = prowess(&sandbox, &[&call[..], &["--session", "other"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, "Opened: # Deploy\n"), "{run:?}");
    // What is asked for goes over what is configured.
    let call = ["call", "load_skill", r#"{"skill": "deploy"}"#, "--dialect", "prowess"];
    let run = prowess(&sandbox, &[&call[..], &["--session", "third"]].concat());
    assert_eq!(run.stdout, "# Deploy\n");
}

#[test]
fn a_dialect_that_is_not_there_is_said_to_be_missing() {
    let sandbox = project();
    for command in [&["prompt"][..], &["call", "load_skill", "{}"], &["tokens"], &["cache"]] {
        let run = prowess(&sandbox, &[command, &["--dialect", "klingon"]].concat());
        assert_ne!(run.code, 0);
        let expected = "there is no dialect 'klingon': use prowess, deepagents, trpc, eino, \
                        langchain_docker or the path of a file";
        assert!(run.stderr.contains(expected), "{run:?}");
    }
    sandbox.write("prowess.toml", "[runtime]\ndialect = 7\n");
    let run = prowess(&sandbox, &["prompt"]);
    assert!(run.stderr.contains("dialect must be a name or a path, not integer"), "{run:?}");
    sandbox.write("prowess.toml", "[runtime]\nload_mode = \"forever\"\n");
    let run = prowess(&sandbox, &["prompt", "--dialect", "trpc"]);
    assert!(run.code != 0 && run.stderr.contains("prowess.toml"), "{run:?}");
}

#[test]
fn conversations_can_be_counted_in_every_dialect() {
    let sandbox = project();
    let mut totals = Vec::new();
    for dialect in ["prowess", "deepagents", "trpc", "eino", "langchain_docker"] {
        let corpus = ["--corpus", "nowhere"];
        let run =
            prowess(&sandbox, &[&["tokens", "--json", "--dialect", dialect], &corpus[..]].concat());
        assert_eq!(run.code, 0, "{dialect}: {run:?}");
        let value: Value = serde_json::from_str(&run.stdout).unwrap();
        let layouts = value["scenarios"][0]["layouts"].as_array().unwrap();
        assert_eq!(layouts.len(), 10, "{dialect}");
        totals.push(layouts[0]["total"].as_u64().unwrap());
        // What a dialect says besides is counted wherever it stands; this one says nothing.
        let guidance = layouts[0]["first_request"]["guidance"].as_u64().unwrap();
        assert_eq!(guidance > 20, dialect != "langchain_docker", "{dialect}: {guidance}");
        let run =
            prowess(&sandbox, &[&["cache", "--json", "--dialect", dialect], &corpus[..]].concat());
        assert_eq!(run.code, 0, "{dialect}: {run:?}");
    }
    totals.sort_unstable();
    totals.dedup();
    assert_eq!(totals.len(), 5, "each one costs something else");
}
