//! Which skills of a registry fit a query, and which part of them is meant.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::registry::Shelved;
use crate::version::{About, Origin, SkillId, WaitingSkill};

/// Which skills, and which part of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SkillQuery {
    /// Their id, title, description or category contains this, in whichever case.
    pub text: Option<String>,
    /// They are of this category.
    pub category: Option<String>,
    /// They are of this origin.
    pub origin: Option<Origin>,
    /// They are used, or wait.
    pub status: SkillStatus,
    /// Their ids come after this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// Whether skills are used, or wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SkillStatus {
    /// A version of them is used.
    #[default]
    Used,
    /// A version of them waits to be activated, whether another one is used or none.
    Waiting,
    /// One of both.
    Any,
}

/// A skill of a part.
#[derive(Clone, Debug)]
pub enum OnShelf {
    /// A version of it is used.
    Used(Arc<Shelved>),
    /// None is, and one waits.
    Waiting(Arc<WaitingSkill>),
}

impl OnShelf {
    /// The id of the skill.
    pub fn id(&self) -> &SkillId {
        match self {
            Self::Used(shelved) => &shelved.skill.id,
            Self::Waiting(waiting) => &waiting.id,
        }
    }
}

/// A part of the skills, and how many there are.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SkillPage {
    /// This part, in the order of ids.
    pub skills: Vec<OnShelf>,
    /// How many fit the query.
    pub total: usize,
    /// Whether more follow.
    pub has_more: bool,
}

/// The skills that fit.
pub(crate) fn find(
    used: &BTreeMap<SkillId, Arc<Shelved>>,
    waiting: &BTreeMap<SkillId, Arc<WaitingSkill>>,
    query: &SkillQuery,
) -> SkillPage {
    let filter = Filter::new(query);
    let mut page = SkillPage::default();
    let mut take = |it: InShelf<'_>| match page.skills.len() < query.limit {
        true => page.skills.push(it.owned()),
        false => page.has_more = true,
    };
    if filter.is_plain() {
        let behind = query.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (behind, Bound::Unbounded);
        let takes_waiting = filter.takes_waiting();
        let some = waiting.range::<str, _>(range).filter(|_| takes_waiting);
        let all = merged(used.range::<str, _>(range), some);
        all.take(query.limit.saturating_add(1)).for_each(take);
        page.total = used.len() + if takes_waiting { waiting.len() } else { 0 };
        return page;
    }
    let used = used.iter().filter(|(_, it)| filter.fits(it));
    let waiting = waiting.iter().filter(|(_, it)| filter.fits_waiting(it));
    let mut total = 0;
    for it in merged(used, waiting) {
        total += 1;
        if query.after.as_deref().is_none_or(|after| it.id().as_str() > after) {
            take(it);
        }
    }
    page.total = total;
    page
}

/// What a filter looks at.
pub(crate) fn haystack(id: &SkillId, about: &About) -> String {
    [id.as_str(), &about.title, &about.description, &about.category].join("\n").to_lowercase()
}

/// Which skills fit a query.
struct Filter<'a> {
    query: &'a SkillQuery,
    text: Option<memchr::memmem::Finder<'static>>,
}

impl<'a> Filter<'a> {
    fn new(query: &'a SkillQuery) -> Self {
        let text = query.text.as_ref().map(|text| text.to_lowercase());
        let text = text.map(|text| memchr::memmem::Finder::new(&text).into_owned());
        Self { query, text }
    }

    /// Whether all skills fit of which a version is used.
    fn is_plain(&self) -> bool {
        let SkillQuery { text, category, origin, status, .. } = self.query;
        let is_plain = text.is_none() && category.is_none() && origin.is_none();
        is_plain && *status != SkillStatus::Waiting
    }

    /// Whether skills fit of which no version is used.
    fn takes_waiting(&self) -> bool {
        self.query.status != SkillStatus::Used
    }

    fn fits(&self, it: &Shelved) -> bool {
        let is_meant = self.query.status != SkillStatus::Waiting || it.skill.pending.is_some();
        is_meant && self.fits_about(it.skill.origin, &it.skill.active.about, || &it.haystack)
    }

    fn fits_waiting(&self, it: &WaitingSkill) -> bool {
        let about = &it.version.about;
        self.takes_waiting() && self.fits_about(it.origin, about, || haystack(&it.id, about))
    }

    fn fits_about<T: AsRef<str>>(
        &self,
        origin: Origin,
        about: &About,
        haystack: impl FnOnce() -> T,
    ) -> bool {
        self.query.origin.is_none_or(|it_is| origin == it_is)
            && self.query.category.as_ref().is_none_or(|it_is| about.category == *it_is)
            && self
                .text
                .as_ref()
                .is_none_or(|text| text.find(haystack().as_ref().as_bytes()).is_some())
    }
}

/// A skill where it is.
enum InShelf<'a> {
    Used(&'a Arc<Shelved>),
    Waiting(&'a Arc<WaitingSkill>),
}

impl InShelf<'_> {
    fn id(&self) -> &SkillId {
        match self {
            Self::Used(shelved) => &shelved.skill.id,
            Self::Waiting(waiting) => &waiting.id,
        }
    }

    fn owned(&self) -> OnShelf {
        match self {
            Self::Used(shelved) => OnShelf::Used(Arc::clone(shelved)),
            Self::Waiting(waiting) => OnShelf::Waiting(Arc::clone(waiting)),
        }
    }
}

/// Both in the order of their ids.
fn merged<'a>(
    used: impl Iterator<Item = (&'a SkillId, &'a Arc<Shelved>)>,
    waiting: impl Iterator<Item = (&'a SkillId, &'a Arc<WaitingSkill>)>,
) -> impl Iterator<Item = InShelf<'a>> {
    let (mut used, mut waiting) = (used.peekable(), waiting.peekable());
    std::iter::from_fn(move || {
        let is_used_next = match (used.peek(), waiting.peek()) {
            (Some((used, _)), Some((waiting, _))) => used < waiting,
            (next, _) => next.is_some(),
        };
        match is_used_next {
            true => used.next().map(|(_, it)| InShelf::Used(it)),
            false => waiting.next().map(|(_, it)| InShelf::Waiting(it)),
        }
    })
}
