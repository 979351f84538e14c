//! The rules of a tokenizer as bytes, and back: what the native file stores and the fingerprint hashes.
//!
//! Each value is a byte that says its kind, followed by its fields. Numbers are unsigned, of 32 bits,
//! little-endian; a text is its number of bytes and its UTF-8; a list is its length and its items. The
//! specification of the native file has the table of kinds.

use super::{
    Behavior, Decoder, DecoderStep, Normalizer, NormalizerStep, PostProcessor, PreTokenizer,
    PreTokenizerStep, ReplacePattern, SpacePrefix, StartSymbols, TemplatePiece, TextRules,
};

impl TextRules {
    /// The bytes of the rules. Equal rules have equal bytes.
    ///
    /// ```
    /// use bytepair::{Pattern, TextRules};
    /// let rules = TextRules::from(Pattern::new("gpt4")?);
    /// assert_eq!(TextRules::from_bytes(&rules.to_bytes()), Some(rules));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Bytes::default();
        out.list(&self.normalizer.steps, Bytes::normalizer_step);
        out.list(&self.pre_tokenizer.steps, Bytes::pre_tokenizer_step);
        out.list(&self.user_defined, |out, id| out.number(*id));
        out.list(self.symbols.as_slice(), Bytes::symbols);
        out.list(&self.post_processor.single, Bytes::template_piece);
        out.list(&self.post_processor.pair, Bytes::template_piece);
        out.kind(match self.post_processor.trim_offsets {
            None => 0,
            Some(false) => 1,
            Some(true) => 2,
        });
        match &self.decoder {
            Decoder::Bytes => out.kind(0),
            Decoder::Steps(steps) => {
                out.kind(1);
                out.list(steps, Bytes::decoder_step);
            }
        }
        out.0
    }

    /// The rules of these bytes; `None` if they are not exactly those that
    /// [`to_bytes`](Self::to_bytes) writes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let normalizer = Normalizer { steps: input.list(Input::normalizer_step)? };
        let pre_tokenizer = PreTokenizer { steps: input.list(Input::pre_tokenizer_step)? };
        let user_defined = input.list(Input::number)?;
        let mut symbols = input.list(Input::symbols)?;
        let (single, pair) =
            (input.list(Input::template_piece)?, input.list(Input::template_piece)?);
        let trim_offsets = match input.kind()? {
            0 => None,
            1 => Some(false),
            2 => Some(true),
            _ => return None,
        };
        let decoder = match input.kind()? {
            0 => Decoder::Bytes,
            1 => Decoder::Steps(input.list(Input::decoder_step)?),
            _ => return None,
        };
        let is_whole = input.0.is_empty() && symbols.len() <= 1;
        let post_processor = PostProcessor { single, pair, trim_offsets };
        let symbols = symbols.pop();
        is_whole.then_some(Self {
            normalizer,
            pre_tokenizer,
            user_defined,
            symbols,
            post_processor,
            decoder,
        })
    }
}

// ---------------------------------------------------------------------------- writing

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn kind(&mut self, kind: u8) {
        self.0.push(kind);
    }

    fn flag(&mut self, flag: bool) {
        self.kind(flag.into());
    }

    fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn size(&mut self, size: usize) {
        self.number(u32::try_from(size).unwrap_or(u32::MAX));
    }

    fn text(&mut self, text: &str) {
        self.size(text.len());
        self.0.extend(text.as_bytes());
    }

    fn character(&mut self, character: char) {
        self.number(character.into());
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.size(items.len());
        for item in items {
            write(self, item);
        }
    }

    fn pattern(&mut self, pattern: &ReplacePattern) {
        let (kind, text) = match pattern {
            ReplacePattern::Literal(text) => (0, text),
            ReplacePattern::Regex(regex) => (1, regex),
        };
        self.kind(kind);
        self.text(text);
    }

    fn normalizer_step(&mut self, step: &NormalizerStep) {
        match step {
            NormalizerStep::Nfc => self.kind(0),
            NormalizerStep::Nfd => self.kind(1),
            NormalizerStep::Nfkc => self.kind(2),
            NormalizerStep::Nfkd => self.kind(3),
            NormalizerStep::Lowercase => self.kind(4),
            NormalizerStep::StripAccents => self.kind(5),
            NormalizerStep::Strip { left, right } => {
                self.kind(6);
                self.flag(*left);
                self.flag(*right);
            }
            NormalizerStep::Prepend(text) => {
                self.kind(7);
                self.text(text);
            }
            NormalizerStep::Replace { pattern, content } => {
                self.kind(8);
                self.pattern(pattern);
                self.text(content);
            }
            NormalizerStep::Spaces(prefix) => {
                self.kind(9);
                self.kind(number_of(&PREFIXES, prefix));
            }
        }
    }

    fn pre_tokenizer_step(&mut self, step: &PreTokenizerStep) {
        match step {
            PreTokenizerStep::Split { regex, behavior, invert } => {
                self.kind(0);
                self.text(regex);
                self.kind(number_of(&BEHAVIORS, behavior));
                self.flag(*invert);
            }
            PreTokenizerStep::Digits { individual } => {
                self.kind(1);
                self.flag(*individual);
            }
            PreTokenizerStep::Punctuation(behavior) => {
                self.kind(2);
                self.kind(number_of(&BEHAVIORS, behavior));
            }
            PreTokenizerStep::Whitespace => self.kind(3),
            PreTokenizerStep::WhitespaceSplit => self.kind(4),
            PreTokenizerStep::Bert => self.kind(5),
            PreTokenizerStep::Delimiter(delimiter) => {
                self.kind(6);
                self.character(*delimiter);
            }
            PreTokenizerStep::UnicodeScripts => self.kind(7),
            PreTokenizerStep::FixedLength(length) => {
                self.kind(8);
                self.size(*length);
            }
            PreTokenizerStep::Metaspace { replacement, prefix, split } => {
                self.kind(9);
                self.character(*replacement);
                self.kind(number_of(&PREFIXES, prefix));
                self.flag(*split);
            }
            PreTokenizerStep::ByteLevel { add_prefix_space, use_regex } => {
                self.kind(10);
                self.flag(*add_prefix_space);
                self.flag(*use_regex);
            }
        }
    }

    fn symbols(&mut self, symbols: &StartSymbols) {
        self.text(&symbols.prefix);
        self.text(&symbols.suffix);
        self.list(symbols.unknown.as_slice(), |out, id| out.number(*id));
        self.flag(symbols.fuse_unknown);
        self.flag(symbols.byte_fallback);
    }

    fn template_piece(&mut self, piece: &TemplatePiece) {
        match piece {
            TemplatePiece::Text { which, type_id } => {
                self.kind(0);
                self.kind(*which);
                self.number(*type_id);
            }
            TemplatePiece::Ids { name, ids, type_id } => {
                self.kind(1);
                self.text(name);
                self.list(ids, |out, id| out.number(*id));
                self.number(*type_id);
            }
        }
    }

    fn decoder_step(&mut self, step: &DecoderStep) {
        match step {
            DecoderStep::ByteLevel => self.kind(0),
            DecoderStep::ByteFallback => self.kind(1),
            DecoderStep::Fuse => self.kind(2),
            DecoderStep::Replace { pattern, content } => {
                self.kind(3);
                self.pattern(pattern);
                self.text(content);
            }
            DecoderStep::Strip { content, start, stop } => {
                self.kind(4);
                self.character(*content);
                self.size(*start);
                self.size(*stop);
            }
            DecoderStep::Metaspace { replacement, drops_first } => {
                self.kind(5);
                self.character(*replacement);
                self.flag(*drops_first);
            }
            DecoderStep::WordSuffix(suffix) => {
                self.kind(6);
                self.text(suffix);
            }
            DecoderStep::WordPiece { prefix, cleanup } => {
                self.kind(7);
                self.text(prefix);
                self.flag(*cleanup);
            }
        }
    }
}

/// The values whose numbers are their places in these lists.
const PREFIXES: [SpacePrefix; 4] =
    [SpacePrefix::Never, SpacePrefix::Always, SpacePrefix::Missing, SpacePrefix::First];
const BEHAVIORS: [Behavior; 5] = [
    Behavior::Isolated,
    Behavior::Removed,
    Behavior::Contiguous,
    Behavior::MergedWithPrevious,
    Behavior::MergedWithNext,
];

fn number_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    let at = all.iter().position(|other| other == one);
    at.and_then(|at| u8::try_from(at).ok()).expect("the list has all values")
}

// ---------------------------------------------------------------------------- reading

/// The bytes that are not read yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn kind(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn flag(&mut self) -> Option<bool> {
        self.kind().filter(|flag| *flag < 2).map(|flag| flag == 1)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn character(&mut self) -> Option<char> {
        char::from_u32(self.number()?)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(usize::from(self.kind()?)).copied()
    }

    /// The items of a list; each takes at least a byte, so no length asks for more than the input.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()? as usize;
        if length > self.0.len() {
            return None;
        }
        (0..length).map(|_| read(self)).collect()
    }

    fn pattern(&mut self) -> Option<ReplacePattern> {
        match self.kind()? {
            0 => self.text().map(ReplacePattern::Literal),
            1 => self.text().map(ReplacePattern::Regex),
            _ => None,
        }
    }

    fn normalizer_step(&mut self) -> Option<NormalizerStep> {
        Some(match self.kind()? {
            0 => NormalizerStep::Nfc,
            1 => NormalizerStep::Nfd,
            2 => NormalizerStep::Nfkc,
            3 => NormalizerStep::Nfkd,
            4 => NormalizerStep::Lowercase,
            5 => NormalizerStep::StripAccents,
            6 => NormalizerStep::Strip { left: self.flag()?, right: self.flag()? },
            7 => NormalizerStep::Prepend(self.text()?),
            8 => NormalizerStep::Replace { pattern: self.pattern()?, content: self.text()? },
            9 => NormalizerStep::Spaces(self.one_of(&PREFIXES)?),
            _ => return None,
        })
    }

    fn pre_tokenizer_step(&mut self) -> Option<PreTokenizerStep> {
        Some(match self.kind()? {
            0 => PreTokenizerStep::Split {
                regex: self.text()?,
                behavior: self.one_of(&BEHAVIORS)?,
                invert: self.flag()?,
            },
            1 => PreTokenizerStep::Digits { individual: self.flag()? },
            2 => PreTokenizerStep::Punctuation(self.one_of(&BEHAVIORS)?),
            3 => PreTokenizerStep::Whitespace,
            4 => PreTokenizerStep::WhitespaceSplit,
            5 => PreTokenizerStep::Bert,
            6 => PreTokenizerStep::Delimiter(self.character()?),
            7 => PreTokenizerStep::UnicodeScripts,
            8 => {
                let length = self.number()? as usize;
                PreTokenizerStep::FixedLength((length > 0).then_some(length)?)
            }
            9 => PreTokenizerStep::Metaspace {
                replacement: self.character()?,
                // No scheme of `Metaspace` puts a space before a space.
                prefix: Some(self.one_of(&PREFIXES)?)
                    .filter(|prefix| *prefix != SpacePrefix::Always)?,
                split: self.flag()?,
            },
            10 => PreTokenizerStep::ByteLevel {
                add_prefix_space: self.flag()?,
                use_regex: self.flag()?,
            },
            _ => return None,
        })
    }

    fn symbols(&mut self) -> Option<StartSymbols> {
        let (prefix, suffix) = (self.text()?, self.text()?);
        let mut unknown = self.list(Self::number)?;
        let is_valid = unknown.len() <= 1;
        let (unknown, fuse_unknown, byte_fallback) = (unknown.pop(), self.flag()?, self.flag()?);
        is_valid.then_some(StartSymbols { prefix, suffix, unknown, fuse_unknown, byte_fallback })
    }

    fn template_piece(&mut self) -> Option<TemplatePiece> {
        Some(match self.kind()? {
            0 => TemplatePiece::Text {
                which: self.kind().filter(|which| *which < 2)?,
                type_id: self.number()?,
            },
            1 => TemplatePiece::Ids {
                name: self.text()?,
                ids: self.list(Self::number)?,
                type_id: self.number()?,
            },
            _ => return None,
        })
    }

    fn decoder_step(&mut self) -> Option<DecoderStep> {
        Some(match self.kind()? {
            0 => DecoderStep::ByteLevel,
            1 => DecoderStep::ByteFallback,
            2 => DecoderStep::Fuse,
            3 => DecoderStep::Replace { pattern: self.pattern()?, content: self.text()? },
            4 => DecoderStep::Strip {
                content: self.character()?,
                start: self.number()? as usize,
                stop: self.number()? as usize,
            },
            5 => {
                DecoderStep::Metaspace { replacement: self.character()?, drops_first: self.flag()? }
            }
            6 => DecoderStep::WordSuffix(self.text()?),
            7 => DecoderStep::WordPiece { prefix: self.text()?, cleanup: self.flag()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> TextRules {
        let pattern = ReplacePattern::Regex(r"\s".to_owned());
        let replace = NormalizerStep::Replace { pattern, content: "é".to_owned() };
        let (replacement, prefix) = ('\u{2581}', SpacePrefix::First);
        let meta = PreTokenizerStep::Metaspace { replacement, prefix, split: true };
        let piece = TemplatePiece::Ids { name: "<s>".to_owned(), ids: vec![1, 2], type_id: 3 };
        TextRules {
            normalizer: Normalizer { steps: vec![NormalizerStep::Nfkd, replace] },
            pre_tokenizer: PreTokenizer {
                steps: vec![
                    meta,
                    PreTokenizerStep::isolated("a"),
                    PreTokenizerStep::FixedLength(3),
                ],
            },
            user_defined: vec![5],
            symbols: Some(StartSymbols { unknown: Some(7), ..StartSymbols::default() }),
            post_processor: PostProcessor {
                single: vec![piece, TemplatePiece::Text { which: 0, type_id: 0 }],
                pair: Vec::new(),
                trim_offsets: Some(true),
            },
            decoder: Decoder::Steps(vec![DecoderStep::Fuse]),
        }
    }

    #[test]
    fn rules_become_bytes_and_back() {
        for rules in [rules(), TextRules::default()] {
            assert_eq!(TextRules::from_bytes(&rules.to_bytes()), Some(rules));
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_other_rules() {
        let bytes = rules().to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(TextRules::from_bytes(&bytes[..end]), None);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let read = TextRules::from_bytes(&bytes);
                assert!(read.is_none_or(|rules| rules.to_bytes() == bytes));
            }
        }
    }
}
