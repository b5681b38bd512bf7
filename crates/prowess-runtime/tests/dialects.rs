//! Five dialects and a sixth: the same engine in other words.

mod support;

use std::fs;
use std::path::Path;

use prowess_catalog::{Catalog, DirectorySource};
use prowess_runtime::{
    AgentName, Dialect, DialectError, Exposure, ListingMode, ListingSlot, LoadMode, Message, Part,
    Placement, PromptRequest, Role, Runtime, SessionKey, ToolCall, TurnRequest,
};
use serde_json::{Value, json};
use support::{Plan, World, echo};

const SQL: &str = "---
name: write_sql
description: Writes queries.
allowed-tools: Read Bash(sqlite3:*)
license: MIT
argument-hint: \"[table]\"
metadata:
  title: SQL Query Expert
  include_tools: sql_query
---

# SQL

Write it.
";

fn plan(dialect: &str) -> Plan {
    Plan::new()
        .dialect(Dialect::named(dialect).unwrap())
        .file("write_sql/SKILL.md", SQL)
        .file("write_sql/references/joins.md", "Join well.")
        .file("write_sql/scripts/run.sh", "echo")
        .file("write_sql/notes/x.txt", "A note.")
        .file(
            "deploy/SKILL.md",
            "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\nGo.\n",
        )
        .skill("a-note", "Note it.\n")
        .change(|builder| builder.tool(echo("sql_query")).tool(echo("read_file")))
}

/// The words of each dialect for loading a skill.
fn load(dialect: &str) -> (&'static str, &'static str) {
    match dialect {
        "deepagents" => ("load_skill", "skill_name"),
        "trpc" => ("skill_load", "skill"),
        "eino" => ("skill", "skill"),
        "langchain_docker" => ("load_skill", "skill_id"),
        _ => ("load_skill", "skill"),
    }
}

/// A prompt as people would read it, without the folder that is another one each time.
async fn shown(world: &World) -> String {
    let request = PromptRequest::new().with_system("You are a tester.");
    let prompt = world.runtime.prompt(&world.session, &world.agent, request).await.unwrap();
    let mut out = format!("── system ──\n{}\n\n── tools ──\n", prompt.system);
    for tool in prompt.tools.iter() {
        out.push_str(&format!("{}\n{}\n{}\n\n", tool.name, tool.description, tool.parameters));
    }
    for message in prompt.messages.iter() {
        let role = match message.role {
            Role::Tool => "tool",
            Role::User => "user",
            Role::Assistant => "assistant",
            _ => "system",
        };
        out.push_str(&format!("── {role} ──\n"));
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    out.push_str(&format!("{} {}\n", call.name, call.arguments));
                }
                Part::ToolResult(result) => out.push_str(&format!("{}\n", result.content)),
                _ => out.push_str(&format!("{}\n", message.text())),
            }
        }
    }
    let folder = fs::canonicalize(world.folder.path()).unwrap().display().to_string();
    let label = prowess_catalog::label_of(world.folder.path());
    out.replace(&folder, "/skills").replace(&label, "Test")
}

#[tokio::test]
async fn the_whole_prompt_of_each_dialect() {
    for name in Dialect::names() {
        let world = plan(name).build();
        let begin = TurnRequest::new().with_message(Message::user("How many customers?"));
        world.runtime.begin_turn(&world.session, &world.agent, begin).await.unwrap();
        insta::assert_snapshot!(format!("{name}_before"), shown(&world).await);
        let (tool, parameter) = load(name);
        let outcome = world.call(tool, json!({parameter: "write_sql"})).await;
        assert_eq!(outcome.code, "loaded", "{name}: {}", outcome.content);
        insta::assert_snapshot!(format!("{name}_after"), shown(&world).await);
    }
}

#[tokio::test]
async fn each_dialect_fixes_its_tools_names_and_defaults() {
    use ListingMode::{Live, Stable};
    use ListingSlot::{SystemPrompt, ToolDescription};
    type Row = (
        &'static str,
        &'static [&'static str],
        LoadMode,
        Placement,
        ListingMode,
        ListingSlot,
        Exposure,
    );
    let prowess: &[&str] = &[
        "list_loaded_skills",
        "load_skill",
        "load_skill_detail",
        "skill_list_docs",
        "skill_select_docs",
        "unload_skill",
    ];
    let table: [Row; 5] = [
        (
            "prowess",
            prowess,
            LoadMode::Session,
            Placement::ToolResult,
            Stable,
            SystemPrompt,
            Exposure::OnLoad,
        ),
        (
            "deepagents",
            &["load_skill"],
            LoadMode::Session,
            Placement::ToolResult,
            Live,
            SystemPrompt,
            Exposure::Declared,
        ),
        (
            "trpc",
            &["skill_list_docs", "skill_load", "skill_select_docs"],
            LoadMode::Turn,
            Placement::System,
            Stable,
            SystemPrompt,
            Exposure::OnLoad,
        ),
        (
            "eino",
            &["skill"],
            LoadMode::Session,
            Placement::ToolResult,
            Stable,
            ToolDescription,
            Exposure::OnLoad,
        ),
        (
            "langchain_docker",
            &["list_loaded_skills", "load_skill", "load_skill_detail"],
            LoadMode::Session,
            Placement::ToolResult,
            Live,
            SystemPrompt,
            Exposure::Declared,
        ),
    ];
    assert_eq!(Dialect::names().collect::<Vec<_>>(), table.map(|row| row.0));
    for (name, tools, load_mode, placement, mode, slot, exposure) in table {
        let world = Plan::new().dialect(Dialect::named(name).unwrap()).skill("a", "A").build();
        let settings = world.runtime.settings();
        assert_eq!((settings.load_mode, settings.placement), (load_mode, placement), "{name}");
        assert_eq!((settings.listing.mode, settings.listing.slot), (mode, slot), "{name}");
        assert_eq!(settings.exposure, exposure, "{name}");
        let request = PromptRequest::new();
        let prompt = world.runtime.prompt(&world.session, &world.agent, request).await.unwrap();
        let names: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, tools, "{name}");
        for other in prowess.iter().filter(|tool| !tools.contains(tool)) {
            assert_eq!(world.call(other, json!({})).await.code, "unknown_tool", "{name} {other}");
        }
    }
}

#[tokio::test]
async fn a_listing_in_discovery_order_passes_over_what_does_not_fit() {
    let skill = |name: &str, length: usize| {
        format!("---\nname: {name}\ndescription: {}\n---\nx\n", "d".repeat(length))
    };
    // The folders decide, not the names.
    let world = Plan::new()
        .dialect(Dialect::named("deepagents").unwrap())
        .file("1/zebra/SKILL.md", skill("zebra", 10))
        .file("2/long/SKILL.md", skill("long", 400))
        .file("3/apple/SKILL.md", skill("apple", 10))
        .file("4/last/SKILL.md", skill("last", 10))
        .set(|mut settings| {
            // Exactly two entries of ten characters, and not one character more.
            let guide = "\n  -> Use `load_skill(\"\")` to read full instructions";
            let entry = |name: &str| format!("- **{name}**: dddddddddd{guide}{name}").len();
            settings.listing.budget =
                prowess_runtime::Budget::Characters(entry("zebra") + entry("apple"));
            settings
        })
        .build();
    let listing = world.runtime.listing(&world.session, &world.agent).await.unwrap();
    let shown: Vec<&str> = listing.shown.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(shown, ["zebra", "apple"]);
    assert_eq!(listing.cost, listing.budget);
    assert!(listing.text.contains(
        "\n\n(2 additional skill(s) not shown due to description budget limit. Use `ls` to browse \
         skill directories for a complete list.)"
    ));
    // What is not shown can still be loaded.
    assert_eq!(world.call("load_skill", json!({"skill_name": "long"})).await.code, "loaded");
    let listing = world.runtime.listing(&world.session, &world.agent).await.unwrap();
    assert_eq!(listing.shown[0].name, "long", "what is loaded comes first, and is exempt");
    assert_eq!(listing.shown.len(), 3);
}

#[tokio::test]
async fn a_skill_that_hides_another_stands_in_its_place() {
    let (low, high) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |root: &Path, name: &str, about: &str| {
        fs::create_dir_all(root.join(name)).unwrap();
        fs::write(root.join(name).join("SKILL.md"), support::skill(name, about, "x")).unwrap();
    };
    write(low.path(), "both", "Low.");
    write(low.path(), "low-only", "L.");
    write(high.path(), "a-high", "H.");
    write(high.path(), "both", "High.");
    let source = |folder: &Path| DirectorySource::new(folder);
    let catalog = Catalog::builder().source(source(low.path())).source(source(high.path())).build();
    let dialect = Dialect::named("deepagents").unwrap();
    let runtime = Runtime::builder(catalog).dialect(dialect).build().unwrap();
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let listing = runtime.listing(&session, &agent).await.unwrap();
    let shown: Vec<&str> = listing.shown.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(shown, ["both", "low-only", "a-high"]);
    assert!(listing.text.contains("- **both**: High."));
    assert!(listing.text.contains(" (higher priority)"));
}

#[tokio::test]
async fn models_that_mix_up_names_are_understood_and_the_right_name_is_told() {
    for name in Dialect::names() {
        let (tool, parameter) = load(name);
        for word in ["skill", "skill_name", "skill_id"] {
            let world = plan(name).build();
            assert_eq!(world.call(tool, json!({word: "a-note"})).await.code, "loaded", "{name}");
        }
        let world = plan(name).build();
        let outcome = world.call(tool, json!({})).await;
        let expected = format!("{parameter} is required");
        assert!(outcome.content.ends_with(&expected), "{name}: {}", outcome.content);
    }
}

#[tokio::test]
async fn a_parameter_that_a_dialect_does_not_have_is_ignored_and_that_is_said() {
    let world = plan("langchain_docker").build();
    let arguments = json!({"skill_id": "write_sql", "docs": ["references/joins.md"]});
    let outcome = world.call("load_skill", arguments).await;
    assert!(!outcome.content.contains("Join well."));
    assert_eq!(outcome.hint.as_deref(), Some("Ignored arguments: docs"));
}

#[tokio::test]
async fn where_loaded_text_stands_in_the_system_prompt_a_result_is_short() {
    let world = plan("trpc").build();
    let load = json!({"skill": "write_sql"});
    let outcome = world.call("skill_load", load.clone()).await;
    assert_eq!(outcome.content, "loaded: write_sql");
    assert_eq!(world.call("skill_load", load).await.content, "loaded: write_sql");
    let select = json!({"skill": "write_sql", "docs": ["references/joins.md"]});
    let outcome = world.call("skill_select_docs", select).await;
    let expected = r#"{"skill":"write_sql","selected_docs":["references/joins.md"],"include_all_docs":false,"mode":"replace"}"#;
    assert_eq!(outcome.content, expected);
    let prompt = shown(&world).await;
    assert!(prompt.contains("[Loaded] write_sql\n\n# SQL"));
    assert!(prompt.contains("[Doc] references/joins.md\n\nJoin well."));
    assert_eq!(prompt.matches("Join well.").count(), 1);
    let none = world.call("skill_load", json!({"skill": "nope"})).await;
    assert_eq!(none.content, "unknown skill: nope");
    // The next turn begins without it.
    let begin = TurnRequest::new();
    world.runtime.begin_turn(&world.session, &world.agent, begin).await.unwrap();
    assert!(!shown(&world).await.contains("[Loaded] write_sql"));
}

#[tokio::test]
async fn a_detail_is_seen_wherever_loaded_text_stands() {
    for placement in [Placement::ToolResult, Placement::System] {
        let world = plan("prowess").set(|it| it.with_placement(placement)).build();
        world.load("write_sql").await;
        let ask = json!({"skill": "write_sql", "resource": "references/joins.md"});
        assert_eq!(world.call("load_skill_detail", ask).await.content, "Join well.");
        assert!(shown(&world).await.contains("── tool ──\nJoin well.\n"), "{placement:?}");
    }
}

#[tokio::test]
async fn a_session_can_change_its_dialect() {
    let world = plan("prowess").build();
    world.load("a-note").await;
    let eino = Runtime::builder(world.catalog.clone())
        .sessions(world.runtime.sessions().clone())
        .content(world.runtime.content().clone())
        .dialect(Dialect::named("eino").unwrap())
        .build()
        .unwrap();
    let request = PromptRequest::new();
    let prompt = eino.prompt(&world.session, &world.agent, request).await.unwrap();
    assert!(prompt.tools[0].description.contains("<available_skills>\n<skill>\n<name>\na-note\n"));
    assert!(prompt.problems.is_empty());
    // What was sent in the other dialect stays, too.
    let ask = async || {
        eino.request(&world.session, &world.agent, PromptRequest::new()).await.unwrap().tools
    };
    let sent = ask().await;
    world.write("late/SKILL.md", support::skill("late", "Comes late.", "x"));
    world.catalog.refresh().await;
    assert_eq!(ask().await, sent);
    let turn = eino.begin_turn(&world.session, &world.agent, TurnRequest::new()).await.unwrap();
    assert!(turn.messages[0].text().contains("late"), "{turn:?}");
    assert_eq!(ask().await, sent);
}

/// A dialect of a host, from a file.
const SIXTH: &str = r#"
name = "pirate"

[settings]
max_loaded_skills = 1
[settings.listing]
slot = "tool_description"

[tools.load_skill]
name = "hoist"
description = "Hoist a skill."
parameters.skill = { name = "flag", description = "Which." }
parameters.arguments = { name = "orders", description = "What for." }

[tools.unload_skill]
name = "strike"
description = "Strike a skill."
parameters.skill = { name = "flag", description = "Which." }

[outcomes.loaded]
text = "Arr! {{ skill }}: {{ body | lines }}"
stub = "arr {{ skill }}"

[blocks]
listing_entry = "* {{ name }} ~ {{ description }}"
"#;

#[tokio::test]
async fn a_sixth_dialect_comes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pirate.toml");
    fs::write(&path, SIXTH).unwrap();
    let dialect = Dialect::find(path.to_str().unwrap()).unwrap();
    assert_eq!((dialect.name(), dialect.tool("skill_list_docs")), ("pirate", None));
    assert_eq!(dialect.parameter("load_skill", "arguments"), Some("orders"));
    let world = Plan::new().dialect(dialect).skill("a", "Do $ARGUMENTS.\n").skill("b", "B").build();
    let outcome = world.call("hoist", json!({"flag": "a", "orders": "it"})).await;
    assert_eq!(outcome.content, "Arr! a: Do it.");
    assert_eq!(outcome.stub.as_deref(), Some("arr a"));
    // What it does not say, the default says, with its names.
    let full = world.call("hoist", json!({"flag": "b"})).await;
    assert!(full.content.starts_with("Error: Cannot load skill 'b'. Maximum number"));
    let hint = "Unload a skill that is not needed any more with strike.";
    assert_eq!(full.hint.as_deref(), Some(hint));
    assert_eq!(world.call("strike", json!({"flag": "a"})).await.code, "unloaded");
    let request = PromptRequest::new();
    let prompt = world.runtime.prompt(&world.session, &world.agent, request).await.unwrap();
    assert_eq!(prompt.tools.len(), 2);
    let expected = "Hoist a skill.\n\nAvailable skills:\n* a ~ Does a.\n* b ~ Does b.";
    assert_eq!(prompt.tools[0].description, expected);
    assert!(prompt.system.contains("load it with hoist before you begin"));
}

#[test]
fn a_dialect_that_cannot_be_used_says_why() {
    let tool = "[tools.load_skill]\ndescription = \"L\"\nparameters.skill.description = \"S\"\n";
    let table: [(String, &str); 18] = [
        ("name = 7".to_owned(), "the dialect cannot be read"),
        ("name = \"x\"\n".to_owned(), "missing field `tools`"),
        (format!("{tool}[tools.hoist]\ndescription = \"H\"\n"), "missing field `name`"),
        (format!("name = \"x\"\n{tool}[tools.load_skil]\ndescription = \"\"\n"), "did you mean 'load_skill'?"),
        ("name = \"x\"\n[tools.unload_skill]\ndescription = \"U\"\nparameters.skill.description = \"S\"\n".to_owned(), "without the load tool 'load_skill'"),
        ("name = \"x\"\n[tools.load_skill]\ndescription = \"L\"\n".to_owned(), "needs its parameter 'skill'"),
        (format!("name = \"x\"\n{tool}parameters.colour.description = \"C\"\n"), "has no parameter 'colour'"),
        (format!("name = \"x\"\n{tool}parameters.docs = {{ name = \"skill\", description = \"D\" }}\n"), "same name"),
        (format!("name = \"x\"\n{tool}[tools.unload_skill]\nname = \"load_skill\"\ndescription = \"U\"\nparameters.skill.description = \"S\"\n"), "two load tools are called 'load_skill'"),
        (format!("name = \"x\"\n{tool}[outcomes.laoded]\ntext = \"\"\n"), "did you mean 'loaded'?"),
        (format!("name = \"x\"\n{tool}[blocks]\nlisting = \"{{{{ open\"\n"), "the text for 'block.listing' cannot be used"),
        (format!("name = \"x\"\n{tool}name = \"open it\"\n"), "no model can say 'open it'"),
        (format!("name = \"x\"\n{tool}name = \"{}\"\n", "x".repeat(65)), "use at most 64 letters"),
        (format!("name = \"x\"\n{tool}parameters.docs = {{ name = \"d'\", description = \"D\" }}\n"), "no model can say 'd''"),
        (format!("name = \"x\"\n{tool}[outcomes.loaded]\ntext = \"{{{{ boddy }}}}\"\n"), "nothing is known of 'boddy'; did you mean 'body'?"),
        (format!("name = \"x\"\n{tool}[outcomes.unloaded]\ntext = \"x\"\nhint = \"{{{{ q }}}}\"\n"), "the text for 'unloaded.hint' cannot be used"),
        (format!("name = \"x\"\n{tool}[blocks]\nlisting = \"Skills: none\"\n"), "it does not hold {{ entries }}"),
        (format!("name = \"x\"\n{tool}[settings]\nload_mode = \"forever\"\n"), "the settings of dialect 'x' cannot be used"),
    ];
    for (text, expected) in table {
        let error = Dialect::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
    let error = Dialect::find("klingon").unwrap_err();
    assert!(matches!(&error, DialectError::Unknown { name } if name == "klingon"));
    assert!(error.to_string().contains("deepagents, trpc, eino"));
    assert!(matches!(Dialect::find("./no.toml"), Err(DialectError::Unreadable { .. })));
    let longest = format!("name = \"x\"\n{tool}name = \"{}\"\n", "x".repeat(64));
    assert!(Dialect::parse(&longest).is_ok());
    // In a file, the file is named too.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    fs::write(&path, "name = 7").unwrap();
    let error = Dialect::find(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("wrong.toml: the dialect cannot be read"), "{error}");
}

#[test]
fn settings_of_a_host_go_over_those_of_the_dialect() {
    let dialect = Dialect::named("trpc").unwrap();
    let table = toml::from_str("load_mode = \"session\"\n[listing]\nbudget = 9\n").unwrap();
    let settings = dialect.settings_with(&table).unwrap();
    assert_eq!(settings.load_mode, LoadMode::Session);
    assert_eq!(settings.placement, Placement::System, "what the host does not say stays");
    assert_eq!(settings.listing.budget, prowess_runtime::Budget::Characters(9));
}

/// Nothing but the dialect itself knows which one is on.
#[test]
fn no_code_asks_which_dialect_is_on() {
    fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, found),
                false => found.push(path),
            }
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&source, &mut found);
    let outside = |path: &std::path::PathBuf| {
        let place = path.strip_prefix(&source).unwrap();
        // States of other systems are their forms, not their words.
        !place.starts_with("dialect")
            && !place.starts_with("interop")
            && place != Path::new("lib.rs")
    };
    let mut checked = 0;
    for path in found.iter().filter(|path| outside(path)) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            // The name of the default one is also that of the program.
            for name in Dialect::names().skip(1) {
                let asks = line.contains(&format!("\"{name}\"")) || line.contains("dialect.name()");
                assert!(!asks, "{}: {line}", path.display());
            }
        }
        checked += 1;
    }
    assert!(checked > 30, "the files were found");
}

/// Everything that the model reads about a call comes from the dialect.
#[tokio::test]
async fn the_same_call_says_the_same_thing_in_other_words() {
    let mut codes: Vec<Vec<String>> = Vec::new();
    for name in Dialect::names() {
        let world = plan(name).build();
        let (tool, parameter) = load(name);
        let mut seen = Vec::new();
        for argument in ["a-note", "a-note", "nope", "deploy"] {
            let call =
                ToolCall::new(format!("c{}", seen.len()), tool, json!({parameter: argument}));
            let outcome = world.runtime.dispatch(&world.session, &world.agent, call).await.unwrap();
            seen.push(outcome.code.to_string());
        }
        let gated: Value = json!({});
        seen.push(world.call("sql_query", gated).await.code.to_string());
        codes.push(seen);
    }
    let expected =
        ["loaded", "already_loaded", "skill_not_found", "manual_only", "skill_not_loaded"];
    for codes in codes {
        assert_eq!(codes, expected);
    }
}
