//! `list`, `info`, `read`, `doctor`, and where they look (S02, 6).

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::{Run, Sandbox, minimal, skip};

/// Runs `prowess` in `project`, with `home` as the user's home and these variables.
fn prowess_in(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let project = sandbox.path().join("project");
    fs::create_dir_all(&project).unwrap();
    let mut command = Command::new("sh");
    // The sandbox runs commands in its root; ours begin below it.
    command.args(["-c", "cd project && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_prowess")]);
    command.args(arguments).env("HOME", sandbox.path().join("home"));
    for name in ["PROWESS_HOME", "PROWESS_SKILLS", "SKILLS_ROOT", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    sandbox.run(command, b"")
}

fn described(name: &str, description: &str) -> String {
    minimal(name).replace("A test skill", description)
}

/// One skill in each place, and `same` in several.
fn places() -> Sandbox {
    let sandbox = Sandbox::new();
    for (path, name) in [
        ("home/.agents/skills", "of-user"),
        ("home/.claude/skills", "of-claude"),
        ("project/.agents/skills", "of-project"),
        ("extra", "of-flag"),
        ("variable", "of-variable"),
        ("root", "of-root"),
        ("configured", "of-config"),
    ] {
        sandbox.write(&format!("{path}/{name}/SKILL.md"), minimal(name));
    }
    for path in ["home/.agents/skills", "project/.agents/skills", "extra"] {
        sandbox.write(&format!("{path}/same/SKILL.md"), described("same", path));
    }
    sandbox.write("project/prowess.toml", "[skills]\nsources = [\"../configured\"]\n");
    sandbox
}

fn names(run: &Run) -> Vec<String> {
    let json = run.json();
    let skills = json["skills"].as_array().unwrap().iter();
    skills.map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn skills_are_found_in_every_place() {
    let sandbox = places();
    let variables = [("PROWESS_SKILLS", "../variable"), ("SKILLS_ROOT", "../root")];
    let run = prowess_in(&sandbox, &variables, &["list", "--json", "--source", "../extra"]);
    assert_eq!(
        names(&run),
        [
            "of-claude",
            "of-config",
            "of-flag",
            "of-project",
            "of-root",
            "of-user",
            "of-variable",
            "same"
        ]
    );
    let run = prowess_in(
        &sandbox,
        &[],
        &["list", "--json", "--no-default-roots", "--source", "../extra"],
    );
    assert_eq!(names(&run), ["of-config", "of-flag", "same"]);
}

#[test]
fn later_sources_win_and_what_they_hide_can_be_reached() {
    let sandbox = places();
    let source = ["--source", "../extra"];
    let list = prowess_in(&sandbox, &[], &["list", "--json", source[0], source[1]]).json();
    let skills = list["skills"].as_array().unwrap();
    let same = skills.iter().find(|skill| skill["name"] == "same").unwrap();
    assert_eq!(same["description"], "extra");
    assert_eq!(same["source"], "extra");
    let shadows: Vec<&str> = same["shadows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hidden| hidden["source"].as_str().unwrap())
        .collect();
    assert_eq!(shadows, ["agents-2", "agents"]);
    let codes: Vec<&str> = list["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["shadowed-skill", "shadowed-skill"]);
    for (name, description) in [
        ("same", "extra"),
        ("same@extra", "extra"),
        ("same@agents", "home/.agents/skills"),
        ("same@agents-2", "project/.agents/skills"),
    ] {
        let run = prowess_in(&sandbox, &[], &["info", name, "--json", source[0], source[1]]);
        assert_eq!(run.json()["description"], description, "{name}");
    }
}

#[test]
fn precedence_is_a_setting() {
    let sandbox = places();
    let same = |word: &str| {
        let text = format!("[skills]\nprecedence = \"{word}\"\n");
        sandbox.write("project/prowess.toml", text);
        prowess_in(&sandbox, &[], &["info", "same", "--json", "--source", "../extra"])
    };
    assert_eq!(same("last-wins").json()["description"], "extra");
    assert_eq!(same("first-wins").json()["description"], "home/.agents/skills");
    let refused = same("refuse-ambiguous");
    assert_eq!(refused.code, 1);
    assert_eq!(
        refused.stderr,
        "Error: 'same' is ambiguous: use same@agents or same@agents-2 or same@extra [ambiguous_name]\n"
    );
}

#[test]
fn the_list_has_every_key_that_programs_read() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    sandbox.write("skills/a/scripts/run.sh", "x");
    sandbox.write("skills/broken/SKILL.md", "x");
    let json = sandbox
        .prowess(&["list", "--json", "--no-default-roots", "--source", "skills", "--tokens"])
        .json();
    let keys: Vec<&String> = json["skills"][0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "name",
            "description",
            "path",
            "source",
            "trust",
            "digest",
            "bytes",
            "tokens_estimate",
            "resources",
            "left_out",
            "shadows",
            "qualified_name",
            "tokens"
        ]
    );
    assert_eq!(json["skills"][0]["resources"][0]["path"], "scripts/run.sh");
    assert_eq!(json["skills"][0]["tokens"], 4);
    let keys: Vec<&String> = json["diagnostics"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["code", "level", "path", "line", "column", "message", "help"]);
    assert_eq!(json["diagnostics"][0]["code"], "missing-frontmatter");
}

#[test]
fn people_get_tables() {
    let sandbox = Sandbox::new();
    sandbox.write("team/skills/pdf-forms/SKILL.md", minimal("pdf-forms"));
    sandbox.write("team/skills/other/SKILL.md", minimal("odd"));
    sandbox.write("team/skills/other/scripts/run.sh", "x");
    sandbox.write("team/skills/broken/SKILL.md", "x");
    let here = ["--no-default-roots", "--source", "team/skills"];
    for command in
        [vec!["list"], vec!["ls", "--tokens", "--resources"], vec!["info", "odd"], vec!["doctor"]]
    {
        let arguments: Vec<&str> = command.iter().copied().chain(here).collect();
        let name = format!("table_{}", command[0]);
        insta::assert_snapshot!(name, sandbox.prowess(&arguments).text());
    }
    let none = sandbox.prowess(&["list", "--no-default-roots"]);
    assert_eq!(
        none.text(),
        "exit 0\n--- stdout ---\n--- stderr ---\nNo skills found. `prowess doctor` shows where they are \
         looked for; `--source builtin:` has those that come with Prowess.\n"
    );
}

#[test]
fn files_are_read_whole_and_only_inside_the_skill() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    sandbox.write("skills/a/assets/x.bin", b"\x00\x1b\x7f");
    sandbox.write("secret", "secret");
    let read = |arguments: &[&str]| {
        let mut all = vec!["read"];
        all.extend(arguments);
        all.extend(["--no-default-roots", "--source", "skills"]);
        sandbox.prowess(&all)
    };
    assert_eq!(read(&["a"]).stdout, minimal("a"));
    assert_eq!(read(&["a", "assets/x.bin"]).stdout, "\u{0}\u{1b}\u{7f}");
    let json = read(&["a", "--json"]).json();
    assert_eq!(json["content"], minimal("a"));
    assert!(json["digest"].as_str().unwrap().starts_with("sha256:"));
    for (path, code) in [
        ("../../secret", "invalid_path"),
        ("/etc/hostname", "invalid_path"),
        ("none.md", "not_found"),
        ("assets", "not_a_file"),
    ] {
        let run = read(&["a", path]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{path}");
        assert!(run.stderr.contains(&format!("[{code}]")), "{path}: {}", run.stderr);
    }
    let unknown = read(&["absent"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.starts_with("Error: there is no skill 'absent'"), "{}", unknown.stderr);
}

#[test]
fn the_doctor_names_what_is_wrong_and_fails() {
    let sandbox = places();
    sandbox.write("project/.claude/skills/bad/SKILL.md", "x");
    let run = prowess_in(&sandbox, &[("SKILLS_ROOT", "../gone")], &["doctor", "--json"]);
    assert_eq!(run.code, 1);
    let json = run.json();
    let origins: Vec<(&str, u64)> = json["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| (source["origin"].as_str().unwrap(), source["skills"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        origins,
        [
            ("user", 2),
            ("user", 1),
            ("project", 2),
            ("project", 0),
            ("prowess.toml", 1),
            ("variable", 0)
        ]
    );
    let codes: Vec<&str> = json["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["missing-frontmatter", "unreadable-file", "shadowed-skill"]);
    let healthy = prowess_in(&places(), &[], &["doctor"]);
    assert_eq!(healthy.code, 0, "{healthy:?}");
}

#[test]
fn a_mistake_in_prowess_toml_is_told_and_nothing_else_happens() {
    let sandbox = Sandbox::new();
    sandbox.write("project/prowess.toml", "[skills]\nsource = []\n");
    let run = prowess_in(&sandbox, &[], &["list"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("prowess.toml") && run.stderr.contains("unknown field `source`"),
        "{}",
        run.stderr
    );
    // Programs get the same, whatever they asked for.
    let told = run.stderr.strip_prefix("Error: ").unwrap().trim_end();
    for mut arguments in [
        vec!["list"],
        vec!["info", "a"],
        vec!["read", "a"],
        vec!["doctor"],
        vec!["read-properties", "a", "--source", "skills"],
        vec!["call", "load_skill"],
        vec!["session", "show"],
    ] {
        arguments.push("--json");
        let run = prowess_in(&sandbox, &[], &arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        let error = &run.json()["error"];
        assert_eq!(error["code"], "invalid_config", "{arguments:?}");
        assert_eq!(error["message"].as_str().unwrap().trim_end(), told, "{arguments:?}");
        assert_eq!(run.stderr.strip_prefix("Error: ").unwrap().trim_end(), told);
    }
    // A part of it that only some commands read is no other case.
    sandbox.write("project/prowess.toml", "[runtime]\nno_such_setting = 1\n");
    let run = prowess_in(&sandbox, &[], &["session", "list", "--json"]);
    assert_eq!((run.code, &run.json()["error"]["code"]), (2, &"invalid_config".into()));
    fs::remove_file(sandbox.path().join("project/prowess.toml")).unwrap();
    fs::create_dir(sandbox.path().join("project/prowess.toml")).unwrap();
    let run = prowess_in(&sandbox, &[], &["list", "--json"]);
    assert_eq!((run.code, &run.json()["error"]["code"]), (2, &"unreadable_config".into()));
}

#[test]
fn programs_get_errors_as_json_too() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    let here = ["--json", "--no-default-roots", "--source", "skills"];
    for (arguments, code) in [
        (vec!["info", "b"], "unknown_skill"),
        (vec!["read", "b"], "unknown_skill"),
        (vec!["read", "a", "../x"], "invalid_path"),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().chain(here).collect();
        let run = sandbox.prowess(&arguments);
        assert_eq!(run.code, 1);
        assert_eq!(run.json()["error"]["code"], code, "{arguments:?}");
    }
}

#[test]
fn a_skill_with_a_huge_file_is_shown_without_a_tree_digest() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/big/SKILL.md", minimal("big"));
    let file = std::fs::File::create(sandbox.write("skills/big/font.ttf", "")).unwrap();
    file.set_len(11 << 20).unwrap();
    let info = ["info", "big", "--json", "--no-default-roots", "--source", "skills"];
    assert!(sandbox.prowess(&info).json()["tree_digest"].as_str().unwrap().starts_with("v1:"));
    file.set_len(65 << 20).unwrap();
    let json = sandbox.prowess(&info).json();
    assert_eq!(json["tree_digest"], serde_json::Value::Null);
    assert_eq!(json["tree_digest_error"]["code"], "too_large");
    assert_eq!(json["resources"][0]["path"], "font.ttf");
}

#[test]
fn what_is_left_out_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    sandbox.write("secret", "x");
    std::os::unix::fs::symlink("../../secret", sandbox.path().join("skills/a/leak.md")).unwrap();
    let here = ["--json", "--no-default-roots", "--source", "skills"];
    let run = |command: &[&str]| {
        sandbox.prowess(&command.iter().copied().chain(here).collect::<Vec<_>>()).json()
    };
    let left_out = &run(&["list"])["skills"][0]["left_out"][0];
    assert_eq!(left_out["path"], "leak.md");
    assert_eq!(left_out["why"], "it leads out of the skill's folder");
    assert_eq!(run(&["doctor"])["diagnostics"][0]["code"], "left-out-file");
    assert_eq!(run(&["info", "a"])["left_out"][0]["path"], "leak.md");
}

/// A folder that lets its `SKILL.md` be opened by name, but not its files be listed.
#[test]
fn files_that_cannot_be_listed_are_told() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    sandbox.write("skills/a/notes.md", "x");
    let here = ["--no-default-roots", "--source", "skills"];
    let run = |command: &[&str]| {
        // Root reads everything, unless it gives that up.
        let script = "[ \"$(id -u)\" = 0 ] || exec \"$0\" \"$@\"\n\
                      exec setpriv --bounding-set=-dac_override,-dac_read_search \"$0\" \"$@\"";
        let mut sh = Command::new("sh");
        sh.args(["-c", script, env!("CARGO_BIN_EXE_prowess")]).args(command).args(here);
        sandbox.run(sh, b"")
    };
    // The control: it is the permissions alone.
    let before = run(&["list", "--json"]);
    if before.code != 0 {
        return skip("files_that_cannot_be_listed_are_told", before.stderr.trim());
    }
    assert_eq!(before.json()["skills"][0]["resources"][0]["path"], "notes.md");
    assert_eq!(before.json()["diagnostics"].as_array().unwrap().len(), 0);
    let folder = sandbox.path().join("skills/a");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o311)).unwrap();
    let (list, doctor) = (run(&["list", "--json"]), run(&["doctor", "--json"]));
    let table = run(&["list", "--resources"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    for found in [list.json(), doctor.json()] {
        let found = &found["diagnostics"][0];
        assert_eq!(found["code"], "unreadable-file", "{found}");
        assert_eq!(found["path"], "skills/a/SKILL.md");
    }
    assert_eq!((list.code, doctor.code), (0, 1));
    assert_eq!(list.json()["skills"][0]["name"], "a");
    assert_eq!(table.stderr, "1 error, 0 warnings: `prowess doctor` shows them.\n");
}

#[test]
fn paths_that_are_no_text_are_told() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    for (name, text) in [(b"a-\xff".as_slice(), minimal("a")), (b"b-\xfe", "broken".to_owned())] {
        let folder = sandbox.path().join("skills").join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let here = ["--json", "--no-default-roots", "--source", "skills"];
    // Whatever is printed as a path, its bytes are there too.
    for (command, skills) in [
        (vec!["list"], vec!["a-\\xff", "b-\\xfe"]),
        (vec!["info", "a"], vec!["a-\\xff"]),
        (vec!["doctor"], vec!["a-\\xff", "b-\\xfe"]),
        (vec!["lint"], vec!["a-\\xff", "b-\\xfe"]),
    ] {
        let run = sandbox.prowess(&command.iter().copied().chain(here).collect::<Vec<_>>());
        let json = run.json();
        let told: Vec<&str> = json["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|found| found["code"] == "path-not-utf8")
            .map(|found| found["message"].as_str().unwrap())
            .collect();
        assert_eq!(told.len(), skills.len(), "{command:?}: {run:?}");
        for (message, skill) in told.iter().zip(skills) {
            assert!(message.ends_with(&format!(" skills/{skill}/SKILL.md")), "{message}");
        }
    }
}

#[test]
fn every_command_that_reads_skills_takes_sources() {
    let sandbox = Sandbox::new();
    sandbox.write("skills/a/SKILL.md", minimal("a"));
    let here = ["--no-default-roots", "--source", "skills"];
    let run = |command: &[&str]| {
        sandbox.prowess(&command.iter().copied().chain(here).collect::<Vec<_>>())
    };
    assert_eq!(run(&["lint"]).stdout, "No findings in 1 skill.\n");
    assert_eq!(run(&["validate"]).stdout, "Valid skill: skills/a\n");
    assert!(run(&["to-prompt"]).stdout.contains("<name>\na\n</name>"));
    assert_eq!(run(&["read-properties", "a"]).json()["name"], "a");
}

#[test]
fn an_untrusted_source_is_a_setting() {
    let sandbox = Sandbox::new();
    sandbox.write("project/own/x/SKILL.md", described("x", "own"));
    sandbox.write("project/net/x/SKILL.md", described("x", "net"));
    let text = "[skills]\nsources = [\"own\"]\nuntrusted_sources = [\"net\"]\nprecedence = \"first-wins\"\n";
    sandbox.write("project/prowess.toml", text);
    let skill = &prowess_in(&sandbox, &[], &["list", "--json"]).json()["skills"][0];
    assert_eq!((&skill["description"], &skill["trust"]), (&"own".into(), &"trusted".into()));
}
