//! What often stands where a data file should be: a pointer of Git LFS, or a page of HTML.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::{FETCH_FILE, FETCH_LFS, Reason};

/// The first bytes of a pointer of Git LFS.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// How a page of HTML begins, in lower case.
const HTML: [&[u8]; 2] = [b"<!doctype html", b"<html"];

/// The number of bytes of a file that are looked at.
const HEAD_BYTES: u64 = 256;

/// Why a file with these first bytes is a pointer of Git LFS and not a text, and the way out.
pub(crate) fn pointer(head: &[u8]) -> Option<Reason> {
    head.starts_with(LFS)
        .then(|| Reason::new("it is a pointer of Git LFS, not the file itself", FETCH_LFS))
}

/// Why a file with these first bytes is neither parquet, jsonl nor compressed, and the way out.
pub(crate) fn stand_in(head: &[u8]) -> Option<Reason> {
    let start = head.trim_ascii_start();
    let is_html = HTML
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag)));
    pointer(head).or_else(|| {
        let text = "it is a page of HTML, perhaps that of a failed download";
        is_html.then(|| Reason::new(text, FETCH_FILE))
    })
}

/// [`stand_in`] for the file at a path, if it can be read.
pub(crate) fn stand_in_at(path: &Path) -> Option<Reason> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    stand_in(&head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_are_known_by_their_first_bytes() {
        let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n";
        assert!(pointer(lfs).is_some_and(|why| why.to_string().contains("git lfs pull")));
        assert_eq!(stand_in(lfs), pointer(lfs));
        for page in [&b"\n <!DOCTYPE html><p>"[..], b"<HTML>", b"<html lang=en>"] {
            assert!(stand_in(page).is_some_and(|why| why.text().contains("HTML")));
            assert_eq!(pointer(page), None);
        }
        assert_eq!(stand_in(b"{\"text\": \"<html>\"}"), None);
        assert_eq!(stand_in_at(Path::new("/no/such/file")), None);
    }
}
