//! A hundred times as many skills, each with a history.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use prowess_catalog::{ContentFile, ResourcePath, SkillContents};
use prowess_format::{Options, Skill};
use prowess_store::{About, Actor, NewVersion, SKILL_FILE, SqliteStore, VersionStore};

use super::ground::{Requests, id, load, median, prowess};
use crate::results::{Row, Verdict};
use crate::service::text;

const FEW: usize = 100;
const MANY: usize = 10_000;
const VERSIONS: usize = 20;
/// Writers that share the waits for the disk.
const WRITERS: usize = 128;
/// How often the two take turns, and how long a turn is.
const ROUNDS: usize = 5;
const TURN: Duration = Duration::from_millis(900);

pub(super) fn rows() -> Result<Vec<Row>> {
    let (few, many) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fill(few.path(), FEW, 1)?;
    fill(many.path(), MANY, VERSIONS)?;
    let (small, large) = (prowess(few.path())?, prowess(many.path())?);
    let name = id(42);
    let one = |path: &str| (Requests::one(path), Requests::one(path));
    let questions = [
        ("GET /skills/{id}", 2.0, (Requests::get(FEW), Requests::get(MANY))),
        ("the first page of 50", 2.0, one("/api/v1/skills?limit=50")),
        ("a filter that one skill passes", 10.0, one(&format!("/api/v1/skills?q={name}"))),
        ("a filter that all skills pass", 10.0, one("/api/v1/skills?q=STEP&limit=50")),
        ("a filter that no skill passes", 10.0, one("/api/v1/skills?q=nowhere")),
    ];
    let mut rows = Vec::new();
    for (name, most, (at_small, at_large)) in questions {
        let mut samples = [Vec::new(), Vec::new()];
        let mut errors = 0;
        for _ in 0..ROUNDS {
            // One at a time: the time of a request, not of a queue.
            for (at, (service, requests)) in
                [(&small, &at_small), (&large, &at_large)].into_iter().enumerate()
            {
                let measured = load(service.address(), requests, 1, TURN)?;
                samples[at].push(measured.p50);
                errors += measured.errors;
            }
        }
        let [few, many] = samples.map(median);
        let what =
            format!("{name}: time at {MANY} skills × {VERSIONS} versions to that at {FEW} skills");
        let mut detail = format!("{:.0} to {:.0} µs", many * 1e6, few * 1e6);
        if errors > 0 {
            detail.push_str(&format!(", {errors} errors"));
        }
        let mut row = Row::at_most(&what, many / few, most, &detail);
        if errors > 0 {
            row.verdict = Verdict::Fail;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Makes a registry with so many skills and versions of each.
fn fill(home: &Path, skills: usize, versions: usize) -> Result<()> {
    let begun = Instant::now();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let store = SqliteStore::open(home.join("prowess.db"))?;
    tokio.block_on(async {
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS.min(skills) {
            let store = store.versions();
            writers.spawn(async move {
                for at in (writer..skills).step_by(WRITERS) {
                    for number in 1..=versions {
                        store.append(version(at, number)?).await?;
                    }
                }
                anyhow::Ok(())
            });
        }
        writers.join_all().await.into_iter().collect::<Result<()>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{skills} skills × {versions} versions were made in {seconds:.1} s");
    Ok(())
}

/// A version of a skill, as if somebody had written it.
fn version(at: usize, number: usize) -> Result<NewVersion> {
    let id = id(at);
    let head = format!(
        "---\nname: {id}\ndescription: Explains how {id} is done, step by step, and when to leave \
         it.\nmetadata:\n  title: Skill {id}\n  category: custom\n---\n"
    );
    let text = head + &text(&format!("# Skill {id}, version {number}"), 800);
    let parsed = Skill::parse(&text, &Options::new());
    let skill = parsed.skill.with_context(|| format!("{id} is no skill"))?;
    ensure!(skill.name() == id, "{id} has another name");
    let path = ResourcePath::parse(SKILL_FILE)?;
    let contents = SkillContents::of(vec![ContentFile::new(path, false, text)]);
    let summary = Some(format!("Version {number}"));
    let about = About::of(&skill);
    let actor = Actor::local();
    Ok(NewVersion::new(id.parse()?, Arc::new(contents), about, actor).because(summary))
}
