//! Parity-aware training: learns each merge for the group of texts that compresses worst.
//!
//! The algorithm is that of Foroutan et al. (arXiv 2508.04796). Before each merge a group is chosen:
//! for example, the one with the most tokens in a development set, which is the same text in all
//! languages. The most frequent pair of this group is merged in all groups.
//!
//! Each group has its own words, counts of pairs (`MergedText`) and queue, so choosing and merging
//! cost as much as in ordinary training of that group. Every group keeps all its pairs, since
//! another group may choose any of them; and merges are not made in batches, since each may change
//! the choice. For a merge that visits many words, the groups are divided among the threads.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::choice::Choice;
pub use crate::choice::{ChoiceWindow, Measure};
use bytepair::parallel::{self, lock};
use bytepair::train::Changes;
use bytepair::train::Seed;
use bytepair::train::TokenPair;
use bytepair::train::merged_text::MergedText;
use bytepair::train::order::TokenOrder;
use bytepair::train::queue::Queue;
use bytepair::train::{check_size, grow};
use bytepair::{Counts, Error, Pattern, Result, Tokenizer, TrainOptions, Trained, memory};

/// A merge that visits fewer words is made on one thread, before another thread would have started.
const MIN_VISITS_SHARED: usize = 512;

/// The largest number of threads; more are rarely busy.
const MAX_PARITY_THREADS: usize = 16;

/// How the group of each merge is chosen.
///
/// ```
/// use bytepair_lab::parity::{Measure, Parity};
/// let parity = Parity { measure: Measure::Tokens, window: None, global_merges: 0 };
/// assert_eq!(parity, Parity::default());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Parity {
    /// The measure of which group compresses worst.
    pub measure: Measure,
    /// A limit on the merges for one group.
    pub window: Option<ChoiceWindow>,
    /// The number of first merges that are chosen by the counts of all groups together.
    pub global_merges: usize,
}

impl Default for Parity {
    fn default() -> Self {
        Self { measure: Measure::Tokens, window: None, global_merges: 0 }
    }
}

/// The texts of a parity-aware training.
#[derive(Debug, Clone, Copy)]
pub struct ParityTexts<'a> {
    /// The groups that are trained on.
    pub groups: &'a [&'a Counts],
    /// Texts of the same groups, on which the groups are compared; if empty, they are compared on
    /// `groups`.
    pub development: &'a [&'a Counts],
}

/// Learn merges from groups of texts, each for the group that compresses worst. The merges that
/// create the `initial` tokens come first, then the global merges (`parity.global_merges`, not
/// counting the former).
///
/// If several groups compress equally, the first is chosen. Returns the merges, and the index of
/// the group for each merge after the initial and the global ones.
///
/// Fails as [`grow::train_with`] does, and if there are no groups, or if the number of development
/// sets or ratios differs from the number of groups.
///
/// ```
/// use bytepair::{Counts, Pattern, TrainOptions};
/// use bytepair_lab::parity::{Parity, ParityTexts, train_groups};
/// let groups = [Counts::new([(&b"aabb"[..], 9)]), Counts::new([(&b"cd"[..], 1)])];
/// let development = [Counts::new([(&b"ab"[..], 1)]), Counts::new([(&b"cd"[..], 2)])];
/// let (groups, development) = (groups.each_ref(), development.each_ref());
/// let texts = ParityTexts { groups: &groups, development: &development };
/// let (pattern, options) = (Pattern::new("gpt2")?, TrainOptions { merges: 2, ..Default::default() });
/// let (trained, chosen) =
///     train_groups(&[], texts, &Parity::default(), &pattern, &options, &mut |_| Ok(()))?;
/// assert_eq!(trained.merges, [(99, 100), (97, 97)]); // cd first: its development set is longer
/// assert_eq!(chosen, [1, 0]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn train_groups(
    initial: &[String],
    texts: ParityTexts<'_>,
    parity: &Parity,
    pattern: &Pattern,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(Trained, Vec<usize>)> {
    let ParityTexts { groups, development } = texts;
    if groups.is_empty() || !(development.is_empty() || development.len() == groups.len()) {
        let (sets, groups) = (development.len(), groups.len());
        let reason = format!("{groups} groups with {sets} development sets; each group needs one");
        return Err(Error::Vocabulary { reason: reason.into() });
    }
    let first = first_merges(initial, groups, parity, pattern, options, on_progress)?;
    let initial = first.merges.len();
    if first.exhausted || initial >= options.merges {
        return Ok((first, Vec::new()));
    }
    let base = if initial > 0 { Some(first.to_tokenizer(&[], pattern.clone())?) } else { None };
    let rest = TrainOptions { merges: options.merges - initial, ..options.clone() };
    let mut report = |done| on_progress(initial + done);
    let run = GroupTraining { texts, parity, options: &rest, base: base.as_ref() };
    let (learnt, chosen) = run.run(&mut report)?;
    // With initial tokens, the counts of the first merges are unknown, so all are left out.
    let has_counts = first.counts.len() == initial;
    let all =
        |one: &[u64], other: &[u64]| if has_counts { [one, other].concat() } else { Vec::new() };
    let trained = Trained {
        counts: all(&first.counts, &learnt.counts),
        replacements: all(&first.replacements, &learnt.replacements),
        merges: [first.merges, learnt.merges].concat(),
        exhausted: learnt.exhausted,
    };
    Ok((trained, chosen))
}

/// The merges of the initial tokens, then the global merges.
fn first_merges(
    initial: &[String],
    groups: &[&Counts],
    parity: &Parity,
    pattern: &Pattern,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    let mut merges = parity.global_merges;
    if !initial.is_empty() {
        let of_initial = grow::train_initial(initial, pattern, options)?.merges.len();
        merges = merges.saturating_add(of_initial);
    }
    let merges = merges.min(options.merges);
    if merges == 0 {
        return Ok(Trained::default());
    }
    let options = TrainOptions { merges, ..options.clone() };
    grow::train_with(initial, &Counts::sum(groups.iter().copied())?, pattern, &options, on_progress)
}

/// The texts and options of a parity-aware training.
struct GroupTraining<'a> {
    texts: ParityTexts<'a>,
    parity: &'a Parity,
    options: &'a TrainOptions,
    base: Option<&'a Tokenizer>,
}

impl GroupTraining<'_> {
    fn run(
        &self,
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Trained, Vec<usize>)> {
        let ids = self.base.map_or(256, |base| base.vocabulary().len());
        let vocab_size = ids.saturating_add(self.options.merges);
        check_size(vocab_size)?;
        let ParityTexts { groups, development } = self.texts;
        let all = [groups, development].concat();
        let stage = GroupStage::new(&all, self.base, vocab_size, self.options.threads)?;
        parallel::team(stage.shares.len(), &|part| stage.work(part), |round| {
            let queues = groups.iter().map(|_| Queue::default()).collect();
            let order = TokenOrder::new(self.options.ties, Seed::new(self.base)?.tokens()?);
            let mut leader = Leader { run: self, stage: &stage, round, queues, order };
            leader.run(on_progress)
        })
    }
}

/// The data that the threads share. In a round, each thread locks only its own texts; between
/// rounds, the leader locks all.
struct GroupStage {
    shares: Vec<Mutex<Share>>,
    /// The share of each text, and the index of the text there.
    locations: Vec<(usize, usize)>,
    /// The id of the token that the current merge creates.
    new: RwLock<u32>,
}

/// The texts of one thread.
struct Share {
    texts: Vec<GroupText>,
    changes: Changes,
    failed: Option<Error>,
}

struct GroupText {
    text: MergedText,
    /// The index of the pair that is merged next, if the text has it.
    next: Option<u32>,
    /// The number of occurrences that the last merge replaced.
    replacements: u64,
}

impl GroupStage {
    /// Divide the texts among the threads: in order of falling size, each text goes to the thread
    /// with the smallest share so far.
    fn new(
        all: &[&Counts],
        base: Option<&Tokenizer>,
        vocab_size: usize,
        threads: usize,
    ) -> Result<Self> {
        let mut by_size: Vec<usize> = (0..all.len()).collect();
        by_size.sort_by_key(|&text| std::cmp::Reverse(all[text].distinct_bytes()));
        let mut sizes = vec![0; threads.clamp(1, all.len().min(MAX_PARITY_THREADS))];
        let (mut dealt, mut locations) = (vec![Vec::new(); sizes.len()], vec![(0, 0); all.len()]);
        for text in by_size {
            let smallest =
                (0..sizes.len()).min_by_key(|&share| sizes[share]).expect("at least one");
            sizes[smallest] += all[text].distinct_bytes();
            locations[text] = (smallest, dealt[smallest].len());
            dealt[smallest].push(all[text]);
        }
        let make = dealt.iter().map(|counts| move || Share::new(counts, base, vocab_size));
        let shares = parallel::run(make);
        let shares = shares.into_iter().map(|share| share.map(Mutex::new));
        Ok(Self { shares: shares.collect::<Result<_>>()?, locations, new: RwLock::new(0) })
    }

    /// The work of one thread in a round: merge the next pair in its texts.
    fn work(&self, part: usize) {
        let new = *self.new.read().unwrap_or_else(PoisonError::into_inner);
        let share = &mut *lock(&self.shares[part]);
        share.failed = share.merge(new).err();
    }

    /// Call `action` with each text, in order, and collect the results.
    fn each<R>(&self, mut action: impl FnMut(usize, &mut GroupText) -> R) -> Vec<R> {
        let mut shares: Vec<MutexGuard<'_, Share>> = self.shares.iter().map(lock).collect();
        let locations = self.locations.iter().enumerate();
        locations.map(|(text, &(share, at))| action(text, &mut shares[share].texts[at])).collect()
    }

    /// Return the first error of the last round, if any.
    fn check(&self) -> Result<()> {
        self.shares.iter().find_map(|share| lock(share).failed.clone()).map_or(Ok(()), Err)
    }
}

impl Share {
    fn new(all: &[&Counts], base: Option<&Tokenizer>, vocab_size: usize) -> Result<Self> {
        let texts = all.iter().map(|counts| {
            let text = MergedText::new(counts, base, vocab_size)?;
            Ok(GroupText { text, next: None, replacements: 0 })
        });
        let texts = texts.collect::<Result<_>>()?;
        Ok(Self { texts, changes: Changes::default(), failed: None })
    }

    fn merge(&mut self, new: u32) -> Result<()> {
        for GroupText { text, next, replacements } in &mut self.texts {
            *replacements = match next.take() {
                Some(index) => text.merge(index, new, &mut self.changes)?,
                None => 0,
            };
        }
        Ok(())
    }
}

/// The leading thread, which chooses the groups and pairs.
struct Leader<'a> {
    run: &'a GroupTraining<'a>,
    stage: &'a GroupStage,
    /// Runs a round on all threads.
    round: &'a dyn Fn(),
    /// The pairs of each group.
    queues: Vec<Queue>,
    order: TokenOrder,
}

impl Leader<'_> {
    fn run(
        &mut self,
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Trained, Vec<usize>)> {
        let (mut trained, mut chosen) = (Trained::default(), Vec::new());
        let parity = self.run.parity;
        #[expect(clippy::cast_precision_loss, reason = "ratios of counts are compared")]
        let bytes = self.run.texts.groups.iter().map(|group| group.text_bytes() as f64);
        let mut choice = Choice::new(parity.measure.clone(), parity.window, bytes.collect())?;
        self.enqueue(&vec![0; self.queues.len()])?;
        while trained.merges.len() < self.run.options.merges {
            let Some(group) = choice.next(&self.tokens()) else {
                trained.exhausted = true;
                break;
            };
            let Some((pair, count)) = self.best(group)? else {
                choice.close(group);
                continue;
            };
            memory::push(&mut trained.merges, pair)?;
            memory::push(&mut trained.counts, count)?;
            memory::push(&mut chosen, group)?;
            let replacements = self.make(pair)?;
            memory::push(&mut trained.replacements, replacements)?;
            on_progress(trained.merges.len())?;
        }
        Ok((trained, chosen))
    }

    /// The numbers of tokens by which the groups are compared: those of the development sets,
    /// unless there are none or the measure uses ratios.
    fn tokens(&self) -> Vec<u64> {
        let groups = self.queues.len();
        let all = self.stage.each(|_, text| text.text.tokens());
        match self.run.parity.measure {
            Measure::Tokens if all.len() > groups => all[groups..].to_vec(),
            Measure::Tokens | Measure::Rates { .. } => all[..groups].to_vec(),
        }
    }

    /// The pair of a group that is merged next, with its count in the group.
    fn best(&mut self, group: usize) -> Result<Option<(TokenPair, u64)>> {
        let (share, at) = self.stage.locations[group];
        let text = &mut lock(&self.stage.shares[share]).texts[at].text;
        let floor = self.run.options.min_count.get();
        let index = text.next_pair(&mut self.queues[group], &self.order, floor)?;
        Ok(index.map(|index| text.counted(index)))
    }

    /// Merge a pair in all texts. Returns how many occurrences were replaced in the groups.
    fn make(&mut self, pair: TokenPair) -> Result<u64> {
        *self.stage.new.write().unwrap_or_else(PoisonError::into_inner) = self.order.ids();
        self.order.created(pair)?;
        let mut visits = 0;
        // New pairs get the indices from here on. A text without the pair has nothing to merge.
        let before = self.stage.each(|_, GroupText { text, next, .. }| {
            *next = text.find(pair);
            visits += next.map_or(0, |index| text.visits(index));
            text.pair_count()
        });
        if visits < MIN_VISITS_SHARED {
            (0..self.stage.shares.len()).for_each(|part| self.stage.work(part));
        } else {
            (self.round)();
        }
        self.stage.check()?;
        self.enqueue(&before)?;
        let replacements = self.stage.each(|_, text| text.replacements);
        Ok(replacements[..self.queues.len()].iter().sum())
    }

    /// Queue the pairs of each group from an index on, except those whose token would be too long.
    fn enqueue(&mut self, first: &[u32]) -> Result<()> {
        let Self { queues, order, .. } = self;
        let longest = self.run.options.max_token_bytes;
        let queued = self.stage.each(|group, GroupText { text, .. }| {
            let Some(queue) = queues.get_mut(group) else { return Ok(()) };
            for index in first[group]..text.pair_count() {
                let (pair, count) = text.counted(index);
                if longest.is_none_or(|most| order.joined_length(pair) <= most) {
                    queue.push(order, pair, count, index)?;
                }
            }
            Ok(())
        });
        queued.into_iter().collect()
    }
}
