//! What a model is sent: the listing, the expanded conversation, the tools.

mod budget;
mod changes;
mod compact;
mod conversation;
mod fill;
mod listing;
mod materialize;
mod plain;
mod request;

pub use budget::{Budget, InvalidBudget, TokenCounter, estimate_tokens};
pub(crate) use budget::{default_counter, least_characters};
pub use compact::Compactable;
pub use conversation::Conversation;
pub use listing::{
    ListedSkill, Listing, ListingMode, ListingOrder, ListingRest, ListingSlot, MAX_DESCRIPTION,
    MAX_WARNING, MAX_WARNINGS, ManualOnly,
};
pub(crate) use request::scope_of;
pub use request::{Placement, Prompt, PromptRequest};
