//! What threads learn from each other.
//!
//! Each thread has a cache of its own, so that none waits for another; but what a text says for the first
//! time, each of them would merge for itself. So a thread that has learned a few pretokens tells them, and
//! hears what others have told meanwhile. There is room for the latest few thousand; who comes too late for
//! some merges them.

use std::sync::Mutex;

use super::slot::Slot;

/// A thread that has learned so many tells them.
const FEW: usize = 256;

/// So many of the latest can be heard: 512 KiB.
const MOST: usize = 1 << 14;

/// What the threads of one encoder have told.
#[derive(Debug, Default)]
pub(super) struct Lessons(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// The latest, each at the rest of the division of its number by [`MOST`].
    slots: Vec<Slot>,
    /// How many there were ever.
    count: usize,
    /// How many threads take part.
    threads: usize,
}

/// What one thread has learned and heard.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Not yet told.
    learned: Vec<Slot>,
    /// Heard last.
    heard: Vec<Slot>,
    /// How many had been told then, if this thread takes part.
    known: Option<usize>,
}

impl Lessons {
    /// Tell what is noted as learned, if that is enough; what others have told since the last time.
    #[inline]
    pub(super) fn exchange<'a>(&self, notes: &'a mut Notes) -> &'a [Slot] {
        if notes.learned.len() < FEW {
            return &[];
        }
        self.meet(notes);
        &notes.heard
    }

    #[cold]
    fn meet(&self, notes: &mut Notes) {
        notes.heard.clear();
        // Who is there just now may be gone for ever, in a process that was forked.
        let Ok(mut told) = self.0.try_lock() else {
            notes.learned.truncate(MOST - FEW);
            return;
        };
        told.threads += usize::from(notes.known.is_none());
        told.hear(notes.known.unwrap_or(0), &mut notes.heard);
        // Nobody tells himself.
        if told.threads > 1 {
            told.tell(&notes.learned);
        }
        notes.learned.clear();
        notes.known = Some(told.count);
    }
}

impl Told {
    /// Append what was told since there were so many, as far as it is here.
    fn hear(&self, known: usize, heard: &mut Vec<Slot>) {
        let first = known.max(self.count.saturating_sub(MOST));
        heard.extend((first..self.count).map(|number| self.slots[number % MOST]));
    }

    fn tell(&mut self, learned: &[Slot]) {
        for &slot in learned {
            match self.slots.get_mut(self.count % MOST) {
                Some(oldest) => *oldest = slot,
                None => self.slots.push(slot),
            }
            self.count += 1;
        }
    }
}

impl Notes {
    /// Note what was learned.
    #[inline]
    pub(super) fn learn(&mut self, slot: Slot) {
        self.learned.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn learn(notes: &mut Notes, numbers: std::ops::Range<u64>) {
        numbers.for_each(|number| notes.learn([number; 4]));
    }

    #[test]
    fn nobody_waits_and_little_is_noted_meanwhile() {
        let (lessons, mut notes) = (Lessons::default(), Notes::default());
        let locked = lessons.0.lock().unwrap();
        for _ in 0..100 {
            learn(&mut notes, 0..FEW as u64);
            assert!(lessons.exchange(&mut notes).is_empty());
            assert!(notes.learned.len() < MOST);
        }
        drop(locked);
        assert!(lessons.exchange(&mut notes).is_empty() && notes.learned.is_empty());
    }

    #[test]
    fn one_thread_keeps_nothing() {
        let (lessons, mut notes) = (Lessons::default(), Notes::default());
        for _ in 0..3 {
            learn(&mut notes, 0..FEW as u64);
            assert!(lessons.exchange(&mut notes).is_empty());
        }
        assert!(lessons.0.lock().unwrap().slots.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        /// A thread hears what the others told since it was here, once and in order, but not what came
        /// before the latest few.
        #[test]
        fn threads_hear_what_others_told(
            turns in prop::collection::vec((0usize..3, 0u64..4000), 1..60),
        ) {
            let (lessons, mut threads) = (Lessons::default(), [(); 3].map(|()| Notes::default()));
            for notes in &mut threads {
                learn(notes, 0..FEW as u64);
                lessons.exchange(notes);
            }
            // The first thread was alone at first and told nothing.
            let mut told: Vec<u64> = (0..FEW as u64).chain(0..FEW as u64).collect();
            let mut known = [0, FEW, 2 * FEW];
            for (thread, more) in turns {
                let new = told.len() as u64..(told.len() + FEW) as u64 + more;
                learn(&mut threads[thread], new.clone());
                let heard = lessons.exchange(&mut threads[thread]).iter().map(|slot| slot[0]);
                let first = known[thread].max(told.len().saturating_sub(MOST));
                prop_assert!(heard.eq(told[first..].iter().copied()));
                told.extend(new);
                known[thread] = told.len();
            }
        }
    }
}
