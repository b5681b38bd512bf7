//! `prowess skills`, as it is typed: here and with a server (S11, 5).

mod support;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use support::Sandbox;
use support::chat::command;
use support::typist::{Serving, Typist, custom, skill};

/// A skill with a script, bytes that are no text, and a text.
fn write_tables(sandbox: &Sandbox, version: &str, body: &str) {
    sandbox.write("work/tables/SKILL.md", skill("tables", version, body));
    let script = sandbox.write("work/tables/scripts/run.sh", "#!/bin/sh\r\necho \u{1b}[31m\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.write("work/tables/assets/logo.bin", [0, 159, 146, 150]);
}

/// Everything that can be done with versions, wherever the registry is.
fn round_trip(typist: &Typist<'_>, actor: &str) {
    let sandbox = typist.sandbox;
    write_tables(sandbox, "1.0.0", "# Tables\nOne.\n");
    let first = typist.json(&["push", "work/tables"]);
    let row = &first["skills"][0];
    assert_eq!((&row["status"], &row["version_number"]), (&json!("created"), &json!(1)));
    let again = typist.ok(&["push", "work/tables/SKILL.md"]);
    assert!(again.stdout.starts_with("unchanged  tables  version 1"), "{again:?}");

    write_tables(sandbox, "1.1.0", "# Tables\nTwo.\n");
    let second = typist.ok(&["push", "work", "--message", "Say two"]);
    assert_eq!(second.stdout, "updated    tables  version 2\n");
    write_tables(sandbox, "1.2.0", "# Tables\nThree.\n");
    let script = sandbox.path().join("work/tables/scripts/run.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o644)).unwrap();
    let third = typist.ok(&["push", "work/tables", "--no-activate"]);
    assert!(third.stdout.contains("version 3 (version 2 is still used)"), "{third:?}");

    let list = custom(typist);
    let row = &list[0];
    assert_eq!((&row["id"], &row["active_version"]), (&json!("tables"), &json!(2)));
    assert_eq!((&row["version"], &row["version_count"]), (&json!("1.1.0"), &json!(3)));
    let shown = typist.ok(&["list"]).stdout;
    let words = |line: &str| line.split_whitespace().take(5).map(str::to_owned).collect::<Vec<_>>();
    let mut lines = shown.lines().map(words);
    assert_eq!(lines.next().unwrap(), ["ID", "ACTIVE", "WAITS", "VERSION", "VERSIONS"], "{shown}");
    assert!(lines.any(|line| line == ["tables", "2", "3", "1.1.0", "3"]), "{shown}");

    let versions = typist.json(&["versions", "tables"]);
    let numbers: Vec<_> = versions["versions"].as_array().unwrap().iter().collect();
    assert_eq!(numbers.len(), 3);
    assert_eq!(
        (&numbers[0]["version_number"], &numbers[2]["version_number"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(numbers[1]["change_summary"], "Say two");
    assert_eq!(
        (&numbers[1]["is_active"], &numbers[1]["created_by"]),
        (&json!(true), &json!(actor))
    );
    let shown = typist.ok(&["versions", "tables"]).stdout;
    let line = shown.lines().find(|line| line.starts_with("2*")).unwrap();
    assert!(line.contains("1.1.0") && line.contains(actor) && line.ends_with("Say two"), "{line}");

    let diff = typist.ok(&["diff", "tables"]).stdout;
    assert!(diff.starts_with("--- a/SKILL.md\n+++ b/SKILL.md\n@@ "), "{diff}");
    assert!(diff.contains("\n-One.\n+Two.\n"), "{diff}");
    let diff = typist.ok(&["diff", "tables", "1", "3"]).stdout;
    assert!(diff.contains("-One.\n+Three.\n"), "{diff}");
    assert!(diff.contains("old mode 100755\nnew mode 100644\n"), "{diff}");
    assert_eq!(typist.json(&["diff", "tables", "3"])["to_version"], 2);
    assert_eq!(typist.code(&["diff", "tables", "1", "9"]), "version_not_found");

    let activated = typist.json(&["activate", "tables", "1"]);
    assert_eq!(activated, json!({"skill_id": "tables", "active_version": 1}));
    assert_eq!(typist.code(&["diff", "tables"]), "no_earlier_version");
    assert_eq!(typist.code(&["activate", "tables", "9"]), "version_not_found");

    pulled(typist);
    assert_eq!(typist.code(&["versions", "nothing"]), "skill_not_found");
    assert_eq!(typist.code(&["pull", "../etc"]), "invalid_id");
    assert_eq!(typist.code(&["reset", "tables"]), "not_built_in");
    let deleted = typist.ok(&["delete", "tables"]).stdout;
    assert!(deleted.contains("Its versions stay"), "{deleted}");
    assert!(custom(typist).is_empty());
    assert_eq!(typist.code(&["pull", "tables", "--to", "gone"]), "skill_not_found");
    assert!(!sandbox.path().join("gone").exists());
    let back = typist.json(&["push", "work/tables"]);
    assert_eq!(back["skills"][0]["version_number"], 4, "the history goes on");
}

fn pulled(typist: &Typist<'_>) {
    let root = typist.sandbox.path();
    let run = typist.json(&["pull", "tables", "--to", "out"]);
    assert_eq!((&run["version_number"], &run["path"]), (&json!(1), &json!("out/tables")));
    assert_eq!(run["files"], json!(["SKILL.md", "assets/logo.bin", "scripts/run.sh"]));
    let read = |path: &str| fs::read(root.join("out/tables").join(path)).unwrap();
    assert_eq!(read("SKILL.md"), skill("tables", "1.0.0", "# Tables\nOne.\n").as_bytes());
    assert_eq!(read("assets/logo.bin"), [0, 159, 146, 150]);
    assert_eq!(read("scripts/run.sh"), b"#!/bin/sh\r\necho \x1b[31m\n");
    let mode = |path: &str| {
        fs::metadata(root.join("out/tables").join(path)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("scripts/run.sh"), mode("SKILL.md"), mode("")), (0o755, 0o644, 0o755));

    typist.sandbox.write("out/tables/mine.txt", "mine");
    assert_eq!(typist.code(&["pull", "tables", "--to", "out", "--version", "2"]), "folder_exists");
    assert_eq!(read("mine.txt"), b"mine");
    assert_eq!(
        typist.code(&["pull", "tables", "--to", "out", "--version", "9", "--force"]),
        "version_not_found"
    );
    assert_eq!(read("mine.txt"), b"mine", "what cannot be had replaces nothing");
    typist.ok(&["pull", "tables", "--to", "out", "--version", "2", "--force"]);
    assert_eq!(read("SKILL.md"), skill("tables", "1.1.0", "# Tables\nTwo.\n").as_bytes());
    assert!(!root.join("out/tables/mine.txt").exists());
    let left: Vec<_> = fs::read_dir(root.join("out")).unwrap().map(|it| it.unwrap()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn versions_go_around_here() {
    let sandbox = Sandbox::new();
    round_trip(&Typist::here(&sandbox), "local");
}

#[test]
fn versions_go_around_with_a_server() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(command(&sandbox, &["keys", "create", "ops", "--role", "admin"]), b"");
    let key = made.stdout.trim().to_owned();
    let server = Serving::start(&sandbox);
    let typist = Typist { sandbox: &sandbox, server: Some(&server.url), key: Some(&key) };
    round_trip(&typist, "key:ops");
}

#[test]
fn a_skill_of_some_megabytes_takes_a_reason_too() {
    let sandbox = Sandbox::new();
    sandbox.write("work/large/SKILL.md", skill("large", "1.0.0", "# Large\n"));
    // Noise, which does not pack.
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    sandbox.write("work/large/data.bin", noise.take(3 << 20).collect::<Vec<u8>>());
    let server = Serving::start(&sandbox);
    let typist = Typist { sandbox: &sandbox, server: Some(&server.url), key: None };
    typist.ok(&["push", "work", "--message", "Large"]);
    assert_eq!(typist.json(&["versions", "large"])["versions"][0]["change_summary"], "Large");
}

#[test]
fn what_is_left_out_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("work/alpha/SKILL.md", skill("alpha", "1.0.0", "# Alpha\n"));
    sandbox.write("secret.txt", "secret");
    std::os::unix::fs::symlink("../../secret.txt", sandbox.path().join("work/alpha/link.txt"))
        .unwrap();
    let typist = Typist::here(&sandbox);
    let run = typist.ok(&["push", "work/alpha"]);
    assert!(run.stderr.contains("Warning: work/alpha/link.txt is left out: "), "{run:?}");
    let value = typist.json(&["push", "work/alpha"]);
    assert_eq!(value["skills"][0]["left_out"][0]["path"], "work/alpha/link.txt");
    assert_eq!(typist.json(&["pull", "alpha", "--to", "out"])["files"], json!(["SKILL.md"]));
}

#[test]
fn a_broken_skill_is_refused_with_its_lines_and_the_others_are_pushed() {
    let sandbox = Sandbox::new();
    sandbox.write("work/alpha/SKILL.md", skill("alpha", "1.0.0", "# Alpha\n"));
    sandbox.write("work/broken/SKILL.md", "---\nname: broken\ndescription: [a\n---\n# Broken\n");
    sandbox.write("work/zeta/SKILL.md", skill("zeta", "1.0.0", "# Zeta\n"));
    let server = Serving::start(&sandbox);
    for server in [None, Some(server.url.as_str())] {
        let typist = Typist { sandbox: &sandbox, server, key: None };
        let run = typist.skills(&["push", "work"]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.contains("  alpha  ") && run.stdout.contains("  zeta  "), "{run:?}");
        assert!(run.stderr.contains("work/broken/SKILL.md:3:"), "{run:?}");
        assert!(run.stderr.contains("1 of 3 skills refused"), "{run:?}");
        let run = typist.skills(&["push", "work", "nowhere", "--json"]);
        let value = run.json();
        assert_eq!((run.code, &value["refused"]), (1, &json!(2)));
        let statuses: Vec<_> =
            value["skills"].as_array().unwrap().iter().map(|it| it["status"].clone()).collect();
        assert_eq!(statuses, ["unchanged", "refused", "unchanged", "refused"]);
        assert!(value["skills"][1]["findings"][0]["line"].is_u64(), "{value}");
        assert_eq!(custom(&typist).len(), 2);
    }
}

#[test]
fn two_skills_of_one_name_are_refused_and_the_others_are_pushed() {
    let sandbox = Sandbox::new();
    sandbox.write("work/alpha/SKILL.md", skill("alpha", "1.0.0", "# Alpha\n"));
    sandbox.write("work/one/tables/SKILL.md", skill("tables", "1.0.0", "# One\n"));
    sandbox.write("work/two/tables/SKILL.md", skill("tables", "1.0.0", "# Two\n"));
    let server = Serving::start(&sandbox);
    for server in [None, Some(server.url.as_str())] {
        let typist = Typist { sandbox: &sandbox, server, key: None };
        let run = typist.skills(&["push", "work", "--json"]);
        let value = run.json();
        assert_eq!((run.code, &value["refused"]), (1, &json!(2)), "{value}");
        for (at, other) in [(1, "work/two/tables"), (2, "work/one/tables")] {
            let finding = &value["skills"][at]["findings"][0];
            assert_eq!(finding["code"], "sent_twice", "{value}");
            let message = format!("'tables' is also in {other}; push one of them");
            assert_eq!(finding["message"], message);
        }
        assert_eq!(custom(&typist).len(), 1, "only the other one is there");
        // From two places, too; and one place that is named twice is one.
        let run = typist.skills(&["push", "work/one", "work/two/tables"]);
        assert!(run.code == 1 && run.stderr.contains("error[sent_twice]"), "{run:?}");
        let again = typist.json(&["push", "work/alpha", "work/alpha/SKILL.md", "./work/alpha"]);
        assert_eq!(again["skills"].as_array().unwrap().len(), 1, "{again}");
    }
}

#[test]
fn an_archive_is_pushed_and_what_is_broken_in_it_refused() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("pack.zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    for (name, text) in [
        ("alpha/SKILL.md", skill("alpha", "1.0.0", "# Alpha\n")),
        ("broken/SKILL.md", "---\nname: broken\n---\n".to_owned()),
    ] {
        zip.start_file(name, options).unwrap();
        std::io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    let typist = Typist::here(&sandbox);
    let run = typist.skills(&["push", "pack.zip"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "created    alpha  version 1\n"), "{run:?}");
    assert!(run.stderr.contains("broken/SKILL.md"), "{run:?}");
    sandbox.write("noise.zip", "no archive");
    let run = typist.skills(&["push", "noise.zip"]);
    assert!(run.code == 1 && run.stderr.contains("noise.zip: error["), "{run:?}");
}

#[test]
fn what_a_skill_says_cannot_steer_a_terminal() {
    let sandbox = Sandbox::new();
    let typist = Typist::here(&sandbox);
    for body in ["# One\n", "# \u{1b}]0;owned\u{7} and \u{1b}[2J\n"] {
        sandbox.write("work/trick/SKILL.md", skill("trick", "1.0.0", body));
        typist.ok(&["push", "work", "--message", "why \u{1b}[2J"]);
    }
    let coloured = typist.ok(&["diff", "trick", "--color", "always"]).stdout;
    assert!(coloured.contains("\u{1b}[32m+# \\u{1b}]0;owned\\u{7} and"), "{coloured:?}");
    assert!(!coloured.contains("\u{1b}]") && !coloured.contains("\u{1b}[2J"), "{coloured:?}");
    let plain = typist.ok(&["diff", "trick"]).stdout;
    assert!(plain.contains("+# \u{1b}]0;owned"), "a patch program needs every byte: {plain:?}");
    let versions = typist.ok(&["versions", "trick"]).stdout;
    assert!(!versions.contains('\u{1b}'), "{versions:?}");
}

#[test]
fn who_has_no_key_or_no_server_is_told() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(command(&sandbox, &["keys", "create", "ro", "--role", "viewer"]), b"");
    let key = made.stdout.trim().to_owned();
    let server = Serving::start(&sandbox);
    let wrong = format!("{}x", &key[..key.len() - 1]);
    for key in [None, Some(wrong.as_str())] {
        let typist = Typist { sandbox: &sandbox, server: Some(&server.url), key };
        let run = typist.skills(&["list", "--json"]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.starts_with("Error: ") && !run.stderr.contains(&wrong), "{run:?}");
        let code = run.json()["error"]["code"].as_str().unwrap().to_owned();
        assert!(run.stderr.contains(&code) && code != "failed", "{run:?}");
    }
    let viewer = Typist { sandbox: &sandbox, server: Some(&server.url), key: Some(&key) };
    assert!(custom(&viewer).is_empty());
    sandbox.write("work/alpha/SKILL.md", skill("alpha", "1.0.0", "# Alpha\n"));
    let run = viewer.skills(&["push", "work"]);
    assert!(run.code == 1 && run.stderr.contains("editor"), "{run:?}");
    assert_eq!(viewer.code(&["import-redis", "redis://127.0.0.1:1"]), "local_only");
    let help = viewer.ok(&["list", "--help"]).stdout;
    assert!(help.contains("PROWESS_KEY") && !help.contains(&key), "{help}");

    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!("http://{closed}");
    let typist = Typist { sandbox: &sandbox, server: Some(&away), key: Some(&key) };
    assert_eq!(typist.code(&["list"]), "server_unavailable");
    let run = typist.skills(&["list"]);
    assert!(run.stderr.contains(&away) && run.stderr.contains("prowess serve"), "{run:?}");
    for address in ["example", "ftp://example.com", "http://user:secret@example.com"] {
        let typist = Typist { sandbox: &sandbox, server: Some(address), key: None };
        assert_eq!(typist.code(&["list"]), "invalid_address");
        assert!(!typist.skills(&["list"]).stderr.contains("secret"));
    }
}

#[test]
fn help_has_examples() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(Typist::here(&sandbox).ok(&["--help"]).stdout);
    for command in ["push", "pull", "diff", "import-redis"] {
        let help = Typist::here(&sandbox).ok(&[command, "--help"]).stdout;
        assert!(help.contains("Examples:"), "{help}");
    }
    let long = "x".repeat(501);
    assert_eq!(Typist::here(&sandbox).skills(&["push", ".", "--message", &long]).code, 2);
}
