//! `prompt`, `budget`, `tokens` and `cache` (S04, 4 and 5).

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{Run, Sandbox};

fn skill(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n{body}")
}

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("skills/deploy/SKILL.md", skill("deploy", "Deploys it.", "# Deploy\n"));
    sandbox.write("skills/deploy/guide.md", "The guide.\n");
    sandbox.write("skills/review/SKILL.md", skill("review", "Reviews it.", "# Review\n"));
    sandbox
}

fn prowess(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.args(arguments).env("PROWESS_HOME", sandbox.path().join("home"));
    command.env("PROWESS_SKILLS", sandbox.path().join("skills"));
    command.env("HOME", sandbox.path()).env_remove("SKILLS_ROOT").env_remove("XDG_CONFIG_HOME");
    sandbox.run(command, b"")
}

fn json_of(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn a_prompt_is_shown_as_a_model_would_be_sent_it() {
    let sandbox = project();
    prowess(&sandbox, &["call", "load_skill", r#"{"skill": "deploy"}"#]);
    let run = prowess(&sandbox, &["prompt", "--system", "You are a clerk."]);
    let (text, ids) = (run.stdout.clone(), run.code);
    assert_eq!((ids, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(text);
    let value = json_of(&prowess(&sandbox, &["prompt", "--json"]));
    assert!(value["system"].as_str().unwrap().contains("- deploy: Deploys it."));
    let result = &value["messages"][1]["parts"][0];
    assert!(result["content"].as_str().unwrap().starts_with("# Deploy"), "expanded");
    assert_eq!(value["tools"][1]["name"], "load_skill");
    // Looking changes nothing.
    assert_eq!(json_of(&prowess(&sandbox, &["prompt", "--json"])), value);
}

#[test]
fn placement_and_mode_are_settings() {
    let sandbox = project();
    sandbox.write(
        "prowess.toml",
        "[runtime]\nplacement = \"system\"\n\n[runtime.listing]\nguidance = \"none\"\n",
    );
    prowess(&sandbox, &["call", "load_skill", r#"{"skill": "deploy"}"#]);
    let value = json_of(&prowess(&sandbox, &["prompt", "--json"]));
    assert_eq!(
        value["system"],
        "Available skills:\n- deploy: Deploys it.\n- review: Reviews it.\n\n[Loaded] deploy\n\n# Deploy\nDocs loaded: none"
    );
    assert_eq!(value["messages"][1]["parts"][0]["content"], "loaded: deploy");
}

/// The table of the second DeepAgents document: what 16,000 characters hold.
#[test]
fn a_budget_holds_what_the_document_promises() {
    for (length, promised) in [(100, 120), (150, 80), (200, 60), (263, 42)] {
        let sandbox = Sandbox::new();
        for at in 0..160 {
            let name = format!("skill-{at:03}");
            let text = skill(&name, &"d".repeat(length), "x");
            sandbox.write(&format!("skills/{name}/SKILL.md"), text);
        }
        let value = json_of(&prowess(&sandbox, &["budget", "--json"]));
        assert_eq!(value["budget"], json!({"amount": 16_000, "unit": "characters"}));
        let count = |key: &str| value[key].as_array().unwrap().len();
        assert!(count("shown") >= promised, "{length}: {}", count("shown"));
        assert_eq!(count("shown") + count("named") + count("counted"), 160);
        assert!(value["cost"].as_u64().unwrap() <= 16_000);
    }
}

#[test]
fn a_budget_can_be_tried_and_shows_who_eats_it() {
    let sandbox = project();
    let long = format!("---\nname: long\ndescription: {}\n---\nx", "d".repeat(80));
    sandbox.write("skills/long/SKILL.md", long);
    let run = prowess(&sandbox, &["budget", "80"]);
    insta::assert_snapshot!(run.stdout);
    let tokens = json_of(&prowess(&sandbox, &["budget", "1% of 2000", "--json"]));
    assert_eq!(tokens["budget"], json!({"amount": 20, "unit": "tokens"}));
    let wrong = prowess(&sandbox, &["budget", "much"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("write `16000`, `4000 tokens` or `2% of 200000`"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn replays_count_every_request_in_every_layout() {
    let sandbox = project();
    let missing = prowess(&sandbox, &["tokens", "--corpus", "nowhere", "--json"]);
    assert!(missing.stderr.contains("'late docs' is skipped: there is no corpus at nowhere"));
    let value = json_of(&missing);
    let scenarios = value["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 1, "one needs no corpus");
    let layouts = scenarios[0]["layouts"].as_array().unwrap();
    assert_eq!(layouts.len(), 10);
    for layout in layouts {
        let requests: Vec<u64> = layout["requests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tokens| tokens.as_u64().unwrap())
            .collect();
        assert_eq!(requests.len(), 5);
        assert_eq!(requests.iter().sum::<u64>(), layout["total"].as_u64().unwrap());
    }
    let cache = json_of(&prowess(&sandbox, &["cache", "--corpus", "nowhere", "--json"]));
    for (tokens, cached) in layouts.iter().zip(cache["scenarios"][0]["layouts"].as_array().unwrap())
    {
        let sum = cached["cached"].as_u64().unwrap() + cached["uncached"].as_u64().unwrap();
        assert_eq!(sum, tokens["total"].as_u64().unwrap(), "{}", tokens["layout"]);
    }
    let chart = prowess(&sandbox, &["tokens", "--corpus", "nowhere"]);
    assert!(chart.stdout.contains("tool_result session") && chart.stdout.contains('█'));
}

#[test]
fn the_load_tools_and_their_guidance_take_at_most_550_tokens() {
    let value = json_of(&prowess(&project(), &["tokens", "--corpus", "nowhere", "--json"]));
    let first = &value["scenarios"][0]["layouts"][0]["first_request"];
    let spent = first["tools"].as_u64().unwrap() + first["guidance"].as_u64().unwrap();
    assert!(spent <= 550, "{spent}");
    // Loaded text is no guidance, wherever it stands.
    let everything = &value["scenarios"][0]["layouts"][6];
    assert_eq!(everything["layout"], "everything, bodies only");
    assert_eq!(everything["first_request"]["guidance"], first["guidance"]);
}

/// Skills of the names, and about the lengths, that the built-in conversations use.
fn write_corpus(sandbox: &Sandbox) {
    let words = |count: usize| -> String {
        (0..count).map(|at| format!("word{} ", at * 7 % 1_009)).collect()
    };
    for (name, count) in [
        ("brand-guidelines", 300),
        ("frontend-design", 650),
        ("internal-comms", 220),
        ("mcp-builder", 1_200),
        ("theme-factory", 400),
        ("webapp-testing", 500),
        ("skill-creator", 4_000),
        ("canvas-design", 1_600),
    ] {
        let description = format!("Does {name}. Use it when {}.", words(30));
        sandbox.write(&format!("corpus/{name}/SKILL.md"), skill(name, &description, &words(count)));
    }
    sandbox.write("corpus/internal-comms/examples/3p-updates.md", words(450));
    sandbox.write("corpus/mcp-builder/reference/evaluation.md", words(2_800));
}

/// The two conversations of trpc-agent-go's benchmark, and two more, against its layouts.
#[test]
fn conversations_cost_less_than_in_the_layouts_of_others() {
    let sandbox = project();
    write_corpus(&sandbox);
    let corpus = sandbox.path().join("corpus").to_str().unwrap().to_owned();
    let tokens = json_of(&prowess(&sandbox, &["tokens", "--corpus", &corpus, "--json"]));
    let cache = json_of(&prowess(&sandbox, &["cache", "--corpus", &corpus, "--json"]));
    let number = |report: &Value, name: &str, layout: &str, key: &str| -> f64 {
        let scenarios = report["scenarios"].as_array().unwrap();
        let scenario = scenarios.iter().find(|it| it["name"] == name).unwrap();
        let layouts = scenario["layouts"].as_array().unwrap();
        layouts.iter().find(|it| it["layout"] == layout).unwrap()[key].as_f64().unwrap()
    };
    let six = |layout: &str| number(&tokens, "brand landing page", layout, "total");
    assert!(six("tool_result session") <= 0.8 * six("trpc-agent-go, system"));
    assert!(six("tool_result session") <= 0.1 * six("everything, with docs"));
    for name in ["brand landing page", "internal comms", "late docs", "three skills"] {
        let uncached = |layout: &str| number(&cache, name, layout, "uncached");
        let theirs = uncached("trpc-agent-go, system").min(uncached("trpc-agent-go, tool results"));
        let most = if name == "late docs" { 0.75 } else { 1.0 };
        assert!(uncached("tool_result session") <= most * theirs, "{name}");
    }
}

#[test]
fn a_conversation_of_ones_own_can_be_played_and_mistakes_are_told() {
    let sandbox = project();
    sandbox.write(
        "mine.toml",
        "name = \"mine\"\nabout = \"short\"\n[[skill]]\ntext = \"---\\nname: a\\ndescription: A.\\n---\\nText\"\n\
         [[turn]]\nuser = \"Hi\"\n[[turn.step]]\ntool = \"load_skill\"\narguments = '{\"skill\": \"a\"}'\n\
         [[turn.step]]\nsay = \"Done.\"\n",
    );
    let value = json_of(&prowess(&sandbox, &["tokens", "mine.toml", "--json"]));
    assert_eq!(value["scenarios"][0]["name"], "mine");
    sandbox.write("wrong.toml", "name = \"x\"\nabout = \"y\"\nturns = []\n");
    let wrong = prowess(&sandbox, &["tokens", "wrong.toml"]);
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.stderr.contains("wrong.toml") && wrong.stderr.contains("turns"),
        "{}",
        wrong.stderr
    );
}
