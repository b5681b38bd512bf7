//! Schemathesis against a real server (S11.6): what the description promises, the service does,
//! and whatever is sent to it, it does not fail.

mod support;

#[path = "support/service/mod.rs"]
mod service;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

/// Names the program. `./dev test` sets it.
const PROGRAM: &str = "PROWESS_TEST_SCHEMATHESIS";
/// What is asked of each operation, about.
const EXAMPLES: &str = "15";
/// The same questions each time.
const SEED: &str = "20261116";
/// A stream of events ends only if nobody wants to follow it. A change without `If-Match` is answered
/// with 428. What no schema can say is named per operation, so that all others are held to theirs:
/// which ids there are and which skills are built in (403, 404 and 409, everywhere); which tag is the
/// one of now (412); and that names in a list differ, that a text is a skill, which skills a turn can
/// load, and that one of a message's parts is a call (422). Of headers its coverage phase knows letters
/// and digits only, and takes them for tags where none is required, whatever the pattern (400). A skill
/// that waits for a publisher cannot be loaded, so that none is made that waits.
const CONFIG: &str = r#"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 403, 404, 409]

[checks.negative_data_rejection]
expected-statuses = [400, 403, 404, 405, 409, 415, 422, 428]

[checks.missing_required_header]
expected-statuses = [428]

[[operations]]
include-path-regex = "/events$"
parameters = { follow = "false" }

[[operations]]
include-operation-id = "create_skill"
parameters = { activate = "true" }
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 403, 404, 409, 422]

[[operations]]
include-operation-id = ["import_skills", "begin_turn", "call_tools"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 403, 404, 409, 422]

[[operations]]
include-operation-id = ["delete_skill", "reset_skill", "activate_version"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 403, 404, 409, 412]

[[operations]]
include-operation-id = "update_skill"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 403, 404, 409, 412, 422]
"#;

#[test]
fn schemathesis_finds_nothing() {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        let why = format!("{PROGRAM} names no schemathesis; ./dev test installs one");
        return support::skip("schemathesis_finds_nothing", &why);
    };
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let binary = Path::new(env!("CARGO_BIN_EXE_prowess"));
    let server = service::Service::start(binary, &home).unwrap();
    fill(&server);
    // In a folder of its own, because it leaves notes where it is started.
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("schemathesis.toml"), CONFIG).unwrap();
    let output = Command::new(program)
        .args(["--no-color", "run"])
        .arg(format!("{}/api/v1/openapi.json", server.url()))
        .args(["--checks", "all", "--phases", "examples,coverage,fuzzing,stateful"])
        .args(["--mode", "all", "--max-examples", EXAMPLES, "--seed", SEED])
        .args(["--generation-database", "none", "--workers", "1"])
        .args(["--request-timeout", "20", "--continue-on-failure"])
        .args(["--suppress-health-check", "all"])
        .current_dir(&work)
        .env("COLUMNS", "120")
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}\n{said}\n--- the server ---\n{}", server.log());
    // A run that asked nothing finds nothing.
    let tested = report.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
    assert!(tested.is_some_and(|count| count.parse::<usize>().unwrap() > 0), "{report}");
    let alive = server.client().get("/api/v1/skills").unwrap();
    assert_eq!(alive.status, 200, "{}", alive.brief());
}

/// A few skills, one of them with two versions and loads.
fn fill(server: &service::Service) {
    let mut client = server.client();
    for id in ["alpha", "beta", "gamma"] {
        let created = client.post("/api/v1/skills", &service::skill(id, 300)).unwrap();
        assert_eq!(created.status, 201, "{}", created.brief());
    }
    let etag = client.get("/api/v1/skills/alpha").unwrap().header("etag").unwrap().to_owned();
    let body = json!({"core_content": "# Alpha, anew", "change_summary": "Another text"});
    let headers = [("If-Match", etag.as_str())];
    let updated = client.ask("PUT", "/api/v1/skills/alpha", &headers, Some(&body)).unwrap();
    assert_eq!(updated.status, 200, "{}", updated.brief());
    let load = json!({"session_id": "session-1", "agent": "agent-1"});
    let loaded = client.post("/api/v1/skills/alpha/load", &load).unwrap();
    assert_eq!(loaded.status, 200, "{}", loaded.brief());
}
