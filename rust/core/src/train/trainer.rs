//! Runs a training: the leading thread chooses merges and keeps the counts of pairs; in rounds, all
//! threads work on their ranges of the words.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, lock};
use crate::tokenizer::Tokenizer;
use crate::train::changes::{Balances, Changes, Neighbour, new_pair};
use crate::train::options::{TrainOptions, Trained, Tuning, Veto};
use crate::train::order::{Position, TokenOrder};
use crate::train::pair_counts::{Merge, PairCounts, TokenPair};
use crate::train::postings::Postings;
use crate::train::queue::Queue;
use crate::train::words::{Seed, Words, words};
use crate::vocabulary::check_size;

/// Each new floor is the previous one divided by this.
const FLOOR_DIVISOR: u64 = 4;

/// The largest number of threads. More are not faster, since the leader adds up the changes of all
/// threads.
const MAX_TRAINER_THREADS: usize = 8;

/// A round that visits fewer words runs on one thread, before another thread would have started.
const MIN_VISITS_SHARED: usize = 512;

/// Learn merges on top of those of `base`, or without a base of the 256 bytes.
pub(super) fn learn(
    counts: &Counts,
    options: &TrainOptions,
    base: Option<&Tokenizer>,
    tuning: Tuning,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    let seed = Seed::new(base)?;
    let stage = Stage::new(counts, options, base, tuning)?;
    parallel::team(stage.workers.len(), &|part| stage.work(part), |round| {
        let floor = tuning.floor.max(options.min_count.get());
        let order = TokenOrder::new(options.ties, seed.tokens()?);
        let (stage, queue, sums) = (&stage, Queue::default(), Balances::default());
        Trainer { options, tuning, stage, round, order, queue, floor, sums }.run(on_progress)
    })
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

/// The work of a round in the words of one thread.
type Task = fn(&mut Worker, &Plan) -> Result<()>;

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
        let make = |range| {
            move || {
                let words = words(counts, range, &mut Seed::new(base)?, vocab_size)?;
                let (postings, changes) = (Postings::default(), Changes::default());
                Ok(Worker { words, postings, changes, counted: None, failed: None })
            }
        };
        let workers = parallel::run(counts.shares(threads).into_iter().map(make));
        let workers = workers.into_iter().collect::<Result<Vec<_>>>()?;
        // Every count of a pair is part of this total, so no sum of counts can overflow later.
        let total = workers.iter().try_fold(0u64, |sum, worker| {
            sum.checked_add(worker.words.total_pairs()?).ok_or(Error::CountOverflow)
        });
        total?;
        let plan = Plan {
            task: |_, _| Ok(()),
            ids: u32::try_from(ids).expect("below 2^32 ids"),
            pairs: PairCounts::new()?,
            batch: Vec::new(),
            new_neighbours: Vec::new(),
        };
        Ok(Self { workers: workers.into_iter().map(Mutex::new).collect(), plan: RwLock::new(plan) })
    }

    /// The plan, which the leader changes between rounds.
    fn plan(&self) -> RwLockWriteGuard<'_, Plan> {
        self.plan.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of one thread in a round.
    fn work(&self, part: usize) {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        let mut worker = lock(&self.workers[part]);
        worker.failed = (plan.task)(&mut worker, &plan).err();
    }

    /// Return the first error of the last round, if any.
    fn check(&self) -> Result<()> {
        self.lock_workers().iter().find_map(|worker| worker.failed.clone()).map_or(Ok(()), Err)
    }

    fn lock_workers(&self) -> Vec<MutexGuard<'_, Worker>> {
        self.workers.iter().map(lock).collect()
    }
}

/// The leading thread's part of a training, with one rule for ties.
struct Trainer<'a> {
    options: &'a TrainOptions,
    tuning: Tuning,
    stage: &'a Stage,
    /// Runs a round on all threads.
    round: &'a dyn Fn(),
    order: TokenOrder,
    queue: Queue,
    /// No pair in the queue had a smaller count when it was created.
    floor: u64,
    /// Adds up the changes of one merge.
    sums: Balances,
}

impl Trainer<'_> {
    /// Learn the number of merges in the options.
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained> {
        self.count_pairs()?;
        let mut trained = Trained::default();
        while trained.merges.len() < self.options.merges {
            let batch = self.next_batch(self.options.merges - trained.merges.len())?;
            if batch.is_empty() {
                trained.exhausted = true;
                break;
            }
            self.make(&batch, &mut trained)?;
            on_progress(trained.merges.len())?;
        }
        Ok(trained)
    }

    /// Run a round, which visits a number of words; on this thread alone if they are too few to share.
    fn run_round(&self, task: Task, visits: usize) -> Result<()> {
        self.stage.plan().task = task;
        if visits >= MIN_VISITS_SHARED {
            (self.round)();
        } else {
            (0..self.stage.workers.len()).for_each(|part| self.stage.work(part));
        }
        self.stage.check()
    }

    /// Count all pairs in the current words, and queue those that reach the floor.
    fn count_pairs(&mut self) -> Result<()> {
        self.run_round(Worker::count, usize::MAX)?;
        let stage = self.stage;
        let mut workers = stage.lock_workers();
        let counted = workers.iter_mut().filter_map(|worker| worker.counted.take());
        // Pairs in the order of their ids have indices that do not depend on the number of threads.
        let pairs = PairCounts::sum(counted)?.frequent(self.floor)?;
        drop(workers);
        self.enqueue_from(&pairs, 0)?;
        stage.plan().pairs = pairs;
        self.run_round(Worker::index, usize::MAX)
    }

    /// Lower the floor and count all pairs again; returns false if the floor is already the lowest.
    fn lower_floor(&mut self) -> Result<bool> {
        let lowest = self.options.min_count.get();
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
            let stage = self.stage;
            let plan = stage.plan();
            let mut workers = stage.lock_workers();
            let position =
                |index| first_position(&mut workers, (index, plan.pairs.pair(index)), &self.order);
            let most = most.min(self.tuning.batch);
            let batch =
                self.queue.next_batch(&self.order, &plan.pairs, self.floor, most, position)?;
            // A lower floor needs rounds, in which the workers are locked by their threads.
            drop((plan, workers));
            if !batch.is_empty() || !self.lower_floor()? {
                return Ok(batch);
            }
        }
    }

    /// Merge the pairs of [`next_batch`](Self::next_batch), and apply the changes.
    fn make(&mut self, batch: &[u32], trained: &mut Trained) -> Result<()> {
        let stage = self.stage;
        let mut plan = stage.plan();
        plan.batch.clear();
        for &index in batch {
            let ((pair, count), new) = (plan.pairs.counted(index), plan.ids);
            plan.pairs.remove(index);
            plan.batch.push(Merge { pair, index, new });
            plan.ids += 1;
            memory::push(&mut trained.merges, pair)?;
            memory::push(&mut trained.counts, count)?;
            self.order.created(pair)?;
        }
        drop(plan);
        // The pairs are at count 0 before the merge, so the workers do not record changes of them.
        let visits = |worker: &MutexGuard<'_, Worker>| {
            batch.iter().map(|&index| worker.postings.of(index).len()).sum::<usize>()
        };
        let visits = stage.lock_workers().iter().map(visits).sum();
        self.run_round(Worker::merge, visits)?;
        let workers = stage.lock_workers();
        let replacements =
            |merge| workers.iter().map(|worker| worker.changes.replacements[merge]).sum::<u64>();
        memory::reserve(&mut trained.replacements, batch.len())?;
        trained.replacements.extend((0..batch.len()).map(replacements));
        drop(workers);
        self.apply_changes()?;
        self.run_round(Worker::add_postings, visits)
    }

    /// Apply the changes of the batch to the counts of pairs. New pairs below the floor can never
    /// reach it and are not kept.
    fn apply_changes(&mut self) -> Result<()> {
        let stage = self.stage;
        let plan = &mut *stage.plan();
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
            created.try_for_each(|&(neighbour, count)| self.sums.change(neighbour, 0, count))?;
            let mut neighbours = memory::with_capacity(self.sums.len())?;
            memory::reserve(&mut new, self.sums.len())?;
            let frequent = self.sums.drain().filter(|(_, sum)| sum.created >= self.floor);
            for (neighbour, sum) in frequent {
                new.push((new_pair(neighbour, merge.new), sum.created));
                neighbours.push(neighbour);
            }
            plan.new_neighbours.push(neighbours);
        }
        plan.pairs.insert(&new)?;
        // The pairs that the batch created have indices after `insert`. Those that later merges of the
        // batch removed are lowered before they are queued.
        for worker in &workers {
            let mut removed = Vec::new();
            plan.pairs.find_all(&worker.changes.removed_in_batch, &mut removed)?;
            plan.pairs.lower(&removed);
        }
        self.enqueue_from(&plan.pairs, first)
    }

    /// Queue the pairs from an index on, except those whose token would be too long or is vetoed.
    fn enqueue_from(&mut self, pairs: &PairCounts, first: u32) -> Result<()> {
        for index in first..pairs.len() {
            let (pair, count) = pairs.counted(index);
            let fits = |most| self.order.joined_length(pair) <= most;
            let is_short = self.options.max_token_bytes.is_none_or(fits);
            let allows = |veto: &Veto| Ok(veto.allows(&self.order.joined(pair)?));
            if is_short && self.options.veto.as_ref().map_or(Ok(true), allows)? {
                self.queue.push(&self.order, pair, count, index)?;
            }
        }
        Ok(())
    }
}

/// The first position of a pair, given by its index too, in the words of all workers.
fn first_position(
    workers: &mut [MutexGuard<'_, Worker>],
    pair: (u32, TokenPair),
    order: &TokenOrder,
) -> Position {
    let mut positions = workers.iter_mut().map(|worker| {
        let Worker { words, postings, .. } = &mut **worker;
        words.first_position(postings, pair, order)
    });
    // The ranges of the workers are in the order of the corpus, so the first worker that has the
    // pair decides, and the others are not searched.
    let first =
        (0..).zip(positions.by_ref()).find_map(|(worker, position)| Some((worker, position?)));
    first.unwrap_or((u32::MAX, 0))
}

// ---------------------------------------------------------------------------- workers

/// A contiguous range of the words, in which one thread merges pairs, and which words contain each pair.
struct Worker {
    words: Box<dyn Words>,
    postings: Postings,
    changes: Changes,
    /// The count of each pair in the words.
    counted: Option<PairCounts>,
    /// The error of the last round.
    failed: Option<Error>,
}

impl Worker {
    /// Count the pairs.
    fn count(&mut self, plan: &Plan) -> Result<()> {
        // Freed first, so that the old postings and the counts are never in memory together.
        self.postings = Postings::default();
        self.counted = Some(self.words.count_pairs(plan.ids)?);
        Ok(())
    }

    /// List the words of all pairs.
    fn index(&mut self, plan: &Plan) -> Result<()> {
        self.postings = self.words.postings(&plan.pairs, plan.ids)?;
        Ok(())
    }

    /// Make the merges of the batch.
    fn merge(&mut self, plan: &Plan) -> Result<()> {
        self.words.merge_batch(&mut self.postings, &plan.batch, &plan.pairs, &mut self.changes)
    }

    /// Add the postings of the new pairs of the batch.
    fn add_postings(&mut self, plan: &Plan) -> Result<()> {
        let mut new = plan.new_neighbours.iter().enumerate();
        new.try_for_each(|(merge, of_merge)| self.postings.add_new(of_merge, merge, &self.changes))
    }
}
