//! What a session is told when the catalog changes under it.

use std::collections::{HashMap, HashSet};

use prowess_catalog::CatalogSkill;
use serde_json::json;

use super::fill::ListingRequest;
use super::listing::ListingMode;
use super::plain::escape;
use super::{Budget, scope_of};
use crate::message::Message;
use crate::runtime::{Inner, SkillView};
use crate::session::{AgentName, SessionKey, SessionState};
use crate::turn::RuntimeError;

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
        let scope = scope_of(session, agent);
        if self.settings.listing.mode == ListingMode::Live || told == self.told(view, &scope) {
            return Ok(None);
        }
        self.keep(self.told_manifest(view, &scope).1.into_bytes()).await?;
        let before = self.kept(told.digest).await?;
        let before = before.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let before: HashMap<&str, &str> =
            before.lines().filter_map(|line| line.split_once('\0')).collect();
        let skills = view.snapshot.skills().iter();
        let now: Vec<&CatalogSkill> = skills.filter(|it| self.is_told(&scope, it)).collect();
        let is_new = |skill: &&&CatalogSkill| {
            before.get(skill.name()) != Some(&skill.found().digest.hex().as_str())
        };
        let new: Vec<&CatalogSkill> = now.iter().filter(is_new).copied().collect();
        let names: HashSet<&str> = now.iter().map(|skill| skill.name()).collect();
        let gone = before.keys().filter(|name| !names.contains(*name));
        let mut removed: Vec<String> = gone.map(|name| escape(name)).collect();
        removed.sort_unstable();
        let request = ListingRequest {
            view,
            scope: &scope,
            visibilities: &self.visibilities,
            dialect: &self.dialect,
            settings: &self.settings.listing,
            budget: quarter(self.settings.listing.budget),
            counter: self.counter.as_ref(),
            live: None,
        };
        let (entries, left_out) = request.entries_of(&new);
        let most = self.settings.max_listed_names;
        let more_removed = removed.len().saturating_sub(most);
        removed.truncate(most);
        let data = json!({
            "entries": entries, "left_out": left_out, "removed": removed, "more_removed": more_removed,
        });
        Ok(Some(Message::system(self.dialect.block("catalog_note", &data))))
    }
}

fn quarter(budget: Budget) -> Budget {
    match budget {
        Budget::Characters(amount) => Budget::Characters(amount / 4),
        Budget::Tokens(amount) => Budget::Tokens(amount / 4),
    }
}
