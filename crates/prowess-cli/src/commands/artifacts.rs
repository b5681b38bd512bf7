//! `prowess artifacts`

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use anstream::stdout;
use anyhow::Context;
use prowess_format::Digest;
use prowess_workspace::{Artifact, ArtifactRef, ArtifactScope, ArtifactStore};
use serde_json::json;

use crate::Outcome;
use crate::cli::{ArtifactPlaceArgs, ArtifactsCommand, CatalogArgs};
use crate::finder::{Finder, Form, complain};
use crate::report;
use crate::terminal::{safe, safe_line};
use crate::toolkits;

pub(crate) fn run(command: &ArtifactsCommand) -> anyhow::Result<Outcome> {
    let shelf = Shelf::open(command.place())?;
    match command {
        ArtifactsCommand::List { .. } => shelf.list(),
        ArtifactsCommand::Versions { name, .. } => shelf.versions(name),
        ArtifactsCommand::Get { name, output, .. } => shelf.get(name, output.as_deref()),
        ArtifactsCommand::Delete { name, .. } => shelf.delete(name),
    }
}

/// The artifacts that a session sees.
struct Shelf {
    finder: Finder,
    store: Arc<dyn ArtifactStore>,
    scope: ArtifactScope,
    form: Form,
}

impl Shelf {
    fn open(place: &ArtifactPlaceArgs) -> anyhow::Result<Self> {
        let finder = Finder::new(&CatalogArgs { sources: Vec::new(), no_default_roots: true })?;
        let home = finder.home.clone().context("there is no home; set PROWESS_HOME")?;
        let store = toolkits::artifacts(&finder, &home)?;
        let key = &place.session;
        let scope = ArtifactScope::new(key.app(), key.user(), key.session());
        Ok(Self { finder, store, scope, form: Form::of_flag(place.json) })
    }

    fn list(&self) -> anyhow::Result<Outcome> {
        let mut found = Vec::new();
        for name in self.finder.wait(self.store.list(&self.scope))? {
            let versions = self.finder.wait(self.store.versions(&self.scope, &name))?;
            // What is deleted meanwhile is not there.
            if let Some(newest) = versions.last() {
                found.push((name, *newest, versions.len()));
            }
        }
        if self.form == Form::Json {
            let each = found.iter().map(
                |(name, newest, count)| json!({"name": name, "version": newest, "versions": count}),
            );
            report::print_json(&json!({"artifacts": each.collect::<Vec<_>>()}))?;
            return Ok(Outcome::Ok);
        }
        if found.is_empty() {
            anstream::eprintln!(
                "No artifacts. A command keeps what it writes with save_as_artifacts."
            );
            return Ok(Outcome::Ok);
        }
        let names: Vec<String> = found.iter().map(|(name, ..)| safe_line(name)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
        let mut out = stdout().lock();
        writeln!(out, "{:width$}  {:>8}  {:>7}", "ARTIFACT", "VERSIONS", "NEWEST")?;
        for (name, (_, newest, count)) in names.iter().zip(&found) {
            writeln!(out, "{name:width$}  {count:>8}  {newest:>7}")?;
        }
        Ok(Outcome::Ok)
    }

    fn versions(&self, name: &str) -> anyhow::Result<Outcome> {
        let versions = self.finder.wait(self.store.versions(&self.scope, name))?;
        if versions.is_empty() {
            return self.missing(name, None);
        }
        match self.form {
            Form::Json => report::print_json(&json!({"name": name, "versions": versions}))?,
            Form::Text => {
                let mut out = stdout().lock();
                for version in versions {
                    writeln!(out, "{version}")?;
                }
            }
        }
        Ok(Outcome::Ok)
    }

    fn get(&self, reference: &str, output: Option<&Path>) -> anyhow::Result<Outcome> {
        let ArtifactRef { name, version, .. } = ArtifactRef::parse(reference)?;
        let found = self.finder.wait(self.store.load(&self.scope, &name, version))?;
        let Some(Artifact { version, mime_type, bytes, .. }) = found else {
            return self.missing(&name, version);
        };
        if let Some(path) = output {
            File::create_new(path)
                .and_then(|mut file| file.write_all(&bytes))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        match (self.form, output) {
            (Form::Json, _) => report::print_json(&json!({
                "name": name,
                "version": version,
                "mime_type": mime_type,
                "digest": Digest::of(&bytes),
                "bytes": bytes.len(),
                "output": output,
                // Null where it is no text, or was written to a file.
                "content": std::str::from_utf8(&bytes).ok().filter(|_| output.is_none()),
            }))?,
            (Form::Text, Some(path)) => anstream::eprintln!(
                "{} version {version} is in {} ({} bytes)",
                safe_line(&name),
                safe_line(&path.display().to_string()),
                bytes.len(),
            ),
            (Form::Text, None) if std::io::stdout().is_terminal() => {
                let text = String::from_utf8_lossy(&bytes);
                std::io::stdout().write_all(safe(&text).as_bytes())?;
            }
            (Form::Text, None) => std::io::stdout().write_all(&bytes)?,
        }
        Ok(Outcome::Ok)
    }

    fn delete(&self, name: &str) -> anyhow::Result<Outcome> {
        if !self.finder.wait(self.store.delete(&self.scope, name))? {
            return self.missing(name, None);
        }
        match self.form {
            Form::Json => report::print_json(&json!({"deleted": name}))?,
            Form::Text => {
                anstream::println!("{} is deleted, with all its versions.", safe_line(name));
            }
        }
        Ok(Outcome::Ok)
    }

    fn missing(&self, name: &str, version: Option<u64>) -> anyhow::Result<Outcome> {
        let what = match version {
            Some(version) => format!("no version {version} of the artifact '{name}'"),
            None => format!("no artifact '{name}'"),
        };
        let message = format!("there is {what}; `prowess artifacts list` shows them");
        complain("unknown_artifact", &message, self.form)?;
        Ok(Outcome::Findings)
    }
}
