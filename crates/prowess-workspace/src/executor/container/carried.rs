//! The supervisor in a container: the program of this machine, with what it needs to be loaded, so
//! that it runs in whatever image.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Where it is inside.
pub(crate) const FOLDER: &str = "/prowess";

/// Files of this machine that are seen in a container, and the words that start the supervisor there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Where each is here, and there.
    pub(crate) files: Vec<(PathBuf, String)>,
    pub(crate) words: Vec<String>,
}

impl Carried {
    /// What a supervisor needs. Blocks.
    pub(crate) fn find(supervisor: &Path) -> io::Result<Self> {
        let program = format!("{FOLDER}/supervisor");
        let mut files = vec![(supervisor.to_owned(), program.clone())];
        let Some(loader) = loader(supervisor)? else {
            return Ok(Self { files, words: vec![program] });
        };
        let listed = std::process::Command::new(&loader)
            .arg("--list")
            .arg(supervisor)
            .env_clear()
            .current_dir("/")
            .output()?;
        if !listed.status.success() {
            let said = String::from_utf8_lossy(&listed.stderr);
            return Err(io::Error::other(format!("{}: {}", loader.display(), said.trim())));
        }
        let folder = format!("{FOLDER}/lib");
        for path in libraries(&String::from_utf8_lossy(&listed.stdout)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The loader is listed, too, by another name or by its own.
            if path.canonicalize()? != loader.canonicalize()? {
                files.push((path, format!("{folder}/{name}")));
            }
        }
        let inside = format!("{FOLDER}/loader");
        files.push((loader, inside.clone()));
        let words = [inside.as_str(), "--library-path", folder.as_str(), program.as_str()];
        Ok(Self { files, words: words.map(str::to_owned).into() })
    }
}

/// The libraries in what a loader lists: `libc.so.6 => /lib/libc.so.6 (0x…)`.
fn libraries(listed: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (_, path) = line.split_once(" => ")?;
        let path = path.rsplit_once(" (").map_or(path, |(path, _)| path).trim();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    listed.lines().filter_map(path).collect()
}

/// The loader that a program names, if it needs one.
fn loader(program: &Path) -> io::Result<Option<PathBuf>> {
    const NO_PROGRAM: &str = "it is no program of this kind of machine";
    let mut file = std::fs::File::open(program)?;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    // 64 bits, the lowest byte first.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, NO_PROGRAM));
    }
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (start, size, count) =
        (number(&header[32..40]), number(&header[54..56]), number(&header[56..58]));
    for at in 0..count {
        let mut entry = [0; 56];
        file.seek(SeekFrom::Start(start + at * size))?;
        file.read_exact(&mut entry)?;
        if number(&entry[0..4]) == 3 {
            let mut name = Vec::new();
            file.seek(SeekFrom::Start(number(&entry[8..16])))?;
            file.take(number(&entry[32..40]).min(4096)).read_to_end(&mut name)?;
            let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
            return Ok(Some(PathBuf::from(name)));
        }
    }
    Ok(None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_its_loader_and_its_libraries() {
        let own = std::env::current_exe().unwrap();
        let carried = Carried::find(&own).unwrap();
        assert_eq!(carried.files[0], (own, "/prowess/supervisor".to_owned()));
        assert_eq!(carried.words.last().unwrap(), "/prowess/supervisor");
        if carried.words.len() > 1 {
            let inside: Vec<&str> = carried.files.iter().map(|(_, to)| to.as_str()).collect();
            assert!(inside.iter().any(|it| it.starts_with("/prowess/lib/libc.")), "{inside:?}");
            assert!(inside.contains(&"/prowess/loader"), "{inside:?}");
        }
        assert!(carried.files.iter().all(|(from, _)| from.is_file()), "{carried:?}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "#!/bin/sh\n", &"x".repeat(100)] {
            std::fs::write(folder.path().join("x"), text).unwrap();
            assert!(Carried::find(&folder.path().join("x")).is_err(), "{text}");
        }
        assert!(Carried::find(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_list_of_libraries_is_read() {
        let listed = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x y/libc.so.6 (0x2)\n\
                      \tlibmissing.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        assert_eq!(libraries(listed), [PathBuf::from("/lib/x y/libc.so.6")]);
    }
}
