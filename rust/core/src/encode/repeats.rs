//! Caches the ids of repeated chunks of text.
//!
//! Prompts share a prefix, a conversation is sent again with one more message, a test is run again.
//! Comparing 4 kB with a copy takes a small fraction of the time of encoding them. So a text is
//! divided, from its start, into chunks of about 4 kB, at positions where a cut changes no id. A
//! chunk is cached when it is seen for the third time within a while: a text that is read only
//! twice is not slowed down by copies. Text that never repeats costs one checksum and 32 bits for
//! each chunk.
//!
//! The cache keeps copies of users' text, up to a limit in bytes; a limit of 0 switches it off.
//! Eviction is by second chance (the clock algorithm): the next chunk in the queue stays if it was
//! used since its last turn, and then the new chunk is not added. So when more text than fits is
//! read repeatedly in the same order, part of it stays cached.
//!
//! No call waits for a lock; if the lock is taken, the call encodes the chunk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::error::Result;
use crate::memory;
use crate::pretokenize::Splitter;
use crate::text::Text;

/// Chunks have at least this many bytes, or end with the text. Smaller in tests and when fuzzing, whose
/// random texts are short.
const CHUNK_BYTES: usize = if cfg!(any(test, fuzzing)) { 1 << 5 } else { 4 << 10 };
/// Shorter and longer chunks are not looked up.
pub(crate) const MIN_LOOKUP_BYTES: usize = CHUNK_BYTES / 4;
const MAX_LOOKUP_BYTES: usize = 256 << 10;

/// Adjacent new chunks are encoded as one once they have this many bytes.
const JOINED_BYTES: usize = if cfg!(test) { 1 << 7 } else { 64 << 10 };

/// The default limit on the bytes of text and ids.
pub(crate) const DEFAULT_LIMIT: usize = 32 << 20;

/// The clock ticks once in 2 to the power of `TICK_BITS` new bytes; a chunk is recent for
/// `RECENT_TICKS` ticks.
const TICK_BITS: u32 = 23;
const RECENT_TICKS: u8 = 4;

/// A part of a text.
pub(crate) enum Chunk<'a> {
    /// A cached chunk.
    Cached(Arc<CachedChunk>),
    /// Text to encode.
    New(&'a str),
    /// A chunk to encode and then to cache.
    Repeated(&'a str),
}

/// The repeated chunks of all threads.
#[derive(Debug)]
pub(crate) struct Repeats {
    seen: SeenChunks,
    /// Whether anything is cached; until then, no thread touches the cache line of the lock.
    is_any_cached: AtomicBool,
    cached: RwLock<CachedChunks>,
    pub(crate) limit: usize,
}

/// A chunk that was seen at least three times.
#[derive(Debug)]
pub(crate) struct CachedChunk {
    text: Box<[u8]>,
    pub(crate) ids: Box<[u32]>,
    /// Whether the chunk was used or added since its last turn in the queue.
    used: AtomicBool,
}

/// The chunks that were seen, as marks in sets of two, the latest first, so that two chunks of a
/// text in the same set do not replace each other. A mark holds the upper 24 bits of the checksum,
/// and the time; the lower bits of the checksum select the set.
#[derive(Debug)]
struct SeenChunks {
    /// Empty if there was not enough memory.
    marks: Box<[AtomicU32]>,
    /// The number of new bytes so far.
    clock: AtomicUsize,
}

/// The cached chunks, by length and checksum.
#[derive(Debug, Default)]
struct CachedChunks {
    chunks: HashMap<ChunkKey, Arc<CachedChunk>, RandomState>,
    /// The eviction queue.
    queue: VecDeque<ChunkKey>,
    bytes: usize,
}

/// The length of a chunk and its checksum. Of two chunks with the same key, only one is cached.
type ChunkKey = (usize, u32);

impl Repeats {
    /// A cache of at most `limit` bytes of text and ids; 0 switches it off.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            seen: SeenChunks::default(),
            is_any_cached: AtomicBool::new(false),
            cached: RwLock::default(),
            limit,
        }
    }

    /// Call `with` with the chunks of a text, in order.
    pub(crate) fn divide(
        &self,
        splitter: &Splitter,
        text: &str,
        mut with: impl FnMut(Chunk<'_>) -> Result<()>,
    ) -> Result<()> {
        // From `new` to `start`, chunks were new; they wait to be encoded as one.
        let (mut new, mut start) = (0, 0);
        while text.len() - start >= MIN_LOOKUP_BYTES {
            let rest = &text[start..];
            let length = splitter.cut_long(&Text::Utf8(rest), CHUNK_BYTES).unwrap_or(rest.len());
            let (chunk, begin) = (&rest[..length], start);
            start += length;
            match self.look_up(chunk) {
                Chunk::New(_) if start - new < JOINED_BYTES => continue,
                Chunk::New(_) => with(Chunk::New(&text[new..start]))?,
                chunk => {
                    with(Chunk::New(&text[new..begin]))?;
                    with(chunk)?;
                }
            }
            new = start;
        }
        with(Chunk::New(&text[new..]))
    }

    fn look_up<'a>(&self, chunk: &'a str) -> Chunk<'a> {
        if chunk.len() > MAX_LOOKUP_BYTES {
            return Chunk::New(chunk);
        }
        let key = key(chunk);
        let cached =
            if self.is_any_cached.load(Relaxed) { self.cached.try_read().ok() } else { None };
        let Some(cached) = cached.and_then(|cached| cached.chunks.get(&key).cloned()) else {
            let is_repeated = self.seen.was_seen_twice(key);
            return if is_repeated { Chunk::Repeated(chunk) } else { Chunk::New(chunk) };
        };
        // Another text may have the same length and checksum.
        if *cached.text != *chunk.as_bytes() {
            return Chunk::New(chunk);
        }
        // Read first: a store by each hit would move the cache line from thread to thread.
        if !cached.used.load(Relaxed) {
            cached.used.store(true, Relaxed);
        }
        Chunk::Cached(cached)
    }

    /// Cache the ids of a chunk, if the limit and the memory allow it.
    pub(crate) fn keep(&self, chunk: &str, ids: &[u32]) {
        let key = key(chunk);
        let copies = memory::copy(chunk.as_bytes()).and_then(|text| Ok((text, memory::copy(ids)?)));
        let Ok((text, ids)) = copies else { return };
        let (text, ids, used) = (text.into(), ids.into(), AtomicBool::new(true));
        let chunk = Arc::new(CachedChunk { text, ids, used });
        if let Ok(mut cached) = self.cached.try_write() {
            cached.put(key, chunk, self.limit);
            self.is_any_cached.store(true, Relaxed);
        }
    }
}

fn key(chunk: &str) -> ChunkKey {
    (chunk.len(), crc32fast::hash(chunk.as_bytes()))
}

impl Default for SeenChunks {
    fn default() -> Self {
        let marks = memory::zeros(1 << Self::BITS).map_or_else(|_| Box::default(), Vec::into);
        Self { marks, clock: AtomicUsize::new(0) }
    }
}

impl SeenChunks {
    const BITS: u32 = 15;

    /// Record a chunk; returns whether it was recently recorded at least twice before. From the
    /// second time on, it has a second mark, that of an empty chunk with the inverted checksum.
    fn was_seen_twice(&self, (length, sum): ChunkKey) -> bool {
        self.was_seen((length, sum)) && self.was_seen((0, !sum))
    }

    /// Record a chunk; returns whether it was recently recorded before.
    fn was_seen(&self, (length, sum): ChunkKey) -> bool {
        // The low byte of the time stands in the mark, so it wraps around after 256 ticks.
        let time = self.clock.fetch_add(length, Relaxed) >> TICK_BITS;
        let time = time.to_le_bytes()[0];
        let sets = self.marks.as_chunks().0;
        let set = (sum as usize).checked_rem(sets.len()).map(|at| &sets[at]);
        let Some([latest, other]) = set else { return false };
        let marks = [latest, other].map(|mark| mark.load(Relaxed));
        // Two threads may do this at once and lose a mark, after which a chunk counts as new.
        latest.store(sum & !0xFF | u32::from(time), Relaxed);
        if marks[0] >> 8 != sum >> 8 {
            other.store(marks[0], Relaxed);
        }
        let mark = marks.into_iter().find(|mark| mark >> 8 == sum >> 8);
        mark.is_some_and(|mark| time.wrapping_sub(mark.to_le_bytes()[0]) <= RECENT_TICKS)
    }
}

impl CachedChunks {
    /// Add a chunk; where it does not fit, evict chunks from the queue. If one of these was used since its
    /// last turn, it stays, and the new chunk is not added.
    fn put(&mut self, key: ChunkKey, chunk: Arc<CachedChunk>, limit: usize) {
        if self.chunks.contains_key(&key) {
            return;
        }
        let bytes = chunk.bytes();
        while self.bytes + bytes > limit {
            let Some(turn) = self.queue.pop_front() else { return };
            if self.chunks[&turn].used.swap(false, Relaxed) {
                return self.queue.push_back(turn);
            }
            self.bytes -= self.chunks.remove(&turn).map_or(0, |evicted| evicted.bytes());
        }
        self.chunks.insert(key, chunk);
        self.queue.push_back(key);
        self.bytes += bytes;
    }
}

impl CachedChunk {
    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::Pattern;
    use proptest::prelude::*;

    /// The concatenation of the chunks, with bytes as ids, and the number of bytes that came from
    /// the cache.
    fn divide(repeats: &Repeats, splitter: &Splitter, text: &str) -> (Vec<u32>, usize) {
        let (mut all, mut cached_bytes) = (Vec::new(), 0);
        let ids = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let parts = |part: Chunk<'_>| {
            match part {
                Chunk::New(text) => all.extend(ids(text)),
                Chunk::Repeated(text) => {
                    all.extend(ids(text));
                    repeats.keep(text, &ids(text));
                }
                Chunk::Cached(chunk) => {
                    all.extend(&chunk.ids);
                    cached_bytes += chunk.ids.len();
                }
            }
            Ok(())
        };
        repeats.divide(splitter, text, parts).unwrap();
        (all, cached_bytes)
    }

    /// A text of `numbers` numbers, then `letters` letters, between which no cut is safe.
    fn example(first: u32, numbers: usize, letters: usize) -> String {
        let numbers = (first..).take(numbers).map(|number| format!("{number} é, "));
        numbers.collect::<String>() + &"x".repeat(letters)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        /// The concatenated chunks are the text; the fourth time, all but its end comes from the
        /// cache.
        #[test]
        fn chunks_cover_the_text_and_repeated_ones_are_cached(
            texts in prop::collection::vec((0u32..3, 0..CHUNK_BYTES, 0..3 * CHUNK_BYTES), 1..12),
            pattern in prop::sample::select(vec!["gpt4", "gpt4o", "gpt2"]),
        ) {
            let splitter = Splitter::new(&Pattern::named(pattern).unwrap()).unwrap();
            let repeats = Repeats::new(DEFAULT_LIMIT);
            for (first, numbers, letters) in texts {
                let text = example(first, numbers, letters);
                let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
                for _ in 0..3 {
                    prop_assert_eq!(&divide(&repeats, &splitter, &text).0, &bytes);
                }
                let (again, cached_bytes) = divide(&repeats, &splitter, &text);
                prop_assert_eq!(again, bytes);
                prop_assert!(cached_bytes + MIN_LOOKUP_BYTES > text.len());
            }
        }
    }

    #[test]
    fn texts_with_a_common_prefix_share_chunks() {
        let splitter = Splitter::new(&Pattern::named("gpt4").unwrap()).unwrap();
        let repeats = Repeats::new(DEFAULT_LIMIT);
        let text = example(0, CHUNK_BYTES, 0);
        let prompts = [0, 1, 2, 3].map(|end| text.clone() + &example(end, 9, 0));
        let cached_bytes = prompts.map(|prompt| divide(&repeats, &splitter, &prompt).1);
        assert_eq!(cached_bytes[..3], [0, 0, 0]);
        assert!(cached_bytes[3] > text.len() - 2 * CHUNK_BYTES && cached_bytes[3] < text.len());
    }

    #[test]
    fn two_chunks_of_the_same_set_are_both_recorded() {
        let seen = SeenChunks::default();
        let keys = [(5000, 1 << 20), (6000, 2 << 20)];
        assert_eq!(keys.map(|key| seen.was_seen(key)), [false; 2]);
        for _ in 0..3 {
            assert_eq!(keys.map(|key| seen.was_seen(key)), [true; 2]);
        }
    }

    #[test]
    fn a_chunk_that_was_seen_long_ago_is_new() {
        let seen = SeenChunks::default();
        let (key, other) = ((5000, 7 << 20), (1 << TICK_BITS, 8));
        assert!(!seen.was_seen(key));
        for (others, is_recent) in
            [(0, true), (RECENT_TICKS, true), (RECENT_TICKS + 1, false), (1, true)]
        {
            for _ in 0..others {
                seen.was_seen(other);
            }
            assert_eq!(seen.was_seen(key), is_recent);
        }
    }

    #[test]
    fn if_more_chunks_are_used_than_fit_some_stay_until_they_are_unused() {
        let mut cached = CachedChunks::default();
        let megabyte = |_| CachedChunk {
            text: vec![b'x'; 1 << 20].into(),
            ids: Box::default(),
            used: AtomicBool::new(true),
        };
        // Uses or adds the chunks of these lengths; returns how many were cached.
        let mut hits = |lengths: std::ops::Range<usize>| {
            let is_hit = lengths.clone().filter(|&length| {
                let found = cached.chunks.get(&(length, 0));
                found.inspect(|found| found.used.store(true, Relaxed)).is_some() || {
                    cached.put((length, 0), Arc::new(megabyte(length)), DEFAULT_LIMIT);
                    false
                }
            });
            let count = is_hit.count();
            assert!(cached.bytes <= DEFAULT_LIMIT && cached.bytes == cached.chunks.len() << 20);
            assert_eq!(cached.queue.len(), cached.chunks.len());
            count
        };
        assert_eq!([hits(0..40), hits(0..40), hits(0..40)], [0, 32, 32]);
        let others = [0; 4].map(|_| hits(100..120));
        assert_eq!(others, [0, 0, 16, 20], "unused chunks are evicted");
    }

    #[test]
    fn a_cached_chunk_with_the_same_key_but_another_text_is_not_used() {
        let repeats = Repeats::new(DEFAULT_LIMIT);
        let [one, other] = ["a", "b"].map(|letter| letter.repeat(CHUNK_BYTES));
        repeats.keep(&other, &[1]);
        let mut cached = repeats.cached.write().unwrap();
        let chunk = cached.chunks.remove(&key(&other)).unwrap();
        cached.chunks.insert(key(&one), chunk);
        drop(cached);
        assert!(matches!(repeats.look_up(&one), Chunk::New(_)));
    }

    #[test]
    fn no_call_waits_for_a_lock() {
        let splitter = Splitter::new(&Pattern::named("gpt4").unwrap()).unwrap();
        let repeats = Repeats::new(DEFAULT_LIMIT);
        let text = example(0, 2000, 0);
        repeats.is_any_cached.store(true, Relaxed);
        let _lock = repeats.cached.write();
        for _ in 0..4 {
            assert_eq!(divide(&repeats, &splitter, &text).1, 0);
        }
    }
}
