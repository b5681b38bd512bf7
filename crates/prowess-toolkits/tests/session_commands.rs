//! Commands in the text of skills, in the real sandbox (S09, 5): what they may do is what
//! `skill_run` may do.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use prowess_catalog::{Catalog, DirectorySource};
use prowess_runtime::{
    AgentName, CommandLanguage, CommandRequest, EmbeddedCommands, LoadRequest, Runtime, SessionKey,
    Settings, TurnRequest,
};
use prowess_toolkits::{ExecSettings, ExecToolkit};
use prowess_workspace::Workspaces;
use support::{TIERS, executor_of};
use tempfile::TempDir;

fn session() -> SessionKey {
    "test".parse().unwrap()
}

struct World {
    folder: TempDir,
    exec: ExecToolkit,
}

fn world(tier: prowess_workspace::Tier, settings: ExecSettings) -> World {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let workspaces = Workspaces::new(folder.path().join("workspaces"));
    let exec = ExecToolkit::new(workspaces, executor_of(tier)).with_settings(settings);
    World { folder, exec }
}

impl World {
    async fn run(&self, language: CommandLanguage, code: &str) -> Result<(i32, String), String> {
        let session = session();
        let request = CommandRequest::new(&session, code, Duration::from_secs(20));
        let answer = self.exec.commands().run(request.with_language(language)).await;
        answer.map(|it| (it.exit_code, it.output)).map_err(|error| error.to_string())
    }

    /// A person loads a skill with this body.
    async fn typed(&self, body: &str, arguments: &str) -> Result<String, String> {
        let skills = self.folder.path().join("skills");
        fs::create_dir_all(skills.join("demo/scripts")).unwrap();
        fs::write(skills.join("demo/scripts/count.sh"), "wc -l < \"$1\"\n").unwrap();
        let text = format!("---\nname: demo\ndescription: D.\n---\n{body}\n");
        fs::write(skills.join("demo/SKILL.md"), text).unwrap();
        let catalog = Catalog::builder().source(DirectorySource::new(&skills)).build();
        let runtime = Runtime::builder(catalog)
            .settings(Settings::default().with_embedded_commands(EmbeddedCommands::People))
            .toolkit(Arc::new(self.exec.clone()))
            .commands(self.exec.commands())
            .build()
            .unwrap();
        let load = LoadRequest::typed("demo", arguments);
        let turn = TurnRequest::new().with_load(load);
        let turn = runtime.begin_turn(&session(), &AgentName::default(), turn).await;
        let text = turn.map_err(|error| error.to_string())?.messages[0].text();
        Ok(text
            .split_once("[Loaded] demo\n\n")
            .unwrap()
            .1
            .split("\nDocs loaded")
            .next()
            .unwrap()
            .to_owned())
    }
}

#[tokio::test]
async fn commands_and_code_run_in_the_workspace() {
    for tier in TIERS {
        let world = world(tier, ExecSettings::default());
        let shell = CommandLanguage::Shell;
        assert_eq!(
            world.run(shell, "echo a > f; echo err >&2; exit 3").await,
            Ok((3, "err\n".into()))
        );
        let python = "print(open('f').read().strip() * 2)";
        assert_eq!(world.run(CommandLanguage::Python, python).await, Ok((0, "aa\n".into())));
    }
}

#[tokio::test]
async fn commands_of_a_skill_know_its_folder() {
    for tier in TIERS {
        let world = world(tier, ExecSettings::default());
        let body = "Lines: !`bash \"${CLAUDE_SKILL_DIR}/scripts/count.sh\" \"$CLAUDE_SKILL_DIR/SKILL.md\"`.";
        assert_eq!(world.typed(body, "").await.unwrap(), "Lines: 5.");
    }
}

/// Control: the same words in a shell outside of the sandbox reach what they are after.
#[tokio::test]
async fn commands_reach_no_more_than_skill_run() {
    let secret = TempDir::new().unwrap();
    fs::set_permissions(secret.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = secret.path().join("secret.txt");
    fs::write(&path, "s3cret").unwrap();
    let steal = format!("cat {}", path.display());
    let control = std::process::Command::new("bash").args(["-c", &steal]).output().unwrap();
    assert_eq!(control.stdout, b"s3cret", "the control");
    for tier in TIERS {
        let world = world(tier, ExecSettings::default());
        let (code, output) = world.run(CommandLanguage::Shell, &steal).await.unwrap();
        assert!(code != 0 && !output.contains("s3cret"), "{tier:?}: {output}");
        let error = world.typed(&format!("!`{steal}`"), "").await.unwrap_err();
        assert!(
            error.contains("Shell command failed for pattern") && !error.contains("s3cret"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_commands_that_a_host_allows_hold_here_too() {
    let mut settings = ExecSettings::default();
    settings.allowed_commands = vec!["echo".to_owned()];
    let world = world(TIERS[0], settings);
    assert_eq!(world.run(CommandLanguage::Shell, "echo hi").await, Ok((0, "hi\n".into())));
    for code in ["ls", "echo hi; ls", "echo $(ls) | cat"] {
        let refused = world.run(CommandLanguage::Shell, code).await.unwrap_err();
        assert!(refused.contains("host"), "{code}: {refused}");
    }
    assert!(world.run(CommandLanguage::Python, "print(1)").await.is_err());
}

#[tokio::test]
async fn words_that_are_typed_stay_words() {
    let world = world(TIERS[0], ExecSettings::default());
    let text = world.typed("Said: !`echo $ARGUMENTS`", "'a; touch pwned' $(id) b").await.unwrap();
    assert_eq!(text, "Said: a; touch pwned $(id) b");
    // Whatever the author has put around the place, and whatever was typed.
    for body in ["!`echo '$0'`", "!`echo \"$0\"`", "!`echo \"$(echo $0)\"`", "!`echo $0 # '`"] {
        for typed in [
            "'b; touch pwned #'",
            "$(touch${IFS}pwned)",
            "`touch${IFS}pwned`",
            "\"'; touch pwned; '\"",
        ] {
            // It may be shown in another way; it is not run.
            let _ = world.typed(body, typed).await;
        }
    }
    let there = world.run(CommandLanguage::Shell, "ls").await.unwrap().1;
    assert!(!there.contains("pwned"), "{there}");
}
