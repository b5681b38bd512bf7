//! What a session is told when the catalog changes under it.

use std::collections::HashMap;

use prowess_catalog::CatalogSkill;
use serde_json::json;

use super::listing::{ListingMode, ListingRequest};
use super::{Budget, scope_of};
use crate::message::Message;
use crate::runtime::{Inner, SkillView};
use crate::session::{AgentName, SessionKey, SessionState};
use crate::turn::RuntimeError;
use crate::visibility::Visibility;

impl Inner {
    /// A note on what has changed since the model was told which skills there are. A listing that
    /// is written anew for every request needs none.
    pub(crate) async fn changes_of_catalog(
        &self,
        state: &SessionState,
        view: &SkillView,
        session: &SessionKey,
        agent: &AgentName,
    ) -> Result<Option<Message>, RuntimeError> {
        let Some(told) = state.told else { return Ok(None) };
        if self.settings.listing.mode == ListingMode::Live || told == view.known() {
            return Ok(None);
        }
        self.keep(crate::session::KnownSkills::manifest(&view.snapshot).into_bytes()).await?;
        let before = self.kept(told.digest).await?;
        let before = before.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let before: HashMap<&str, &str> =
            before.lines().filter_map(|line| line.split_once('\0')).collect();
        let scope = scope_of(session, agent);
        let is_new = |skill: &&CatalogSkill| {
            let hex = skill.found().digest.hex();
            before.get(skill.name()) != Some(&hex.as_str())
                && self.visibilities.of(&scope, skill) < Visibility::ManualOnly
        };
        let new: Vec<&CatalogSkill> = view.snapshot.skills().iter().filter(is_new).collect();
        let mut removed: Vec<&str> =
            before.keys().copied().filter(|name| view.snapshot.get(name).is_err()).collect();
        removed.sort_unstable();
        let request = ListingRequest {
            view,
            scope: &scope,
            visibilities: &self.visibilities,
            texts: &self.texts,
            budget: quarter(self.settings.listing.budget),
            counter: self.counter.as_ref(),
            live: None,
        };
        let entries = request.entries_of(&new);
        let most = self.settings.max_listed_names;
        let more_removed = removed.len().saturating_sub(most);
        removed.truncate(most);
        let data = json!({"entries": entries, "removed": removed, "more_removed": more_removed});
        Ok(Some(Message::system(self.texts.block("catalog_note", &data))))
    }
}

fn quarter(budget: Budget) -> Budget {
    match budget {
        Budget::Characters(amount) => Budget::Characters(amount / 4),
        Budget::Tokens(amount) => Budget::Tokens(amount / 4),
    }
}
