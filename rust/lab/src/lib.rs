//! Trainings and estimates of single papers, built on the calls of `bytepair`: the core knows
//! nothing of them.
//!
//! [`parity`] learns each merge for the group of texts that compresses worst; [`history`] replays the
//! counts of pairs, from which the mixture of a training is estimated.

mod choice;
pub mod history;
pub mod parity;
