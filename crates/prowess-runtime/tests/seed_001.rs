//! The test table of the second DeepAgents document (31 unit rows, 6 integration rows): one
//! function per row that concerns state, loading and resources, named after the row.
//!
//! Open, because they concern parts that come later:
//! - policy: `allowed_tools_recommend_mode_passthrough`, `…_restrict_mode_allows_listed`,
//!   `…_restrict_mode_blocks_unlisted`, `…_whitelist_always_allowed`, `…_custom_whitelist`,
//!   `…_no_loaded_skills_passthrough`, `…_no_restrictions_defined_passthrough`,
//!   `…_multi_skill_union`, `default_policy_is_recommend`; integration row 5;
//! - listing, whose behaviour `listing.rs` holds (`a_live_listing_marks_what_is_loaded…` for
//!   `…_with_loaded_status`, `…_with_resources` and `…_loaded_skills_exempt_from_budget`,
//!   `what_does_not_fit_is_named…` for `…_description_budget_exceeded` and integration row 6) and
//!   whose words follow with the dialect: `format_skills_list_load_skill_guidance`; integration
//!   row 4;
//! - the agent: integration row 3 (summarization).

mod support;

use prowess_catalog::{Catalog, FoundSkill, MemorySource, ResourceListing, ResourcePath};
use prowess_catalog::{ReadError, ResourceScope, Source, SourceFuture, SourceInfo, SourceListing};
use prowess_runtime::{
    AgentName, EventKind, Runtime, SessionKey, Settings, ToolCall, ToolDeclaration, ToolOutcome,
    TurnRequest, tool_fn,
};
use serde_json::json;
use std::sync::Arc;
use support::{Plan, World, resources, skill};

fn with_resources() -> Plan {
    Plan::new()
        .skill("deploy", "Deploy it.\n")
        .file("deploy/scripts/run.sh", "echo run")
        .file("deploy/references/guide.md", "# Guide")
        .file("deploy/assets/logo.svg", "<svg/>")
}

// Resource discovery

#[tokio::test]
async fn discover_resources_standard_dirs() {
    let world = with_resources().build();
    world.load("deploy").await;
    assert_eq!(
        resources(&world.state().await, "deploy"),
        [
            ("assets/logo.svg".to_owned(), "asset"),
            ("references/guide.md".to_owned(), "reference"),
            ("scripts/run.sh".to_owned(), "script"),
        ]
    );
}

#[tokio::test]
async fn discover_resources_empty_skill() {
    let world = Plan::new().skill("plain", "Nothing more.\n").build();
    let outcome = world.load("plain").await;
    assert_eq!(outcome.content, "Nothing more.");
    assert!(resources(&world.state().await, "plain").is_empty());
}

/// A source whose folders cannot be listed.
struct Unlistable(MemorySource);

impl Source for Unlistable {
    fn info(&self) -> &SourceInfo {
        self.0.info()
    }
    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        self.0.list()
    }
    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        self.0.read(skill)
    }
    fn resources<'a>(
        &'a self,
        _: &'a FoundSkill,
        _: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        let cause = std::io::Error::other("the backend has no ls");
        Box::pin(std::future::ready(Err(ReadError::Io { path: "deploy".to_owned(), cause })))
    }
    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        self.0.read_resource(skill, path)
    }
}

#[tokio::test]
async fn discover_resources_backend_error() {
    let text = skill("deploy", "Deploys.", "Deploy it.\n");
    let source = Unlistable(MemorySource::new("memory").with_skill("deploy", text));
    let runtime = Runtime::builder(Catalog::builder().source(source).build()).build().unwrap();
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let call = ToolCall::new("1", "load_skill", json!({"skill_name": "deploy"}));
    let outcome = runtime.dispatch(&session, &agent, call).await.unwrap();
    // The skill is there; that its resources are not is said.
    assert_eq!((outcome.is_error, outcome.content.as_str()), (false, "Deploy it."));
    let state = runtime.state(&session, &agent).await.unwrap();
    assert!(state.loaded("deploy").unwrap().resources.is_empty());
    let events = runtime.sessions().events(&session, 0, 100).await.unwrap();
    let warned = events.iter().find(|event| event.kind == EventKind::ResourcesUnlisted).unwrap();
    assert!(warned.message.starts_with("Failed to list resources for skill 'deploy'"));
}

#[tokio::test]
async fn discover_resources_non_standard_dirs_ignored() {
    // The strict three-folder mode of the `deepagents` dialect; the default mode sees more.
    let world = with_resources().file("deploy/temp/junk.txt", "junk").build();
    let snapshot = world.catalog.refresh().await;
    let found = snapshot.get("deploy").unwrap();
    let listing = found.resources(ResourceScope::ThreeFolders).await.unwrap();
    let paths: Vec<&str> = listing.resources.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["assets/logo.svg", "references/guide.md", "scripts/run.sh"]);
}

#[tokio::test]
async fn discover_resources_root_level_files() {
    let world = Plan::new().skill("deploy", "x").file("deploy/template.md", "t").build();
    world.load("deploy").await;
    let found = resources(&world.state().await, "deploy");
    assert_eq!(found, [("template.md".to_owned(), "other")]);
}

// State

#[tokio::test]
async fn before_agent_initializes_new_state() {
    let world = with_resources().build();
    let turn = world.runtime.begin_turn(&world.session, &world.agent, TurnRequest::new()).await;
    assert_eq!(turn.unwrap().number, 1);
    let state = world.state().await;
    assert_eq!(state.skills.map(|skills| skills.count), Some(1));
    assert!(state.loaded.is_empty(), "nothing is loaded, and no resources are known");
    let found = world.events_of(EventKind::SkillsDiscovered);
    assert_eq!(found[0].message, "Discovered 1 skill from 1 source");
}

#[tokio::test]
async fn before_agent_idempotent() {
    let world = with_resources().build();
    let begin = || world.runtime.begin_turn(&world.session, &world.agent, TurnRequest::new());
    begin().await.unwrap();
    world.load("deploy").await;
    let before = world.state().await;
    world.write("other/SKILL.md", skill("other", "Other.", "x"));
    world.catalog.refresh().await;
    world.events();
    begin().await.unwrap();
    let after = world.state().await;
    assert_eq!((after.skills, &after.loaded), (before.skills, &before.loaded));
    assert!(world.events_of(EventKind::SkillsDiscovered).is_empty());
}

// load_skill

#[tokio::test]
async fn load_skill_returns_command_with_content() {
    let outcome = with_resources().build().load("deploy").await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("loaded", false));
    assert!(outcome.content.starts_with("Deploy it."));
    assert!(outcome.content.contains("**Skill Resources:**"));
    assert!(outcome.content.contains("- [script] `scripts/run.sh`"));
    assert_eq!(outcome.changes.len(), 1, "it changes the state");
}

#[tokio::test]
async fn load_skill_updates_skills_loaded() {
    let world = with_resources().skill("second", "Two.\n").build();
    world.load("deploy").await;
    world.load("second").await;
    assert_eq!(world.state().await.loaded_names(), ["deploy", "second"]);
    let loaded = world.events_of(EventKind::SkillLoaded);
    assert_eq!(loaded[0].message, "Skill 'deploy' loaded (3 resources discovered)");
}

#[tokio::test]
async fn load_skill_updates_skill_resources() {
    let world = with_resources().build();
    assert!(world.state().await.loaded.is_empty(), "nothing is known before");
    world.load("deploy").await;
    assert_eq!(resources(&world.state().await, "deploy").len(), 3);
}

#[tokio::test]
async fn load_skill_not_found_returns_error() {
    let world = with_resources().skill("second", "Two.\n").build();
    let outcome = world.load("nope").await;
    assert_eq!(outcome.content, "Error: Skill 'nope' not found. Available skills: deploy, second");
    assert!(outcome.is_error && outcome.changes.is_empty());
    assert!(world.state().await.loaded.is_empty());
}

#[tokio::test]
async fn load_skill_already_loaded_returns_message() {
    let world = with_resources().build();
    world.load("deploy").await;
    let outcome = world.load("deploy").await;
    assert_eq!(
        outcome.content,
        "Skill 'deploy' is already loaded. Its instructions are already active."
    );
    assert!(!outcome.is_error);
    assert_eq!(world.state().await.loaded("deploy").unwrap().load_count, 1);
}

#[tokio::test]
async fn load_skill_file_read_error() {
    let world = with_resources().build();
    world.catalog.refresh().await;
    world.remove("deploy/SKILL.md");
    let outcome = world.load("deploy").await;
    let path = world.path("deploy/SKILL.md").display().to_string();
    assert!(
        outcome.content.starts_with(&format!("Error: Failed to read skill file at {path}: ")),
        "{}",
        outcome.content
    );
    assert!(outcome.is_error && !world.state().await.is_loaded("deploy"));
    let failed = world.events_of(EventKind::SkillUnreadable);
    assert!(failed[0].message.starts_with(&format!("Failed to read SKILL.md at {path}")));
}

#[tokio::test]
async fn load_skill_file_size_exceeded() {
    let limits = prowess_catalog::ScanLimits::default().with_file_bytes(200);
    let world = with_resources().limits(limits).build();
    world.catalog.refresh().await;
    // It grows behind our back.
    world.write("deploy/SKILL.md", skill("deploy", "Deploys.", &"x".repeat(400)));
    let outcome = world.load("deploy").await;
    let path = world.path("deploy/SKILL.md").display().to_string();
    assert_eq!(
        outcome.content,
        format!("Error: Skill file at {path} exceeds maximum size (200 bytes)")
    );
    assert!(outcome.is_error && !world.state().await.is_loaded("deploy"));
}

#[tokio::test]
async fn load_skill_max_loaded_reached() {
    let plan = Plan::new().skill("a", "A").skill("b", "B").skill("c", "C");
    let world = plan.settings(Settings::default().with_max_loaded_skills(2)).build();
    world.load("a").await;
    world.load("b").await;
    let outcome = world.load("c").await;
    assert_eq!(
        outcome.content,
        "Error: Cannot load skill 'c'. Maximum number of simultaneously loaded skills reached \
         (2). Currently loaded: a, b. Consider whether all loaded skills are still needed for \
         the current task."
    );
    assert!(outcome.is_error);
    assert_eq!(world.state().await.loaded_names(), ["a", "b"]);
    let warned = world.events_of(EventKind::LoadLimitReached);
    assert_eq!(warned[0].message, "Skill loading limit reached (2/2)");
}

// Backward compatibility

#[tokio::test]
async fn v1_skills_work_without_modification() {
    let text = "---\nname: web-research\ndescription: Research on the web.\nlicense: MIT\n---\n\n# Web Research\n";
    let world = Plan::new().file("web-research/SKILL.md", text).build();
    assert_eq!(world.load("web-research").await.content, "# Web Research");
}

/// `read_file` as a host brings it.
fn read_file(world: Plan) -> World {
    let declaration = ToolDeclaration::new("read_file", "Reads a file.", json!({"type": "object"}));
    let tool = tool_fn(declaration, |arguments| async move {
        let path = arguments["file_path"].as_str().unwrap_or_default().to_owned();
        ToolOutcome::text(std::fs::read_to_string(path).unwrap_or_default())
    });
    world.change(move |builder| builder.tool(tool)).build()
}

#[tokio::test]
async fn read_file_still_works_for_skills() {
    let world = read_file(with_resources());
    let path = world.path("deploy/SKILL.md");
    let read = world.call("read_file", json!({"file_path": path})).await;
    assert!(read.content.contains("name: deploy"));
    assert!(!world.state().await.is_loaded("deploy"), "reading a file is not loading a skill");
    assert_eq!(world.load("deploy").await.code, "loaded");
}

// Integration

/// Row 1: `load_skill` and `read_file` side by side.
#[tokio::test]
async fn with_filesystem_middleware() {
    let world = read_file(with_resources());
    world.load("deploy").await;
    let path = world.path("deploy/references/guide.md");
    let read = world.call("read_file", json!({"file_path": path})).await;
    assert_eq!(read.content, "# Guide");
    assert!(world.state().await.is_loaded("deploy"));
}

/// Row 2: agents do not see each other's skills, and each can load for itself.
#[tokio::test]
async fn with_subagent_middleware() {
    let world = with_resources().build();
    world.load("deploy").await;
    let sub = AgentName::new("sub").unwrap();
    let state = world.runtime.state(&world.session, &sub).await.unwrap();
    assert!(!state.is_loaded("deploy"));
    let outcome = world.call_as("sub", "load_skill", json!({"skill_name": "deploy"})).await;
    assert_eq!(outcome.code, "loaded");
}
