//! `inputs` of `skill_run`: the four places that they come from, and what must not come in or go
//! out by them. Each attack succeeds against a control in the same test.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use prowess_workspace::ArtifactStore;
use serde_json::{Value, json};
use support::{Plan, World, refusal, shown, stdout};

async fn loaded(plan: Plan) -> World {
    let world = plan.build();
    world.load("demo").await;
    world
}

/// Lists what came in, with what it holds.
const SHOW: &str = "cd $WORK_DIR && find . -type f -o -type l | sort | while read -r f; do \
                    echo \"$f=$(cat \"$f\")\"; done";

async fn bring(world: &World, input: Value) -> prowess_runtime::ToolOutcome {
    world.run_with(SHOW, json!({"inputs": [input]})).await
}

fn host(world: &World, path: &str) -> String {
    format!("host://{}", world.path(path).display())
}

async fn save(world: &World, name: &str, text: &str) -> u64 {
    let bytes: Arc<[u8]> = text.as_bytes().into();
    world.artifacts.save(&world.scope(), name, "text/plain", bytes).await.unwrap()
}

#[tokio::test]
async fn a_file_of_this_machine_comes_in_under_the_name_that_was_asked_for() {
    let world = loaded(Plan::new().sharing().file("shared/notes.txt", "notes")).await;
    let from = host(&world, "shared/notes.txt");
    let table = [
        (json!({"from": from}), "./inputs/notes.txt=notes\n"),
        (json!({"from": from, "to": "work/inputs/other.txt"}), "./inputs/other.txt=notes\n"),
        (json!({"from": from, "to": "inputs/third.txt"}), "./inputs/third.txt=notes\n"),
        (json!({"from": from, "to": "work/a/b/"}), "./a/b/notes.txt=notes\n"),
    ];
    for (input, expected) in table {
        let printed = stdout(&bring(&world, input.clone()).await);
        assert!(printed.contains(expected), "{input}: {printed}");
    }
}

#[tokio::test]
async fn a_folder_of_this_machine_comes_in_whole_but_for_its_links() {
    let world = loaded(
        Plan::new().sharing().file("shared/set/a.txt", "a").file("shared/set/deep/b.txt", "b"),
    )
    .await;
    symlink("/etc/hostname", world.path("shared/set/link")).unwrap();
    let outcome = bring(&world, json!({"from": host(&world, "shared/set")})).await;
    assert_eq!(stdout(&outcome), "./inputs/set/a.txt=a\n./inputs/set/deep/b.txt=b\n");
    let warnings = shown(&outcome)["warnings"].to_string();
    assert!(warnings.contains("1 left out") && warnings.contains("link"), "{warnings}");
}

#[tokio::test]
async fn files_outside_of_the_allowed_folders_do_not_come_in() {
    let plan = || {
        Plan::new()
            .file("secret.txt", "secret")
            .file("shared2/secret.txt", "secret")
            .file("shared/ok.txt", "ok")
    };
    // The control: where the host allows all of it, each of these is read.
    let open = plan();
    let world = loaded(open.settings(|it| it.with_host_inputs(vec!["/".into()]))).await;
    for path in ["secret.txt", "shared2/secret.txt"] {
        let printed = stdout(&bring(&world, json!({"from": host(&world, path)})).await);
        assert!(printed.contains("secret"), "{printed}");
    }
    let world = loaded(plan().sharing()).await;
    let printed = stdout(&bring(&world, json!({"from": host(&world, "shared/ok.txt")})).await);
    assert_eq!(printed, "./inputs/ok.txt=ok\n");
    for path in ["secret.txt", "shared2/secret.txt"] {
        let outcome = bring(&world, json!({"from": host(&world, path)})).await;
        let (code, said) = refusal(&outcome);
        assert_eq!(code, "input_not_allowed", "{path}");
        assert!(said.contains("allowed folders"), "{said}");
    }
    let up = format!("{}/../secret.txt", host(&world, "shared"));
    for from in [up.as_str(), "host://shared/ok.txt", "file:///etc/passwd", "/etc/passwd"] {
        let outcome = bring(&world, json!({"from": from})).await;
        assert_eq!(refusal(&outcome).0, "invalid_arguments", "{from}");
    }
    // Unless a host says otherwise, nothing of its machine is read.
    let world = loaded(plan()).await;
    let outcome = bring(&world, json!({"from": host(&world, "shared/ok.txt")})).await;
    assert_eq!(refusal(&outcome).0, "input_not_allowed");
    assert_eq!(world.started(), []);
}

#[tokio::test]
async fn links_in_an_allowed_folder_do_not_lead_out_of_it() {
    let world = loaded(
        Plan::new().sharing().file("secret/key", "secret").file("shared/inside.txt", "inside"),
    )
    .await;
    symlink(world.path("secret/key"), world.path("shared/link")).unwrap();
    symlink("../secret", world.path("shared/folder")).unwrap();
    for path in ["shared/link", "shared/folder/key"] {
        // The control: whoever follows links reads the secret.
        assert_eq!(fs::read_to_string(world.path(path)).unwrap(), "secret");
        let outcome = bring(&world, json!({"from": host(&world, path)})).await;
        assert!(outcome.is_error, "{path}: {}", outcome.content);
        assert!(!outcome.content.contains("secret\n"), "{}", outcome.content);
    }
    assert_eq!(world.started(), []);
    assert!(!world.workspace().join("work/inputs/link").exists());
}

#[tokio::test]
async fn artifacts_come_in_by_version() {
    let world = loaded(Plan::new()).await;
    for text in ["zero", "one"] {
        save(&world, "set/data.txt", text).await;
    }
    let table = [
        ("artifact://set/data.txt", "one"),
        ("artifact://set/data.txt@0", "zero"),
        ("artifact://set/data.txt@1", "one"),
    ];
    for (from, text) in table {
        let printed = stdout(&bring(&world, json!({"from": from})).await);
        assert_eq!(printed, format!("./inputs/data.txt={text}\n"), "{from}");
    }
    for from in ["artifact://set/data.txt@2", "artifact://other"] {
        let outcome = bring(&world, json!({"from": from})).await;
        assert_eq!(refusal(&outcome).0, "input_not_found", "{from}");
    }
}

#[tokio::test]
async fn a_pinned_artifact_stays_at_the_version_that_came_first() {
    let world = loaded(Plan::new()).await;
    save(&world, "data", "zero").await;
    let pinned = json!({"from": "artifact://data", "pin": true});
    let read = async |input: &Value| stdout(&bring(&world, input.clone()).await);
    assert_eq!(read(&pinned).await, "./inputs/data=zero\n");
    save(&world, "data", "one").await;
    // The control: without the pin, the newest one comes.
    let free = json!({"from": "artifact://data", "to": "work/inputs/free"});
    assert_eq!(read(&free).await, "./inputs/data=zero\n./inputs/free=one\n");
    assert_eq!(read(&pinned).await, "./inputs/data=zero\n./inputs/free=one\n");
    // At another place nothing came before.
    let elsewhere = json!({"from": "artifact://data", "to": "work/inputs/b", "pin": true});
    assert!(read(&elsewhere).await.contains("./inputs/b=one\n"));
}

#[tokio::test]
async fn artifacts_need_a_store() {
    let world = loaded(Plan::new().without_artifacts()).await;
    let outcome = bring(&world, json!({"from": "artifact://data"})).await;
    assert_eq!(refusal(&outcome).0, "no_artifact_store");
    assert_eq!(world.started(), []);
}

#[tokio::test]
async fn files_of_the_workspace_and_of_skills_are_copied_or_linked() {
    let world = Plan::new().skill("other").file("skills/other/x/data.txt", "other").build();
    world.load("demo").await;
    stdout(&world.run("echo made > out/made.txt").await);
    for mode in ["copy", "link"] {
        let to = format!("work/{mode}");
        let inputs = json!([
            {"from": "workspace://out/made.txt", "to": format!("{to}/made"), "mode": mode},
            {"from": "skill://demo/data/greeting.txt", "to": format!("{to}/greeting"), "mode": mode},
        ]);
        let command = "cat made greeting";
        let more = json!({"inputs": inputs, "cwd": format!("$WORK_DIR/{mode}")});
        let outcome = world.run_with(command, more).await;
        assert_eq!(stdout(&outcome), "made\nhello\n", "{mode}");
        let is_link = fs::symlink_metadata(world.workspace().join(&to).join("made")).unwrap();
        assert_eq!(is_link.is_symlink(), mode == "link");
        assert_eq!(shown(&outcome).get("warnings"), None);
    }
    // Another skill must be loaded too.
    let other = json!({"from": "skill://other/x/data.txt"});
    assert_eq!(refusal(&bring(&world, other.clone()).await).0, "skill_not_loaded");
    world.load("other").await;
    assert!(stdout(&bring(&world, other).await).contains("./inputs/data.txt=other\n"));
}

#[tokio::test]
async fn what_cannot_be_linked_is_copied_and_said() {
    let world = loaded(Plan::new().sharing().file("shared/a", "a")).await;
    let outcome = bring(&world, json!({"from": host(&world, "shared/a"), "mode": "link"})).await;
    assert_eq!(stdout(&outcome), "./inputs/a=a\n");
    let warnings = shown(&outcome)["warnings"].to_string();
    assert!(warnings.contains("was copied: it cannot be linked"), "{warnings}");
}

#[tokio::test]
async fn sources_do_not_lead_out_of_the_workspace_or_of_a_skill() {
    let world = loaded(Plan::new().file("workspaces/secret", "secret")).await;
    stdout(&world.run(":").await);
    // The control: by these names, a path that is only joined leads to the secret.
    let secret = world.workspace().join("../secret");
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    let attacks = [
        "workspace://../secret",
        "workspace://work/../../secret",
        "workspace://skills/demo/../../../secret",
        "skill://demo/../../../secret",
        "skill://../../secret",
        "skill://demo/../../metadata.json",
    ];
    for from in attacks {
        for mode in ["copy", "link"] {
            let outcome = bring(&world, json!({"from": from, "mode": mode})).await;
            assert_eq!(refusal(&outcome).0, "invalid_arguments", "{from}");
        }
    }
    assert_eq!(world.started().len(), 1);
}

#[tokio::test]
async fn links_that_a_command_made_are_not_followed_into_inputs() {
    let world = loaded(Plan::new().file("secret", "secret")).await;
    let secret = world.path("secret");
    let command = format!("ln -s {} work/link; ln -s {} work/folder", secret.display(), "/");
    stdout(&world.run(&command).await);
    // The control: the link is there and leads to the secret, for whoever follows it.
    assert_eq!(fs::read_to_string(world.workspace().join("work/link")).unwrap(), "secret");
    for from in
        ["workspace://work/link".to_owned(), format!("workspace://work/folder{}", secret.display())]
    {
        let outcome = bring(&world, json!({"from": from, "to": "work/inputs/x"})).await;
        assert!(outcome.is_error, "{from}: {}", outcome.content);
        assert!(!world.workspace().join("work/inputs/x").exists(), "{from}");
    }
}

#[tokio::test]
async fn destinations_do_not_lead_out_of_the_workspace() {
    let world = loaded(Plan::new().file("workspaces/victim/file", "alive")).await;
    save(&world, "data", "evil").await;
    stdout(&world.run("ln -s ../.. work/up; ln -s /tmp work/tmp").await);
    let victim = |path: &Path| fs::read_to_string(path.join("victim/file")).unwrap();
    // The control: joined only, these lead to the victim.
    assert_eq!(victim(&world.workspace().join("..")), "alive");
    assert_eq!(victim(&world.workspace().join("work/up")), "alive");
    let attacks = [
        "../victim/file",
        "../victim",
        "work/../../victim/file",
        "/etc/cron.d/x",
        "skills/demo/SKILL.md",
        "metadata.json",
        "work",
        "out",
    ];
    for to in attacks {
        for (from, mode) in [("artifact://data", "copy"), ("workspace://out", "link")] {
            let outcome = bring(&world, json!({"from": from, "to": to, "mode": mode})).await;
            assert_eq!(refusal(&outcome).0, "invalid_arguments", "{to} {mode}");
        }
    }
    // Through a link that a command made.
    for to in ["work/up/victim/file", "work/up/victim", "work/tmp/prowess-test-evil"] {
        for (from, mode) in [("artifact://data", "copy"), ("workspace://out", "link")] {
            let outcome = bring(&world, json!({"from": from, "to": to, "mode": mode})).await;
            assert!(outcome.is_error, "{to} {mode}: {}", outcome.content);
        }
    }
    assert_eq!(victim(&world.path("workspaces")), "alive");
    assert!(!Path::new("/tmp/prowess-test-evil").exists());
    assert_eq!(world.started().len(), 1);
}

#[tokio::test]
async fn either_all_inputs_are_understood_or_none_comes() {
    let world = loaded(Plan::new()).await;
    save(&world, "data", "x").await;
    let inputs = json!([{"from": "artifact://data"}, {"from": "ftp://x"}]);
    let outcome = world.run_with(":", json!({"inputs": inputs})).await;
    let (code, said) = refusal(&outcome);
    assert_eq!(code, "invalid_arguments");
    assert!(said.contains("inputs[1]") && said.contains("artifact://name"), "{said}");
    assert!(!world.workspace().join("work/inputs/data").exists());
}

#[tokio::test]
async fn only_so_many_inputs_are_taken() {
    let world = loaded(Plan::new().settings(|it| it.with_max_inputs(2))).await;
    save(&world, "data", "x").await;
    let input = |at: usize| json!({"from": "artifact://data", "to": format!("work/inputs/{at}")});
    let inputs = |count: usize| json!({"inputs": (0..count).map(input).collect::<Vec<_>>()});
    stdout(&world.run_with(":", inputs(2)).await);
    let outcome = world.run_with(":", inputs(3)).await;
    assert_eq!(refusal(&outcome).0, "invalid_arguments");
}

/// Nothing is silently replaced, and nothing comes in with what may not.
#[tokio::test]
async fn inputs_are_refused_together_before_one_of_them_comes_in() {
    let plan = Plan::new().sharing().file("shared/a/x", "A").file("shared/b/x", "B");
    let world = loaded(plan.file("elsewhere/secret", "s")).await;
    let (a, b) = (json!({"from": host(&world, "shared/a/x")}), host(&world, "shared/b/x"));
    let secret = json!({"from": host(&world, "elsewhere/secret")});
    let table = [
        (json!([a, {"from": b}]), "invalid_arguments"),
        (json!([a, {"from": b, "to": "inputs/x"}]), "invalid_arguments"),
        (json!([a, secret]), "input_not_allowed"),
    ];
    for (inputs, code) in table {
        let refused = world.run_with(SHOW, json!({"inputs": inputs})).await;
        assert_eq!(refusal(&refused).0, code, "{inputs}");
        assert_eq!(stdout(&world.run_with(SHOW, json!({})).await), "", "{inputs}");
    }
    let both = json!({"inputs": [a, {"from": b, "to": "inputs/y"}]});
    assert_eq!(stdout(&world.run_with(SHOW, both).await), "./inputs/x=A\n./inputs/y=B\n");
}
