//! A whole `tokenizer.json` in, a tokenizer out.
//!
//! Each part of the file is either read exactly or is an error that names it: an approximation
//! would give the right ids for most texts, and its wrong ids would go unnoticed. The supported
//! forms are those of most files of byte-level BPE. The Python package reads more forms, and saves
//! them as a file that [`Tokenizer::open`] reads.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::formats::tokenizer_json::{JsonTables, ParsedJson};
use crate::pretokenize::Pattern;
use crate::tokenizer::Tokenizer;

/// Other spellings of well-known patterns in these files: the built-in expression of `ByteLevel`,
/// and expressions for Oniguruma, where a possessive quantifier with a count is written as an
/// atomic group and `$` matches at the end of a line.
const SPELLINGS: [(&str, &str); 3] = [
    (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "gpt2"),
    (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\z|\s+(?!\S)|\s", "gpt2"),
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s",
        "gpt4",
    ),
];

impl Tokenizer {
    /// Load a tokenizer from the bytes of a `tokenizer.json`, as Hugging Face tokenizers write it.
    /// Added tokens become special tokens. The ids that a post-processor adds around a text are
    /// left to the caller: see [`options`](Self::options).
    ///
    /// Supports models of byte-level BPE with a well-known [`Pattern`], and with NFC, NFKC or no
    /// normalization. Fails with [`Error::TokenizerJson`] at the first part that is anything else.
    ///
    /// ```
    /// use bytepair::{Error, Tokenizer};
    /// let file = r#"{
    ///     "added_tokens": [{"id": 3, "content": "<|endoftext|>"}],
    ///     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    ///     "decoder": {"type": "ByteLevel"},
    ///     "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
    /// }"#;
    /// let tokenizer = Tokenizer::from_tokenizer_json(file.as_bytes())?;
    /// assert_eq!(tokenizer.encode("aba")?, [2, 0]);
    ///
    /// let other = file.replace("BPE", "WordPiece");
    /// let error = Tokenizer::from_tokenizer_json(other.as_bytes()).unwrap_err();
    /// assert!(matches!(error, Error::TokenizerJson { place: "model.type", .. }));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn from_tokenizer_json(file: &[u8]) -> Result<Self> {
        let unusual = || refused("model", "vocab, merges or added_tokens have an unsupported form");
        let parsed = JsonTables::parse(file)?.ok_or_else(unusual)?;
        let document: Value = serde_json::from_slice(&remainder(file, &parsed))
            .map_err(|error| refused("the file", &error.to_string()))?;
        check_document(&document)?;
        let model = &document["model"];
        check_model(model, parsed.tables.has_all_bytes())?;
        let special = special_tokens(&document, &parsed)?;
        let split = pattern(&document["pre_tokenizer"])?;
        let pattern = Pattern::from_regex(&[normalizer(&document)?, split.regex()].concat());
        let ignore_merges = is_true(&model["ignore_merges"]);
        // Written by this package for tokenizers with the rule of merges.
        let ranks = model["bytepair"]["merge_rule"] != "merges";
        parsed.tables.tokenizer(special, pattern, ranks, ignore_merges)
    }
}

/// The file with empty tables.
fn remainder(file: &[u8], parsed: &ParsedJson) -> Vec<u8> {
    let [first, last] = &parsed.ranges;
    let empty = |start: usize| if file[start] == b'{' { "{}" } else { "[]" }.as_bytes();
    let parts = [&file[..first.start], empty(first.start), &file[first.end..last.start]];
    [&parts[..], &[empty(last.start), &file[last.end..]]].concat().concat()
}

/// Check the parts outside the model and the splitting that could change ids.
fn check_document(document: &Value) -> Result<()> {
    if !matches!(document["version"].as_str(), None | Some("1.0")) {
        return Err(refused("version", "it is not 1.0"));
    }
    for place in ["truncation", "padding"] {
        require(document[place].is_null(), place, "it is not supported")?;
    }
    let is_byte_level = document["decoder"]["type"] == "ByteLevel";
    require(is_byte_level, "decoder", "it is not ByteLevel")
}

fn check_model(model: &Value, has_all_bytes: bool) -> Result<()> {
    let is_bpe = matches!(model["type"].as_str(), None | Some("BPE"));
    require(is_bpe, "model.type", "it is not BPE")?;
    require(is_unset(&model["dropout"]), "model.dropout", "dropout is not supported")?;
    let affixes = ["continuing_subword_prefix", "end_of_word_suffix"];
    let plain = affixes.iter().all(|name| is_unset(&model[name]));
    require(plain, "model", "it has a subword prefix or a word suffix")?;
    let unknown = ["unk_token", "byte_fallback"];
    let exact = has_all_bytes || unknown.iter().all(|name| is_unset(&model[name]));
    require(exact, "model.unk_token", "a byte without a token is replaced by another token")
}

/// The added tokens. Fails unless each has the id that `tokenizers` would give it, and is matched
/// in a text like the special tokens of this crate.
fn special_tokens(document: &Value, parsed: &ParsedJson) -> Result<Vec<(String, u32)>> {
    let place = "added_tokens";
    let tokens = document[place].as_array().map_or(&[][..], Vec::as_slice);
    let mut special: Vec<(String, u32)> = Vec::with_capacity(tokens.len());
    let mut next = parsed.size;
    for token in tokens {
        let name =
            token["content"].as_str().ok_or_else(|| refused(place, "a token has no content"))?;
        let known = parsed.added.iter().find(|(known, _)| known == name);
        let given = known.map_or(next as u64, |(_, id)| u64::from(*id));
        let id = u32::try_from(given).ok().filter(|_| token["id"] == given);
        let id =
            id.ok_or_else(|| refused(place, &format!("{name:?} does not have the id {given}")))?;
        next = next.max(id as usize + 1);
        let is_plain =
            ["single_word", "lstrip", "rstrip"].iter().all(|flag| !is_true(&token[flag]));
        require(is_plain, place, &format!("{name:?} depends on the text around it"))?;
        special.push((name.to_owned(), id));
    }
    let normalized = tokens.iter().filter(|token| is_true(&token["normalized"])).count();
    let same = normalized == 0 || normalized == tokens.len();
    require(same, place, "`normalized` is not the same for all tokens")?;
    let exact = normalized == 0 || document["normalizer"].is_null();
    require(exact, place, "matching tokens in normalized text is not supported")?;
    Ok(special)
}

/// The mark of a normalization at the start of a pattern.
fn normalizer(document: &Value) -> Result<&'static str> {
    let normalizer = &document["normalizer"];
    match normalizer["type"].as_str() {
        None if normalizer.is_null() => Ok(""),
        Some("NFC") => Ok("(?#NFC)"),
        Some("NFKC") => Ok("(?#NFKC)"),
        _ => Err(refused("normalizer", "it is neither NFC nor NFKC")),
    }
}

/// The pattern of a `pre_tokenizer`: `ByteLevel` alone, or one split before it.
fn pattern(step: &Value) -> Result<Pattern> {
    let place = "pre_tokenizer";
    let steps = match step["pretokenizers"].as_array() {
        Some(steps) if step["type"] == "Sequence" => steps,
        _ => std::slice::from_ref(step),
    };
    let Some((last, splits)) = steps.split_last() else {
        return Err(refused(place, "it is empty"));
    };
    require(last["type"] == "ByteLevel", place, "its last step is not ByteLevel")?;
    let no_space = last["add_prefix_space"] == Value::Bool(false);
    require(no_space, place, "add_prefix_space is not supported")?;
    let is_split_again = last["use_regex"] != Value::Bool(false);
    match splits {
        [] if is_split_again => well_known(SPELLINGS[0].0),
        [split] if !is_split_again => {
            let isolated = split["behavior"] == "Isolated" && !is_true(&split["invert"]);
            // A well-known pattern matches every character, so nothing is removed.
            let inverted = split["behavior"] == "Removed" && is_true(&split["invert"]);
            require(split["type"] == "Split", place, "a step is neither Split nor ByteLevel")?;
            require(
                isolated || inverted,
                place,
                "the behavior of its split is neither Isolated nor inverted Removed",
            )?;
            well_known(split["pattern"]["Regex"].as_str().unwrap_or_default())
        }
        _ => Err(refused(place, "it has several splits")),
    }
}

/// The well-known pattern of an expression for Oniguruma.
fn well_known(regex: &str) -> Result<Pattern> {
    let spelling = SPELLINGS.iter().find(|(spelling, _)| *spelling == regex);
    let same = Some(Pattern::from_regex(regex)).filter(|pattern| pattern.name().is_some());
    // Oniguruma reads `$` as the end of a line, and `{1,3}+` as a repetition of a repetition.
    let repeats_count = |part: &[u8]| part[0].is_ascii_digit() && part.ends_with(b"}+");
    let differs = regex.contains('$') || regex.as_bytes().windows(3).any(repeats_count);
    let same = same.filter(|_| !differs);
    spelling
        .and_then(|(_, name)| Pattern::named(name))
        .or(same)
        .ok_or_else(|| refused("pre_tokenizer", "its expression is not a well-known pattern"))
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

/// Whether a setting is absent or off.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value == false || value == "" || value.as_f64() == Some(0.0)
}

fn require(holds: bool, place: &'static str, reason: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(refused(place, reason)) }
}

fn refused(place: &'static str, reason: &str) -> Error {
    Error::TokenizerJson { place, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tokenizer_json::texts;
    use crate::vocabulary::{MergeRule, Vocabulary};

    const SPLIT: &str = r#"{"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": REGEX}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}"#;

    fn tokenizer(pattern: Pattern) -> Tokenizer {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let tokens = bytes.chain([(b"lo".to_vec(), 256), (b"low".to_vec(), 257)]);
        let special = [("<s>".to_owned(), 258)];
        Tokenizer::from_ranks(Vocabulary::new(tokens, special).unwrap(), pattern).unwrap()
    }

    /// The file of a tokenizer, with `regex` as its split expression.
    fn file(tokenizer: &Tokenizer, regex: &str) -> String {
        let (vocabulary, merges) = texts(tokenizer, &[]).unwrap();
        let split = SPLIT.replace("REGEX", &Value::from(regex).to_string());
        format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null,
            "added_tokens": [{{"id": 258, "content": "<s>", "special": true, "normalized": false}}],
            "normalizer": null, "pre_tokenizer": {split}, "decoder": {{"type": "ByteLevel"}},
            "model": {{"type": "BPE", "dropout": null, "ignore_merges": true,
            "vocab": {vocabulary}, "merges": {merges}}}}}"#
        )
    }

    fn read(file: &str) -> Result<Tokenizer> {
        Tokenizer::from_tokenizer_json(file.as_bytes())
    }

    #[test]
    fn well_known_patterns_are_read() {
        let same = ["nanochat", "gpt4o", "qwen2", "llama3"].map(|name| {
            let pattern = Pattern::named(name).unwrap();
            (pattern.regex().to_owned(), pattern)
        });
        let spelled =
            SPELLINGS.map(|(regex, name)| (regex.to_owned(), Pattern::named(name).unwrap()));
        for (regex, pattern) in same.into_iter().chain(spelled) {
            let tokenizer = tokenizer(pattern);
            assert!(read(&file(&tokenizer, &regex)).unwrap() == tokenizer, "{regex}");
        }
    }

    #[test]
    fn the_rule_and_the_normalization_are_read() {
        let tokenizer = tokenizer(Pattern::named("qwen2").unwrap());
        let file = file(&tokenizer, tokenizer.pattern().regex());
        for (mark, ignores, rule) in [
            ("", true, MergeRule::Ranks),
            ("", false, MergeRule::Ranks),
            (r#""bytepair": {"merge_rule": "ranks"},"#, false, MergeRule::Ranks),
            (
                r#""bytepair": {"merge_rule": "merges"},"#,
                true,
                MergeRule::Merges { ignore_merges: true },
            ),
            (
                r#""bytepair": {"merge_rule": "merges"},"#,
                false,
                MergeRule::Merges { ignore_merges: false },
            ),
        ] {
            let model = if ignores { "\"ignore_merges\": true," } else { "" };
            let marked = file.replace("\"ignore_merges\": true,", &[model, mark].concat());
            assert_eq!(read(&marked).unwrap().rule(), rule, "{mark} {ignores}");
        }
        let form = r#""normalizer": {"type": "NFC"}"#;
        let normalizing = read(&file.replace(r#""normalizer": null"#, form)).unwrap();
        assert_eq!(normalizing.encode("e\u{301}").unwrap(), tokenizer.encode("é").unwrap());
    }

    #[test]
    fn unsupported_parts_are_rejected_by_name() {
        let tokenizer = tokenizer(Pattern::named("qwen2").unwrap());
        let file = file(&tokenizer, tokenizer.pattern().regex());
        for (part, other, place) in [
            ("\"1.0\"", "\"2.0\"", "version"),
            ("\"truncation\": null", "\"truncation\": {}", "truncation"),
            ("\"padding\": null", "\"padding\": {}", "padding"),
            ("{\"type\": \"ByteLevel\"}", "{\"type\": \"WordPiece\"}", "decoder"),
            ("\"BPE\"", "\"Unigram\"", "model.type"),
            ("\"dropout\": null", "\"dropout\": 0.1", "model.dropout"),
            ("\"dropout\": null", "\"end_of_word_suffix\": \"</w>\"", "model"),
            ("\"lo\": 256", "\"lo\": 0", "model"),
            ("\"id\": 258", "\"id\": 259", "added_tokens"),
            ("\"special\": true", "\"lstrip\": true", "added_tokens"),
            ("\"content\"", "\"text\"", "model"),
            ("\"normalizer\": null", "\"normalizer\": {\"type\": \"Lowercase\"}", "normalizer"),
            ("\"use_regex\": false", "\"use_regex\": true", "pre_tokenizer"),
            ("\"add_prefix_space\": false", "\"x\": 0", "pre_tokenizer"),
            ("\"Isolated\"", "\"Removed\"", "pre_tokenizer"),
            ("\"Split\"", "\"Punctuation\"", "pre_tokenizer"),
            ("\\\\p{L}+", "\\\\p{L}", "pre_tokenizer"),
        ] {
            let changed = file.replacen(part, other, 1);
            assert_ne!(changed, file, "{part}");
            let Err(Error::TokenizerJson { place: found, .. }) = read(&changed) else {
                panic!("{part} was read as {other}");
            };
            assert_eq!(found, place, "{other}");
        }
        assert!(read(&file[..file.len() - 1]).is_err() && read("").is_err());
    }

    #[test]
    fn a_missing_byte_with_an_unknown_token_is_rejected() {
        let file = r#"{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
            "decoder": {"type": "ByteLevel"},
            "model": {"unk_token": null, "vocab": {"a": 0}, "merges": []}}"#;
        assert!(read(file).is_ok());
        let error = read(&file.replace(r#""unk_token": null"#, r#""unk_token": "a""#));
        assert!(matches!(error, Err(Error::TokenizerJson { place: "model.unk_token", .. })));
    }
}
