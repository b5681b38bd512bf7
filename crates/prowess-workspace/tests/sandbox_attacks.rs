//! Attacks from inside of the sandbox. Each one first succeeds without it.

mod support;

use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Stdio;
use std::time::Duration;

use prowess_workspace::{Command, LimitHit, Network, Run, Tier};
use support::{
    Ground, eventually, is_root, is_running, is_running_as, said, set_mode, theirs, tiers,
};

/// Runs a line without a sandbox, where it must print `broken`, and in every sandbox, where it must
/// not, though it must get to its end.
async fn attack(ground: &Ground, line: &str) {
    attack_on(ground, line, &tiers()).await;
}

async fn attack_on(ground: &Ground, line: &str, tiers: &[Tier]) {
    let line = format!("{line}\necho end");
    let control = ground.unprotected(&line);
    let text = String::from_utf8_lossy(&control.stdout);
    let errors = String::from_utf8_lossy(&control.stderr);
    assert!(text.contains("broken"), "the control must succeed: {line}\n{text}{errors}");
    for tier in tiers {
        let outcome = ground.run(*tier, &line).await;
        let text = said(&outcome);
        assert!(!text.contains("broken"), "{tier:?}: {line}\n{text}");
        assert!(text.contains("end"), "{tier:?}: {line}\n{text}");
    }
}

#[tokio::test]
async fn files_elsewhere_cannot_be_read() {
    let ground = Ground::new();
    let secret = ground.at("outside/secret");
    let folder = ground.at("outside");
    attack(&ground, &format!("grep -q hunter2 {} && echo broken", secret.display())).await;
    attack(&ground, &format!("ls {} | grep -q secret && echo broken", folder.display())).await;
    // By a link that the command makes itself, and by the root of its own process.
    let link = format!(
        "ln -sf {} $WORK_DIR/link; grep -q hunter2 $WORK_DIR/link && echo broken",
        secret.display()
    );
    attack(&ground, &link).await;
    let proc = format!(
        "grep -q hunter2 /proc/self/root{0} /proc/self/cwd/../outside/secret && echo broken",
        secret.display()
    );
    attack(&ground, &proc).await;
}

#[tokio::test]
async fn homes_and_the_files_of_other_sessions_cannot_be_read() {
    let ground = Ground::new();
    std::fs::create_dir_all(ground.at("other/work")).unwrap();
    for name in ["other", "other/work"] {
        set_mode(&ground.at(name), 0o755);
    }
    ground.put("other/work/notes", "hunter2");
    let path = ground.at("other/work/notes");
    attack(&ground, &format!("grep -q hunter2 {} && echo broken", path.display())).await;
    for tier in tiers() {
        for place in ["/root", "/home", "/var", "/etc/shadow", "/boot", "/sys/kernel"] {
            let outcome =
                ground.run(tier, &format!("ls {place}/ && cat {place} && echo broken")).await;
            assert!(!said(&outcome).contains("broken"), "{tier:?} {place}");
        }
    }
}

#[tokio::test]
async fn nothing_elsewhere_can_be_written() {
    let ground = Ground::new();
    let secret = ground.at("outside/secret");
    let folder = ground.at("outside");
    for line in [
        format!("echo x > {} && echo broken", secret.display()),
        format!("touch {}/new && echo broken", folder.display()),
        format!("mkdir {}/folder && echo broken", folder.display()),
        format!("ln {} $WORK_DIR/hard && echo broken", secret.display()),
        format!(
            "echo x > $WORK_DIR/moved; mv $WORK_DIR/moved {}/moved && echo broken",
            folder.display()
        ),
        format!("mkfifo {}/pipe && echo broken", folder.display()),
        format!("rm {} && echo broken", secret.display()),
    ] {
        attack(&ground, &line).await;
        ground.put("outside/secret", "hunter2");
        for name in ["new", "moved", "pipe"] {
            let _ = std::fs::remove_file(folder.join(name));
        }
        let _ = std::fs::remove_dir(folder.join("folder"));
    }
}

#[tokio::test]
async fn skills_and_metadata_cannot_be_written() {
    let ground = Ground::new();
    for tier in tiers() {
        for line in [
            "echo x > $SKILLS_DIR/demo/SKILL.md",
            "echo x > $SKILLS_DIR/demo/new",
            "rm -f $SKILLS_DIR/demo/SKILL.md",
            "mv $SKILLS_DIR/demo $SKILLS_DIR/other",
            "echo x > $WORKSPACE_DIR/metadata.json",
            "cat $WORKSPACE_DIR/metadata.json",
            "echo x > $WORKSPACE_DIR/new",
        ] {
            let outcome = ground.run(tier, &format!("{line} && echo broken")).await;
            assert!(!said(&outcome).contains("broken"), "{tier:?} {line}");
        }
        // The control: these are theirs.
        for line in
            ["echo x > $WORK_DIR/x", "echo x > $OUTPUT_DIR/x", "echo x > $SKILLS_DIR/demo/.venv/x"]
        {
            assert_eq!(ground.run(tier, line).await.exit_code, 0, "{tier:?} {line}");
        }
    }
    assert_eq!(
        std::fs::read_to_string(ground.workspace().join("skills/demo/SKILL.md")).unwrap(),
        "text"
    );
}

/// A `.venv` that belongs to the skill was hashed with it.
#[tokio::test]
async fn the_own_venv_of_a_skill_cannot_be_written() {
    let ground = Ground::new();
    let venv = ground.workspace().join("skills/demo/.venv");
    let line = "cd $SKILLS_DIR/demo/.venv && chmod -R u+w . && echo changed > tool && echo broken";
    let set = |mode| {
        set_mode(&venv, 0o700);
        std::fs::write(venv.join("tool"), "text").unwrap();
        theirs(&venv.join("tool"));
        set_mode(&venv, mode);
    };
    for tier in tiers() {
        set(0o555);
        assert!(!said(&ground.run(tier, line).await).contains("broken"), "{tier:?}");
        assert_eq!(std::fs::read_to_string(venv.join("tool")).unwrap(), "text", "{tier:?}");
        set(0o700);
        let control = "cd $SKILLS_DIR/demo/.venv && echo changed > tool && echo done";
        assert!(said(&ground.run(tier, control).await).contains("done"), "{tier:?}");
    }
}

/// Trap 4.
#[tokio::test]
async fn modes_owners_and_times_elsewhere_cannot_be_changed() {
    let ground = Ground::new();
    let secret = ground.at("outside/secret");
    for line in [
        format!("chmod 777 {} && echo broken", secret.display()),
        format!("touch -d 2001-01-01 {} && echo broken", secret.display()),
        format!(
            "python3 -c 'import os; os.setxattr(\"{}\", \"user.a\", b\"b\")' && echo broken",
            secret.display()
        ),
        format!("chgrp $(id -g) {} && echo broken", secret.display()),
    ] {
        if line.contains("setxattr") && !has_xattrs(&secret) {
            continue;
        }
        attack(&ground, &line).await;
    }
    // What can be seen is what the record says: sizes, on tier 1.
    let line = format!("stat -c %s {} && echo broken", secret.display());
    for tier in tiers() {
        match tier {
            Tier::T1 => assert!(said(&ground.run(tier, &line).await).contains("broken")),
            tier => attack_on(&ground, &line, &[tier]).await,
        }
    }
}

/// Landlock does not judge who is told of changes, nor what is noted beside a file.
#[tokio::test]
async fn files_elsewhere_cannot_be_watched() {
    let ground = Ground::new();
    let outside = ground.at("outside").display().to_string();
    let watch = format!(
        "python3 -c 'import ctypes\n\
         libc = ctypes.CDLL(None)\n\
         told = libc.inotify_add_watch(libc.inotify_init1(0), b\"{outside}\", 0xfff)\n\
         print(\"broken\" if told >= 0 else \"\")'"
    );
    attack(&ground, &watch).await;
    let secret = ground.at("outside/secret");
    if has_xattrs(&secret) {
        rustix::fs::setxattr(&secret, "user.secret", b"broken", rustix::fs::XattrFlags::empty())
            .unwrap();
        let path = secret.display();
        let read = format!(
            "python3 -c 'import os; print(os.getxattr(\"{path}\", \"user.secret\"), os.listxattr(\"{path}\"))' 2>/dev/null"
        );
        attack(&ground, &read).await;
    }
}

/// Not every file system has them.
fn has_xattrs(path: &std::path::Path) -> bool {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, "user.test", b"x", flags).is_ok()
}

/// Trap 1: what `bwrap --clearenv` leaves in its first process, and what our own process has.
#[tokio::test]
async fn the_environment_cannot_be_seen() {
    let ground = Ground::new();
    let naive = std::process::Command::new("bwrap")
        .args(["--clearenv", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc"])
        .args(["cat", "/proc/1/environ"])
        .env("PASSWORD", "hunter2")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&naive.stdout).contains("hunter2"), "the control must succeed");
    // Cargo sets this variable for tests.
    let line = "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f; done 2>/dev/null | grep -q ^CARGO_MANIFEST_DIR && echo broken";
    attack(&ground, line).await;
    attack(&ground, "env | grep -q ^CARGO_MANIFEST_DIR && echo broken").await;
    // Nor where things are on this machine.
    let place = ground.folder.path().display().to_string();
    let line =
        "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done; cat /proc/self/mountinfo";
    for tier in tiers().into_iter().filter(|tier| *tier >= Tier::T2) {
        let text = ground.run(tier, line).await.stdout.text(1 << 20);
        let is_told = |line: &str| !line.contains("/dev/") && line.contains(&place);
        assert!(!text.lines().any(is_told), "{tier:?} {text}");
    }
}

/// Trap 2.
#[tokio::test]
async fn open_descriptors_are_not_passed_on() {
    let ground = Ground::new();
    let file = std::fs::File::open(ground.at("outside/secret")).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let line = format!("grep -q hunter2 <&{} && echo broken", file.as_raw_fd());
    attack(&ground, &line).await;
}

#[tokio::test]
async fn the_network_cannot_be_reached() {
    let ground = Ground::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    attack(&ground, &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo broken")).await;
    let six = TcpListener::bind("[::1]:0");
    if let Ok(six) = six {
        let port = six.local_addr().unwrap().port();
        attack(&ground, &format!("exec 3<>/dev/tcp/::1/{port} && echo broken")).await;
    }
    // Whether a datagram went out is seen where it arrives.
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let line = format!("echo hunter2 > /dev/udp/127.0.0.1/{}", udp.local_addr().unwrap().port());
    ground.unprotected(&line);
    assert!(udp.recv(&mut [0; 16]).is_ok(), "the control must succeed");
    for tier in tiers() {
        ground.run(tier, &line).await;
        assert!(udp.recv(&mut [0; 16]).is_err(), "{tier:?}");
    }
}

#[tokio::test]
async fn odd_sockets_cannot_be_made() {
    let ground = Ground::new();
    let make = |family: i32, kind: i32| {
        format!(
            "python3 -c 'import socket; socket.socket({family}, {kind})' 2>/dev/null && echo broken"
        )
    };
    // Netlink, vsock, alg; packet sockets need rights that nobody has.
    attack(&ground, &make(libc::AF_NETLINK, libc::SOCK_RAW)).await;
    for (family, kind) in [
        (libc::AF_VSOCK, libc::SOCK_STREAM),
        (libc::AF_ALG, libc::SOCK_SEQPACKET),
        (libc::AF_PACKET, libc::SOCK_RAW),
        (libc::AF_BLUETOOTH, libc::SOCK_RAW),
        (libc::AF_TIPC, libc::SOCK_STREAM),
    ] {
        for tier in tiers() {
            let outcome = ground.run(tier, &make(family, kind)).await;
            assert!(!said(&outcome).contains("broken"), "{tier:?} {family}");
        }
    }
    // What programs need among themselves stays.
    for tier in tiers() {
        let outcome = ground.run(tier, "python3 -c 'import socket; socket.socketpair()'").await;
        assert_eq!(outcome.exit_code, 0, "{tier:?} {}", said(&outcome));
    }
}

/// Trap 3.
#[tokio::test]
async fn sockets_of_other_programs_cannot_be_reached() {
    let ground = Ground::new();
    let path = ground.at("outside/engine.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    set_mode(&path, 0o777);
    let connect = |address: &str| {
        format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect({address})' 2>/dev/null && echo broken"
        )
    };
    attack(&ground, &connect(&format!("\"{}\"", path.display()))).await;
    let name = format!("prowess-test-{}", std::process::id());
    let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    attack(&ground, &connect(&format!("b\"\\0{name}\""))).await;
    // Not with the network of the machine either.
    for tier in tiers() {
        let line = connect(&format!("b\"\\0{name}\""));
        let outcome =
            ground.run_with(tier, &line, |run| run.network = Network::Host).await.unwrap();
        assert!(!said(&outcome).contains("broken"), "{tier:?}");
    }
}

#[tokio::test]
async fn a_granted_network_is_there_and_recorded() {
    let ground = Ground::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let line =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached", tcp.local_addr().unwrap().port());
    for tier in tiers() {
        let outcome =
            ground.run_with(tier, &line, |run| run.network = Network::Host).await.unwrap();
        assert!(said(&outcome).contains("reached"), "{tier:?} {}", said(&outcome));
        let record = serde_json::to_value(&outcome.isolation).unwrap();
        assert_eq!(record["net"]["state"], "granted");
    }
}

#[tokio::test]
async fn what_was_granted_to_one_run_is_not_granted_to_the_next() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let line =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached", tcp.local_addr().unwrap().port());
    for tier in tiers() {
        // Nobody else takes the supervisor that waits for a run like the last one.
        let executor = support::new_executor(tier);
        for network in [Network::Host, Network::None, Network::None, Network::Host] {
            let mut run = Run::new(&workspace, Command::Shell(line.clone()));
            run.network = network;
            let outcome = executor.run(run).await.unwrap();
            let is_reached = said(&outcome).contains("reached");
            assert_eq!(is_reached, network == Network::Host, "{tier:?} {}", said(&outcome));
        }
    }
}

/// Traps 7 and 8: other ways to the kernel.
#[tokio::test]
async fn other_numbers_of_system_calls_are_no_way_around() {
    let ground = Ground::new();
    let source = r#"
        #include <stdio.h>
        #include <unistd.h>
        #include <sys/syscall.h>
        int main(int argc, char **argv) {
            long result;
            switch (argv[1][0]) {
            case '8': /* socket(AF_NETLINK, SOCK_RAW, 0) of 32-bit programs */
                __asm__ volatile("int $0x80" : "=a"(result) : "a"(359), "b"(16), "c"(3), "d"(0) : "memory");
                break;
            case 'x': result = syscall(SYS_socket | 0x40000000, 16, 3, 0); break;
            default: result = syscall(SYS_socket, 16, 3, 0);
            }
            if (result >= 0) puts("broken");
            return 0;
        }
    "#;
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    std::fs::write(ground.at("calls.c"), source).unwrap();
    let program = ground.workspace().join("work/calls");
    let compiled =
        std::process::Command::new("cc").arg(ground.at("calls.c")).arg("-o").arg(&program).status();
    assert!(compiled.unwrap().success());
    set_mode(&program, 0o755);
    attack(&ground, "$WORK_DIR/calls plain").await;
    attack(&ground, "$WORK_DIR/calls 80 || true").await;
    // Most kernels do not know these numbers at all.
    for tier in tiers() {
        assert!(!said(&ground.run(tier, "$WORK_DIR/calls x32").await).contains("broken"));
    }
}

#[tokio::test]
async fn namespaces_cannot_be_made() {
    let ground = Ground::new();
    attack(&ground, "unshare -Ur true && echo broken").await;
    let clone = "python3 -c 'import ctypes; c = ctypes.CDLL(None); exit(c.unshare(0x10000000) != 0)' && echo broken";
    attack(&ground, clone).await;
    for tier in tiers() {
        for line in [
            "mount -t tmpfs none $WORK_DIR",
            "chroot $WORK_DIR",
            "nsenter -t 1 -a true",
            "unshare -m true",
            "unshare -n true",
        ] {
            let outcome = ground.run(tier, &format!("{line} && echo broken")).await;
            assert!(!said(&outcome).contains("broken"), "{tier:?} {line}");
        }
    }
}

#[tokio::test]
async fn no_rights_can_be_had() {
    let ground = Ground::new();
    for tier in tiers() {
        let line = "python3 - <<'E'\nimport os\nprint(os.getuid(), os.geteuid())\nfor name in ('setuid', 'setgid'):\n    try:\n        getattr(os, name)(0)\n        print('broken')\n    except PermissionError:\n        pass\nE\ncat /proc/self/status";
        let text = said(&ground.run(tier, line).await);
        assert!(!text.contains("broken") && !text.contains("0 0\n"), "{tier:?} {text}");
        if tier >= Tier::T2 {
            for line in [
                "CapEff:\t0000000000000000",
                "CapBnd:\t0000000000000000",
                "NoNewPrivs:\t1",
                "Seccomp:\t2",
            ] {
                let is_bounded = is_root() || !line.starts_with("CapBnd");
                assert!(!is_bounded || text.contains(line), "{line}\n{text}");
            }
        }
    }
}

#[tokio::test]
async fn other_processes_cannot_be_touched() {
    let ground = Ground::new();
    let mut victim = ground.unprotected_command("exec sleep 60");
    let mut victim = victim.stdout(Stdio::null()).spawn().unwrap();
    let pid = victim.id();
    eventually(|| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "sleep\n")
    });
    attack(&ground, &format!("kill -0 {pid} && echo broken")).await;
    attack(&ground, &format!("head -c 1 /proc/{pid}/environ | grep -q . && echo broken")).await;
    let trace = format!(
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); exit(c.ptrace(16, {pid}, 0, 0) != 0)' && echo broken"
    );
    attack(&ground, &trace).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    // Nor whoever watches over it.
    for tier in tiers() {
        let outcome = ground.run(tier, "kill -9 $PPID; kill -9 1; echo still here").await;
        assert!(said(&outcome).contains("still here"), "{tier:?} {}", said(&outcome));
        assert_eq!(outcome.exit_code, 0, "{tier:?}");
    }
}

#[tokio::test]
async fn other_processes_are_not_run_differently() {
    let ground = Ground::new();
    let mut victim = ground.unprotected_command("exec sleep 60");
    let mut victim = victim.stdout(Stdio::null()).spawn().unwrap();
    let pid = victim.id();
    eventually(|| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "sleep\n")
    });
    attack(&ground, &format!("prlimit --pid {pid} --nofile=100:100 && echo broken")).await;
    attack(&ground, &format!("renice -n 19 -p {pid} && echo broken")).await;
    attack(&ground, &format!("taskset -p 1 {pid} && echo broken")).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    // Its own it can: a shell sets limits.
    for tier in tiers() {
        assert_eq!(
            ground.run(tier, "ulimit -n 100 && nice -n 5 true").await.exit_code,
            0,
            "{tier:?}"
        );
    }
}

#[tokio::test]
async fn shared_memory_of_other_programs_cannot_be_read() {
    let ground = Ground::new();
    let python = "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\n";
    let make = format!(
        "python3 -c '{python}i = c.shmget(0, 4096, 0o1600)\np = c.shmat(i, None, 0)\nctypes.memmove(p, b\"hunter2\", 7)\nprint(i)'"
    );
    let made = ground.unprotected(&make);
    let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(!id.is_empty(), "{made:?}");
    let read = format!(
        "python3 -c '{python}p = c.shmat({id}, None, 0o10000)\nprint(\"broken\" if p and p < 2 ** 63 and ctypes.string_at(p, 7) == b\"hunter2\" else \"\")'"
    );
    attack(&ground, &read).await;
    let removed = ground.unprotected(&format!("ipcrm -m {id}"));
    assert!(removed.status.success(), "{removed:?}");
}

#[tokio::test]
async fn no_program_is_left_that_runs_as_its_owner() {
    let ground = Ground::new();
    for line in [
        "cp /bin/true $WORK_DIR/own; chmod 4755 $WORK_DIR/own && echo broken",
        "cp /bin/true $WORK_DIR/own; chmod g+s $WORK_DIR/own && echo broken",
        "python3 -c 'import os; os.fchmod(os.open(os.environ[\"WORK_DIR\"] + \"/own\", os.O_RDONLY | os.O_CREAT), 0o4755)' && echo broken",
    ] {
        attack(&ground, line).await;
    }
    // Other modes are nobody else's business.
    for tier in tiers().into_iter().filter(|tier| *tier >= Tier::T2) {
        let line = "touch $WORK_DIR/x && chmod 755 $WORK_DIR/x && $WORK_DIR/x";
        let outcome = ground.run(tier, line).await;
        assert_eq!(outcome.exit_code, 0, "{}", said(&outcome));
    }
}

/// Trap 6.
#[tokio::test]
async fn only_so_many_processes_can_be_started() {
    let ground = Ground::new();
    let line = "python3 - <<'E'\nimport os, time\nn = 0\ntry:\n    for _ in range(60):\n        if os.fork() == 0:\n            time.sleep(5)\n            os._exit(0)\n        n += 1\nexcept OSError:\n    pass\nprint('forks', n)\nos.killpg(0, 9) if n == 60 else os._exit(0)\nE";
    let control = ground.unprotected_command(&format!("setsid {line}")).output().unwrap();
    assert!(String::from_utf8_lossy(&control.stdout).contains("forks 60"), "{control:?}");
    for tier in tiers() {
        let outcome = ground.run_with(tier, line, |run| run.limits.processes = 20).await.unwrap();
        let text = said(&outcome);
        let count = text.lines().find_map(|line| line.strip_prefix("forks ")).unwrap_or("0");
        let count: u32 = count.parse().unwrap();
        assert!(count <= 20, "{tier:?} {text}");
        if is_root() {
            assert!(outcome.limits_hit.contains(&LimitHit::Processes), "{tier:?} {text}");
        }
    }
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_time() {
    let ground = Ground::new();
    let marker = format!("bomb-{}", std::process::id());
    let line =
        format!("bomb() {{ bash -c ': {marker}; sleep 30' & bomb | bomb & }}; bomb; sleep 30");
    for tier in tiers() {
        let outcome = ground
            .run_with(tier, &line, |run| {
                run.limits.processes = 30;
                run.limits.wall = Duration::from_secs(1);
            })
            .await
            .unwrap();
        assert!(outcome.timed_out, "{tier:?} {}", said(&outcome));
        assert!(!is_running(&marker), "{tier:?}");
    }
}

/// Trap 10: the memory of all processes together, where that can be limited, and of each elsewhere.
#[tokio::test]
async fn only_so_much_memory_can_be_taken() {
    let ground = Ground::new();
    let line = "python3 -c 'b = bytearray(300 << 20); b[::4096] = b\"x\" * len(b[::4096]); print(\"broken\")'";
    let control = ground.unprotected(line);
    assert!(String::from_utf8_lossy(&control.stdout).contains("broken"), "{control:?}");
    let several = "for i in 1 2 3 4; do python3 -c 'import time; b = bytearray(60 << 20); b[::4096] = b\"x\" * len(b[::4096]); time.sleep(2); print(\"broken\")' & done; wait";
    for tier in tiers() {
        let limit = |run: &mut prowess_workspace::Run<'_>| run.limits.memory_bytes = 128 << 20;
        let outcome = ground.run_with(tier, line, limit).await.unwrap();
        assert!(!said(&outcome).contains("broken"), "{tier:?}");
        assert_ne!(outcome.exit_code, 0);
        let record = serde_json::to_value(&outcome.isolation).unwrap();
        if record["memory"]["state"] == "enforced" {
            assert!(outcome.limits_hit.contains(&LimitHit::Memory), "{tier:?} {outcome:?}");
            let outcome = ground.run_with(tier, several, limit).await.unwrap();
            assert!(outcome.stdout.text(1 << 20).matches("broken").count() < 4, "{tier:?}");
        }
    }
}

#[tokio::test]
async fn only_so_much_disk_can_be_filled() {
    let ground = Ground::new();
    let fill = "for i in $(seq 100); do head -c 1000000 /dev/zero > $WORK_DIR/$i; done; sleep 5; echo broken";
    let many = "for i in $(seq 3000); do : > $WORK_DIR/$i; done; sleep 5; echo broken";
    let deep = "cd $WORK_DIR; for i in $(seq 300); do mkdir d && cd d; done; sleep 5; echo broken";
    let hidden = "mkdir $WORK_DIR/h; for i in $(seq 100); do head -c 1000000 /dev/zero > $WORK_DIR/h/$i; done; chmod 000 $WORK_DIR/h; sleep 5; echo broken";
    for tier in tiers() {
        for line in [fill, many, deep, hidden] {
            if tier == Tier::T1 && line == hidden {
                continue;
            }
            let outcome = ground
                .run_with(tier, line, |run| {
                    run.limits.disk_bytes = 20 << 20;
                    run.limits.disk_files = 1000;
                })
                .await
                .unwrap();
            assert!(!said(&outcome).contains("broken"), "{tier:?} {line}");
            assert_eq!(outcome.limits_hit, [LimitHit::Disk], "{tier:?} {line}");
            // The next one may remove something, and nothing more.
            if line == fill {
                let limit = |run: &mut prowess_workspace::Run<'_>| run.limits.disk_bytes = 20 << 20;
                let more = "head -c 9000000 /dev/zero > $WORK_DIR/more; sleep 5; echo broken";
                let outcome = ground.run_with(tier, more, limit).await.unwrap();
                assert!(!said(&outcome).contains("broken"), "{tier:?}");
                assert_eq!(outcome.limits_hit, [LimitHit::Disk], "{tier:?}");
                let outcome = ground.run_with(tier, "rm $WORK_DIR/*; sleep 0.3; echo room", limit);
                assert!(said(&outcome.await.unwrap()).contains("room"), "{tier:?}");
            }
            set_mode(&ground.workspace().join("work"), 0o700);
            let _ = std::process::Command::new("chmod")
                .arg("-R")
                .arg("u+rwx")
                .arg(ground.workspace().join("work"))
                .status();
            std::fs::remove_dir_all(ground.workspace().join("work")).unwrap();
            std::fs::create_dir(ground.workspace().join("work")).unwrap();
            theirs(&ground.workspace().join("work"));
        }
        // One file, and what is kept in memory.
        let one =
            "head -c 3000000 /dev/zero > $WORK_DIR/one && echo broken; stat -c %s $WORK_DIR/one";
        let outcome =
            ground.run_with(tier, one, |run| run.limits.file_bytes = 1 << 20).await.unwrap();
        assert!(
            !said(&outcome).contains("broken") && said(&outcome).contains("1048576"),
            "{tier:?} {}",
            said(&outcome)
        );
        let memory = "head -c 30000000 /dev/zero > /dev/shm/x && echo broken; head -c 30000000 /dev/zero > /tmp/x && echo broken; echo x > /x && echo broken; echo x > /dev/x && echo broken";
        let outcome =
            ground.run_with(tier, memory, |run| run.limits.disk_bytes = 20 << 20).await.unwrap();
        assert!(!said(&outcome).contains("broken"), "{tier:?} {}", said(&outcome));
    }
}

/// What has no name any more is on the disk as long as somebody has it.
#[tokio::test]
async fn files_without_a_name_fill_the_disk_too() {
    let ground = Ground::new();
    let write = "import os, time\n\
         held = []\n\
         for i in range(12):\n  \
         file = open(os.environ[\"WORK_DIR\"] + \"/x\", \"w+b\")\n  \
         os.unlink(file.name)\n  \
         file.write(b\"x\" * 3000000)\n  \
         file.flush()\n";
    let opened = format!("python3 -c '{write}  held.append(file)\ntime.sleep(5)'; echo broken");
    let mapped = format!(
        "python3 -c 'import mmap\n{write}  held.append(mmap.mmap(file.fileno(), 0))\n  file.close()\ntime.sleep(5)'; echo broken"
    );
    let hidden = format!(
        "python3 -c 'import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{write}  held.append(file)\ntime.sleep(5)'; echo broken"
    );
    let control = ground.unprotected(&opened);
    assert!(String::from_utf8_lossy(&control.stdout).contains("broken"), "{control:?}");
    for tier in tiers() {
        for line in [&opened, &mapped, &hidden] {
            let limit = |run: &mut prowess_workspace::Run<'_>| run.limits.disk_bytes = 20 << 20;
            let outcome = ground.run_with(tier, line, limit).await.unwrap();
            assert!(!said(&outcome).contains("broken"), "{tier:?} {line} {}", said(&outcome));
            assert_eq!(outcome.limits_hit, [LimitHit::Disk], "{tier:?} {line}");
        }
        // What fits may be without a name.
        let limit = |run: &mut prowess_workspace::Run<'_>| run.limits.disk_bytes = 60 << 20;
        let outcome = ground.run_with(tier, &opened.replace("(5)", "(1)"), limit).await.unwrap();
        assert!(said(&outcome).contains("broken"), "{tier:?} {}", said(&outcome));
    }
}

#[tokio::test]
async fn endless_output_is_drained_and_counted() {
    let ground = Ground::new();
    for tier in tiers() {
        let line = "head -c 50000000 /dev/zero | tr '\\0' a; echo the end; yes >&2 | head -c 10";
        let outcome = ground
            .run_with(tier, line, |run| run.limits.wall = Duration::from_secs(20))
            .await
            .unwrap();
        assert!(outcome.stdout.total_bytes >= 50_000_008, "{tier:?}");
        assert_eq!(outcome.stdout.head.len() + outcome.stdout.tail.len(), 1 << 20);
        assert!(outcome.stdout.tail.ends_with(b"the end\n"));
        assert!(outcome.stdout.text(16 << 10).len() < 17 << 10);
    }
}

/// Traps 5 and 10: whoever ignores the signal, whoever left, whoever sleeps in a pipeline.
#[tokio::test]
async fn everything_ends_with_the_time_of_a_run() {
    let ground = Ground::new();
    let marker = format!("daemon-{}", std::process::id());
    // The control: a group of processes is killed, and one survives that left it.
    let line = format!("(setsid bash -c ': {marker}-control; sleep 20; true' &) ; sleep 20");
    let mut control = ground.unprotected_command(&line);
    std::os::unix::process::CommandExt::process_group(&mut control, 0);
    let mut control = control.spawn().unwrap();
    assert!(eventually(|| is_running_as(&format!("bash\0-c\0: {marker}-control;"))));
    let group = rustix::process::Pid::from_child(&control);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    control.wait().unwrap();
    assert!(is_running(&format!("{marker}-control")), "the control must survive");
    for (name, line) in [
        ("sleeps", "sleep 100".to_owned()),
        ("ignores", "trap '' TERM; while :; do sleep 1; done".to_owned()),
        ("pipeline", "sleep 100 | cat".to_owned()),
        (
            "daemon",
            format!(
                "(setsid bash -c ': {marker}; trap \"\" TERM HUP; sleep 100; true' &); sleep 100"
            ),
        ),
        ("stops", "kill -STOP $$".to_owned()),
        ("stopped", format!("bash -c ': {marker}; kill -STOP $$' & sleep 100")),
    ] {
        for tier in tiers() {
            let limit =
                |run: &mut prowess_workspace::Run<'_>| run.limits.wall = Duration::from_millis(300);
            let outcome = ground.run_with(tier, &line, limit).await.unwrap();
            assert!(
                outcome.timed_out && outcome.limits_hit == [LimitHit::Wall],
                "{tier:?} {name} {outcome:?}"
            );
            assert!(!is_running(&format!(": {marker};")), "{tier:?} {name}");
        }
    }
    // A run that ends by itself leaves nobody either.
    for tier in tiers() {
        let line = format!("(setsid bash -c ': {marker}; sleep 100; true' &); sleep 0.1; exit 7");
        assert_eq!(ground.run(tier, &line).await.exit_code, 7);
        assert!(!is_running(&format!(": {marker};")), "{tier:?}");
    }
}

#[tokio::test]
async fn a_signal_is_given_before_the_end() {
    let ground = Ground::new();
    for tier in tiers() {
        let line = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
        let outcome = ground
            .run_with(tier, line, |run| {
                run.limits.wall = Duration::from_millis(500);
                run.limits.grace = Duration::from_secs(5);
            })
            .await
            .unwrap();
        assert_eq!(
            (outcome.exit_code, outcome.timed_out),
            (5, true),
            "{tier:?} {}",
            said(&outcome)
        );
        assert!(said(&outcome).contains("asked"));
    }
}

#[tokio::test]
async fn processor_time_has_its_own_limit() {
    let ground = Ground::new();
    for tier in tiers() {
        let outcome = ground
            .run_with(tier, "exec python3 -c 'while True: pass'", |run| run.limits.cpu_seconds = 1)
            .await
            .unwrap();
        assert_eq!(outcome.limits_hit, [LimitHit::Cpu], "{tier:?} {outcome:?}");
        assert!(!outcome.timed_out);
    }
}

#[tokio::test]
async fn whoever_stops_waiting_ends_the_run() {
    let ground = Ground::new();
    let marker = format!("dropped-{}", std::process::id());
    for tier in tiers() {
        let line = format!("(setsid bash -c ': {marker}; sleep 100; true' &); sleep 100");
        let run = ground.run(tier, &line);
        let started = async {
            while !is_running_as(&format!("bash\0-c\0: {marker};")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            outcome = run => panic!("it ended: {outcome:?}"),
            () = started => {}
        }
        assert!(eventually(|| !is_running(&format!(": {marker};"))), "{tier:?}");
    }
}

/// A supervisor that is killed takes the command with it, whoever the command runs as.
#[tokio::test]
async fn a_command_ends_with_its_supervisor() {
    let ground = Ground::new();
    for tier in tiers() {
        let words = format!("sleep\0{}.86{}", tier as u8 + 50, std::process::id());
        let line = format!("exec {}", words.replace('\0', " "));
        let end = move || {
            assert!(eventually(|| is_running(&words)));
            // In a container, it is a copy of the first process.
            let is_meant = |words: &str| {
                ["run", "init"]
                    .iter()
                    .any(|it| words.contains(&format!("__prowess-supervisor\0{it}")))
            };
            let supervisor = ancestors(&words).find(|(_, words)| is_meant(words)).unwrap().0;
            let killed = std::process::Command::new("kill").args(["-9", &supervisor]).status();
            assert!(killed.unwrap().success());
            eventually(|| !is_running(&words))
        };
        let ended = tokio::task::spawn_blocking(end);
        let (run, ended) = tokio::join!(ground.run_with(tier, &line, |_| {}), ended);
        assert!(ended.unwrap(), "{tier:?}: it goes on");
        assert_eq!(run.unwrap_err().code(), "run_lost", "{tier:?}");
    }
}

/// The processes above one that has these words, each with its own words.
fn ancestors(words: &str) -> impl Iterator<Item = (String, String)> {
    let of = |pid: &str| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid.to_owned(), String::from_utf8_lossy(&words).into_owned())
    };
    let names = std::fs::read_dir("/proc").unwrap().flatten();
    let mut all = names.map(|it| of(&it.file_name().to_string_lossy()));
    let first = all.find(|(_, found)| found.starts_with(words));
    std::iter::successors(first, move |(pid, _)| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(of(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?)).filter(|it| it.0 != "0")
    })
}

#[tokio::test]
async fn the_terminal_cannot_be_typed_into() {
    let ground = Ground::new();
    for tier in tiers() {
        let line = "python3 -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' && echo broken; cat /dev/tty && echo broken; echo end";
        let outcome = ground.run(tier, line).await;
        assert!(!said(&outcome).contains("broken") && said(&outcome).contains("end"), "{tier:?}");
    }
}

#[tokio::test]
async fn what_is_read_comes_from_the_order() {
    let ground = Ground::new();
    for tier in tiers() {
        let outcome =
            ground.run_with(tier, "cat", |run| run.stdin = b"given".to_vec().into()).await.unwrap();
        assert_eq!(outcome.stdout.text(100), "given");
        assert_eq!(ground.run(tier, "cat").await.stdout.text(100), "");
    }
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    support::repeat_as_a_user(&["--skip", "all_of_this_holds_for_an_ordinary_user"]);
}
