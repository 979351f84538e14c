//! Passages of text that come again, with their ids.
//!
//! Prompts begin alike, a conversation is sent again with one message more, a test is run again. To compare some
//! thousand bytes with a copy takes a small part of the time of encoding them. So a text is divided, from its
//! beginning, where that changes no id, and a passage that comes for the second time, the first not long ago, is kept
//! with its ids. Text that never comes again costs a checksum and one number of 32 bits a passage.
//!
//! What is kept gives way to others once it has not been met for a while; as long as it is, others are turned away.
//! So of more text than there is room for, in turn, a part stays.
//!
//! Nobody waits for a lock: who does not get it encodes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::error::Result;
use crate::pretokenize::Splitter;
use crate::text::Text;

/// Passages have at least so many bytes, or end with the text. Fuzzers find short texts.
const LENGTH: usize = if cfg!(fuzzing) { 1 << 5 } else { 4 << 10 };
/// Shorter and longer ones are not looked for.
pub(super) const LEAST: usize = LENGTH / 4;
const MOST: usize = 256 << 10;

/// New passages that touch are handed on together once they have so many bytes.
const TOGETHER: usize = 64 << 10;

/// So many bytes of text and ids are kept.
const ROOM: usize = 32 << 20;

/// The clock ticks whenever 2 to the power of this many bytes were new; so many ticks ago is not long ago.
const TICK: u32 = 23;
const RECENT: u8 = 4;

/// A part of a text.
pub(super) enum Part<'a> {
    /// Its ids are these.
    Known(&'a [u32]),
    /// It is to be encoded.
    New(&'a str),
    /// It is to be encoded, and kept.
    Again(&'a str),
}

/// The passages that all threads have met.
#[derive(Debug, Default)]
pub(super) struct Passages {
    once: Once,
    /// Whether anything is kept. As long as nothing comes again, no thread waits for the lock's line of memory.
    is_any_kept: AtomicBool,
    kept: RwLock<Kept>,
}

/// A passage that came at least twice.
#[derive(Debug)]
struct Passage {
    text: Box<str>,
    ids: Box<[u32]>,
    /// Whether it was met, or came, since somebody wanted its room.
    met: AtomicBool,
}

/// What came: of each passage, by some bits of its checksum, the others and the time.
#[derive(Debug)]
struct Once {
    marks: Box<[AtomicU32]>,
    /// How many bytes were new.
    clock: AtomicUsize,
}

/// What is kept, by length and checksum.
#[derive(Debug, Default)]
struct Kept {
    passages: HashMap<Name, Arc<Passage>, RandomState>,
    /// From the one whose turn it is to give way.
    turns: VecDeque<Name>,
    bytes: usize,
}

/// The length of a passage and its checksum. Two that share both cannot both be kept.
type Name = (usize, u32);

impl Passages {
    /// Call `with` with the parts of a text, in order.
    pub(super) fn divide(
        &self,
        splitter: &Splitter,
        text: &str,
        mut with: impl FnMut(Part<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut new, mut start) = (0, 0);
        while text.len() - start >= LEAST {
            let rest = &text[start..];
            let length = splitter.cut_long(&Text::Utf8(rest), LENGTH).unwrap_or(rest.len());
            let (passage, begin) = (&rest[..length], start);
            start += length;
            match self.look(passage) {
                Look::New if start - new < TOGETHER => continue,
                Look::New => with(Part::New(&text[new..start]))?,
                Look::Again => {
                    with(Part::New(&text[new..begin]))?;
                    with(Part::Again(passage))?;
                }
                Look::Kept(kept) => {
                    with(Part::New(&text[new..begin]))?;
                    with(Part::Known(&kept.ids))?;
                }
            }
            new = start;
        }
        with(Part::New(&text[new..]))
    }

    fn look(&self, passage: &str) -> Look {
        if passage.len() > MOST {
            return Look::New;
        }
        let name = name(passage);
        let kept = if self.is_any_kept.load(Relaxed) { self.kept.try_read().ok() } else { None };
        let Some(kept) = kept.and_then(|kept| kept.passages.get(&name).cloned()) else {
            return if self.once.meet(name) { Look::Again } else { Look::New };
        };
        if *kept.text != *passage {
            return Look::New;
        }
        if !kept.met.load(Relaxed) {
            kept.met.store(true, Relaxed);
        }
        Look::Kept(kept)
    }

    /// Keep the ids of a passage, if there is room.
    pub(super) fn keep(&self, passage: &str, ids: &[u32]) {
        let name = name(passage);
        let (text, ids, met) = (passage.into(), ids.into(), AtomicBool::new(true));
        let passage = Arc::new(Passage { text, ids, met });
        if let Ok(mut kept) = self.kept.try_write() {
            kept.put(name, passage);
            self.is_any_kept.store(true, Relaxed);
        }
    }
}

/// What is known of a passage.
enum Look {
    New,
    Again,
    Kept(Arc<Passage>),
}

fn name(passage: &str) -> Name {
    (passage.len(), crc32fast::hash(passage.as_bytes()))
}

impl Default for Once {
    fn default() -> Self {
        Self { marks: bytemuck::zeroed_slice_box(1 << Self::BITS), clock: AtomicUsize::new(0) }
    }
}

impl Once {
    const BITS: u32 = 15;

    /// Whether a passage came not long ago. It comes now.
    fn meet(&self, (length, sum): Name) -> bool {
        let time = self.clock.fetch_add(length, Relaxed) >> TICK;
        let time = time.to_le_bytes()[0];
        let place = &self.marks[sum as usize % self.marks.len()];
        let [at, others @ ..] = place.load(Relaxed).to_le_bytes();
        let [_, own @ ..] = sum.to_le_bytes();
        place.store(u32::from_le_bytes([time, own[0], own[1], own[2]]), Relaxed);
        others == own && time.wrapping_sub(at) <= RECENT
    }
}

impl Kept {
    /// Make room for a passage and keep it, unless the one whose turn it is to give way was met since its last turn.
    fn put(&mut self, name: Name, passage: Arc<Passage>) {
        if self.passages.contains_key(&name) {
            return;
        }
        let bytes = passage.bytes();
        while self.bytes + bytes > ROOM {
            let Some(turn) = self.turns.pop_front() else { return };
            if self.passages[&turn].met.swap(false, Relaxed) {
                return self.turns.push_back(turn);
            }
            self.bytes -= self.passages.remove(&turn).map_or(0, |old| old.bytes());
        }
        self.passages.insert(name, passage);
        self.turns.push_back(name);
        self.bytes += bytes;
    }
}

impl Passage {
    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::Pattern;
    use proptest::prelude::*;

    /// A text in passages, each of which has its bytes for ids, and how many of these were known.
    fn divide(passages: &Passages, splitter: &Splitter, text: &str) -> (Vec<u32>, usize) {
        let (mut all, mut known) = (Vec::new(), 0);
        let ids = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let parts = |part: Part<'_>| {
            match part {
                Part::New(text) => all.extend(ids(text)),
                Part::Again(text) => {
                    all.extend(ids(text));
                    passages.keep(text, &ids(text));
                }
                Part::Known(ids) => {
                    all.extend(ids);
                    known += ids.len();
                }
            }
            Ok(())
        };
        passages.divide(splitter, text, parts).unwrap();
        (all, known)
    }

    /// A text of so many numbers, and so many letters without a place to cut.
    fn example(first: u32, numbers: usize, letters: usize) -> String {
        let numbers = (first..).take(numbers).map(|number| format!("{number} é, "));
        numbers.collect::<String>() + &"x".repeat(letters)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        /// The parts of a text are the text, whatever came before; what comes for the third time is known, but for
        /// its end.
        #[test]
        fn parts_are_the_text(
            texts in prop::collection::vec((0u32..3, 0usize..4000, 0usize..10_000), 1..12),
            pattern in prop::sample::select(vec!["gpt4", "gpt4o", "gpt2"]),
        ) {
            let splitter = Splitter::new(&Pattern::named(pattern).unwrap()).unwrap();
            let passages = Passages::default();
            for (first, numbers, letters) in texts {
                let text = example(first, numbers, letters);
                let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
                for _ in 0..2 {
                    prop_assert_eq!(&divide(&passages, &splitter, &text).0, &bytes);
                }
                let (again, known) = divide(&passages, &splitter, &text);
                prop_assert_eq!(again, bytes);
                prop_assert!(known + LEAST > text.len());
            }
        }
    }

    #[test]
    fn texts_that_begin_alike_share_passages() {
        let splitter = Splitter::new(&Pattern::named("gpt4").unwrap()).unwrap();
        let passages = Passages::default();
        let text = example(0, 5000, 0);
        let prompts = [0, 1, 2].map(|end| text.clone() + &example(end, 9, 0));
        let known = prompts.map(|prompt| divide(&passages, &splitter, &prompt).1);
        assert_eq!(known[..2], [0, 0]);
        assert!(known[2] > text.len() - 2 * LENGTH && known[2] < text.len());
    }

    #[test]
    fn a_text_that_came_long_ago_is_new() {
        let once = Once::default();
        let (name, other) = ((5000, 7 << 20), (1 << TICK, 8));
        assert!(!once.meet(name));
        for (others, is_recent) in [(0, true), (RECENT, true), (RECENT + 1, false), (1, true)] {
            for _ in 0..others {
                once.meet(other);
            }
            assert_eq!(once.meet(name), is_recent);
        }
    }

    #[test]
    fn of_more_than_there_is_room_for_a_part_stays_until_it_is_met_no_more() {
        let mut kept = Kept::default();
        let megabyte = |_| Passage {
            text: "x".repeat(1 << 20).into(),
            ids: Box::default(),
            met: AtomicBool::new(true),
        };
        let mut come = |names: std::ops::Range<usize>| {
            let is_known = names.clone().filter(|&name| {
                let known = kept.passages.get(&(name, 0));
                known.inspect(|known| known.met.store(true, Relaxed)).is_some() || {
                    kept.put((name, 0), Arc::new(megabyte(name)));
                    false
                }
            });
            let known = is_known.count();
            assert!(kept.bytes <= ROOM && kept.bytes == kept.passages.len() << 20);
            assert_eq!(kept.turns.len(), kept.passages.len());
            known
        };
        assert_eq!([come(0..40), come(0..40), come(0..40)], [0, 32, 32]);
        let others = [0; 4].map(|_| come(100..120));
        assert_eq!(others, [0, 0, 16, 20], "those before gave way");
    }

    #[test]
    fn a_checksum_is_not_trusted() {
        let passages = Passages::default();
        let [one, other] = ["a", "b"].map(|letter| letter.repeat(LENGTH));
        passages.keep(&other, &[1]);
        let mut kept = passages.kept.write().unwrap();
        let there = kept.passages.remove(&name(&other)).unwrap();
        kept.passages.insert(name(&one), there);
        drop(kept);
        assert!(matches!(passages.look(&one), Look::New));
    }

    #[test]
    fn nobody_waits_for_a_lock() {
        let splitter = Splitter::new(&Pattern::named("gpt4").unwrap()).unwrap();
        let passages = Passages::default();
        let text = example(0, 2000, 0);
        passages.is_any_kept.store(true, Relaxed);
        let _kept = passages.kept.write();
        for _ in 0..3 {
            assert_eq!(divide(&passages, &splitter, &text).1, 0);
        }
    }
}
