//! Texts in, one array of ids out, with the places where each text's ids begin; or only how many
//! ids there are.
//!
//! The texts are cut into parts, a long one in several, where that changes no id. Threads take some
//! parts at a time, each the next that nobody has, and append to the result what is due, in order
//! and while it is still near. One thread alone writes into the result at once. Texts may come from
//! an iterator, which is asked for the next ones as late as that.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::encode::encoder::{Edges, EncodeCall};
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::machine::huge_pages::HugePages;
use crate::memory;
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

/// Arrays of so many bytes keep the room that they did not need, which costs address space only.
/// The allocator of glibc asks the system for memory of such sizes until some was freed; from then
/// on it keeps what is freed for what is not larger. So arrays must be freed as large as they were
/// asked for, and one batch after the other is written to memory that is there.
const REUSED: Range<usize> = 128 << 10..32 << 20;

/// How much texts are, together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// In units.
    pub(crate) units: usize,
    /// As many ids as there may well be. Room is made for them, since room that grows is copied,
    /// and room that nobody touches costs little.
    pub(crate) ids: usize,
}

impl Size {
    /// One id for three units of ASCII, and one for each other character.
    pub(crate) fn of(text: &Text<'_>) -> Self {
        let looked = text.len().clamp(1, SAMPLE);
        let others = text.beyond_ascii(looked);
        let others = if text.is_utf8() { others / 2 } else { others };
        Self { units: text.len(), ids: text.len() / 3 + text.len() * others / looked }
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, size| Self {
            units: sum.units + size.units,
            ids: sum.ids + size.ids,
        })
    }
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

/// The ids of some parts, end to end, and of each part the document and how many ids it has.
type Encoded<T> = (Vec<T>, Vec<(usize, usize)>);

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
    /// use bytepair::{Pattern, Text, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
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
        let size = texts.iter().map(Size::of).sum();
        self.encode_texts(texts.iter().copied(), size, options, threads)
    }

    /// The same with texts that are asked for one by one, of about that size together.
    pub(crate) fn encode_texts<'a, T: Id>(
        &self,
        texts: impl Iterator<Item = Text<'a>> + Send,
        size: Size,
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Arrays<T>> {
        let threads = parallel::worth(threads, size.units);
        self.encoder().expect(size.units);
        // To normalize the parts of a text is not to normalize the text.
        let may_cut = threads > 1 && options.finder.is_none() && !self.pattern().normalizes();
        let splitter = may_cut.then(|| self.splitter());
        let parts = (0..).zip(texts).flat_map(|(number, text)| cut(number, text, splitter));
        if threads == 1 {
            let room = memory::with_room_for_about(size.ids);
            let call = &mut self.encoder().call();
            let (ids, counts) = encode_parts(call, parts, options, room)?;
            let mut joined = Joined { ids, ..Joined::new(0) };
            joined.count(&counts)?;
            return joined.finish();
        }
        let joining = Joining::new(size.ids);
        let encode = |call: &mut EncodeCall<'_>, chunk, parts: Vec<Part<'_>>| {
            let sizes = parts.iter().map(|part| Size::of(&part.text));
            let room = joining
                .spare()
                .unwrap_or_else(|| memory::with_room_for_about(sizes.sum::<Size>().ids));
            joining.give(chunk, encode_parts(call, parts, options, room));
        };
        let least = size.units / threads.max(size.units / CHUNK);
        let chunks = Mutex::new(chunks(parts, least).enumerate());
        let next = || lock(&chunks).next();
        let work = || {
            let mut call = self.encoder().call();
            while let Some((chunk, parts)) = next() {
                encode(&mut call, chunk, parts);
            }
        };
        parallel::run((0..threads).map(|_| &work));
        joining.finish()
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
        memory::collect(offsets.windows(2).map(|pair| pair[1] - pair[0]))
    }
}

/// Encode parts, one behind the other, into empty room.
fn encode_parts<'a, T: Id>(
    call: &mut EncodeCall<'_>,
    parts: impl IntoIterator<Item = Part<'a>>,
    options: &EncodeOptions,
    mut ids: Vec<T>,
) -> Result<Encoded<T>> {
    let mut pages = HugePages::default();
    let mut counts = Vec::new();
    for part in parts {
        let before = ids.len();
        let edges = Edges { first: part.at == 0, last: part.last };
        let sink = |block: &[u32]| pages.extend(&mut ids, block.iter().map(|&id| T::of(id)));
        call.for_each_block(&part.text, options, edges, sink)
            .map_err(|error| part.placed(error))?;
        counts.push((part.document, ids.len() - before));
    }
    Ok((ids, counts))
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

/// Some parts at a time, until they have so many units.
fn chunks<'a>(
    mut parts: impl Iterator<Item = Part<'a>>,
    least: usize,
) -> impl Iterator<Item = Vec<Part<'a>>> {
    std::iter::from_fn(move || {
        let (mut chunk, mut size) = (Vec::new(), 0);
        while size <= least
            && let Some(part) = parts.next()
        {
            // An empty text is some work too.
            size += part.text.len() + 1;
            chunk.push(part);
        }
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// What threads give back, put together in order. Who gives something back appends all whose turn
/// it is, unless somebody else is just doing that; so nobody waits, and no thread is there for this
/// alone.
struct Joining<T> {
    joined: Mutex<Joined<T>>,
    waiting: Mutex<Waiting<T>>,
    /// Fresh memory costs more than to write the ids; so it is used again.
    spare: Mutex<Vec<Vec<T>>>,
}

/// What is not yet appended.
struct Waiting<T> {
    /// By the number of their chunk.
    encoded: BTreeMap<usize, Result<Encoded<T>>>,
    /// The chunk whose turn it is.
    next: usize,
}

/// What is put together, chunk by chunk in their order.
struct Joined<T> {
    ids: Vec<T>,
    pages: HugePages,
    /// How many ids each text has so far.
    lengths: Vec<usize>,
    /// The first error; nothing is added after it.
    failed: Option<Error>,
}

impl<T: Id> Joining<T> {
    /// With room for so many ids.
    fn new(room: usize) -> Self {
        Self {
            joined: Mutex::new(Joined::new(room)),
            waiting: Mutex::new(Waiting { encoded: BTreeMap::new(), next: 0 }),
            spare: Mutex::new(Vec::new()),
        }
    }

    /// Room that was used before, if there is some.
    fn spare(&self) -> Option<Vec<T>> {
        lock(&self.spare).pop()
    }

    /// What was encoded of a chunk.
    fn give(&self, chunk: usize, encoded: Result<Encoded<T>>) {
        lock(&self.waiting).encoded.insert(chunk, encoded);
        // Who appends may have looked for the last time before this came, but then it looks again
        // when others can append.
        while lock(&self.waiting).is_due()
            && let Ok(mut joined) = self.joined.try_lock()
        {
            while let Some(encoded) = self.take() {
                let room = joined.append(encoded);
                lock(&self.spare).extend(room);
            }
        }
    }

    /// The chunk whose turn it is, if it is there; only for who holds what is joined.
    fn take(&self) -> Option<Result<Encoded<T>>> {
        let mut waiting = lock(&self.waiting);
        let next = waiting.next;
        let due = waiting.encoded.remove(&next)?;
        waiting.next += 1;
        Some(due)
    }

    fn finish(self) -> Result<Arrays<T>> {
        let mut joined = self.joined.into_inner().unwrap_or_else(PoisonError::into_inner);
        joined.failed.take().map_or_else(|| joined.finish(), Err)
    }
}

impl<T> Waiting<T> {
    fn is_due(&self) -> bool {
        self.encoded.contains_key(&self.next)
    }
}

impl<T: Id> Joined<T> {
    fn new(room: usize) -> Self {
        let (ids, pages) = (memory::with_room_for_about(room), HugePages::default());
        Self { ids, pages, lengths: Vec::new(), failed: None }
    }

    /// Append what was encoded of some parts; its room is returned, empty, if it can be used again.
    fn append(&mut self, encoded: Result<Encoded<T>>) -> Option<Vec<T>> {
        if self.failed.is_some() {
            return None;
        }
        let appended = encoded.and_then(|(mut ids, counts)| {
            self.count(&counts)?;
            memory::reserve(&mut self.ids, ids.len())?;
            self.pages.prepare(&mut self.ids, ids.len());
            self.ids.extend_from_slice(&ids);
            ids.clear();
            Ok(ids)
        });
        appended.map_err(|error| self.failed = Some(error)).ok()
    }

    /// Note how many ids parts have, of which each belongs to the latest document or to the next.
    fn count(&mut self, counts: &[(usize, usize)]) -> Result<()> {
        for &(document, count) in counts {
            let more = (document + 1).saturating_sub(self.lengths.len());
            memory::reserve(&mut self.lengths, more)?;
            self.lengths.resize(document + 1, 0);
            self.lengths[document] += count;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Arrays<T>> {
        if !REUSED.contains(&(self.ids.capacity() * size_of::<T>())) {
            self.ids.shrink_to_fit();
        }
        Ok(Arrays { ids: self.ids, offsets: offsets(self.lengths)? })
    }
}

/// Where texts of these lengths begin when they stand end to end.
fn offsets(lengths: Vec<usize>) -> Result<Vec<i64>> {
    let mut end = 0;
    let ends = lengths.into_iter().map(|length| {
        end += i64::try_from(length).expect("what is in memory has less than 2^63 ids");
        end
    });
    memory::collect(std::iter::once(0).chain(ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Special;
    use crate::{Pattern, Vocabulary};

    fn tokenizer() -> Tokenizer {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = [(b"th".to_vec(), 256), (b"the".to_vec(), 257), (b" the".to_vec(), 258)];
        let vocabulary = Vocabulary::new(bytes.chain(more), [("<s>".to_owned(), 300)]).unwrap();
        Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4").unwrap()).unwrap()
    }

    /// Each text by itself, the slow twin.
    fn one_by_one(tokenizer: &Tokenizer, texts: &[String], options: &EncodeOptions) -> Arrays<u32> {
        let lists: Vec<_> =
            texts.iter().map(|t| tokenizer.encode_with(t, options).unwrap()).collect();
        let offsets = offsets(lists.iter().map(Vec::len).collect()).unwrap();
        Arrays { ids: lists.concat(), offsets }
    }

    #[test]
    fn any_number_of_threads_gives_what_one_by_one_gives() {
        let tokenizer = tokenizer();
        let long = "the moth and the thé <s> 中文 ".repeat(60_000);
        let mut texts: Vec<String> = (0..500).map(|n| format!("the {n} <s> moth")).collect();
        texts.extend([String::new(), long, String::new()]);
        for special in [Special::Text, Special::All] {
            let options = tokenizer.options(&special, Some(7), Some(300)).unwrap();
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
