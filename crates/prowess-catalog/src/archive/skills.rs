//! All skills that an archive holds, in memory.

use std::io::Cursor;
use std::path::Path;

use prowess_format::{Code, Diagnostic, Level, SkillName};

use super::error::ArchiveError;
use super::{ArchiveKind, unpack_from};
use crate::contents::SkillContents;
use crate::limits::ScanLimits;
use crate::remote_limits::RemoteLimits;
use crate::resource::LeftOut;
use crate::scan::{Nested, Scanner};
use crate::source::{Files, Place, Trust};

/// What an archive holds.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ArchivedSkills {
    /// The skills that can be used, in the order of their folders.
    pub skills: Vec<ArchivedSkill>,
    /// What there is to say about these and the others. Paths are those in the archive.
    pub diagnostics: Vec<Diagnostic>,
    /// The bytes of all its files, those that belong to no skill included.
    pub bytes: u64,
}

/// A skill in an archive.
#[derive(Debug)]
#[non_exhaustive]
pub struct ArchivedSkill {
    /// The name that identifies it.
    pub name: SkillName,
    /// Its folder in the archive; empty if the archive is the skill.
    pub folder: String,
    /// All its files.
    pub contents: SkillContents,
}

/// Reads every skill in a zip or tar archive: one at its top, one in a folder, or several in
/// folders. The archive is taken as a whole or refused, as [`super::unpack`] does; a skill that
/// cannot be used is a diagnostic. Blocks.
pub fn read_archive(bytes: &[u8], limits: &RemoteLimits) -> Result<ArchivedSkills, ArchiveError> {
    let head = &bytes[..bytes.len().min(ArchiveKind::HEAD)];
    let Some(kind) = ArchiveKind::of("", head) else {
        return Err(ArchiveError::damaged("it is neither zip nor tar nor tar.gz"));
    };
    let scratch = tempfile::Builder::new().prefix("prowess-archive-").tempdir();
    let scratch =
        scratch.map_err(|cause| ArchiveError::Io { path: std::env::temp_dir(), cause })?;
    let root = scratch.path();
    let unpacked = unpack_from(Cursor::new(bytes), kind, root, limits, &mut |_| {})?;
    let scan = ScanLimits::default();
    let listing = Scanner::new(root.to_owned(), scan, Nested::Ignore, Trust::Untrusted).scan();
    let files =
        Files { root: root.into(), limits: scan, nested: Nested::Ignore, trust: Trust::Untrusted };
    let mut found = ArchivedSkills { bytes: unpacked.bytes, ..ArchivedSkills::default() };
    found.diagnostics.extend(listing.diagnostics.iter().map(|it| as_in_archive(it, root)));
    for skill in &listing.skills {
        match files.all_contents(&Place::of(skill), limits.total_bytes) {
            Ok(contents) => found.skills.push(ArchivedSkill {
                name: skill.name.clone(),
                folder: skill.folder.to_string_lossy().into_owned(),
                contents,
            }),
            Err(error) => found.diagnostics.push(error.about_resources(&skill.path())),
        }
    }
    found.diagnostics.extend(left_out(&found.skills));
    if listing.skills.is_empty() && found.diagnostics.is_empty() {
        found.diagnostics.push(no_skill());
    }
    Ok(found)
}

/// A finding with the path that it has in the archive, wherever that was unpacked.
fn as_in_archive(diagnostic: &Diagnostic, root: &Path) -> Diagnostic {
    let mut diagnostic = diagnostic.clone();
    let root = root.to_string_lossy();
    let below = |text: &str| {
        let inside = text.replace(&format!("{root}/"), "");
        inside.replace(&*root, "the archive")
    };
    diagnostic.message = below(&diagnostic.message);
    diagnostic.help = diagnostic.help.as_deref().map(below);
    diagnostic.path = diagnostic.path.as_deref().map(|path| below(path).into());
    diagnostic
}

/// What is in the folders of skills and is no content.
fn left_out(skills: &[ArchivedSkill]) -> Vec<Diagnostic> {
    let of_skill = |skill: &ArchivedSkill| {
        let found = |left: &LeftOut| {
            let path = Path::new(&skill.folder).join(&left.path).display().to_string();
            let message = format!("'{path}' is left out: {}", left.reason.as_str());
            Diagnostic::new(Code::LeftOutFile, Level::Warning, message).with_path(path)
        };
        skill.contents.left_out.iter().map(found).collect::<Vec<_>>()
    };
    skills.iter().flat_map(of_skill).collect()
}

fn no_skill() -> Diagnostic {
    let message = "There is no SKILL.md in the archive";
    Diagnostic::new(Code::MissingSkillFile, Level::Error, message)
        .with_help("put the SKILL.md at the top of the archive, or into a folder of its own")
}
