//! The finished tokenizer: four values, and what is derived from them.
//!
//! The four are the vocabulary with its special tokens, the merge rule, the split pattern (with
//! the version of Unicode its classes come from), and with them a tokenizer is compared, saved and
//! fingerprinted. Notes on its origin travel along but do not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::column::Column;
use crate::count::Counts;
use crate::decode::Number;
use crate::encode::{Borders, EncodeOptions, Encoder, PairTable, Remembered, Scratch, known};
use crate::error::{Error, Result};
use crate::kit::{Borrowed, Kit, Kits};
use crate::parallel;
use crate::pretokenize::{Pattern, Splitter, UNICODE_VERSION};
use crate::text::Text;
use crate::train::Trained;
use crate::vocabulary::{MergeRule, Rule, Vocabulary};
use crate::{decode, file};

/// An immutable tokenizer; share it freely between threads.
///
/// ```
/// use bytepair::{MergeRule, Pattern, Tokenizer, Vocabulary};
/// let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// let tokens = bytes.chain([(b"He".to_vec(), 256), (b"ll".to_vec(), 257)]);
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let tokenizer = Tokenizer::new(vocabulary, MergeRule::Ranks, Pattern::new("gpt2"))?;
/// let ids = tokenizer.encode("Hello")?;
/// assert_eq!(ids, [256, 257, 111]); // He, ll, o
/// assert_eq!(tokenizer.decode_bytes(&ids)?, b"Hello");
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    rule: Rule,
    pattern: Pattern,
    notes: BTreeMap<String, String>,
    splitter: Splitter,
    /// Made when it is first needed, where nothing can be wrong with the merge rule.
    encoder: OnceLock<Encoder>,
    /// The pairs that a file lists, end to end.
    listed: Option<Column<u32>>,
    /// The pairs of the merge rule, or those that training merged or a file lists, or those recovered
    /// from the ranks, when first asked for.
    merges: OnceLock<Vec<(u32, u32)>>,
    /// How many times training made each merge, as far as it is known; and as a file has it.
    merges_made: OnceLock<Vec<u64>>,
    made_listed: Column<u8>,
    /// For each id what it is; see [`token`](crate::token).
    marks: OnceLock<Column<u32>>,
    fingerprint: OnceLock<String>,
    kits: Kits,
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.vocabulary == other.vocabulary
            && self.rule == other.rule
            && (self.rule == Rule::Ranks || self.merges() == other.merges())
            && self.pattern == other.pattern
    }
}

impl Eq for Tokenizer {}

impl Tokenizer {
    /// Put a tokenizer together. Fails if the pattern does not compile or the merges break a rule.
    pub fn new(vocabulary: Vocabulary, rule: MergeRule, pattern: Pattern) -> Result<Self> {
        let encoder = OnceLock::from(Encoder::new(&vocabulary, &rule)?);
        let kind = rule.kind();
        let merges = match rule {
            MergeRule::Ranks => OnceLock::new(),
            MergeRule::Merges { merges, .. } => OnceLock::from(merges),
        };
        Ok(Self { encoder, merges, ..Self::without_encoder(vocabulary, kind, pattern)? })
    }

    fn without_encoder(vocabulary: Vocabulary, rule: Rule, pattern: Pattern) -> Result<Self> {
        let splitter = Splitter::new(&pattern)?;
        Ok(Self {
            vocabulary,
            rule,
            pattern,
            notes: BTreeMap::new(),
            splitter,
            encoder: OnceLock::new(),
            listed: None,
            merges: OnceLock::new(),
            merges_made: OnceLock::new(),
            made_listed: Column::new(Vec::new()),
            marks: OnceLock::new(),
            fingerprint: OnceLock::new(),
            kits: Kits::default(),
        })
    }

    /// Put a tokenizer together from the parts that a file holds. Fails if the pattern does not compile.
    pub(crate) fn of_parts(parts: Parts) -> Result<Self> {
        let Parts { vocabulary, rule, pattern, pairs, borders, remembered, .. } = parts;
        let Parts { merges, merges_made, marks, notes, .. } = parts;
        let encoder = Encoder::with(&vocabulary, rule, pairs, borders).remembering(remembered);
        Ok(Self {
            notes,
            encoder: OnceLock::from(encoder),
            listed: merges,
            made_listed: merges_made,
            marks: marks.map_or_else(OnceLock::new, OnceLock::from),
            ..Self::without_encoder(vocabulary, rule, pattern)?
        })
    }

    /// The tokenizer of a finished training: the 256 bytes, one token a merge, then the special
    /// tokens. Its merge rule is that of ranks.
    pub fn from_training(trained: &Trained, special: &[String], pattern: Pattern) -> Result<Self> {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for &(left, right) in &trained.merges {
            tokens.push([&*tokens[left as usize], &*tokens[right as usize]].concat());
        }
        let special: Vec<_> = special.iter().cloned().zip(last_id(tokens.len())?..).collect();
        let vocabulary = Vocabulary::new(tokens.into_iter().zip(0..), special)?;
        let mut tokenizer = Self::without_encoder(vocabulary, Rule::Ranks, pattern)?;
        tokenizer.merges = OnceLock::from(trained.merges.clone());
        tokenizer.merges_made = OnceLock::from(trained.made.clone());
        tokenizer.notes.insert("exhausted".to_owned(), trained.exhausted.to_string());
        Ok(tokenizer)
    }

    /// Read the native format out of memory; see [`file::read`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        file::read(bytes)
    }

    /// Map a file of the native format; see [`file::map`].
    pub fn map(file: &File) -> Result<Self> {
        file::map(file)
    }

    /// Write the native format; see [`file::write`].
    pub fn to_bytes(&self) -> Vec<u8> {
        file::write(self, file::Tables::With)
    }

    /// The tokens.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Which neighbours merge, and in which order.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// How text is split.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The compiled pattern.
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Where this tokenizer comes from, as keys and values. They do not count when tokenizers are
    /// compared.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// The same tokenizer with other notes.
    #[must_use]
    pub fn with_notes(mut self, notes: BTreeMap<String, String>) -> Self {
        self.notes = notes;
        self
    }

    /// Another tokenizer with the same values and other notes.
    pub fn renoted(&self, notes: BTreeMap<String, String>) -> Result<Self> {
        self.again(Parts { notes, ..self.parts() })
    }

    /// Another tokenizer with the same values, which knows the ids of the most frequent of some
    /// pretokens from the beginning, also when it is saved and loaded.
    ///
    /// Fails if no token covers a byte of one.
    ///
    /// ```
    /// use bytepair::{Counts, MergeRule, Pattern, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::new(vocabulary, MergeRule::Ranks, Pattern::new("gpt2"))?;
    /// let counts = Counts::new([(&b"a"[..], 2), (&b" b"[..], 1)]);
    /// assert_eq!(tokenizer.remembering(&counts)?.encode("a b")?, tokenizer.encode("a b")?);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn remembering(&self, counts: &Counts) -> Result<Self> {
        let remembered = Remembered::new(counts, |pretoken| self.encode_pretoken(pretoken))?;
        self.again(Parts { remembered: Some(remembered), ..self.parts() })
    }

    /// Whether the tables for encoding are made.
    pub fn has_tables(&self) -> bool {
        self.encoder.get().is_some()
    }

    /// What encoding looks up.
    #[inline]
    pub(crate) fn encoder(&self) -> &Encoder {
        self.encoder.get_or_init(|| {
            Encoder::new(&self.vocabulary, &MergeRule::Ranks).expect("ranks break no rule")
        })
    }

    /// Say that about so many bytes of text will be encoded, maybe in many calls: much text is encoded
    /// sooner if that is known before.
    pub fn expect(&self, bytes: usize) {
        self.encoder().expect(bytes);
    }

    /// What is remembered, if anything is.
    pub(crate) fn remembered(&self) -> Option<&Remembered> {
        self.encoder().remembered()
    }

    /// This tokenizer, of which only what does not count has changed.
    fn again(&self, parts: Parts) -> Result<Self> {
        let (merges, merges_made) = (self.merges.clone(), self.merges_made.clone());
        Ok(Self { merges, merges_made, ..Self::of_parts(parts)? })
    }

    fn parts(&self) -> Parts {
        Parts {
            vocabulary: self.vocabulary.clone(),
            rule: self.rule,
            pattern: self.pattern.clone(),
            pairs: self.pairs().clone(),
            borders: Some(self.borders().clone()),
            merges: self.listed.clone(),
            merges_made: self.made_listed.clone(),
            marks: self.marks.get().cloned(),
            remembered: self.remembered().cloned(),
            notes: self.notes.clone(),
        }
    }

    /// The same tokenizer with one note more.
    #[must_use]
    pub fn with_note(mut self, key: &str, value: &impl ToString) -> Self {
        self.notes.insert(key.to_owned(), value.to_string());
        self
    }

    /// How many times training made each merge in its text; shorter than the merges, or empty, where
    /// that is not known.
    pub fn merges_made(&self) -> &[u64] {
        self.merges_made.get_or_init(|| file::read_made(&self.made_listed, self.merges().len()))
    }

    /// The same tokenizer with merges that are known beside the ranks.
    pub(crate) fn with_merges(mut self, merges: Vec<(u32, u32)>) -> Self {
        self.merges = OnceLock::from(merges);
        self
    }

    /// The pairs of ids that merge, in order of rank.
    ///
    /// Those that training chose, or those that a merge list gave; for a vocabulary that came as
    /// bare ranks, the one pair that ever merges into each token. A token that no merge makes has no
    /// entry.
    pub fn merges(&self) -> &[(u32, u32)] {
        self.merges.get_or_init(|| {
            if let Some(listed) = &self.listed {
                let (pairs, _) = listed.as_chunks();
                return pairs.iter().map(|&[left, right]| (left, right)).collect();
            }
            self.encoder().merges()
        })
    }

    /// Which pairs merge, as encoding looks them up.
    pub(crate) fn pairs(&self) -> &PairTable {
        self.encoder().pairs()
    }

    /// Where no token goes on, as encoding looks it up.
    pub(crate) fn borders(&self) -> &Borders {
        self.encoder().borders(&self.vocabulary)
    }

    /// For each id what it is; see [`token`](crate::token).
    #[inline]
    pub(crate) fn marks(&self) -> &Column<u32> {
        self.marks.get_or_init(|| self.make_marks())
    }

    /// A hash of the four values, stable between versions and machines: 64 hexadecimal digits.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update(b"bytepair tokenizer 1\n");
            self.hash_values(&mut |part: &[u8]| {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            });
            hexadecimal(&hash.finalize())
        })
    }

    /// Every value once, in a fixed order, each as bytes.
    fn hash_values(&self, part: &mut impl FnMut(&[u8])) {
        let (arena, offsets) = self.vocabulary.arrays();
        part(arena);
        part(&offsets.to_bytes());
        for (name, id) in self.vocabulary.special_tokens() {
            part(name.as_bytes());
            part(&id.to_le_bytes());
        }
        part(self.pattern.regex().as_bytes());
        part(UNICODE_VERSION.as_bytes());
        if let Rule::Merges { ignore_merges } = self.rule {
            part(&[1, u8::from(ignore_merges)]);
            let flat = self.merges().iter().flat_map(|(left, right)| [*left, *right]);
            part(&flat.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        }
    }

    /// Encode one text; special tokens in it are text.
    ///
    /// Fails if the pattern gives up on the text or if no token covers one of its bytes.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, &EncodeOptions::default())
    }

    /// Encode one text as `options` ask.
    ///
    /// Fails as [`encode`](Self::encode) does, and where a special token is forbidden.
    pub fn encode_with(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encode_into(text, options, &mut self.kit().scratch, &mut ids)?;
        Ok(ids)
    }

    /// Encode many texts on up to `threads` threads; one list of ids a text, in order.
    pub fn encode_batch(
        &self,
        texts: &[impl AsRef<str> + Sync],
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Vec<Vec<u32>>> {
        let weight = |text: &_| AsRef::<str>::as_ref(text).len();
        let encode_one = |kit: &mut Borrowed, text: &_| {
            let mut ids = Vec::new();
            self.encode_into(AsRef::<str>::as_ref(text), options, &mut kit.scratch, &mut ids)?;
            Ok(ids)
        };
        self.expect(texts.iter().map(weight).sum());
        let lists = parallel::map(texts, threads, weight, || self.kit(), encode_one);
        lists.into_iter().collect()
    }

    /// Encode one text that is stored in any way, and hand its ids to `then`.
    ///
    /// Nothing is allocated for a short text. Fails as [`encode_with`](Self::encode_with) does.
    pub fn encode_text<R>(
        &self,
        text: &Text<'_>,
        options: &EncodeOptions,
        then: impl FnOnce(&[u32]) -> R,
    ) -> Result<R> {
        let mut kit = self.kit();
        let Kit { scratch, block, text: buffer } = &mut *kit;
        block.clear();
        self.encode_into(text.read(buffer)?, options, scratch, block)?;
        Ok(then(block))
    }

    /// How many ids [`encode_text`](Self::encode_text) finds; quicker than encoding.
    pub fn count(&self, text: &Text<'_>, options: &EncodeOptions) -> Result<usize> {
        let mut kit = self.kit();
        let Kit { scratch, block, text: buffer } = &mut *kit;
        let mut count = usize::from(options.prepend.is_some());
        let text = text.read(buffer)?;
        self.encode_blocks(text, options, scratch, block, |block| count += block.len())?;
        Ok(count + usize::from(options.append.is_some()))
    }

    /// Append the ids of `text` to `out`, as `options` ask.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        options: &EncodeOptions,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        out.extend(options.prepend);
        pieces(text, options, |piece| match piece {
            Piece::Id(id) => {
                out.push(id);
                Ok(())
            }
            Piece::Text(text) => {
                let text = self.pattern.normalized(text);
                self.encoder().encode(&self.vocabulary, &self.splitter, &text, scratch, out)
            }
        })?;
        out.extend(options.append);
        Ok(())
    }

    /// Fails if normalization changes `text`: then no part of it is known to be that of an id.
    pub(crate) fn check_unchanged(&self, text: &str) -> Result<()> {
        if self.pattern.normalized(text) == text {
            return Ok(());
        }
        let reason =
            "normalization changes the text, so ids have no places in it; normalize it first";
        Err(Error::Split { at: 0, reason: reason.to_owned() })
    }

    /// Append the ids of `text` to `out`, and stop soon after there are more than `enough`.
    pub(crate) fn encode_beyond(
        &self,
        enough: usize,
        text: &str,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let (vocabulary, splitter, mut start) = (&self.vocabulary, &self.splitter, 0);
        while start < text.len() && out.len() <= enough {
            start = self.encoder().encode_some(vocabulary, splitter, text, start, scratch, out)?;
        }
        Ok(())
    }

    /// Call `sink` with the ids of `text`, some hundreds at a time, in order; what `options` ask to go
    /// before and after is left out. `block` is a buffer.
    pub(crate) fn encode_blocks(
        &self,
        text: &str,
        options: &EncodeOptions,
        scratch: &mut Scratch,
        block: &mut Vec<u32>,
        mut sink: impl FnMut(&[u32]),
    ) -> Result<()> {
        pieces(text, options, |piece| {
            let text = match piece {
                Piece::Id(id) => {
                    sink(&[id]);
                    return Ok(());
                }
                Piece::Text(text) => self.pattern.normalized(text),
            };
            let (vocabulary, splitter) = (&self.vocabulary, &self.splitter);
            self.encoder().encode_blocks(vocabulary, splitter, &text, scratch, block, &mut sink)
        })
    }

    /// Encode the bytes of one pretoken, whatever the split pattern would make of them.
    ///
    /// Fails if no token covers one of the bytes.
    pub fn encode_pretoken(&self, pretoken: &[u8]) -> Result<Vec<u32>> {
        if pretoken.is_empty() {
            return Ok(Vec::new());
        }
        self.encoder().encode_alone(&self.vocabulary, pretoken, &mut self.kit().scratch)
    }

    /// What an earlier call left behind, or else something new.
    pub(crate) fn kit(&self) -> Borrowed<'_> {
        self.kits.borrow()
    }

    /// The bytes of `ids`, end to end. Fails at the first id that stands for nothing.
    pub fn decode_bytes<N: Number>(&self, ids: &[N]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; decode::decoded_length(&self.vocabulary, ids)?];
        decode::write(&self.vocabulary, ids, &mut bytes);
        Ok(bytes)
    }

    /// The id of a special token; the error lists those that exist.
    pub fn special_id(&self, name: &str) -> Result<u32> {
        known(&self.vocabulary, name)
    }

    /// The bytes of one id; the error names it.
    pub fn token_bytes(&self, id: u32) -> Result<&[u8]> {
        self.vocabulary.bytes(id).ok_or_else(|| decode::unknown_id(&self.vocabulary, id))
    }
}

/// What a file holds of a tokenizer.
pub(crate) struct Parts {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) rule: Rule,
    pub(crate) pattern: Pattern,
    pub(crate) pairs: PairTable,
    pub(crate) borders: Option<Borders>,
    /// Pairs of ids, end to end; a file has them.
    pub(crate) merges: Option<Column<u32>>,
    /// In the bytes of [`file::read_made`].
    pub(crate) merges_made: Column<u8>,
    pub(crate) marks: Option<Column<u32>>,
    pub(crate) remembered: Option<Remembered>,
    pub(crate) notes: BTreeMap<String, String>,
}

/// A part of a text: text, or a special token.
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Id(u32),
}

/// Call `sink` with the parts of a text as `options` divide it.
pub(crate) fn pieces<'a>(
    text: &'a str,
    options: &EncodeOptions,
    mut sink: impl FnMut(Piece<'a>) -> Result<()>,
) -> Result<()> {
    let mut done = 0;
    for found in options.finder.iter().flat_map(|finder| finder.find(text)) {
        let found = found?;
        // A token may begin in white space that the one before has taken.
        sink(Piece::Text(&text[done..found.start.max(done)]))?;
        sink(Piece::Id(found.id))?;
        done = found.end;
    }
    sink(Piece::Text(&text[done..]))
}

/// Each byte as two hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn last_id(tokens: usize) -> Result<u32> {
    u32::try_from(tokens)
        .map_err(|_| Error::Vocabulary { reason: format!("{tokens} tokens are too many") })
}
