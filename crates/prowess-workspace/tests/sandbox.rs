//! What a run is given, and what is said about it.

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use prowess_workspace::{
    Capability, Command, Enforcement, OutputStream, Run, Tier, Watcher, WorkspacePath,
};
use support::{Ground, executor, is_root, said, tiers};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

#[tokio::test]
async fn a_run_has_its_variables_and_no_others() {
    let ground = Ground::new();
    std::fs::create_dir(ground.workspace().join("runs/run_1")).unwrap();
    for tier in tiers() {
        let outcome = ground
            .run_with(tier, "env; pwd", |run| {
                run.cwd = path("work");
                run.run_dir = path("runs/run_1");
                run.env.insert("GREETING".to_owned(), "hello".to_owned());
            })
            .await
            .unwrap();
        let root = match tier {
            Tier::T2 | Tier::T3 => "/workspace".to_owned(),
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
    for tier in tiers() {
        let outcome = ground.run(tier, "say-own; say-installed").await;
        assert_eq!(outcome.stdout.text(100), "own\ninstalled\n", "{tier:?} {}", said(&outcome));
    }
}

#[tokio::test]
async fn a_program_runs_without_a_shell() {
    let ground = Ground::new();
    for tier in tiers() {
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
    for tier in tiers() {
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
    for tier in tiers() {
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
    for tier in tiers() {
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
    for tier in tiers() {
        let (send, receive) = std::sync::mpsc::channel();
        let send = std::sync::Mutex::new(send);
        let watcher = Watcher::new(move |stream, bytes: &[u8]| {
            if !bytes.is_empty() {
                send.lock().unwrap().send((stream, bytes.to_vec())).unwrap();
            }
        });
        ground
            .run_with(tier, "echo out; echo err >&2", |run| run.watcher = Some(watcher))
            .await
            .unwrap();
        let seen: Vec<_> = receive.into_iter().collect();
        assert!(seen.contains(&(OutputStream::Stdout, b"out\n".to_vec())), "{tier:?} {seen:?}");
        assert!(seen.contains(&(OutputStream::Stderr, b"err\n".to_vec())), "{tier:?} {seen:?}");
    }
}

#[tokio::test]
async fn the_record_says_what_is_enforced() {
    for tier in tiers() {
        let isolation = executor(tier).isolation().await.unwrap();
        assert_eq!(isolation.tier, tier);
        assert_eq!(isolation.protections.len(), Capability::ALL.len());
        for capability in Capability::ALL {
            // Landlock does not hide sizes and times; groups of processes are root's to make.
            let is_partial = match capability {
                Capability::Metadata => tier == Tier::T1,
                Capability::Memory => tier != Tier::T3 && !is_root(),
                Capability::Pids => tier == Tier::T1 && !is_root(),
                _ => false,
            };
            let expected = match is_partial {
                true => Enforcement::Partial,
                false => Enforcement::Enforced,
            };
            assert_eq!(isolation.of(capability), expected, "{tier:?} {capability:?} {isolation:?}");
        }
    }
}

#[tokio::test]
async fn limits_hold_at_their_edges() {
    let ground = Ground::new();
    for tier in tiers() {
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
async fn many_runs_at_once_do_not_disturb_each_other() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    for tier in tiers() {
        let executor = executor(tier);
        executor.isolation().await.unwrap();
        // A container for each of them takes the engine a while.
        let count = if tier == Tier::T3 { 6 } else { 64 };
        let runs = (0..count).map(|at| {
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
async fn time_is_up_when_it_is_up() {
    let ground = Ground::new();
    for tier in tiers() {
        let limit = |run: &mut Run<'_>| run.limits.wall = Duration::from_millis(200);
        let outcome = ground.run_with(tier, "sleep 60", limit).await.unwrap();
        assert!(outcome.timed_out && outcome.duration >= Duration::from_millis(200), "{tier:?}");
    }
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    support::repeat_as_a_user(&["--skip", "all_of_this_holds_for_an_ordinary_user"]);
}
