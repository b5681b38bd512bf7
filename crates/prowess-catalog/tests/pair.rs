//! A pair of list and get is a source: partial failures, versions, base directories.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use prowess_catalog::{
    Catalog, CatalogSkill, MemorySource, PairEntry, PairError, PairSkill, PairSource, ResourcePath,
    ResourceScope, ScanLimits, SkillPair, Snapshot, Source, SourceFuture, Trust,
};

/// Skills in a table that can be changed, and fail on demand.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<Rows>>);

#[derive(Default)]
struct Rows {
    skills: BTreeMap<String, (Option<String>, Result<PairSkill, String>)>,
    is_down: bool,
    gets: Vec<String>,
}

impl Table {
    fn set(&self, name: &str, version: Option<&str>, skill: Result<&str, &str>) {
        let skill = skill.map(PairSkill::from).map_err(str::to_owned);
        let row = (version.map(str::to_owned), skill);
        self.0.lock().unwrap().skills.insert(name.to_owned(), row);
    }

    fn take_gets(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().gets)
    }
}

impl SkillPair for Table {
    fn list(&self) -> SourceFuture<'_, Result<Vec<PairEntry>, PairError>> {
        Box::pin(async move {
            let rows = self.0.lock().unwrap();
            if rows.is_down {
                return Err("the table is down".into());
            }
            // In no good order.
            let entries = rows.skills.iter().rev().map(|(name, (version, _))| {
                let entry = PairEntry::from(name.as_str());
                version.iter().fold(entry, PairEntry::with_version)
            });
            Ok(entries.collect())
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Result<PairSkill, PairError>> {
        Box::pin(async move {
            let mut rows = self.0.lock().unwrap();
            rows.gets.push(name.to_owned());
            let (_, skill) = rows.skills.get(name).ok_or("no such skill")?;
            skill.clone().map_err(Into::into)
        })
    }
}

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n{body}\n")
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.skills().iter().map(CatalogSkill::name).collect()
}

fn codes(snapshot: &Snapshot) -> Vec<String> {
    snapshot.diagnostics().iter().map(|it| it.code.to_string()).collect()
}

#[tokio::test]
async fn one_bad_skill_does_not_hurt_the_others() {
    let table = Table::default();
    table.set("c", None, Ok(&skill("c", "C.")));
    table.set("a", None, Ok(&skill("a", "A.")));
    table.set("broken", None, Err("disk full"));
    table.set("no-skill", None, Ok("no frontmatter"));
    table.set("../b", None, Ok(&skill("b", "B.")));
    let catalog = Catalog::builder().source(PairSource::new("table", table.clone())).build();
    let snapshot = catalog.refresh().await;
    assert_eq!(names(&snapshot), ["a", "c"]);
    let all = codes(&snapshot);
    assert!(all.contains(&"unreadable-file".to_owned()), "{all:?}");
    assert!(all.contains(&"index-entry".to_owned()), "{all:?}");
    let about = |text: &str| snapshot.diagnostics().iter().any(|it| it.message.contains(text));
    assert!(about("Cannot read pair:table/broken/SKILL.md: disk full"));
    assert_eq!(snapshot.get("a").unwrap().read().await.unwrap(), skill("a", "A.").into_bytes());
    // Nothing has changed: it is the same generation.
    assert_eq!(catalog.refresh().await.generation(), snapshot.generation());
    table.set("broken", None, Ok(&skill("broken", "Mended.")));
    assert_eq!(names(&catalog.refresh().await), ["a", "broken", "c"]);
}

#[tokio::test]
async fn what_was_listed_before_stays_while_the_list_fails() {
    let table = Table::default();
    table.0.lock().unwrap().is_down = true;
    table.set("a", None, Ok(&skill("a", "A.")));
    let source = PairSource::new("table", table.clone());
    let other = MemorySource::new("other").with_skill("z", skill("z", "Z."));
    let catalog = Catalog::builder().source(source).source(other).build();
    let snapshot = catalog.refresh().await;
    assert_eq!(
        (names(&snapshot), codes(&snapshot)),
        (vec!["z"], vec!["source-unavailable".into()])
    );
    table.0.lock().unwrap().is_down = false;
    let snapshot = catalog.refresh().await;
    assert_eq!((names(&snapshot), codes(&snapshot)), (vec!["a", "z"], vec![]));
    table.0.lock().unwrap().is_down = true;
    let snapshot = catalog.refresh().await;
    assert_eq!(
        (names(&snapshot), codes(&snapshot)),
        (vec!["a", "z"], vec!["source-offline".into()])
    );
    assert!(snapshot.get("a").unwrap().read().await.is_ok());
}

#[tokio::test]
async fn a_skill_is_asked_for_again_when_its_version_changes() {
    let table = Table::default();
    table.set("a", Some("1"), Ok(&skill("a", "A.")));
    table.set("b", None, Ok(&skill("b", "B.")));
    table.set("c", Some("1"), Err("not yet"));
    let catalog = Catalog::builder().source(PairSource::new("table", table.clone())).build();
    catalog.refresh().await;
    assert_eq!(table.take_gets(), ["a", "b", "c"]);
    let first = catalog.refresh().await;
    assert_eq!(table.take_gets(), ["b", "c"]);
    table.set("a", Some("2"), Ok(&skill("a", "New.")));
    let second = catalog.refresh().await;
    assert_eq!(table.take_gets(), ["a", "b", "c"]);
    assert_ne!(first.get("a").unwrap().found().digest, second.get("a").unwrap().found().digest);
    // Whoever holds the old snapshot is not given the new text.
    let stale = first.get("a").unwrap().read().await.unwrap_err();
    assert_eq!(stale.code(), "content_changed");
}

#[tokio::test]
async fn the_base_directory_holds_the_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("a");
    fs::create_dir_all(base.join("scripts")).unwrap();
    fs::write(base.join("scripts/run.sh"), "echo").unwrap();
    fs::write(base.join("SKILL.md"), "not this one").unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", base.join("link")).unwrap();
    let (text, at) = (skill("a", "A."), base.clone());
    let source = PairSource::from_fns(
        "functions",
        || async { Ok::<_, PairError>(vec!["a", "plain"]) },
        move |name| {
            let (text, at) = (text.clone(), at.clone());
            async move {
                Ok::<_, PairError>(match name.as_str() {
                    "a" => PairSkill::from(text).with_base_directory(at),
                    name => PairSkill::from(skill(name, "Plain.")),
                })
            }
        },
    );
    let snapshot = Catalog::builder().source(source).build().refresh().await;
    let found = snapshot.get("a").unwrap();
    assert_eq!(found.path(), base.join("SKILL.md"));
    let resources = found.resources(ResourceScope::Recursive).await.unwrap();
    let paths: Vec<&str> = resources.resources.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["scripts/run.sh"]);
    let read = async |path: &str| found.read_resource(&ResourcePath::parse(path).unwrap()).await;
    assert_eq!(read("scripts/run.sh").await.unwrap(), b"echo");
    assert_eq!(read("SKILL.md").await.unwrap(), skill("a", "A.").into_bytes());
    // The control follows the link.
    assert_eq!(fs::read_to_string(base.join("link")).unwrap(), "secret");
    assert_eq!(read("link").await.unwrap_err().code(), "outside_skill");
    let contents = found.contents(1 << 20).await.unwrap();
    assert_eq!(found.tree_digest().await.unwrap(), contents.tree_digest);
    let plain = snapshot.get("plain").unwrap();
    assert_eq!(plain.resources(ResourceScope::Recursive).await.unwrap().resources, []);
}

#[tokio::test]
async fn limits_hold_and_trust_is_the_hosts() {
    let table = Table::default();
    for name in ["a", "b", "c"] {
        table.set(name, None, Ok(&skill(name, "Text.")));
    }
    let limited = |limits| PairSource::new("table", table.clone()).with_limits(limits);
    let size = skill("a", "Text.").len() as u64;
    for (limits, expected, code) in [
        (ScanLimits::default().with_folders(3), 3, None),
        (ScanLimits::default().with_folders(2), 2, Some("scan-limit")),
        (ScanLimits::default().with_file_bytes(size), 3, None),
        (ScanLimits::default().with_file_bytes(size - 1), 0, Some("file-too-large")),
    ] {
        let listing = limited(limits).list().await;
        assert_eq!(listing.skills.len(), expected);
        let found = listing.diagnostics.first().map(|it| it.code.to_string());
        assert_eq!(found.as_deref(), code);
    }
    let source = PairSource::new("table", table).with_trust(Trust::Untrusted);
    assert_eq!(source.info().trust, Trust::Untrusted);
}
