//! Level 1: what a listing is.

use serde::{Deserialize, Serialize};

/// Whether a listing changes during a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListingMode {
    /// It is frozen when the session begins; changes of the catalog become a note.
    #[default]
    Stable,
    /// It is written anew for every request: what is loaded is marked, comes first, and is exempt
    /// from the budget.
    Live,
}

/// Where a listing stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListingSlot {
    /// In the system prompt.
    #[default]
    SystemPrompt,
    /// In the description of the load tool.
    ToolDescription,
}

/// Who comes first in a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListingOrder {
    /// By name.
    #[default]
    Name,
    /// As they were found: source by source, lowest precedence first, folder by folder. A skill
    /// that hides another stands in its place.
    Discovery,
}

/// What is said of skills that do not fit into a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListingRest {
    /// Their names, as far as an eighth of the budget goes, and how many more there are.
    #[default]
    Named,
    /// How many there are, in a line outside of the budget, which is then all for entries.
    Counted,
}

/// What a listing says of skills that only people can load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManualOnly {
    /// Nothing.
    #[default]
    Hide,
    /// What it says of others, with a mark.
    Mark,
}

/// The most characters of a description in a listing; the rest is cut, and that is marked.
pub const MAX_DESCRIPTION: usize = 1_024;
/// The most warnings about loading in a listing; the rest is counted.
pub const MAX_WARNINGS: usize = 20;
/// The most characters of one warning.
pub const MAX_WARNING: usize = 1_000;

/// A listing, and what did not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The text.
    pub text: String,
    /// Who is in it with everything, in its order, and what each costs.
    pub shown: Vec<ListedSkill>,
    /// Who is in it by name alone.
    pub named: Vec<String>,
    /// Who is only counted.
    pub counted: Vec<String>,
    /// What the entries cost together.
    pub cost: usize,
    /// What they may cost.
    pub budget: usize,
    /// How many are there by name alone because somebody wants it so.
    pub(crate) by_choice: usize,
}

impl Listing {
    /// How many skills are not in it with everything, because it may not cost more.
    pub fn excluded(&self) -> usize {
        self.named.len() + self.counted.len() - self.by_choice
    }
}

/// A skill in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedSkill {
    /// Its name.
    pub name: String,
    /// What its entry costs.
    pub cost: usize,
}
