//! What the linter prints (S01, 5 and 8).

mod support;

use prowess_catalog::TreeDigest;
use prowess_format::Digest;
use support::{Sandbox, minimal};

/// One skill with a mistake of nearly every kind.
const FLAWED: &str = "\u{feff}---
name: Flawed_Skill-
description: Use when: the user asks for <things>
alowed-tools: Read
context: Fork
version: 2.0
author: yes
license: \"\\e[31mred\\e[0m\"
metadata: nothing
allowed-tools: Bash(git add Read
tool_configs:
  - method: x
---
See [the guide](references/guide.md) and [the site](https://example.com).
";

fn flawed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("flawed/SKILL.md", FLAWED);
    sandbox
}

#[test]
fn text_shows_the_place_the_cause_and_the_remedy() {
    insta::assert_snapshot!(flawed().prowess(&["lint", "flawed"]).text());
}

#[test]
fn the_built_in_skills_pass_the_strict_linter() {
    let sandbox = Sandbox::new();
    for skill in ["sql", "jira", "xlsx"] {
        let folder = format!("{}/../../skills/{skill}", env!("CARGO_MANIFEST_DIR"));
        let run = sandbox.prowess(&["lint", "--strict", &folder]);
        assert_eq!(run.code, 0, "{}", run.text());
        // What is no skill of Claude's is said, and is nothing to repair.
        let is_clean =
            run.stdout.contains("0 errors, 0 warnings") || run.stdout.contains("No findings");
        assert!(is_clean && run.stdout.contains("in 1 skill."), "{skill}: {}", run.text());
    }
}

/// What would keep the engine from using a skill, as far as its folder tells (S13.1).
#[test]
fn what_a_skill_declares_is_checked_against_its_files_and_itself() {
    let sandbox = Sandbox::new();
    sandbox.write("tools/there.md", "x");
    sandbox.write(
        "tools/SKILL.md",
        "---
name: tools
description: Declares tools and resources. Use it in tests.
tool_configs:
  - name: good
    script: there.md
  - name: gone
    script: scripts/gone.py
  - name: outside
    script: ../other/run.py
  - name: many
    script: there.md
    args:
      - name: count
        type: integer
        default: many
resource_configs:
  - name: notes
    file: notes.md
---
Body.
",
    );
    let run = sandbox.prowess(&["lint", "--json", "tools"]);
    assert_eq!(run.code, 1, "{}", run.text());
    let found = run.json()["diagnostics"].as_array().unwrap().clone();
    let brief = |it: &serde_json::Value| {
        (it["code"].as_str().unwrap().to_owned(), it["line"].as_u64().unwrap())
    };
    let errors = found.iter().filter(|it| it["level"] == "error").map(brief);
    let expected = [
        ("missing-config-file", 7),
        ("missing-config-file", 9),
        ("invalid-tool-config", 14),
        ("missing-config-file", 18),
    ];
    let expected = expected.map(|(code, line)| (code.to_owned(), line));
    assert_eq!(errors.collect::<Vec<_>>(), expected, "{}", run.text());
}

#[test]
fn text_in_the_words_of_each_profile() {
    let sandbox = flawed();
    for profile in ["spec", "claude-code", "deepagents"] {
        let run = sandbox.prowess(&["lint", "--profile", profile, "flawed"]);
        let headlines: Vec<&str> =
            run.stdout.lines().filter(|line| !line.starts_with([' ', '|'])).collect();
        let headlines: Vec<&str> =
            headlines.into_iter().filter(|l| l.contains("SKILL.md:") || l.ends_with('.')).collect();
        insta::assert_snapshot!(format!("profile_{profile}"), headlines.join("\n"));
    }
}

#[test]
fn json_is_one_object_with_stable_keys() {
    let run = flawed().prowess(&["lint", "--json", "flawed"]);
    assert_eq!(run, flawed().prowess(&["lint", "--format", "json", "flawed"]));
    insta::assert_snapshot!(run.text());
    let skill = &run.json()["skills"][0];
    assert_eq!(skill["digest"], Digest::of(FLAWED.as_bytes()).to_string());
    let keys: Vec<String> =
        run.json()["diagnostics"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["code", "level", "path", "line", "column", "message", "help"]);
}

#[test]
fn programs_learn_what_identifies_each_skill_that_was_read() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/good/SKILL.md", minimal("good"));
    sandbox.write("skills/good/scripts/run.sh", "x");
    sandbox.write("skills/broken/SKILL.md", b"\xff\xfe\0");
    std::fs::create_dir_all(sandbox.path().join("skills/folder/SKILL.md")).unwrap();
    let skills = sandbox.prowess(&["lint", "--json", "skills"]).json()["skills"].clone();
    let paths: Vec<&str> =
        skills.as_array().unwrap().iter().map(|skill| skill["path"].as_str().unwrap()).collect();
    // One that cannot be read has no digest; one that cannot be used has.
    assert_eq!(paths, ["skills/broken/SKILL.md", "skills/good/SKILL.md"]);
    assert_eq!(skills[0]["digest"], Digest::of(b"\xff\xfe\0").to_string());
    let tree_digest = TreeDigest::of([("SKILL.md", false, b"\xff\xfe\0".as_slice())]);
    assert_eq!(skills[0]["tree_digest"], tree_digest.to_string());
    let info = ["info", "good", "--json", "--no-default-roots", "--source", "skills"];
    let info = sandbox.prowess(&info).json();
    for key in ["path", "digest", "tree_digest"] {
        assert_eq!(skills[1][key], info[key], "{key}");
    }
    let direct = sandbox.prowess(&["lint", "--json", "skills/good/SKILL.md"]).json();
    assert_eq!(direct["skills"][0], skills[1]);
    // What is too large to be counted is told.
    let file = std::fs::File::create(sandbox.write("skills/good/font.ttf", "")).unwrap();
    file.set_len(65 << 20).unwrap();
    let large = sandbox.prowess(&["lint", "--json", "skills/good"]).json()["skills"][0].clone();
    assert_eq!(large["tree_digest"], serde_json::Value::Null);
    assert_eq!(large["tree_digest_error"]["code"], "too_large");
    // Standard input has no folder.
    let stdin = sandbox.prowess_with(&["lint", "--json", "-"], minimal("good").as_bytes()).json();
    let expected = serde_json::json!([
        {"path": "<stdin>", "digest": skills[1]["digest"], "tree_digest": null}
    ]);
    assert_eq!(stdin["skills"], expected);
}

#[test]
fn sarif_has_rules_results_and_regions() {
    let run = flawed().prowess(&["lint", "--format", "sarif", "flawed"]);
    let sarif = run.json();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "flawed/SKILL.md");
        let region = &place["region"];
        assert!(
            region["startLine"].as_u64() >= Some(1) && region["startColumn"].as_u64() >= Some(1)
        );
        assert!(region["endLine"].as_u64() >= region["startLine"].as_u64());
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&run["results"][0]).unwrap());
}

#[test]
fn github_annotations_cannot_be_forged() {
    let sandbox = flawed();
    insta::assert_snapshot!(sandbox.prowess(&["lint", "--format", "github", "flawed"]).text());
    // A name that would begin a command of its own, if line breaks were let through.
    let forged = "---\nname: \"x\\n::error::forged\"\ndescription: d\n---\nB\n";
    sandbox.write("forged, or: not/SKILL.md", forged);
    let run = sandbox.prowess(&["lint", "--format", "github", "forged, or: not"]);
    assert!(run.stdout.contains("file=forged%2C or%3A not/SKILL.md"), "{}", run.stdout);
    assert!(run.stdout.contains("%0A::error::forged"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| !line.starts_with("::error::forged")));
}

#[test]
fn warnings_fail_only_when_strict() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/SKILL.md", minimal("other-name"));
    let lenient = sandbox.prowess(&["lint", "folder"]);
    assert_eq!(lenient.code, 0);
    assert!(lenient.stdout.contains("warning[name-folder-mismatch]"));
    let strict = sandbox.prowess(&["lint", "--strict", "folder"]);
    assert_eq!(strict.code, 1);
    assert!(strict.stdout.contains("error[name-folder-mismatch]"));
    assert!(strict.stdout.ends_with("1 error, 0 warnings in 1 skill.\n"));
}

#[test]
fn a_whole_tree_is_linted_in_order_and_within_bounds() {
    let sandbox = Sandbox::new();
    sandbox.write("b/deep/er/SKILL.md", minimal("er"));
    sandbox.write("a/SKILL.md", minimal("a"));
    sandbox.write("a/nested/SKILL.md", minimal("inside-a-skill"));
    sandbox.write("node_modules/x/SKILL.md", "broken");
    sandbox.write(".git/x/SKILL.md", "broken");
    sandbox.write("1/2/3/4/5/six/SKILL.md", minimal("six"));
    sandbox.write("1/2/3/4/5/too/deep/SKILL.md", minimal("deep"));
    std::os::unix::fs::symlink(sandbox.path(), sandbox.path().join("b/cycle")).unwrap();
    let run = sandbox.prowess(&["lint", "--json"]);
    let report = run.json();
    assert_eq!(report["summary"]["skills"], 3);
    assert_eq!(report["diagnostics"][0]["code"], "scan-depth");
    assert_eq!(report["diagnostics"].as_array().unwrap().len(), 1);
    let run = sandbox.prowess(&["validate", "."]);
    assert_eq!(
        run.stdout,
        "Valid skill: ./1/2/3/4/5/six\nValid skill: ./a\nValid skill: ./b/deep/er\n"
    );
}

#[test]
fn one_bad_skill_does_not_hurt_another() {
    let sandbox = flawed();
    sandbox.write("good/SKILL.md", minimal("good"));
    sandbox.write("binary/SKILL.md", b"\xff\xfe\x00");
    std::fs::create_dir_all(sandbox.path().join("folder/SKILL.md")).unwrap();
    let run = sandbox.prowess(&["validate", "."]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("Valid skill: ./good\n"));
    assert!(run.stderr.contains("  - The file is UTF-16, not UTF-8\n"));
    assert!(run.stderr.contains("Cannot read ./folder/SKILL.md: it is not a regular file"));
}

#[test]
fn files_that_would_block_or_flood_are_not_read() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path().join("pipe/SKILL.md");
    std::fs::create_dir(pipe.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = sandbox.prowess(&["lint", "pipe"]);
    assert!(run.stdout.contains("error[unreadable-file]"), "{}", run.stdout);

    let limit = 10 * 1024 * 1024;
    let file = std::fs::File::create(sandbox.write("large/SKILL.md", "")).unwrap();
    file.set_len(limit + 1).unwrap();
    let run = sandbox.prowess(&["lint", "large"]);
    assert!(run.stdout.contains("error[file-too-large]"), "{}", run.stdout);
    let mut whole = minimal("edge").into_bytes();
    whole.resize(usize::try_from(limit).unwrap(), b'x');
    sandbox.write("edge/SKILL.md", whole);
    assert_eq!(sandbox.prowess(&["lint", "edge"]).code, 0);
}

#[test]
fn limits_are_those_of_prowess_toml() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    sandbox.write("skills/group/b/SKILL.md", minimal("b"));
    let bytes = minimal("a").len();
    let lint = |settings: &str| {
        sandbox.write("prowess.toml", format!("[scan]\n{settings}\n"));
        let report = sandbox.prowess(&["lint", "--json", "skills"]).json();
        let codes = report["diagnostics"].as_array().unwrap().iter();
        let codes: Vec<String> = codes.map(|f| f["code"].as_str().unwrap().to_owned()).collect();
        (report["summary"]["skills"].as_u64().unwrap(), codes.join(" "))
    };
    let result = |skills: u64, codes: &str| (skills, codes.to_owned());
    assert_eq!(lint(""), result(2, ""));
    assert_eq!(lint("depth = 1"), result(1, ""));
    assert_eq!(lint("folders = 3"), result(1, "scan-limit"));
    assert_eq!(lint(&format!("bytes = {bytes}")), result(1, "scan-limit"));
    assert_eq!(lint(&format!("file_bytes = {bytes}")), result(2, ""));
    let too_few = lint(&format!("file_bytes = {}", bytes - 1));
    assert_eq!(too_few, result(0, "file-too-large file-too-large"));
    // The other commands that take paths have no limits of their own.
    for arguments in [["validate", "skills/a"], ["to-prompt", "skills"], ["read-properties", "-"]] {
        let run = sandbox.prowess_with(&arguments, minimal("a").as_bytes());
        assert_eq!(run.code, 1, "{arguments:?}");
        let limit = format!("the limit is {}", bytes - 1);
        assert!(run.stderr.contains(&limit), "{arguments:?}: {}", run.stderr);
    }
    // Nobody is linted by limits that cannot be read.
    sandbox.write("prowess.toml", "[scan]\ndepht = 1\n");
    let run = sandbox.prowess(&["lint", "--format", "json", "skills"]);
    assert_eq!((run.code, &run.json()["error"]["code"]), (2, &"invalid_config".into()));
}

#[test]
fn standard_input_is_a_skill_without_a_folder() {
    let sandbox = Sandbox::new();
    let run = sandbox.prowess_with(&["lint", "-"], minimal("any-name").as_bytes());
    assert_eq!((run.code, run.stdout.as_str()), (0, "No findings in 1 skill.\n"));
    let run = sandbox.prowess_with(&["lint", "-"], b"nothing");
    assert!(run.stdout.starts_with("<stdin>:1:1: error[missing-frontmatter]"), "{}", run.stdout);
}

#[test]
fn links_are_looked_up_inside_the_skill_only() {
    let sandbox = Sandbox::new();
    sandbox.write("outside.md", "x");
    sandbox.write("a/references/x y.md", "x");
    let body = "[1](references/x%20y.md) [2](references) [3](#top) [4](mailto:a@b.c) [5](/abs)\n\
                `[6](code.md)` ![7](missing.png) [8](../outside.md) [9](references/x%20y.md#part)\n\
                ```\n[10](fenced.md)\n```\n[11]({{placeholder}}.md)\n";
    sandbox.write("a/SKILL.md", format!("---\nname: a\ndescription: d\n---\n{body}"));
    let report = sandbox.prowess(&["lint", "--json", "a"]).json();
    let messages: Vec<&str> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "There is no file 'missing.png' in the skill",
            "The link '../outside.md' leaves the skill's folder",
        ]
    );
}

#[test]
fn skills_cannot_steer_the_terminal() {
    let sandbox = Sandbox::new();
    let escape = '\u{1b}';
    // Escapes in YAML, in the body's link, in the name of the folder, and text that is reordered.
    let text = "---\nname: \"x\\e]0;owned\\a\"\ndescription: \"a\\e[2J\\u202eb\"\nlicense: yes\nk\\e: 1\n---\n[x](\u{1b}[1mgone.md)\n";
    let folder = format!("evil{escape}[31m");
    sandbox.write(&format!("{folder}/SKILL.md"), text);
    // The control: the text that we print does hold what we look for.
    let raw = std::fs::read_to_string(sandbox.path().join(&folder).join("SKILL.md")).unwrap();
    assert!(raw.contains(escape) && folder.contains(escape));
    for arguments in [
        vec!["lint", "."],
        vec!["lint", "--json", "."],
        vec!["lint", "--format", "github", "."],
        vec!["lint", "--format", "sarif", "."],
        vec!["lint", "--color", "never", "."],
        vec!["validate", "."],
        vec!["validate", "--json", "."],
        vec!["to-prompt", "."],
        vec!["read-properties", folder.as_str()],
        vec!["rules", folder.as_str()],
        vec!["create", folder.as_str()],
    ] {
        let run = sandbox.prowess(&arguments);
        for output in [&run.stdout, &run.stderr] {
            let harmful = output
                .chars()
                .find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
            assert_eq!(harmful, None, "{arguments:?}: {output:?}");
        }
    }
    // The same through descriptions that are valid.
    let text = "---\nname: fine\ndescription: \"a\\e[2J\\u202eb\"\n---\nB\n";
    sandbox.write("fine/SKILL.md", text);
    let prompt = sandbox.prowess(&["to-prompt", "fine"]).stdout;
    assert!(prompt.contains("a\\u{1b}[2J\\u{202e}b"), "{prompt}");
}

#[test]
fn colours_are_for_terminals() {
    let sandbox = flawed();
    assert!(!sandbox.prowess(&["lint", "flawed"]).stdout.contains('\u{1b}'));
    assert!(sandbox.prowess(&["lint", "--color", "always", "flawed"]).stdout.contains('\u{1b}'));
    assert!(!sandbox.prowess(&["lint", "--color", "never", "flawed"]).stdout.contains('\u{1b}'));
}

/// Real skills: our own examples, and the public collection where it is at hand.
#[test]
fn real_skills_are_read_and_judged() {
    let sandbox = Sandbox::new();
    let project = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let findings = |folder: std::path::PathBuf| -> (u64, Vec<(String, String)>) {
        let report = sandbox.prowess(&["lint", "--json", folder.to_str().unwrap()]).json();
        let found = report["diagnostics"].as_array().unwrap().iter().map(|found| {
            let path = found["path"].as_str().unwrap();
            let folder = path.rsplit('/').nth(1).unwrap().to_owned();
            (folder, found["code"].as_str().unwrap().to_owned())
        });
        (report["summary"]["skills"].as_u64().unwrap(), found.collect())
    };
    let pair = |folder: &str, code: &str| (folder.to_owned(), code.to_owned());
    let (count, found) = findings(project.join("examples/skills"));
    assert_eq!((count, found), (3, vec![pair("csv_report", "not-portable")]));
    let corpus = project.join("../shared/corpus/anthropics-skills");
    if corpus.is_dir() {
        // Its owners' own claude-api breaks the specification.
        let expected =
            vec![pair("claude-api", "description-too-long"), pair("claude-api", "long-body")];
        assert_eq!(findings(corpus), (12, expected));
    }
}

#[test]
fn nothing_is_valid_where_nothing_was_checked() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path().join("deep/a/b/c/d/e/f/g")).unwrap();
    for command in ["validate", "to-prompt", "lint"] {
        let run = sandbox.prowess(&[command, "deep"]);
        assert_eq!(run.code, 1, "{command}: {run:?}");
    }
    assert!(
        sandbox.prowess(&["validate", "deep"]).stderr.contains("Missing required file: SKILL.md")
    );
    assert_eq!(sandbox.prowess_with(&["to-prompt", "-"], minimal("a").as_bytes()).code, 2);
}

#[test]
fn messages_cannot_forge_lines() {
    let sandbox = Sandbox::new();
    let text =
        "---\nname: \"X\\nValid skill: evil\"\ndescription: d\n\"z\\n::error::x\": 1\n---\nB\n";
    sandbox.write("a/SKILL.md", text);
    for arguments in
        [vec!["validate", "--profile", "spec", "a"], vec!["validate", "a"], vec!["lint", "a"]]
    {
        let run = sandbox.prowess(&arguments);
        for line in run.stdout.lines().chain(run.stderr.lines()) {
            assert!(
                !line.starts_with("Valid skill") && !line.starts_with("::"),
                "{arguments:?}: {line}"
            );
        }
    }
}

#[test]
fn a_skill_is_called_by_its_id() {
    let sandbox = Sandbox::new();
    sandbox.write("sql/SKILL.md", "---\nid: write_sql\nname: SQL Expert\ndescription: d\n---\nB\n");
    sandbox.write("only/SKILL.md", "---\nid: only\ndescription: d\n---\nB\n");
    let prompt = sandbox.prowess(&["to-prompt", "sql", "only"]).stdout;
    assert!(prompt.contains("<name>\nwrite_sql\n</name>"), "{prompt}");
    assert!(prompt.contains("<name>\nonly\n</name>"), "{prompt}");
    assert_eq!(sandbox.prowess(&["read-properties", "sql"]).json()["name"], "SQL Expert");
}
