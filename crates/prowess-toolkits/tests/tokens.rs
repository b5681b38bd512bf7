//! What all of this costs in every request.

mod support;

use prowess_runtime::{AgentName, PromptRequest, Toolkit};
use prowess_toolkits::{ExecSettings, ExecToolkit, FilesAccess, FilesToolkit, MemoryBackend};
use support::Plan;

/// All tools and the guidance may be so long.
const MOST: usize = 1400;

fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

#[tokio::test]
async fn all_tools_and_the_guidance_cost_at_most_1400_tokens() {
    let world = Plan::new().build();
    let agent = AgentName::default();
    let request = PromptRequest::default();
    let prompt = world.runtime.prompt(&world.session, &agent, request).await.unwrap();
    let mut tools: Vec<(String, usize)> = Vec::new();
    for tool in prompt.tools.iter() {
        let text = serde_json::to_string(&tool).unwrap();
        tools.push((tool.name.clone(), count(&text)));
    }
    for name in ["load_skill", "skill_run", "read_file", "ls"] {
        assert!(tools.iter().any(|(tool, _)| tool == name), "{name}: {tools:?}");
    }
    // The one skill that is listed counts as well.
    let guidance = count(&prompt.system);
    let total = guidance + tools.iter().map(|(_, tokens)| tokens).sum::<usize>();
    println!("{total} tokens: guidance {guidance}, {tools:?}");
    assert!(total <= MOST, "{total} tokens: guidance {guidance}, {tools:?}");
}

/// All tools for files together, where a host gives them out.
const MOST_FOR_FILES: usize = 500;

#[test]
fn all_tools_for_files_cost_at_most_500_tokens() {
    let workspaces = prowess_workspace::Workspaces::new("/nowhere");
    let on_workspaces = FilesToolkit::new(workspaces).with_access(FilesAccess::Write);
    for toolkit in [on_workspaces, FilesToolkit::on(MemoryBackend::new())] {
        let tools = toolkit.tools();
        let texts = tools.iter().map(|tool| serde_json::to_string(tool.declaration()).unwrap());
        let total: usize = texts.map(|text| count(&text)).sum();
        println!("{total} tokens for {} tools", tools.len());
        assert!(total <= MOST_FOR_FILES, "{total} tokens");
    }
}

/// The tools that talk to commands of skills, and those for commands on copies of skills, where a
/// host gives them out.
const MOST_FOR_SESSIONS: [usize; 2] = [420, 400];

#[test]
fn the_tools_that_talk_to_commands_cost_at_most_so_many_tokens() {
    for (at, most) in MOST_FOR_SESSIONS.into_iter().enumerate() {
        let settings = ExecSettings::default();
        let settings = match at {
            0 => settings.with_interactive(true),
            _ => settings.with_workspace_exec(true),
        };
        let workspaces = prowess_workspace::Workspaces::new("/nowhere");
        let toolkit = ExecToolkit::new(workspaces, support::executor()).with_settings(settings);
        let tools = toolkit.tools();
        let others = tools.iter().filter(|tool| tool.declaration().name != "skill_run");
        let texts = others.map(|tool| serde_json::to_string(tool.declaration()).unwrap());
        let total: usize = texts.map(|text| count(&text)).sum();
        println!("{total} tokens for {} tools", tools.len() - 1);
        assert!(total <= most, "{total} tokens");
    }
}
