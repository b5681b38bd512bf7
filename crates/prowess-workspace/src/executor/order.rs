//! From a run to what its supervisor is told.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Command, ExecError, Run, Tier};
use crate::supervisor::{Groups, Identity, Installed, Order, SYSTEM_FOLDERS, Streams, VERSION};

/// What the workspace is called where a run has a root of its own.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Whom commands run as when we are root: `nobody`. Else they run as whoever we are.
pub(crate) fn identity() -> Option<Identity> {
    const NOBODY: Identity = Identity { uid: 65534, gid: 65534 };
    rustix::process::geteuid().is_root().then_some(NOBODY)
}

/// The order for a run that sees its workspace there, with nothing that only some sandboxes have.
pub(crate) fn order(
    run: &Run<'_>,
    tier: Tier,
    inside: PathBuf,
    shell: &str,
) -> Result<Order, ExecError> {
    Ok(Order {
        version: VERSION,
        tier,
        bwrap: None,
        argv: argv(run, shell)?,
        installed: installed(run),
        env: environment(run, &inside, tier),
        workspace: run.workspace.to_owned(),
        inside,
        cwd: run.cwd.as_str().to_owned(),
        writable: writable(run),
        readable: Vec::new(),
        identity: None,
        network: run.network,
        limits: run.limits.clone(),
        needs: Groups::default(),
        user_processes: None,
        streams: Streams::Usual,
    })
}

/// What a run may write, below its workspace.
pub(crate) fn writable(run: &Run<'_>) -> Vec<String> {
    let mut writable: Vec<String> = ["work", "out", "runs"].map(str::to_owned).into();
    if let Some(skill) = run.skill {
        writable.push(format!("skills/{skill}/.venv"));
    }
    // A skill's own `.venv` is staged like the rest of it: nobody may write it.
    writable.retain(|name| {
        let about = run.workspace.join(name).symlink_metadata();
        about.is_ok_and(|it| it.is_dir() && (it.mode() & 0o200 != 0 || !name.contains('/')))
    });
    writable
}

/// The program of a run and its arguments.
fn argv(run: &Run<'_>, shell: &str) -> Result<Vec<String>, ExecError> {
    match &run.command {
        Command::Shell(line) => Ok([shell, "-c", line].map(str::to_owned).into()),
        Command::Program(words) | Command::Installed { words, .. } if words.is_empty() => {
            Err(ExecError::Start { cause: "there is no command".to_owned() })
        }
        Command::Program(words) | Command::Installed { words, .. } => Ok(words.clone()),
    }
}

/// What must hold for the program of a run, if it must be one that no run can have put there.
fn installed(run: &Run<'_>) -> Option<Installed> {
    match &run.command {
        Command::Shell(_) | Command::Program(_) => None,
        Command::Installed { denied, .. } => Some(Installed {
            skill: run.skill.map(|skill| format!("skills/{skill}")),
            denied: denied.clone(),
        }),
    }
}

/// The variables of a run.
fn environment(run: &Run<'_>, inside: &Path, tier: Tier) -> Vec<(String, String)> {
    let at = |below: &str| match below {
        "" => inside.display().to_string(),
        below => inside.join(below).display().to_string(),
    };
    let run_dir = at(run.run_dir.as_str());
    let system = SYSTEM_FOLDERS.join(":");
    let is_installed = matches!(run.command, Command::Installed { .. });
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    match run.skill.filter(|_| !is_installed) {
        None => set("PATH", system.clone()),
        Some(skill) => {
            let own = at(&format!("skills/{skill}"));
            set("PATH", format!("{own}/.venv/bin:{system}:{own}/bin"));
            set("VIRTUAL_ENV", format!("{own}/.venv"));
        }
    }
    if let Some(skill) = run.skill {
        set("SKILL_NAME", skill.to_owned());
    }
    set(
        "HOME",
        match (is_installed, tier >= Tier::T2) {
            (false, _) => at("work"),
            // Programs read their settings there, and no run may have left any.
            (true, true) => "/tmp".to_owned(),
            (true, false) => "/nonexistent".to_owned(),
        },
    );
    set("LANG", "C.UTF-8".to_owned());
    set("TMPDIR", if tier >= Tier::T2 { "/tmp".to_owned() } else { run_dir.clone() });
    set("WORKSPACE_DIR", at(""));
    set("SKILLS_DIR", at(run.skills_dir.as_str()));
    set("WORK_DIR", at("work"));
    set("OUTPUT_DIR", at("out"));
    set("RUN_DIR", run_dir);
    if run.terminal.is_some() {
        // Whoever reads it is no screen.
        set("TERM", "dumb".to_owned());
    }
    variables.retain(|(name, _)| !run.env.contains_key(name));
    variables.extend(run.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    if is_installed {
        // What a program would start by itself, for whoever sits before it, is none that was listed.
        let fixed = [("PATH", system.as_str()), ("PAGER", "cat"), ("GIT_PAGER", "cat")];
        let fixed =
            fixed.into_iter().chain(["EDITOR", "VISUAL", "GIT_EDITOR"].map(|it| (it, "false")));
        for (name, value) in fixed {
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), value.to_owned()));
        }
    }
    variables
}
