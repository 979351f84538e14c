//! What the bytes of a file are, if they are no tokenizer at all: the usual mistakes, by name.

use crate::error::{Reason, WayOut};

const FETCH: &[WayOut] = &[WayOut::plain("copy or download it again")];
const SAVE_AS_UTF8: &[WayOut] = &[WayOut::plain("save it as UTF-8 without one")];
const FETCH_POINTED: &[WayOut] =
    &[WayOut::plain("fetch the file with `git lfs pull`"), WayOut::plain("download it")];
const FETCH_RAW: &[WayOut] = &[WayOut::plain(
    "download the file itself (of a page of a repository, the link \"raw\" or \"download\")",
)];

/// The number of bytes that are inspected.
const HEAD_BYTES: usize = 1 << 10;

/// Why the beginning of a file cannot be that of a tokenizer in any format, and what to do; `None`
/// if it may be one.
///
/// ```
/// use bytepair::formats::recognize::mistaken;
/// assert!(mistaken(b"").unwrap().text().contains("empty"));
/// assert!(mistaken(b"<!DOCTYPE html>\n<html>").unwrap().text().contains("HTML"));
/// assert_eq!(mistaken(b"{\"version\": \"1.0\""), None);
/// ```
pub fn mistaken(head: &[u8]) -> Option<Reason> {
    let start = head[..head.len().min(HEAD_BYTES)].trim_ascii_start();
    let is = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    let (text, ways_out) = if head.is_empty() {
        ("the file is empty", FETCH)
    } else if head.starts_with(b"\xEF\xBB\xBF") {
        ("the file begins with a byte-order mark, which is not allowed in it", SAVE_AS_UTF8)
    } else if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") {
        ("the file begins with the byte-order mark of UTF-16", SAVE_AS_UTF8)
    } else if head.starts_with(b"version https://git-lfs.github.com/") {
        ("this is a pointer of Git LFS, and not the file itself", FETCH_POINTED)
    } else if is(b"<!doctype html") || is(b"<html") {
        ("this is a page of HTML, and not the file itself", FETCH_RAW)
    } else {
        return None;
    };
    Some(Reason::new(text, ways_out))
}
