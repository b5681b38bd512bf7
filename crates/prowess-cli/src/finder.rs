//! The catalog that the flags, variables and files of this call describe.

use std::sync::Arc;

use anyhow::Context;
use prowess_catalog::{
    Catalog, CatalogSkill, Config, DirectorySource, Environment, LookupError, Root, RootOrigin,
    Snapshot, default_roots, label_of, variable_roots,
};

use crate::cli::CatalogArgs;
use crate::progress;
use crate::terminal::safe_line;

/// Everything that decides where skills are looked for.
pub(crate) struct Finder {
    pub(crate) config: Config,
    /// Lowest precedence first.
    pub(crate) roots: Vec<Root>,
    runtime: tokio::runtime::Runtime,
}

impl Finder {
    pub(crate) fn new(arguments: &CatalogArgs) -> anyhow::Result<Self> {
        let environment = Environment::of_process().context("there is no working directory")?;
        let config = Config::find(&environment)?;
        let mut roots = Vec::new();
        if !arguments.no_default_roots && config.default_roots.unwrap_or(true) {
            roots.extend(default_roots(&environment));
        }
        roots.extend(config.sources.iter().cloned());
        roots.extend(variable_roots(&environment));
        roots.extend(arguments.sources.iter().map(|path| Root::new(path, RootOrigin::Flag)));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { config, roots, runtime })
    }

    /// Looks for skills.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut builder = Catalog::builder().precedence(self.config.precedence);
        for root in &self.roots {
            // `--source skills` is called after the folder that it is in.
            let absolute = std::path::absolute(&root.path);
            let label = label_of(absolute.as_ref().unwrap_or(&root.path));
            let source =
                DirectorySource::new(&root.path).with_label(label).with_limits(self.config.limits);
            builder = builder.shared_source(Arc::new(source));
        }
        let catalog = builder.build();
        progress::while_showing("Looking for skills", || self.runtime.block_on(catalog.refresh()))
    }

    /// Waits for something that the catalog does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// The skill of this name. If there is none, says so on standard error.
pub(crate) fn skill_or_complaint<'a>(
    snapshot: &'a Snapshot,
    name: &str,
) -> Option<&'a CatalogSkill> {
    let error = match snapshot.get(name) {
        Ok(skill) => return Some(skill),
        Err(error) => error,
    };
    let others = match &error {
        LookupError::Unknown { nearest: None, .. } => "; `prowess list` shows those that are there",
        _ => "",
    };
    anstream::eprintln!("Error: {}{others}", safe_line(&error.to_string()));
    None
}
