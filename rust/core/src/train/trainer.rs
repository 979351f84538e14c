//! One training: the thread that leads chooses merges and keeps the counts of pairs, and in rounds
//! all threads work on their shares of the words.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::batch::Queue;
use super::changes::{Slot, Sums, born_pair};
use super::order::{BytesMax, FirstSeen, Place, SmallestPair, TieOrder};
use super::pairs::{Merge, Pair, Pairs};
use super::shard::Shard;
use super::start::Start;
use super::{Mismatch, Mode, Ties, TrainOptions, Trained};
use crate::count::Counts;
use crate::error::{Error, Result};
use crate::parallel::{self, lock};
use crate::tokenizer::Tokenizer;

/// Each further floor is so many times lower.
const FLOOR_STEP: u64 = 4;

/// Threads beyond so many do not make it faster, as one of them adds up what all report.
const MOST_THREADS: usize = 8;

/// A round that visits fewer words is over before another thread has noticed that it began.
const VISITS_A_ROUND: usize = 512;

/// Make the trainer of the rule for ties, which starts from the tokens of `base` or else from bytes,
/// and let it work.
pub(super) fn with_trainer<T>(
    counts: &Counts,
    options: &TrainOptions,
    base: Option<&Tokenizer>,
    mode: Mode,
    work: &mut dyn FnMut(&mut dyn Merging) -> Result<T>,
) -> Result<T> {
    let start = Start::new(base)?;
    let stage = Stage::new(counts, options, base, mode)?;
    parallel::team(stage.shards.len(), &|part| stage.work(part), |round| {
        let lengths = start.token_lengths()?;
        let job = Job { options, mode, stage: &stage, round };
        match options.ties {
            Ties::RustBpe => work(&mut Trainer::new(job, SmallestPair::by_bytes(), lengths)),
            Ties::Hf => work(&mut Trainer::new(job, SmallestPair::by_characters(), lengths)),
            Ties::FirstSeen => work(&mut Trainer::new(job, FirstSeen, lengths)),
            Ties::BytesMax => work(&mut Trainer::new(job, BytesMax::new(start.tokens()), lengths)),
        }
    })
}

/// A trainer under any rule for ties.
pub(super) trait Merging {
    /// Learn as many merges as the options ask for.
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained>;

    /// Follow a list of merges as long as each is the one to make.
    fn verify(
        &mut self,
        merges: &[Pair],
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Mismatch>>;
}

/// What the threads share. Each locks only its own shard in a round, and the leader locks them
/// between rounds, so nobody ever waits for a lock.
struct Stage {
    shards: Vec<Mutex<Shard>>,
    plan: RwLock<Plan>,
}

/// What the leader tells the threads.
struct Plan {
    step: Step,
    /// How many ids exist.
    ids: u32,
    /// All pairs that are kept.
    pairs: Pairs,
    batch: Vec<Merge>,
    /// For each merge of the batch, the new pairs that are kept, in the order of their indices.
    born: Vec<Vec<Slot>>,
}

impl Plan {
    /// Put a pair into the batch; returns it with its count.
    fn begin(&mut self, index: u32) -> (Pair, u64) {
        let (pair, count) = self.pairs.counted(index);
        self.pairs.remove(index);
        self.batch.push(Merge { pair, index, new: self.ids });
        self.ids += 1;
        (pair, count)
    }
}

/// The work of a round.
#[derive(Clone, Copy)]
enum Step {
    Count,
    Index,
    Merge,
    Place,
}

impl Stage {
    fn new(
        counts: &Counts,
        options: &TrainOptions,
        base: Option<&Tokenizer>,
        mode: Mode,
    ) -> Result<Self> {
        let worth = 1 + counts.distinct_bytes() / mode.bytes_a_thread;
        let threads = options.threads.clamp(1, worth.min(MOST_THREADS));
        let ids = base.map_or(256, |base| base.vocabulary().len());
        let make =
            |range| move || Shard::new(counts, range, &mut Start::new(base)?, ids + options.merges);
        let shards = parallel::run(counts.shares(threads).into_iter().map(make));
        let shards = shards.into_iter().collect::<Result<Vec<_>>>()?;
        let total = shards.iter().try_fold(0u64, |sum, shard| {
            sum.checked_add(shard.words.total_pairs()?).ok_or(Error::CountOverflow)
        });
        total?;
        let plan = Plan {
            step: Step::Count,
            ids: u32::try_from(ids).expect("below 2^32 ids"),
            pairs: Pairs::default(),
            batch: Vec::new(),
            born: Vec::new(),
        };
        Ok(Self { shards: shards.into_iter().map(Mutex::new).collect(), plan: RwLock::new(plan) })
    }

    /// What one thread does in a round.
    fn work(&self, part: usize) {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        let mut shard = self.shard(part);
        match plan.step {
            Step::Count => shard.count(plan.ids),
            Step::Index => shard.index(&plan.pairs, plan.ids),
            Step::Merge => shard.merge(&plan.batch, &plan.pairs),
            Step::Place => shard.place(&plan.born),
        }
    }

    fn shard(&self, member: usize) -> MutexGuard<'_, Shard> {
        lock(&self.shards[member])
    }

    fn lock_shards(&self) -> Vec<MutexGuard<'_, Shard>> {
        (0..self.shards.len()).map(|member| self.shard(member)).collect()
    }
}

/// What is to be done, and with whom.
struct Job<'a> {
    options: &'a TrainOptions,
    mode: Mode,
    stage: &'a Stage,
    /// Lets all threads work on the plan.
    round: &'a dyn Fn(),
}

/// The leader, under one rule for ties.
struct Trainer<'a, O: TieOrder> {
    job: Job<'a>,
    queue: Queue<O>,
    /// Pairs in the queue occur at least so often, or did when they were born.
    floor: u64,
    /// The length in bytes of each token.
    lengths: Vec<u32>,
    /// Adds up what the threads report of one merge.
    sums: Sums,
}

impl<O: TieOrder> Merging for Trainer<'_, O> {
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained> {
        let mut trained = Trained::default();
        while trained.merges.len() < self.job.options.merges {
            let batch = self.next_batch(self.job.options.merges - trained.merges.len());
            if batch.is_empty() {
                trained.exhausted = true;
                break;
            }
            self.make(&batch, &mut trained);
            on_progress(trained.merges.len())?;
        }
        Ok(trained)
    }

    fn verify(
        &mut self,
        merges: &[Pair],
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Mismatch>> {
        let mut made = Trained::default();
        while let Some(listed @ [next, ..]) = merges.get(made.merges.len()..) {
            let batch = self.next_batch(listed.len());
            let pairs: Vec<_> =
                batch.iter().map(|&index| self.plan(|p| p.pairs.counted(index))).collect();
            let agreed =
                pairs.iter().zip(listed).take_while(|(best, pair)| best.0 == **pair).count();
            if agreed == 0 {
                let shards = self.job.stage.lock_shards();
                let count = shards.iter().map(|shard| shard.words.count_pair(*next)).sum();
                let (step, best) = (made.merges.len(), pairs.first().copied());
                return Ok(Some(Mismatch { step, listed: (*next, count), best }));
            }
            for (&index, &(pair, count)) in batch.iter().zip(&pairs).skip(agreed) {
                self.queue.push(pair, count, index);
            }
            self.make(&batch[..agreed], &mut made);
            on_progress(made.merges.len())?;
        }
        Ok(None)
    }
}

impl<'a, O: TieOrder> Trainer<'a, O> {
    fn new(job: Job<'a>, order: O, lengths: Vec<u32>) -> Self {
        let vocab_size = lengths.len() + job.options.merges;
        let floor = job.mode.floor.max(job.options.min_count.get());
        let (queue, sums) = (Queue::new(order, vocab_size), Sums::new(vocab_size));
        let mut trainer = Self { job, queue, floor, lengths, sums };
        trainer.count_pairs();
        trainer
    }

    fn round(&self, step: Step) {
        self.plan(|plan| plan.step = step);
        (self.job.round)();
    }

    /// A round whose work may be too little to share; then this thread does it.
    fn small_round(&self, step: Step, visits: usize) {
        if visits >= VISITS_A_ROUND {
            return self.round(step);
        }
        self.plan(|plan| plan.step = step);
        (0..self.job.stage.shards.len()).for_each(|part| self.job.stage.work(part));
    }

    /// Read or change the plan, between rounds.
    fn plan<R>(&self, change: impl FnOnce(&mut Plan) -> R) -> R {
        change(&mut self.job.stage.plan.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Count all pairs as the words stand, and put those in the queue that reach the floor.
    fn count_pairs(&mut self) {
        self.round(Step::Count);
        let stage = self.job.stage;
        let mut counts: Vec<(Pair, u64)> = Vec::new();
        stage.lock_shards().iter_mut().for_each(|shard| counts.append(&mut shard.counted));
        counts.sort_unstable();
        let same = counts.chunk_by(|one, other| one.0 == other.0);
        let sums = same.map(|same| (same[0].0, same.iter().map(|(_, count)| count).sum()));
        let kept: Vec<(Pair, u64)> = sums.filter(|&(_, count)| count >= self.floor).collect();
        let mut pairs = Pairs::default();
        pairs.insert(&kept);
        self.enqueue_from(&pairs, 0);
        self.plan(|plan| plan.pairs = pairs);
        self.round(Step::Index);
    }

    /// Count the pairs anew that were too rare; false if no pair is.
    fn lower_floor(&mut self) -> bool {
        let lowest = self.job.options.min_count.get();
        if self.floor == lowest {
            return false;
        }
        self.floor = (self.floor / FLOOR_STEP).max(lowest);
        self.count_pairs();
        true
    }

    /// The indices of the pairs to be merged next, at most `most`; none if all are too rare.
    fn next_batch(&mut self, most: usize) -> Vec<u32> {
        loop {
            let stage = self.job.stage;
            let plan = stage.plan.read().unwrap_or_else(PoisonError::into_inner);
            let mut shards = stage.lock_shards();
            let place =
                |index| first_place(&mut shards, index, plan.pairs.pair(index), &self.lengths);
            let most = most.min(self.job.mode.batch);
            let batch = self.queue.next_batch(&plan.pairs, self.floor, most, place);
            drop((plan, shards));
            if !batch.is_empty() || !self.lower_floor() {
                return batch;
            }
        }
    }

    /// Merge pairs, which [`next_batch`](Self::next_batch) gave, and take over what that changes.
    fn make(&mut self, batch: &[u32], trained: &mut Trained) {
        let stage = self.job.stage;
        self.plan(|plan| plan.batch.clear());
        for &index in batch {
            let (pair, count) = self.plan(|plan| plan.begin(index));
            trained.merges.push(pair);
            trained.counts.push(count);
            self.lengths.push(self.joined_length(pair));
            self.queue.order.created(pair);
        }
        let visits = stage.lock_shards().iter().map(|shard| shard.visits(batch)).sum();
        self.small_round(Step::Merge, visits);
        let shards = stage.lock_shards();
        let made = |merge| shards.iter().map(|shard| shard.changes.made(merge)).sum::<u64>();
        trained.made.extend((0..batch.len()).map(made));
        drop(shards);
        self.take_over();
        self.small_round(Step::Place, visits);
    }

    /// Take over what the threads report of the batch. Pairs that are born below the floor can never
    /// reach it and are not kept.
    fn take_over(&mut self) {
        let stage = self.job.stage;
        let plan = &mut *stage.plan.write().unwrap_or_else(PoisonError::into_inner);
        let shards = stage.lock_shards();
        let first = plan.pairs.len();
        for shard in &shards {
            plan.pairs.lower(&shard.changes.known);
        }
        plan.born.clear();
        let mut born = Vec::new();
        for (number, merge) in plan.batch.iter().enumerate() {
            for &(slot, count) in shards.iter().flat_map(|shard| shard.changes.born(number)) {
                self.sums.add(slot, count);
            }
            let mut kept = Vec::new();
            self.sums.drain(|slot, count| {
                if count >= self.floor {
                    born.push((born_pair(slot, merge.new), count));
                    kept.push(slot);
                }
            });
            plan.born.push(kept);
        }
        plan.pairs.insert(&born);
        for shard in &shards {
            let mut known = Vec::new();
            plan.pairs.find_all(shard.changes.late(), &mut known);
            plan.pairs.lower(&known);
        }
        self.enqueue_from(&plan.pairs, first);
    }

    /// Put the pairs from an index on into the queue, except those that may not be merged.
    fn enqueue_from(&mut self, pairs: &Pairs, first: u32) {
        for index in first..pairs.len() {
            let length = self.joined_length(pairs.pair(index)) as usize;
            if self.job.options.max_token_bytes.is_none_or(|most| length <= most) {
                self.queue.push(pairs.pair(index), pairs.count(index), index);
            }
        }
    }

    /// The length in bytes of the token that a pair makes.
    fn joined_length(&self, (left, right): Pair) -> u32 {
        self.lengths[left as usize] + self.lengths[right as usize]
    }
}

/// Where a pair first stands that stands somewhere.
fn first_place(
    shards: &mut [MutexGuard<'_, Shard>],
    index: u32,
    pair: Pair,
    lengths: &[u32],
) -> Place {
    let mut places = shards.iter_mut().map(|shard| shard.first_place(index, pair, lengths));
    let first = places.by_ref().enumerate().find_map(|(shard, place)| Some((shard, place?)));
    first.unwrap_or((usize::MAX, 0))
}
