//! What the tests of the catalog share.

#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use prowess_catalog::{Catalog, CatalogSkill, DirectorySource, Snapshot};

/// A folder of its own for one test.
pub(crate) struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A minimal skill in a folder; its name is the folder's.
    pub(crate) fn skill(&self, folder: &str) {
        let name = folder.rsplit('/').next().unwrap();
        self.write(&format!("{folder}/SKILL.md"), text(name));
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }
}

pub(crate) fn text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: A test skill\n---\nBody of {name}\n")
}

pub(crate) async fn snapshot(source: DirectorySource) -> Snapshot {
    Catalog::builder().source(source).build().refresh().await
}

pub(crate) fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.skills().iter().map(CatalogSkill::name).collect()
}

pub(crate) fn codes(snapshot: &Snapshot) -> Vec<&'static str> {
    snapshot.diagnostics().iter().map(|diagnostic| diagnostic.code.as_str()).collect()
}

/// Says that a test could not run here, and why. `./dev test` counts and prints it.
pub(crate) fn skip(test: &str, why: &str) {
    use std::io::Write;
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}
