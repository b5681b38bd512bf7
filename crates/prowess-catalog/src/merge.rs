//! Who hides whom, when sources are merged.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use prowess_format::{Code, Diagnostic, Level};

use crate::found::SourceListing;
use crate::resource::EagerResources;
use crate::skill::{CatalogSkill, SourceEntry, id_of};
use crate::source::Source;

/// Which of several skills of one name is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precedence {
    /// That of the last source.
    #[default]
    LastWins,
    /// That of the first source.
    FirstWins,
    /// None: the name alone is refused, `name@source` is not.
    RefuseAmbiguous,
}

/// What came of merging.
pub(crate) struct Merged {
    /// Sorted by name.
    pub(crate) skills: Vec<CatalogSkill>,
    /// Refused for their name alone, sorted by name.
    pub(crate) ambiguous: Vec<CatalogSkill>,
    pub(crate) sources: Vec<Arc<SourceEntry>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Merges what sources hold, lowest precedence first.
pub(crate) fn merge(
    sources: &[(Arc<dyn Source>, Arc<SourceListing>)],
    resources: &EagerResources,
    precedence: Precedence,
) -> Merged {
    let entries = source_entries(sources);
    let mut diagnostics = Vec::new();
    let total = sources.iter().map(|(_, listing)| listing.skills.len()).sum();
    let mut everyone: Vec<CatalogSkill> = Vec::with_capacity(total);
    for (at, (entry, (_, listing))) in entries.iter().zip(sources).enumerate() {
        diagnostics.extend(listing.diagnostics.iter().cloned());
        let mut eager = resources.get(at).into_iter().flatten();
        for found in &listing.skills {
            let resources = match eager.next() {
                Some(Ok(resources)) => Some(Arc::clone(resources)),
                Some(Err(finding)) => {
                    diagnostics.push(finding.clone());
                    None
                }
                None => None,
            };
            let skill = CatalogSkill {
                found: Arc::clone(found),
                source: Arc::clone(entry),
                shadows: Vec::new(),
                is_second: false,
                resources,
            };
            everyone.push(skill);
        }
    }
    // Stable: within a name the order of sources and paths is kept.
    everyone.sort_by(|a, b| fold(a.name()).cmp(&fold(b.name())));
    let (mut skills, mut ambiguous) = (Vec::with_capacity(total), Vec::new());
    let mut shadowing = Vec::new();
    let mut everyone = everyone.into_iter().peekable();
    while let Some(skill) = everyone.next() {
        let is_rival = |next: &CatalogSkill| fold(next.name()) == fold(skill.name());
        let rival = everyone.next_if(is_rival);
        let Some(rival) = rival else {
            skills.push(skill);
            continue;
        };
        let mut group = vec![skill, rival];
        while let Some(rival) = everyone.next_if(|next| fold(next.name()) == fold(group[0].name()))
        {
            group.push(rival);
        }
        decide(group, precedence, &mut skills, &mut ambiguous, &mut shadowing);
    }
    let by_place = |a: &CatalogSkill, b: &CatalogSkill| {
        (a.name(), &a.source.id, &a.found.folder).cmp(&(b.name(), &b.source.id, &b.found.folder))
    };
    skills.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    ambiguous.sort_by(by_place);
    shadowing.sort_by(|a: &Diagnostic, b| (&a.path, &a.message).cmp(&(&b.path, &b.message)));
    diagnostics.extend(shadowing);
    Merged { skills, ambiguous, sources: entries, diagnostics }
}

/// Names that differ in nothing but case are one name: some file systems cannot tell them apart,
/// and neither can most readers.
pub(crate) fn fold(name: &str) -> Cow<'_, str> {
    match name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.to_lowercase()),
    }
}

/// Ids for the sources: labels in small letters, numbered where they repeat.
fn source_entries(sources: &[(Arc<dyn Source>, Arc<SourceListing>)]) -> Vec<Arc<SourceEntry>> {
    let mut used: HashSet<String> = HashSet::new();
    let mut entries = Vec::with_capacity(sources.len());
    for (source, _) in sources {
        let label = id_of(&source.info().label);
        let numbered = (2..).map(|number| format!("{label}-{number}"));
        let mut candidates = std::iter::once(label.clone()).chain(numbered);
        let id = candidates.find(|id| !used.contains(id)).unwrap_or(label.clone());
        used.insert(id.clone());
        entries.push(Arc::new(SourceEntry { id, source: Arc::clone(source) }));
    }
    entries
}

/// Picks the skill that a name leads to, of several in the order of sources and paths.
fn decide(
    mut group: Vec<CatalogSkill>,
    precedence: Precedence,
    skills: &mut Vec<CatalogSkill>,
    ambiguous: &mut Vec<CatalogSkill>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    // The best comes first: what is believed before what is not, then by the order of sources.
    if precedence != Precedence::FirstWins {
        group.reverse();
    }
    group.sort_by_key(|skill| std::cmp::Reverse(skill.trust()));
    // The same file by two ways is one skill.
    let mut files = HashSet::new();
    group.retain(|skill| skill.found.identity == (0, 0) || files.insert(skill.found.identity));
    if group.len() == 1 {
        skills.append(&mut group);
        return;
    }
    let mut sources = HashSet::new();
    for skill in &mut group {
        skill.is_second = !sources.insert(skill.source.id.clone());
    }
    let believed = group[0].trust();
    let rivals = group.iter().filter(|skill| skill.trust() == believed).count();
    if precedence == Precedence::RefuseAmbiguous && rivals > 1 {
        let names: Vec<String> = group.iter().map(CatalogSkill::qualified_name).collect();
        for skill in &group {
            let message = format!(
                "The name '{}' is ambiguous and refused: {}",
                skill.name(),
                names.join(", ")
            );
            let help = "use one of these names, rename a skill, or set another precedence";
            diagnostics.push(about(skill, Code::AmbiguousName, Level::Error, message, help));
        }
        ambiguous.append(&mut group);
        return;
    }
    let mut winner = group.remove(0);
    for skill in &group {
        let message = format!(
            "Skill '{}' of source '{}' is hidden by {}",
            skill.name(),
            skill.source.id,
            winner.path().display()
        );
        let help = match skill.trust() < winner.trust() {
            true => "an untrusted source never hides a trusted one; rename the skill",
            false => "rename one of the two, or remove it",
        };
        let help = format!("{help}; it can be reached as '{}'", skill.qualified_name());
        diagnostics.push(about(skill, Code::ShadowedSkill, Level::Warning, message, &help));
    }
    winner.shadows = group;
    skills.push(winner);
}

fn about(
    skill: &CatalogSkill,
    code: Code,
    level: Level,
    message: String,
    help: &str,
) -> Diagnostic {
    Diagnostic::new(code, level, message)
        .with_path(skill.path().display().to_string())
        .with_help(help)
}
