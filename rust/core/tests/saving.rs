//! Saving replaces only a regular file with one name.

#![cfg(unix)]

#[test]
fn links_are_not_replaced() {
    let folder = std::env::temp_dir().join(format!("bytepair-links-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [file, link, name] = ["file", "link", "name"].map(|name| folder.join(name));
    std::fs::write(&file, "kept").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    let vocabulary = bytepair::Vocabulary::new(bytes, []).unwrap();
    let pattern = bytepair::Pattern::new("gpt2").unwrap();
    let tokenizer = bytepair::Tokenizer::from_ranks(vocabulary, pattern).unwrap();
    assert!(tokenizer.save(&link).is_err() && tokenizer.save(&folder).is_err());
    std::fs::hard_link(&file, &name).unwrap();
    assert!(tokenizer.save(&name).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    std::fs::remove_file(&name).unwrap();
    tokenizer.save(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
