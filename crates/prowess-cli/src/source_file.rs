//! Changes the sources in a `prowess.toml`, and nothing else in it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// The keys that hold sources.
const KEYS: [&str; 3] = ["sources", "untrusted_sources", "trusted_sources"];

/// Adds a source under a key, unless it is there.
pub(crate) fn add(file: &Path, key: &str, source: &str) -> anyhow::Result<()> {
    let mut document = read(file)?;
    let skills = document.entry("skills").or_insert_with(|| Item::Table(Table::new()));
    let skills = skills.as_table_like_mut().context("`skills` in prowess.toml is no table")?;
    let sources = skills.entry(key).or_insert_with(|| value(Array::new()));
    let sources = sources
        .as_array_mut()
        .with_context(|| format!("`skills.{key}` in prowess.toml is no list"))?;
    if sources.iter().any(|known| known.as_str() == Some(source)) {
        return Ok(());
    }
    sources.push(source);
    write(file, &document)
}

/// Removes the sources that are meant, and says which they were.
pub(crate) fn remove(file: &Path, is_meant: impl Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
    let mut document = read(file)?;
    let mut removed = Vec::new();
    for key in KEYS {
        let sources = document.get_mut("skills").and_then(|skills| skills.get_mut(key));
        let Some(sources) = sources.and_then(Item::as_array_mut) else { continue };
        sources.retain(|source| match source.as_str().filter(|source| is_meant(source)) {
            Some(source) => {
                removed.push(source.to_owned());
                false
            }
            None => true,
        });
    }
    if !removed.is_empty() {
        write(file, &document)?;
    }
    Ok(removed)
}

fn read(file: &Path) -> anyhow::Result<DocumentMut> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {}", file.display()))?,
    };
    text.parse().with_context(|| file.display().to_string())
}

/// As a whole or not at all.
fn write(file: &Path, document: &DocumentMut) -> anyhow::Result<()> {
    // A link stays one: what it leads to is written.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let written = || -> io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut new = tempfile::Builder::new().prefix(".prowess.toml-").tempfile_in(folder)?;
        new.write_all(document.to_string().as_bytes())?;
        if let Ok(metadata) = fs::metadata(&file) {
            new.as_file().set_permissions(metadata.permissions())?;
        }
        new.as_file().sync_all()?;
        new.persist(&file)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", file.display()))
}
