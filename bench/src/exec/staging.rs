//! A skill that has not changed is looked at, not read.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use prowess_catalog::{Blocking, Catalog, DirectorySource, Trust};
use prowess_runtime::{AgentName, Runtime, SessionKey, ToolCall};
use prowess_toolkits::ExecToolkit;
use prowess_workspace::{SkillFile, Tier, WorkspaceId};
use serde_json::{Value, json};

use super::Ground;
use crate::measure::{medians, turns};
use crate::results::Row;

const NAME: &str = "many-files";
const FOLDERS: usize = 10;
const FILES_PER_FOLDER: usize = 20;
const FILE_BYTES: usize = 16 << 10;

/// How often runs take turns.
const ROUNDS: usize = 200;

pub(super) fn rows(ground: &Ground) -> Result<Vec<Row>> {
    let files = files();
    let mut rows = staged(ground, &files)?;
    rows.extend(run_of_unchanged(ground, &files)?);
    Ok(rows)
}

/// The files of a skill.
fn files() -> Vec<(String, Vec<u8>)> {
    let text = format!("---\nname: {NAME}\ndescription: Has many files.\n---\nBody.\n");
    let mut files = vec![("SKILL.md".to_owned(), text.into_bytes())];
    for folder in 0..FOLDERS {
        for file in 0..FILES_PER_FOLDER {
            let byte = u8::try_from((folder + file) % 64 + 32).unwrap_or(b'x');
            files.push((format!("data-{folder}/file-{file:02}.txt"), vec![byte; FILE_BYTES]));
        }
    }
    files
}

fn size(files: &[(String, Vec<u8>)]) -> f64 {
    files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() as f64
}

/// Looking whether a skill is staged, to a walk of its copy that looks at every file.
fn staged(ground: &Ground, files: &[(String, Vec<u8>)]) -> Result<Vec<Row>> {
    let workspace = &ground.workspace;
    let (digest, stamp) = ("digest", Some("stamp"));
    let skill: Vec<SkillFile<'_>> = files
        .iter()
        .map(|(path, bytes)| SkillFile { path, executable: false, bytes: Cow::Borrowed(bytes) })
        .collect();
    let copy = workspace.stage(NAME, digest, stamp, &skill)?;
    let look = || workspace.staged(NAME, digest, stamp);
    ensure!(look()?.is_some_and(|it| it.was_staged), "it is not staged");
    let tree = workspace.path().join(copy.path.as_str());
    ensure!(walk(&tree)? > files.len(), "the walk sees too little");
    let [ours, floor] =
        medians([&|| drop(black_box(look())), &|| drop(black_box(walk(black_box(&tree))))]);
    let what = "looking whether a skill of 201 files is staged, to a walk with lstat";
    let detail = format!("{:.0} to {:.0} µs", ours * 1e6, floor * 1e6);
    let read = bytes_read(|| look().map(drop).context("it cannot be looked at"))?;
    let bytes = format!("{read} of {:.0} bytes", size(files));
    let share = read as f64 / size(files);
    Ok(vec![
        Row::at_most(what, ours / floor, 3.0, &detail),
        Row::at_most_fine("bytes read meanwhile, to those of the skill", share, 0.05, &bytes),
    ])
}

/// Looks at everything below a folder.
fn walk(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        count += 1;
        if black_box(fs::symlink_metadata(&path)?).is_dir() {
            count += walk(&path)?;
        }
    }
    Ok(count)
}

/// How many bytes this process reads while it does something.
fn bytes_read(work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let counted = || -> Result<u64> {
        let text = fs::read_to_string("/proc/self/io")?;
        let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
        Ok(line.context("nobody counts what is read")?.parse()?)
    };
    // Reading the counter counts.
    let (first, second) = (counted()?, counted()?);
    work()?;
    Ok((counted()? - second).saturating_sub(second - first))
}

/// `skill_run` of a loaded skill that has not changed, to a bare run.
fn run_of_unchanged(ground: &Ground, files: &[(String, Vec<u8>)]) -> Result<Vec<Row>> {
    let what = "skill_run of an unchanged skill of 201 files to a bare run, both in tier 2";
    let what_read = "bytes that it reads beyond those of the bare run, to those of the skill";
    let executor = match ground.executor(Tier::T2) {
        Ok(executor) => executor,
        Err(why) => return Ok(vec![Row::not_measured(what_read, "≤ 0.05×", why)]),
    };
    let source = ground.at("skills");
    for (path, bytes) in files {
        let path = source.join(NAME).join(path);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(path, bytes)?;
    }
    // What was written just now could be written again without looking different.
    std::thread::sleep(Duration::from_millis(100));
    let (tokio, agent) = (&ground.tokio, AgentName::default());
    let source = DirectorySource::new(source).with_blocking(Blocking::Here);
    let catalog = Catalog::builder().source(source.with_trust(Trust::Trusted)).build();
    tokio.block_on(catalog.refresh());
    let toolkit = ExecToolkit::new(ground.workspaces.clone(), Arc::new(executor.clone()));
    let runtime = Runtime::builder(catalog).toolkit(Arc::new(toolkit)).build()?;
    let session = SessionKey::new("bench", "exec", "2")?;
    let number = Cell::new(0);
    let call = |tool: &str, arguments: Value| -> Result<()> {
        number.set(number.get() + 1);
        let call = ToolCall::new(number.get().to_string(), tool, arguments);
        let outcome = tokio.block_on(runtime.dispatch(&session, &agent, call))?;
        ensure!(!outcome.is_error, "{}", outcome.content);
        let shown: Value = serde_json::from_str(&outcome.content).unwrap_or_default();
        let code = shown.get("exit_code");
        ensure!(code.is_none_or(|code| code == 0), "{}", outcome.content);
        Ok(())
    };
    call("load_skill", json!({"skill": NAME}))?;
    let run = || call("skill_run", json!({"skill": NAME, "command": ":"}));
    run()?;
    let copy = || -> Result<_> {
        let id = WorkspaceId::new(session.app(), session.user(), session.session());
        let workspace = ground.workspaces.open(&id)?;
        let staged = workspace.path().join("skills").join(NAME);
        Ok(fs::metadata(staged)?.modified()?)
    };
    let before = copy()?;
    let failed = RefCell::new(Ok(()));
    let check = |done: Result<()>| {
        if done.is_err() {
            *failed.borrow_mut() = done;
        }
    };
    let [ours, bare] =
        turns(ROUNDS, [&|| check(run()), &|| check(ground.run(executor, ":").map(drop))]);
    failed.into_inner()?;
    // What its processes read counts as well: as much as in the bare run.
    let bare_read = bytes_read(|| ground.run(executor, ":").map(drop))?;
    let read = bytes_read(run)?.saturating_sub(bare_read);
    ensure!(before == copy()?, "it was staged again");
    let detail = format!("{:.2} to {:.2} ms", ours * 1e3, bare * 1e3);
    let bytes = format!("{read} of {:.0} bytes", size(files));
    let share = read as f64 / size(files);
    Ok(vec![
        Row::bound(what, ours / bare, &detail),
        Row::at_most_fine(what_read, share, 0.05, &bytes),
    ])
}
