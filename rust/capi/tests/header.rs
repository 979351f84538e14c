//! The header is what cbindgen makes of the crate.
//!
//! With `BYTEPAIR_WRITE_HEADER`, the test writes it instead; `make header` does that.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("include/bytepair.h");
    let mut made = Vec::new();
    cbindgen::generate(root).expect("the crate can be read").write(&mut made);
    let made = String::from_utf8(made).expect("a header is text");
    if std::env::var_os("BYTEPAIR_WRITE_HEADER").is_some() {
        std::fs::write(&file, made).expect("the header can be written");
        return;
    }
    let committed = std::fs::read_to_string(&file).expect("the header can be read");
    assert!(
        committed.replace("\r\n", "\n") == made,
        "{} is out of date: run `make header`",
        file.display()
    );
}
