//! The skill `jira` on the command line: variables, and the user's own `[jira]` (S14.1).

#[path = "../../prowess-toolkits/tests/jira_support/server.rs"]
mod server;
mod support;

use serde_json::json;
use server::{Answer, Server};
use support::{Run, Sandbox, binary};

const TOKEN: &str = "token-of-the-command-line";

/// A Data Center with one project.
fn jira() -> Server {
    Server::start(|request| match request.path.as_str() {
        "/rest/api/2/serverInfo" => Answer::ok(&json!({"deploymentType": "Server"})),
        "/rest/api/2/project" => Answer::ok(&json!([{"key": "PROJ", "name": "The Project"}])),
        _ => Answer::html(404, ""),
    })
}

fn prowess(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills");
    let mut command = std::process::Command::new(binary());
    command.args(arguments).env("PROWESS_SKILLS", skills);
    command.env("HOME", sandbox.path().join("user"));
    command.env("PROWESS_HOME", sandbox.path().join("home"));
    let all = std::env::vars_os().map(|(name, _)| name);
    for name in all.filter(|name| name.to_string_lossy().starts_with("JIRA_")) {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let run = sandbox.run(command, b"");
    assert!(!format!("{run:?}").contains(TOKEN), "{run:?}");
    run
}

fn load(sandbox: &Sandbox, variables: &[(&str, &str)]) -> Run {
    prowess(sandbox, variables, &["call", "load_skill", r#"{"skill": "jira"}"#])
}

#[test]
fn jira_is_where_the_environment_or_the_users_own_file_says() {
    let server = jira();
    let sandbox = Sandbox::new();
    let none = load(&sandbox, &[]);
    assert!(none.stdout.contains("- Status: not configured"), "{none:?}");

    let sandbox = Sandbox::new();
    let url = server.url("");
    let run = load(&sandbox, &[("JIRA_URL", &url), ("JIRA_PAT", TOKEN)]);
    assert!(run.stdout.contains("- **PROJ**: The Project"), "{run:?}");
    assert_eq!(server.seen()[0].headers["authorization"], format!("Bearer {TOKEN}"));

    let sandbox = Sandbox::new();
    sandbox.write("home/prowess.toml", format!("[jira]\nurl = \"{url}\"\n"));
    let run = load(&sandbox, &[("JIRA_BEARER_TOKEN", TOKEN)]);
    assert!(run.stdout.contains("- **PROJ**: The Project"), "{run:?}");
}

#[test]
fn a_project_does_not_say_where_the_token_is_sent() {
    let thief = jira();
    let sandbox = Sandbox::new();
    sandbox.write("prowess.toml", format!("[jira]\nurl = \"{}\"\n", thief.url("")));
    let run = load(&sandbox, &[("JIRA_BEARER_TOKEN", TOKEN)]);
    assert!(run.stderr.contains("[jira] counts only in"), "{run:?}");
    assert!(run.stdout.contains("- Status: not configured"), "{run:?}");
    assert!(thief.seen().is_empty());
}

#[test]
fn variables_of_another_program_are_a_warning_and_jira_is_not_configured() {
    let table: [(&[(&str, &str)], &str); 4] = [
        (
            &[("JIRA_API_TOKEN", TOKEN)],
            "JIRA_API_TOKEN needs JIRA_EMAIL or JIRA_USERNAME beside it",
        ),
        (
            &[("JIRA_BEARER_TOKEN", TOKEN), ("JIRA_PAT", "another")],
            "JIRA_BEARER_TOKEN and JIRA_PAT contradict each other: set one of them only",
        ),
        (&[("JIRA_REFRESH_TOKEN", TOKEN)], "JIRA_REFRESH_TOKEN needs JIRA_CLOUD_ID beside it"),
        (&[("JIRA_API_TOKEN_FILE", "/")], "JIRA_API_TOKEN_FILE names no regular file; name one"),
    ];
    for (variables, why) in table {
        let sandbox = Sandbox::new();
        let run = load(&sandbox, variables);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stderr.contains(&format!("Warning: {why}; Jira is not")), "{run:?}");
        assert!(run.stdout.contains(&format!("- Status: not configured: {why}")), "{run:?}");
        // Nor do they stop what has nothing to do with Jira.
        let run = prowess(&sandbox, variables, &["list"]);
        assert_eq!(run.code, 0, "{run:?}");
    }
    // The section has limits and names no Jira.
    let sandbox = Sandbox::new();
    sandbox.write("home/prowess.toml", "[jira]\nmax_limit = 10\ndefault_limit = 5\n");
    assert_eq!(load(&sandbox, &[("JIRA_API_TOKEN", TOKEN)]).code, 0);
}

#[test]
fn what_the_users_own_file_contradicts_is_an_error_at_the_start() {
    type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    let sandbox = Sandbox::new();
    let table: [Row; 4] = [
        (
            "cloud_id = \"11aa-22\"",
            &[("JIRA_PAT", TOKEN)],
            "JIRA_CLOUD_ID and JIRA_PAT contradict each other",
        ),
        (
            "url = \"https://jira.example.com\"",
            &[("JIRA_API_TOKEN", TOKEN)],
            "JIRA_API_TOKEN needs JIRA_EMAIL or JIRA_USERNAME beside it",
        ),
        ("url = \"jira.example.com\"", &[], "JIRA_URL is no URL"),
        ("max_limit = 0", &[], "[jira]: max_limit must be at least 1"),
    ];
    for (section, variables, expected) in table {
        sandbox.write("home/prowess.toml", format!("[jira]\n{section}\n"));
        let run = load(&sandbox, variables);
        assert_ne!(run.code, 0, "{section}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
}
