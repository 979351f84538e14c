//! The class of a character, for the classes in split patterns.
//!
//! The table has two stages: the upper bits of a code point select a block of 256 characters, the
//! lower bits a byte in it. Equal blocks are stored once. The test below builds the table from the
//! classes of the regular-expression engine, and compares both for every code point.

/// A class of characters. Every character belongs to exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// All others: punctuation, symbols, controls, unassigned.
    Other = 0,
    /// `\p{Lu}`, `\p{Lt}`.
    Upper = 1,
    /// `\p{Ll}`.
    Lower = 2,
    /// `\p{Lm}`, `\p{Lo}`: letters without case.
    Uncased = 3,
    /// `\p{M}`.
    Mark = 4,
    /// `\p{N}`.
    Number = 5,
    /// `\s` except `[\r\n]`.
    Space = 6,
    /// `[\r\n]`.
    Newline = 7,
}

impl Class {
    const ALL: [Self; 8] = [
        Self::Other,
        Self::Upper,
        Self::Lower,
        Self::Uncased,
        Self::Mark,
        Self::Number,
        Self::Space,
        Self::Newline,
    ];

    /// `\p{L}`.
    pub(super) fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Uncased)
    }

    /// `\s`.
    pub(super) fn is_space(self) -> bool {
        matches!(self, Self::Space | Self::Newline)
    }
}

/// For every 256 characters, the index of their block; then the blocks.
const TABLE: &[u8] = include_bytes!("unicode-16.0.0.bin");
const BLOCKS: usize = 0x11_0000 >> 8;

/// The class of a character, given as its code point.
#[inline]
pub(super) const fn class_of(code_point: u32) -> Class {
    let block = TABLE[(code_point >> 8) as usize] as usize;
    Class::ALL[(TABLE[BLOCKS + (block << 8) + (code_point & 0xFF) as usize] & 7) as usize]
}

/// The number of characters in a row, whose UTF-8 differs only in the last byte. Only AVX-512 looks
/// up rows.
#[cfg(target_arch = "x86_64")]
pub(super) const ROW: usize = 64;

/// The classes of a row. The number of a row is a code point divided by [`ROW`].
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) const fn row(number: usize) -> &'static [u8; ROW] {
    // A block of 256 characters has four rows of 64.
    let start = BLOCKS + TABLE[number / 4] as usize * 256 + number % 4 * ROW;
    TABLE.split_at(start).1.first_chunk().expect("a block has four rows")
}

/// The classes of ASCII.
pub(super) static ASCII: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut code_point: u8 = 0;
    while code_point < 128 {
        classes[code_point as usize] = class_of(code_point as u32);
        code_point += 1;
    }
    classes
};

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use fancy_regex::Regex;

    /// The class of every code point according to the engine; surrogates are `Other`.
    fn by_regex() -> Vec<u8> {
        let mut classes = vec![Class::Other as u8; 0x11_0000];
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        for (class, pattern) in [
            (Class::Upper, r"[\p{Lu}\p{Lt}]"),
            (Class::Lower, r"\p{Ll}"),
            (Class::Uncased, r"[\p{Lm}\p{Lo}]"),
            (Class::Mark, r"\p{M}"),
            (Class::Number, r"\p{N}"),
            (Class::Space, r"[\s--[\r\n]]"),
            (Class::Newline, r"[\r\n]"),
        ] {
            for character in Regex::new(pattern).unwrap().find_iter(&all) {
                let c = character.unwrap().as_str().chars().next().unwrap();
                assert_eq!(classes[c as usize], 0, "{c:?} is in two classes");
                classes[c as usize] = class as u8;
            }
        }
        classes
    }

    fn two_stages(classes: &[u8]) -> Vec<u8> {
        let mut blocks: Vec<&[u8]> = Vec::new();
        let mut index = |block| {
            let existing = blocks.iter().position(|other| *other == block);
            existing.unwrap_or_else(|| {
                blocks.push(block);
                blocks.len() - 1
            })
        };
        let mut table: Vec<u8> =
            classes.chunks(256).map(|block| u8::try_from(index(block)).unwrap()).collect();
        table.extend(blocks.concat());
        table
    }

    #[test]
    fn the_table_equals_the_classes_of_the_engine() {
        let expected = two_stages(&by_regex());
        if TABLE != expected {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pretokenize/unicode-16.0.0.bin");
            std::fs::write(path, &expected).unwrap();
            panic!("the table differs from the engine and was rewritten: review and commit it");
        }
        for (code_point, class) in (0u32..).zip(by_regex()) {
            assert_eq!(class_of(code_point) as u8, class, "U+{code_point:04X}");
        }
    }

    #[test]
    fn letters_are_the_letters_of_the_engine() {
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        for (pattern, is) in
            [(r"\p{L}", Class::is_letter as fn(Class) -> bool), (r"\s", Class::is_space)]
        {
            let expected: String = Regex::new(pattern)
                .unwrap()
                .find_iter(&all)
                .map(|character| character.unwrap().as_str())
                .collect();
            let ours: String = all.chars().filter(|&c| is(class_of(c as u32))).collect();
            assert_eq!(expected, ours, "{pattern}");
        }
    }
}
