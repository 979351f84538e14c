//! Writes a file atomically: under a temporary name, synced and renamed.

use std::fs::{File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Create or replace the file at `path` with the bytes that `write` writes. A file that is replaced
/// keeps its permissions, but not the one to act as its owner (setuid): somebody else may have made
/// it.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    // A random name, because a killed process may have left a temporary file. What is random is the
    // same in a forked process, its number is not.
    let mut random = RandomState::new().build_hasher();
    random.write_u32(std::process::id());
    let random = random.finish();
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.display();
    let temporary = path.with_file_name(format!(".{name}.{random:016x}"));
    let written = File::create_new(&temporary).and_then(|mut file| {
        if let Ok(replaced) = std::fs::metadata(path) {
            file.set_permissions(plain(&replaced.permissions()))?;
        }
        write(&mut file)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        sync_folder(path)
    });
    if written.as_ref().is_err_and(|error| error.kind() != ErrorKind::AlreadyExists) {
        // The first error is reported, not that of the removal.
        let _result = std::fs::remove_file(&temporary);
    }
    written
}

/// Permissions to read, write and execute.
#[cfg(unix)]
fn plain(permissions: &Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(permissions.mode() & 0o777)
}

/// Only Unix has others.
#[cfg(not(unix))]
fn plain(permissions: &Permissions) -> Permissions {
    permissions.clone()
}

/// Sync the folder of a file; otherwise the new name may be lost in a crash.
#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Folders can be opened as files only on Unix.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> Result<()> {
    Ok(())
}
