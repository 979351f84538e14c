//! Collects rows into [`Counts`], which stay in files if they exceed the memory limit.
//!
//! Each file is unlinked once it is mapped, so none is left over.

#![expect(unsafe_code, reason = "counts that exceed the memory limit are mapped")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::count::counts::Counts;
use crate::count::stored::Column;
use crate::error::{Error, Result};
use crate::machine::array::FileBytes;

/// Writes the columns of counts to files.
pub(super) struct CountsWriter {
    bytes: Output,
    ends: Output,
    numbers: Output,
}

impl CountsWriter {
    /// Create the files in `folder`.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let [bytes, ends, numbers] =
            ["pretokens", "ends", "counts"].map(|name| Output::create(folder.join(name)));
        Ok(Self { bytes: bytes?, ends: ends?, numbers: numbers? })
    }

    /// Append a row.
    pub(super) fn push(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        self.bytes.write(pretoken)?;
        let end = usize::try_from(self.bytes.written).expect("a file of fewer than 2^63 bytes");
        self.ends.write(&end.to_le_bytes())?;
        self.numbers.write(&count.to_le_bytes())
    }

    /// The counts: read into memory if they take at most `limit` bytes, mapped otherwise.
    pub(super) fn finish(self, limit: usize) -> Result<Counts> {
        let bytes = self.bytes.written + self.ends.written + self.numbers.written;
        let [text, ends, numbers] = [self.bytes, self.ends, self.numbers].map(Output::finish);
        let mut text = Column::of_file(text?);
        let (mut ends, mut numbers) = (Column::of_file(ends?), Column::of_file(numbers?));
        if bytes <= limit as u64 {
            text.values()?;
            ends.values()?;
            numbers.values()?;
        }
        Ok(Counts::of_columns(text, ends, numbers))
    }
}

/// A file that is written sequentially.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    /// The number of bytes written.
    written: u64,
}

impl Output {
    fn create(path: PathBuf) -> Result<Self> {
        match File::create_new(&path) {
            Ok(file) => Ok(Self { path, file: BufWriter::new(file), written: 0 }),
            Err(error) => Err(Error::of_spill(&path, &error)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| Error::of_spill(&self.path, &error))
    }

    /// The bytes of the file, which is mapped and unlinked.
    fn finish(mut self) -> Result<FileBytes> {
        self.file.flush().map_err(|error| Error::of_spill(&self.path, &error))?;
        drop(self.file);
        // SAFETY: `create` created the file, its only handle that can write is closed, and nothing
        // here opens it again. That no other program changes files in the folder of a counter is
        // the caller's duty; see `Counter::with_memory_limit`.
        let bytes = unsafe { FileBytes::take(&self.path) };
        bytes.map_err(|error| Error::of_spill(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::{env, fs, process};

    use super::*;

    type Row = (&'static [u8], u64);
    const ROWS: [Row; 4] =
        [(b"a", 7), (b" bc", 1), ("\u{4e2d}".as_bytes(), u64::MAX - 9), (b"d", 2)];

    fn stored(limit: usize, rows: &[Row]) -> Counts {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("bytepair-stored-{}-{number}", process::id()));
        fs::create_dir(&folder).unwrap();
        let mut writer = CountsWriter::create(&folder).unwrap();
        for (pretoken, count) in rows {
            writer.push(pretoken, *count).unwrap();
        }
        let counts = writer.finish(limit).unwrap();
        fs::remove_dir(&folder).unwrap(); // fails if the folder is not empty
        counts
    }

    /// Counts in memory are the safe reference for those in files.
    #[test]
    fn counts_in_files_equal_counts_in_memory() {
        for rows in [&ROWS[..], &ROWS[..1], &[]] {
            let plain = Counts::new(rows.iter().copied());
            for limit in [0, usize::MAX] {
                let counts = stored(limit, rows);
                counts.release(&(0..rows.len()));
                assert_eq!(counts, plain);
                assert_eq!(counts.fingerprint(), plain.fingerprint());
                assert_eq!(counts.columns(), plain.columns());
            }
        }
    }

    #[test]
    fn counts_in_files_can_be_added_and_multiplied() {
        let (counts, plain) = (stored(0, &ROWS[..2]), Counts::new(ROWS[..2].iter().copied()));
        assert_eq!(counts.times(6).unwrap(), plain.times(6).unwrap());
        assert_eq!(counts.times(6).unwrap().divided(3).unwrap(), plain.times(2).unwrap());
        assert_eq!(counts.plus(&counts).unwrap(), plain.times(2).unwrap());
        assert_eq!(counts, plain);
    }
}
