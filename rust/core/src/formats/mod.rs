//! Reads and writes tokenizers, and the counts that they are trained on, as files.
//!
//! Tells by its first bytes which format a file has, and what is usually mistaken for one.

#[cfg(feature = "parquet")]
pub mod counts_file;
pub mod native;
pub mod ranks;
#[cfg(feature = "json")]
pub mod tokenizer_json;

use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::corpus::stand_in;
use crate::error::{Error, Hint, Reason, Result};
use crate::formats::native::MAGIC;
use crate::formats::ranks::RankFile;

/// A format of tokenizers that this crate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenizerFormat {
    /// The native file.
    Native,
    /// A `tokenizer.json`.
    TokenizerJson,
    /// A rank file, which has no pattern.
    Ranks,
}

/// The number of bytes that decide.
pub const HEAD_BYTES: usize = 1 << 10;

const FETCH: &Hint = &Hint::new("copy or download it again");
const SAVE_AS_UTF8: &Hint = &Hint::new("save it as UTF-8 without one");

/// The format of a file, from its first [`HEAD_BYTES`] bytes.
///
/// Fails with [`Error::Format`] if it is none of the three.
///
/// ```
/// use bytepair::formats::{TokenizerFormat, kind};
/// assert_eq!(kind(b" {\"version\": ")?, TokenizerFormat::TokenizerJson);
/// assert_eq!(kind(b"YQ== 0\nYg== 1\n")?, TokenizerFormat::Ranks);
/// assert!(kind(b"").is_err());
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn kind(head: &[u8]) -> Result<TokenizerFormat> {
    if head.starts_with(MAGIC) {
        return Ok(TokenizerFormat::Native);
    }
    let reason = match mistaken(head) {
        Some(reason) => reason,
        None if head.trim_ascii_start().starts_with(b"{") => {
            return Ok(TokenizerFormat::TokenizerJson);
        }
        None if RankFile::is_one(head) => return Ok(TokenizerFormat::Ranks),
        None => Reason::new(
            "the file is neither a native tokenizer file nor a tokenizer.json nor a rank file",
            const { &Hint::new("convert it with `bytepair convert`") },
        ),
    };
    Err(Error::Format { place: "byte 0".to_owned(), reason })
}

/// Why the beginning of a file cannot be that of a tokenizer in any format, and what to do; `None`
/// if it may be one.
///
/// ```
/// use bytepair::formats::mistaken;
/// assert!(mistaken(b"").unwrap().text().contains("empty"));
/// assert!(mistaken(b"<!DOCTYPE html>\n<html>").unwrap().text().contains("HTML"));
/// assert_eq!(mistaken(b"{\"version\": \"1.0\""), None);
/// ```
pub fn mistaken(head: &[u8]) -> Option<Reason> {
    let (text, hint) = if head.is_empty() {
        ("the file is empty", FETCH)
    } else if head.starts_with(b"\xEF\xBB\xBF") {
        ("the file begins with a byte-order mark, which is not allowed in it", SAVE_AS_UTF8)
    } else if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") {
        ("the file begins with the byte-order mark of UTF-16", SAVE_AS_UTF8)
    } else {
        return stand_in(head);
    };
    Some(Reason::new(text, hint))
}

// ---------------------------------------------------------------------------- whole files

/// Create or replace the file at `path` with the bytes that `write` writes, atomically: under a
/// temporary name, synced and renamed. A file that is replaced keeps its permissions, but not the one
/// to act as its owner (setuid): somebody else may have written it.
pub(super) fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // A random name, because a killed process may have left a temporary file. A forked process has the
    // same random state, but another number.
    let mut random = RandomState::new().build_hasher();
    random.write_u32(std::process::id());
    let random = random.finish();
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.display();
    if path.symlink_metadata().is_ok_and(|metadata| !is_plain_file(&metadata)) {
        let reason = "it is a link, a pipe, a folder or a device, or has several names";
        return Err(io::Error::new(ErrorKind::InvalidInput, reason));
    }
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

/// Whether a path is that of a regular file with one name.
fn is_plain_file(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(metadata);
    #[cfg(not(unix))]
    let names = 1;
    metadata.is_file() && names == 1
}

/// Permissions to read, write and execute; only Unix has others.
fn plain(permissions: &Permissions) -> Permissions {
    let permissions = permissions.clone();
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::PermissionsExt;
        Permissions::from_mode(permissions.mode() & 0o777)
    };
    permissions
}

/// Sync the folder of a file; otherwise the new name may be lost in a crash. Folders can be opened as
/// files only on Unix.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}
