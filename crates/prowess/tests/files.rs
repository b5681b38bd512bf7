//! Files and skills in one agent: the integration row 1 of the second DeepAgents document, and
//! skills that an agent writes itself.

use std::sync::Arc;

use prowess::agent::{Agent, Reply, RunRequest, ScriptedModel, SkillsMiddleware};
use prowess::catalog::{Catalog, Trust};
use prowess::runtime::{Dialect, Message, ToolCall};
use prowess::toolkits::{
    BackendSource, CompositeBackend, FilesToolkit, LocalBackend, MemoryBackend,
};
use serde_json::json;

const TEXT: &str = "---\nname: deploy\ndescription: Deploys.\n---\nFollow references/steps.md.\n";

/// What the tools said, in order.
fn results(messages: &[Message]) -> Vec<(bool, String)> {
    let all = messages.iter().flat_map(Message::tool_results);
    all.map(|result| (result.is_error, result.content.clone())).collect()
}

/// Row 1: `load_skill` and `read_file` coexist: first a skill is loaded, then one of its resources
/// is read, by the path that the model was shown.
#[tokio::test]
async fn row_1_a_skill_is_loaded_and_its_resource_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join("skills/deploy");
    std::fs::create_dir_all(skill.join("references")).unwrap();
    std::fs::write(skill.join("SKILL.md"), TEXT).unwrap();
    std::fs::write(skill.join("references/steps.md"), "1. Build.\n2. Ship.\n").unwrap();
    let backend = LocalBackend::new(folder.path()).unwrap();
    let source = BackendSource::new(backend.clone(), "/skills").unwrap();
    let catalog = Catalog::builder().source(source.with_trust(Trust::Trusted)).build();
    let read = |path: &str| json!({"file_path": path});
    let replies = [
        Reply::calls([ToolCall::new("1", "load_skill", json!({"skill_name": "deploy"}))]),
        Reply::calls([
            ToolCall::new("2", "read_file", read("/skills/deploy/references/steps.md")),
            ToolCall::new("3", "read_file", read("/skills/deploy/SKILL.md")),
        ]),
        Reply::text("Deployed."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let dialect = Dialect::named("deepagents").unwrap();
    let agent = Agent::builder(model.clone())
        .middleware(SkillsMiddleware::new(catalog).with_dialect(dialect))
        .engine(|engine| engine.toolkit(Arc::new(FilesToolkit::on(backend))))
        .build()
        .unwrap();
    let outcome = agent.run(RunRequest::new("test".parse().unwrap(), "Deploy.")).await.unwrap();
    assert_eq!(outcome.text(), "Deployed.");
    let requests = model.requests();
    let names: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    for name in ["load_skill", "read_file", "ls", "glob", "grep", "write_file", "edit_file"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.contains(&"execute"), "{names:?}");
    let told = results(&requests[2].messages);
    assert!(
        !told[0].0 && told[0].1.contains("/skills/deploy/references/steps.md"),
        "{}",
        told[0].1
    );
    assert_eq!(told[1], (false, "1. Build.\n2. Ship.\n".to_owned()));
    // Reading the text as a file is no loading, and no error.
    assert_eq!(told[2], (false, TEXT.to_owned()));
}

/// What an agent writes into its skills is a skill in the next turn: the model is told, and can
/// load it, but it is not trusted.
#[tokio::test]
async fn a_skill_that_the_agent_wrote_can_be_loaded_in_the_next_turn() {
    let backend = CompositeBackend::new(MemoryBackend::new());
    let backend = backend.mount("/skills/", MemoryBackend::new()).unwrap();
    let source = BackendSource::new(backend.clone(), "/skills/").unwrap();
    let catalog = Catalog::builder().source(source).build();
    let write = json!({"file_path": "/skills/deploy/SKILL.md", "content": TEXT});
    let steps = json!({"path": "skills/deploy/references/steps.md", "content": "1. Build.\n"});
    let replies = [
        Reply::calls([
            ToolCall::new("1", "write_file", write),
            ToolCall::new("2", "write_file", steps),
        ]),
        Reply::text("Written."),
        Reply::calls([ToolCall::new("3", "load_skill", json!({"skill": "deploy"}))]),
        Reply::text("Loaded."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent = Agent::builder(model.clone())
        .middleware(SkillsMiddleware::new(catalog.clone()))
        .engine(|engine| engine.toolkit(Arc::new(FilesToolkit::on(backend))))
        .build()
        .unwrap();
    let session = || "test".parse().unwrap();
    agent.run(RunRequest::new(session(), "Write down how to deploy.")).await.unwrap();
    let snapshot = catalog.refresh().await;
    assert_eq!(snapshot.get("deploy").unwrap().trust(), Trust::Untrusted);
    agent.run(RunRequest::new(session(), "Deploy.")).await.unwrap();
    let requests = model.requests();
    let told = results(&requests[1].messages);
    assert_eq!(told[0], (false, format!("Created /skills/deploy/SKILL.md ({} bytes)", TEXT.len())));
    // What was sent stays; the news is appended.
    assert!(!requests[0].system.contains("deploy"));
    assert_eq!(requests[2].system, requests[0].system);
    let is_told = |message: &Message| message.text().contains("- deploy: Deploys.");
    assert!(!requests[1].messages.iter().any(is_told));
    assert!(requests[2].messages.iter().any(is_told), "{:?}", requests[2].messages);
    let loaded = results(&requests[3].messages);
    let (is_error, content) = loaded.last().unwrap();
    assert!(!is_error && content.contains("Follow references/steps.md."), "{content}");
}
