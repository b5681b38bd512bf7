//! Removing trees that somebody hostile may have made.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, renameat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use crate::beneath::Folder;

/// How often folders are gone through again because somebody keeps making files.
const MOST_DISTURBED: usize = 10_000;

/// Removes what has this name in a folder, if there is anything. It is gone from the folder at
/// once; what it held is then removed below `bin`, which is on the same disk. Links are removed,
/// not followed; no mount is entered; the depth of the tree does not matter.
pub(crate) fn remove(folder: &Folder, name: &OsStr, bin: &Folder) -> io::Result<()> {
    match discard(folder, name, bin)? {
        Some(heap) => sweep(bin, heap.as_ref()),
        None => Ok(()),
    }
}

/// Moves what has this name into a new folder of `bin`, and returns that folder's name.
pub(crate) fn discard(folder: &Folder, name: &OsStr, bin: &Folder) -> io::Result<Option<String>> {
    let is_folder = match folder.look(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?.is_folder(),
    };
    if !is_folder {
        unlinkat(folder, name, AtFlags::empty()).or_else(gone_is_fine)?;
        return Ok(None);
    }
    folder.unlock_entry(name)?;
    loop {
        let heap = Uuid::now_v7().simple().to_string();
        let target = bin.make(heap.as_ref(), 0o700, None)?;
        match renameat(folder, name, &target, "0") {
            Ok(()) => return Ok(Some(heap)),
            // Somebody has swept the empty heap away, or what is to be removed is gone.
            Err(Errno::NOENT) if folder.look(name).is_ok() => {}
            Err(error) => {
                let _ = unlinkat(bin, &heap, AtFlags::REMOVEDIR);
                return gone_is_fine(error).map(|()| None);
            }
        }
    }
}

/// Removes everything that was left in `bin`, by whomever.
pub(crate) fn sweep_all(bin: &Folder) -> io::Result<()> {
    let heaps: Vec<_> = bin.entries()?.collect::<io::Result<_>>()?;
    heaps.iter().try_for_each(|heap| match bin.kind(heap) {
        Ok(FileType::Directory) => sweep(bin, &heap.name),
        Ok(_) => unlinkat(bin, &heap.name, AtFlags::empty()).or_else(gone_is_fine),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    })
}

/// Removes a folder of `bin` with all that it holds.
pub(crate) fn sweep(bin: &Folder, heap: &OsStr) -> io::Result<()> {
    let top = match bin.enter(heap) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut sweep = Sweep { top, lifted: 0, disturbed: 0 };
    loop {
        while sweep.one_round()? {}
        match unlinkat(bin, heap, AtFlags::REMOVEDIR) {
            // Somebody else sweeps here too, and has lifted something.
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            result => return result.or_else(gone_is_fine),
        }
    }
}

/// Every folder inside is first moved up to the top, so that neither paths nor open folders ever
/// become many.
struct Sweep {
    top: Folder,
    lifted: u64,
    disturbed: usize,
}

impl Sweep {
    /// Removes what is seen at the top, and says whether that was anything.
    fn one_round(&mut self) -> io::Result<bool> {
        let mut found = false;
        for entry in self.top.entries()? {
            let entry = entry?;
            found = true;
            match self.top.kind(&entry) {
                Ok(FileType::Directory) => self.remove_folder(&entry.name).or_else(gone)?,
                Ok(_) => {
                    unlinkat(&self.top, &entry.name, AtFlags::empty()).or_else(gone_is_fine)?;
                }
                Err(error) => gone(error)?,
            }
        }
        Ok(found)
    }

    /// Removes a folder of the top; what it holds comes to the top.
    fn remove_folder(&mut self, name: &OsStr) -> io::Result<()> {
        self.top.unlock_entry(name)?;
        let folder = self.top.enter(name)?;
        loop {
            for entry in folder.entries()? {
                let entry = entry?;
                match folder.kind(&entry) {
                    Ok(FileType::Directory) => self.lift(&folder, &entry.name).or_else(gone)?,
                    Ok(_) => {
                        unlinkat(&folder, &entry.name, AtFlags::empty()).or_else(gone_is_fine)?;
                    }
                    Err(error) => gone(error)?,
                }
            }
            match unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
                // Not all was seen, or somebody still writes there.
                Err(Errno::NOTEMPTY | Errno::EXIST) if self.disturbed < MOST_DISTURBED => {
                    self.disturbed += 1;
                }
                result => return Ok(result?),
            }
        }
    }

    fn lift(&mut self, folder: &Folder, name: &OsStr) -> io::Result<()> {
        folder.unlock_entry(name)?;
        loop {
            self.lifted += 1;
            match renameat(folder, name, &self.top, Path::new(&self.lifted.to_string())) {
                // Somebody else sweeps here too.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                result => return Ok(result?),
            }
        }
    }
}

fn gone_is_fine(error: Errno) -> io::Result<()> {
    gone(error.into())
}

fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
