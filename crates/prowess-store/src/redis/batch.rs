//! Changes of the registry that are made together, if what they were decided on is still so.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::link::{Link, Unavailable};
use super::script::{Call, WRITE};
use crate::version::{Actor, SkillId};

/// What is told when a skill was changed.
pub(super) const SKILLS: &str = "skills";

/// Conditions and commands.
pub(super) struct Batch {
    link: Link,
    conditions: Vec<[String; 3]>,
    commands: Vec<Vec<Vec<u8>>>,
    has_changed_skills: bool,
}

impl Batch {
    pub(super) fn new(link: &Link) -> Self {
        Self {
            link: link.clone(),
            conditions: Vec::new(),
            commands: Vec::new(),
            has_changed_skills: false,
        }
    }

    /// Only if this is there; an empty text is nothing.
    pub(super) fn expect(&mut self, part: &str, field: &str, value: &str) {
        self.conditions.push([part.to_owned(), field.to_owned(), value.to_owned()]);
    }

    /// A command on a part of the registry.
    pub(super) fn add(&mut self, name: &str, part: &str, words: &[&[u8]]) {
        let mut command = vec![name.as_bytes().to_vec(), part.as_bytes().to_vec()];
        command.extend(words.iter().map(|word| word.to_vec()));
        self.commands.push(command);
    }

    /// What is kept of a skill.
    pub(super) fn set_row(&mut self, id: &SkillId, row: &str) {
        self.add("HSET", ":skills", &[id.as_str().as_bytes(), row.as_bytes()]);
    }

    /// What is kept of a skill, and of the version that is used.
    pub(super) fn set_skill(&mut self, id: &SkillId, row: &str, active: Option<&str>) {
        self.set_row(id, row);
        let id = id.as_str().as_bytes();
        match active {
            Some(active) => self.add("HSET", ":active", &[id, active.as_bytes()]),
            None => self.add("HDEL", ":active", &[id]),
        }
    }

    /// Writes into the log what is done.
    pub(super) fn note(
        &mut self,
        actor: &Actor,
        action: &str,
        subject: &str,
        detail: &Value,
        now: Timestamp,
    ) {
        let entry = json!({
            "time": now.as_millisecond(),
            "actor": actor,
            "action": action,
            "subject": subject,
            "detail": detail,
        });
        self.add("RPUSH", ":audit", &[entry.to_string().as_bytes()]);
        if action.starts_with("skill.") && subject.parse::<SkillId>().is_ok() {
            self.add("CHANGED", ":changed", &[subject.as_bytes()]);
            self.has_changed_skills = true;
        }
    }

    /// Does all of it, or nothing: says whether the conditions were met.
    pub(super) async fn commit(mut self) -> Result<bool, Unavailable> {
        let names = self.link.names();
        if self.has_changed_skills {
            let words = [names.channel.as_str(), SKILLS];
            let mut command = vec![b"PUBLISH".to_vec()];
            command.extend(words.map(|word| word.as_bytes().to_vec()));
            self.commands.push(command);
        }
        let mut call = Call::new(&WRITE, &names.registry).arg(self.conditions.len());
        for condition in &self.conditions {
            call = call.arg(condition);
        }
        for command in &self.commands {
            call = call.arg(command.len());
            for word in command {
                call = call.arg(word.as_slice());
            }
        }
        self.link.run(&call).await
    }
}
