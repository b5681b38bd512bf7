//! `prowess skills import-redis`

use std::collections::BTreeMap;

use prowess_store::interop::langchain_docker::{
    FetchLimits, ImportedSkill, ImportedSkills, Problem, fetch,
};
use prowess_store::{Activation, Actor, Expected, NewVersion, SkillReading, VersionError};
use serde_json::{Value, json};

use super::desk::{Desk, DeskError, VersionRow};
use super::local::Local;
use crate::Outcome;
use crate::cli::ImportRedisArgs;
use crate::report::{self, counted};
use crate::terminal::safe_line;

/// The numbers of versions there and here.
type Numbers = BTreeMap<u64, u64>;

/// What became of a skill.
struct Row {
    skill: ImportedSkill,
    status: &'static str,
    numbers: Numbers,
    /// Why it is not here.
    failure: Option<DeskError>,
}

pub(super) async fn run(desk: &Desk, arguments: &ImportRedisArgs) -> anyhow::Result<Outcome> {
    let Desk::Local(desk) = desk else { return Err(DeskError::LocalOnly.into()) };
    let layout = fetch(&arguments.address, &FetchLimits::default()).map_err(DeskError::from)?;
    let ImportedSkills { skills, problems, .. } = layout.import();
    let mut rows = Vec::new();
    for skill in skills {
        let row = match import(desk, &skill, arguments.dry_run).await {
            Ok((status, numbers)) => Row { skill, status, numbers, failure: None },
            // It hurts no other.
            Err(error) if error.is_about_skill() => {
                let (status, numbers) = ("failed", Numbers::new());
                Row { skill, status, numbers, failure: Some(error) }
            }
            Err(error) => return Err(error.into()),
        };
        if !arguments.json {
            print(&row);
        }
        rows.push(row);
    }
    finish(&rows, &problems, arguments)?;
    let has_failed = rows.iter().any(|row| row.failure.is_some());
    Ok(if has_failed { Outcome::Findings } else { Outcome::Ok })
}

/// Makes all versions of a skill, in their order, and then uses one. Whoever was interrupted goes on
/// where that was: until one is used, what is here of the skill may be the beginning of it.
async fn import(
    desk: &Local,
    skill: &ImportedSkill,
    dry_run: bool,
) -> Result<(&'static str, Numbers), DeskError> {
    let here = match desk.versions(&skill.id).await {
        Ok(here) if here.iter().any(|row| row.is_active) => return Ok(("skipped", Numbers::new())),
        Ok(here) => here,
        Err(DeskError::Store(VersionError::NoSkill(_))) => Vec::new(),
        Err(error) => return Err(error),
    };
    let new = versions(skill)?;
    let made = made_before(&here, &new);
    if !here.is_empty() && made.is_empty() {
        // Somebody else has made it, and it waits.
        return Ok(("skipped", Numbers::new()));
    }
    if dry_run {
        return Ok(("new", Numbers::new()));
    }
    let mut expected = match made.is_empty() {
        true => Expected::Absent,
        false => Expected::Revision(desk.store.head(&skill.id).await?.0),
    };
    let mut numbers: Numbers = skill.versions.iter().map(|it| it.number).zip(made).collect();
    for (number, new) in skill.versions.iter().zip(new).skip(numbers.len()) {
        let appended = desk.store.append(new.expecting(expected)).await?;
        expected = Expected::Revision(appended.revision);
        numbers.insert(number.number, appended.version.number);
    }
    if let Some(active) = numbers.get(&skill.active_version) {
        desk.store.activate(&skill.id, *active, expected, &Actor::local()).await?;
    }
    Ok(("imported", numbers))
}

/// The versions of a skill as they are made: one that cannot be made is found before any is.
fn versions(skill: &ImportedSkill) -> Result<Vec<NewVersion>, DeskError> {
    let new = skill.versions.iter().map(|version| {
        let contents = version.document.contents(&skill.id)?;
        let about = SkillReading::of(&contents)?.about;
        let mut new = NewVersion::new(skill.id.clone(), contents.into(), about, Actor::local())
            .because(version.change_summary.clone());
        new.activation = Activation::Later;
        new.created = version.created;
        Ok(new)
    });
    new.collect()
}

/// The numbers of those that were made before: what is here, the newest first, ends with them.
fn made_before(here: &[VersionRow], new: &[NewVersion]) -> Vec<u64> {
    let is_made = |(row, new): (&VersionRow, &NewVersion)| {
        let has_time = |it: jiff::Timestamp| it.as_millisecond() == row.created_at.as_millisecond();
        row.tree_digest == new.contents.tree_digest.to_string()
            && row.change_summary == new.change_summary
            && new.created.is_none_or(has_time)
    };
    let most = here.len().min(new.len());
    let begins = |count: &usize| here[..*count].iter().rev().zip(new).all(is_made);
    let count = (1..=most).rev().find(begins).unwrap_or_default();
    here[..count].iter().rev().map(|row| row.version_number).collect()
}

fn print(row: &Row) {
    let Row { skill, status, numbers, failure } = row;
    let versions = counted(skill.versions.len(), "version");
    let active = numbers.get(&skill.active_version).unwrap_or(&skill.active_version);
    let id = safe_line(skill.id.as_str());
    let more = match (failure, *status) {
        (Some(error), _) => {
            let (code, message) = (error.code(), safe_line(&error.to_string()));
            anstream::eprintln!("{status:8}  {id}  error[{code}]: {message}");
            return;
        }
        (None, "skipped") => "it is in the registry already".to_owned(),
        _ => format!("{versions}, version {active} is used"),
    };
    anstream::println!("{status:8}  {id}  {more}");
    if numbers.iter().any(|(there, here)| there != here) {
        let pairs: Vec<String> =
            numbers.iter().map(|(there, here)| format!("{there} is {here}")).collect();
        anstream::println!("          versions are numbered anew: {}", pairs.join(", "));
    }
}

/// What is said at the end: what was mended, and what stays behind.
fn finish(rows: &[Row], problems: &[Problem], arguments: &ImportRedisArgs) -> anyhow::Result<()> {
    let loads = |row: &Row| row.skill.metrics.total_loads;
    let brought = || rows.iter().filter(|row| matches!(row.status, "new" | "imported"));
    let loads: u64 = brought().map(loads).sum();
    let mut notes = Vec::new();
    if brought().next().is_some() {
        notes.push(format!(
            "Metrics are not carried over: the days of {loads} loads are not known there."
        ));
    }
    if brought().any(|row| row.skill.is_builtin) {
        notes.push("Skills that were built in there are skills like others here.".to_owned());
    }
    if arguments.json {
        let skills: Vec<Value> = rows.iter().map(described).collect();
        report::print_json(&json!({
            "dry_run": arguments.dry_run, "skills": skills, "problems": problems, "notes": notes,
        }))?;
        return Ok(());
    }
    for problem in problems {
        let (key, cause) = (safe_line(&problem.key), safe_line(&problem.cause));
        anstream::eprintln!("Warning: {key} {cause}");
    }
    if rows.is_empty() {
        anstream::eprintln!("There is no skill of langchain-docker in this database.");
    }
    for note in notes {
        anstream::eprintln!("Note: {note}");
    }
    Ok(())
}

fn described(row: &Row) -> Value {
    let Row { skill, status, numbers, failure } = row;
    let error = failure.as_ref().map(|it| json!({"code": it.code(), "message": it.to_string()}));
    let metrics = &skill.metrics;
    let versions: Vec<Value> = skill
        .versions
        .iter()
        .map(|it| json!({"source_number": it.number, "version_number": numbers.get(&it.number)}))
        .collect();
    json!({
        "skill_id": skill.id, "source_id": skill.source_id, "status": status, "error": error,
        "active_version": numbers.get(&skill.active_version), "versions": versions,
        "metrics_left_behind": {
            "total_loads": metrics.total_loads, "unique_sessions": metrics.unique_sessions,
        },
    })
}
