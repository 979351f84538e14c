//! Classes of characters, as regular expressions say them.

use regex_syntax::hir::{Class, HirKind};

/// A set of characters.
#[derive(Debug, Clone)]
pub(crate) struct CharacterClass {
    /// The first and the last character of each range, in order.
    ranges: Vec<(char, char)>,
}

impl CharacterClass {
    /// The class of a constant expression such as `[\p{L}\p{N}]`.
    ///
    /// # Panics
    ///
    /// If the expression is no class.
    pub(crate) fn new(class: &str) -> Self {
        let hir = regex_syntax::parse(class).expect("the class is constant");
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            unreachable!("the expression is a class of characters")
        };
        Self { ranges: class.ranges().iter().map(|range| (range.start(), range.end())).collect() }
    }

    /// Whether a character is in the class.
    pub(crate) fn has(&self, character: char) -> bool {
        let at = self.ranges.partition_point(|&(_, last)| last < character);
        self.ranges.get(at).is_some_and(|&(first, _)| first <= character)
    }
}
