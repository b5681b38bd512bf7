//! What can be seen of a conversation from outside.

use std::borrow::Cow;

use prowess_catalog::CatalogSkill;
use prowess_runtime::{Message, PromptRequest, Role, Visibility};

use super::complete::Names;
use super::failure::Failure;
use super::people::is_for_people;
use super::talk::{Talk, UNFINISHED};
use super::views::{Cost, Mark, SkillRow, Who, again, short};
use crate::commands::prompt::message_text;
use crate::report::counted;
use crate::terminal::safe_line;
use crate::tokens;
use crate::words::cut;

impl Talk {
    /// The skills as they are listed.
    pub(super) async fn rows(&self) -> Result<Vec<SkillRow>, Failure> {
        let (session, agent) = (&self.session, self.agent.name());
        let state = self.runtime().state(session, agent).await?;
        let row = |skill: &CatalogSkill| {
            let frontmatter = &skill.found().frontmatter;
            let is_told = self.runtime().visibility(session, agent, skill) < Visibility::ManualOnly;
            SkillRow {
                name: skill.name().to_owned(),
                hint: frontmatter.argument_hint().map(Cow::into_owned),
                description: skill.found().description().to_owned(),
                mark: match state.is_loaded(skill.name()) {
                    _ if self.loads.iter().any(|load| load.skill == skill.name()) => Mark::Coming,
                    true => Mark::Loaded,
                    false => Mark::No,
                },
                who: match (is_for_people(skill), is_told) {
                    (true, true) => Who::Everybody,
                    (true, false) => Who::People,
                    (false, true) => Who::Model,
                    (false, false) => Who::Nobody,
                },
            }
        };
        Ok(self.snapshot().await.skills().iter().map(row).collect())
    }

    /// What the next request costs.
    pub(super) async fn cost(&self) -> Result<Cost, Failure> {
        let (session, agent) = (&self.session, self.agent.name());
        let request = PromptRequest::new().with_system(&self.choice.system);
        let prompt = self.runtime().prompt(session, agent, request).await?;
        let listing = self.runtime().listing(session, agent).await?.text;
        let system = prompt.system.replacen(&listing, "", 1);
        let mut tools = prompt.tools.to_vec();
        for tool in &mut tools {
            tool.description = tool.description.replacen(&listing, "", 1);
        }
        let is_there = system.len() < prompt.system.len()
            || tools.iter().zip(prompt.tools.iter()).any(|(one, other)| one != other);
        let declared = serde_json::to_string(&tools).unwrap_or_default();
        Ok(Cost {
            system: tokens::count(&system),
            listing: if is_there { tokens::count(&listing) } else { 0 },
            tools: tokens::count(&declared),
            tool_count: tools.len(),
            messages: prompt.messages.iter().map(|it| tokens::count(&message_text(it))).sum(),
            message_count: prompt.messages.len(),
            coming: self.loads.len(),
        })
    }

    /// What can be completed.
    pub(super) async fn names(&self) -> Names {
        let rows = self.rows().await.unwrap_or_default();
        let sessions = self.runtime().sessions().list().await.unwrap_or_default();
        let is_startable = |row: &&SkillRow| matches!(row.who, Who::Everybody | Who::People);
        let skills = rows.iter().filter(is_startable);
        Names {
            skills: skills.map(|row| (row.name.clone(), row.hint.clone())).collect(),
            loaded: rows
                .iter()
                .filter(|row| row.mark != Mark::No)
                .map(|row| row.name.clone())
                .collect(),
            sessions: sessions.iter().map(|session| short(&session.key)).collect(),
        }
    }

    /// What somebody sees who comes to it.
    pub(super) async fn greeting(&self, width: usize) -> Result<String, Failure> {
        let skills = counted(self.snapshot().await.skills().len(), "skill");
        let model = safe_line(&self.choice.name.to_string());
        let messages = self.messages().await?;
        let mut lines = vec![
            format!("Prowess with {model} and {skills}. /help shows what can be typed."),
            format!("Session {}", short(&self.session)),
        ];
        let last = |role: Role| {
            let is_said = |it: &&Message| it.role == role && it.given.is_none();
            messages.iter().rev().filter(is_said).map(Message::text).find(|it| !it.is_empty())
        };
        for (who, said) in [("you", last(Role::User)), ("model", last(Role::Assistant))] {
            if let Some(said) = said {
                lines.push(cut(&format!("  {who:6}{}", safe_line(&said)), width));
            }
        }
        if self.is_unfinished().await? {
            lines.push(UNFINISHED.to_owned());
        }
        Ok(lines.join("\n"))
    }

    /// What somebody is told who leaves; nothing if nothing was said.
    pub(super) async fn farewell(&self) -> Option<String> {
        self.runtime().sessions().get(&self.session).await.ok()??;
        Some(format!("The session is kept: `{}` goes on.", again(&self.session)))
    }
}
