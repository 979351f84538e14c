//! A small file, damaged in every way.

use super::*;
use crate::bulk::conversations::Segment;
use crate::formats::native::container::sign;
use crate::tokenizer::offsets::Keep;
use crate::{Pattern, Special, Text, Vocabulary};

fn tokenizer() -> Tokenizer {
    let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    let long = b"a token of more than 15 bytes".to_vec();
    let tokens = bytes.chain([
        (b"ab".to_vec(), 256),
        (b"abc".to_vec(), 257),
        (long, 258),
        (b"bc".to_vec(), 259),
    ]);
    let vocabulary = Vocabulary::new(tokens, [("<s>".to_owned(), 262)]).unwrap();
    let notes = BTreeMap::from([("name".to_owned(), "test".to_owned())]);
    let pattern = Pattern::new("gpt2").unwrap();
    Tokenizer::from_ranks(vocabulary, pattern).unwrap().with_notes(notes)
}

/// The same tokens under each rule.
fn all_rules() -> Vec<Tokenizer> {
    let ranks = tokenizer();
    let merges = ranks.merges().to_vec();
    let listed = [(merges.clone(), false), (merges, true), (Vec::new(), false)];
    let listed = listed.map(|(merges, ignore_merges)| {
        let (vocabulary, rules) = (ranks.vocabulary().clone(), ranks.rules().clone());
        let made = Tokenizer::from_merges(vocabulary, merges, ignore_merges, rules);
        made.unwrap().with_notes(ranks.notes().clone())
    });
    std::iter::once(ranks).chain(listed).collect()
}

fn equal(one: &Tokenizer, two: &Tokenizer) {
    assert!(one == two);
    assert_eq!(one.notes(), two.notes());
    assert_eq!(one.merges(), two.merges());
    assert_eq!(one.merge_counts(), two.merge_counts());
    assert_eq!(one.fingerprint(), two.fingerprint());
    assert_eq!(one.encode(TEXT).unwrap(), two.encode(TEXT).unwrap());
    assert_eq!(one.ranks(), two.ranks());
}

const TEXT: &str = "abc bcabcab a token of more than 15 bytes, é 中文 <s>";

#[test]
fn what_is_written_is_read() {
    for one in all_rules() {
        for tables in [true, false] {
            let file = write_sections(&one, tables).unwrap();
            let two = Tokenizer::from_bytes(&file).unwrap();
            equal(&one, &two);
            assert!(write_sections(&two, tables).unwrap() == file, "always the same bytes");
            verify(&file).unwrap();
        }
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let file = tokenizer().to_bytes(Tables::Without).unwrap();
    for end in 0..file.len() {
        assert!(Tokenizer::from_bytes(&file[..end]).is_err(), "cut at {end}");
    }
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Tokenizer::from_bytes(&damaged).is_err(), "bit {bit}");
    }
}

/// A small file can name the same long tokens many times.
#[test]
fn what_a_file_costs_is_bounded_by_its_size() {
    const LONG: usize = 1 << 19;
    let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    let long =
        [vec![b'a'; LONG], vec![b'a'; 2 * LONG], [vec![b'b'; LONG], vec![b'c'; LONG]].concat()];
    let vocabulary = Vocabulary::new(bytes.chain(long.into_iter().zip(256..)), []).unwrap();
    let rules = TextRules::from(Pattern::new("gpt2").unwrap());
    for rule in [MergeRule::Merges { ignore_merges: false }, MergeRule::Ranks] {
        let merges = Merges::of_pairs(vec![(256, 256); 1 << 17], Vec::new());
        let one = Tokenizer::by_rule(vocabulary.clone(), rule, rules.clone(), merges).unwrap();
        let two = Tokenizer::from_bytes(&one.to_bytes(Tables::Without).unwrap()).unwrap();
        assert_eq!(two.ranks()[257..], [Some(0), None]);
    }
    // The names of special tokens are the bytes of their ids, so a repeated id must be refused.
    let mut writer = Writer::default();
    writer.array(Kind::TokenBytes, &Array::new(vec![b'a'; LONG]));
    writer.numbers(Kind::TokenOffsets, [0, u32::try_from(LONG).unwrap()]);
    writer.numbers(Kind::SpecialIds, vec![0; 1 << 17]);
    assert!(
        Tokenizer::from_bytes(&writer.finish()).unwrap_err().to_string().contains("not ascending")
    );
}

/// Call everything that reads the tables.
fn use_it(tokenizer: &Tokenizer) {
    let text = TEXT.repeat(3);
    let options = tokenizer.options(&Special::All, &[], &[]).unwrap();
    if let Ok(ids) = tokenizer.encode_with(&text, &options) {
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocabulary().len()));
        let _either = tokenizer.decode_bytes(&ids);
    }
    let _either = tokenizer.encode_pretoken(&[b'a'; 300]);
    let _either = tokenizer.encode_with_spans(&Text::Utf8(&text), &options);
    for keep in [Keep::Start, Keep::End] {
        let _either = tokenizer.truncate_text(&text, 5, keep);
    }
    for id in 0..300 {
        let _either = tokenizer.token_bytes(id);
    }
    let _either = (tokenizer.ranks().len(), tokenizer.fingerprint().len());
    let segments = [Segment::Text(TEXT), Segment::Text(TEXT)];
    let whole = std::iter::once(0..2).collect::<Vec<_>>();
    let _either = tokenizer.render(&whole, &segments, &[true, false], true, 1);
    let _either = write_sections(tokenizer, true).unwrap();
}

/// Replace each number of each section by harmful values and correct the checksum. Loading must
/// then fail, or give a tokenizer that is safe to use.
#[test]
fn hostile_numbers_are_an_error_or_harmless() {
    for (which, tokenizer) in all_rules().into_iter().enumerate() {
        let file = write_sections(&tokenizer, true).unwrap();
        let table = 64..64 + 24 * usize::from(file[12]);
        let interesting = |at: usize| {
            let plain = [[0; 4], [0xFF; 4]].contains(&file[at..at + 4].try_into().unwrap());
            table.contains(&at) || at.is_multiple_of(4099) || !plain && at / 4 % 3 == which % 3
        };
        for at in (8..file.len() - 4).step_by(4).filter(|&at| interesting(at)) {
            for value in [0, 1, 263, 1 << 21, 1 << 31, u32::MAX] {
                let mut hostile = file.clone();
                hostile[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
                sign(&mut hostile);
                if let Ok(tokenizer) = Tokenizer::from_bytes(&hostile) {
                    use_it(&tokenizer);
                }
            }
        }
    }
}
