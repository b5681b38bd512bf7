//! Level 1: names and descriptions that fit a budget.

use std::collections::BTreeSet;

use prowess_catalog::{CatalogSkill, Scope};
use prowess_format::Level;
use serde_json::{Value, json};

use super::budget::{Budget, TokenCounter};
use super::listing::{
    ListedSkill, Listing, ListingOrder, ListingRest, MAX_DESCRIPTION, MAX_WARNING, MAX_WARNINGS,
    ManualOnly,
};
use super::plain::{cut, escape, one_line, resource_summary, revealed};
use crate::dialect::Dialect;
use crate::runtime::{Brief, SkillView};
use crate::session::SessionState;
use crate::settings::ListingSettings;
use crate::visibility::{Visibilities, Visibility};

/// What a listing is made of.
pub(crate) struct ListingRequest<'a> {
    pub(crate) view: &'a SkillView,
    pub(crate) scope: &'a Scope,
    pub(crate) visibilities: &'a Visibilities,
    pub(crate) dialect: &'a Dialect,
    pub(crate) settings: &'a ListingSettings,
    pub(crate) budget: Budget,
    pub(crate) counter: &'a dyn TokenCounter,
    /// Whose loaded skills are marked.
    pub(crate) live: Option<&'a SessionState>,
}

impl ListingRequest<'_> {
    /// Writes the listing. The same inputs give the same bytes; the entries never cost more than
    /// the budget, loaded skills of a live listing aside; who is left out is counted.
    pub(crate) fn write(&self) -> Listing {
        let loaded: BTreeSet<&str> =
            self.live.map(|state| state.loaded_names().into_iter().collect()).unwrap_or_default();
        let mut listing = Listing { budget: self.budget.amount(), ..Listing::default() };
        let mut lines: Vec<String> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut others: Vec<Candidate<'_>> = Vec::new();
        for (skill, brief) in self.ordered() {
            match self.visibilities.with_own(self.scope, skill, brief.own) {
                _ if !loaded.is_empty() && loaded.contains(skill.name()) => {
                    let line = self.entry(skill, Mark::Loaded);
                    let cost = self.cost_of_line(&line);
                    lines.push(line);
                    listing.shown.push(ListedSkill { name: skill.name().to_owned(), cost });
                }
                Visibility::ManualOnly if self.settings.manual_only == ManualOnly::Mark => {
                    let is_manual = true;
                    others.push(Candidate { skill, least: brief.least, is_manual, entry: None });
                }
                Visibility::Listed => {
                    let is_manual = false;
                    others.push(Candidate { skill, least: brief.least, is_manual, entry: None });
                }
                Visibility::NameOnly => names.push(skill.name()),
                Visibility::ManualOnly | Visibility::Hidden => {}
            }
        }
        listing.by_choice = names.len();
        let Entries { filled, rest, fit } = self.entries(&mut others, names);
        let is_counted = filled.is_counted;
        lines.extend(filled.lines);
        listing.shown.extend(filled.shown);
        listing.cost = filled.cost;
        let (named, counted) = rest.split_at(fit);
        listing.named = named.iter().map(|name| (*name).to_owned()).collect();
        listing.counted = counted.iter().map(|name| (*name).to_owned()).collect();
        listing.text = self.frame(&lines, if is_counted { 0 } else { rest.len() });
        listing
    }

    /// The skills and what is known of them, in the order of the listing.
    fn ordered(&self) -> Vec<(&CatalogSkill, &Brief)> {
        let skills = self.view.snapshot.skills().iter();
        let mut skills: Vec<_> = skills.zip(&self.view.briefs).collect();
        if self.settings.order == ListingOrder::Discovery {
            let sources = self.view.snapshot.sources();
            let place = |skill: &CatalogSkill| {
                let at = sources.iter().position(|it| it.id == *skill.source_id());
                (at, skill.found().folder.to_path_buf())
            };
            let first = |skill: &CatalogSkill| {
                std::iter::once(skill).chain(skill.shadows()).map(place).min()
            };
            skills.sort_by_cached_key(|(skill, _)| first(skill));
        }
        skills
    }

    /// Entries of some skills within the budget, the names of the rest, and the number of those
    /// who are not even named.
    pub(crate) fn entries_of(&self, skills: &[&CatalogSkill]) -> (String, usize) {
        let is_listed =
            |skill: &&CatalogSkill| self.visibilities.of(self.scope, skill) == Visibility::Listed;
        let (listed, others): (Vec<&CatalogSkill>, Vec<_>) =
            skills.iter().copied().partition(is_listed);
        let mut listed: Vec<Candidate<'_>> = listed.into_iter().map(Candidate::new).collect();
        let names = others.into_iter().map(CatalogSkill::name).collect();
        let Entries { filled, rest, .. } = self.entries(&mut listed, names);
        (filled.lines.join("\n"), if filled.is_counted { 0 } else { rest.len() })
    }

    /// As many entries as fit, and the line for the rest and for those who want only their name
    /// told. There are no entries without room for that line.
    fn entries<'s>(&self, skills: &mut [Candidate<'s>], names: Vec<&'s str>) -> Entries<'s> {
        let budget = self.budget.amount();
        if self.settings.rest == ListingRest::Counted {
            return self.counted(skills, names);
        }
        let mut filled = self.fill(skills, budget, Overflow::Stop);
        // If not everything fits, names of the rest may take an eighth.
        if !filled.dropped.is_empty() || !names.is_empty() {
            let data = json!({"names": [], "more": skills.len() + names.len()});
            let least = self.cost_of_line(&self.dialect.block("listing_tail", &data));
            let room = budget.saturating_sub(least.max(budget / 8));
            filled = self.fill(skills, room, Overflow::PassOver);
        }
        let mut rest = names;
        let is_sorted = rest.is_empty();
        rest.extend(std::mem::take(&mut filled.dropped));
        if !is_sorted {
            rest.sort_unstable();
        }
        let mut fit = 0;
        filled.is_counted = true;
        if !rest.is_empty() {
            let tail;
            (tail, fit) = self.tail(&rest, budget.saturating_sub(filled.cost));
            filled.is_counted = !tail.is_empty();
            filled.cost += self.cost_of_line(&tail);
            filled.lines.extend(Some(tail).filter(|tail| !tail.is_empty()));
        }
        Entries { filled, rest, fit }
    }

    /// As many entries as fit, and the number of the rest, which is no part of the budget.
    fn counted<'s>(&self, skills: &mut [Candidate<'s>], names: Vec<&'s str>) -> Entries<'s> {
        let mut filled = self.fill(skills, self.budget.amount(), Overflow::PassOver);
        let (fit, mut dropped) = (names.len(), std::mem::take(&mut filled.dropped));
        dropped.sort_unstable();
        let mut rest = names;
        rest.extend(dropped);
        if !rest.is_empty() {
            let names: Vec<String> = rest[..fit].iter().map(|name| escape(name)).collect();
            let data = json!({"names": names, "more": rest.len() - fit});
            filled.lines.push(self.dialect.block("listing_tail", &data));
        }
        filled.is_counted = true;
        Entries { filled, rest, fit }
    }

    /// What a line costs, with what separates it from the next one if that is no gift.
    fn cost_of_line(&self, line: &str) -> usize {
        let separator = usize::from(self.settings.rest == ListingRest::Named);
        match line.is_empty() {
            true => 0,
            false => self.budget.cost(line, self.counter) + separator,
        }
    }

    /// As many entries as fit, in order; who does not fit is passed over.
    fn fill<'s>(
        &self,
        skills: &mut [Candidate<'s>],
        room: usize,
        overflow: Overflow,
    ) -> Filled<'s> {
        let mut filled = Filled::default();
        for Candidate { skill, least, is_manual, entry } in skills {
            if overflow == Overflow::Stop && !filled.dropped.is_empty() {
                break;
            }
            let left = room.saturating_sub(filled.cost);
            if self.budget.surely_exceeds(*least, left) {
                filled.dropped.push(skill.name());
                continue;
            }
            let (line, cost) = entry.get_or_insert_with(|| {
                let line = self.entry(skill, if *is_manual { Mark::Manual } else { Mark::None });
                let cost = self.cost_of_line(&line);
                (line, cost)
            });
            if *cost > left {
                filled.dropped.push(skill.name());
                continue;
            }
            filled.cost += *cost;
            filled.lines.push(line.clone());
            filled.shown.push(ListedSkill { name: skill.name().to_owned(), cost: *cost });
        }
        filled
    }

    /// The line for those who are not shown: as many names as fit, and the number of the others.
    fn tail(&self, rest: &[&str], room: usize) -> (String, usize) {
        let write = |fit: usize| {
            let names: Vec<String> = rest[..fit].iter().map(|name| escape(name)).collect();
            let data = json!({"names": names, "more": rest.len() - fit});
            self.dialect.block("listing_tail", &data)
        };
        let fits = |line: &str| self.cost_of_line(line) <= room;
        // More names than this cannot fit.
        let mut least = 0;
        let most = rest
            .iter()
            .take_while(|name| {
                least += match self.budget {
                    Budget::Characters(_) => name.chars().count(),
                    Budget::Tokens(_) => 1,
                };
                least <= room
            })
            .count();
        let whole = write(most);
        if fits(&whole) {
            return (whole, most);
        }
        // Names cost about the same, so that the place is found by halving.
        let (mut low, mut high) = (0, most);
        while high - low > 1 {
            let middle = (low + high) / 2;
            match fits(&write(middle)) {
                true => low = middle,
                false => high = middle,
            }
        }
        let line = write(low);
        match fits(&line) {
            true => (line, low),
            false => (String::new(), 0),
        }
    }

    fn entry(&self, skill: &CatalogSkill, mark: Mark) -> String {
        let frontmatter = &skill.found().frontmatter;
        let mut annotations = Vec::new();
        for (label, value) in
            [("License", frontmatter.license()), ("Compatibility", frontmatter.compatibility())]
        {
            annotations.extend(value.map(|value| format!("{label}: {}", one_line(value))));
        }
        let tools: Vec<String> = frontmatter
            .allowed_tools()
            .unwrap_or_default()
            .iter()
            .map(|tool| one_line(&tool.to_string()))
            .collect();
        let loaded = self.live.and_then(|state| state.loaded(skill.name()));
        let resources = loaded.map(|loaded| resource_summary(&loaded.resources));
        let hint = frontmatter.argument_hint().map(|hint| one_line(&hint));
        let data = json!({
            "name": escape(skill.name()),
            "title": frontmatter.title().map(one_line),
            "description": cut(&one_line(skill.found().description()), MAX_DESCRIPTION),
            "annotations": annotations,
            "tools": tools,
            "argument_hint": hint,
            "loaded": mark == Mark::Loaded,
            "manual": mark == Mark::Manual,
            "resources": resources.filter(|summary| !summary.is_empty()),
        });
        self.dialect.block("listing_entry", &data)
    }

    /// Puts the entries between what stands before and after them, and says how many skills they
    /// have not even room to count.
    fn frame(&self, lines: &[String], left_out: usize) -> String {
        let sources = self.view.snapshot.sources();
        let last = sources.len().saturating_sub(1);
        let locations: Vec<Value> = sources
            .iter()
            .enumerate()
            .map(|(at, source)| {
                let info = source.info();
                json!({
                    "label": one_line(&info.label),
                    "path": one_line(&info.location),
                    "higher": at == last && last > 0,
                })
            })
            .collect();
        let (warnings, more) = self.warnings();
        let data = json!({
            "entries": lines.join("\n"),
            "loaded": self.live.map(SessionState::loaded_names).unwrap_or_default(),
            "left_out": left_out,
            "locations": locations,
            "warnings": warnings,
            "more_warnings": more,
        });
        self.dialect.block("listing", &data)
    }

    /// What went wrong on the way here, as data that nobody shall follow.
    fn warnings(&self) -> (Vec<String>, usize) {
        let errors = self.view.snapshot.diagnostics().iter().filter(|it| it.level == Level::Error);
        let all: Vec<String> = errors
            .map(|diagnostic| {
                let path = diagnostic.path.as_deref().unwrap_or_default();
                let text = revealed(&format!("{path}: {}", diagnostic.message));
                escape(&Value::String(cut(&text, MAX_WARNING)).to_string())
            })
            .collect();
        let more = all.len().saturating_sub(MAX_WARNINGS);
        (all.into_iter().take(MAX_WARNINGS).collect(), more)
    }
}

/// A skill that wants to be listed.
struct Candidate<'s> {
    skill: &'s CatalogSkill,
    /// The least number of characters of its entry.
    least: u32,
    /// Whether only people can load it.
    is_manual: bool,
    /// Its entry and what it costs, once somebody has written it.
    entry: Option<(String, usize)>,
}

impl<'s> Candidate<'s> {
    fn new(skill: &'s CatalogSkill) -> Self {
        Self { skill, least: 0, is_manual: false, entry: None }
    }
}

/// What an entry says besides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Loaded,
    Manual,
}

/// What happens when an entry does not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    /// That is all there is to know.
    Stop,
    /// It is passed over; the next one may fit.
    PassOver,
}

/// What is said of some skills.
struct Entries<'s> {
    filled: Filled<'s>,
    /// Who is not there with everything.
    rest: Vec<&'s str>,
    /// So many of them are named.
    fit: usize,
}

#[derive(Default)]
struct Filled<'s> {
    /// Whether everybody is shown, named or counted.
    is_counted: bool,
    lines: Vec<String>,
    shown: Vec<ListedSkill>,
    dropped: Vec<&'s str>,
    cost: usize,
}
