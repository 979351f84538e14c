//! Reads the documents of a parquet file in order, with the row of each.
//!
//! An invalid document, a page that is too large, and the rest of a damaged row group (up to the next
//! such page) are errors, or are skipped and recorded with their rows and the reason.

use std::vec;

use parquet::data_type::ByteArray;

use crate::corpus::documents::{DocumentOptions, DocumentSelection, Documents, OnError};
use crate::corpus::parquet::column::{RowRange, RowReader, TextColumn, skip_rows};
use crate::error::{Error, Result};

/// Reads the documents of a column of one parquet file, in order.
pub struct TableReader {
    column: TextColumn,
    options: DocumentOptions,
    selection: DocumentSelection,
    /// The next row group.
    group: usize,
    /// The ranges of the row group before that are still to be read, and the reader of the one before
    /// them.
    ranges: vec::IntoIter<RowRange>,
    reader: Option<RowReader>,
    /// The next row, and the end of the range that is being read.
    row: u64,
    end: u64,
}

impl TableReader {
    /// Read the selected rows of the first file of a column.
    #[must_use]
    pub fn new(column: TextColumn, options: DocumentOptions, selection: DocumentSelection) -> Self {
        let (group, ranges, reader, row, end) = Default::default();
        Self { column, options, selection, group, ranges, reader, row, end }
    }

    /// The number of rows of the file, according to its footer.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.column.rows(0)
    }

    /// The next documents, about `block_bytes` of the bounds and all from one row group; `None` at
    /// the end, and after an error.
    pub fn read(&mut self) -> Result<Option<Documents>> {
        let mut documents = Documents::default();
        let done = self.fill(&mut documents);
        if done.is_err() {
            (self.group, self.ranges, self.reader) =
                (self.column.groups(0), vec::IntoIter::default(), None);
        }
        done.map(|()| (self.row > documents.first_row).then_some(documents))
    }

    /// Read documents of a row group until there are enough, or it ends.
    fn fill(&mut self, documents: &mut Documents) -> Result<()> {
        documents.first_row = self.row;
        documents.unit = self.group.saturating_sub(1) as u64;
        while documents.weight() < self.options.bounds.block_bytes.max(1) {
            match self.next() {
                Ok(Some(text)) => {
                    let place = (self.column.path(0), self.row);
                    documents.read_row(place, text.data(), &self.options)?;
                    self.row += 1;
                }
                Ok(None) if self.row == documents.first_row && self.open_next()? => {
                    (documents.unit, documents.first_row) = (self.group as u64 - 1, self.row);
                }
                Ok(None) => break,
                Err(Error::Unreadable { reason, .. }) if self.options.on_error == OnError::Skip => {
                    documents.skip(self.row, self.end - self.row, reason)?;
                    (self.row, self.reader) = (self.end, None);
                }
                Err(Error::Unreadable { path, reason }) => {
                    let place = format!("{path}, row {}", self.row);
                    return Err(Error::Document { place, reason });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The text of the next row; `None` at the end of the row group.
    fn next(&mut self) -> Result<Option<ByteArray>> {
        loop {
            if let Some(reader) = &mut self.reader
                && let Some((_, text)) = reader.next(&self.column)?
            {
                return Ok(Some(text));
            }
            let Some(range) = self.ranges.next() else { return Ok(None) };
            self.end = (self.column.first_row(0, range.group) + range.rows.end) as u64;
            self.reader = Some(RowReader::open(&self.column, &range)?);
        }
    }

    /// Open the next row group with selected rows; returns whether there is one.
    fn open_next(&mut self) -> Result<bool> {
        for group in self.group..self.column.groups(0) {
            self.group = group + 1;
            let [start, end] =
                [group, self.group].map(|group| self.column.first_row(0, group) as u64);
            if self.selection.includes(group as u64, end) {
                let mut ranges = self.column.read(0, || self.column.readable(0, group))?;
                self.row = self.selection.first_row.max(start);
                skip_rows(&mut ranges, usize::try_from(self.row - start).unwrap_or(usize::MAX));
                (self.ranges, self.reader) = (ranges.into_iter(), None);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
