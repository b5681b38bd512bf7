//! What a run costs beyond starting its program.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use prowess_workspace::{LocalExecutor, Tier};

use super::Ground;
use crate::measure::turns;
use crate::results::Row;

/// How often the contenders take turns.
const ROUNDS: usize = 500;

const LINE: &str = ":";
const SHELL: [&str; 3] = ["/bin/bash", "-c", LINE];

pub(super) fn rows(ground: &Ground) -> Result<Vec<Row>> {
    let what = "a run in tier 1 to a plain spawn, both `bash -c :`";
    let plain = || spawn(Command::new(SHELL[0]).args(&SHELL[1..]));
    let mut rows = vec![match ground.executor(Tier::T1) {
        Ok(executor) => against(ground, executor, &plain, what, 2.0)?,
        Err(why) => Row::not_measured(what, "≤ 2×", why),
    }];
    let what = "a run in tier 2 to bare `bwrap` with the same rules, both `bash -c :`";
    match ground.executor(Tier::T2) {
        Ok(executor) => {
            let (bwrap, words) = recorded(ground)?;
            let bare = || spawn(Command::new(&bwrap).args(&words).env_clear().current_dir("/"));
            rows.push(against(ground, executor, &bare, what, 1.3)?);
            rows.push(bare_namespaces(&bare)?);
        }
        Err(why) => rows.push(Row::not_measured(what, "≤ 1.3×", why)),
    }
    Ok(rows)
}

/// What namespaces cost whoever makes them: as much of what `bwrap` does as there is a program for,
/// with no root of its own, no rules, no rights dropped. Making them ourselves could not be cheaper.
fn bare_namespaces(bwrap: &dyn Fn() -> Result<()>) -> Result<Row> {
    let what =
        "namespaces with nothing in them (`unshare`) to bare `bwrap`: what others could save";
    let mut kinds = vec!["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork"];
    if !rustix::process::geteuid().is_root() {
        kinds.extend(["--user", "--map-root-user"]);
    }
    let bare = || spawn(Command::new("unshare").args(&kinds).args(SHELL).env_clear());
    let failed = RefCell::new(Ok(()));
    let check = |done: Result<()>| {
        if done.is_err() {
            *failed.borrow_mut() = done;
        }
    };
    let [bare, bwrap] = turns(ROUNDS, [&|| check(bare()), &|| check(bwrap())]);
    failed.into_inner()?;
    let detail = format!("{:.2} to {:.2} ms", bare * 1e3, bwrap * 1e3);
    Ok(Row::bound(what, bare / bwrap, &detail))
}

/// Runs a program to its end and takes what it writes.
fn spawn(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn against(
    ground: &Ground,
    executor: &LocalExecutor,
    floor: &dyn Fn() -> Result<()>,
    what: &str,
    most: f64,
) -> Result<Row> {
    let failed = RefCell::new(Ok(()));
    let check = |done: Result<()>| {
        if done.is_err() {
            *failed.borrow_mut() = done;
        }
    };
    let [ours, floor] =
        turns(ROUNDS, [&|| check(ground.run(executor, LINE).map(drop)), &|| check(floor())]);
    failed.into_inner()?;
    let detail = format!("{:.2} to {:.2} ms", ours * 1e3, floor * 1e3);
    Ok(Row::at_most(what, ours / floor, most, &detail))
}

/// The program `bwrap`, and the arguments with which a run of tier 2 calls it; what those pass in
/// open descriptors is in files here.
fn recorded(ground: &Ground) -> Result<(PathBuf, Vec<OsString>)> {
    let path = std::env::var_os("PATH").context("there is no PATH")?;
    let mut folders = std::env::split_paths(&path);
    let bwrap = folders.find_map(|it| Some(it.join("bwrap")).filter(|it| it.is_file()));
    let bwrap = bwrap.context("there is no bwrap on the path")?;
    let (wrapper, words) = (ground.at("bwrap"), ground.at("words"));
    let script = format!(
        "#!/bin/bash\n/bin/cat /proc/self/fd/\"$2\" >'{}'\nexec '{}' \"$@\"\n",
        words.display(),
        bwrap.display()
    );
    fs::write(&wrapper, script)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let executor = ground.executor_with(Tier::T2, LocalExecutor::builder().bwrap(&wrapper))?;
    ground.run(&executor, LINE)?;
    let words = fs::read(&words)?;
    let words = words.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let text = ground.at("people");
    fs::write(&text, "skill:x:65534:65534::/workspace/work:/bin/bash\n")?;
    let mut words = without_descriptors(words.collect(), &text);
    // The last one was ended by a zero, too.
    words.pop();
    words.push("--".into());
    words.extend(SHELL.map(OsString::from));
    Ok((bwrap, words))
}

/// `--perms MODE --ro-bind-data FD PATH` as `--ro-bind FILE PATH`.
fn without_descriptors(words: Vec<OsString>, file: &Path) -> Vec<OsString> {
    let mut kept: Vec<OsString> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--ro-bind-data" {
            kept.truncate(kept.len().saturating_sub(2));
            kept.extend(["--ro-bind".into(), file.into()]);
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept
}
