//! What a run is given, and what is said about it.

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use prowess_workspace::{
    Capability, Command, Enforcement, ExecError, Executor, LocalExecutor, Network, OutputStream,
    Run, Tier, Unsandboxed, Watcher, WorkspacePath,
};
use support::{Ground, TIERS, executor, is_root, said};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

#[tokio::test]
async fn a_run_has_its_variables_and_no_others() {
    let ground = Ground::new();
    std::fs::create_dir(ground.workspace().join("runs/run_1")).unwrap();
    for tier in TIERS {
        let outcome = ground
            .run_with(tier, "env; pwd", |run| {
                run.cwd = path("work");
                run.run_dir = path("runs/run_1");
                run.env.insert("GREETING".to_owned(), "hello".to_owned());
            })
            .await
            .unwrap();
        let root = match tier {
            Tier::T2 => "/workspace".to_owned(),
            _ => ground.workspace().display().to_string(),
        };
        let text = outcome.stdout.text(1 << 20);
        let lines: BTreeSet<&str> = text.lines().collect();
        for line in [
            format!("WORKSPACE_DIR={root}"),
            format!("SKILLS_DIR={root}/skills"),
            format!("WORK_DIR={root}/work"),
            format!("OUTPUT_DIR={root}/out"),
            format!("RUN_DIR={root}/runs/run_1"),
            format!("HOME={root}/work"),
            format!("VIRTUAL_ENV={root}/skills/demo/.venv"),
            format!("{root}/work"),
            "SKILL_NAME=demo".to_owned(),
            "GREETING=hello".to_owned(),
        ] {
            assert!(lines.contains(line.as_str()), "{tier:?} {line}\n{text}");
        }
        let names: BTreeSet<&str> =
            lines.iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let known = [
            "GREETING",
            "HOME",
            "LANG",
            "OUTPUT_DIR",
            "PATH",
            "PWD",
            "RUN_DIR",
            "SHLVL",
            "SKILLS_DIR",
            "SKILL_NAME",
            "TMPDIR",
            "VIRTUAL_ENV",
            "WORKSPACE_DIR",
            "WORK_DIR",
            "_",
        ];
        assert_eq!(names, BTreeSet::from(known), "{tier:?}");
    }
}

#[tokio::test]
async fn a_skill_finds_its_own_programs() {
    let ground = Ground::new();
    for (folder, word) in [("bin", "own"), (".venv/bin", "installed")] {
        let folder = ground.workspace().join("skills/demo").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join(format!("say-{word}"));
        std::fs::write(&program, format!("#!/bin/sh\necho {word}\n")).unwrap();
        support::set_mode(&program, 0o755);
    }
    for tier in TIERS {
        let outcome = ground.run(tier, "say-own; say-installed").await;
        assert_eq!(outcome.stdout.text(100), "own\ninstalled\n", "{tier:?} {}", said(&outcome));
    }
}

#[tokio::test]
async fn a_program_runs_without_a_shell() {
    let ground = Ground::new();
    for tier in TIERS {
        let command =
            Command::Program(["printf", "%s.", "a b", "", "$HOME;"].map(str::to_owned).into());
        let outcome = ground.run_with(tier, "", |run| run.command = command).await.unwrap();
        assert_eq!(outcome.stdout.text(100), "a b..$HOME;.", "{tier:?}");
    }
}

/// Each attack takes place as an ordinary program first, and finds what was put there.
#[tokio::test]
async fn an_installed_program_is_none_that_a_run_or_a_skill_has_put_there() {
    let ground = Ground::new();
    let evil = "#!/bin/sh\necho planted\n";
    let skill = ground.workspace().join("skills/demo");
    for folder in ["work", "skills/demo/.venv/bin", "skills/demo/bin", "skills/demo/scripts"] {
        let folder = ground.workspace().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["planted", "id"] {
            std::fs::write(folder.join(name), evil).unwrap();
            support::set_mode(&folder.join(name), 0o755);
        }
    }
    std::os::unix::fs::symlink("../../work", skill.join("work")).unwrap();
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for tier in TIERS {
        let run = async |command, path: Option<&str>| {
            ground
                .run_with(tier, "", |run| {
                    run.command = command;
                    run.cwd = self::path("skills/demo");
                    run.env.extend(path.map(|path| ("PATH".to_owned(), path.to_owned())));
                })
                .await
        };
        let inside = run(Command::Shell("echo $WORKSPACE_DIR".to_owned()), None).await.unwrap();
        let work = format!("{}/work", inside.stdout.text(1000).trim());
        let absolute = format!("{work}/planted");
        let attacks = [
            ("planted", None, "start_failed"),
            ("id", None, "ok"),
            ("id", Some(work.as_str()), "ok"),
            ("work/planted", None, "command_not_allowed"),
            (".venv/bin/planted", None, "command_not_allowed"),
            (&absolute, None, "command_not_allowed"),
        ];
        for (name, path, expected) in attacks {
            let control = run(Command::Program(words(&[name])), path).await.unwrap();
            assert_eq!(control.stdout.text(100), "planted\n", "the control: {tier:?} {name}");
            let installed = Command::Installed { words: words(&[name]), denied: Vec::new() };
            match run(installed, path).await {
                Ok(outcome) => {
                    assert_eq!(expected, "ok", "{tier:?} {name}");
                    assert!(outcome.stdout.text(100).starts_with("uid="), "{tier:?} {name}");
                }
                Err(error) => assert_eq!(error.code(), expected, "{tier:?} {name}: {error}"),
            }
        }
        let script = Command::Installed { words: words(&["scripts/planted"]), denied: Vec::new() };
        assert_eq!(run(script, None).await.unwrap().stdout.text(100), "planted\n", "{tier:?}");
        let variables = Command::Installed { words: words(&["env"]), denied: Vec::new() };
        let variables = run(variables, Some("/x")).await.unwrap().stdout.text(4000);
        let system = "PATH=/usr/local/bin:/usr/bin:/bin:";
        assert!(variables.lines().any(|it| it.starts_with(system)), "{tier:?} {variables}");
        for part in [".venv", "HOME=/workspace", "PATH=/x"] {
            assert!(!variables.contains(part), "{tier:?} {part}: {variables}");
        }
        let denied = Command::Installed { words: words(&["/usr/bin/id"]), denied: words(&["id"]) };
        assert_eq!(run(denied, None).await.unwrap_err().code(), "command_not_allowed");
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error_that_says_why() {
    let ground = Ground::new();
    for tier in TIERS {
        let missing = Command::Program(vec!["/no/such/program".to_owned()]);
        let error = ground.run_with(tier, "", |run| run.command = missing).await.unwrap_err();
        assert_eq!(error.code(), "start_failed", "{tier:?} {error}");
        assert!(error.to_string().contains("/no/such/program"), "{tier:?} {error}");
        let error =
            ground.run_with(tier, "true", |run| run.cwd = path("work/none")).await.unwrap_err();
        assert!(error.to_string().contains("work/none"), "{tier:?} {error}");
        let error = ground
            .run_with(tier, "", |run| run.command = Command::Program(Vec::new()))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no command"), "{error}");
    }
}

#[tokio::test]
async fn exit_codes_are_those_of_a_shell() {
    let ground = Ground::new();
    for tier in TIERS {
        for (line, code) in
            [("true", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("no-such-command", 127)]
        {
            assert_eq!(ground.run(tier, line).await.exit_code, code, "{tier:?} {line}");
        }
    }
}

#[tokio::test]
async fn output_can_be_watched() {
    let ground = Ground::new();
    let (send, receive) = std::sync::mpsc::channel();
    let send = std::sync::Mutex::new(send);
    let watcher = Watcher::new(move |stream, bytes: &[u8]| {
        if !bytes.is_empty() {
            send.lock().unwrap().send((stream, bytes.to_vec())).unwrap();
        }
    });
    ground
        .run_with(Tier::T1, "echo out; echo err >&2", |run| run.watcher = Some(watcher))
        .await
        .unwrap();
    let seen: Vec<_> = receive.into_iter().collect();
    assert!(seen.contains(&(OutputStream::Stdout, b"out\n".to_vec())), "{seen:?}");
    assert!(seen.contains(&(OutputStream::Stderr, b"err\n".to_vec())), "{seen:?}");
}

#[tokio::test]
async fn the_record_says_what_is_enforced() {
    for tier in TIERS {
        let isolation = executor(tier).isolation().await.unwrap();
        assert_eq!(isolation.tier, tier);
        assert_eq!(isolation.protections.len(), Capability::ALL.len());
        for capability in Capability::ALL {
            // Landlock does not hide sizes and times; groups of processes are root's to make.
            let is_partial = match capability {
                Capability::Metadata => tier == Tier::T1,
                Capability::Memory => !is_root(),
                Capability::Pids => tier == Tier::T1 && !is_root(),
                _ => false,
            };
            let expected = match is_partial {
                true => Enforcement::Partial,
                false => Enforcement::Enforced,
            };
            assert_eq!(isolation.of(capability), expected, "{tier:?} {capability:?}");
        }
    }
}

#[tokio::test]
async fn without_a_sandbox_nothing_runs_unless_that_is_allowed() {
    let ground = Ground::new();
    let executor = executor(Tier::T0);
    let workspace = ground.workspace();
    let line = || Command::Shell("echo ran > work/ran; echo ran".to_owned());
    let error = executor.run(Run::new(&workspace, line())).await.unwrap_err();
    assert_eq!(error.code(), "no_sandbox", "{error}");
    assert!(!workspace.join("work/ran").exists());
    let mut run = Run::new(&workspace, line());
    run.unsandboxed = Unsandboxed::Allow;
    let outcome = executor.run(run).await.unwrap();
    assert_eq!(outcome.stdout.text(100), "ran\n");
    assert_eq!(outcome.isolation.tier, Tier::T0);
    for capability in
        [Capability::FsRead, Capability::FsWrite, Capability::Net, Capability::UnixSockets]
    {
        assert_eq!(outcome.isolation.of(capability), Enforcement::None, "{capability:?}");
    }
    // Even so, nothing outlives it, and it has an environment of its own.
    assert_eq!(outcome.isolation.of(Capability::Kill), Enforcement::Enforced);
}

#[tokio::test]
async fn what_is_required_and_missing_fails_before_anything_starts() {
    let ground = Ground::new();
    let line = "echo ran > $WORK_DIR/ran";
    let require = |capability| move |run: &mut Run<'_>| run.require = BTreeSet::from([capability]);
    let error = ground.run_with(Tier::T1, line, require(Capability::Metadata)).await.unwrap_err();
    assert!(
        matches!(&error, ExecError::NotEnforced { missing } if missing == &[Capability::Metadata])
    );
    assert!(error.to_string().starts_with("metadata cannot be enforced here"), "{error}");
    let granted = |run: &mut Run<'_>| {
        run.network = Network::Host;
        run.require = BTreeSet::from([Capability::Net]);
    };
    assert!(ground.run_with(Tier::T2, line, granted).await.is_err());
    assert!(!ground.workspace().join("work/ran").exists());
    // The control.
    ground.run_with(Tier::T2, line, require(Capability::Metadata)).await.unwrap();
    assert!(ground.workspace().join("work/ran").exists());
}

fn script(at: &Path, text: &str) {
    std::fs::write(at, text).unwrap();
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_namespace_that_does_not_hold_is_not_used() {
    let ground = Ground::new();
    let bwrap = ground.at("bwrap");
    let builder = || LocalExecutor::builder().supervisor(support::supervisor()).bwrap(&bwrap);
    // It lets the folders for temporary files in, where the canary has its secret.
    let temp = std::env::temp_dir();
    let leaky = format!(
        "#!/bin/sh\nn=$2; shift 3\nexec bwrap --args $n --bind {0} {0} -- \"$@\"\n",
        temp.display()
    );
    for (text, cause) in [
        (leaky.as_str(), "it does not enforce fs_read"),
        ("#!/bin/sh\necho not today >&2; exit 1\n", "not today"),
        ("#!/bin/sh\nexit 0\n", "could not be set up"),
    ] {
        script(&bwrap, text);
        let report = builder().build().check().await.unwrap();
        assert_eq!(report.isolation.tier, Tier::T1, "{text}\n{report:?}");
        let first = &report.tried[0];
        assert_eq!(first.tier, Tier::T2);
        assert!(first.cause.as_ref().unwrap().contains(cause), "{cause}\n{first:?}");
    }
    let report = builder().bwrap("/no/such/bwrap").build().check().await.unwrap();
    assert_eq!(report.isolation.tier, Tier::T1);
}

#[tokio::test]
async fn a_supervisor_that_is_missing_or_another_program_is_named() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    for (program, said) in [("/no/such/supervisor", "/no/such/supervisor"), ("/bin/true", "")] {
        let executor = LocalExecutor::builder().supervisor(program).build();
        let error =
            executor.run(Run::new(&workspace, Command::Shell("true".into()))).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    // Nobody told it where one is.
    let executor = LocalExecutor::builder().build();
    if std::env::var_os("PROWESS_SUPERVISOR").is_none() {
        let error = executor.check().await.unwrap_err();
        assert_eq!(error.code(), "supervisor_missing", "{error}");
    }
}

#[tokio::test]
async fn limits_hold_at_their_edges() {
    let ground = Ground::new();
    for tier in TIERS {
        let write = |bytes: u64| format!("head -c {bytes} /dev/zero > $WORK_DIR/edge");
        for (bytes, is_allowed) in [(4096, true), (4097, false)] {
            let outcome = ground
                .run_with(tier, &write(bytes), |run| run.limits.file_bytes = 4096)
                .await
                .unwrap();
            assert_eq!(outcome.exit_code == 0, is_allowed, "{tier:?} {bytes}");
        }
        let open = "python3 -c 'import os; [os.open(\"/dev/null\", 0) for _ in range(int(os.environ[\"N\"]))]'";
        for (count, is_allowed) in [(20, true), (64, false)] {
            let outcome = ground
                .run_with(tier, open, |run| {
                    run.limits.open_files = 64;
                    run.env.insert("N".to_owned(), count.to_string());
                })
                .await
                .unwrap();
            assert_eq!(outcome.exit_code == 0, is_allowed, "{tier:?} {count}");
        }
        let outcome = ground
            .run_with(tier, "printf 12345678; printf 90", |run| run.limits.output_bytes = 8)
            .await
            .unwrap();
        assert_eq!(
            (outcome.stdout.head.as_slice(), outcome.stdout.tail.as_slice()),
            (&b"1234"[..], &b"7890"[..])
        );
        assert_eq!(outcome.stdout.total_bytes, 10);
        let outcome = ground
            .run_with(tier, "printf 12345678", |run| run.limits.output_bytes = 8)
            .await
            .unwrap();
        assert_eq!(outcome.stdout.head, b"12345678");
    }
}

#[tokio::test]
async fn extra_folders_can_be_read_but_not_written() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    let outside = ground.at("outside");
    for tier in TIERS {
        let executor = LocalExecutor::builder()
            .supervisor(support::supervisor())
            .best_tier(tier)
            .readable(&outside)
            .build();
        let line = format!("cat {0}/secret; echo x > {0}/secret && echo broken", outside.display());
        let outcome = executor.run(Run::new(&workspace, Command::Shell(line))).await.unwrap();
        assert_eq!(outcome.stdout.text(100), "hunter2", "{tier:?} {}", said(&outcome));
    }
}

#[tokio::test]
async fn sixty_four_runs_at_once_do_not_disturb_each_other() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    for tier in TIERS {
        let executor = executor(tier);
        executor.isolation().await.unwrap();
        let runs = (0..64).map(|at| {
            let line = format!("echo {at} > $WORK_DIR/{at}; cat $WORK_DIR/{at}");
            executor.run(Run::new(&workspace, Command::Shell(line)))
        });
        let mut tasks = Vec::new();
        for run in runs {
            tasks.push(run);
        }
        for (at, outcome) in futures_util::future::join_all(tasks).await.into_iter().enumerate() {
            assert_eq!(outcome.unwrap().stdout.text(100), format!("{at}\n"), "{tier:?}");
        }
    }
}

#[tokio::test]
async fn a_workspace_that_others_cannot_enter_is_named() {
    if !is_root() {
        return;
    }
    let ground = Ground::new();
    support::set_mode(ground.folder.path(), 0o700);
    // Namespaces are made by root, who can.
    assert_eq!(ground.run(Tier::T2, "echo hello > $WORK_DIR/x").await.exit_code, 0);
    let error = ground.run_with(Tier::T1, "true", |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("cannot enter") && error.contains("/var/lib/prowess"), "{error}");
}

#[tokio::test]
async fn time_is_up_when_it_is_up() {
    let ground = Ground::new();
    let outcome = ground
        .run_with(Tier::T2, "sleep 60", |run| run.limits.wall = Duration::from_millis(200))
        .await
        .unwrap();
    assert!(outcome.timed_out && outcome.duration >= Duration::from_millis(200));
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    support::repeat_as_a_user(&["--skip", "all_of_this_holds_for_an_ordinary_user"]);
}
