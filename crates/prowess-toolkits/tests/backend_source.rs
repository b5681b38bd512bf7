//! A folder of a backend is a source of skills: what is found, what is said, what is trusted.

use std::fs;
use std::sync::Arc;

use prowess_catalog::{
    Catalog, CatalogSkill, DirectorySource, MemorySource, ResourceListing, ResourcePath,
    ResourceScope, ScanLimits, Snapshot, Source, Trust,
};
use prowess_toolkits::{
    Backend, BackendSource, CompositeBackend, Expected, LocalBackend, MemoryBackend, WorkspacePath,
};

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n{body}\n")
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.skills().iter().map(CatalogSkill::name).collect()
}

fn paths(listing: &ResourceListing) -> Vec<&str> {
    listing.resources.iter().map(|it| it.path.as_str()).collect()
}

fn files() -> MemoryBackend {
    let all = [
        ("skills/b/SKILL.md", skill("b", "B.")),
        ("skills/a/SKILL.md", skill("a", "A.")),
        ("skills/a/references/guide.md", "The guide.".to_owned()),
        ("skills/a/scripts/deep/run.sh", "echo".to_owned()),
        ("skills/a/.git/config", "secret".to_owned()),
        ("skills/broken/SKILL.md", "no frontmatter".to_owned()),
        ("skills/group/inner/SKILL.md", skill("inner", "Too deep.")),
        ("skills/SKILL.md", skill("skills", "No folder of its own.")),
        ("skills/note.txt", "no skill".to_owned()),
        ("other/c/SKILL.md", skill("c", "Elsewhere.")),
    ];
    all.into_iter()
        .fold(MemoryBackend::new(), |files, (path, text)| files.with_file(path, text).unwrap())
}

fn catalog(source: BackendSource) -> Catalog {
    Catalog::builder().source(source).build()
}

#[tokio::test]
async fn folders_one_level_down_are_skills_with_their_files() {
    let catalog = catalog(BackendSource::new(files(), "/skills").unwrap());
    let snapshot = catalog.refresh().await;
    assert_eq!(names(&snapshot), ["a", "b"]);
    let broken = snapshot
        .diagnostics()
        .iter()
        .filter(|it| it.path.as_deref() == Some("/skills/broken/SKILL.md"));
    assert!(broken.count() > 0, "{:?}", snapshot.diagnostics());
    let a = snapshot.get("a").unwrap();
    assert_eq!(a.read().await.unwrap(), skill("a", "A.").into_bytes());
    let one_level = a.resources(ResourceScope::OneLevel).await.unwrap();
    assert_eq!(paths(&one_level), ["references/guide.md"]);
    let all = a.resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!(paths(&all), ["references/guide.md", "scripts/deep/run.sh"]);
    let read = async |path: &str| a.read_resource(&ResourcePath::parse(path).unwrap()).await;
    assert_eq!(read("references/guide.md").await.unwrap(), b"The guide.");
    assert_eq!(read(".git/config").await.unwrap_err().code(), "not_found");
    assert_eq!(read("references").await.unwrap_err().code(), "not_a_file");
    assert_eq!(catalog.refresh().await.generation(), snapshot.generation());
}

/// Read by whichever source, it is the same skill.
#[tokio::test]
async fn a_folder_and_a_backend_on_it_find_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("a/SKILL.md", skill("a", "A.")),
        ("a/scripts/run.sh", "echo".to_owned()),
        ("b/SKILL.md", skill("other-name", "B.")),
        ("c/SKILL.md", "---\nname: c\n---\n".to_owned()),
        ("d/SKILL.md", "no frontmatter".to_owned()),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    use std::os::unix::fs::PermissionsExt;
    let script = folder.path().join("a/scripts/run.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let limits = ScanLimits::default().with_depth(1);
    let direct = DirectorySource::new(folder.path()).with_limits(limits);
    let backend = LocalBackend::new(folder.path()).unwrap();
    let through = BackendSource::new(backend, "/").unwrap();
    let (direct_listing, listing) = (direct.list().await, through.list().await);
    let about = |listing: &prowess_catalog::SourceListing| {
        let skills = listing.skills.iter();
        skills.map(|it| (it.name.to_string(), it.digest, it.path())).collect::<Vec<_>>()
    };
    assert_eq!(about(&direct_listing), about(&listing));
    let said = |listing: &prowess_catalog::SourceListing| {
        let all = listing.diagnostics.iter();
        all.map(|it| (it.code, it.level, it.message.clone())).collect::<Vec<_>>()
    };
    assert_eq!(said(&direct_listing), said(&listing));
    let digest = |source: Arc<dyn Source>| async move {
        let snapshot = Catalog::builder().shared_source(source).build().refresh().await;
        snapshot.get("a").unwrap().tree_digest().await.unwrap()
    };
    assert_eq!(digest(Arc::new(direct)).await, digest(Arc::new(through)).await);
}

#[tokio::test]
async fn what_is_written_is_found_after_a_refresh() {
    let skills = MemoryBackend::new();
    let backend = CompositeBackend::new(MemoryBackend::new()).mount("/skills", skills).unwrap();
    let catalog = catalog(BackendSource::new(backend.clone(), "/skills").unwrap());
    let before = catalog.refresh().await;
    assert!(before.skills().is_empty() && before.diagnostics().is_empty());
    let path = WorkspacePath::parse("skills/new/SKILL.md").unwrap();
    let text = skill("new", "New.");
    backend.write(&path, text.as_bytes(), Expected::Nothing).await.unwrap();
    assert!(catalog.snapshot().skills().is_empty());
    assert_eq!(names(&catalog.refresh().await), ["new"]);
    let found = catalog.snapshot();
    let edited = skill("new", "Edited.");
    backend.write(&path, edited.as_bytes(), Expected::Anything).await.unwrap();
    // Whoever holds the old snapshot is not given the new text.
    assert_eq!(found.get("new").unwrap().read().await.unwrap_err().code(), "content_changed");
    let found = catalog.refresh().await;
    assert_eq!(found.get("new").unwrap().read().await.unwrap(), edited.into_bytes());
}

/// An agent must not get more by writing a skill than by not writing it.
#[tokio::test]
async fn what_an_agent_writes_is_not_trusted_and_hides_nothing() {
    let own = || MemorySource::new("own").with_skill("a", skill("a", "The user's."));
    let written = BackendSource::new(files(), "skills").unwrap();
    assert_eq!(written.info().trust, Trust::Untrusted);
    let snapshot = Catalog::builder().source(own()).source(written).build().refresh().await;
    assert_eq!(snapshot.get("a").unwrap().source_id(), "own");
    // The control: a host may say otherwise.
    let trusted = BackendSource::new(files(), "skills").unwrap().with_trust(Trust::Trusted);
    let trusted = trusted.with_label("mine");
    let snapshot = Catalog::builder().source(own()).source(trusted).build().refresh().await;
    assert_eq!(snapshot.get("a").unwrap().source_id(), "mine");
}

#[tokio::test]
async fn links_in_a_local_backend_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("root/a")).unwrap();
    fs::create_dir_all(at("outside")).unwrap();
    fs::write(at("outside/SKILL.md"), skill("outside", "Secret.")).unwrap();
    fs::write(at("root/a/SKILL.md"), skill("a", "A.")).unwrap();
    std::os::unix::fs::symlink("../../outside/SKILL.md", at("root/a/link.md")).unwrap();
    std::os::unix::fs::symlink("../outside", at("root/b")).unwrap();
    fs::create_dir(at("root/c")).unwrap();
    std::os::unix::fs::symlink("../../outside/SKILL.md", at("root/c/SKILL.md")).unwrap();
    // The control: a trusted folder follows links, as its user made them.
    let direct = DirectorySource::new(at("root")).list().await;
    assert!(direct.skills.iter().any(|it| it.name.as_str() == "outside"));
    let backend = LocalBackend::new(at("root")).unwrap();
    let snapshot = catalog(BackendSource::new(backend, "").unwrap()).refresh().await;
    assert_eq!(names(&snapshot), ["a"]);
    let a = snapshot.get("a").unwrap();
    let all = a.resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!((paths(&all), all.left_out.len()), (vec![], 1));
    let link = ResourcePath::parse("link.md").unwrap();
    assert_eq!(a.read_resource(&link).await.unwrap_err().code(), "outside_skill");
}

#[tokio::test]
async fn limits_hold_at_their_edge() {
    let with = |limits| BackendSource::new(files(), "skills").unwrap().with_limits(limits);
    let size = skill("a", "A.").len() as u64;
    let listing = with(ScanLimits::default().with_file_bytes(size)).list().await;
    assert_eq!(listing.skills.len(), 2);
    let listing = with(ScanLimits::default().with_file_bytes(size - 1)).list().await;
    assert_eq!(listing.skills.len(), 0);
    assert!(listing.diagnostics.iter().any(|it| it.code.to_string() == "file-too-large"));
    // `a`, `b` and `broken` are read, in this order.
    let (both, all) = (2 * size, 2 * size + "no frontmatter".len() as u64);
    for (bytes, skills, is_cut) in
        [(all, 2, false), (all - 1, 2, true), (both, 2, true), (both - 1, 1, true), (0, 0, true)]
    {
        let listing = with(ScanLimits::default().with_bytes(bytes)).list().await;
        let cut = listing.diagnostics.iter().any(|it| it.message.contains("scan.bytes"));
        assert_eq!((listing.skills.len(), cut), (skills, is_cut), "{bytes}");
    }
    // Names in the folder: SKILL.md, a, b, broken, group, note.txt.
    for (folders, is_cut) in [(6, false), (5, true)] {
        let listing = with(ScanLimits::default().with_folders(folders)).list().await;
        let cut = listing.diagnostics.iter().any(|it| it.message.contains("scan.folders"));
        assert_eq!(cut, is_cut, "{folders}");
    }
    for (limits, whole) in [
        (ScanLimits::default().with_resources(2), true),
        (ScanLimits::default().with_resources(1), false),
        (ScanLimits::default().with_resource_depth(2), true),
        (ScanLimits::default().with_resource_depth(1), false),
    ] {
        let snapshot = catalog(with(limits)).refresh().await;
        let digest = snapshot.get("a").unwrap().tree_digest().await;
        assert_eq!(digest.is_ok(), whole, "{limits:?} {digest:?}");
    }
    assert_eq!(BackendSource::new(files(), "../x").unwrap_err().code(), "invalid_path");
}
