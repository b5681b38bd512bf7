//! The document of Eino's skill middleware, item by item, as documentation of what is here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use prowess::agent::{
    Agent, AgentHubOptions, ChatModel, Reply, RunRequest, ScriptedModel, SkillsMiddleware,
};
use prowess::catalog::{Catalog, CatalogSkill, DirectorySource, PairSource};
use prowess::format::{Context, Options, Skill};
use prowess::runtime::{
    BoxError, ContextMode, Customisation, Dialect, Message, SessionKey, ToolCall,
};
use prowess::toolkits::{Backend, BackendSource, LocalBackend};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

fn session() -> SessionKey {
    "test".parse().unwrap()
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A folder with three skills: inline, `fork`, `fork_with_context`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let skill = |name: &str, lines: &str, body: &str| {
        format!("---\nname: {name}\ndescription: Does {name}.\n{lines}---\n{body}\n")
    };
    let write = |path: &str, text: &str| write(folder.path(), path, text);
    write("pdf-processing/SKILL.md", &skill("pdf-processing", "", "Read the PDF."));
    write("pdf-processing/scripts/read.sh", "echo");
    write("web-research/SKILL.md", &skill("web-research", "context: fork\n", "Research it."));
    write(
        "review/SKILL.md",
        &skill("review", "context: fork_with_context\nmodel: small\n", "Review."),
    );
    folder
}

fn call(id: &str, skill: &str) -> ToolCall {
    ToolCall::new(id, "skill", json!({"skill": skill}))
}

/// A model that calls what it is told, and then is done.
fn calling(calls: impl IntoIterator<Item = ToolCall>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new([Reply::calls(calls), Reply::text("Done.")]))
}

fn middleware(folder: &TempDir) -> SkillsMiddleware {
    let catalog = Catalog::builder().source(DirectorySource::new(folder.path())).build();
    SkillsMiddleware::new(catalog).with_dialect(Dialect::named("eino").unwrap())
}

async fn run(model: &Arc<ScriptedModel>, skills: SkillsMiddleware) {
    let agent = Agent::builder(model.clone()).system("You are an agent.").middleware(skills);
    let agent = agent.build().unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
}

fn answer(model: &ScriptedModel, id: &str) -> String {
    let requests = model.requests();
    let results = requests.iter().rev().flat_map(|it| it.messages.iter());
    let mut results = results.flat_map(Message::tool_results).filter(|it| it.call_id == id);
    results.next().unwrap().content.clone()
}

fn sub_agent(model: &Arc<ScriptedModel>) -> HashMap<String, Agent> {
    let agent = Agent::builder(model.clone()).build().unwrap();
    HashMap::from([(String::new(), agent)])
}

/// FrontMatter: name, description, context, agent, model.
#[test]
fn front_matter_has_five_fields() {
    let text = "---\nname: a\ndescription: Does it.\ncontext: fork\nagent: writer\nmodel: small\n---\nBody";
    let parsed = Skill::parse(text, &Options::default());
    let matter = parsed.skill.unwrap().frontmatter;
    assert_eq!((matter.name(), matter.description()), (Some("a"), Some("Does it.")));
    assert_eq!(matter.context(), Some(Context::Fork));
    assert_eq!((matter.agent(), matter.model()), (Some("writer"), Some("small")));
}

/// ContextMode: `fork`, `fork_with_context`; nothing is inline.
#[tokio::test]
async fn context_modes_are_read_from_the_front_matter() {
    let folder = folder();
    let catalog = Catalog::builder().source(DirectorySource::new(folder.path())).build();
    let snapshot = catalog.refresh().await;
    let mode = |name: &str| ContextMode::of(snapshot.get(name).unwrap());
    assert_eq!(mode("pdf-processing"), None);
    assert_eq!(mode("web-research"), Some(ContextMode::Fork));
    assert_eq!(mode("review"), Some(ContextMode::ForkWithContext));
    assert_eq!(ContextMode::ForkWithContext.as_str(), "fork_with_context");
}

/// Progressive disclosure: names and descriptions first, the text when it is asked for.
#[tokio::test]
async fn discovery_activation_execution() {
    let folder = folder();
    let model = calling([call("1", "pdf-processing")]);
    run(&model, middleware(&folder)).await;
    let requests = model.requests();
    let tool = requests[0].tools.iter().find(|tool| tool.name == "skill").unwrap();
    let entry = "<skill>\n<name>\npdf-processing\n</name>\n<description>\nDoes pdf-processing.\n</description>\n</skill>";
    assert!(tool.description.contains(entry), "{}", tool.description);
    assert!(!tool.description.contains("Read the PDF."));
    // Inline: the text is the result, with an absolute base directory.
    let base = folder.path().canonicalize().unwrap().join("pdf-processing");
    let expected = format!(
        "Launching skill: pdf-processing\nBase directory for this skill: {}\n\nRead the PDF.",
        base.display()
    );
    assert_eq!(answer(&model, "1"), expected);
    assert!(base.is_absolute() && base.join("scripts/read.sh").exists());
}

/// `fork`: an isolated context with the text of the skill alone.
#[tokio::test]
async fn fork_begins_with_the_text_alone() {
    let folder = folder();
    let sub = Arc::new(ScriptedModel::new([Reply::text("Found it.")]));
    let model = calling([call("1", "web-research")]);
    run(&model, middleware(&folder).with_agents(sub_agent(&sub))).await;
    assert_eq!(sub.requests()[0].messages.len(), 1);
    let expected = "Skill \"web-research\" completed (sub-agent execution).\n\nResult:\nFound it.";
    assert_eq!(answer(&model, "1"), expected);
}

/// `fork_with_context`: the history, then the text as the result of the call; the model from the
/// `ModelHub`, handed to the `AgentHub`.
#[tokio::test]
async fn fork_with_context_copies_the_history_and_takes_the_model_of_the_hub() {
    let folder = folder();
    let small = Arc::new(ScriptedModel::new([Reply::text("Fine.")]).named("small"));
    let models = {
        let small = small.clone();
        move |name: &str| (name == "small").then(|| small.clone() as Arc<dyn ChatModel>)
    };
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let agents = {
        let asked = Arc::clone(&asked);
        move |name: &str, options: AgentHubOptions| {
            let model = options.model.ok_or("no model")?;
            asked.lock().unwrap().push(format!("{name:?} with {}", model.name()));
            Agent::builder(model).build().map_err(BoxError::from)
        }
    };
    let model = calling([call("1", "review")]);
    run(&model, middleware(&folder).with_agents(agents).with_models(models)).await;
    assert_eq!(*asked.lock().unwrap(), [r#""" with small"#], "the empty name is the default agent");
    let seen = &small.requests()[0].messages;
    assert_eq!((seen.len(), seen[0].text().as_str()), (3, "Go."));
    assert_eq!(seen[2].tool_results().next().unwrap().call_id, "1");
}

/// Config: every field of the document, with its default.
#[tokio::test]
async fn skill_tool_name_is_skill_or_what_the_host_says() {
    let folder = folder();
    let own = Customisation::new().skill_tool_name("use_skill");
    let model = calling([ToolCall::new("1", "use_skill", json!({"skill": "pdf-processing"}))]);
    run(&model, middleware(&folder).with_customisation(own)).await;
    assert!(answer(&model, "1").starts_with("Launching skill: pdf-processing"));
    let request = &model.requests()[0];
    assert!(request.tools.iter().all(|tool| tool.name != "skill"));
    assert!(request.system.contains("`use_skill`"), "the default prompt speaks of it");
    for name in ["", "two words"] {
        let own = Customisation::new().skill_tool_name(name);
        let agent =
            Agent::builder(calling([])).middleware(middleware(&folder).with_customisation(own));
        assert!(agent.build().is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn custom_system_prompt_takes_the_place_of_ours() {
    let folder = folder();
    let own = Customisation::new()
        .custom_system_prompt(|tool| async move { Ok(format!("Skills {{}}: call {tool}.")) });
    let model = calling([]);
    run(&model, middleware(&folder).with_customisation(own)).await;
    assert_eq!(model.requests()[0].system, "You are an agent.\n\nSkills {}: call skill.");
}

#[tokio::test]
async fn custom_tool_description_sees_all_skills_and_is_all_that_is_said() {
    let folder = folder();
    let own = Customisation::new().custom_tool_description(|skills| async move {
        let names: Vec<&str> = skills.iter().map(CatalogSkill::name).collect();
        Ok(format!("Run one of {}.", names.join(", ")))
    });
    let model = calling([call("1", "pdf-processing")]);
    run(&model, middleware(&folder).with_customisation(own)).await;
    for request in model.requests() {
        let tool = request.tools.iter().find(|tool| tool.name == "skill").unwrap();
        assert_eq!(tool.description, "Run one of pdf-processing, review, web-research.");
        assert!(!request.system.contains("<available_skills>"));
    }
}

#[tokio::test]
async fn custom_tool_params_always_keep_the_skill() {
    let folder = folder();
    type Schemas = Map<String, Value>;
    let params = |params: fn(Schemas) -> Result<Schemas, BoxError>| {
        Customisation::new().custom_tool_params(move |defaults| async move { params(defaults) })
    };
    let string = json!({"type": "string"});
    let with_skill = |mut defaults: Map<String, Value>| {
        defaults.insert("depth".to_owned(), json!({"type": "integer"}));
        Ok(defaults)
    };
    let without_skill = |_| Ok(Map::from_iter([("depth".to_owned(), json!({"type": "integer"}))]));
    let (skill, depth) = (&"skill".to_owned(), &"depth".to_owned());
    let table = [
        (params(|_| Ok(Map::new())), vec![skill]),
        (params(with_skill), vec![skill, depth]),
        (params(without_skill), vec![depth, skill]),
    ];
    for (own, expected) in table {
        let model =
            calling([ToolCall::new("1", "skill", json!({"skill": "pdf-processing", "depth": 2}))]);
        run(&model, middleware(&folder).with_customisation(own)).await;
        let requests = model.requests();
        let schema = &requests[0].tools.iter().find(|it| it.name == "skill").unwrap().parameters;
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!((names, &schema["required"]), (expected, &json!(["skill"])));
        assert_eq!(schema["properties"]["skill"]["type"], string["type"]);
        assert!(answer(&model, "1").starts_with("Launching skill"), "more arguments do no harm");
    }
    let own = params(|_| Err("not today".into()));
    let agent = Agent::builder(calling([])).middleware(middleware(&folder).with_customisation(own));
    let error = agent.build().unwrap().run(RunRequest::new(session(), "Go.")).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to build skill tool params: not today");
    assert_eq!(error.code(), "customisation_failed");
}

#[tokio::test]
async fn build_content_sees_the_skill_and_the_raw_arguments() {
    let folder = folder();
    let own = Customisation::new().build_content(|skill, arguments| async move {
        let SkillParts { name, base } = SkillParts::of(&skill);
        Ok(format!("{name} in {base}: {} with {arguments}", skill.content.trim()))
    });
    struct SkillParts {
        name: String,
        base: String,
    }
    impl SkillParts {
        fn of(skill: &prowess::runtime::SkillContent) -> Self {
            let base = Path::new(&skill.base_directory).file_name().unwrap();
            Self { name: skill.skill.name().to_owned(), base: base.display().to_string() }
        }
    }
    let arguments = json!({"skill": "pdf-processing", "page": 3});
    let model = calling([ToolCall::new("1", "skill", arguments)]);
    run(&model, middleware(&folder).with_customisation(own)).await;
    let expected = r#"pdf-processing in pdf-processing: Read the PDF. with {"skill":"pdf-processing","page":3}"#;
    assert_eq!(answer(&model, "1"), expected);
}

#[tokio::test]
async fn build_content_that_fails_fails_the_call_and_loads_nothing() {
    let folder = folder();
    let own = Customisation::new().build_content(|_, _| async { Err("no".into()) });
    let model = calling([call("1", "pdf-processing")]);
    let agent = Agent::builder(model.clone())
        .middleware(middleware(&folder).with_customisation(own))
        .build()
        .unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(answer(&model, "1"), "failed to build skill result: no");
    let state = agent.runtime().state(&session(), agent.name()).await.unwrap();
    assert!(state.loaded.is_empty());
}

/// SubAgentInput and SubAgentOutput have the fields of the document.
#[tokio::test]
async fn fork_messages_and_results_can_be_the_hosts_own() {
    let folder = folder();
    let sub = Arc::new(ScriptedModel::new([Reply::text("Found it.")]));
    let model = calling([call("1", "web-research")]);
    let skills = middleware(&folder)
        .with_agents(sub_agent(&sub))
        .build_fork_messages(|input| async move {
            assert_eq!(input.skill.name(), "web-research");
            assert_eq!((input.mode, input.tool_call_id.as_str()), (ContextMode::Fork, ""));
            assert!(input.history.is_empty());
            assert_eq!(input.raw_arguments, r#"{"skill":"web-research"}"#);
            assert!(input.skill_content.starts_with("Launching skill: web-research"));
            Ok(vec![Message::user("Begin.")])
        })
        .format_fork_result(|output| async move {
            assert_eq!((output.skill.name(), output.mode), ("web-research", ContextMode::Fork));
            assert_eq!(output.raw_arguments, r#"{"skill":"web-research"}"#);
            assert_eq!(output.messages.len(), 1);
            Ok(output.results.join("|"))
        });
    run(&model, skills).await;
    assert_eq!(sub.requests()[0].messages[0].text(), "Begin.");
    assert_eq!(answer(&model, "1"), "Found it.");
}

/// Backend: `List` and `Get` are enough; one that fails does not take the others with it.
#[tokio::test]
async fn a_list_and_a_get_are_a_backend() {
    let list = || async { Ok::<_, BoxError>(vec!["pdf-processing", "broken", "review"]) };
    let get = |name: String| async move {
        match name.as_str() {
            "broken" => Err("out of order"),
            name => Ok(format!("---\nname: {name}\ndescription: Does {name}.\n---\nText.\n")),
        }
    };
    let catalog = Catalog::builder().source(PairSource::from_fns("team", list, get)).build();
    let snapshot = catalog.refresh().await;
    let names: Vec<&str> = snapshot.skills().iter().map(CatalogSkill::name).collect();
    assert_eq!(names, ["pdf-processing", "review"]);
    let said = format!("{:?}", snapshot.diagnostics());
    assert!(said.contains("broken") && said.contains("out of order"), "{said}");
}

/// NewBackendFromFilesystem: first-level folders of a backend; deeper ones and the root itself are
/// ignored; a folder that is not there is empty.
#[tokio::test]
async fn a_filesystem_backend_reads_first_level_folders() {
    let folder = folder();
    write(folder.path(), "SKILL.md", "---\nname: root\ndescription: R.\n---\n");
    write(folder.path(), "group/deep/SKILL.md", "---\nname: deep\ndescription: D.\n---\n");
    let backend: Arc<dyn Backend> = Arc::new(LocalBackend::new(folder.path()).unwrap());
    for (base, expected) in
        [("/", vec!["pdf-processing", "review", "web-research"]), ("/nowhere", vec![])]
    {
        let source = BackendSource::new(Arc::clone(&backend), base).unwrap();
        let snapshot = Catalog::builder().source(source).build().refresh().await;
        let names: Vec<&str> = snapshot.skills().iter().map(CatalogSkill::name).collect();
        assert_eq!(names, expected, "{base}");
    }
}
