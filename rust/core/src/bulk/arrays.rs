//! Encodes many texts into one array of ids with the offset of each text, or only counts their ids.
//!
//! A long text is cut into several parts, at positions where a cut changes no id. Each thread takes
//! the next chunk of parts, and finished chunks are appended to the result in order. A single thread
//! writes into the result directly. Texts may come from an iterator, which is advanced only when a
//! thread needs the next chunk.

use std::ops::Range;
use std::sync::Mutex;

use crate::encode::encoder::{Edges, EncodeCall, Encoder};
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::machine::array;
use crate::memory;
use crate::parallel::{self, lock};
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

/// A generous estimate of the number of ids of a text: one for three ASCII characters, and one for each
/// other character. Capacity is reserved for them, because growing copies the array, and reserved
/// memory that is never touched costs little.
pub(crate) fn estimate_ids(text: &Text<'_>) -> usize {
    // In UTF-8 a character beyond ASCII has two to four bytes, so there are at most half as many
    // characters as bytes.
    let sampled = text.len().clamp(1, SAMPLE_UNITS);
    let others = text.beyond_ascii(sampled);
    let others = if text.is_utf8() { others / 2 } else { others };
    text.len() / 3 + text.len() * others / sampled
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
        let (units, ids) =
            (texts.iter().map(Text::len).sum(), texts.iter().map(estimate_ids).sum());
        self.encode_texts(texts.iter().copied(), (units, ids), options, threads, |_| ())
    }

    /// [`encode_arrays`](Self::encode_arrays) for an iterator of texts of about this many units and ids.
    /// `on_part` is called with each part of a text, in order, shortly before it is encoded.
    pub(crate) fn encode_texts<'a, T: Id>(
        &self,
        texts: impl Iterator<Item = Text<'a>> + Send,
        (units, ids): (usize, usize),
        options: &EncodeOptions,
        threads: usize,
        mut on_part: impl FnMut(&Text<'a>) + Send,
    ) -> Result<Arrays<T>> {
        let threads = parallel::worth(threads, units);
        self.encoder().expect(units);
        // Normalizing parts of a text one by one can differ from normalizing the text.
        let may_cut = threads > 1 && options.finds_none() && !self.encoder().normalizes();
        let splitter = may_cut.then(|| self.splitter());
        let parts = (0..).zip(texts).flat_map(|(number, text)| cut(number, text, splitter));
        let parts = parts.inspect(move |part| on_part(&part.text));
        encode_parts(parts, (units, ids), threads, self.encoder(), options)
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

/// Encode parts of about this many units and ids into one array, on up to `threads` threads.
fn encode_parts<'a, T: Id>(
    parts: impl Iterator<Item = Part<'a>> + Send,
    (units, ids): (usize, usize),
    threads: usize,
    encoder: &Encoder,
    options: &EncodeOptions,
) -> Result<Arrays<T>> {
    let mut ids = array::vector(ids);
    let mut offsets = vec![0];
    if threads == 1 {
        let mut call = encoder.call();
        for part in parts {
            part.encode(&mut call, options, &mut ids)?;
            if part.last {
                memory::push(&mut offsets, offset(ids.len()))?;
            }
        }
    } else {
        // Chunks of `CHUNK_UNITS`; smaller ones if there would be fewer chunks than threads.
        let chunks = chunks(parts, units / threads.max(units / CHUNK_UNITS));
        // Vectors for reuse: touching fresh memory costs more than writing the ids.
        let spare = Mutex::new(Vec::new());
        let encode = |call: &mut EncodeCall<'_>, chunk: Vec<Part<'a>>| {
            let about = chunk.iter().map(|part| estimate_ids(&part.text));
            let mut ids = lock(&spare).pop().unwrap_or_else(|| array::vector(about.sum()));
            let mut ends = Vec::new();
            for part in chunk {
                part.encode(call, options, &mut ids)?;
                if part.last {
                    memory::push(&mut ends, ids.len())?;
                }
            }
            Ok((ids, ends))
        };
        let sink = |done: Option<Result<(Vec<T>, Vec<usize>)>>| {
            let Some(done) = done else { return Ok(()) };
            let (mut more, ends) = done?;
            memory::reserve(&mut offsets, ends.len())?;
            offsets.extend(ends.iter().map(|end| offset(ids.len() + end)));
            memory::extend(&mut ids, &more)?;
            more.clear();
            lock(&spare).push(more);
            Ok(())
        };
        let weight = |chunk: &Vec<Part<'a>>| chunk.iter().map(|part| part.text.len()).sum();
        let most = 4 * threads * CHUNK_UNITS;
        parallel::ordered(chunks, threads, most, weight, || encoder.call(), encode, sink)?;
    }
    if !REUSED_ARRAY_BYTES.contains(&(ids.capacity() * size_of::<T>())) {
        ids.shrink_to_fit();
    }
    Ok(Arrays { ids, offsets })
}

/// A place in an array in memory, which is always below 2^63.
pub(super) fn offset(items: usize) -> i64 {
    i64::try_from(items).expect("an array in memory has less than 2^63 items")
}

impl Part<'_> {
    /// Append the ids of the part.
    fn encode<T: Id>(
        &self,
        call: &mut EncodeCall<'_>,
        options: &EncodeOptions,
        ids: &mut Vec<T>,
    ) -> Result<()> {
        let start = if self.at == 0 { PartStart::Text } else { PartStart::Inside };
        let edges = Edges { start, last: self.last };
        call.append_part(&self.text, options, edges, ids).map_err(|error| self.locate(error))
    }

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
        let ends = lists.iter().scan(0, |end, ids| {
            *end += offset(ids.len());
            Some(*end)
        });
        let offsets = std::iter::once(0).chain(ends).collect();
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
