//! What comes out of a run: files, artifacts, the primary output; and what must not.

mod support;

use std::fs;

use prowess_workspace::ArtifactStore;
use serde_json::{Value, json};
use support::{Plan, World, shown, stdout};

async fn loaded(plan: Plan) -> World {
    let world = plan.build();
    world.load("demo").await;
    world
}

fn names(shown: &Value) -> Vec<&str> {
    let files = shown["output_files"].as_array().unwrap();
    files.iter().map(|file| file["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn globs_name_files_below_the_workspace() {
    let world = loaded(Plan::new()).await;
    let command = "mkdir -p out/deep work/x; touch out/a.txt out/deep/b.txt work/x/c.txt; \
                   echo run > $RUN_DIR/d.txt";
    let table: [(Value, &[&str]); 6] = [
        (json!(["out/*.txt"]), &["out/a.txt"]),
        (json!(["$OUTPUT_DIR/**"]), &["out/a.txt", "out/deep/b.txt"]),
        (json!(["${WORK_DIR}/**/*.txt"]), &["work/x/c.txt"]),
        (json!(["out/a.txt", "out/*"]), &["out/a.txt"]),
        (json!(["skills/demo/out/a.txt"]), &["out/a.txt"]),
        (json!(["nothing/*"]), &[]),
    ];
    for (globs, expected) in table {
        let outcome = world.run_with(command, json!({"output_files": globs})).await;
        assert_eq!(names(&shown(&outcome)), expected, "{globs}");
    }
    let outcome = world.run_with(command, json!({"output_files": ["$RUN_DIR/*"]})).await;
    assert_eq!(shown(&outcome)["output_files"][0]["content"], "run\n");
}

#[tokio::test]
async fn files_say_what_they_are_and_only_text_is_shown() {
    let world = loaded(Plan::new()).await;
    let command = "cd out; printf '\\x89PNG\\r\\n\\x1a\\n' > a.png; echo '{}' > b.json; \
                   echo a,b > c.csv; printf '\\377\\376' > d.bin; echo '# x' > e.md";
    let outcome = world.run_with(command, json!({"output_files": ["out/*"]})).await;
    let shown = shown(&outcome);
    let files = shown["output_files"].as_array().unwrap();
    let seen: Vec<(&str, &str, bool)> = files
        .iter()
        .map(|file| {
            let text = |key: &str| file[key].as_str().unwrap();
            (text("name"), text("mime_type"), file.get("content").is_some())
        })
        .collect();
    let expected = [
        ("out/a.png", "image/png", false),
        ("out/b.json", "application/json", true),
        ("out/c.csv", "text/csv", true),
        ("out/d.bin", "application/octet-stream", false),
        ("out/e.md", "text/markdown", true),
    ];
    assert_eq!(seen, expected);
    assert_eq!(shown["primary_output"]["name"], "out/b.json");
}

#[tokio::test]
async fn limits_of_a_call_hold_and_are_said() {
    let world = loaded(Plan::new()).await;
    let command = "cd out; for f in a b c; do printf 12345 > $f.txt; done";
    let run = async |limits: Value| {
        let mut outputs = json!({"globs": ["out/*"], "inline": true});
        outputs.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
        shown(&world.run_with(command, json!({"outputs": outputs})).await)
    };
    let all = run(json!({"max_files": 3, "max_file_bytes": 5, "max_total_bytes": 15})).await;
    assert_eq!(names(&all).len(), 3);
    assert_eq!(all.get("limits_hit"), None);
    let few = run(json!({"MaxFiles": 2})).await;
    assert_eq!(names(&few), ["out/a.txt", "out/b.txt"]);
    assert_eq!(few["limits_hit"], json!(["max_files"]));
    assert_eq!(few["refused_files"], json!([{"name": "out/c.txt", "reason": "too_many"}]));
    let short = run(json!({"max_file_bytes": 4})).await;
    let file = &short["output_files"][0];
    let seen = (&file["content"], &file["size_bytes"], &file["truncated"]);
    assert_eq!(seen, (&json!("1234"), &json!(5), &json!(true)));
    let little = run(json!({"max_total_bytes": 10})).await;
    assert_eq!(names(&little).len(), 2);
    assert_eq!(little["limits_hit"], json!(["max_total_bytes"]));
}

#[tokio::test]
async fn only_so_much_text_is_shown_at_once() {
    let world = loaded(Plan::new().settings(|it| it.with_max_inline_bytes(10))).await;
    let command = "cd out; printf 12345 > a; printf 12345 > b; printf 1 > c";
    let shown = shown(&world.run_with(command, json!({"output_files": ["out/*"]})).await);
    let files = shown["output_files"].as_array().unwrap();
    let has: Vec<bool> = files.iter().map(|file| file.get("content").is_some()).collect();
    assert_eq!(has, [true, true, false]);
    let warnings = shown["warnings"].to_string();
    assert!(warnings.contains("content of 1 output_files omitted"), "{warnings}");
}

#[tokio::test]
async fn the_primary_output_is_the_first_short_text() {
    let world = loaded(Plan::new().settings(|it| it.with_primary_output_bytes(10))).await;
    let command = "cd out; printf '  ' > a.txt; printf 12345678901 > b.txt; \
                   printf '\\0' > c.bin; printf 1234567890 > d.txt; echo e > e.txt";
    let outcome = world.run(command).await;
    let shown = shown(&outcome);
    assert_eq!(shown["output_files"], json!([]));
    let primary = &shown["primary_output"];
    let seen = (&primary["name"], &primary["content"], &primary["ref"]);
    assert_eq!(seen, (&json!("out/d.txt"), &json!("1234567890"), &json!("workspace://out/d.txt")));
}

#[tokio::test]
async fn what_an_earlier_run_wrote_is_no_output_of_this_one() {
    let world = loaded(Plan::new()).await;
    let first = shown(&world.run("echo one > out/a.txt").await);
    assert_eq!(first["primary_output"]["content"], "one\n");
    assert_eq!(shown(&world.run(":").await).get("primary_output"), None);
    // Written anew, with the same content, it is.
    let again = shown(&world.run("echo one > out/a.txt").await);
    assert_eq!(again["primary_output"]["content"], "one\n");
    // Whoever asks for it gets it.
    let asked = shown(&world.run_with(":", json!({"output_files": ["out/*"]})).await);
    assert_eq!(asked["output_files"][0]["content"], "one\n");
}

#[tokio::test]
async fn empty_files_of_a_failed_command_are_left_out() {
    let world = loaded(Plan::new()).await;
    let arguments = json!({"outputs": {"globs": ["out/*"], "save": true}});
    let command = "echo x > out/full; missing-program > out/empty";
    let shown = shown(&world.run_with(command, arguments.clone()).await);
    assert_eq!(names(&shown), ["out/full"]);
    assert_eq!(shown["artifact_files"], json!([{"name": "out/full", "version": 0}]));
    let warnings = shown["warnings"].to_string();
    assert!(warnings.contains("empty output_files omitted because command failed"), "{warnings}");
    // Of a command that succeeds, they are meant.
    let outcome = world.run_with("true > out/empty", arguments).await;
    assert_eq!(names(&support::shown(&outcome)), ["out/empty", "out/full"]);
}

#[tokio::test]
async fn what_is_to_be_kept_and_cannot_be_is_said() {
    let world = loaded(Plan::new().without_artifacts()).await;
    let table = [
        (json!({"outputs": {"globs": ["out/*"], "save": true}}), "outputs.save"),
        (json!({"output_files": ["out/*"], "save_as_artifacts": true}), "save_as_artifacts"),
    ];
    for (arguments, asked_by) in table {
        let shown = shown(&world.run_with("echo x > out/a", arguments).await);
        assert_eq!(names(&shown), ["out/a"]);
        let warning = format!(
            "{asked_by} requested but no artifact store is configured; outputs are not persisted"
        );
        assert_eq!(shown["warnings"], json!([warning]));
        assert_eq!(shown.get("artifact_files"), None);
    }
    let world = loaded(Plan::new()).await;
    let outputs = json!({"globs": ["out/*"], "save": true, "max_file_bytes": 1});
    let shown = shown(&world.run_with("echo x > out/a", json!({"outputs": outputs})).await);
    assert!(shown["warnings"].to_string().contains("too large and was not saved"), "{shown}");
    let outputs = json!({"globs": ["out/*"], "save": true, "name_template": "../"});
    let shown =
        support::shown(&world.run_with("echo x > out/a", json!({"outputs": outputs})).await);
    assert!(shown["warnings"].to_string().contains("was not saved"), "{shown}");
}

#[tokio::test]
async fn every_save_is_a_version() {
    let world = loaded(Plan::new()).await;
    for version in 0..3 {
        let outputs = json!({"globs": ["out/a"], "save": true, "name_template": "user:"});
        let command = format!("echo {version} > out/a");
        let outcome = world.run_with(&command, json!({"outputs": outputs})).await;
        assert_eq!(outcome.artifacts[0].version, version);
    }
    // What belongs to the user is seen from other sessions.
    let world = world.as_session("other");
    let kept = world.artifacts.load(&world.scope(), "user:out/a", Some(1)).await.unwrap().unwrap();
    assert_eq!(&*kept.bytes, b"1\n");
}

#[tokio::test]
async fn hostile_outputs_are_refused_and_listed() {
    let world = loaded(Plan::new().file("secret", "secret")).await;
    let secret = world.path("secret");
    let command = format!(
        "cd out; ln -s {0} link; ln -s / root; mkfifo pipe; echo ok > ok.txt; ln ok.txt hard; \
         echo fine > fine.txt",
        secret.display()
    );
    let root = secret.strip_prefix("/").unwrap().display().to_string();
    let globs = json!(["out/*", format!("out/root/{root}")]);
    let arguments = json!({"outputs": {"globs": globs, "inline": true, "save": true}});
    let outcome = world.run_with(&command, arguments).await;
    // The control: whoever follows the link reads the secret.
    assert_eq!(fs::read_to_string(world.workspace().join("out/link")).unwrap(), "secret");
    assert!(!outcome.content.contains("\"secret\""), "{}", outcome.content);
    let shown = shown(&outcome);
    assert_eq!(names(&shown), ["out/fine.txt"]);
    assert_eq!(shown["artifact_files"], json!([{"name": "out/fine.txt", "version": 0}]));
    let refused = shown["refused_files"].as_array().unwrap();
    for (name, reason) in [
        ("out/link", "symlink"),
        ("out/pipe", "special"),
        ("out/hard", "hard_linked"),
        ("out/ok.txt", "hard_linked"),
    ] {
        let expected = json!({"name": name, "reason": reason});
        assert!(refused.contains(&expected), "{name}: {refused:?}");
    }
    // The same through the file tools.
    for path in ["out/link", "out/root/etc/passwd", "out/pipe", "out/hard"] {
        let read = world.call("read_file", json!({"path": path})).await;
        assert!(read.is_error, "{path}: {}", read.content);
    }
}

#[tokio::test]
async fn a_glob_that_is_wrong_does_not_hide_the_result() {
    let world = loaded(Plan::new()).await;
    let outcome = world.run_with("echo hi", json!({"output_files": ["../../**"]})).await;
    assert_eq!(stdout(&outcome), "hi\n");
    let shown = shown(&outcome);
    assert!(names(&shown).is_empty());
    assert!(shown["warnings"].to_string().contains("outputs were not collected"), "{shown}");
}
