//! What a model is sent: the listing, the expanded conversation, the tools.

mod budget;
mod changes;
mod listing;
mod materialize;

pub use budget::{Budget, InvalidBudget, TokenCounter, estimate_tokens};
pub(crate) use budget::{default_counter, least_characters};
pub use listing::{
    ListedSkill, Listing, ListingMode, ListingSlot, MAX_DESCRIPTION, MAX_WARNING, MAX_WARNINGS,
};
pub(crate) use materialize::scope_of;
pub use materialize::{Placement, Prompt, PromptRequest};
