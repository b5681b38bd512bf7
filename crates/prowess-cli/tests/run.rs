//! `prowess run` (S07, 4, 5, 6 and 8).

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::Run;
use support::exec::{Project, examples, files, repeat_as_a_user};

/// The first ten, one per line.
const FIBONACCI: &str = "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n";

/// Says that a run was not started, and gives what was said of it.
fn not_started(run: &Run) -> &str {
    assert_eq!((run.code, run.stdout.as_str()), (125, ""), "{run:?}");
    run.stderr.strip_prefix("Error: ").unwrap_or_else(|| panic!("{run:?}"))
}

#[test]
fn exit_codes_are_passed_on() {
    let Some(project) = Project::new("run::exit_codes_are_passed_on") else { return };
    for (line, code) in [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)]
    {
        assert_eq!(project.run(&[], line).code, code, "{line}");
        assert_eq!(project.run_as_json(&[], line).0, code, "{line}");
    }
    assert!(project.workspaces().is_empty(), "nothing was left, so nothing is kept");
}

#[test]
fn a_command_whose_time_is_over_is_124() {
    let Some(project) = Project::new("run::a_command_whose_time_is_over_is_124") else { return };
    let run = project.run(&["--timeout", "1"], "echo begun; sleep 99");
    assert_eq!((run.code, run.stdout.as_str()), (124, "begun\n"), "{run:?}");
    assert!(run.stderr.starts_with("Error: the command was ended after "), "{run:?}");
    assert!(run.stderr.ends_with("--timeout gives it more\n"), "{run:?}");
    let (code, value) = project.run_as_json(&["--timeout", "1"], "sleep 99");
    assert_eq!((code, &value["timed_out"]), (124, &json!(true)), "{value}");
    // A command that ends by itself with that code is another thing.
    let (code, value) = project.run_as_json(&[], "exit 124");
    assert_eq!((code, &value["timed_out"]), (124, &json!(false)), "{value}");
}

#[test]
fn what_is_not_started_is_125_and_says_why() {
    let Some(project) = Project::new("run::what_is_not_started_is_125_and_says_why") else {
        return;
    };
    project.write("one/data.csv", "1");
    project.write("two/data.csv", "2");
    let table: [(&[&str], &str); 7] = [
        (&["run", "dmeo", "--", "true"], "dmeo"),
        (&["run", "demo", "--input", "no-such-file", "--", "true"], "no-such-file"),
        (
            &["run", "demo", "--input", "one/data.csv", "--input", "two/data.csv", "--", "true"],
            "would both be inputs/data.csv",
        ),
        (&["run", "demo", "--env", "LD_PRELOAD=/x.so", "--", "true"], "env.LD_PRELOAD"),
        (&["run", "demo", "--env", "BASH_ENV=/x", "--", "true"], "env.BASH_ENV"),
        (&["run", "demo", "--env", "1X=2", "--", "true"], "env.1X"),
        (&["run", "demo", "--env", "NOT_SET_ANYWHERE", "--", "true"], "NOT_SET_ANYWHERE"),
    ];
    for (arguments, part) in table {
        let run = project.prowess(arguments);
        assert!(not_started(&run).contains(part), "{run:?}");
        let at = arguments.len() - 2;
        let run = project.prowess(&[&arguments[..at], &["--json"], &arguments[at..]].concat());
        assert_eq!(run.code, 125, "{run:?}");
        let message = run.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(part), "{run:?}");
    }
    assert!(project.workspaces().is_empty());
    for arguments in [
        vec!["run"],
        vec!["run", "demo"],
        vec!["run", "demo", "--tier", "3", "--", "true"],
        vec!["run", "demo", "--timeout", "0", "--", "true"],
    ] {
        assert_eq!(project.prowess(&arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn one_word_is_a_line_for_bash_and_several_are_a_program() {
    let test = "run::one_word_is_a_line_for_bash_and_several_are_a_program";
    let Some(project) = Project::new(test) else { return };
    let run = project.run(&[], "echo $((6 * 7)) | tr 4 5");
    assert_eq!(run.stdout, "52\n", "{run:?}");
    let run = project.prowess(&["run", "demo", "--", "printf", "%s|", "a b", "$HOME", "it's", ""]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "a b|$HOME|it's||"), "{run:?}");
    // It begins in the skill's folder, which it cannot change.
    let run = project.run(&[], "cat greeting.txt; echo x > greeting.txt || echo refused");
    assert_eq!(run.stdout, "hello\nrefused\n", "{run:?}");
}

#[test]
fn output_comes_while_the_command_runs() {
    let Some(project) = Project::new("run::output_comes_while_the_command_runs") else { return };
    let line = "echo one; echo two >&2; until [ -e work/go ]; do sleep 0.01; done; echo three";
    let mut command = project.command(&["run", "demo", "--", line]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut said, mut rest) = (String::new(), String::new());
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut said).unwrap();
    let mut complained = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut complained).unwrap();
    // It still runs: it waits for this.
    assert!(child.try_wait().unwrap().is_none());
    fs::write(project.workspaces()[0].join("work/go"), "").unwrap();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!([said, complained, rest], ["one\n", "two\n", "three\n"]);
}

#[test]
fn programs_get_one_object() {
    let Some(project) = Project::new("run::programs_get_one_object") else { return };
    let line = "echo a; echo b >&2; echo c > out/c.txt; exit 3";
    let run = project.run(&["--json"], line);
    assert_eq!((run.code, run.stderr.as_str()), (3, ""), "{run:?}");
    let value = run.json();
    for (key, expected) in [
        ("stdout", json!("a\n")),
        ("stderr", json!("b\n")),
        ("exit_code", json!(3)),
        ("timed_out", json!(false)),
    ] {
        assert_eq!(value[key], expected, "{value}");
    }
    let file = &value["output_files"][0];
    assert_eq!((&file["name"], &file["size_bytes"]), (&json!("out/c.txt"), &json!(2)));
    assert_eq!(file.get("content"), None);
    for name in
        ["fs_read", "fs_write", "metadata", "net", "unix_sockets", "env", "pids", "memory", "kill"]
    {
        assert!(value["isolation"][name]["state"].is_string(), "{name}: {value}");
    }
    let folder = Path::new(value["output_folder"].as_str().unwrap());
    assert_eq!(files(folder), [("c.txt".to_owned(), b"c\n".to_vec())]);
    // Without files there is no folder.
    assert_eq!(project.run_as_json(&[], "true").1["output_folder"], Value::Null);
    assert_eq!(project.workspaces().len(), 1);
}

#[test]
fn files_and_folders_are_brought() {
    let Some(project) = Project::new("run::files_and_folders_are_brought") else { return };
    let sales = project.write("sales.csv", "a\nb\n");
    project.write("more/deep/x.txt", "x");
    project.write("secret.txt", "hunter2");
    std::os::unix::fs::symlink(project.path("secret.txt"), project.path("more/link")).unwrap();
    let run = project.run(
        &["--input", sales.to_str().unwrap(), "--input", "more"],
        "cat inputs/sales.csv inputs/more/deep/x.txt; echo; ls inputs/more; \
         echo changed > inputs/sales.csv",
    );
    assert_eq!((run.code, run.stdout.as_str()), (0, "a\nb\nx\ndeep\n"), "{run:?}");
    // A link leads nowhere, and that is said.
    assert!(run.stderr.starts_with("Warning: host://"), "{run:?}");
    assert!(run.stderr.contains("1 left out, such as"), "{run:?}");
    assert_eq!(fs::read_to_string(sales).unwrap(), "a\nb\n", "it was a copy");
}

#[test]
fn what_is_left_in_out_is_delivered_and_nothing_else() {
    let test = "run::what_is_left_in_out_is_delivered_and_nothing_else";
    let Some(project) = Project::new(test) else { return };
    let secret = project.write("secret.txt", "hunter2");
    let line = format!(
        "mkdir -p out/a/b; echo nested > out/a/b/c.txt; printf '\\0\\377' > out/bytes; \
         echo elsewhere > work/x; ln -s '{}' out/link; ln -s / out/root; mkfifo out/pipe",
        secret.display()
    );
    let run = project.run(&["--output", "results"], &line);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    let (place, told): (Vec<&str>, Vec<&str>) =
        run.stderr.lines().partition(|line| line.starts_with("Warning: what was left out is in "));
    insta::assert_snapshot!("run_output", project.stable(&told.join("\n")));
    let rest = Path::new(place[0].rsplit(' ').next().unwrap());
    assert_eq!(fs::read_link(rest.join("link")).unwrap(), secret, "it stays where it is");
    let expected = [("a/b/c.txt", b"nested\n".to_vec()), ("bytes", vec![0, 255])];
    assert_eq!(files(&project.path("results")), expected.map(|(name, it)| (name.to_owned(), it)));
    // Programs are told as well.
    let (code, value) = project.run_as_json(&["--output", "again"], &line);
    let names: Vec<&str> = value["refused_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert_eq!((code, names), (0, vec!["out/link", "out/pipe", "out/root"]), "{value}");
}

#[test]
fn many_files_are_delivered() {
    let Some(project) = Project::new("run::many_files_are_delivered") else { return };
    let run = project.run(&["--output", "results"], "for i in {1..150}; do echo $i > out/$i; done");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!run.stderr.contains("Warning"), "{run:?}");
    assert_eq!(files(&project.path("results")).len(), 150);
    let (_, value) = project.run_as_json(&[], "for i in {1..150}; do echo $i > out/$i; done");
    assert_eq!(value["output_files"].as_array().unwrap().len(), 150);
}

#[test]
fn what_cannot_be_delivered_stays() {
    let Some(project) = Project::new("run::what_cannot_be_delivered_stays") else { return };
    project.write("results", "a file is in the way");
    let run = project.run(&["--output", "results"], "echo 42 > out/answer");
    assert_eq!(run.code, 125, "{run:?}");
    assert!(project.workspaces().is_empty(), "nothing was started");
    // Nor is a file replaced, which the command could have chosen.
    project.write("more/.bashrc", "precious");
    let run = project.run(&["--output", "more"], "echo evil > out/.bashrc; exit 3");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("out/.bashrc was left out: exists"), "{run:?}");
    assert_eq!(fs::read_to_string(project.path("more/.bashrc")).unwrap(), "precious");
    let place = project.workspaces().pop().unwrap().join("out");
    assert_eq!(files(&place), [(".bashrc".to_owned(), b"evil\n".to_vec())]);
}

#[test]
fn a_workspace_is_kept_if_something_is_in_out() {
    let test = "run::a_workspace_is_kept_if_something_is_in_out";
    let Some(project) = Project::new(test) else { return };
    assert_eq!(project.run(&[], "echo > work/x; echo > $RUN_DIR/y").code, 0);
    assert!(project.workspaces().is_empty());
    let run = project.run(&[], "echo 42 > out/answer");
    let place = project.workspaces().pop().unwrap().join("out/answer");
    assert_eq!(run.stderr, format!("Output: {} (3 bytes)\n", place.display()));
    assert_eq!(fs::read_to_string(place).unwrap(), "42\n");
    // What is refused is not thrown away either.
    assert_eq!(project.run(&[], "mkfifo out/pipe").code, 0);
    assert_eq!(project.workspaces().len(), 2);
}

#[test]
fn a_session_has_one_workspace_and_keeps_what_it_pinned() {
    let test = "run::a_session_has_one_workspace_and_keeps_what_it_pinned";
    let Some(project) = Project::new(test) else { return };
    let session = ["--session", "monday"];
    assert_eq!(project.run(&session, "echo kept > work/x").code, 0);
    assert_eq!(project.run(&session, "cat work/x").stdout, "kept\n");
    assert_eq!(project.run(&["--session", "tuesday"], "cat work/x").code, 1);
    assert_eq!(project.run(&[], "cat work/x").code, 1);
    assert_eq!(project.workspaces().len(), 2, "one for each session");
    // What a session has loaded, it runs; or nothing.
    let load =
        project.prowess(&["call", "load_skill", r#"{"skill": "demo"}"#, "--session", "monday"]);
    assert_eq!(load.code, 0, "{load:?}");
    assert_eq!(project.run(&session, "cat greeting.txt").stdout, "hello\n");
    project.write("skills/demo/greeting.txt", "slipped in\n");
    let run = project.run(&session, "cat greeting.txt");
    assert!(not_started(&run).contains("changed"), "{run:?}");
    assert_eq!(project.run(&["--session", "tuesday"], "cat greeting.txt").stdout, "slipped in\n");
}

#[test]
fn standard_input_is_passed_on_if_asked_for() {
    let Some(project) = Project::new("run::standard_input_is_passed_on_if_asked_for") else {
        return;
    };
    let with = |options: &[&str], input: &[u8]| {
        let arguments = [&["run", "demo"], options, &["--", "cat; echo ."]].concat();
        project.sandbox.run(project.command(&arguments), input)
    };
    assert_eq!(with(&["--stdin"], "größe".as_bytes()).stdout, "größe.\n");
    assert_eq!(with(&[], b"not for it").stdout, ".\n");
    let long = vec![b'x'; 300_000];
    assert_eq!(with(&["--stdin"], &long).stdout.len(), long.len() + 2);
}

#[test]
fn variables_are_passed_by_name_or_value_and_no_others() {
    let test = "run::variables_are_passed_by_name_or_value_and_no_others";
    let Some(project) = Project::new(test) else { return };
    let line = "echo \"$ONE|$TWO|$THREE|$SKILL_NAME\"; env | grep -c SECRET";
    let arguments = ["run", "demo", "--env", "ONE", "--env", "TWO=2=2", "--", line];
    let mut command = project.command(&arguments);
    command.envs([("ONE", "1"), ("THREE", "3"), ("A_SECRET", "hunter2")]);
    let run = project.sandbox.run(command, b"");
    assert_eq!(run.stdout, "1|2=2||demo\n0\n", "{run:?}");
}

#[test]
fn how_commands_run_is_decided_at_home() {
    let Some(project) = Project::new("run::how_commands_run_is_decided_at_home") else { return };
    let settings = "[exec.env]\ndemo = [\"TOKEN\"]\n";
    let show = || {
        let mut command = project.command(&["run", "demo", "--", "echo \"token: $TOKEN\""]);
        command.env("TOKEN", "abc");
        project.sandbox.run(command, b"")
    };
    let config = project.write("prowess.toml", settings);
    let run = show();
    assert_eq!((run.code, run.stdout.as_str()), (0, "token: \n"), "{run:?}");
    insta::assert_snapshot!("run_project_settings", project.stable(&run.stderr));
    // The same at home counts, beside a project's file or without one.
    let home = project.write("home/prowess.toml", settings);
    assert_eq!(show().stdout, "token: abc\n");
    fs::remove_file(config).unwrap();
    let run = show();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("token: abc\n", ""), "{run:?}");
    fs::write(home, "[exec]\nnetwrok = [\"demo\"]\n").unwrap();
    let run = show();
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    insta::assert_snapshot!("run_wrong_settings", project.stable(&run.stderr));
}

#[test]
fn a_command_that_is_not_allowed_is_not_started() {
    let test = "run::a_command_that_is_not_allowed_is_not_started";
    let Some(project) = Project::new(test) else { return };
    project.write("home/prowess.toml", "[exec]\nallowed_commands = [\"cat\"]\n");
    assert_eq!(project.run(&[], "cat greeting.txt").stdout, "hello\n");
    let run = project.run(&[], "ls");
    assert!(not_started(&run).contains("ls"), "{run:?}");
}

/// S10, 3: the variables of trpc-agent-go and ours, for commands that are typed and for calls.
#[test]
fn lists_of_commands_in_the_environment_hold() {
    let test = "run::lists_of_commands_in_the_environment_hold";
    let Some(project) = Project::new(test) else { return };
    let with = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = project.command(words);
        command.envs(variables.iter().copied());
        project.sandbox.run(command, b"")
    };
    let typed =
        |variables: &[(&str, &str)], line: &str| with(variables, &["run", "demo", "--", line]);
    let load = with(&[], &["call", "load_skill", r#"{"skill": "demo"}"#, "--session", "s"]);
    assert_eq!(load.code, 0, "{load:?}");
    // The control: without a variable, a shell runs it.
    assert_eq!(typed(&[], "cat greeting.txt; echo $((6 * 7))").stdout, "hello\n42\n");
    for prefix in ["PROWESS_EXEC", "TRPC_AGENT_SKILL_RUN", "TRPC_AGENT_WORKSPACE_EXEC"] {
        let allowed = format!("{prefix}_ALLOWED_COMMANDS");
        let denied = format!("{prefix}_DENIED_COMMANDS");
        let allow = [(allowed.as_str(), "cat, wc")];
        assert_eq!(typed(&allow, "cat greeting.txt").stdout, "hello\n");
        for line in ["ls", "cat greeting.txt; ls", "./cat greeting.txt", "cat *"] {
            let run = typed(&allow, line);
            assert!(not_started(&run).contains("host"), "{run:?}");
        }
        let deny = [(denied.as_str(), "cat")];
        assert!(not_started(&typed(&deny, "/bin/cat greeting.txt")).contains("denied"));
        assert_eq!(typed(&deny, "head greeting.txt").stdout, "hello\n");
        let empty = typed(&[(&allowed, ",")], "cat greeting.txt");
        assert!(not_started(&empty).contains(&format!("{allowed} is set but names no command")));
        let call = |command: &str| {
            let call = json!({"skill": "demo", "command": command}).to_string();
            with(&allow, &["call", "skill_run", &call, "--session", "s"])
        };
        assert!(call("cat greeting.txt").stdout.contains("hello"));
        let refused = call("ls");
        let said = [refused.stdout.as_str(), refused.stderr.as_str()].concat();
        assert!(said.contains("'ls' is not allowed by the host; allowed: cat, wc"), "{refused:?}");
        // What one's own file says goes before.
        project.write("home/prowess.toml", "[exec]\nallowed_commands = [\"ls\"]\n");
        assert_eq!(typed(&allow, "ls SKILL.md").stdout, "SKILL.md\n");
        assert!(not_started(&typed(&allow, "cat greeting.txt")).contains("cat"));
        project.write("home/prowess.toml", "");
    }
}

/// Each limit at its edge: what it just allows, and what is one too much.
#[test]
fn limits_of_ones_own_file_hold() {
    let Some(project) = Project::new("run::limits_of_ones_own_file_hold") else { return };
    project.write("data.txt", "12345");
    let run = |settings: &str, options: &[&str], line: &str| {
        project.write("home/prowess.toml", settings);
        let words = [&["run", "demo"], options, &["--", line]].concat();
        project.sandbox.run(project.command(&words), b"12345")
    };
    let table: [(&str, &[&str], &str); 3] = [
        ("[exec.limits]\nstdin_bytes", &["--stdin"], "cat"),
        ("[workspace.limits]\nmax_input_bytes", &["--input", "data.txt"], "cat inputs/data.txt"),
        ("[exec.limits]\noutput_bytes = 100\nstdin_bytes", &["--stdin"], "cat"),
    ];
    for (key, options, line) in table {
        let allowed = run(&format!("{key} = 5\n"), options, line);
        assert_eq!((allowed.code, allowed.stdout.as_str()), (0, "12345"), "{key}: {allowed:?}");
        let refused = run(&format!("{key} = 4\n"), options, line);
        let name = key.rsplit(['\n', ' ']).next().unwrap();
        assert!(not_started(&refused).contains(&format!("`{name}`")), "{key}: {refused:?}");
    }
    let line = "cd out; mkdir d; printf 123 > a; printf 45 > d/b";
    for (settings, expected, why) in [
        ("max_delivered_files = 2", 2, None),
        ("max_delivered_files = 1", 1, Some("too_many")),
        ("max_delivered_bytes = 5", 2, None),
        ("max_delivered_bytes = 4", 1, Some("total_bytes")),
        ("max_output_depth = 3", 2, None),
        ("max_output_depth = 2", 1, Some("depth")),
    ] {
        let folder = settings.replace([' ', '='], "");
        let ran = run(&format!("[exec]\n{settings}\n"), &["--output", &folder], line);
        assert_eq!(ran.code, 0, "{settings}: {ran:?}");
        assert_eq!(files(&project.path(&folder)).len(), expected, "{settings}: {ran:?}");
        match why {
            Some(why) => assert!(ran.stderr.contains(why), "{settings}: {ran:?}"),
            None => assert!(!ran.stderr.contains("left out"), "{settings}: {ran:?}"),
        }
    }
}

#[test]
fn an_artifact_is_no_larger_than_ones_own_file_says() {
    let test = "run::an_artifact_is_no_larger_than_ones_own_file_says";
    let Some(project) = Project::new(test) else { return };
    let load = project.prowess(&["call", "load_skill", r#"{"skill": "demo"}"#]);
    assert_eq!(load.code, 0, "{load:?}");
    for (most, is_kept) in [(5, true), (4, false)] {
        let settings = format!("[workspace]\nmax_artifact_bytes = {most}\n");
        project.write("home/prowess.toml", settings);
        let outputs = json!({"globs": ["out/a.txt"], "save": true});
        let call =
            json!({"skill": "demo", "command": "printf 12345 > out/a.txt", "outputs": outputs});
        let run = project.prowess(&["call", "skill_run", &call.to_string()]);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(run.stdout.contains("artifact_files"), is_kept, "{most}: {run:?}");
        assert_eq!(run.stdout.contains("max_artifact_bytes"), !is_kept, "{most}: {run:?}");
    }
}

#[test]
fn wrong_limits_are_named_with_place_and_remedy() {
    let test = "run::wrong_limits_are_named_with_place_and_remedy";
    let Some(project) = Project::new(test) else { return };
    let said = [
        "[workspace]\nmax_artifact_bytes = \"1 MB\"\n",
        "[workspace.limits]\nmax_age = 1\n",
        "[exec]\nmax_delivered_files = -1\n",
        "[exec.limits]\nstdin_bytes = 4294967296\n",
    ]
    .map(|settings| {
        project.write("home/prowess.toml", settings);
        let run = project.run(&[], "true");
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        format!("{settings}=> {}", project.stable(&run.stderr))
    });
    insta::assert_snapshot!("run_wrong_limits", said.join("\n"));
}

/// Seed 002's example, as it is written there and as the skill has it.
#[test]
fn the_first_ten_fibonacci_numbers() {
    let Some(project) = Project::with_python("run::the_first_ten_fibonacci_numbers") else {
        return;
    };
    let source = examples();
    let words = ["python3", "scripts/fib.py", "10", "out/fib.txt"];
    for (command, said) in [
        (&["python3 scripts/fib.py 10 > out/fib.txt"][..], ""),
        (&words[..], "wrote 10 numbers to out/fib.txt\n"),
    ] {
        let options = ["run", "python-math", "--source", &source, "--output", "results", "--"];
        let run = project.prowess(&[&options[..], command].concat());
        assert_eq!((run.code, run.stdout.as_str()), (0, said), "{run:?}");
        let expected = [("fib.txt".to_owned(), FIBONACCI.as_bytes().to_vec())];
        assert_eq!(files(&project.path("results")), expected);
        fs::remove_dir_all(project.path("results")).unwrap();
    }
}

#[test]
fn a_tool_call_runs_commands_of_a_loaded_skill() {
    let test = "run::a_tool_call_runs_commands_of_a_loaded_skill";
    let Some(project) = Project::new(test) else { return };
    let call = |tool: &str, arguments: Value| {
        project.prowess(&["call", tool, &arguments.to_string(), "--session", "s", "--json"])
    };
    let arguments = json!({"skill": "demo", "command": "cat greeting.txt | tee out/a.txt"});
    let refused = call("skill_run", arguments.clone());
    assert_eq!((refused.code, &refused.json()["code"]), (1, &json!("skill_not_loaded")));
    assert!(project.workspaces().is_empty());
    assert_eq!(call("load_skill", json!({"skill": "demo"})).code, 0);
    let ran = call("skill_run", arguments);
    assert_eq!((ran.code, &ran.json()["data"]["stdout"]), (0, &json!("hello\n")), "{ran:?}");
    let read = call("read_file", json!({"file_name": "workspace://out/a.txt"}));
    assert_eq!(read.json()["content"], "hello\n", "{read:?}");
}

#[test]
fn help_has_examples_that_work() {
    let Some(project) = Project::with_python("run::help_has_examples_that_work") else { return };
    let help = project.prowess(&["run", "--help"]).stdout;
    insta::assert_snapshot!("run_help", help);
    project.write("sales.csv", "a,b\n1,2\n");
    let lines: Vec<&str> = help.lines().filter(|line| line.starts_with("  prowess run ")).collect();
    assert_eq!(lines.len(), 3);
    for example in lines {
        let mut command = project.within(Command::new("sh"));
        let line = example.trim_start().replacen("prowess", "\"$0\"", 1);
        command.arg("-c").arg(line).arg(support::binary());
        command.env("PROWESS_SKILLS", examples());
        let run = project.sandbox.run(command, b"");
        assert_eq!(run.code, 0, "{example}: {run:?}");
    }
    assert_eq!(fs::read_to_string(project.path("results/fib.txt")).unwrap(), FIBONACCI);
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    repeat_as_a_user("all_of_it_holds_for_an_ordinary_user");
}
