//! Runs a training: the leading thread chooses merges and keeps the counts of pairs; in rounds, all
//! threads work on their ranges of the words.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::parallel::{self, lock};
use crate::tokenizer::Tokenizer;
use crate::train::changes::{Changes, Neighbour, Sums, grow, ids_with, new_pair};
use crate::train::options::{Mismatch, PairVeto, TrainOptions, Trained, Tuning};
use crate::train::order::{Position, TieOrder};
use crate::train::pair_counts::{Merge, PairCounts, TokenPair};
use crate::train::postings::Postings;
use crate::train::queue::Queue;
use crate::train::words::{Seed, Words};
use crate::vocabulary::check_size;
use crate::{memory, with_order};

/// Each new floor is the previous one divided by this.
const FLOOR_DIVISOR: u64 = 4;

/// The largest number of threads. More are not faster, since the leader adds up the changes of all
/// threads.
const MAX_TRAINER_THREADS: usize = 8;

/// A round that visits fewer words runs on one thread, before another thread would have started.
const MIN_VISITS_SHARED: usize = 512;

/// Call `work` with a trainer for the rule for ties in the options. It starts with the tokens of
/// `base`, or without a base with the 256 bytes.
pub(super) fn with_trainer<T>(
    counts: &Counts,
    options: &TrainOptions,
    base: Option<&Tokenizer>,
    tuning: Tuning,
    work: &mut dyn FnMut(&mut dyn Merging) -> Result<T>,
) -> Result<T> {
    let seed = Seed::new(base)?;
    let stage = Stage::new(counts, options, base, tuning)?;
    parallel::team(stage.workers.len(), &|part| stage.work(part), |round| {
        let lengths = seed.token_lengths()?;
        let veto = options.veto.as_ref();
        let veto = veto.map(|veto| Ok(PairVeto::new(veto, seed.tokens()?))).transpose()?;
        let setup = Setup { options, veto, tuning, stage: &stage, round };
        with_order!(options.ties, seed.tokens()?, order => {
            work(&mut Trainer::new(setup, order, lengths)?)
        })
    })
}

/// A trainer with any rule for ties.
pub(super) trait Merging {
    /// Learn the number of merges in the options.
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained>;

    /// Make the merges of a list for as long as training would make them, too; returns the first
    /// that it would not make.
    fn verify(
        &mut self,
        merges: &[TokenPair],
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Mismatch>>;
}

/// The data that the threads share. In a round, each thread locks only its own worker; between
/// rounds, the leader locks all. So no thread ever waits for a lock.
struct Stage {
    workers: Vec<Mutex<Worker>>,
    plan: RwLock<Plan>,
}

/// The work of a round and its data.
struct Plan {
    task: Task,
    /// The number of ids.
    ids: u32,
    /// All pairs that are kept.
    pairs: PairCounts,
    batch: Vec<Merge>,
    /// For each merge of the batch, the neighbours in the new pairs that reach the floor, in the
    /// order of the indices of these pairs.
    new_neighbours: Vec<Vec<Neighbour>>,
}

impl Plan {
    /// Add a pair to the batch; returns the pair and its count.
    fn add_to_batch(&mut self, index: u32) -> (TokenPair, u64) {
        let (pair, count) = self.pairs.counted(index);
        self.pairs.remove(index);
        self.batch.push(Merge { pair, index, new: self.ids });
        self.ids += 1;
        (pair, count)
    }
}

/// The work of a round; see the methods of [`Worker`].
#[derive(Clone, Copy)]
enum Task {
    Count,
    Index,
    Merge,
    AddPostings,
}

impl Stage {
    fn new(
        counts: &Counts,
        options: &TrainOptions,
        base: Option<&Tokenizer>,
        tuning: Tuning,
    ) -> Result<Self> {
        let worth = 1 + counts.distinct_bytes() / tuning.bytes_per_thread;
        let threads = options.threads.clamp(1, worth.min(MAX_TRAINER_THREADS));
        let ids = base.map_or(256, |base| base.vocabulary().len());
        let vocab_size = ids.saturating_add(options.merges);
        check_size(vocab_size)?;
        let make = |range| move || Worker::new(counts, range, &mut Seed::new(base)?, vocab_size);
        let workers = parallel::run(counts.shares(threads).into_iter().map(make));
        let workers = workers.into_iter().collect::<Result<Vec<_>>>()?;
        // Every count of a pair is part of this total, so no sum of counts can overflow later.
        let total = workers.iter().try_fold(0u64, |sum, worker| {
            sum.checked_add(worker.words.total_pairs()?).ok_or(Error::CountOverflow)
        });
        total?;
        let plan = Plan {
            task: Task::Count,
            ids: u32::try_from(ids).expect("below 2^32 ids"),
            pairs: PairCounts::new()?,
            batch: Vec::new(),
            new_neighbours: Vec::new(),
        };
        Ok(Self { workers: workers.into_iter().map(Mutex::new).collect(), plan: RwLock::new(plan) })
    }

    /// The work of one thread in a round.
    fn work(&self, part: usize) {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        let mut worker = self.worker(part);
        let done = match plan.task {
            Task::Count => worker.count(plan.ids),
            Task::Index => worker.index(&plan.pairs, plan.ids),
            Task::Merge => worker.merge(&plan.batch, &plan.pairs),
            Task::AddPostings => worker.add_postings(&plan.new_neighbours),
        };
        worker.failed = done.err();
    }

    /// Return the first error of the last round, if any.
    fn check(&self) -> Result<()> {
        self.lock_workers().iter().find_map(|worker| worker.failed.clone()).map_or(Ok(()), Err)
    }

    fn worker(&self, member: usize) -> MutexGuard<'_, Worker> {
        lock(&self.workers[member])
    }

    fn lock_workers(&self) -> Vec<MutexGuard<'_, Worker>> {
        (0..self.workers.len()).map(|member| self.worker(member)).collect()
    }
}

/// The options and shared data of a trainer.
struct Setup<'a> {
    options: &'a TrainOptions,
    veto: Option<PairVeto<'a>>,
    tuning: Tuning,
    stage: &'a Stage,
    /// Runs a round on all threads.
    round: &'a dyn Fn(),
}

/// The leading thread's part of a training, with one rule for ties.
struct Trainer<'a, O: TieOrder> {
    setup: Setup<'a>,
    queue: Queue<O>,
    /// No pair in the queue had a smaller count when it was created.
    floor: u64,
    /// The length in bytes of each token.
    lengths: Vec<u32>,
    /// Adds up the changes of one merge.
    sums: Sums,
}

impl<O: TieOrder> Merging for Trainer<'_, O> {
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained> {
        let mut trained = Trained::default();
        while trained.merges.len() < self.setup.options.merges {
            let batch = self.next_batch(self.setup.options.merges - trained.merges.len())?;
            if batch.is_empty() {
                trained.exhausted = true;
                break;
            }
            self.make(&batch, &mut trained)?;
            on_progress(trained.merges.len())?;
        }
        Ok(trained)
    }

    fn verify(
        &mut self,
        merges: &[TokenPair],
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Mismatch>> {
        let mut prefix = Trained::default();
        while let Some(rest @ [next, ..]) = merges.get(prefix.merges.len()..) {
            let batch = self.next_batch(rest.len())?;
            let pairs: Vec<_> =
                batch.iter().map(|&index| self.plan(|p| p.pairs.counted(index))).collect();
            let agreed = pairs.iter().zip(rest).take_while(|(best, pair)| best.0 == **pair).count();
            if agreed == 0 {
                let workers = self.setup.stage.lock_workers();
                let count = workers.iter().map(|worker| worker.words.count_pair(*next)).sum();
                let (step, best) = (prefix.merges.len(), pairs.first().copied());
                return Ok(Some(Mismatch { step, pair: (*next, count), best }));
            }
            // The queue gave up the whole batch; the pairs that are not merged now go back.
            for (&index, &(pair, count)) in batch.iter().zip(&pairs).skip(agreed) {
                self.queue.push(pair, count, index)?;
            }
            self.make(&batch[..agreed], &mut prefix)?;
            on_progress(prefix.merges.len())?;
        }
        Ok(None)
    }
}

impl<'a, O: TieOrder> Trainer<'a, O> {
    fn new(setup: Setup<'a>, order: O, lengths: Vec<u32>) -> Result<Self> {
        let floor = setup.tuning.floor.max(setup.options.min_count.get());
        let (queue, sums) = (Queue::new(order, lengths.len())?, Sums::default());
        let mut trainer = Self { setup, queue, floor, lengths, sums };
        trainer.count_pairs()?;
        Ok(trainer)
    }

    fn round(&self, task: Task) -> Result<()> {
        self.plan(|plan| plan.task = task);
        (self.setup.round)();
        self.setup.stage.check()
    }

    /// Run a round; on this thread alone if there is too little work to share.
    fn small_round(&self, task: Task, visits: usize) -> Result<()> {
        if visits >= MIN_VISITS_SHARED {
            return self.round(task);
        }
        self.plan(|plan| plan.task = task);
        (0..self.setup.stage.workers.len()).for_each(|part| self.setup.stage.work(part));
        self.setup.stage.check()
    }

    /// Read or change the plan between rounds.
    fn plan<R>(&self, change: impl FnOnce(&mut Plan) -> R) -> R {
        change(&mut self.setup.stage.plan.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Count all pairs in the current words, and queue those that reach the floor.
    fn count_pairs(&mut self) -> Result<()> {
        self.round(Task::Count)?;
        let stage = self.setup.stage;
        let mut counts: Vec<(TokenPair, u64)> = Vec::new();
        for worker in &mut stage.lock_workers() {
            memory::extend(&mut counts, &std::mem::take(&mut worker.counted))?;
        }
        // Sorting brings together the counts of a pair from all workers, and gives pairs indices
        // that do not depend on the number of threads.
        counts.sort_unstable();
        let same = counts.chunk_by(|one, other| one.0 == other.0);
        let sums = same.map(|same| (same[0].0, same.iter().map(|(_, count)| count).sum()));
        let frequent = memory::collect(sums.filter(|&(_, count)| count >= self.floor))?;
        let mut pairs = PairCounts::new()?;
        pairs.insert(&frequent)?;
        self.enqueue_from(&pairs, 0)?;
        self.plan(|plan| plan.pairs = pairs);
        self.round(Task::Index)
    }

    /// Lower the floor and count all pairs again; returns false if the floor is already the lowest.
    fn lower_floor(&mut self) -> Result<bool> {
        let lowest = self.setup.options.min_count.get();
        if self.floor == lowest {
            return Ok(false);
        }
        self.floor = (self.floor / FLOOR_DIVISOR).max(lowest);
        self.count_pairs()?;
        Ok(true)
    }

    /// The indices of the next pairs to merge, at most `most`; none if all are too rare.
    fn next_batch(&mut self, most: usize) -> Result<Vec<u32>> {
        loop {
            let stage = self.setup.stage;
            let plan = stage.plan.read().unwrap_or_else(PoisonError::into_inner);
            let mut workers = stage.lock_workers();
            let position =
                |index| first_position(&mut workers, index, plan.pairs.pair(index), &self.lengths);
            let most = most.min(self.setup.tuning.batch);
            let batch = self.queue.next_batch(&plan.pairs, self.floor, most, position)?;
            // A lower floor needs rounds, in which the workers are locked by their threads.
            drop((plan, workers));
            if !batch.is_empty() || !self.lower_floor()? {
                return Ok(batch);
            }
        }
    }

    /// Merge the pairs of [`next_batch`](Self::next_batch), and apply the changes.
    fn make(&mut self, batch: &[u32], trained: &mut Trained) -> Result<()> {
        let stage = self.setup.stage;
        self.plan(|plan| plan.batch.clear());
        for &index in batch {
            let (pair, count) = self.plan(|plan| plan.add_to_batch(index));
            memory::push(&mut trained.merges, pair)?;
            memory::push(&mut trained.counts, count)?;
            let length = self.joined_length(pair);
            memory::push(&mut self.lengths, length)?;
            self.queue.created(pair)?;
            self.setup.veto.as_mut().map_or(Ok(()), |veto| veto.created(pair))?;
        }
        // The pairs are at count 0 before the merge, so the workers do not record changes of them.
        let visits = stage.lock_workers().iter().map(|worker| worker.visits(batch)).sum();
        self.small_round(Task::Merge, visits)?;
        let workers = stage.lock_workers();
        let replacements =
            |merge| workers.iter().map(|worker| worker.changes.replacements(merge)).sum::<u64>();
        memory::reserve(&mut trained.replacements, batch.len())?;
        trained.replacements.extend((0..batch.len()).map(replacements));
        drop(workers);
        self.apply_changes()?;
        self.small_round(Task::AddPostings, visits)
    }

    /// Apply the changes of the batch to the counts of pairs. New pairs below the floor can never
    /// reach it and are not kept.
    fn apply_changes(&mut self) -> Result<()> {
        let stage = self.setup.stage;
        let plan = &mut *stage.plan.write().unwrap_or_else(PoisonError::into_inner);
        let workers = stage.lock_workers();
        let first = plan.pairs.len();
        // The workers have looked up the older pairs already, each on its own thread.
        for worker in &workers {
            plan.pairs.lower(&worker.changes.removed_by_index);
        }
        plan.new_neighbours.clear();
        self.sums.grow(plan.ids)?;
        let mut new = Vec::new();
        for (number, merge) in plan.batch.iter().enumerate() {
            // A pair may be rare in each range of the words and frequent in all of them, so the sum
            // is compared with the floor.
            let mut created = workers.iter().flat_map(|worker| worker.changes.created(number));
            created.try_for_each(|&(neighbour, count)| self.sums.add(neighbour, count))?;
            let mut neighbours = memory::with_room(self.sums.len())?;
            memory::reserve(&mut new, self.sums.len())?;
            self.sums.drain(|neighbour, count| {
                if count >= self.floor {
                    new.push((new_pair(neighbour, merge.new), count));
                    neighbours.push(neighbour);
                }
            });
            plan.new_neighbours.push(neighbours);
        }
        plan.pairs.insert(&new)?;
        // Only now do pairs of this batch have indices. Those that later merges of it removed are
        // lowered before they are queued.
        for worker in &workers {
            let mut removed = Vec::new();
            plan.pairs.find_all(worker.changes.removed_in_batch(), &mut removed)?;
            plan.pairs.lower(&removed);
        }
        self.enqueue_from(&plan.pairs, first)
    }

    /// Queue the pairs from an index on, except those whose token would be too long or is vetoed.
    fn enqueue_from(&mut self, pairs: &PairCounts, first: u32) -> Result<()> {
        for index in first..pairs.len() {
            let pair = pairs.pair(index);
            let length = self.joined_length(pair) as usize;
            let is_short = self.setup.options.max_token_bytes.is_none_or(|most| length <= most);
            let veto = self.setup.veto.as_mut();
            if is_short && veto.map_or(Ok(true), |veto| veto.allows(pair))? {
                self.queue.push(pair, pairs.count(index), index)?;
            }
        }
        Ok(())
    }

    /// The length in bytes of the token of a pair.
    fn joined_length(&self, (left, right): TokenPair) -> u32 {
        self.lengths[left as usize] + self.lengths[right as usize]
    }
}

/// The first position of a pair in the words of all workers.
fn first_position(
    workers: &mut [MutexGuard<'_, Worker>],
    index: u32,
    pair: TokenPair,
    lengths: &[u32],
) -> Position {
    let mut positions =
        workers.iter_mut().map(|worker| worker.first_position(index, pair, lengths));
    // The ranges of the workers are in the order of the corpus, so the first worker that has the
    // pair decides, and the others are not searched.
    let first =
        positions.by_ref().enumerate().find_map(|(worker, position)| Some((worker, position?)));
    first.unwrap_or((usize::MAX, 0))
}

// ---------------------------------------------------------------------------- workers
//
// Merges pairs in a contiguous range of the words, on one thread.

/// A range of the words, and which of them contain each pair.
pub(super) struct Worker {
    pub(super) words: Words,
    postings: Postings,
    pub(super) changes: Changes,
    /// The result of [`Worker::count`].
    pub(super) counted: Vec<(TokenPair, u64)>,
    /// The buffer `numbers` of [`Postings::add_new`].
    numbers: Vec<Option<u32>>,
    /// The error of the last round.
    pub(super) failed: Option<Error>,
}

impl Worker {
    /// The pretokens of `range`, for ids below `vocab_size`.
    pub(super) fn new(
        counts: &Counts,
        range: Range<usize>,
        seed: &mut Seed,
        vocab_size: usize,
    ) -> Result<Self> {
        Ok(Self {
            words: Words::new(counts, range, seed, vocab_size)?,
            postings: Postings::default(),
            changes: Changes::default(),
            counted: Vec::new(),
            numbers: Vec::new(),
            failed: None,
        })
    }

    /// Count all pairs; all ids are below `ids`.
    pub(super) fn count(&mut self, ids: u32) -> Result<()> {
        self.counted = self.words.count_pairs(ids)?;
        Ok(())
    }

    /// Rebuild the postings of all pairs; all ids are below `ids`.
    pub(super) fn index(&mut self, pairs: &PairCounts, ids: u32) -> Result<()> {
        // Both are freed first, so that the old and the new postings are never in memory together.
        self.counted = Vec::new();
        self.postings = Postings::default();
        self.postings = Postings::of_words(&self.words, pairs, ids)?;
        Ok(())
    }

    /// The number of words that the merges of these pairs visit.
    pub(super) fn visits(&self, pairs: &[u32]) -> usize {
        pairs.iter().map(|&index| self.postings.of(index).len()).sum()
    }

    /// Make the merges of a batch in order.
    pub(super) fn merge(&mut self, batch: &[Merge], pairs: &PairCounts) -> Result<()> {
        grow(&mut self.numbers, ids_with(batch))?;
        self.changes.begin_batch(batch)?;
        for merge in batch {
            self.changes.begin_merge(*merge);
            let words = self.postings.of(merge.index);
            self.words.merge_all(words, merge.pair, &mut self.changes)?;
            self.postings.clear(merge.index);
            self.changes.end_merge()?;
        }
        self.changes.end_batch(pairs)
    }

    /// Add the postings of the new pairs of a batch. For each merge, `new_neighbours` has the
    /// neighbours in the new pairs that reach the floor, in the order of the indices of these
    /// pairs.
    pub(super) fn add_postings(&mut self, new_neighbours: &[Vec<Neighbour>]) -> Result<()> {
        for (merge, neighbours) in new_neighbours.iter().enumerate() {
            let words = self.changes.created_in(merge);
            self.postings.add_new(neighbours, words, &mut self.numbers)?;
        }
        Ok(())
    }

    /// The first position of a pair in these words; see [`Words::position`].
    pub(super) fn first_position(
        &mut self,
        index: u32,
        pair: TokenPair,
        lengths: &[u32],
    ) -> Option<u64> {
        self.postings.first_position(index, |word| self.words.position(word, pair, lengths))
    }
}
