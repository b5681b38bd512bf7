//! Runs that somebody talks to: input that comes later, a terminal, a way to stop them.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use prowess_workspace::{
    ExecError, InputError, InputWriter, LimitHit, LiveInput, Run, RunOutcome, Stdin, TerminalSize,
    Tier, Watcher,
};
use support::{Ground, eventually, executor, is_root, is_running, said, tiers};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What a run has written until now.
#[derive(Clone, Default)]
struct Screen(Arc<(Mutex<Vec<u8>>, Condvar)>);

impl Screen {
    fn watcher(&self) -> Watcher {
        let this = self.clone();
        Watcher::new(move |_, bytes| {
            this.0.0.lock().unwrap().extend_from_slice(bytes);
            this.0.1.notify_all();
        })
    }

    /// Waits until it shows this text.
    async fn shows(&self, text: &str) {
        let (this, text) = (self.clone(), text.to_owned());
        let wait = move || {
            let shows = |bytes: &mut Vec<u8>| !String::from_utf8_lossy(bytes).contains(&text);
            let guard = this.0.0.lock().unwrap();
            let (guard, waited) =
                this.0.1.wait_timeout_while(guard, Duration::from_secs(30), shows).unwrap();
            assert!(!waited.timed_out(), "no {text:?} in {:?}", String::from_utf8_lossy(&guard));
        };
        tokio::task::spawn_blocking(wait).await.unwrap();
    }
}

/// A run that somebody talks to.
struct Talk {
    screen: Screen,
    writer: Option<InputWriter>,
    stop: CancellationToken,
    run: JoinHandle<Result<RunOutcome, ExecError>>,
}

impl Talk {
    fn start(ground: &Ground, tier: Tier, line: &str, change: impl FnOnce(&mut Run<'_>)) -> Self {
        let (writer, input) = LiveInput::channel(64 << 10);
        let (screen, stop) = (Screen::default(), CancellationToken::new());
        let workspace = ground.workspace();
        let mut run = Run::new(&workspace, prowess_workspace::Command::Shell(line.to_owned()));
        run.stdin = Stdin::Live(input);
        run.watcher = Some(screen.watcher());
        run.stop = Some(stop.clone());
        run.limits.grace = Duration::from_secs(2);
        run.limits.wall = Duration::from_secs(60);
        change(&mut run);
        let Run { command, stdin, terminal, limits, watcher, stop: token, .. } = run;
        let root = workspace.clone();
        let run = tokio::spawn(async move {
            let mut run = Run::new(&root, command);
            (run.stdin, run.terminal, run.limits) = (stdin, terminal, limits);
            (run.watcher, run.stop) = (watcher, token);
            executor(tier).run(run).await
        });
        Self { screen, writer: Some(writer), stop, run }
    }

    fn terminal(ground: &Ground, tier: Tier, line: &str) -> Self {
        Self::start(ground, tier, line, |run| run.terminal = Some(TerminalSize::default()))
    }

    fn write(&self, text: &str) {
        self.writer.as_ref().unwrap().write(text.as_bytes()).unwrap();
    }

    async fn end(self) -> RunOutcome {
        self.run.await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn input_comes_while_the_command_runs_and_ends_with_its_writer() {
    let ground = Ground::new();
    for tier in tiers() {
        let mut talk =
            Talk::start(&ground, tier, "while read -r it; do echo [$it]; done; echo over", |_| {});
        talk.write("one\n");
        talk.screen.shows("[one]\n").await;
        talk.write("two\nth");
        talk.screen.shows("[two]\n").await;
        talk.write("ree\n");
        talk.screen.shows("[three]\n").await;
        drop(talk.writer.take());
        let outcome = talk.end().await;
        let text = outcome.stdout.text(1000);
        assert_eq!(
            (outcome.exit_code, text.as_str()),
            (0, "[one]\n[two]\n[three]\nover\n"),
            "{tier:?}"
        );
    }
}

#[tokio::test]
async fn a_pipe_is_no_terminal_and_a_terminal_is_one_of_its_size() {
    let ground = Ground::new();
    let line = "python3 -c 'import os, sys; print([os.isatty(fd) for fd in (0, 1, 2)]); \
                print(os.get_terminal_size(0) if os.isatty(0) else None)'; tty; env | grep TERM";
    for tier in tiers() {
        let mut talk = Talk::start(&ground, tier, line, |_| {});
        drop(talk.writer.take());
        let outcome = talk.end().await;
        let text = outcome.stdout.text(1000);
        assert_eq!(text, "[False, False, False]\nNone\nnot a tty\n", "{tier:?} {}", said(&outcome));
        let size = TerminalSize { rows: 33, columns: 77 };
        let talk = Talk::start(&ground, tier, line, |run| run.terminal = Some(size));
        let outcome = talk.end().await;
        let text = outcome.stdout.text(1000);
        let expected = "[True, True, True]\r\nos.terminal_size(columns=77, lines=33)\r\n";
        assert!(text.starts_with(expected) && text.ends_with("TERM=dumb\r\n"), "{tier:?} {text:?}");
        assert_eq!(outcome.stderr.total_bytes, 0, "{tier:?}");
    }
}

#[tokio::test]
async fn a_terminal_controls_its_command() {
    let ground = Ground::new();
    // The signal is held back until it is waited for: none comes between a look and a read.
    let program = "import signal\nasked = {signal.SIGINT}\n\
                   signal.pthread_sigmask(signal.SIG_BLOCK, asked)\nprint('ready')\n\
                   print([input()])\nsignal.sigwait(asked)\nprint('interrupted')\n\
                   exit(3 if input() == 'done' else 4)";
    let line = format!("exec python3 -uc \"{program}\" < /dev/tty");
    for tier in tiers() {
        let talk = Talk::terminal(&ground, tier, &line);
        talk.screen.shows("ready").await;
        talk.write("first\n");
        talk.screen.shows("['first']").await;
        // Ctrl-C.
        talk.write("\u{3}");
        talk.screen.shows("interrupted").await;
        talk.write("done\n");
        let outcome = talk.end().await;
        assert_eq!(outcome.exit_code, 3, "{tier:?} {}", said(&outcome));
    }
}

#[tokio::test]
async fn an_interpreter_talks_through_a_terminal_and_through_pipes() {
    let ground = Ground::new();
    for tier in tiers() {
        let talk = Talk::terminal(&ground, tier, "python3 -q");
        talk.screen.shows(">>> ").await;
        talk.write("6 * 7\n");
        talk.screen.shows("42").await;
        talk.write("exit(5)\n");
        assert_eq!(talk.end().await.exit_code, 5, "{tier:?}");

        let mut talk = Talk::start(&ground, tier, "python3 -iqu", |_| {});
        talk.write("6 * 7\n");
        talk.screen.shows("42").await;
        drop(talk.writer.take());
        assert_eq!(talk.end().await.exit_code, 0, "{tier:?}");

        // A shell with jobs of its own.
        let talk = Talk::terminal(&ground, tier, "bash --norc -i");
        talk.write("sleep 600 &\n");
        talk.screen.shows("[1]").await;
        talk.write("jobs; exit 4\n");
        let outcome = talk.end().await;
        let text = outcome.stdout.text(4000);
        assert!(!text.contains("no job control"), "{tier:?} {text}");
        assert_eq!(outcome.exit_code, 4, "{tier:?} {text}");
    }
}

#[tokio::test]
async fn what_was_written_first_is_read_first_and_a_terminal_ends_where_its_input_does() {
    let ground = Ground::new();
    for tier in tiers() {
        for text in ["", "one\n", "one\ntwo"] {
            let bytes = Stdin::Bytes(text.as_bytes().to_vec());
            let talk = Talk::start(&ground, tier, "stty -echo; cat; echo over", |run| {
                run.terminal = Some(TerminalSize::default());
                run.stdin = bytes;
            });
            let outcome = talk.end().await;
            let said = outcome.stdout.text(1000).replace("\r\n", "\n");
            assert!(said.ends_with(&format!("{text}over\n")), "{tier:?} {text:?} {said:?}");
        }
    }
}

#[tokio::test]
async fn a_command_that_never_reads_stalls_nothing() {
    let ground = Ground::new();
    for tier in tiers() {
        for terminal in [None, Some(TerminalSize::default())] {
            let line = "trap 'echo asked; exit 9' TERM; echo begun; while :; do sleep 0.05; done";
            let talk = Talk::start(&ground, tier, line, |run| run.terminal = terminal);
            talk.screen.shows("begun").await;
            // What fits waits for it; what does not is refused as a whole.
            let lines = "x\n".repeat(16 << 10);
            let full = eventually(|| {
                let written = talk.writer.as_ref().unwrap().write(lines.as_bytes());
                matches!(written, Err(InputError::Full { most: 65536, .. }))
            });
            assert!(full, "{tier:?}");
            talk.stop.cancel();
            talk.screen.shows("asked").await;
            let outcome = talk.end().await;
            assert_eq!((outcome.exit_code, outcome.timed_out), (9, false), "{tier:?}");
        }
        let talk = Talk::start(&ground, tier, "sleep 60", |run| {
            run.limits.wall = Duration::from_millis(200);
        });
        let _ = talk.writer.as_ref().unwrap().write(&[b'x'; 64 << 10]);
        let outcome = talk.end().await;
        assert!(outcome.timed_out && outcome.limits_hit.contains(&LimitHit::Wall), "{tier:?}");
    }
}

#[tokio::test]
async fn whoever_writes_is_told_when_nobody_reads() {
    let ground = Ground::new();
    for tier in tiers() {
        let talk = Talk::start(&ground, tier, "exec 0</dev/null; echo closed; sleep 60", |_| {});
        talk.screen.shows("closed").await;
        let writer = talk.writer.as_ref().unwrap();
        assert!(eventually(|| writer.write(b"x") == Err(InputError::Ended)), "{tier:?}");
        talk.stop.cancel();
        let Talk { writer, run, .. } = talk;
        run.await.unwrap().unwrap();
        assert_eq!(writer.unwrap().write(b"x"), Err(InputError::Ended), "{tier:?}");
    }
}

#[tokio::test]
async fn stopping_is_asked_for_first_and_then_made_sure_of() {
    let ground = Ground::new();
    for tier in tiers() {
        for terminal in [None, Some(TerminalSize::default())] {
            let gentle = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.02; done";
            let talk = Talk::start(&ground, tier, gentle, |run| run.terminal = terminal);
            talk.screen.shows("up").await;
            talk.stop.cancel();
            let outcome = talk.end().await;
            assert_eq!(outcome.exit_code, 7, "{tier:?} {}", said(&outcome));
            assert!(said(&outcome).contains("bye") && !outcome.timed_out, "{tier:?}");

            let name = format!(
                "96{}1.{}",
                u8::from(terminal.is_some()) + 2 * u8::from(tier == Tier::T1),
                std::process::id()
            );
            let deaf = format!(
                "trap '' TERM HUP; (setsid sleep {name} &) ; setsid -f sleep {name}; echo up; \
                 while :; do sleep {name}; done"
            );
            let talk = Talk::start(&ground, tier, &deaf, |run| {
                run.terminal = terminal;
                run.limits.grace = Duration::from_millis(300);
            });
            talk.screen.shows("up").await;
            assert!(eventually(|| is_running(&format!("sleep\0{name}"))), "{tier:?}");
            let asked = Instant::now();
            talk.stop.cancel();
            let outcome = talk.end().await;
            assert!(asked.elapsed() >= Duration::from_millis(300), "{tier:?}");
            assert_eq!((outcome.exit_code, outcome.timed_out), (137, false), "{tier:?}");
            // Nothing is left, not even what has left the session.
            assert!(!is_running(&format!("sleep\0{name}")), "{tier:?}");
        }
    }
}

#[tokio::test]
async fn a_run_can_be_stopped_that_has_no_live_input() {
    let ground = Ground::new();
    for tier in tiers() {
        let talk = Talk::start(&ground, tier, "cat; echo up; sleep 60", |run| {
            run.stdin = b"given\n".to_vec().into();
        });
        talk.screen.shows("given\nup").await;
        talk.stop.cancel();
        assert_eq!(talk.end().await.exit_code, 143, "{tier:?}");
        // Before it begins, too.
        let talk = Talk::start(&ground, tier, "sleep 60", |run| {
            run.stop.as_ref().unwrap().cancel();
        });
        assert!(!talk.end().await.timed_out, "{tier:?}");
    }
}

#[tokio::test]
async fn whoever_stops_waiting_ends_the_run() {
    let ground = Ground::new();
    for tier in tiers() {
        let name = if tier == Tier::T1 { "9711" } else { "9712" };
        let talk = Talk::terminal(&ground, tier, &format!("echo up; (setsid sleep {name}) & wait"));
        talk.screen.shows("up").await;
        assert!(eventually(|| is_running(&format!("sleep\0{name}"))), "{tier:?}");
        talk.run.abort();
        assert!(talk.run.await.unwrap_err().is_cancelled());
        assert!(eventually(|| !is_running(&format!("sleep\0{name}"))), "{tier:?}");
    }
}

#[tokio::test]
async fn a_command_has_its_streams_and_no_other_descriptor() {
    let ground = Ground::new();
    // Each number is tried: to list a folder would open one more.
    let program = "import os\nfor fd in range(256):\n  try: os.fstat(fd); print(f'fd={fd}')\n  \
                   except OSError: pass\nprint('over')";
    let line = format!("python3 -c \"{program}\"");
    for tier in tiers() {
        for terminal in [None, Some(TerminalSize::default())] {
            let mut talk = Talk::start(&ground, tier, &line, |run| run.terminal = terminal);
            talk.screen.shows("over").await;
            drop(talk.writer.take());
            let text = talk.end().await.stdout.text(1000).replace('\r', "");
            let found: Vec<&str> = text.lines().filter(|it| it.starts_with("fd=")).collect();
            assert_eq!(found, ["fd=0", "fd=1", "fd=2"], "{tier:?} {text}");
        }
    }
    // A program that passes one on shows up: the test can fail.
    let control = ground.unprotected(&format!("exec 7</dev/null; {line}"));
    assert!(String::from_utf8_lossy(&control.stdout).contains("fd=7"));
}

#[tokio::test]
async fn endless_output_is_bounded_and_can_be_stopped() {
    let ground = Ground::new();
    for tier in tiers() {
        for terminal in [None, Some(TerminalSize::default())] {
            let seen = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&seen);
            let talk = Talk::start(&ground, tier, "yes", |run| {
                run.terminal = terminal;
                let count = move |_, bytes: &[u8]| {
                    counted.fetch_add(bytes.len(), Ordering::Relaxed);
                };
                run.watcher = Some(Watcher::new(count));
                run.limits.output_bytes = 1000;
            });
            while seen.load(Ordering::Relaxed) <= 1000 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            talk.stop.cancel();
            let outcome = talk.end().await;
            assert!(outcome.stdout.total_bytes > 1000, "{tier:?}");
            assert!(outcome.stdout.head.len() + outcome.stdout.tail.len() <= 1000, "{tier:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_so_in_a_terminal_too() {
    let ground = Ground::new();
    for tier in tiers() {
        let talk = Talk::start(&ground, tier, "", |run| {
            run.command = prowess_workspace::Command::Program(vec!["/no/such/program".to_owned()]);
            run.terminal = Some(TerminalSize::default());
        });
        let error = talk.run.await.unwrap().unwrap_err();
        assert_eq!(error.code(), "start_failed", "{tier:?}");
        assert!(error.to_string().contains("/no/such/program"), "{tier:?} {error}");
    }
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    if is_root() {
        support::repeat_as_a_user(&["--skip", "all_of_this_holds_for_an_ordinary_user"]);
    }
}

/// A terminal that somebody else has, and who reads it.
struct Foreign {
    ours: std::fs::File,
    theirs: std::fs::File,
    path: String,
}

impl Foreign {
    /// One that whom commands run as may open, as it may another one of its own user.
    fn new() -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        support::theirs(path.as_ref());
        Self { ours: ours.into(), theirs, path }
    }

    /// Whether something was written to it.
    fn shows(&mut self, text: &str) -> bool {
        use std::io::Read;

        let flags = rustix::fs::OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&self.ours, flags).unwrap();
        let mut buffer = [0; 1000];
        let count = self.ours.read(&mut buffer).unwrap_or(0);
        String::from_utf8_lossy(&buffer[..count]).contains(text)
    }
}

#[tokio::test]
async fn the_terminal_of_somebody_else_is_out_of_reach() {
    let ground = Ground::new();
    let mut foreign = Foreign::new();
    let line = format!(
        "echo intruder > {0}; stty -F {0} -a > /dev/null 2>&1 && echo reached; echo tried",
        foreign.path
    );
    let control = ground.unprotected(&line);
    assert!(String::from_utf8_lossy(&control.stdout).contains("reached"), "{control:?}");
    assert!(eventually(|| foreign.shows("intruder")));
    for tier in tiers() {
        for terminal in [None, Some(TerminalSize::default())] {
            let talk = Talk::start(&ground, tier, &line, |run| run.terminal = terminal);
            talk.screen.shows("tried").await;
            let outcome = talk.end().await;
            assert!(!said(&outcome).contains("reached"), "{tier:?} {}", said(&outcome));
            assert!(!foreign.shows("intruder"), "{tier:?}");
        }
    }
    drop(foreign.theirs);
}

#[tokio::test]
async fn nobody_types_into_a_terminal_but_whoever_holds_it() {
    let ground = Ground::new();
    let program = "import fcntl, termios\nfor it in b'x': \
                   fcntl.ioctl(0, termios.TIOCSTI, bytes([it]))\nprint('typed')\n";
    ground.put("workspace/work/attack.py", program);
    let attack = "python3 work/attack.py; echo tried";
    for tier in tiers() {
        let talk = Talk::terminal(&ground, tier, attack);
        talk.screen.shows("tried").await;
        let text = talk.end().await.stdout.text(4000);
        assert!(!text.contains("typed") && text.contains("PermissionError"), "{tier:?} {text}");
    }
    // Where nothing forbids it, it goes: unless this kernel forbids it to all.
    let allows = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if allows.is_ok_and(|it| it.trim() == "0") {
        println!("SKIPPED the control: this kernel lets nobody type");
        return;
    }
    let control = ground.unprotected(&format!("script -qec '{attack}' /dev/null"));
    let text = String::from_utf8_lossy(&control.stdout).into_owned();
    assert!(text.contains("typed"), "{text}");
}
