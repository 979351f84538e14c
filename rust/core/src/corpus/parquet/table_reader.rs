//! Reads the documents of a parquet file in order, with the row of each.
//!
//! An invalid document, a page that is too large, or the rest of a damaged row group (or what of it
//! is before such a page) is an error, or is skipped and recorded with its rows and the reason.

use std::ops::Range;
use std::vec;

use parquet::data_type::ByteArray;

use crate::corpus::documents::{DocumentOptions, DocumentSelection, Documents, OnError};
use crate::corpus::parquet::column::{RowRange, RowReader, TextColumn};
use crate::error::{Error, Result};

/// Reads the documents of a column of one parquet file, in order.
pub struct TableReader {
    column: TextColumn,
    options: DocumentOptions,
    selection: DocumentSelection,
    /// The next row group.
    group: usize,
    open: Option<OpenGroup>,
}

/// A row group that is being read.
struct OpenGroup {
    /// The index of the row group, and its first row.
    unit: usize,
    start: u64,
    /// The next row, and the end of the current span.
    row: u64,
    end: u64,
    /// The spans after the current one, and the reader of that.
    spans: vec::IntoIter<Range<usize>>,
    reader: Option<RowReader>,
}

impl TableReader {
    /// Read the selected rows of the first file of a column.
    #[must_use]
    pub fn new(column: TextColumn, options: DocumentOptions, selection: DocumentSelection) -> Self {
        Self { column, options, selection, group: 0, open: None }
    }

    /// The number of rows of the file, according to its footer.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.column.rows(0)
    }

    /// The next documents, about `block_bytes` of the bounds and all from one row group; `None` at
    /// the end, and after an error.
    pub fn read(&mut self) -> Result<Option<Documents>> {
        loop {
            let open = match self.open.take() {
                Some(open) => Some(open),
                None => self.open_next()?,
            };
            let Some(mut open) = open else { return Ok(None) };
            let mut documents = Documents::default();
            (documents.unit, documents.first_row) = (open.unit as u64, open.row);
            if let Err(error) = open.read(&self.column, &self.options, &mut documents) {
                // The next call finds no further row group.
                self.group = self.column.groups(0);
                return Err(error);
            }
            // A row group of which no row was read has ended.
            if open.row > documents.first_row {
                self.open = Some(open);
                return Ok(Some(documents));
            }
        }
    }

    /// Open the next row group with selected rows.
    fn open_next(&mut self) -> Result<Option<OpenGroup>> {
        for unit in self.group..self.column.groups(0) {
            self.group = unit + 1;
            let [start, end] = [unit, unit + 1].map(|group| self.column.first_row(0, group) as u64);
            if self.selection.includes(unit as u64, end) {
                let mut spans = self.column.read(0, || self.column.spans(0, unit))?;
                let row = self.selection.first_row.max(start);
                let skipped = usize::try_from(row - start).unwrap_or(usize::MAX);
                for span in &mut spans {
                    span.start = span.start.max(skipped);
                }
                spans.retain(|span| !Range::is_empty(span));
                let (spans, reader) = (spans.into_iter(), None);
                return Ok(Some(OpenGroup { unit, start, row, end: row, spans, reader }));
            }
        }
        Ok(None)
    }
}

impl OpenGroup {
    /// Read documents until there are enough, or the row group ends.
    fn read(
        &mut self,
        column: &TextColumn,
        options: &DocumentOptions,
        documents: &mut Documents,
    ) -> Result<()> {
        // Each text counts one more than its bytes, so that empty texts fill a block too.
        while documents.bytes.len() + documents.ends.len() < options.bounds.block_bytes.max(1) {
            match self.next(column) {
                Ok(Some(text)) => {
                    documents.read_row((column.path(0), self.row), text.data(), options)?;
                    self.row += 1;
                }
                Ok(None) => break,
                Err(Error::Unreadable { reason, .. }) if options.on_error == OnError::Skip => {
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
    fn next(&mut self, column: &TextColumn) -> Result<Option<ByteArray>> {
        loop {
            if let Some(reader) = &mut self.reader
                && let Some((_, text)) = reader.next(column)?
            {
                return Ok(Some(text));
            }
            let Some(rows) = self.spans.next() else { return Ok(None) };
            self.end = self.start + rows.end as u64;
            let range = RowRange { file: 0, group: self.unit, rows };
            self.reader = Some(RowReader::open(column, &range)?);
        }
    }
}
