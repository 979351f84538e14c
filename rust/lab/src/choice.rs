//! Chooses the group of texts that the next merge is for: the one that compresses worst.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bytepair::{Error, Result};

/// The measure of which group compresses worst.
///
/// ```
/// use bytepair_lab::parity::{Measure, ChoiceWindow};
/// let of_ratios = Measure::Rates { ratios: vec![1.0, 1.2] };
/// assert_ne!(of_ratios, Measure::Tokens);
/// assert_eq!(ChoiceWindow::default(), ChoiceWindow { size: 100, alpha: 2.0 });
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Measure {
    /// The group with the most tokens.
    Tokens,
    /// The group with the smallest ratio of bytes to tokens, divided by the target ratio of the
    /// group.
    Rates {
        /// The target ratio of each group.
        ratios: Vec<f64>,
    },
}

/// A limit on the merges for one group: a group is passed over while its share of the last `size`
/// choices is more than `alpha` divided by the number of groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChoiceWindow {
    /// The number of last choices that are considered.
    pub size: usize,
    /// The limit as a multiple of an equal share.
    pub alpha: f64,
}

impl Default for ChoiceWindow {
    /// The values from the paper.
    fn default() -> Self {
        Self { size: 100, alpha: 2.0 }
    }
}

/// Chooses a group before each merge.
pub(crate) struct Choice {
    measure: Measure,
    window: Option<ChoiceWindow>,
    /// The number of bytes of each group.
    bytes: Vec<f64>,
    /// The last chosen groups.
    recent: VecDeque<usize>,
    /// Whether a group has pairs left to merge.
    open: Vec<bool>,
}

impl Choice {
    /// Fails unless each group has a ratio above 0, and the size and `alpha` of the window are
    /// above 0.
    pub(crate) fn new(
        measure: Measure,
        window: Option<ChoiceWindow>,
        bytes: Vec<f64>,
    ) -> Result<Self> {
        let broken = |reason: String| Err(Error::Vocabulary { reason: reason.into() });
        if let Measure::Rates { ratios } = &measure {
            if ratios.len() != bytes.len() {
                let (ratios, groups) = (ratios.len(), bytes.len());
                return broken(format!("{groups} groups need {groups} ratios, not {ratios}"));
            }
            if let Some(wrong) = ratios.iter().find(|&&ratio| !is_positive(ratio)) {
                return broken(format!("the ratio {wrong} is not a number above 0"));
            }
        }
        if let Some(wrong) = window.filter(|window| window.size == 0 || !is_positive(window.alpha))
        {
            let ChoiceWindow { size, alpha } = wrong;
            return broken(format!(
                "the window has size {size} and alpha {alpha}; both must be above 0"
            ));
        }
        let open = vec![true; bytes.len()];
        Ok(Self { measure, window, bytes, recent: VecDeque::new(), open })
    }

    /// The group of the next merge, given the number of tokens of each group; `None` if no group
    /// has pairs left.
    pub(crate) fn next(&mut self, tokens: &[u64]) -> Option<usize> {
        let mut groups: Vec<usize> = (0..tokens.len()).filter(|&group| self.open[group]).collect();
        let Some(window) = self.window else {
            return groups.into_iter().min_by(|&one, &other| self.compare(tokens, one, other));
        };
        // The sort is stable, so of equal groups the first one stays first.
        groups.sort_by(|&one, &other| self.compare(tokens, one, other));
        let within = groups.iter().find(|&&group| self.share(group, window) <= self.limit(window));
        // If every group has had more than its share, the one that compresses best is next.
        let chosen = *within.or(groups.last())?;
        self.recent.push_back(chosen);
        if self.recent.len() > window.size {
            self.recent.pop_front();
        }
        Some(chosen)
    }

    /// Exclude a group that has no pairs left to merge.
    pub(crate) fn close(&mut self, group: usize) {
        self.open[group] = false;
    }

    /// Orders the group that compresses worse first.
    fn compare(&self, tokens: &[u64], one: usize, other: usize) -> Ordering {
        match &self.measure {
            Measure::Tokens => tokens[other].cmp(&tokens[one]),
            Measure::Rates { ratios } => {
                let rate = |group: usize| self.bytes[group] / real(tokens[group]) / ratios[group];
                rate(one).total_cmp(&rate(other))
            }
        }
    }

    /// The share of a group in the last choices.
    fn share(&self, group: usize, window: ChoiceWindow) -> f64 {
        let chosen = self.recent.iter().filter(|&&recent| recent == group).count();
        real(chosen as u64) / real(window.size as u64)
    }

    fn limit(&self, window: ChoiceWindow) -> f64 {
        window.alpha / real(self.bytes.len() as u64)
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// A count as a floating-point number, as reference implementations compute with it.
#[expect(clippy::cast_precision_loss, reason = "ratios of counts are compared")]
fn real(count: u64) -> f64 {
    count as f64
}
