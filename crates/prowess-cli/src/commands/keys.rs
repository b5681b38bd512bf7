//! `prowess keys`

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anstream::stdout;
use jiff::Timestamp;
use prowess_store::{Actor, ApiKey, KeyStore, Role};
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::{CatalogArgs, KeysCommand};
use crate::finder::{Finder, Form};
use crate::report;
use crate::store::StorePlace;
use crate::terminal::safe_line;

pub(crate) fn run(command: &KeysCommand) -> anyhow::Result<Outcome> {
    let ring = Ring::open(Form::of_flag(command.json()))?;
    match command {
        KeysCommand::Create { name, role, expires, .. } => ring.create(name, *role, *expires),
        KeysCommand::List { .. } => ring.list(),
        KeysCommand::Revoke { name, .. } => ring.revoke(name),
    }
}

/// The keys of the store.
struct Ring {
    finder: Finder,
    keys: Arc<dyn KeyStore>,
    form: Form,
}

impl Ring {
    fn open(form: Form) -> anyhow::Result<Self> {
        let finder = Finder::new(&CatalogArgs { sources: Vec::new(), no_default_roots: true })?;
        let open = finder.wait(StorePlace::find(&finder)?.open())?;
        Ok(Self { finder, keys: open.store.keys, form })
    }

    fn create(&self, name: &str, role: Role, lasts: Option<Duration>) -> anyhow::Result<Outcome> {
        let end = |lasts| Timestamp::now().checked_add(lasts).unwrap_or(Timestamp::MAX);
        let expires = lasts.map(end);
        let actor = Actor::local();
        let (key, secret) = self.finder.wait(self.keys.create(name, role, expires, &actor))?;
        if self.form == Form::Json {
            let mut value = described(&key)?;
            value["key"] = json!(secret.expose());
            report::print_json(&value)?;
            return Ok(Outcome::Ok);
        }
        anstream::println!("{}", secret.expose());
        anstream::eprintln!(
            "Key '{}' with the role {}{}. This is the only time that it is shown.",
            safe_line(&key.name),
            key.role,
            key.expires.map(|time| format!(", until {}", day(time))).unwrap_or_default(),
        );
        Ok(Outcome::Ok)
    }

    fn list(&self) -> anyhow::Result<Outcome> {
        let keys = self.finder.wait(self.keys.list())?;
        if self.form == Form::Json {
            let keys = keys.iter().map(described).collect::<anyhow::Result<Vec<_>>>()?;
            report::print_json(&json!({"keys": keys}))?;
            return Ok(Outcome::Ok);
        }
        if keys.is_empty() {
            anstream::eprintln!("No keys. `prowess keys create NAME --role ROLE` makes one.");
            return Ok(Outcome::Ok);
        }
        let width = keys.iter().map(|key| key.name.len()).max().unwrap_or_default().max(4);
        let mut out = stdout().lock();
        writeln!(out, "{:width$}  {:9}  {:12}  {:20}  STATE", "NAME", "ROLE", "ID", "MADE")?;
        for key in &keys {
            let (name, role) = (safe_line(&key.name), key.role.as_str());
            let (made, state) = (day(key.created), state(key, Timestamp::now()));
            writeln!(out, "{name:width$}  {role:9}  {:12}  {made:20}  {state}", key.id)?;
        }
        Ok(Outcome::Ok)
    }

    fn revoke(&self, name: &str) -> anyhow::Result<Outcome> {
        let key = self.finder.wait(self.keys.revoke(name, &Actor::local()))?;
        match self.form {
            Form::Json => report::print_json(&described(&key)?)?,
            Form::Text => {
                anstream::println!("Key '{}' opens nothing any more", safe_line(&key.name));
            }
        }
        Ok(Outcome::Ok)
    }
}

fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn state(key: &ApiKey, now: Timestamp) -> String {
    match (key.revoked, key.expires) {
        (Some(revoked), _) => format!("revoked {}", day(revoked)),
        (None, Some(expires)) if expires <= now => format!("expired {}", day(expires)),
        (None, Some(expires)) => format!("until {}", day(expires)),
        (None, None) => "usable".to_owned(),
    }
}

/// A key for programs.
fn described(key: &ApiKey) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(key)?;
    value["usable"] = json!(key.is_usable(Timestamp::now()));
    Ok(value)
}
