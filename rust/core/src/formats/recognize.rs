//! What the bytes of a file are, if they are no tokenizer at all: the usual mistakes, by name.

/// The number of bytes that are inspected.
const HEAD_BYTES: usize = 1 << 10;

/// Why the beginning of a file cannot be that of a tokenizer in any format, and what to do; `None`
/// if it may be one.
///
/// ```
/// use bytepair::formats::recognize::mistaken;
/// assert!(mistaken(b"").unwrap().contains("empty"));
/// assert!(mistaken(b"<!DOCTYPE html>\n<html>").unwrap().contains("HTML"));
/// assert_eq!(mistaken(b"{\"version\": \"1.0\""), None);
/// ```
pub fn mistaken(head: &[u8]) -> Option<&'static str> {
    if head.is_empty() {
        return Some("the file is empty; copy or download it again");
    }
    if head.starts_with(b"\xEF\xBB\xBF") {
        return Some(
            "the file begins with a byte-order mark, which is not allowed in it; save it as UTF-8 \
             without one",
        );
    }
    if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") {
        return Some(
            "the file begins with the byte-order mark of UTF-16; save it as UTF-8 without one",
        );
    }
    if head.starts_with(b"version https://git-lfs.github.com/") {
        return Some(
            "this is a pointer of Git LFS, and not the file itself; fetch the file with \
             `git lfs pull`, or download it",
        );
    }
    let start = head[..head.len().min(HEAD_BYTES)].trim_ascii_start();
    let is = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    (is(b"<!doctype html") || is(b"<html")).then_some(
        "this is a page of HTML, and not the file itself; download the file itself (of a page of a \
         repository, the link \"raw\" or \"download\")",
    )
}
