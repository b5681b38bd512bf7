//! The examples of seed 002 for `skill_run` and `read_file`, as they are written there, after a
//! load; in every sandbox.

mod support;

use std::fs;
use std::path::Path;

use prowess_workspace::ArtifactStore;
use serde_json::json;
use support::{Plan, TIERS, executor_of, shown};

/// A file of this machine that the first example names; taken away again if we made it.
struct Notes {
    lines: usize,
    is_ours: bool,
}

const NOTES: &str = "/tmp/notes.txt";

impl Notes {
    fn new() -> Self {
        let is_ours = !Path::new(NOTES).exists();
        if is_ours {
            fs::write(NOTES, "one\ntwo\nthree\n").unwrap();
        }
        let bytes = fs::read(NOTES).unwrap();
        Self { lines: bytes.iter().filter(|byte| **byte == b'\n').count(), is_ours }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(NOTES);
        }
    }
}

#[tokio::test]
async fn stage_an_external_input_file_and_collect_a_small_text_output() {
    let notes = Notes::new();
    for tier in TIERS {
        let plan = Plan::new().executor(executor_of(tier));
        let world = plan.settings(|it| it.with_host_inputs(vec!["/tmp".into()])).build();
        world.load("demo").await;
        let outcome = world
            .call(
                "skill_run",
                json!({
                  "skill": "demo",
                  "inputs": [
                    {
                      "from": "host:///tmp/notes.txt",
                      "to": "work/inputs/notes.txt",
                      "mode": "copy"
                    }
                  ],
                  "command": "mkdir -p out; wc -l work/inputs/notes.txt > out/lines.txt",
                  "outputs": {
                    "globs": ["$OUTPUT_DIR/lines.txt"],
                    "inline": true,
                    "save": false,
                    "max_files": 1
                  }
                }),
            )
            .await;
        let shown = shown(&outcome);
        assert_eq!(shown["exit_code"], 0, "{shown}");
        let file = &shown["output_files"][0];
        let content = format!("{} work/inputs/notes.txt\n", notes.lines);
        assert_eq!((&file["name"], &file["content"]), (&json!("out/lines.txt"), &json!(content)));
        // The file is in the list, so that the primary output need only be named.
        let expected = json!({"name": "out/lines.txt", "ref": "workspace://out/lines.txt"});
        assert_eq!(shown["primary_output"], expected);
        assert_eq!(outcome.data["primary_output"]["content"], content);
        assert_eq!(shown.get("artifact_files"), None);
    }
}

#[tokio::test]
async fn metadata_only_outputs_and_reading_them_later() {
    for tier in TIERS {
        let world = Plan::new().executor(executor_of(tier)).build();
        world.load("demo").await;
        let outcome = world
            .call(
                "skill_run",
                json!({
                  "skill": "demo",
                  "command": "mkdir -p out; echo hi > out/a.txt",
                  "output_files": ["out/*.txt"],
                  "omit_inline_content": true
                }),
            )
            .await;
        let shown = shown(&outcome);
        let file = json!({
            "name": "out/a.txt", "ref": "workspace://out/a.txt", "mime_type": "text/plain",
            "size_bytes": 3, "truncated": false,
        });
        assert_eq!(shown["output_files"], json!([file]));
        assert_eq!(shown["primary_output"], file);
        let read = world
            .call(
                "read_file",
                json!({
                  "file_name": "workspace://out/a.txt",
                  "start_line": 1,
                  "num_lines": 20
                }),
            )
            .await;
        assert_eq!((read.content.as_str(), read.is_error), ("hi\n", false));
    }
}

#[tokio::test]
async fn persist_large_outputs_as_artifacts() {
    for tier in TIERS {
        let world = Plan::new().executor(executor_of(tier)).build();
        world.load("demo").await;
        let outcome = world
            .call(
                "skill_run",
                json!({
                  "skill": "demo",
                  "command": "mkdir -p out; echo report > out/report.txt",
                  "outputs": {
                    "globs": ["$OUTPUT_DIR/report.txt"],
                    "inline": false,
                    "save": true,
                    "max_files": 5
                  }
                }),
            )
            .await;
        let shown = shown(&outcome);
        assert_eq!(shown["artifact_files"], json!([{"name": "out/report.txt", "version": 0}]));
        assert_eq!(shown["output_files"][0].get("content"), None);
        let kept = &outcome.artifacts[0];
        assert_eq!((kept.name.as_str(), kept.version), ("out/report.txt", 0));
        for name in ["artifact://out/report.txt", "artifact://out/report.txt@0"] {
            let read = world.call("read_file", json!({"file_name": name})).await;
            assert_eq!(read.content, "report\n", "{name}");
        }
    }
}

#[tokio::test]
async fn legacy_artifact_save_path() {
    for tier in TIERS {
        let world = Plan::new().executor(executor_of(tier)).build();
        world.load("demo").await;
        let outcome = world
            .call(
                "skill_run",
                json!({
                  "skill": "demo",
                  "command": "mkdir -p out; echo report > out/report.txt",
                  "output_files": ["out/report.txt"],
                  "omit_inline_content": true,
                  "save_as_artifacts": true,
                  "artifact_prefix": "pref/"
                }),
            )
            .await;
        let shown = shown(&outcome);
        let expected = json!([{"name": "pref/out/report.txt", "version": 0}]);
        assert_eq!(shown["artifact_files"], expected);
        let kept = world.artifacts.load(&world.scope(), "pref/out/report.txt", None).await;
        assert_eq!(&*kept.unwrap().unwrap().bytes, b"report\n");
    }
}
