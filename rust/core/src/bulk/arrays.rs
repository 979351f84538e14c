//! Encodes many texts into one array of ids with the offset of each text, or only counts their ids.
//!
//! A long text is cut into several parts, at positions where a cut changes no id. Each thread takes
//! the next chunk of parts and appends finished chunks to the result in order, while their ids are
//! still in cache. A single thread writes into the result directly. Texts may come from an
//! iterator, which is advanced only when a thread needs the next chunk.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::encode::encoder::{Edges, EncodeCall};
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::machine::array;
use crate::memory;
use crate::parallel::{self, interrupt, lock};
use crate::pretokenize::Splitter;
use crate::rules::PartStart;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// A long text is cut into parts of about this many units.
const PART_UNITS: usize = if cfg!(test) { 1 << 5 } else { 1 << 18 };
/// Threads take chunks of parts of about this many units in total.
const CHUNK_UNITS: usize = if cfg!(test) { 1 << 6 } else { 1 << 19 };

/// Number of units at the start of a text that are sampled to estimate its number of ids.
const SAMPLE_UNITS: usize = 32;

/// Arrays whose size in bytes is in this range keep their unused capacity, which costs address
/// space only. glibc raises its mmap threshold to the size of the largest mapped block that was
/// freed, and serves later blocks up to that size from memory it keeps. If arrays are freed at the
/// size at which they were allocated, consecutive batches reuse the same pages.
const REUSED_ARRAY_BYTES: Range<usize> = 128 << 10..32 << 20;

/// The estimated size of texts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// Bytes or characters, as [`Text::len`] counts them.
    pub(crate) units: usize,
    /// A generous estimate of the number of ids. Capacity is reserved for them, because growing
    /// copies the array, and reserved memory that is never touched costs little.
    pub(crate) ids: usize,
}

impl Size {
    /// Assumes one id for three ASCII characters, and one for each other character.
    pub(crate) fn of(text: &Text<'_>) -> Self {
        // In UTF-8 a character beyond ASCII has two to four bytes, so there are at most half as
        // many characters as bytes.
        let sampled = text.len().clamp(1, SAMPLE_UNITS);
        let others = text.beyond_ascii(sampled);
        let others = if text.is_utf8() { others / 2 } else { others };
        Self { units: text.len(), ids: text.len() / 3 + text.len() * others / sampled }
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

/// The concatenated ids of several texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrays<T> {
    /// The ids.
    pub ids: Vec<T>,
    /// The start of each text in `ids`, then the end of the last text.
    pub offsets: Vec<i64>,
}

/// A text or a part of one.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    text: Text<'a>,
    /// The index of the text.
    document: usize,
    /// The start of the part, in units from the start of the text.
    at: usize,
    /// Whether the part is the last of its text.
    last: bool,
}

/// The concatenated ids of some parts, and for each part the index of its text and its number of
/// ids.
type Encoded<T> = (Vec<T>, Vec<(usize, usize)>);

impl Tokenizer {
    /// Whether every id fits in 16 bits.
    #[doc(hidden)]
    pub fn fits_u16(&self) -> bool {
        self.vocabulary().len() <= 1 << 16
    }

    /// Encode texts on up to `threads` threads; returns the ids of each, in order.
    ///
    /// Fails at the first text as [`encode_with`](Self::encode_with) does.
    ///
    /// ```
    /// # use bytepair::{EncodeOptions, Pattern, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let ids = tokenizer.encode_batch(&["ab", "", "c"], tokenizer.plain(), 2)?;
    /// assert_eq!(ids, [vec![97, 98], vec![], vec![99]]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn encode_batch(
        &self,
        texts: &[impl AsRef<str>],
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Vec<Vec<u32>>> {
        let texts: Vec<_> = memory::collect(texts.iter().map(|text| Text::Utf8(text.as_ref())))?;
        let Arrays { ids, offsets } = self.encode_arrays::<u32>(&texts, options, threads)?;
        let at = |offset: i64| usize::try_from(offset).expect("offsets are not negative");
        let of_texts = offsets.windows(2).map(|pair| memory::copy(&ids[at(pair[0])..at(pair[1])]));
        memory::try_collect(of_texts)
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
    /// let arrays = tokenizer.encode_arrays::<u16>(&texts, tokenizer.plain(), 1)?;
    /// assert_eq!((arrays.ids, arrays.offsets), (vec![97, 98, 99], vec![0, 2, 2, 3]));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn encode_arrays<T: Id>(
        &self,
        texts: &[Text<'_>],
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Arrays<T>> {
        let size = texts.iter().map(Size::of).sum();
        self.encode_texts(texts.iter().copied(), size, options, threads, |_| ())
    }

    /// [`encode_arrays`](Self::encode_arrays) for an iterator of texts of about the given size.
    /// `on_part` is called with each part of a text, in order, shortly before it is encoded.
    pub(crate) fn encode_texts<'a, T: Id>(
        &self,
        texts: impl Iterator<Item = Text<'a>> + Send,
        size: Size,
        options: &EncodeOptions,
        threads: usize,
        mut on_part: impl FnMut(&Text<'a>) + Send,
    ) -> Result<Arrays<T>> {
        let threads = parallel::worth(threads, size.units);
        self.encoder().expect(size.units);
        // Normalizing parts of a text one by one can differ from normalizing the text.
        let may_cut = threads > 1 && options.finds_none() && !self.encoder().normalizes();
        let splitter = may_cut.then(|| self.splitter());
        let parts = (0..).zip(texts).flat_map(|(number, text)| cut(number, text, splitter));
        let parts = parts.inspect(move |part| on_part(&part.text));
        if threads == 1 {
            let buffer = array::vector(size.ids);
            let call = &mut self.encoder().call();
            let (ids, counts) = encode_parts(call, parts, options, buffer)?;
            let mut joined = JoinedIds { ids, ..JoinedIds::new(0) };
            joined.count(&counts)?;
            return joined.finish();
        }
        let joiner = Joiner::new(size.ids);
        let encode = |call: &mut EncodeCall<'_>, chunk, parts: Vec<Part<'_>>| {
            let sizes = parts.iter().map(|part| Size::of(&part.text));
            let buffer = joiner.spare().unwrap_or_else(|| array::vector(sizes.sum::<Size>().ids));
            joiner.add(chunk, encode_parts(call, parts, options, buffer));
        };
        // Chunks of `CHUNK_UNITS`; smaller ones if there would be fewer chunks than threads.
        let least = size.units / threads.max(size.units / CHUNK_UNITS);
        let chunks = Mutex::new(chunks(parts, least).enumerate());
        // The lock is released before the chunk is encoded. It also guards the iterator of texts,
        // which may need one thread at a time.
        let next = || lock(&chunks).next();
        let work = || {
            let mut call = self.encoder().call();
            while let Some((chunk, parts)) = next() {
                match interrupt::poll_now() {
                    Ok(()) => encode(&mut call, chunk, parts),
                    Err(error) => joiner.add(chunk, Err(error)),
                }
            }
        };
        parallel::run((0..threads).map(|_| &work));
        joiner.finish()
    }

    /// The number of ids of each text; faster than encoding. Fails as
    /// [`encode_arrays`](Self::encode_arrays) does.
    #[doc(hidden)]
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

/// Encode parts in order into the empty vector `ids`.
fn encode_parts<'a, T: Id>(
    call: &mut EncodeCall<'_>,
    parts: impl IntoIterator<Item = Part<'a>>,
    options: &EncodeOptions,
    mut ids: Vec<T>,
) -> Result<Encoded<T>> {
    let mut counts = Vec::new();
    for part in parts {
        let before = ids.len();
        let start = if part.at == 0 { PartStart::Text } else { PartStart::Inside };
        let edges = Edges { start, last: part.last };
        let sink = |block: &[u32]| {
            memory::reserve(&mut ids, block.len())?;
            ids.extend(block.iter().map(|&id| T::of(id)));
            Ok(())
        };
        call.for_each_block(&part.text, options, edges, sink)
            .map_err(|error| part.locate(error))?;
        counts.push((part.document, ids.len() - before));
    }
    Ok((ids, counts))
}

impl Part<'_> {
    /// Convert the offset of an error in this part to its offset in the text.
    fn locate(&self, error: Error) -> Error {
        match error {
            Error::TextNotUtf8 { at, .. } => {
                Error::TextNotUtf8 { document: self.document, at: self.at + at }
            }
            other => other,
        }
    }
}

/// The parts of a text; a single part without a splitter.
fn cut<'a>(
    document: usize,
    text: Text<'a>,
    splitter: Option<&Splitter>,
) -> impl Iterator<Item = Part<'a>> {
    let (mut rest, mut at) = (Some(text), 0);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = splitter.and_then(|splitter| splitter.cut_long(&text, PART_UNITS)) else {
            return Some(Part { text, document, at, last: true });
        };
        let (text, after) = text.split_at(end);
        rest = Some(after);
        at += end;
        Some(Part { text, document, at: at - end, last: false })
    })
}

/// Group parts into chunks of more than `least` units.
fn chunks<'a>(
    mut parts: impl Iterator<Item = Part<'a>>,
    least: usize,
) -> impl Iterator<Item = Vec<Part<'a>>> {
    std::iter::from_fn(move || {
        let (mut chunk, mut size) = (Vec::new(), 0);
        while size <= least
            && let Some(part) = parts.next()
        {
            // One more, because an empty text costs some work too.
            size += part.text.len() + 1;
            chunk.push(part);
        }
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Joins the chunks that threads encode, in order. A thread that finishes a chunk appends all
/// chunks that are next in order, unless another thread is appending; no thread waits, and none is
/// dedicated to appending.
struct Joiner<T> {
    joined: Mutex<JoinedIds<T>>,
    pending: Mutex<PendingChunks<T>>,
    /// Empty vectors for reuse: touching fresh memory costs more than writing the ids.
    spare: Mutex<Vec<Vec<T>>>,
}

/// Encoded chunks that are not yet appended.
struct PendingChunks<T> {
    /// By the index of the chunk.
    encoded: BTreeMap<usize, Result<Encoded<T>>>,
    /// The index of the next chunk to append.
    next: usize,
}

/// The result so far.
struct JoinedIds<T> {
    ids: Vec<T>,
    /// The number of ids of each text so far.
    lengths: Vec<usize>,
    /// The first error; nothing is appended after it.
    failed: Option<Error>,
}

impl<T: Id> Joiner<T> {
    /// Reserves capacity for `ids` ids.
    fn new(ids: usize) -> Self {
        Self {
            joined: Mutex::new(JoinedIds::new(ids)),
            pending: Mutex::new(PendingChunks { encoded: BTreeMap::new(), next: 0 }),
            spare: Mutex::new(Vec::new()),
        }
    }

    /// A vector for reuse, if there is one.
    fn spare(&self) -> Option<Vec<T>> {
        lock(&self.spare).pop()
    }

    /// Add the ids of a chunk.
    fn add(&self, chunk: usize, encoded: Result<Encoded<T>>) {
        lock(&self.pending).encoded.insert(chunk, encoded);
        // Another thread may be appending and may already have checked for this chunk. It releases
        // the lock first and then checks `is_due` once more, so no chunk is left behind.
        while lock(&self.pending).is_due()
            && let Ok(mut joined) = self.joined.try_lock()
        {
            while let Some(encoded) = self.take() {
                let emptied = joined.append(encoded);
                lock(&self.spare).extend(emptied);
            }
        }
    }

    /// The next chunk in order, if it is encoded. Only the thread that holds the lock of `joined`
    /// calls this.
    fn take(&self) -> Option<Result<Encoded<T>>> {
        let mut pending = lock(&self.pending);
        let next = pending.next;
        let due = pending.encoded.remove(&next)?;
        pending.next += 1;
        Some(due)
    }

    fn finish(self) -> Result<Arrays<T>> {
        let mut joined = self.joined.into_inner().unwrap_or_else(PoisonError::into_inner);
        joined.failed.take().map_or_else(|| joined.finish(), Err)
    }
}

impl<T> PendingChunks<T> {
    fn is_due(&self) -> bool {
        self.encoded.contains_key(&self.next)
    }
}

impl<T: Id> JoinedIds<T> {
    fn new(ids: usize) -> Self {
        Self { ids: array::vector(ids), lengths: Vec::new(), failed: None }
    }

    /// Append a chunk and return its vector, emptied for reuse.
    fn append(&mut self, encoded: Result<Encoded<T>>) -> Option<Vec<T>> {
        if self.failed.is_some() {
            return None;
        }
        let appended = encoded.and_then(|(mut ids, counts)| {
            self.count(&counts)?;
            memory::reserve(&mut self.ids, ids.len())?;
            self.ids.extend_from_slice(&ids);
            ids.clear();
            Ok(ids)
        });
        appended.map_err(|error| self.failed = Some(error)).ok()
    }

    /// Add the number of ids of each part to its text.
    fn count(&mut self, counts: &[(usize, usize)]) -> Result<()> {
        for &(document, count) in counts {
            // Parts come in order, so the part belongs to the last text or a new one; `resize`
            // never shortens the lengths.
            let more = (document + 1).saturating_sub(self.lengths.len());
            memory::reserve(&mut self.lengths, more)?;
            self.lengths.resize(document + 1, 0);
            self.lengths[document] += count;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Arrays<T>> {
        if !REUSED_ARRAY_BYTES.contains(&(self.ids.capacity() * size_of::<T>())) {
            self.ids.shrink_to_fit();
        }
        Ok(Arrays { ids: self.ids, offsets: offsets(self.lengths)? })
    }
}

/// Prefix sums of the lengths.
fn offsets(lengths: Vec<usize>) -> Result<Vec<i64>> {
    let mut end = 0;
    let ends = lengths.into_iter().map(|length| {
        end += i64::try_from(length).expect("an array in memory has less than 2^63 ids");
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

    /// The slow reference: encodes each text separately.
    fn one_by_one(tokenizer: &Tokenizer, texts: &[String], options: &EncodeOptions) -> Arrays<u32> {
        let lists: Vec<_> =
            texts.iter().map(|t| tokenizer.encode_with(t, options).unwrap()).collect();
        let offsets = offsets(lists.iter().map(Vec::len).collect()).unwrap();
        Arrays { ids: lists.concat(), offsets }
    }

    #[test]
    fn threads_do_not_change_the_ids() {
        let tokenizer = tokenizer();
        let long = "the moth and the thé <s> 中文 ".repeat(60_000);
        let mut texts: Vec<String> = (0..500).map(|n| format!("the {n} <s> moth")).collect();
        texts.extend([String::new(), long, String::new()]);
        for special in [Special::Text, Special::All] {
            let options = tokenizer.options(&special, &[7], &[300]).unwrap();
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
            let result = tokenizer.encode_arrays::<u32>(&texts, tokenizer.plain(), threads);
            assert_eq!(result.unwrap_err(), Error::TextNotUtf8 { document: 1, at: 1_000_000 });
        }
    }

    #[test]
    fn an_empty_batch_has_no_ids() {
        let arrays = tokenizer().encode_arrays::<u32>(&[], tokenizer().plain(), 4).unwrap();
        assert_eq!(arrays, Arrays { ids: vec![], offsets: vec![0] });
    }
}
