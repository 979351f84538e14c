//! GPT-2's characters for bytes, in which `vocab.json`, `merges.txt`, `tokenizer.json` and GGUF
//! store tokens.
//!
//! Printable bytes of Latin-1 map to themselves; the other 68, in order, to the characters from
//! U+0100 on. So a space is `Ġ` and a line break `Ċ`.

/// The character of each byte.
static CHARACTERS: [char; 256] = {
    let mut characters = ['\0'; 256];
    let mut byte = 0u8;
    let mut others = 0;
    loop {
        characters[byte as usize] = if is_printable(byte) {
            byte as char
        } else {
            others += 1;
            char::from_u32(0xFF + others).expect("no surrogate is near")
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    characters
};

/// The byte of each character up to U+0143, if it has one.
static BYTES: [Option<u8>; 0x144] = {
    let mut bytes = [None; 0x144];
    let mut byte = 0u8;
    loop {
        bytes[CHARACTERS[byte as usize] as usize] = Some(byte);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    bytes
};

const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character that stands for a byte.
#[inline]
pub fn character(byte: u8) -> char {
    CHARACTERS[usize::from(byte)]
}

/// The byte that a character stands for.
#[inline]
pub fn byte(character: char) -> Option<u8> {
    BYTES.get(character as usize).copied().flatten()
}

/// The characters of bytes.
///
/// ```
/// use bytepair::rules::byte_level::to_characters;
/// assert_eq!(to_characters(" né".as_bytes()), "ĠnÃ©");
/// ```
pub fn to_characters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(character).collect()
}

/// The bytes of characters, the inverse of [`to_characters`]; `None` if a character stands for no
/// byte.
///
/// ```
/// use bytepair::rules::byte_level::to_bytes;
/// assert_eq!(to_bytes("ĠnÃ©").as_deref(), Some(" né".as_bytes()));
/// assert_eq!((to_bytes("a b"), to_bytes("▁")), (None, None));
/// ```
pub fn to_bytes(characters: &str) -> Option<Vec<u8>> {
    characters.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_character() {
        for b in 0..=u8::MAX {
            assert_eq!(byte(character(b)), Some(b));
        }
        assert_eq!((character(0), character(b' '), character(0xAD)), ('Ā', 'Ġ', 'Ń'));
        assert_eq!((byte(' '), byte('\u{AD}'), byte('\u{144}')), (None, None, None));
    }
}
