//! From keys and values to skills.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use super::snapshot::{count, moment, version_of};
use super::{
    ImportedMetrics, ImportedSkill, ImportedSkills, ImportedVersion, Layout, LayoutValue, Problems,
};
use crate::version::SkillId;

const INDEX: &str = "skills:custom:index";

/// What a key is about.
enum Subject<'a> {
    Meta(&'a str),
    Version(&'a str, u64),
    Versions(&'a str),
    Metrics(&'a str),
    Sessions(&'a str),
    Index,
}

impl<'a> Subject<'a> {
    fn of(key: &'a str) -> Option<Self> {
        if key == INDEX {
            return Some(Self::Index);
        }
        let (kind, id) = key.strip_prefix("skill:")?.split_once(':')?;
        match kind {
            "meta" => Some(Self::Meta(id)),
            "versions" => Some(Self::Versions(id)),
            "metrics" => Some(Self::Metrics(id)),
            "sessions" => Some(Self::Sessions(id)),
            "version" => {
                let (id, number) = id.rsplit_once(':')?;
                let number = number.parse().ok().filter(|number| *number > 0)?;
                Some(Self::Version(id, number))
            }
            _ => None,
        }
    }
}

/// Everything that is known of one skill.
#[derive(Default)]
struct Known {
    meta: Option<Map<String, Json>>,
    versions: BTreeMap<u64, Map<String, Json>>,
    times: BTreeMap<u64, f64>,
    metrics: Option<Map<String, Json>>,
    sessions: Vec<String>,
    is_listed: bool,
}

impl Layout {
    /// The skills in it. Ids that are none here are mended; whatever cannot be is reported.
    pub fn import(&self) -> ImportedSkills {
        let mut problems = Problems::default();
        let mut all: BTreeMap<String, Known> = BTreeMap::new();
        for (key, value) in &self.entries {
            gather(key, value, &mut all, &mut problems);
        }
        let mut taken: BTreeSet<SkillId> = all.keys().filter_map(|id| id.parse().ok()).collect();
        let mut skills = Vec::new();
        for (source_id, known) in all {
            let id = id_of(&source_id, &known, &mut taken, &mut problems);
            let Some(id) = id else { continue };
            skills.extend(skill(id, source_id, &known, &mut problems));
        }
        skills.sort_by(|a, b| a.id.cmp(&b.id));
        problems.0.sort();
        ImportedSkills { skills, problems: problems.0 }
    }
}

fn gather(
    key: &str,
    value: &LayoutValue,
    all: &mut BTreeMap<String, Known>,
    problems: &mut Problems,
) {
    let Some(subject) = Subject::of(key) else {
        return problems.add(key, "is no key of langchain-docker, and is left out");
    };
    let unexpected = |wanted: &str| format!("is a {}, not a {wanted}; left out", value.kind());
    match (subject, value) {
        (Subject::Index, LayoutValue::Set(ids)) => {
            for id in ids {
                all.entry(id.clone()).or_default().is_listed = true;
            }
        }
        (Subject::Sessions(id), LayoutValue::Set(sessions)) => {
            let known = all.entry(id.to_owned()).or_default();
            known.sessions.clone_from(sessions);
            known.sessions.sort_unstable();
        }
        (Subject::Index | Subject::Sessions(_), _) => problems.add(key, unexpected("set")),
        (Subject::Versions(id), LayoutValue::SortedSet(members)) => {
            let known = all.entry(id.to_owned()).or_default();
            for (member, score) in members {
                match member.parse::<u64>() {
                    Ok(number) if number > 0 => drop(known.times.insert(number, *score)),
                    _ => problems.add(key, format!("'{member}' is no number of a version")),
                }
            }
        }
        (Subject::Versions(_), _) => problems.add(key, unexpected("sorted set")),
        (Subject::Meta(id), value) => {
            let known = all.entry(id.to_owned()).or_default();
            known.meta = object(key, value, problems);
        }
        (Subject::Metrics(id), value) => {
            let known = all.entry(id.to_owned()).or_default();
            known.metrics = object(key, value, problems);
        }
        (Subject::Version(id, number), value) => {
            let known = all.entry(id.to_owned()).or_default();
            if let Some(version) = object(key, value, problems) {
                known.versions.insert(number, version);
            }
        }
    }
}

/// The JSON object that a value is.
fn object(key: &str, value: &LayoutValue, problems: &mut Problems) -> Option<Map<String, Json>> {
    let LayoutValue::String(bytes) = value else {
        problems.add(key, format!("is a {}, not a string; left out", value.kind()));
        return None;
    };
    match serde_json::from_slice(bytes) {
        Ok(Json::Object(object)) => Some(object),
        Ok(_) => {
            problems.add(key, "is no JSON object; left out");
            None
        }
        Err(error) => {
            problems.add(key, format!("is no JSON: {error}; left out"));
            None
        }
    }
}

/// The id of a skill here: its own, else what it or its name suggests, and nobody else has.
fn id_of(
    source_id: &str,
    known: &Known,
    taken: &mut BTreeSet<SkillId>,
    problems: &mut Problems,
) -> Option<SkillId> {
    let why = match source_id.parse::<SkillId>() {
        Ok(id) => return Some(id),
        Err(why) => why,
    };
    let key = format!("skill:meta:{source_id}");
    let names = known.versions.values().rev().filter_map(|version| version.get("name")?.as_str());
    let texts = std::iter::once(source_id).chain(names).chain(["imported"]);
    let candidate = texts.filter_map(SkillId::suggested_by).next()?;
    let numbered = (2_u64..).map(|number| {
        let tail = format!("_{number}");
        let head = &candidate.as_str()[..candidate.as_str().len().min(64 - tail.len())];
        format!("{head}{tail}").parse::<SkillId>().ok()
    });
    let mut free = std::iter::once(Some(candidate.clone())).chain(numbered).flatten();
    let id = free.find(|id| !taken.contains(id))?;
    problems.add(&key, format!("{why}; it is imported as '{id}'"));
    taken.insert(id.clone());
    Some(id)
}

fn skill(
    id: SkillId,
    source_id: String,
    known: &Known,
    problems: &mut Problems,
) -> Option<ImportedSkill> {
    let meta_key = format!("skill:meta:{source_id}");
    let versions = versions(&id, &source_id, known, problems);
    let Some(newest) = versions.last().map(|version| version.number) else {
        let has_metrics = known.metrics.is_some() || !known.sessions.is_empty();
        let lost = if has_metrics { ", nor are its metrics" } else { "" };
        problems.add(&meta_key, format!("has no version that can be read; not imported{lost}"));
        return None;
    };
    let meta = known.meta.as_ref();
    if meta.is_none() {
        let cause = format!("is missing or broken; version {newest} is taken for the active one");
        problems.add(&meta_key, cause);
    }
    let is_builtin = match meta.and_then(|meta| meta.get("is_builtin")) {
        Some(Json::Bool(is_builtin)) => *is_builtin,
        None if meta.is_none() => false,
        other => {
            let shown = other.unwrap_or(&Json::Null);
            problems.add(&meta_key, format!("`is_builtin` is {shown}; taken for false"));
            false
        }
    };
    let active = meta.and_then(|meta| meta.get("active_version"));
    let active_version = match active.and_then(Json::as_u64) {
        Some(number) if versions.iter().any(|version| version.number == number) => number,
        None if meta.is_none() => newest,
        _ => {
            let shown = active.unwrap_or(&Json::Null);
            let cause =
                format!("`active_version` is {shown}, which is not there; {newest} is taken");
            problems.add(&meta_key, cause);
            newest
        }
    };
    if !is_builtin && !known.is_listed {
        problems.add(&meta_key, format!("is not in {INDEX}; imported all the same"));
    }
    let metrics = metrics(&source_id, known, problems);
    Some(ImportedSkill { id, source_id, is_builtin, active_version, versions, metrics })
}

fn versions(
    id: &SkillId,
    source_id: &str,
    known: &Known,
    problems: &mut Problems,
) -> Vec<ImportedVersion> {
    for number in known.times.keys().filter(|number| !known.versions.contains_key(number)) {
        let key = format!("skill:version:{source_id}:{number}");
        problems.add(&key, format!("is listed in skill:versions:{source_id}, and is not readable"));
    }
    let mut versions = Vec::with_capacity(known.versions.len());
    for (number, snapshot) in &known.versions {
        let key = format!("skill:version:{source_id}:{number}");
        let time = known.times.get(number).copied();
        if time.is_none() {
            let cause =
                format!("is not listed in skill:versions:{source_id}; imported all the same");
            problems.add(&key, cause);
        }
        let created = time.and_then(|seconds| {
            Timestamp::from_microsecond((seconds * 1e6) as i64).ok().filter(|_| seconds > 0.0)
        });
        versions.extend(version_of(&key, id, *number, snapshot, created, problems));
    }
    versions
}

fn metrics(source_id: &str, known: &Known, problems: &mut Problems) -> ImportedMetrics {
    let key = format!("skill:metrics:{source_id}");
    let empty = Map::new();
    let values = known.metrics.as_ref().unwrap_or(&empty);
    let mut loads_by_version = BTreeMap::new();
    match values.get("loads_by_version") {
        None | Some(Json::Null) => {}
        Some(Json::Object(loads)) => {
            for (number, loads) in loads {
                match (number.parse(), loads.as_u64()) {
                    (Ok(number), Some(loads)) => drop(loads_by_version.insert(number, loads)),
                    _ => {
                        let cause = format!("`loads_by_version`.`{number}` is {loads}; left out");
                        problems.add(&key, cause);
                    }
                }
            }
        }
        Some(other) => problems.add(&key, format!("`loads_by_version` is {other}; left out")),
    }
    let known_sessions = known.sessions.len() as u64;
    ImportedMetrics {
        total_loads: count(&key, values, "total_loads", problems),
        unique_sessions: count(&key, values, "unique_sessions", problems).max(known_sessions),
        last_loaded: moment(&key, values, "last_loaded_at", problems),
        sessions: known.sessions.clone(),
        loads_by_version,
    }
}
