//! What `allowed-tools` and `disallowed-tools` mean.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use prowess_catalog::{Catalog, MemorySource, SourceInfo, Trust};
use prowess_runtime::{
    AgentName, AllowedToolsPolicy, AllowedToolsUnion, Blocked, EventKind, EventLevel, Exposure,
    Intercepted, Interception, Interceptor, InterceptorFuture, LoadMode, Message, Prompt,
    PromptRequest, Runtime, RuntimeBuilder, Settings, ToolCall,
};
use serde_json::{Value, json};
use support::{Plan, World, echo};

fn restrict() -> Settings {
    Settings::default().with_allowed_tools_policy(AllowedToolsPolicy::Restrict)
}

/// A `SKILL.md` with these lines in its frontmatter.
fn with(name: &str, lines: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{lines}---\nBody of {name}.\n")
}

const HOST: [&str; 8] =
    ["tool_x", "tool_y", "tool_z", "execute", "write_file", "read_file", "Bash", "mcp__git__log"];

fn world(settings: Settings, skills: &[(&str, &str)]) -> World {
    let mut plan = Plan::new().settings(settings);
    for (name, lines) in skills {
        plan = plan.file(&format!("{name}/SKILL.md"), with(name, lines));
    }
    let tools = HOST.map(echo);
    plan.change(move |builder| tools.into_iter().fold(builder, RuntimeBuilder::tool)).build()
}

/// What becomes of a call: nothing, or the code of the refusal.
async fn refused(world: &World, tool: &str, arguments: Value) -> Option<String> {
    let outcome = world.call(tool, arguments).await;
    outcome.is_error.then(|| outcome.code.to_string())
}

const X: &str = "allowed-tools: tool_x\n";
const Y: &str = "allowed-tools: [tool_y]\n";

#[tokio::test]
async fn the_boundary_table() {
    use AllowedToolsUnion::{Lenient, Strict};
    // Which union; the skills that are loaded; is tool_x, is tool_z refused?
    type Row = (AllowedToolsUnion, &'static [(&'static str, &'static str)], bool, bool);
    let table: [Row; 12] = [
        (Lenient, &[], false, false),
        (Lenient, &[("a", "")], false, false),
        (Lenient, &[("a", X)], false, true),
        (Lenient, &[("a", X), ("b", Y)], false, true),
        (Lenient, &[("a", Y)], true, true),
        (Lenient, &[("a", X), ("b", "")], false, false),
        (Strict, &[("a", X), ("b", "")], false, true),
        (Strict, &[("a", "")], false, false),
        (Strict, &[], false, false),
        // Blank is absent; an empty list is a list.
        (Lenient, &[("a", "allowed-tools:\n")], false, false),
        (Lenient, &[("a", "allowed-tools: \"\"\n")], false, false),
        (Lenient, &[("a", "allowed-tools: []\n")], true, true),
    ];
    for (union, skills, x, z) in table {
        let world = world(restrict().with_allowed_tools_union(union), skills);
        for (name, _) in skills {
            assert_eq!(world.load(name).await.code, "loaded");
        }
        let case = format!("{union:?} {skills:?}");
        let of = async |tool| refused(&world, tool, json!({})).await.is_some();
        assert_eq!((of("tool_x").await, of("tool_z").await), (x, z), "{case}");
        // The tools that a skill needs whatever it says.
        assert!(!of("read_file").await, "{case}");
    }
}

#[tokio::test]
async fn a_recommendation_refuses_nothing() {
    let skills = [("a", "allowed-tools: tool_x\ndisallowed-tools: tool_y\n")];
    let world = world(Settings::default(), &skills);
    world.load("a").await;
    for tool in HOST {
        assert_eq!(refused(&world, tool, json!({})).await, None, "{tool}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_tool_the_allowed_tools_and_the_skills() {
    let world = world(restrict(), &[("a", "allowed-tools: tool_y tool_x\n"), ("b", X)]);
    world.load("a").await;
    world.load("b").await;
    world.events();
    let outcome = world.call("execute", json!({"command": "ls"})).await;
    assert_eq!(
        outcome.content,
        "Tool 'execute' is not in the allowed-tools list for the currently loaded skills. \
         Allowed tools: tool_x, tool_y. If you believe this tool is necessary, explain your \
         reasoning. Loaded skills: a, b."
    );
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "tool_not_allowed"));
    assert_eq!(outcome.data["skills"], json!(["a", "b"]));
    let events = world.events_of(EventKind::ToolBlocked);
    assert_eq!(events[0].message, "Tool 'execute' blocked by allowed-tools policy");
    assert_eq!(events[0].level, EventLevel::Warning);
    assert_eq!(events[0].tool.as_deref(), Some("execute"));
}

#[tokio::test]
async fn execution_and_writing_must_be_listed() {
    let world = world(restrict(), &[("a", X), ("b", "allowed-tools: execute\n")]);
    world.load("a").await;
    assert!(refused(&world, "execute", json!({})).await.is_some());
    assert!(refused(&world, "write_file", json!({})).await.is_some());
    world.load("b").await;
    assert!(refused(&world, "execute", json!({})).await.is_none());
    assert!(refused(&world, "write_file", json!({})).await.is_some());
    // Unloading takes away what loading gave.
    world.call("unload_skill", json!({"skill": "b"})).await;
    assert!(refused(&world, "execute", json!({})).await.is_some());
}

#[tokio::test]
async fn skills_can_be_managed_whatever_is_allowed() {
    let nothing = "allowed-tools: []\ndisallowed-tools: load_skill unload_skill '*'\n";
    let settings = restrict().with_always_allowed_tools(BTreeSet::new());
    let world = world(settings, &[("a", nothing), ("b", "")]);
    world.load("a").await;
    for (tool, arguments) in [
        ("list_loaded_skills", json!({})),
        ("skill_list_docs", json!({"skill": "a"})),
        ("skill_select_docs", json!({"skill": "a", "mode": "clear"})),
        ("load_skill", json!({"skill": "b"})),
        ("unload_skill", json!({"skill": "a"})),
    ] {
        assert_eq!(refused(&world, tool, arguments).await, None, "{tool}");
    }
}

#[tokio::test]
async fn another_list_takes_the_place_of_the_default_one() {
    let settings = restrict().with_always_allowed_tools(["execute".to_owned()].into());
    let world = world(settings, &[("a", X)]);
    world.load("a").await;
    assert_eq!(refused(&world, "execute", json!({})).await, None);
    assert!(refused(&world, "read_file", json!({})).await.is_some());
    assert_eq!(world.load("a").await.code, "already_loaded");
}

#[tokio::test]
async fn what_a_loaded_skill_brings_passes() {
    let brings = "allowed-tools: tool_x\ntool_configs:\n  - name: tool_y\n    method: m\n  - name: \
                  tool_z\n    method: m\n    requires_skill_loaded: false\n";
    let world = world(restrict(), &[("a", brings)]);
    assert_eq!(refused(&world, "tool_y", json!({})).await.as_deref(), Some("skill_not_loaded"));
    assert_eq!(refused(&world, "tool_z", json!({})).await, None);
    world.load("a").await;
    assert_eq!(refused(&world, "tool_y", json!({})).await, None);
    // It waits for nobody, so that nobody brings it.
    assert_eq!(refused(&world, "tool_z", json!({})).await.as_deref(), Some("tool_not_allowed"));
}

#[tokio::test]
async fn a_skill_that_is_not_trusted_and_says_nothing_allows_nothing() {
    for (trust, expected) in [(Trust::Trusted, "ok"), (Trust::Untrusted, "tool_not_allowed")] {
        let info = SourceInfo::new("memory", "memory").with_trust(trust);
        let source = MemorySource::new("m").with_info(info).with_skill("a", with("a", ""));
        let catalog = Catalog::builder().source(source).build();
        let runtime = Runtime::builder(catalog).settings(restrict()).tool(echo("tool_x"));
        let (runtime, session) = (runtime.build().unwrap(), "s".parse().unwrap());
        let agent = AgentName::default();
        let load = ToolCall::new("1", "load_skill", json!({"skill": "a"}));
        runtime.dispatch(&session, &agent, load).await.unwrap();
        let call = ToolCall::new("2", "tool_x", json!({}));
        let outcome = runtime.dispatch(&session, &agent, call).await.unwrap();
        assert_eq!(outcome.code, expected, "{trust:?}");
        if outcome.is_error {
            assert!(outcome.content.contains("Allowed tools: none."), "{}", outcome.content);
        }
    }
}

#[tokio::test]
async fn scopes_decide_by_arguments() {
    let lines = "allowed-tools: Bash(git:*) mcp__git\ndisallowed-tools: Bash(git push:*)\n";
    let world = world(restrict(), &[("a", lines)]);
    world.load("a").await;
    let bash = |command: &str| json!({"command": command});
    let table = [
        ("Bash", bash("git log"), None),
        ("Bash", bash("git log; rm -rf /"), Some("tool_not_allowed")),
        ("Bash", bash("rm -rf /"), Some("tool_not_allowed")),
        ("Bash", bash("git push origin"), Some("tool_disallowed")),
        ("mcp__git__log", json!({}), None),
    ];
    for (tool, arguments, expected) in table {
        let what = arguments.to_string();
        assert_eq!(refused(&world, tool, arguments).await.as_deref(), expected, "{tool} {what}");
    }
    let outcome = world.call("Bash", bash("git push")).await;
    assert_eq!(
        outcome.content,
        "Tool 'Bash' is in the disallowed-tools list of skill 'a': Bash(git push:*)"
    );
}

#[tokio::test]
async fn what_is_ruled_out_stays_out_though_another_skill_allows_it() {
    let world = world(restrict(), &[("a", "disallowed-tools: tool_x\n"), ("b", X)]);
    world.load("b").await;
    assert_eq!(refused(&world, "tool_x", json!({})).await, None);
    world.load("a").await;
    assert_eq!(refused(&world, "tool_x", json!({})).await.as_deref(), Some("tool_disallowed"));
    // It says nothing of what is allowed: nothing else is restricted.
    assert_eq!(refused(&world, "tool_z", json!({})).await, None);
}

#[tokio::test]
async fn rules_are_pinned_with_the_text_they_stand_in() {
    let world = world(restrict(), &[("a", X)]);
    world.load("a").await;
    world.write("a/SKILL.md", with("a", "allowed-tools: tool_x tool_z\n"));
    world.catalog.refresh().await;
    assert!(refused(&world, "tool_z", json!({})).await.is_some());
    // Given again, it is still the text that was loaded.
    let call = world.tool_call("load_skill", json!({"skill": "a"}));
    let step = prowess_runtime::Step::new(vec![call]).with_transcript(Vec::new());
    world.runtime.dispatch_batch(&world.session, &world.agent, step).await.unwrap();
    assert!(refused(&world, "tool_z", json!({})).await.is_some());
    // A reload is explicit.
    world.call("unload_skill", json!({"skill": "a"})).await;
    world.load("a").await;
    assert_eq!(refused(&world, "tool_z", json!({})).await, None);
}

#[tokio::test]
async fn what_a_skill_brings_is_pinned_with_its_text_too() {
    let brings = |tools: &[&str]| {
        let config = |tool: &&str| format!("  - name: {tool}\n    method: m\n");
        format!("{X}tool_configs:\n{}", tools.iter().map(config).collect::<String>())
    };
    let world = world(restrict(), &[("a", &brings(&["tool_y"]))]);
    world.load("a").await;
    assert_eq!(refused(&world, "tool_y", json!({})).await, None);
    // A newer text of the same name slips nothing in.
    world.write("a/SKILL.md", with("a", &brings(&["tool_y", "execute"])));
    world.catalog.refresh().await;
    assert_eq!(refused(&world, "execute", json!({})).await.as_deref(), Some("skill_not_loaded"));
    assert_eq!(refused(&world, "tool_y", json!({})).await, None);
    // Nor does it take anything away.
    world.write("a/SKILL.md", with("a", X));
    world.catalog.refresh().await;
    assert_eq!(refused(&world, "tool_y", json!({})).await, None);
    world.call("unload_skill", json!({"skill": "a"})).await;
    world.load("a").await;
    assert_eq!(refused(&world, "tool_y", json!({})).await.as_deref(), Some("tool_not_allowed"));
}

/// A host, or a state of an earlier version, does not say what a skill brings; its text does.
#[tokio::test]
async fn the_text_that_is_pinned_says_what_a_skill_brings_if_the_state_does_not() {
    let brings = |tool: &str| format!("{X}metadata:\n  include_tools: {tool}\n");
    let (a, b) = (brings("tool_y"), brings("tool_z"));
    let world = world(restrict(), &[("a", &a), ("b", &b)]);
    for (text, expected) in [(with("a", &a), None), (with("a", ""), Some("skill_not_loaded"))] {
        let digest = prowess_format::Digest::of(text.as_bytes());
        let skill = Box::new(prowess_runtime::LoadedSkill::new("a", digest));
        let load = prowess_runtime::Change::Load { skill, model: None };
        world.runtime.change(&world.session, &world.agent, vec![load]).await.unwrap();
        assert_eq!(refused(&world, "tool_y", json!({})).await.as_deref(), expected);
        assert_eq!(refused(&world, "tool_z", json!({})).await.as_deref(), Some("skill_not_loaded"));
        world.call("unload_skill", json!({"skill": "a"})).await;
    }
}

#[tokio::test]
async fn a_skill_that_is_not_trusted_brings_nothing() {
    let lines = "allowed-tools: tool_x\nmetadata:\n  include_tools: execute\n";
    for (trust, expected) in [(Trust::Trusted, "ok"), (Trust::Untrusted, "tool_not_allowed")] {
        let info = SourceInfo::new("memory", "memory").with_trust(trust);
        let source = MemorySource::new("m").with_info(info).with_skill("a", with("a", lines));
        let catalog = Catalog::builder().source(source).build();
        let runtime = Runtime::builder(catalog).settings(restrict()).tool(echo("execute"));
        let (runtime, session) = (runtime.build().unwrap(), "s".parse().unwrap());
        let agent = AgentName::default();
        let load = ToolCall::new("1", "load_skill", json!({"skill": "a"}));
        runtime.dispatch(&session, &agent, load).await.unwrap();
        let call = ToolCall::new("2", "execute", json!({}));
        let outcome = runtime.dispatch(&session, &agent, call).await.unwrap();
        assert_eq!(outcome.code, expected, "{trust:?}");
    }
}

/// Puts other arguments into every call.
struct Swap;

impl Interceptor for Swap {
    fn before<'a>(&'a self, _: Intercepted<'a>) -> InterceptorFuture<'a, Interception> {
        let other = json!({"command": "rm -rf /"});
        Box::pin(std::future::ready(Interception::Replace(other)))
    }
}

#[tokio::test]
async fn arguments_that_an_interceptor_puts_in_are_checked_too() {
    let lines = "allowed-tools: Bash(git:*)\n";
    let plan = Plan::new().settings(restrict()).file("a/SKILL.md", with("a", lines));
    let change = |it: prowess_runtime::RuntimeBuilder| it.tool(echo("Bash"));
    let world = plan.change(move |it| change(it).interceptor(Arc::new(Swap))).build();
    assert_eq!(world.call("Bash", json!({})).await.content, r#"{"command":"rm -rf /"}"#);
    let session = "other".parse().unwrap();
    let agent = AgentName::default();
    let changes = vec![prowess_runtime::Change::Load {
        skill: Box::new({
            let skill = prowess_format::Digest::of(b"a");
            let mut skill = prowess_runtime::LoadedSkill::new("a", skill);
            skill.tools.allowed = Some(vec!["Bash(git:*)".to_owned()]);
            skill
        }),
        model: None,
    }];
    world.runtime.change(&session, &agent, changes).await.unwrap();
    let call = ToolCall::new("1", "Bash", json!({"command": "git log"}));
    let outcome = world.runtime.dispatch(&session, &agent, call).await.unwrap();
    assert_eq!(outcome.code, "tool_not_allowed");
}

#[tokio::test]
async fn a_call_can_be_checked_without_making_it() {
    let world = world(restrict(), &[("a", "allowed-tools: Bash(git:*)\n")]);
    world.load("a").await;
    let (state, snapshot) =
        (world.state().await, world.runtime.snapshot(&world.session, &world.agent).await);
    let check = |tool: &str, arguments: Value| {
        world.runtime.check(&world.tool_call(tool, arguments), &state, &snapshot)
    };
    assert_eq!(check("Bash", json!({"command": "git log"})), Ok(()));
    assert_eq!(check("Bash", json!({"command": "ls"})), Err(Blocked::NotAllowed));
    assert_eq!(check("load_skill", json!({})), Ok(()));
    assert_eq!(check("nope", json!({})), Err(Blocked::UnknownTool));
}

#[tokio::test]
async fn a_tool_behind_skill_tool_is_asked_the_same() {
    let brings = "allowed-tools: tool_x\nmetadata:\n  include_tools: tool_y\n";
    let world = world(restrict().with_exposure(Exposure::Generic), &[("a", brings), ("b", X)]);
    let call = |skill: &str, tool: &str| json!({"skill": skill, "tool": tool, "arguments": {}});
    let refused = async |arguments| refused(&world, "skill_tool", arguments).await;
    assert_eq!(refused(call("a", "tool_y")).await.as_deref(), Some("skill_not_loaded"));
    world.load("a").await;
    assert_eq!(refused(call("a", "tool_y")).await, None);
    let (state, snapshot) =
        (world.state().await, world.runtime.snapshot(&world.session, &world.agent).await);
    let check = |arguments| {
        world.runtime.check(&world.tool_call("skill_tool", arguments), &state, &snapshot)
    };
    assert_eq!(check(call("a", "tool_y")), Ok(()));
    assert_eq!(check(call("a", "execute")), Err(Blocked::UnknownTool));
    assert_eq!(check(json!({"skill": "a"})), Err(Blocked::InvalidArguments));
    // It is no way around the policy: what the skill does not bring cannot be called.
    assert_eq!(refused(call("a", "execute")).await.as_deref(), Some("unknown_tool"));
    assert_eq!(refused(call("b", "tool_y")).await.as_deref(), Some("unknown_tool"));
    assert_eq!(refused(call("a", "load_skill")).await.as_deref(), Some("unknown_tool"));
    assert_eq!(refused(call("a", "skill_tool")).await.as_deref(), Some("unknown_tool"));
}

#[tokio::test]
async fn the_answer_to_a_request_is_judged_by_what_the_request_held() {
    let settings = restrict().with_load_mode(LoadMode::Once).with_exposure(Exposure::OnLoad);
    let lines = "allowed-tools: tool_x\nmetadata:\n  include_tools: tool_y\n";
    let world = world(settings, &[("a", lines)]);
    let request = async || {
        let request = PromptRequest::new();
        world.runtime.request(&world.session, &world.agent, request).await.unwrap()
    };
    let holds = |prompt: &Prompt| {
        let results = prompt.messages.iter().flat_map(Message::tool_results);
        results.filter(|result| result.content.contains("Body of a.")).count()
    };
    world.load("a").await;
    let declares = |prompt: &Prompt| prompt.tools.iter().any(|tool| tool.name == "tool_y");
    let first = request().await;
    assert_eq!((holds(&first), declares(&first)), (1, true));
    // The model answers that request: the skill restricts, and its tool is open.
    assert_eq!(refused(&world, "execute", json!({})).await.as_deref(), Some("tool_not_allowed"));
    assert_eq!(refused(&world, "tool_y", json!({})).await, None);
    // The next one does not hold it, does not declare its tools, and is not judged by it.
    let second = request().await;
    assert_eq!((holds(&second), declares(&second)), (0, false));
    assert_eq!(refused(&world, "execute", json!({})).await, None);
    assert_eq!(refused(&world, "tool_y", json!({})).await.as_deref(), Some("skill_not_loaded"));
    // Asked for again in the answer, it is given again, once.
    world.load("a").await;
    assert_eq!(holds(&request().await), 1);
    assert_eq!(world.load("a").await.code, "loaded");
    assert_eq!(holds(&request().await), 1);
    assert_eq!(holds(&request().await), 0);
    assert!(world.state().await.loaded.is_empty());
}
