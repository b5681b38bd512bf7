//! The test table of the second DeepAgents document (31 unit rows, 6 integration rows): one
//! function per row, named after the row, in the `deepagents` dialect where the row is about words.
//!
//! Integration rows 1 to 6 run through the loop of agents: `prowess/tests/files.rs` (1),
//! `prowess-agent/tests/sub_agents.rs` (2), `compaction.rs` (3), `skills.rs` (4 to 6).

mod support;

use prowess_catalog::{Catalog, FoundSkill, MemorySource, ResourceListing, ResourcePath};
use prowess_catalog::{ReadError, ResourceScope, Source, SourceFuture, SourceInfo, SourceListing};
use prowess_runtime::{
    AgentName, AllowedToolsPolicy, Budget, Dialect, EventKind, PromptRequest, Runtime, SessionKey,
    Settings, ToolCall, ToolDeclaration, ToolOutcome, TurnRequest, tool_fn,
};
use serde_json::json;
use std::sync::Arc;
use support::{Plan, World, echo, resources, skill};

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
    // The default mode sees more.
    let world = deepagents().file("deploy/temp/junk.txt", "junk").build();
    world.load("deploy").await;
    let found = resources(&world.state().await, "deploy");
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
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
async fn load_skill_returns_the_whole_file_and_full_paths_in_the_dialect() {
    let world = deepagents().build();
    let outcome = world.load("deploy").await;
    let folder = world.path("deploy").display().to_string();
    assert_eq!(
        outcome.content,
        format!(
            "---\nname: deploy\ndescription: Does deploy.\n---\nDeploy it.\n\n\n\n---\n\
             **Skill Resources:**\n\n- [asset] `{folder}/assets/logo.svg`\n\
             - [reference] `{folder}/references/guide.md`\n- [script] `{folder}/scripts/run.sh`"
        )
    );
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

#[tokio::test]
async fn default_policy_is_recommend() {
    let settings = Settings::default();
    assert_eq!(settings.allowed_tools_policy, AllowedToolsPolicy::Recommend);
    let dialect = Dialect::named("deepagents").unwrap();
    assert_eq!(dialect.settings().allowed_tools_policy, AllowedToolsPolicy::Recommend);
}

// Policy

fn policy(change: impl FnOnce(Settings) -> Settings) -> World {
    let text = |name: &str, allowed: &str| {
        format!("---\nname: {name}\ndescription: Does {name}.\n{allowed}---\nBody\n")
    };
    deepagents()
        .file("x/SKILL.md", text("x", "allowed-tools: tool_x tool_y\n"))
        .file("z/SKILL.md", text("z", "allowed-tools: tool_z\n"))
        .file("free/SKILL.md", text("free", ""))
        .set(change)
        .change(|builder| {
            let tools = ["tool_x", "tool_z", "execute", "read_file", "ls", "write_todos"];
            tools.into_iter().fold(builder, |builder, tool| builder.tool(echo(tool)))
        })
        .build()
}

fn restrict(settings: Settings) -> Settings {
    settings.with_allowed_tools_policy(AllowedToolsPolicy::Restrict)
}

/// Whether a tool can be called.
async fn passes(world: &World, tool: &str) -> bool {
    !world.call(tool, json!({})).await.is_error
}

#[tokio::test]
async fn allowed_tools_recommend_mode_passthrough() {
    let world = policy(|settings| settings);
    world.load("x").await;
    assert!(passes(&world, "execute").await && passes(&world, "tool_z").await);
}

#[tokio::test]
async fn allowed_tools_restrict_mode_allows_listed() {
    let world = policy(restrict);
    world.load("x").await;
    assert!(passes(&world, "tool_x").await);
}

#[tokio::test]
async fn allowed_tools_restrict_mode_blocks_unlisted() {
    let world = policy(restrict);
    world.load("x").await;
    let outcome = world.call("execute", json!({"command": "ls"})).await;
    assert_eq!(
        outcome.content,
        "Tool 'execute' is not in the allowed-tools list for the currently loaded skills. \
         Allowed tools: tool_x, tool_y. If you believe this tool is necessary, explain your \
         reasoning."
    );
    assert!(outcome.is_error);
    let blocked = world.events_of(EventKind::ToolBlocked);
    assert_eq!(blocked[0].message, "Tool 'execute' blocked by allowed-tools policy");
}

#[tokio::test]
async fn allowed_tools_whitelist_always_allowed() {
    let world = policy(restrict);
    world.load("x").await;
    for tool in ["read_file", "ls", "write_todos"] {
        assert!(passes(&world, tool).await, "{tool}");
    }
    assert_eq!(world.load("z").await.code, "loaded");
}

#[tokio::test]
async fn allowed_tools_custom_whitelist() {
    let world = policy(|it| restrict(it).with_always_allowed_tools(["execute".to_owned()].into()));
    world.load("x").await;
    assert!(passes(&world, "execute").await);
    assert!(!passes(&world, "read_file").await, "the default list is replaced");
}

#[tokio::test]
async fn allowed_tools_no_loaded_skills_passthrough() {
    assert!(passes(&policy(restrict), "execute").await);
}

#[tokio::test]
async fn allowed_tools_no_restrictions_defined_passthrough() {
    let world = policy(restrict);
    world.load("free").await;
    assert!(passes(&world, "execute").await);
    // Some define it and some do not: nothing is restricted.
    world.load("x").await;
    assert!(passes(&world, "execute").await);
}

#[tokio::test]
async fn allowed_tools_multi_skill_union() {
    let world = policy(restrict);
    world.load("x").await;
    assert!(!passes(&world, "tool_z").await);
    world.load("z").await;
    assert!(passes(&world, "tool_x").await && passes(&world, "tool_z").await);
    assert!(!passes(&world, "execute").await);
}

// The listing

fn deepagents() -> Plan {
    with_resources().dialect(Dialect::named("deepagents").unwrap())
}

async fn listing(world: &World) -> String {
    world.runtime.listing(&world.session, &world.agent).await.unwrap().text
}

#[tokio::test]
async fn format_skills_list_with_loaded_status() {
    let world = deepagents().skill("other", "x").build();
    world.load("other").await;
    let text = listing(&world).await;
    assert!(text.contains("- **other** [Loaded]: Does other."), "{text}");
    assert!(text.contains("- **deploy**: Does deploy."));
    assert!(text.find("other") < text.find("deploy"), "what is loaded comes first");
}

#[tokio::test]
async fn format_skills_list_with_resources() {
    let world = deepagents().file("deploy/scripts/more.sh", "echo").build();
    assert!(!listing(&world).await.contains("-> Resources"));
    world.load("deploy").await;
    assert!(listing(&world).await.contains("\n  -> Resources: 1 asset, 1 reference, 2 scripts"));
}

#[tokio::test]
async fn format_skills_list_load_skill_guidance() {
    let world = deepagents().build();
    let guidance = "\n  -> Use `load_skill(\"deploy\")` to read full instructions";
    assert!(listing(&world).await.contains(guidance));
    world.load("deploy").await;
    assert!(!listing(&world).await.contains(guidance));
}

fn small_budget(mut settings: Settings) -> Settings {
    settings.listing.budget = Budget::Characters(100);
    settings
}

#[tokio::test]
async fn format_skills_list_description_budget_exceeded() {
    let world = deepagents().skill("other", "x").skill("third", "x").set(small_budget).build();
    let text = listing(&world).await;
    assert!(text.contains("**deploy**") && !text.contains("**other**"), "{text}");
    assert!(text.contains(
        "\n\n(2 additional skill(s) not shown due to description budget limit. Use `ls` to browse \
         skill directories for a complete list.)"
    ));
}

#[tokio::test]
async fn format_skills_list_loaded_skills_exempt_from_budget() {
    let world = deepagents().skill("other", "x").skill("third", "x").set(small_budget).build();
    world.load("other").await;
    world.load("third").await;
    let text = listing(&world).await;
    for name in ["**other** [Loaded]", "**third** [Loaded]", "**deploy**"] {
        assert!(text.contains(name), "{name}: {text}");
    }
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

/// Row 4: the system prompt after a load.
#[tokio::test]
async fn system_prompt_is_updated_after_load_skill() {
    let world = deepagents().build();
    let system = async || {
        let request = PromptRequest::new();
        world.runtime.prompt(&world.session, &world.agent, request).await.unwrap().system
    };
    assert!(!system().await.contains("[Loaded]"));
    world.load("deploy").await;
    let after = system().await;
    assert!(after.contains("- **deploy** [Loaded]: Does deploy."));
    assert!(after.contains("  -> Resources: 1 asset, 1 reference, 1 script"));
}

/// Row 5: what is allowed grows with every skill that is loaded.
#[tokio::test]
async fn restrict_accumulates_across_skills() {
    let world = policy(restrict);
    assert!(passes(&world, "execute").await);
    world.load("x").await;
    assert_eq!([passes(&world, "tool_x").await, passes(&world, "tool_z").await], [true, false]);
    world.load("z").await;
    assert_eq!([passes(&world, "tool_x").await, passes(&world, "tool_z").await], [true, true]);
}

/// Row 6: what the listing leaves out can still be loaded by name.
#[tokio::test]
async fn excluded_skills_can_still_be_loaded() {
    let world = deepagents().skill("other", "x").set(small_budget).build();
    assert!(!listing(&world).await.contains("other"));
    assert_eq!(world.load("other").await.code, "loaded");
    assert!(listing(&world).await.contains("**other** [Loaded]"));
}
