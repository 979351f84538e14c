//! Texts to counts, and counts to a tokenizer.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard};

use bytepair::train::grow::merges_for;
use bytepair::{Counter, Counts, Pattern, Ties, TrainOptions, train};

use crate::arguments::{self, TextSlice, not_null};
use crate::failure::{CallFailure, Code};
use crate::load::put_tokenizer;
use crate::result::{ErrorReport, caught, guard, put};
use crate::tokenizer::Handle;

/// Counts the pretokens of texts. Calls from several threads take turns.
#[derive(Debug)]
pub struct CounterHandle {
    pattern: Pattern,
    /// `None` once the counts were taken.
    counter: Mutex<Option<Counter>>,
}

/// Distinct pretokens and how often each occurs. Any number of threads may use them at once.
#[derive(Debug)]
pub struct CountsHandle {
    pattern: Pattern,
    counts: Counts,
}

/// Ties: the smallest pair of ids is merged first, as in rustbpe.
pub const BYTEPAIR_TIES_RUSTBPE: u32 = 0;
/// Ties: the smallest pair of ids with the bytes in the order of GPT-2's characters, as in Hugging
/// Face tokenizers.
pub const BYTEPAIR_TIES_HF: u32 = 1;
/// Ties: the pair that occurs first in the texts, as in minbpe.
pub const BYTEPAIR_TIES_FIRST_SEEN: u32 = 2;
/// Ties: the greatest pair of byte strings, as in Stanford's CS336.
pub const BYTEPAIR_TIES_BYTES_MAX: u32 = 3;
/// Ties: the greatest pair of strings of GPT-2's characters, as in parity-aware trainers.
pub const BYTEPAIR_TIES_CHARACTERS_MAX: u32 = 4;

/// The options of a training. Fields that are zero have their usual values.
#[repr(C)]
#[derive(Debug)]
pub struct TrainingOptions {
    /// The number of ids: the 256 bytes, one for each merge, and the special tokens.
    pub vocab_size: usize,
    /// The names of the special tokens, which have the last ids, in this order.
    pub special_names: *const TextSlice,
    /// The number of special tokens.
    pub special_count: usize,
    /// Which of several pairs with the same count is merged first: BYTEPAIR_TIES_RUSTBPE or another.
    pub ties: u32,
    /// Pairs with a smaller count are not merged. 0 stands for 1.
    pub min_count: u64,
    /// Pairs whose token would have more bytes are not merged. 0 stands for no limit.
    pub max_token_bytes: usize,
    /// The largest number of threads; it does not change the result. 0 stands for 1.
    pub threads: usize,
}

/// Start to count the pretokens of texts. The pattern is the name of one, such as "gpt4", or a
/// regular expression. 0 threads stand for 1; the number does not change the counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_counter_new(
    pattern: *const c_char,
    threads: usize,
    counter: Option<&mut MaybeUninit<*mut CounterHandle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees that a zero byte ends the pattern.
        let pattern = unsafe { arguments::text("pattern", pattern, usize::MAX) }?;
        let pattern = Pattern::new(pattern)?;
        let new_counter = Mutex::new(Some(Counter::new(&pattern, threads)?.with_care()));
        let place = not_null("counter", counter)?;
        place.write(Box::into_raw(Box::new(CounterHandle { pattern, counter: new_counter })));
        Ok(())
    })
}

/// Count the pretokens of texts, each a document of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_counter_add(
    counter: Option<&CounterHandle>,
    texts: *const TextSlice,
    texts_count: usize,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many texts.
        let texts = unsafe { arguments::texts("texts", texts, texts_count) }?;
        let mut counter = locked(counter)?;
        let counter = counter.as_mut().ok_or_else(counter_is_empty)?;
        if !counter.is_whole() {
            let reason = "a call of this counter failed and left it incomplete; start a new one";
            return Err(CallFailure::Argument(reason.to_owned()));
        }
        Ok(counter.add(&texts)?)
    })
}

/// Take the counts out of a counter, which counts nothing more; it is still to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_counter_finish(
    counter: Option<&CounterHandle>,
    counts: Option<&mut MaybeUninit<*mut CountsHandle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let place = not_null("counts", counts)?;
        let pattern = not_null("counter", counter)?.pattern.clone();
        let counts = locked(counter)?.take().ok_or_else(counter_is_empty)?.finish()?;
        place.write(Box::into_raw(Box::new(CountsHandle { pattern, counts })));
        Ok(())
    })
}

/// Free a counter. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_counter_free(counter: Option<Box<CounterHandle>>) {
    caught((), || drop(counter));
}

/// The counts as columns: the bytes of all distinct pretokens one after the other, in the order in
/// which they first occurred; where each ends in these bytes; how often each occurs; and the number
/// of rows. The pointers are valid as long as the counts.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_counts_columns(
    counts: Option<&CountsHandle>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    ends: Option<&mut MaybeUninit<*const usize>>,
    numbers: Option<&mut MaybeUninit<*const u64>>,
    rows: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let columns = not_null("counts", counts)?.counts.columns();
        put("bytes", bytes, columns.0.as_ptr().cast())?;
        put("ends", ends, columns.1.as_ptr())?;
        put("numbers", numbers, columns.2.as_ptr())?;
        put("rows", rows, columns.1.len())
    })
}

/// Free counts. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_counts_free(counts: Option<Box<CountsHandle>>) {
    caught((), || drop(counts));
}

/// Learn a tokenizer from counts. If no pairs are left before the requested size is reached, it has
/// fewer ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_train(
    counts: Option<&CountsHandle>,
    options: Option<&TrainingOptions>,
    tokenizer: Option<&mut MaybeUninit<*mut Handle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let CountsHandle { pattern, counts } = not_null("counts", counts)?;
        let options = not_null("options", options)?;
        // SAFETY: the caller guarantees this many names.
        let special = unsafe {
            arguments::texts("special_names", options.special_names, options.special_count)
        }?;
        let special: Vec<String> = special.into_iter().map(str::to_owned).collect();
        let trained = train(counts, &options.of_core(special.len())?, &mut |_| Ok(()))?;
        put_tokenizer(tokenizer, trained.to_tokenizer(&special, pattern.clone())?)
    })
}

impl TrainingOptions {
    fn of_core(&self, special: usize) -> Result<TrainOptions, CallFailure> {
        let ties = match self.ties {
            BYTEPAIR_TIES_RUSTBPE => Ties::RustBpe,
            BYTEPAIR_TIES_HF => Ties::Hf,
            BYTEPAIR_TIES_FIRST_SEEN => Ties::FirstSeen,
            BYTEPAIR_TIES_BYTES_MAX => Ties::BytesMax,
            BYTEPAIR_TIES_CHARACTERS_MAX => Ties::CharactersMax,
            ties => {
                let reason =
                    format!("ties is {ties}; pass one of BYTEPAIR_TIES_RUSTBPE and the others");
                return Err(CallFailure::Argument(reason));
            }
        };
        Ok(TrainOptions {
            merges: merges_for(self.vocab_size, special)?,
            ties,
            min_count: NonZeroU64::new(self.min_count).unwrap_or(NonZeroU64::MIN),
            max_token_bytes: (self.max_token_bytes > 0).then_some(self.max_token_bytes),
            veto: None,
            threads: self.threads.max(1),
        })
    }
}

/// The counter of a handle. A panic while it counted leaves it incomplete, which `is_whole` tells.
fn locked(counter: Option<&CounterHandle>) -> Result<MutexGuard<'_, Option<Counter>>, CallFailure> {
    let counter = &not_null("counter", counter)?.counter;
    Ok(counter.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn counter_is_empty() -> CallFailure {
    CallFailure::Argument("the counts of this counter were taken; start a new one".to_owned())
}
