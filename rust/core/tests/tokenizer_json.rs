//! A table of small `tokenizer.json` files, which the Python tests read too: the ids that
//! `tokenizers` gives, or the error.

use bytepair::formats::mistaken;
use bytepair::formats::tokenizer_json::{losses, write};
use bytepair::{Error, Special, Tokenizer};
use serde_json::Value;

fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tokenizer_json.json");
    let text =
        std::fs::read_to_string(path).expect("the table of small files is in the repository");
    serde_json::from_str(&text).expect("the table is valid JSON")
}

fn read(document: &Value) -> Result<Tokenizer, Error> {
    Tokenizer::from_tokenizer_json(document.to_string().as_bytes())
}

#[test]
fn files_give_the_ids_of_tokenizers_and_come_back() {
    for case in cases().iter().filter(|case| case["ids"].is_array()) {
        let tokenizer = read(&case["document"]).unwrap_or_else(|e| panic!("{}: {e}", case["name"]));
        let parts = tokenizer.parts().unwrap();
        assert_eq!(losses(&parts), Vec::<String>::new(), "{}", case["name"]);
        let again = Tokenizer::from_tokenizer_json(write(&parts).unwrap().as_bytes()).unwrap();
        assert!(again == tokenizer, "{}", case["name"]);
        for pair in case["ids"].as_array().unwrap() {
            let text = pair[0].as_str().unwrap();
            let expected: Vec<u32> = serde_json::from_value(pair[1].clone()).unwrap();
            for tokenizer in [&tokenizer, &again] {
                let options = tokenizer.options(&Special::All, &[], &[]).unwrap();
                let ids = tokenizer.encode_with(text, &options).unwrap();
                assert_eq!(ids, expected, "{} {text:?}", case["name"]);
            }
        }
    }
}

#[test]
fn other_files_are_refused_with_the_place_and_the_reason() {
    for case in cases().iter().filter(|case| case["error"].is_array()) {
        let error = read(&case["document"]).err();
        let Some(Error::Format { place, reason } | Error::Unsupported { place, reason }) = error
        else {
            panic!("{}: {error:?}", case["name"]);
        };
        assert_eq!(place, case["error"][0].as_str().unwrap(), "{}: {reason}", case["name"]);
        assert!(
            reason.text().contains(case["error"][1].as_str().unwrap()),
            "{}: {reason}",
            case["name"]
        );
    }
}

#[test]
fn bytes_that_are_no_json_are_named() {
    for (bytes, reason) in [
        (&b""[..], "empty"),
        (b"\xEF\xBB\xBF{}", "byte-order mark"),
        (b"\xFF\xFE{\0}\0", "UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        (b"\n<!doctype HTML><html></html>", "HTML"),
        (b"{\"model\": ", "invalid JSON"),
        (b"{\"a\": \xFF}", "not UTF-8"),
        (b"{\"version\": \"1.0\", \"version\": \"1.0\"}", "duplicate name"),
    ] {
        let error = Tokenizer::from_tokenizer_json(bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let deep = ["{\"normalizer\": ", &"[".repeat(200_000), ", \"model\": {}}"].concat();
    assert!(Tokenizer::from_tokenizer_json(deep.as_bytes()).is_err());
    assert_eq!(mistaken(b"{"), None);
}

/// Memory and time are linear in a file with long added tokens, which have a limit.
#[test]
fn long_added_tokens_are_read() {
    let mut document =
        cases().into_iter().next().map_or(Value::Null, |case| case["document"].clone());
    let Some(added) = document["added_tokens"].as_array_mut() else { return };
    for number in 0..500u32 {
        let mut token = added[0].clone();
        token["content"] = ["ab".repeat(2_000), number.to_string()].concat().into();
        token["id"] = (261 + number).into();
        added.push(token);
    }
    assert_eq!(read(&document).unwrap().vocabulary().len(), 761);
    document["added_tokens"][1]["content"] = "ab".repeat(50_000).into();
    assert!(read(&document).is_err());
}
