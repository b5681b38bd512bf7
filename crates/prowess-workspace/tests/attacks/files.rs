//! Files elsewhere: reading, writing, changing, watching.

use prowess_workspace::Tier;

use super::{attack, attack_on};
use crate::support::{Ground, said, set_mode, theirs, tiers};

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
