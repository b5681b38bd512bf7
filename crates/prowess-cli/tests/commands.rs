//! The other commands, help texts, exit codes (S01, 8).

mod support;

use support::{Sandbox, minimal};

#[test]
fn a_new_skill_passes_its_own_linter() {
    let sandbox = Sandbox::new();
    let run = sandbox.prowess(&["create", "pdf-forms"]);
    insta::assert_snapshot!(run.text());
    for profile in ["prowess", "spec", "claude-code", "deepagents"] {
        let run = sandbox.prowess(&["lint", "--strict", "--profile", profile, "pdf-forms"]);
        assert_eq!(run.text(), "exit 0\n--- stdout ---\nNo findings in 1 skill.\n--- stderr ---\n");
    }
    for folder in ["scripts", "references", "assets"] {
        let path = sandbox.path().join("pdf-forms").join(folder);
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 1, "{folder}");
    }
    let script = sandbox.path().join("pdf-forms/scripts/check.sh");
    let run = sandbox.run(std::process::Command::new(script), b"");
    assert_eq!((run.code, run.stdout.as_str()), (0, "ok\n"));
    // Nothing is left behind beside it.
    assert_eq!(std::fs::read_dir(sandbox.path()).unwrap().count(), 1);
}

#[test]
fn a_new_skill_takes_any_description_and_place() {
    let sandbox = Sandbox::new();
    let description = "Does: \"this\" # and 'that'\nUse when: asked";
    let run = sandbox.prowess(&[
        "create",
        "x",
        "--path",
        "deep/er",
        "--description",
        description,
        "--json",
    ]);
    assert_eq!(run.json()["path"], "deep/er/x");
    let properties = sandbox.prowess(&["read-properties", "deep/er/x"]).json();
    assert_eq!(properties["description"], description);
}

#[test]
fn a_new_skill_never_overwrites_and_needs_a_good_name() {
    let sandbox = Sandbox::new();
    sandbox.write("taken/mine.txt", "mine");
    let run = sandbox.prowess(&["create", "taken"]);
    assert_eq!(
        run.text(),
        "exit 1\n--- stdout ---\n--- stderr ---\nError: taken already exists; nothing was changed\n"
    );
    let error = &sandbox.prowess(&["create", "taken", "--json"]).json()["error"];
    assert_eq!(error["code"], "failed");
    assert_eq!(error["message"], "taken already exists; nothing was changed");
    assert_eq!(std::fs::read_dir(sandbox.path().join("taken")).unwrap().count(), 1);
    let long = "x".repeat(65);
    for name in ["Upper", "a--b", "a_b", "../up", "", ".", &long] {
        let run = sandbox.prowess(&["create", name]);
        assert_eq!(run.code, 2, "{name}: {run:?}");
        assert!(run.stderr.starts_with("Error: "), "{name}: {run:?}");
    }
    let run = sandbox.prowess(&["create", "a", "--description", ""]);
    assert_eq!(run.code, 2);
    assert_eq!(std::fs::read_dir(sandbox.path()).unwrap().count(), 1);
}

#[test]
fn all_properties_keep_their_types() {
    let sandbox = Sandbox::new();
    sandbox.write("a/SKILL.md", "---\nname: a\ndescription: ä\nx: [1, 2.50, true, ~]\n---\nB");
    let run = sandbox.prowess(&["read-properties", "--all", "a"]);
    insta::assert_snapshot!(run.text());
}

#[test]
fn validate_speaks_json() {
    let sandbox = Sandbox::new();
    sandbox.write("good/SKILL.md", minimal("good"));
    sandbox.write("bad/SKILL.md", minimal("Bad"));
    let run = sandbox.prowess(&["validate", "--json", "good", "bad"]);
    assert_eq!(run.code, 1);
    let skills = run.json()["skills"].clone();
    assert_eq!((&skills[0]["path"], &skills[0]["valid"]), (&"good".into(), &true.into()));
    assert_eq!(skills[1]["errors"][0]["code"], "name-not-lowercase");
}

#[test]
fn the_default_profile_takes_extensions() {
    let sandbox = Sandbox::new();
    let text = "---\nname: write_sql\ndescription: d\nmodel: small\nversion: \"2\"\n---\nB\n";
    sandbox.write("write_sql/SKILL.md", text);
    assert_eq!(sandbox.prowess(&["validate", "write_sql"]).code, 0);
    assert_eq!(sandbox.prowess(&["validate", "--profile", "spec", "write_sql"]).code, 1);
}

#[test]
fn prompts_speak_json_and_fail_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("a/SKILL.md", minimal("a"));
    sandbox.write("b/SKILL.md", "nothing");
    let skills = sandbox.prowess(&["to-prompt", "--json", "a"]).json()["skills"].clone();
    assert_eq!(skills[0]["name"], "a");
    assert!(skills[0]["location"].as_str().unwrap().ends_with("/a/SKILL.md"));
    let run = sandbox.prowess(&["to-prompt", "a", "b"]);
    assert_eq!(
        run.text(),
        "exit 1\n--- stdout ---\n--- stderr ---\nError: SKILL.md must start with YAML frontmatter (---)\n"
    );
}

#[test]
fn a_path_cannot_end_the_block_it_stands_in() {
    let sandbox = Sandbox::new();
    let folder = "a<location>&";
    sandbox.write(&format!("{folder}/SKILL.md"), minimal("a"));
    let prompt = sandbox.prowess(&["to-prompt", folder]).stdout;
    assert!(prompt.contains("a&lt;location&gt;&amp;/SKILL.md"), "{prompt}");
    assert_eq!(prompt.matches("<location>").count(), 1);
}

#[test]
fn rules_are_listed_and_explained() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.prowess(&["rules"]).text());
    let one = sandbox.prowess(&["rules", "byte-order-mark", "--json"]).json();
    assert_eq!(one["rules"][0]["levels"]["deepagents"], "error");
    let run = sandbox.prowess(&["rules", "no-such-rule"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("there is no rule 'no-such-rule'"));
}

#[test]
fn help_texts() {
    let sandbox = Sandbox::new();
    for arguments in [
        vec!["--help"],
        vec!["validate", "--help"],
        vec!["lint", "--help"],
        vec!["read-properties", "--help"],
        vec!["to-prompt", "--help"],
        vec!["create", "--help"],
    ] {
        let name = format!("help_{}", arguments[0].trim_start_matches('-'));
        insta::assert_snapshot!(name, sandbox.prowess(&arguments).stdout);
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let sandbox = Sandbox::new();
    for arguments in [
        vec![],
        vec!["no-such-command"],
        vec!["lint", "--profile", "none"],
        vec!["lint", "--format", "none"],
        vec!["lint", "--no-such-flag"],
        vec!["validate"],
        vec!["read-properties"],
        vec!["to-prompt"],
        vec!["create"],
        vec!["lint", "--json", "--format", "text"],
    ] {
        assert_eq!(sandbox.prowess(&arguments).code, 2, "{arguments:?}");
    }
    assert_eq!(sandbox.prowess(&["--version"]).code, 0);
}

#[test]
fn completions_and_manual_pages() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = sandbox.prowess(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.stdout.contains("read-properties"), "{shell}");
        assert!(run.stdout.contains("claude-code"), "{shell} offers the profiles");
    }
    let page = sandbox.prowess(&["man"]).stdout;
    assert!(page.contains(".TH prowess 1"), "{page}");
    assert_eq!(sandbox.prowess(&["man", "--dir", "pages"]).code, 0);
    assert!(sandbox.path().join("pages/prowess-lint.1").is_file());
}

/// `prowess … | head -1`
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let sandbox = Sandbox::new();
    for at in 0..2000 {
        sandbox.write(&format!("{at}/SKILL.md"), "broken");
    }
    let mut command = std::process::Command::new("sh");
    let script = "{ \"$0\" lint; echo \"exit $?\" >&2; } | head -1";
    command.args(["-c", script, env!("CARGO_BIN_EXE_prowess")]);
    let run = sandbox.run(command, b"");
    assert_eq!(run.stderr, "exit 0\n");
}
