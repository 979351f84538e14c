//! Reads the footer of a parquet file, and the header of a page.
//!
//! The parquet crate reads the schema recursively and believes its numbers and those of headers, so a
//! small file could end the process. Therefore both are read before, in the compact protocol of Thrift:
//! the footer begins with the schema.

use std::io;

use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;

use crate::memory;

/// The maximum number of levels of a schema, as in Arrow.
const MOST_LEVELS: usize = 100;
/// The maximum size in bytes of the paths to all columns: the crate stores each of them as a whole.
const MOST_PATH_BYTES: usize = 1 << 24;
/// The memory for a footer, for each of its bytes: a row group without fields takes 96.
const BYTES_OF_MEMORY: usize = 128;
/// The bytes at the end of a file: the length of the footer, and a mark.
const END_BYTES: usize = 8;

/// Read the footer of a file. Fails if its schema is damaged or too deep.
pub(crate) fn read_footer(source: &impl ChunkReader) -> ParquetResult<ParquetMetaData> {
    if let Some(end) = source.len().checked_sub(END_BYTES as u64) {
        let tail = source.get_bytes(end, END_BYTES)?;
        let length =
            tail[..4].iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
        let start = end.checked_sub(length as u64);
        if let Some(start) = start.filter(|_| tail[4..] == *b"PAR1") {
            memory::check(length.saturating_mul(BYTES_OF_MEMORY)).map_err(io::Error::from)?;
            if Thrift(&source.get_bytes(start, length)?).footer().is_none() {
                let reason = "its footer is damaged, or its schema has more than 100 levels \
                              or 2^24 bytes of names";
                return Err(ParquetError::General(reason.to_owned()));
            }
        }
    }
    ParquetMetaDataReader::new().parse_and_finish(source)
}

/// The numbers in the header of a page, in bytes: its own length, and the sizes of the page.
pub(crate) struct PageHeader {
    pub(crate) length: usize,
    pub(crate) decompressed: usize,
    pub(crate) compressed: usize,
}

impl PageHeader {
    /// The header at the start of these bytes; `None` if they end before it, or if it is damaged.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (mut rest, mut last) = (Thrift(bytes), 0);
        let (mut numbers, mut has_part) = ([0; 4], [false; 4]);
        loop {
            let (kind, id) = rest.field(last)?;
            match (id, kind) {
                (_, 0) => break,
                (1..=3, 5) if id > last => {
                    let number = rest.number().filter(|number| number % 2 == 0)?;
                    numbers[usize::try_from(id).ok()?] = usize::try_from(number / 2).ok()?;
                }
                _ if id > last => {
                    rest.skip(kind, 16)?;
                    // The parts of a header stand in the order of the types of pages.
                    if let (5..=8, 12) = (id, kind) {
                        has_part[usize::try_from(id - 5).ok()?] = true;
                    }
                }
                _ => return None, // the crate would believe the later one
            }
            last = id;
        }
        let [_, of_type, decompressed, compressed] = numbers;
        let length = bytes.len() - rest.0.len();
        has_part.get(of_type)?.then_some(Self { length, decompressed, compressed })
    }
}

/// Reads values of the [compact protocol]; the methods return `None` if a value is damaged.
///
/// A value has a type: 1 and 2 are booleans, 3 a byte, 4 to 6 integers of 16, 32 and 64 bits, 7 a double,
/// 8 a string, 9 a list, 10 a set, 12 a struct, and 0 is the end of a struct.
///
/// [compact protocol]: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    /// Check a footer.
    fn footer(&mut self) -> Option<()> {
        self.schema()?;
        while let (kind @ 1.., _) = self.field(0)? {
            self.skip(kind, 16)?;
        }
        Some(())
    }

    /// Check the schema at the beginning of a footer, which only the version may precede.
    fn schema(&mut self) -> Option<()> {
        let mut field = self.field(0)?;
        if field == (5, 1) {
            self.number()?;
            field = self.field(1)?;
        }
        let (kind, mut left) = if field == (9, 2) { self.list()? } else { return None };
        // For each open level, the number of children that are still to come, and the bytes of the
        // elements up to it.
        let mut open: Vec<(u64, usize)> = Vec::new();
        let (mut paths, mut pending) = (0, 0);
        while let Some(rest) = left.checked_sub(1) {
            left = rest;
            let before = self.0.len();
            let children = if kind == 12 { self.element()? } else { return None };
            let mut path = before - self.0.len();
            if let Some((children, above)) = open.last_mut() {
                *children -= 1;
                path += *above;
                pending -= 1;
            }
            paths += path;
            pending += children;
            open.push((children, path));
            while open.pop_if(|(children, _)| *children == 0).is_some() {}
            if open.len() > MOST_LEVELS || pending > left || paths > MOST_PATH_BYTES {
                return None;
            }
        }
        Some(())
    }

    /// An element of a schema; returns the number of its children.
    fn element(&mut self) -> Option<u64> {
        let (mut last, mut children) = (0, 0);
        loop {
            let (kind, id) = self.field(last)?;
            match (id, kind) {
                (_, 0) => return Some(children),
                (5, 5) => {
                    let number = u64::from(u32::try_from(self.number()?).ok()?);
                    children = if number % 2 == 0 { number / 2 } else { return None };
                }
                (1..=3 | 6..=9, 5) | (4, 8) => self.skip(kind, 1)?,
                (10, 12) => self.logical_type()?,
                (..=10, _) => return None,
                _ => self.skip(kind, 10)?,
            }
            last = id;
        }
    }

    /// A logical type, with the fields that each may have: the crate reads no others. Types that it does
    /// not know, it skips.
    fn logical_type(&mut self) -> Option<()> {
        let (12, variant) = self.field(0)? else { return None };
        let mut last = 0;
        loop {
            let (kind, id) = self.field(last)?;
            match (variant, id, kind) {
                (.., 0) => break,
                (19.., ..)
                | (5, 1 | 2, 5)
                | (7 | 8, 1, 1 | 2)
                | (7 | 8, 2, 12)
                | (10 | 16, 1, 3)
                | (10, 2, 1 | 2)
                | (17 | 18, 1, 8)
                | (18, 2, 5) => self.skip(kind, 10)?,
                _ => return None,
            }
            last = id;
        }
        self.field(0).filter(|&(kind, _)| kind == 0).map(drop)
    }

    fn byte(&mut self) -> Option<u8> {
        self.0.split_off_first().copied()
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.0.split_off(..usize::try_from(count).ok()?).map(drop)
    }

    fn number(&mut self) -> Option<u64> {
        varint(&mut self.0)
    }

    /// The type and the id of a field of a struct; the type 0 ends it.
    fn field(&mut self, last: i16) -> Option<(u8, i16)> {
        let byte = self.byte()?;
        match (byte >> 4, byte & 15) {
            (_, 0) => Some((0, 0)),
            (0, kind) => {
                let id = self.number()?;
                let id = (id >> 1).cast_signed() ^ -(id & 1).cast_signed();
                Some((kind, id.try_into().ok()?))
            }
            (more, kind) => Some((kind, last.checked_add(more.into())?)),
        }
    }

    /// The type of the elements of a list, and their number.
    fn list(&mut self) -> Option<(u8, u64)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        Some((byte & 15, count))
    }

    /// Skip a value of at most `levels` levels of lists and structs.
    fn skip(&mut self, kind: u8, levels: u8) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()),
            3 => self.bytes(1),
            4..=6 => self.number().map(drop),
            7 => self.bytes(8),
            8 => self.number().and_then(|count| self.bytes(count)),
            // Of a list of booleans, the crate reads no bytes, however many there are.
            9 | 10 => match self.list()? {
                (1 | 2, 1..) => None,
                (kind, count) => (0..count).try_for_each(|_| self.skip(kind, levels)),
            },
            12 => loop {
                match self.field(0)? {
                    (0, _) => return Some(()),
                    (kind, _) => self.skip(kind, levels)?,
                }
            },
            _ => None,
        }
    }
}

/// A number of at most 64 bits, seven in each byte, the lowest first; all bytes but the last have a
/// high bit.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_unless_it_contradicts_itself() {
        let header = |more: &[u8]| {
            let sizes = [0x15, 0, 0x15, 30, 0x15, 28, 0x2C, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0];
            [&sizes, more, &[0]].concat()
        };
        let (usual, text) = (header(&[]), header(&[0x38, 2, b'a', b'b']));
        for bytes in [&usual, &text] {
            let read = PageHeader::read(&[&**bytes, b"the page"].concat()).unwrap();
            let PageHeader { length, decompressed, compressed } = read;
            assert_eq!((length, decompressed, compressed), (bytes.len(), 15, 14));
            assert!((0..length).all(|end| PageHeader::read(&bytes[..end]).is_none()));
        }
        let (again, negative) = (header(&[5, 4, 60]), [0x15, 0, 0x15, 31, 0x15, 28, 0]);
        let bare = [0x15, 6, 0x15, 30, 0x15, 28, 0]; // of the second version, without its part
        let (booleans, map) = (header(&[9, 200, 1, 0xF1, 9]), header(&[11, 200, 1, 9, 0x11]));
        for damaged in [&*again, &negative, &bare, &booleans, &map] {
            assert!(PageHeader::read(damaged).is_none(), "{damaged:?}");
        }
    }
}
