//! Writes a file whole or not at all: under a temporary name, synced and renamed.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Replace the file of this name, or create it, by what `write` writes.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    // A random name, since a killed process may have left a file behind under any other.
    let random = RandomState::new().build_hasher().finish();
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.display();
    let temporary = path.with_file_name(format!(".{name}.{random:016x}"));
    let written = File::create_new(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        sync_folder(path)
    });
    if written.as_ref().is_err_and(|error| error.kind() != ErrorKind::AlreadyExists) {
        // What went wrong first is what is reported.
        let _removed = std::fs::remove_file(&temporary);
    }
    written
}

/// Sync the folder of a file, without which the new name may be lost in a crash.
#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Only Unix opens folders as files.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> Result<()> {
    Ok(())
}
