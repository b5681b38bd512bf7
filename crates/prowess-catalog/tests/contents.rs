//! All of a skill in memory, and the quick look whether it is still the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use prowess_catalog::{Catalog, CatalogSkill, DirectorySource, MemoryFile, MemorySource, Source};
use tempfile::TempDir;

const TEXT: &str = "---\nname: demo\ndescription: Shows.\n---\nBody.\n";

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("demo");
    fs::create_dir_all(root.join("scripts")).unwrap();
    fs::write(root.join("SKILL.md"), TEXT).unwrap();
    fs::write(root.join("scripts/run.sh"), "echo hi\n").unwrap();
    fs::set_permissions(root.join("scripts/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("data.bin"), [0, 159, 146, 150]).unwrap();
    folder
}

/// Makes all files an hour old, as far as their content goes.
fn settle(path: &Path) {
    let old = SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(path).unwrap().set_modified(old).unwrap();
}

async fn demo(source: impl Source) -> CatalogSkill {
    let catalog = Catalog::builder().source(source).build();
    catalog.refresh().await.get("demo").unwrap().clone()
}

/// The stamp, once the times of the files are old enough to be trusted.
async fn stamp(skill: &CatalogSkill) -> String {
    loop {
        match skill.stamp().await {
            Some(stamp) => return stamp,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn contents_are_all_files_with_the_digest_of_exactly_these_bytes() {
    let folder = folder();
    let skill = demo(DirectorySource::new(folder.path())).await;
    let contents = skill.contents(1 << 20).await.unwrap();
    let files: Vec<(&str, bool, &[u8])> = (contents.files.iter())
        .map(|it| (it.path.as_str(), it.executable, it.bytes.as_slice()))
        .collect();
    assert_eq!(
        files,
        [
            ("SKILL.md", false, TEXT.as_bytes()),
            ("data.bin", false, &[0, 159, 146, 150]),
            ("scripts/run.sh", true, b"echo hi\n"),
        ]
    );
    assert_eq!(contents.tree_digest, skill.tree_digest().await.unwrap());
}

#[tokio::test]
async fn contents_in_memory_are_the_same_as_on_the_disk() {
    let folder = folder();
    let on_disk = demo(DirectorySource::new(folder.path())).await;
    let source = MemorySource::new("built-in")
        .with_skill("demo", TEXT)
        .with_file("demo", "scripts/run.sh", MemoryFile::executable("echo hi\n"))
        .with_file("demo", "data.bin", MemoryFile::new([0, 159, 146, 150]));
    let in_memory = demo(source).await;
    let (a, b) = (on_disk.contents(1 << 20).await, in_memory.contents(1 << 20).await);
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!((a.files, a.tree_digest), (b.files, b.tree_digest));
    assert_eq!(in_memory.stamp().await, None);
}

#[tokio::test]
async fn contents_have_a_limit_and_the_edge_is_inside() {
    let folder = folder();
    let skill = demo(DirectorySource::new(folder.path())).await;
    let bytes = TEXT.len() as u64 + 8 + 4;
    assert_eq!(skill.contents(bytes).await.unwrap().files.len(), 3);
    assert_eq!(skill.contents(bytes - 1).await.unwrap_err().code(), "too_large");
}

#[tokio::test]
async fn contents_of_another_text_than_was_found_are_refused() {
    let folder = folder();
    let skill = demo(DirectorySource::new(folder.path())).await;
    assert!(skill.contents(1 << 20).await.is_ok());
    fs::write(folder.path().join("demo/SKILL.md"), TEXT.replace("Body", "Evil")).unwrap();
    assert_eq!(skill.contents(1 << 20).await.unwrap_err().code(), "content_changed");
}

#[tokio::test]
async fn a_stamp_stays_while_nothing_changes_and_changes_with_every_change() {
    let folder = folder();
    let root = folder.path().join("demo");
    let skill = demo(DirectorySource::new(folder.path())).await;
    let first = stamp(&skill).await;
    assert_eq!(stamp(&skill).await, first);

    // The same length, and the old time put back: the inode's own time tells.
    let script = root.join("scripts/run.sh");
    let modified = fs::metadata(&script).unwrap().modified().unwrap();
    fs::write(&script, "echo ho\n").unwrap();
    fs::File::open(&script).unwrap().set_modified(modified).unwrap();
    let second = stamp(&skill).await;
    assert_ne!(second, first);

    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let third = stamp(&skill).await;
    assert_ne!(third, second);

    fs::write(root.join("new.txt"), "new").unwrap();
    let fourth = stamp(&skill).await;
    assert_ne!(fourth, third);

    fs::remove_file(root.join("new.txt")).unwrap();
    symlink("data.bin", root.join("link.bin")).unwrap();
    assert_ne!(stamp(&skill).await, fourth);
}

#[tokio::test]
async fn a_stamp_of_files_that_changed_just_now_is_not_trusted() {
    let folder = folder();
    let skill = demo(DirectorySource::new(folder.path())).await;
    stamp(&skill).await;
    // Its time lies in the future: whatever comes next may bear the same one.
    let later = SystemTime::now() + Duration::from_secs(3600);
    let script = folder.path().join("demo/scripts/run.sh");
    fs::File::open(&script).unwrap().set_modified(later).unwrap();
    assert_eq!(skill.stamp().await, None);
    settle(&script);
    stamp(&skill).await;
}
