//! The kernel and other processes.

use std::process::Stdio;

use prowess_workspace::Tier;

use super::attack;
use crate::support::{Ground, eventually, is_root, said, set_mode, tiers};

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

/// A process outside that those inside must leave alone.
fn victim(ground: &Ground) -> std::process::Child {
    let mut command = ground.unprotected_command("exec sleep 60");
    let victim = command.stdout(Stdio::null()).spawn().unwrap();
    let name = format!("/proc/{}/comm", victim.id());
    assert!(eventually(|| std::fs::read_to_string(&name).is_ok_and(|it| it == "sleep\n")));
    victim
}

#[tokio::test]
async fn other_processes_cannot_be_touched() {
    let ground = Ground::new();
    let mut victim = victim(&ground);
    let pid = victim.id();
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
    let mut victim = victim(&ground);
    let pid = victim.id();
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
async fn the_terminal_cannot_be_typed_into() {
    let ground = Ground::new();
    for tier in tiers() {
        let line = "python3 -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' && echo broken; cat /dev/tty && echo broken; echo end";
        let outcome = ground.run(tier, line).await;
        assert!(!said(&outcome).contains("broken") && said(&outcome).contains("end"), "{tier:?}");
    }
}
