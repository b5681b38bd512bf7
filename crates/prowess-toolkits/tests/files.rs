//! `read_file` and `ls`: on the workspace and on artifacts, in later turns too.

mod support;

use prowess_runtime::TurnRequest;
use prowess_toolkits::FilesSettings;
use prowess_workspace::ArtifactStore;
use serde_json::{Value, json};
use support::{Plan, World, refusal, stdout};

/// A world in which a command wrote some files.
async fn written(plan: Plan, command: &str) -> World {
    let world = plan.build();
    world.load("demo").await;
    stdout(&world.run(command).await);
    world
}

async fn read(world: &World, arguments: Value) -> String {
    let outcome = world.call("read_file", arguments).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    outcome.content
}

#[tokio::test]
async fn a_file_is_read_by_any_of_its_names() {
    let world = written(Plan::new(), "echo hi > out/a.txt; echo in > work/inputs/b.txt").await;
    let real = world.workspace().join("out/a.txt").display().to_string();
    let names = ["out/a.txt", "workspace://out/a.txt", "$OUTPUT_DIR/a.txt", "/out/a.txt", &real];
    for name in names.into_iter().chain(["/workspace/out/a.txt", "skills/demo/out/a.txt"]) {
        for key in ["file_name", "file_path", "path"] {
            assert_eq!(read(&world, json!({key: name})).await, "hi\n", "{key} {name}");
        }
    }
    for name in ["inputs/b.txt", "work/inputs/b.txt", "workspace://inputs/b.txt"] {
        assert_eq!(read(&world, json!({"path": name})).await, "in\n", "{name}");
    }
    // `inputs/` also stands before what is elsewhere in the workspace.
    assert_eq!(read(&world, json!({"path": "inputs/out/a.txt"})).await, "hi\n");
    assert_eq!(read(&world, json!({"path": "skills/demo/data/greeting.txt"})).await, "hello\n");
}

#[tokio::test]
async fn some_lines_are_given_and_what_is_missing_is_said() {
    let files = FilesSettings::default().with_max_lines(3).with_max_bytes(20);
    let world =
        written(Plan::new().files(files), "seq 10 > out/a; printf 'x%.0s' {1..30} > out/b").await;
    let table = [
        (json!({"start_line": 2, "num_lines": 2}), "2\n3\n"),
        (json!({"offset": 1, "limit": 2}), "2\n3\n"),
        (json!({"start_line": 9}), "9\n10\n"),
        (json!({}), "1\n2\n3\n[lines 1-3 of 10; go on with start_line=4]"),
        (json!({"offset": 3}), "4\n5\n6\n[lines 4-6 of 10; go on with start_line=7]"),
        (json!({"num_lines": 9}), "1\n2\n3\n[lines 1-3 of 10; go on with start_line=4]"),
        (json!({"start_line": 11}), "[there is no line 11: the file has 10 lines]"),
    ];
    for (mut arguments, expected) in table {
        arguments["path"] = json!("out/a");
        assert_eq!(read(&world, arguments.clone()).await, expected, "{arguments}");
    }
    let long = read(&world, json!({"path": "out/b"})).await;
    assert!(long.starts_with(&"x".repeat(20)) && !long.contains(&"x".repeat(21)), "{long}");
}

#[tokio::test]
async fn the_rest_of_a_long_line_is_said_to_be_missing() {
    let files = FilesSettings::default().with_max_bytes(4);
    let world = written(Plan::new().files(files), "printf '12345678\\nx\\n' > out/a").await;
    let first = read(&world, json!({"path": "out/a"})).await;
    assert_eq!(
        first,
        "1234\n[line 1 is cut after 4 bytes]\n[lines 1-1 of 2; go on with start_line=2]"
    );
    assert_eq!(read(&world, json!({"path": "out/a", "start_line": 2})).await, "x\n");
}

#[tokio::test]
async fn of_a_large_file_the_beginning_can_be_read() {
    let files = FilesSettings::default().with_max_file_bytes(4);
    let world = written(Plan::new().files(files), "printf '1\\n2\\n3\\n' > out/a").await;
    let expected = "1\n2\n[the first 4 of 6 bytes can be read]";
    assert_eq!(read(&world, json!({"path": "out/a"})).await, expected);
}

#[tokio::test]
async fn files_and_artifacts_are_there_in_later_turns() {
    let plan = Plan::new().dialect("trpc");
    let world = plan.build();
    world.load("demo").await;
    let outputs = json!({"globs": ["out/*"], "save": true});
    let run = world.run_with("echo hi > out/a.txt", json!({"outputs": outputs})).await;
    assert!(!run.is_error);
    let agent = prowess_runtime::AgentName::default();
    let request = TurnRequest::new();
    world.runtime.begin_turn(&world.session, &agent, request).await.unwrap();
    // The skill is not loaded any more; what it wrote is there.
    assert_eq!(refusal(&world.run(":").await).0, "skill_not_loaded");
    for name in ["workspace://out/a.txt", "artifact://out/a.txt", "artifact://out/a.txt@0"] {
        assert_eq!(read(&world, json!({"file_name": name})).await, "hi\n", "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_with_a_name() {
    let world = written(Plan::new(), "printf '\\0\\1' > out/a.bin; mkdir out/folder").await;
    let table = [
        ("out/missing", "file_not_found"),
        ("artifact://missing", "file_not_found"),
        ("out/a.bin", "not_text"),
        ("out/folder", "not_a_file"),
        ("../x", "invalid_arguments"),
        ("/etc/passwd", "invalid_arguments"),
        ("workspace://../../x", "invalid_arguments"),
        ("http://example.com", "invalid_arguments"),
        ("artifact://", "invalid_arguments"),
        ("", "invalid_arguments"),
    ];
    for (path, code) in table {
        let outcome = world.call("read_file", json!({"path": path})).await;
        assert_eq!(refusal(&outcome).0, code, "{path}: {}", outcome.content);
    }
    let world = written(Plan::new().without_artifacts(), ":").await;
    let outcome = world.call("read_file", json!({"path": "artifact://a"})).await;
    assert_eq!(refusal(&outcome).0, "no_artifact_store");
}

#[tokio::test]
async fn folders_are_listed() {
    let files = FilesSettings::default().with_max_entries(3);
    let command = "cd out; printf 12 > b.txt; mkdir a; ln -s /etc link; mkfifo pipe";
    let world = written(Plan::new().files(files), command).await;
    let list = async |path: Value| {
        let outcome = world.call("ls", path).await;
        assert!(!outcome.is_error, "{}", outcome.content);
        outcome.content
    };
    let expected = "a/\nb.txt (2 bytes)\nlink (link)\n[and 1 more]";
    for path in ["out", "workspace://out", "$OUTPUT_DIR", "/out/", "skills/demo/out"] {
        assert_eq!(list(json!({"path": path})).await, expected, "{path}");
    }
    assert_eq!(list(json!({"path": "out/a"})).await, "(empty)");
    assert_eq!(list(json!({})).await, "out/\nruns/\nskills/\n[and 1 more]");
    assert_eq!(list(json!({"path": "inputs"})).await, "(empty)");
    let outcome = world.call("ls", json!({"path": "out/link"})).await;
    assert!(outcome.is_error, "{}", outcome.content);
    let outcome = world.call("ls", json!({"path": "out/missing"})).await;
    assert_eq!(refusal(&outcome).0, "file_not_found");
    for name in ["x", "user:y"] {
        let saved = world.artifacts.save(&world.scope(), name, "text/plain", [][..].into()).await;
        saved.unwrap();
    }
    assert_eq!(list(json!({"path": "artifact://"})).await, "artifact://user:y\nartifact://x");
}
