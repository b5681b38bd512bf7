//! Taking more than may be taken.

use std::time::Duration;

use prowess_workspace::{LimitHit, Tier};

use crate::support::{Ground, is_root, is_running, said, set_mode, theirs, tiers};

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
    // Longer than a look at a busy disk can take.
    let fill = "for i in $(seq 100); do head -c 1000000 /dev/zero > $WORK_DIR/$i; done; sleep 100; echo broken";
    let many = "for i in $(seq 3000); do : > $WORK_DIR/$i; done; sleep 100; echo broken";
    let deep =
        "cd $WORK_DIR; for i in $(seq 300); do mkdir d && cd d; done; sleep 100; echo broken";
    let hidden = "mkdir $WORK_DIR/h; for i in $(seq 100); do head -c 1000000 /dev/zero > $WORK_DIR/h/$i; done; chmod 000 $WORK_DIR/h; sleep 100; echo broken";
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
            assert!(!said(&outcome).contains("broken"), "{tier:?} {line} {outcome:?}");
            assert_eq!(outcome.limits_hit, [LimitHit::Disk], "{tier:?} {line} {outcome:?}");
            // The next one may remove something, and nothing more.
            if line == fill {
                let limit = |run: &mut prowess_workspace::Run<'_>| run.limits.disk_bytes = 20 << 20;
                let more = "head -c 9000000 /dev/zero > $WORK_DIR/more; sleep 100; echo broken";
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
    let opened = format!("python3 -c '{write}  held.append(file)\ntime.sleep(100)'; echo broken");
    let mapped = format!(
        "python3 -c 'import mmap\n{write}  held.append(mmap.mmap(file.fileno(), 0))\n  file.close()\ntime.sleep(100)'; echo broken"
    );
    let hidden = format!(
        "python3 -c 'import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{write}  held.append(file)\ntime.sleep(100)'; echo broken"
    );
    let brief = opened.replace("(100)", "(1)");
    let control = ground.unprotected(&brief);
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
        let outcome = ground.run_with(tier, &brief, limit).await.unwrap();
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
