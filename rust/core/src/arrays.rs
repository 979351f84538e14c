//! Texts in, one array of ids out, with the places where each text's ids begin; or only how many ids
//! there are.
//!
//! The texts are cut into parts, a long one in several, where that changes no id. Threads take some
//! parts at a time, each the next that nobody has, and append to the result what is due, in order and while
//! it is still near. One thread alone writes into the result at once.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::encode::EncodeOptions;
use crate::error::{Error, Result};
use crate::kit::{Borrowed, Kit};
use crate::pages::Ahead;
use crate::parallel::{self, lock};
use crate::pretokenize::Splitter;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// A long text is cut into parts of about so many units.
const PART: usize = 1 << 18;
/// Threads take parts of about so many units together at once.
const CHUNK: usize = 1 << 19;

/// So many units at the beginning of a text are looked at to guess how many ids it has.
const SAMPLE: usize = 32;

/// Room is made for as many ids as there may well be, since room that grows is copied, and room that nobody
/// touches costs little: one for three units of ASCII, one for each other character.
fn likely_ids(text: &Text<'_>) -> usize {
    let looked = text.len().clamp(1, SAMPLE);
    let others = text.beyond_ascii(looked);
    let others = if text.is_utf8() { others / 2 } else { others };
    text.len() / 3 + text.len() * others / looked
}

/// How an id is stored: as `u32`, as `u16` where the vocabulary is small, or as `()` where ids are
/// only counted.
pub trait Id: Copy + Default + Send + Sync {
    /// Store an id, which must fit.
    fn of(id: u32) -> Self;
}

impl Id for u32 {
    fn of(id: u32) -> Self {
        id
    }
}

impl Id for u16 {
    #[expect(clippy::cast_possible_truncation, reason = "the vocabulary was asked for its size")]
    fn of(id: u32) -> Self {
        id as Self
    }
}

impl Id for () {
    fn of(_: u32) -> Self {}
}

/// The ids of several texts, end to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrays<T> {
    /// The ids.
    pub ids: Vec<T>,
    /// Where the ids of each text begin, and at last where those of the last one end.
    pub offsets: Vec<i64>,
}

/// A text, or some of it.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    text: Text<'a>,
    /// Which text it belongs to.
    document: usize,
    /// Where it begins, in units from the start of the text.
    at: usize,
    /// Whether the text ends with it.
    last: bool,
}

/// The ids of some parts, and where those of each part end.
type Encoded<T> = (Vec<T>, Vec<usize>);

impl Tokenizer {
    /// Whether every id fits 16 bits.
    pub fn fits_u16(&self) -> bool {
        self.vocabulary().len() <= 1 << 16
    }

    /// Encode texts on up to `threads` threads into one array.
    ///
    /// `T` must hold every id: see [`fits_u16`](Self::fits_u16). Fails as
    /// [`encode_with`](Self::encode_with) does, or if bytes are not UTF-8.
    ///
    /// ```
    /// use bytepair::{MergeRule, Pattern, Text, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::new(vocabulary, MergeRule::Ranks, Pattern::new("gpt2"))?;
    /// let texts = [Text::Utf8("ab"), Text::Utf8(""), Text::Utf8("c")];
    /// let arrays = tokenizer.encode_arrays::<u16>(&texts, &Default::default(), 1)?;
    /// assert_eq!((arrays.ids, arrays.offsets), (vec![97, 98, 99], vec![0, 2, 2, 3]));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn encode_arrays<T: Id>(
        &self,
        texts: &[Text<'_>],
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Arrays<T>> {
        let total: usize = texts.iter().map(Text::len).sum();
        let threads = parallel::worth(threads, total);
        // To normalize the parts of a text is not to normalize the text.
        let may_cut = threads > 1 && options.finder.is_none() && !self.pattern().normalizes();
        let splitter = may_cut.then(|| self.splitter());
        let parts: Vec<Part<'_>> =
            (0..).zip(texts).flat_map(|(n, t)| cut(n, *t, splitter)).collect();
        let chunks = if threads == 1 { 1 } else { (total / CHUNK).max(threads) };
        let chunks = parallel::shares(&parts, chunks, |part| part.text.len() + 1);
        let room = if chunks.len() > 1 { texts.iter().map(likely_ids).sum() } else { 0 };
        let joining = Joining::new(texts.len(), chunks.len(), Vec::with_capacity(room));
        let encode = |kit: &mut Borrowed<'_>, (chunk, range): &(usize, Range<usize>)| {
            let parts = &parts[range.clone()];
            let encoded = self.encode_parts(parts, options, kit, joining.spare());
            joining.give(*chunk, parts, encoded);
        };
        let chunks: Vec<_> = chunks.into_iter().enumerate().collect();
        parallel::pipe(&chunks, threads, || self.kit(), encode, |_, ()| ());
        joining.finish()
    }

    /// Encode parts, one behind the other, into empty room if there is some.
    fn encode_parts<T: Id>(
        &self,
        parts: &[Part<'_>],
        options: &EncodeOptions,
        kit: &mut Kit,
        room: Option<Vec<T>>,
    ) -> Result<Encoded<T>> {
        let likely = || parts.iter().map(|part| likely_ids(&part.text)).sum();
        let mut ids = room.unwrap_or_else(|| Vec::with_capacity(likely()));
        let mut pages = Ahead::default();
        let mut ends = Vec::with_capacity(parts.len());
        let Kit { scratch, block, text: buffer } = kit;
        for part in parts {
            if part.at == 0 {
                ids.extend(options.prepend.map(T::of));
            }
            let text = part.text.read(buffer).map_err(|error| part.placed(error))?;
            let sink = |block: &[u32]| pages.extend(&mut ids, block.iter().map(|&id| T::of(id)));
            self.encode_blocks(text, options, scratch, block, sink)?;
            if part.last {
                ids.extend(options.append.map(T::of));
            }
            ends.push(ids.len());
        }
        Ok((ids, ends))
    }

    /// How many ids each text has; quicker than encoding. Fails as
    /// [`encode_arrays`](Self::encode_arrays) does.
    pub fn count_batch(
        &self,
        texts: &[Text<'_>],
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Vec<i64>> {
        let offsets = self.encode_arrays::<()>(texts, options, threads)?.offsets;
        Ok(offsets.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }
}

impl Part<'_> {
    /// An error of this part as one of its text.
    fn placed(&self, error: Error) -> Error {
        match error {
            Error::TextNotUtf8 { at, .. } => {
                Error::TextNotUtf8 { document: self.document, at: self.at + at }
            }
            other => other,
        }
    }
}

/// The parts of a text; without a splitter, the text is one.
fn cut<'a>(
    document: usize,
    text: Text<'a>,
    splitter: Option<&Splitter>,
) -> impl Iterator<Item = Part<'a>> {
    let (mut rest, mut at) = (Some(text), 0);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(place) = splitter.and_then(|splitter| splitter.cut_long(&text, PART)) else {
            return Some(Part { text, document, at, last: true });
        };
        let (text, after) = text.split_at(place);
        rest = Some(after);
        at += place;
        Some(Part { text, document, at: at - place, last: false })
    })
}

/// What threads give back, put together in order. Who gives something back appends all whose turn it is,
/// unless somebody else is just doing that; so nobody waits, and no thread is there for this alone.
struct Joining<'a, T> {
    joined: Mutex<Joined<T>>,
    waiting: Mutex<Waiting<'a, T>>,
    /// Fresh memory costs more than to write the ids; so it is used again.
    spare: Mutex<Vec<Vec<T>>>,
}

/// The parts of a chunk, and what was encoded of them.
type Given<'a, T> = (&'a [Part<'a>], Result<Encoded<T>>);

/// What is not yet appended.
struct Waiting<'a, T> {
    chunks: Vec<Option<Given<'a, T>>>,
    /// The chunk whose turn it is.
    next: usize,
}

/// What is put together, chunk by chunk in their order.
struct Joined<T> {
    ids: Vec<T>,
    pages: Ahead,
    /// How many ids each text has so far.
    lengths: Vec<usize>,
    /// The first error; nothing is added after it.
    failed: Option<Error>,
}

impl<'a, T: Id> Joining<'a, T> {
    fn new(texts: usize, chunks: usize, ids: Vec<T>) -> Self {
        let waiting = std::iter::repeat_with(|| None).take(chunks).collect();
        Self {
            joined: Mutex::new(Joined {
                ids,
                pages: Ahead::default(),
                lengths: vec![0; texts],
                failed: None,
            }),
            waiting: Mutex::new(Waiting { chunks: waiting, next: 0 }),
            spare: Mutex::new(Vec::new()),
        }
    }

    /// Room that was used before, if there is some.
    fn spare(&self) -> Option<Vec<T>> {
        lock(&self.spare).pop()
    }

    /// What was encoded of the parts of a chunk.
    fn give(&self, chunk: usize, parts: &'a [Part<'a>], encoded: Result<Encoded<T>>) {
        lock(&self.waiting).chunks[chunk] = Some((parts, encoded));
        // Who appends may have looked for the last time before this came, but then it looks again when
        // others can append.
        while lock(&self.waiting).is_due()
            && let Ok(mut joined) = self.joined.try_lock()
        {
            while let Some((parts, encoded)) = self.take() {
                let room = joined.append(parts, encoded);
                lock(&self.spare).extend(room);
            }
        }
    }

    /// The chunk whose turn it is, if it is there; only for who holds what is joined.
    fn take(&self) -> Option<Given<'a, T>> {
        let mut waiting = lock(&self.waiting);
        let next = waiting.next;
        let due = waiting.chunks.get_mut(next)?.take()?;
        waiting.next += 1;
        Some(due)
    }

    fn finish(self) -> Result<Arrays<T>> {
        let mut joined = self.joined.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = joined.failed {
            return Err(error);
        }
        joined.ids.shrink_to_fit();
        Ok(Arrays { ids: joined.ids, offsets: offsets(joined.lengths) })
    }
}

impl<T> Waiting<'_, T> {
    fn is_due(&self) -> bool {
        self.chunks.get(self.next).is_some_and(Option::is_some)
    }
}

impl<T: Id> Joined<T> {
    /// Append what was encoded of some parts; its room is returned, empty, if it can be used again.
    fn append(&mut self, parts: &[Part<'_>], encoded: Result<Encoded<T>>) -> Option<Vec<T>> {
        if self.failed.is_some() {
            return None;
        }
        let (mut ids, ends) = encoded.map_err(|error| self.failed = Some(error)).ok()?;
        let mut start = 0;
        for (part, end) in parts.iter().zip(ends) {
            self.lengths[part.document] += end - start;
            start = end;
        }
        if self.ids.capacity() == 0 {
            self.ids = ids;
            return None;
        }
        self.pages.prepare(&mut self.ids, ids.len());
        self.ids.extend_from_slice(&ids);
        ids.clear();
        Some(ids)
    }
}

/// Where texts of these lengths begin when they stand end to end.
fn offsets(lengths: Vec<usize>) -> Vec<i64> {
    let mut end = 0;
    let ends = lengths.into_iter().map(|length| {
        end += i64::try_from(length).expect("what is in memory has less than 2^63 ids");
        end
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Special;
    use crate::{MergeRule, Pattern, Vocabulary};

    fn tokenizer() -> Tokenizer {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = [(b"th".to_vec(), 256), (b"the".to_vec(), 257), (b" the".to_vec(), 258)];
        let vocabulary = Vocabulary::new(bytes.chain(more), [("<s>".to_owned(), 300)]).unwrap();
        Tokenizer::new(vocabulary, MergeRule::Ranks, Pattern::new("gpt4")).unwrap()
    }

    /// Each text by itself, the slow twin.
    fn one_by_one(tokenizer: &Tokenizer, texts: &[String], options: &EncodeOptions) -> Arrays<u32> {
        let lists: Vec<_> =
            texts.iter().map(|t| tokenizer.encode_with(t, options).unwrap()).collect();
        let offsets = offsets(lists.iter().map(Vec::len).collect());
        Arrays { ids: lists.concat(), offsets }
    }

    #[test]
    fn any_number_of_threads_gives_what_one_by_one_gives() {
        let tokenizer = tokenizer();
        let long = "the moth and the thé <s> 中文 ".repeat(60_000);
        let mut texts: Vec<String> = (0..500).map(|n| format!("the {n} <s> moth")).collect();
        texts.extend([String::new(), long, String::new()]);
        for special in [Special::Text, Special::All] {
            let options = EncodeOptions::new(&tokenizer, &special, Some(7), Some(300)).unwrap();
            let expected = one_by_one(&tokenizer, &texts, &options);
            let borrowed: Vec<_> = texts.iter().map(|text| Text::Utf8(text)).collect();
            for threads in [1, 2, 5] {
                let wide = tokenizer.encode_arrays::<u32>(&borrowed, &options, threads).unwrap();
                assert_eq!(wide, expected, "{threads} threads");
                let narrow = tokenizer.encode_arrays::<u16>(&borrowed, &options, threads).unwrap();
                assert!(narrow.ids.iter().map(|&id| u32::from(id)).eq(wide.ids));
                let counts = tokenizer.count_batch(&borrowed, &options, threads).unwrap();
                assert!(
                    counts.iter().copied().eq(expected.offsets.windows(2).map(|w| w[1] - w[0]))
                );
            }
        }
    }

    #[test]
    fn the_first_error_in_the_order_of_the_texts_is_reported() {
        let tokenizer = tokenizer();
        let good = "the moth ".repeat(200_000);
        let mut bad = good.clone().into_bytes();
        bad[1_000_000] = 0xFF;
        let texts = [Text::Utf8(&good), Text::Bytes(&bad), Text::Utf8(&good), Text::Bytes(b"\xff")];
        for threads in [1, 2, 5] {
            let result = tokenizer.encode_arrays::<u32>(&texts, &EncodeOptions::default(), threads);
            assert_eq!(result.unwrap_err(), Error::TextNotUtf8 { document: 1, at: 1_000_000 });
        }
    }

    #[test]
    fn no_texts_have_no_ids() {
        let arrays = tokenizer().encode_arrays::<u32>(&[], &EncodeOptions::default(), 4).unwrap();
        assert_eq!(arrays, Arrays { ids: vec![], offsets: vec![0] });
    }
}
