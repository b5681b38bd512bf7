//! `write_file`, `edit_file`, `glob`, `grep` and `execute`: on backends and on workspaces.

mod support;

use std::sync::Arc;

use prowess_catalog::Catalog;
use prowess_runtime::{AgentName, Runtime, Step, ToolCall, ToolOutcome, Toolkit};
use prowess_toolkits::{
    Backend, BackendFuture, CollectedFile, Entries, Expected, FilesAccess, FilesSettings,
    FilesToolkit, LocalBackend, MemoryBackend, WorkspacePath, Wrote,
};
use prowess_workspace::{WorkspaceId, Workspaces};
use serde_json::{Value, json};
use support::{Plan, executor, refusal};

fn names(toolkit: &FilesToolkit) -> Vec<String> {
    toolkit.tools().iter().map(|tool| tool.declaration().name.clone()).collect()
}

fn runtime(toolkit: FilesToolkit) -> Runtime {
    let catalog = Catalog::builder().build();
    Runtime::builder(catalog).toolkit(Arc::new(toolkit)).build().unwrap()
}

async fn call(runtime: &Runtime, tool: &str, arguments: Value) -> ToolOutcome {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let id = format!("call-{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let call = ToolCall::new(id, tool, arguments);
    runtime.dispatch(&"test".parse().unwrap(), &AgentName::default(), call).await.unwrap()
}

async fn ok(runtime: &Runtime, tool: &str, arguments: Value) -> String {
    let outcome = call(runtime, tool, arguments.clone()).await;
    assert!(!outcome.is_error, "{tool} {arguments}: {}", outcome.content);
    outcome.content
}

async fn code(runtime: &Runtime, tool: &str, arguments: Value) -> String {
    let outcome = call(runtime, tool, arguments.clone()).await;
    assert!(outcome.is_error, "{tool} {arguments}: {}", outcome.content);
    outcome.code.into_owned()
}

#[test]
fn tools_are_those_of_the_access_and_the_backend() {
    let read = ["read_file", "ls"].as_slice();
    let search = ["read_file", "ls", "glob", "grep"].as_slice();
    let write = ["read_file", "ls", "glob", "grep", "write_file", "edit_file"].as_slice();
    let workspaces = Workspaces::new("/nowhere");
    let on_workspaces = FilesToolkit::new(workspaces);
    let on_backend = FilesToolkit::on(MemoryBackend::new());
    assert_eq!(names(&on_workspaces), read);
    assert_eq!(names(&on_backend), write);
    for (access, expected) in
        [(FilesAccess::Read, read), (FilesAccess::Search, search), (FilesAccess::Write, write)]
    {
        assert_eq!(names(&on_workspaces.clone().with_access(access)), expected);
        assert_eq!(names(&on_backend.clone().with_access(access)), expected);
    }
}

#[tokio::test]
async fn files_are_written_read_edited_and_listed() {
    let runtime = runtime(FilesToolkit::on(MemoryBackend::new()));
    let write = json!({"file_path": "/notes/a.md", "content": "one\ntwo\n"});
    assert_eq!(ok(&runtime, "write_file", write.clone()).await, "Created /notes/a.md (8 bytes)");
    assert_eq!(ok(&runtime, "write_file", write).await, "Replaced /notes/a.md (8 bytes)");
    for path in ["/notes/a.md", "notes/a.md", "./notes//a.md", "notes/../notes/a.md"] {
        assert_eq!(ok(&runtime, "read_file", json!({"path": path})).await, "one\ntwo\n", "{path}");
    }
    let edit = json!({"path": "notes/a.md", "old_string": "two", "new_string": "three"});
    assert_eq!(ok(&runtime, "edit_file", edit).await, "Edited /notes/a.md in 1 place");
    let lines = json!({"path": "/notes/a.md", "start_line": 2});
    assert_eq!(ok(&runtime, "read_file", lines).await, "three\n");
    assert_eq!(ok(&runtime, "ls", json!({})).await, "notes/");
    assert_eq!(ok(&runtime, "ls", json!({"path": "/notes"})).await, "a.md (10 bytes)");
}

#[tokio::test]
async fn what_cannot_be_done_is_an_error_with_a_name() {
    let files = MemoryBackend::new().with_file("a/b.txt", "x x").unwrap();
    let files = files.with_file("binary", [255, 0]).unwrap();
    let runtime = runtime(FilesToolkit::on(files));
    let edit = |path: &str, old: &str| json!({"path": path, "old_string": old, "new_string": "y"});
    let write = |path: &str| json!({"path": path, "content": ""});
    let table = [
        ("read_file", json!({"path": "c"}), "file_not_found"),
        ("read_file", json!({"path": "a"}), "is_directory"),
        ("read_file", json!({"path": "binary"}), "not_text"),
        ("read_file", json!({"path": "../c"}), "invalid_path"),
        ("read_file", json!({"path": "a\\b"}), "invalid_path"),
        ("read_file", json!({"path": "workspace://a/b.txt"}), "invalid_arguments"),
        ("read_file", json!({"path": "artifact://a"}), "no_artifact_store"),
        ("ls", json!({"path": "a/b.txt"}), "not_a_folder"),
        ("ls", json!({"path": "c"}), "file_not_found"),
        ("write_file", write("a"), "is_directory"),
        ("write_file", write("/"), "is_directory"),
        ("write_file", write("a/b.txt/c"), "not_a_folder"),
        ("write_file", write("/../c"), "invalid_path"),
        ("write_file", write("artifact://c"), "invalid_arguments"),
        ("write_file", json!({"path": "c"}), "invalid_arguments"),
        ("edit_file", edit("c", "x"), "file_not_found"),
        ("edit_file", edit("a/b.txt", "z"), "string_not_found"),
        ("edit_file", edit("a/b.txt", "x"), "string_not_unique"),
        ("edit_file", edit("a/b.txt", ""), "invalid_arguments"),
        ("edit_file", edit("binary", "x"), "not_text"),
        ("edit_file", edit("../x", "x"), "invalid_path"),
        ("glob", json!({"pattern": "["}), "invalid_glob"),
        ("glob", json!({"pattern": "../*"}), "invalid_glob"),
        ("glob", json!({"pattern": "*", "path": "c"}), "file_not_found"),
        ("grep", json!({"pattern": "x", "glob": "{"}), "invalid_glob"),
        ("grep", json!({"pattern": "x", "path": ".."}), "invalid_path"),
    ];
    for (tool, arguments, expected) in table {
        assert_eq!(code(&runtime, tool, arguments.clone()).await, expected, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn searches_tell_files_lines_and_counts() {
    let files = MemoryBackend::new().with_file("src/a.rs", "use x.y;\nuse xzy;\nx.y\n").unwrap();
    let files = files.with_file("doc/b.md", "x.y\n").unwrap();
    let files = files.with_file("image", [0, 159]).unwrap();
    let runtime = runtime(FilesToolkit::on(files));
    let grep = async |more: Value| {
        let mut arguments = json!({"pattern": "x.y"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ok(&runtime, "grep", arguments).await
    };
    let binary = "\n[1 files or folders are not text]";
    // A text, not a regular expression: `xzy` does not count.
    assert_eq!(grep(json!({})).await, format!("/doc/b.md\n/src/a.rs{binary}"));
    let counted = format!("/doc/b.md:1\n/src/a.rs:2{binary}");
    assert_eq!(grep(json!({"output_mode": "count"})).await, counted);
    let lines = grep(json!({"output_mode": "content", "path": "src"})).await;
    assert_eq!(lines, "/src/a.rs:1:use x.y;\n/src/a.rs:3:x.y");
    assert_eq!(grep(json!({"glob": "*.md"})).await, "/doc/b.md");
    assert_eq!(grep(json!({"glob": "src/*"})).await, "/src/a.rs");
    assert_eq!(
        ok(&runtime, "grep", json!({"pattern": "none", "path": "doc"})).await,
        "(nothing found)"
    );
    assert_eq!(ok(&runtime, "glob", json!({"pattern": "**/*.rs"})).await, "/src/a.rs");
    assert_eq!(ok(&runtime, "glob", json!({"pattern": "*.rs"})).await, "(nothing found)");
    assert_eq!(ok(&runtime, "glob", json!({"pattern": "*.rs", "path": "/src"})).await, "/src/a.rs");
}

#[tokio::test]
async fn every_limit_holds_at_its_edge() {
    let settings = FilesSettings::default().with_max_write_bytes(4).with_max_matches(2);
    let settings = settings.with_max_entries(2).with_max_bytes(5);
    let runtime = runtime(FilesToolkit::on(MemoryBackend::new()).with_settings(settings));
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    ok(&runtime, "write_file", write("a", "1234")).await;
    let over = call(&runtime, "write_file", write("b", "12345")).await;
    assert_eq!(refusal(&over).0, "too_large");
    assert_eq!(over.content, "Error: '/b': 5 bytes exceed `max_write_bytes` = 4");
    let grow = json!({"path": "a", "old_string": "4", "new_string": "45"});
    assert_eq!(code(&runtime, "edit_file", grow).await, "too_large");
    ok(&runtime, "write_file", write("b", "2")).await;
    assert_eq!(ok(&runtime, "glob", json!({"pattern": "*"})).await, "/a\n/b");
    assert_eq!(ok(&runtime, "ls", json!({})).await, "a (4 bytes)\nb (1 bytes)");
    ok(&runtime, "write_file", write("c", "2")).await;
    let found = ok(&runtime, "glob", json!({"pattern": "*"})).await;
    assert_eq!(found, "/a\n/b\n[the search ended at max_matches = 2; search for less]");
    assert_eq!(ok(&runtime, "ls", json!({})).await, "a (4 bytes)\nb (1 bytes)\n[and 1 more]");
    let found = ok(&runtime, "grep", json!({"pattern": "2", "output_mode": "content"})).await;
    let cut = "[the search ended at max_matches = 2; search for less]";
    assert_eq!(found, format!("/a:1:\n{cut}\n[and 2 more, beyond max_bytes = 5]"));
}

/// A backend in which somebody else writes between each of our first reads and writes.
struct Meddled {
    files: MemoryBackend,
    left: std::sync::atomic::AtomicUsize,
}

impl Backend for Meddled {
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries> {
        self.files.list(folder, most)
    }

    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile> {
        Box::pin(async move {
            let read = self.files.read(file, limit).await?;
            use std::sync::atomic::Ordering::Relaxed;
            if self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                let more = [read.bytes.as_slice(), b"more\n"].concat();
                self.files.write(file, &more, Expected::Anything).await?;
            }
            Ok(read)
        })
    }

    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote> {
        self.files.write(file, bytes, expected)
    }
}

#[tokio::test]
async fn an_edit_keeps_what_others_wrote_meanwhile() {
    let files = MemoryBackend::new().with_file("a", "old\n").unwrap();
    let edit = json!({"path": "a", "old_string": "old", "new_string": "new"});
    let meddled = |left: usize| Meddled { files: files.clone(), left: left.into() };
    let patient = runtime(FilesToolkit::on(meddled(3)));
    ok(&patient, "edit_file", edit.clone()).await;
    let all = ok(&patient, "read_file", json!({"path": "a"})).await;
    assert_eq!(all, "new\nmore\nmore\nmore\n");
    // Whoever writes all the time is given way to, with a word.
    files.clone().with_file("a", "old\n").unwrap();
    let hopeless = runtime(FilesToolkit::on(meddled(usize::MAX)));
    assert_eq!(code(&hopeless, "edit_file", edit).await, "file_changed");
}

#[tokio::test]
async fn edits_of_one_step_are_all_made() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..8).map(|number| format!("<{number}>\n")).collect();
    std::fs::write(folder.path().join("a"), text).unwrap();
    let runtime = runtime(FilesToolkit::on(LocalBackend::new(folder.path()).unwrap()));
    let edit = |number: usize| {
        let (old, new) = (format!("<{number}>"), format!("[{number}]"));
        let arguments = json!({"path": "a", "old_string": old, "new_string": new});
        ToolCall::new(format!("edit-{number}"), "edit_file", arguments)
    };
    let (session, agent) = ("test".parse().unwrap(), AgentName::default());
    let step = Step::new((0..8).map(edit).collect());
    let done = runtime.dispatch_batch(&session, &agent, step).await.unwrap();
    assert!(done.outcomes.iter().all(|outcome| !outcome.is_error), "{:?}", done.outcomes);
    let expected: String = (0..8).map(|number| format!("[{number}]\n")).collect();
    assert_eq!(std::fs::read_to_string(folder.path().join("a")).unwrap(), expected);
}

#[tokio::test]
async fn in_a_workspace_work_and_out_can_be_written_and_skills_cannot() {
    let world = Plan::new().access(FilesAccess::Write).build();
    world.load("demo").await;
    support::stdout(
        &world.run("echo hi > out/a.txt; echo '#!/bin/sh' > work/x; chmod +x work/x").await,
    );
    let write = |path: &str| json!({"path": path, "content": "new\n"});
    for path in ["out/b.txt", "work/b.txt", "$WORK_DIR/c.txt", "inputs/d.txt", "skills/demo/out/e"]
    {
        let outcome = world.call("write_file", write(path)).await;
        assert!(!outcome.is_error, "{path}: {}", outcome.content);
        let outcome = world.call("read_file", json!({"path": path})).await;
        assert_eq!(outcome.content, "new\n", "{path}");
    }
    for path in ["skills/demo/SKILL.md", "skills/new/SKILL.md", "runs/x", "metadata.json", "x"] {
        let outcome = world.call("write_file", write(path)).await;
        assert_eq!(refusal(&outcome).0, "permission_denied", "{path}: {}", outcome.content);
        assert!(outcome.content.contains("write below work/ or out/"), "{}", outcome.content);
    }
    for path in ["../x", "/etc/x", "workspace://../x"] {
        assert_eq!(refusal(&world.call("write_file", write(path)).await).0, "invalid_arguments");
    }
    let edit = json!({"path": "work/x", "old_string": "sh", "new_string": "bash"});
    assert!(!world.call("edit_file", edit).await.is_error);
    // It can still be run, by whom it belongs to.
    assert_eq!(support::stdout(&world.run("work/x && cat work/x").await), "#!/bin/bash\n");
    let edit = json!({"path": "skills/demo/SKILL.md", "old_string": "Body", "new_string": "Evil"});
    assert_eq!(refusal(&world.call("edit_file", edit).await).0, "permission_denied");
    let found = world.call("glob", json!({"pattern": "*.txt", "path": "out"})).await;
    assert_eq!(found.content, "out/a.txt\nout/b.txt");
    // What a skill's own links lead to is found once.
    let found = world.call("glob", json!({"pattern": "**/*.txt"})).await;
    let all = ["out/a.txt", "out/b.txt", "skills/demo/data/greeting.txt"];
    let more = ["work/b.txt", "work/c.txt", "work/inputs/d.txt"];
    assert_eq!(found.content, [all, more].concat().join("\n"));
    let found = world.call("grep", json!({"pattern": "hello", "path": "skills"})).await;
    assert_eq!(found.content, "skills/demo/data/greeting.txt");
}

#[tokio::test]
async fn commands_run_where_the_files_are_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let workspaces = Workspaces::new(folder.path().join("workspaces"));
    let workspace = workspaces.open(&WorkspaceId::new("app", "user", "session")).unwrap();
    let backend = LocalBackend::in_workspace(workspace, executor()).unwrap();
    let settings = FilesSettings::default().with_max_command_seconds(2).with_max_output_bytes(64);
    let toolkit = FilesToolkit::on(backend).with_settings(settings);
    assert_eq!(names(&toolkit).last().unwrap(), "execute");
    let runtime = runtime(toolkit);
    ok(&runtime, "write_file", json!({"path": "/d/a.txt", "content": "6\n"})).await;
    let execute =
        async |command: &str| call(&runtime, "execute", json!({"command": command})).await;
    let ran = execute("echo $(( $(cat d/a.txt) * 7 )) > d/b.txt; cat d/b.txt; echo err >&2").await;
    assert_eq!((ran.content.as_str(), &*ran.code), ("42\nerr\n[exit code 0]", "ok"));
    assert_eq!(ok(&runtime, "read_file", json!({"path": "d/b.txt"})).await, "42\n");
    // What a command made can be edited, and the other way round.
    let edit = json!({"path": "d/b.txt", "old_string": "42", "new_string": "43"});
    ok(&runtime, "edit_file", edit).await;
    assert_eq!(execute("echo 44 >> d/b.txt && cat d/b.txt").await.content, "43\n44\n[exit code 0]");
    let failed = execute("exit 3").await;
    assert_eq!((failed.content.as_str(), &*failed.code), ("[exit code 3]", "command_failed"));
    let late = execute("sleep 9").await;
    assert_eq!((late.content.as_str(), &*late.code), ("[timed out after 2 s]", "timed_out"));
    let long = execute("seq 1000").await.content;
    assert!(long.contains("[the output is cut at max_output_bytes]"), "{long}");
    let more = call(&runtime, "execute", json!({"command": ":", "timeout": 9})).await.content;
    assert!(more.contains("[timeout is limited to 2 s by the host]"), "{more}");
    // The control can read the secret.
    let secret = folder.path().join("secret");
    let read = format!("cat {}", secret.display());
    let control = std::process::Command::new("sh").args(["-c", &read]).output().unwrap();
    assert_eq!(control.stdout, b"secret");
    let attack = execute(&read).await;
    assert!(!attack.content.contains("secret\n") && &*attack.code == "command_failed");
}
