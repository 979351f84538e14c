//! Runs the cache of the core in loom, which tries every order of the threads' steps that the
//! memory model allows, up to two preemptions.
//!
//! The files of the core are compiled as they are, with the atomic numbers and locks of loom: this
//! crate stands in for `std` in them. A model is a few calls by two or three threads; whatever order
//! they take, a pretoken that is found has its own ids.
#![allow(dead_code, reason = "the core uses what the models do not")]

extern crate self as std;

pub use core::{hint, mem, ops};

pub mod sync {
    pub use loom::sync::{Arc, Mutex};

    pub mod atomic {
        pub use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    }
}

mod error {
    #[derive(Debug)]
    pub(crate) struct Error;

    pub(crate) type Result<T> = core::result::Result<T, Error>;
}

mod vocabulary {
    pub(crate) const MAX_VOCAB_SIZE: usize = 1 << 21;
}

mod parallel {
    #[derive(Debug, Default)]
    pub(crate) struct Padded<T>(pub(crate) T);
}

#[path = "../../core/src/hash/key.rs"]
mod key;

mod hash {
    pub(crate) use crate::key;
}

mod machine {
    pub(crate) mod simd {
        pub(crate) fn prefetch<T>(_items: &[T], _index: usize) {}
    }

    /// Buffers without huge pages, of at most some words: loom follows each of them.
    pub(crate) mod array {
        use core::ops::{Deref, DerefMut};

        pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;
        const MOST: usize = 64;

        #[derive(Debug, Default)]
        pub(crate) struct AlignedBuffer<T = u64>(Vec<T>);

        impl<T: From<u64>> AlignedBuffer<T> {
            pub(crate) fn zeros(length: usize) -> crate::error::Result<Self> {
                Ok(Self((0..length.min(MOST)).map(|_| T::from(0)).collect()))
            }
        }

        impl AlignedBuffer {
            pub(crate) fn chunk_mut<const N: usize>(&mut self, at: usize) -> &mut [u64; N] {
                self.0[at..].first_chunk_mut().expect("inside")
            }
        }

        impl<T> Deref for AlignedBuffer<T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                &self.0
            }
        }

        impl<T> DerefMut for AlignedBuffer<T> {
            fn deref_mut(&mut self) -> &mut [T] {
                &mut self.0
            }
        }
    }
}

#[path = "../../core/src/encode/cache/mod.rs"]
mod cache;

mod encode {
    pub(crate) use crate::cache;
}

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use encode::cache::{Cache, SharedCache};
use hash::key::Key;
use loom::sync::Arc;
use loom::thread;

/// The smallest table that grows: four lines, which are one group.
const BITS: u32 = 2;

/// A pretoken and its ids: the second is so long that its bytes are in the overflow, and the third
/// has so many ids.
fn example(number: u32) -> (Vec<u8>, Vec<u32>) {
    let length = if number == 1 { 20 } else { 3 };
    let count = if number == 2 { 8 } else { 2 };
    (vec![b'a' + number.to_le_bytes()[0]; length], (number..number + count).collect())
}

/// The ids of a pretoken, which must be its own; adds them if they are not there.
fn visit(cache: &mut Cache, number: u32) -> bool {
    let (pretoken, ids) = example(number);
    let (key, mut found) = (Key::of(&pretoken, 0..pretoken.len()), Vec::new());
    let line = cache.table().locate(key);
    let is_there = cache.append(key, line, &pretoken, &mut found);
    if is_there {
        assert_eq!(found, ids, "the ids of another pretoken, or half of them");
    } else {
        cache.put(key, line, &pretoken, &ids);
    }
    is_there
}

/// A thread that takes the latest table and visits pretokens.
fn visitor(shared: &Arc<SharedCache>, numbers: &'static [u32]) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || {
        let mut cache = Cache::default();
        for &number in numbers {
            cache.prepare(&shared);
            visit(&mut cache, number);
        }
    })
}

/// A cache in which some pretokens are already.
fn filled(numbers: core::ops::Range<u32>) -> Arc<SharedCache> {
    let (shared, mut cache) = (SharedCache::new(BITS, 32), Cache::default());
    for number in numbers {
        cache.prepare(&shared);
        visit(&mut cache, number);
    }
    cache.prepare(&shared);
    Arc::new(shared)
}

/// Some threads visit these pretokens in a cache that has some already.
fn visits(before: u32, numbers: &[&'static [u32]]) {
    let shared = filled(0..before);
    let threads: Vec<_> = numbers.iter().map(|some| visitor(&shared, some)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// What threads do at once, and how many pretokens are there before.
const MODELS: [(&str, u32, &[&[u32]]); 5] = [
    ("two threads add the same pretoken, and read it", 0, &[&[0, 0], &[0, 0]]),
    ("two threads want the same entry", 0, &[&[0, 4], &[4]]),
    ("a long pretoken is added twice, and read", 0, &[&[1], &[1, 1]]),
    ("many ids are added by one and read by another", 0, &[&[2], &[2]]),
    ("a full table is followed by another, whose entries are recalled", 7, &[&[1], &[1]]),
];

/// How many orders were tried; a number that loom does not follow.
static TRIED: AtomicUsize = AtomicUsize::new(0);

fn main() {
    for (name, before, numbers) in MODELS {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.max_branches = 100_000;
        builder.check(move || {
            TRIED.fetch_add(1, Relaxed);
            visits(before, numbers);
        });
        println!("{name}: {} orders, no fault", TRIED.swap(0, Relaxed));
    }
}
