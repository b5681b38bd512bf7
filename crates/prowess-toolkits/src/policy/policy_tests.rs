use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;

const OURS: [&str; 2] = ["PROWESS_EXEC_ALLOWED_COMMANDS", "PROWESS_EXEC_DENIED_COMMANDS"];
const THEIRS: [&str; 2] =
    ["TRPC_AGENT_SKILL_RUN_ALLOWED_COMMANDS", "TRPC_AGENT_SKILL_RUN_DENIED_COMMANDS"];
const WORKSPACE: [&str; 2] =
    ["TRPC_AGENT_WORKSPACE_EXEC_ALLOWED_COMMANDS", "TRPC_AGENT_WORKSPACE_EXEC_DENIED_COMMANDS"];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A policy of these lists, without an environment.
fn policy(allowed: &[&str], denied: &[&str]) -> CommandPolicy {
    CommandPolicy::with_environment(&names(allowed), &names(denied), |_| None).unwrap()
}

fn from_variables(
    variables: &[(&str, &str)],
    allowed: &[&str],
) -> Result<CommandPolicy, InvalidCommandList> {
    let variables: BTreeMap<String, OsString> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let environment = |name: &str| variables.get(name).cloned();
    CommandPolicy::with_environment(&names(allowed), &[], environment)
}

fn words(command: Command) -> Vec<String> {
    match command {
        Command::Installed { words, .. } => words,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_lists_a_shell_runs_everything() {
    let policy = policy(&[], &[]);
    assert!(policy.is_open());
    let command = policy.command("a | b > c").unwrap();
    assert_eq!(command, Command::Shell("a | b > c".to_owned()));
    assert_eq!(policy.command("a\0"), Err(CommandError::Nul));
    assert_eq!(policy.check_env(["PATH", "HOME"]), Ok(()));
}

#[test]
fn an_allow_list_admits_exactly_what_it_names() {
    let policy = policy(&["python3", "scripts/run.sh", "./own"], &[]);
    assert!(!policy.is_open());
    for text in ["python3 a.py", "'python3' a.py", "pyth\\on3", "scripts/run.sh 'a b'", "./own"] {
        assert!(matches!(policy.command(text), Ok(Command::Installed { .. })), "{text}");
    }
    let attacks = [
        "./python3",
        "./evil/python3 a.py",
        "/tmp/python3",
        "python3.11",
        "PYTHON3",
        "./scripts/run.sh",
        "scripts/../run.sh",
        "scripts//run.sh",
        "own",
        "bash -c python3",
        "env python3",
        "A=b python3",
        "",
        "''",
        "run.sh",
    ];
    for text in attacks {
        let refused = policy.command(text).unwrap_err();
        assert_eq!(refused.code(), "command_not_allowed", "{text}");
    }
}

#[test]
fn a_deny_list_denies_by_last_name_and_what_would_run_it() {
    let only = policy(&[], &["rm"]);
    assert_eq!(words(only.command("ls -l ''").unwrap()), ["ls", "-l", ""]);
    for text in ["rm -rf x", "/bin/rm x", "./rm", "RM x", "busybox rm x", "/usr/bin/env rm"] {
        assert_eq!(only.command(text).unwrap_err().code(), "command_not_allowed", "{text}");
    }
    // Whoever starts it is told what the program must not turn out to be.
    let command = only.command("ls").unwrap();
    assert_eq!(command, Command::Installed { words: names(&["ls"]), denied: names(&["rm"]) });
    // A list that names a path denies by its last name as well.
    let by_path = policy(&[], &["/opt/Tool"]);
    assert!(matches!(by_path.command("tool"), Err(CommandError::Denied { .. })));
    // Denying wins, and a host may allow what runs others; but not to run what is denied.
    let both = policy(&["rm", "env", "ls"], &["rm"]);
    assert!(matches!(both.command("rm x"), Err(CommandError::Denied { .. })));
    assert!(both.command("env").is_ok());
    assert!(both.command("env ls -l").is_ok());
    for text in ["env rm x", "env /bin/RM x", "env A=b rm"] {
        assert!(matches!(both.command(text), Err(CommandError::Inner { .. })), "{text}");
    }
    assert!(matches!(both.command("env -S 'rm x'"), Err(CommandError::Launching { .. })));
    assert!(matches!(both.command("xargs rm"), Err(CommandError::Launcher { .. })));
    // With allowed commands alone, what runs others is the host's choice.
    assert!(policy(&["env"], &[]).command("env rm x").is_ok());
}

#[test]
fn code_in_an_argument_may_not_name_what_is_denied() {
    let policy = policy(&[], &["rm"]);
    let attack = "python3 -c 'import os, sys' 'os.system(\"rm x\")'";
    assert!(matches!(policy.command(attack), Err(CommandError::Inner { .. })));
    assert!(policy.command("python3 -c 'print(1)'").is_ok());
    assert!(policy.command("python3 scripts/rm.py rm").is_ok());
}

#[test]
fn lists_come_from_settings_or_from_the_environment() {
    let allowed = |variables: &[(&str, &str)], named: &[&str]| {
        from_variables(variables, named).map(|policy| policy.allowed)
    };
    assert_eq!(allowed(&[], &[]), Ok(None));
    for name in [OURS[0], THEIRS[0], WORKSPACE[0]] {
        let some = Ok(Some(set(&["ffmpeg", "python3"])));
        for value in ["python3,ffmpeg", " python3 , ffmpeg,", "ffmpeg\tpython3", "ffmpeg\npython3"]
        {
            assert_eq!(allowed(&[(name, value)], &[]), some, "{name}={value:?}");
        }
        // What is set in settings goes before, whatever the variable says.
        for value in ["python3", "", "*"] {
            assert_eq!(allowed(&[(name, value)], &["ls"]), Ok(Some(set(&["ls"]))), "{value:?}");
        }
        for value in ["", " ", ",", ", ,\t\n"] {
            let refused = allowed(&[(name, value)], &[]).unwrap_err();
            assert_eq!(refused, InvalidCommandList::Empty { variable: name }, "{value:?}");
        }
        for (value, bad) in [
            ("ls,*", "*"),
            ("python3 -c", "-c"),
            ("'ls'", "'ls'"),
            ("a/../b", "a/../b"),
            ("ls|x", "ls|x"),
        ] {
            let refused = allowed(&[(name, value)], &[]).unwrap_err();
            let expected = InvalidCommandList::Name { list: name, name: bad.to_owned() };
            assert_eq!(refused, expected, "{value:?}");
        }
    }
    let both = |one: &str, other: &str| allowed(&[(OURS[0], one), (THEIRS[0], other)], &[]);
    assert_eq!(both("a,b", "b a"), Ok(Some(set(&["a", "b"]))));
    let variables = [OURS[0], THEIRS[0]];
    assert_eq!(both("a", "b"), Err(InvalidCommandList::Different { variables }));
    assert_eq!(both("a", ""), Err(InvalidCommandList::Empty { variable: THEIRS[0] }));
    for other in [OURS[0], THEIRS[0]] {
        let both = |one: &str, two: &str| allowed(&[(other, one), (WORKSPACE[0], two)], &[]);
        assert_eq!(both("a,b", "b a"), Ok(Some(set(&["a", "b"]))));
        let variables = [other, WORKSPACE[0]];
        assert_eq!(both("a", "a b"), Err(InvalidCommandList::Different { variables }));
        assert_eq!(both("a", ","), Err(InvalidCommandList::Empty { variable: WORKSPACE[0] }));
    }
    let not_text = |name: &str| (name == OURS[0]).then(|| OsString::from_vec(vec![0xff]));
    let refused = CommandPolicy::with_environment(&[], &[], not_text).unwrap_err();
    assert_eq!(refused, InvalidCommandList::NotText { variable: OURS[0] });
}

#[test]
fn denied_names_come_from_the_environment_beside_allowed_ones_from_settings() {
    for name in [OURS[1], THEIRS[1], WORKSPACE[1]] {
        let policy = from_variables(&[(name, "rm,/bin/DD")], &["ls", "dd"]).unwrap();
        assert_eq!(policy.denied, set(&["dd", "rm"]));
        assert_eq!(policy.allowed, Some(set(&["dd", "ls"])));
        assert!(policy.command("ls").is_ok());
        assert!(matches!(policy.command("dd"), Err(CommandError::Denied { .. })));
    }
}

#[test]
fn a_name_in_settings_is_one() {
    for bad in ["", " ", "ls -l", "a//b", "a/", "/", "..", ".", "-x", "a|b", "größe", "./", "././a"]
    {
        let refused = CommandPolicy::with_environment(&names(&[bad]), &[], |_| None).unwrap_err();
        let expected = InvalidCommandList::Name { list: "allowed_commands", name: bad.to_owned() };
        assert_eq!(refused, expected);
        let refused = CommandPolicy::with_environment(&[], &names(&[bad]), |_| None).unwrap_err();
        assert!(matches!(refused, InvalidCommandList::Name { list: "denied_commands", .. }));
    }
    for good in ["ls", "g++", "python3.11", "a/b.sh", "./a", "/usr/bin/x", "a@b", "x_y-z"] {
        assert!(CommandPolicy::with_environment(&names(&[good]), &[], |_| None).is_ok(), "{good}");
    }
}

#[test]
fn only_harmless_variables_can_be_set() {
    let refused = [
        "PATH",
        "HOME",
        "ENV",
        "BASH_ENV",
        "BASH_FUNC_ls",
        "PROMPT_COMMAND",
        "PS4",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "IFS",
        "CDPATH",
        "GLOBIGNORE",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
        "NODE_PATH",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "GIT_PAGER",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "MANPAGER",
        "LESSOPEN",
        "TAR_OPTIONS",
        "RSYNC_RSH",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "MAKEFLAGS",
        "LUA_INIT",
        "npm_config_script_shell",
        "path",
        "A-B",
        "1A",
        "",
        "A=B",
        "XDG_CONFIG_HOME",
        "VIRTUAL_ENV",
        "POSIXLY_CORRECT",
        "TMPDIR",
        "RUSTC_WRAPPER",
        "CC",
        // None of these was on a list of what is refused; there is no end of them.
        "ZIPOPT",
        "COMPILER_PATH",
        "GS_OPTIONS",
        "GS_LIB",
        "RIPGREP_CONFIG_PATH",
        "FZF_DEFAULT_OPTS",
        "FZF_DEFAULT_COMMAND",
        "BAT_PAGER",
        "BAT_CONFIG_PATH",
        "GNUPGHOME",
        "HGRCPATH",
        "HG",
        "TEXMFCNF",
        "TEXINPUTS",
        "shell_escape",
        "openout_any",
        "LANGUAGE",
        "LC_",
        "LC_EVIL",
        "lang",
        "LANG ",
        "A",
        "DEBUG",
        "API_TOKEN",
        "LDFLAGS",
        "http_proxy",
    ];
    for policy in [policy(&["ls"], &[]), policy(&[], &["rm"])] {
        for name in refused {
            let expected = CommandError::Variable { name: name.to_owned() };
            assert_eq!(policy.check_env(["LANG", name]), Err(expected.clone()), "{name}");
            assert_eq!(expected.code(), "invalid_arguments");
        }
        let free = [
            "LANG",
            "LC_ALL",
            "LC_CTYPE",
            "TZ",
            "TERM",
            "COLUMNS",
            "LINES",
            "NO_COLOR",
            "CLICOLOR",
            "FORCE_COLOR",
            "SOURCE_DATE_EPOCH",
        ];
        assert_eq!(policy.check_env(free), Ok(()));
    }
    let said = CommandError::Variable { name: "ZIPOPT".to_owned() }.to_string();
    for part in ["'env.ZIPOPT' could change", "as an argument or in a file", "[exec.env]"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn what_is_refused_is_said_with_its_place_and_the_remedy() {
    let allow = policy(&["cat", "ls", "find", "sed"], &[]);
    let deny = policy(&[], &["rm"]);
    let said = |policy: &CommandPolicy, text: &str| policy.command(text).unwrap_err().to_string();
    let table = [
        (said(&allow, "cat a; id"), "';' at character 6 cannot be used, not even in quotes"),
        (said(&allow, "cat \"$HOME\""), "'$' at character 6 would stand for something else"),
        (said(&allow, "cat *"), "put it into single quotes to mean itself"),
        (said(&allow, "cat 'a"), "nothing follows or closes ' at the end of the command"),
        (said(&allow, "id"), "'id' is not allowed by the host; allowed: cat, find, ls, sed"),
        (said(&allow, "A=b cat"), "'A=' sets no variable; use 'env'"),
        (said(&allow, "c\u{430}t"), "is no plain name or path of a program"),
        (said(&allow, "find . -exec id"), "'-exec' lets 'find' run other programs"),
        (said(&allow, "sed 1e"), "begin its arguments with --sandbox"),
        (said(&deny, "rm x"), "'rm' is denied by the host"),
        (said(&deny, "env rm x"), "'env' runs other programs, and the host denies some"),
    ];
    for (said, part) in table {
        assert!(said.contains(part), "{said}");
    }
    let invalid = CommandError::from(InvalidCommandList::Empty { variable: OURS[0] });
    assert_eq!(invalid.code(), "command_not_allowed");
    let expected = "no command is allowed by the host: PROWESS_EXEC_ALLOWED_COMMANDS is set but \
                    names no command; name some between commas, or unset it";
    assert_eq!(invalid.to_string(), expected);
}

#[cfg(feature = "exec")]
#[test]
fn only_a_user_can_do_something_about_lists() {
    let invalid = CommandError::from(InvalidCommandList::Empty { variable: OURS[0] });
    assert!(invalid.hint().starts_with("Tell the user."));
    let denied = CommandError::Denied { name: "rm".to_owned() };
    assert_eq!(denied.hint(), "Use a command that the host allows.");
}

#[cfg(feature = "exec")]
#[test]
fn a_model_is_told_what_it_may_use() {
    assert_eq!(policy(&[], &[]).told(), None);
    let told = |allowed: &[&str], denied: &[&str]| policy(allowed, denied).told().unwrap();
    let plain = "One program with its arguments; no shell syntax.";
    assert_eq!(told(&["ls", "cat"], &[]), format!("{plain} Allowed: cat, ls."));
    assert_eq!(told(&[], &["RM"]), format!("{plain} Denied: rm."));
    assert_eq!(told(&["ls"], &["rm"]), format!("{plain} Allowed: ls. Denied: rm."));
}
