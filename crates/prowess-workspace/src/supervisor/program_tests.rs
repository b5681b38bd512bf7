use std::os::unix::fs::symlink;

use super::*;

/// A small machine: a system, a workspace, and a skill in it.
struct Machine {
    folder: tempfile::TempDir,
    place: Place,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["bin", "sbin", "opt", "open", "ws/work", "ws/skills/x/scripts"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["ws/skills/x/.venv/bin", "ws/skills/x/bin", "ws/skills/y"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let place = Place {
            folders: vec![at("bin"), at("sbin")],
            open: vec![at("open")],
            workspace: at("ws"),
            skill: Some(at("ws/skills/x")),
            writable: vec![at("ws/work"), at("ws/skills/x/.venv")],
        };
        let machine = Self { place, folder };
        for name in ["bin/rm", "bin/ls", "bin/busybox", "sbin/only", "sbin/ls", "opt/tool"] {
            machine.put(name, "\x7fELF");
        }
        symlink("../../work", machine.at("ws/skills/x/work")).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The file that is found, below the machine; or why none is.
    fn find(&self, name: &str, denied: &[&str]) -> Result<String, String> {
        let name = name.replace("MACHINE", &self.folder.path().display().to_string());
        let denied: Vec<String> = denied.iter().map(|it| (*it).to_owned()).collect();
        let found = self.place.find(&name, &denied);
        let below = |path: PathBuf| {
            let path = path.strip_prefix(self.folder.path()).unwrap().to_owned();
            path.display().to_string()
        };
        found.map(below).map_err(|why| {
            let kind = format!("{why:?}");
            kind.split([' ', '{']).next().unwrap().to_owned()
        })
    }
}

fn ok(path: &str) -> Result<String, String> {
    Ok(path.to_owned())
}

fn no(kind: &str) -> Result<String, String> {
    Err(kind.to_owned())
}

#[test]
fn a_bare_name_is_a_program_of_the_system_and_nothing_else() {
    let machine = Machine::new();
    // What shadows it in every place that a run or a skill can write.
    for name in ["ws/work/ls", "ws/skills/x/.venv/bin/ls", "ws/skills/x/bin/ls", "ws/skills/x/own"]
    {
        machine.put(name, "#!/bin/sh");
    }
    assert_eq!(machine.find("ls", &[]), ok("bin/ls"));
    assert_eq!(machine.find("only", &[]), ok("sbin/only"));
    for name in ["own", "cd", "", ".", ".."] {
        assert_eq!(machine.find(name, &[]), no("NotInSystem"), "{name}");
    }
}

#[test]
fn a_bare_name_that_cannot_be_executed_is_looked_for_further_on() {
    let machine = Machine::new();
    std::fs::write(machine.at("bin/only"), "text").unwrap();
    std::fs::create_dir(machine.at("bin/folder")).unwrap();
    assert_eq!(machine.find("only", &[]), ok("sbin/only"));
    assert_eq!(machine.find("folder", &[]), no("NotInSystem"));
}

#[test]
fn a_path_is_a_file_of_the_skill_that_cannot_be_written() {
    let machine = Machine::new();
    machine.put("ws/skills/x/scripts/run.sh", "#!/bin/sh");
    machine.put("ws/skills/x/own", "#!/bin/sh");
    assert_eq!(machine.find("scripts/run.sh", &[]), ok("ws/skills/x/scripts/run.sh"));
    assert!(machine.find("./own", &[]).is_ok());
    machine.put("ws/work/evil", "#!/bin/sh");
    machine.put("ws/skills/x/.venv/bin/evil", "#!/bin/sh");
    machine.put("ws/skills/y/other", "#!/bin/sh");
    symlink(machine.at("ws/work/evil"), machine.at("ws/skills/x/scripts/link")).unwrap();
    let writable = [
        "work/evil",
        ".venv/bin/evil",
        "scripts/link",
        "../y/other",
        "../../work/evil",
        "../x/../y/other",
    ];
    for name in writable {
        assert_eq!(machine.find(name, &[]), no("Writable"), "{name}");
    }
    assert_eq!(machine.find("scripts/none", &[]), no("NotFound"));
    assert_eq!(machine.find("scripts/", &[]), no("NotExecutable"));
    let mut without = Machine::new();
    without.place.skill = None;
    assert_eq!(without.find("scripts/run.sh", &[]), no("NoSkill"));
}

#[test]
fn an_absolute_path_is_outside_of_the_workspace_and_of_what_is_open_to_all() {
    let machine = Machine::new();
    for name in ["ws/work/evil", "ws/skills/x/scripts/run.sh", "open/evil"] {
        machine.put(name, "#!/bin/sh");
        assert_eq!(machine.find(&format!("MACHINE/{name}"), &[]), no("Writable"), "{name}");
    }
    assert_eq!(machine.find("MACHINE/opt/tool", &[]), ok("opt/tool"));
    symlink(machine.at("ws/work/evil"), machine.at("opt/link")).unwrap();
    symlink(machine.at("ws/work/evil"), machine.at("bin/link")).unwrap();
    assert_eq!(machine.find("MACHINE/opt/link", &[]), no("Writable"));
    assert_eq!(machine.find("link", &[]), no("Writable"));
}

#[test]
fn a_workspace_behind_a_link_is_the_same_one() {
    let mut machine = Machine::new();
    symlink(".", machine.at("alias")).unwrap();
    machine.place.workspace = machine.at("alias/ws");
    machine.place.writable = Vec::new();
    machine.put("ws/work/evil", "#!/bin/sh");
    assert_eq!(machine.find("MACHINE/ws/work/evil", &[]), no("Writable"));
    assert_eq!(machine.find("MACHINE/alias/ws/work/evil", &[]), no("Writable"));
}

#[test]
fn what_is_denied_is_denied_under_every_name() {
    let machine = Machine::new();
    let denied = ["rm"];
    assert_eq!(machine.find("ls", &denied), ok("bin/ls"));
    assert_eq!(machine.find("rm", &denied), no("Denied"));
    symlink("rm", machine.at("bin/soft")).unwrap();
    symlink(machine.at("bin/soft"), machine.at("opt/softer")).unwrap();
    std::fs::hard_link(machine.at("bin/rm"), machine.at("bin/hard")).unwrap();
    machine.put("opt/RM", "\x7fELF");
    machine.put("bin/real", "\x7fELF");
    symlink("../bin/real", machine.at("opt/rm")).unwrap();
    symlink(machine.at("opt/rm"), machine.at("bin/through")).unwrap();
    for name in ["soft", "MACHINE/opt/softer", "hard", "MACHINE/opt/RM", "through"] {
        assert_eq!(machine.find(name, &denied), no("Denied"), "{name}");
        // The control: by itself it is a program like any other.
        assert!(machine.find(name, &[]).is_ok(), "{name}");
    }
    // What a denied name leads to is denied by its own name, too.
    symlink("../bin/real", machine.at("sbin/python3")).unwrap();
    assert_eq!(machine.find("real", &["python3"]), no("Denied"));
}

#[test]
fn of_programs_that_are_many_only_the_one_that_is_called_counts() {
    let machine = Machine::new();
    symlink("busybox", machine.at("bin/cat")).unwrap();
    symlink("busybox", machine.at("bin/wget")).unwrap();
    assert_eq!(machine.find("cat", &["wget", "busybox"]), ok("bin/cat"));
    assert_eq!(machine.find("wget", &["wget"]), no("Denied"));
    assert_eq!(machine.find("busybox", &["busybox"]), no("Denied"));
}

#[test]
fn a_script_is_not_started_by_what_is_denied_nor_by_a_guess() {
    let machine = Machine::new();
    machine.put("opt/script", "#! /usr/bin/env -S python3 -u\nrm x\n");
    let script = "MACHINE/opt/script";
    assert_eq!(machine.find(script, &["rm", "bash"]), ok("opt/script"));
    for denied in ["env", "python3"] {
        assert_eq!(machine.find(script, &[denied]), no("Denied"), "{denied}");
    }
    machine.put("opt/text", "echo started by sh, since nothing says otherwise\n");
    assert_eq!(machine.find("MACHINE/opt/text", &[]), no("NotAProgram"));
}

#[test]
fn only_what_is_there_and_may_not_be_started_is_forbidden() {
    let name = String::new;
    assert!(NoProgram::Denied { name: name(), denied: name() }.is_forbidden());
    assert!(NoProgram::Writable { name: name(), real: PathBuf::new() }.is_forbidden());
    assert!(!NoProgram::NotInSystem { name: name() }.is_forbidden());
    assert!(!NoProgram::NotExecutable { path: PathBuf::new() }.is_forbidden());
}
