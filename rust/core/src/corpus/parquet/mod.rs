//! Reads the texts of a column of parquet files, in ranges of rows that threads read independently.
//!
//! A range is part of a row group and begins and ends with a page. Its reader decompresses one page
//! after the other, so a thread holds one page and the rest of the previous one, however large the
//! files are.
//!
//! Only the common form is read: a flat column of UTF-8, uncompressed or compressed with Snappy or
//! zstd. For all others, [`TextColumn::open`] fails, and the caller may read them by other means.

pub(crate) mod pages;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::schema::types::ColumnDescriptor;

use crate::error::{Error, Result};
use crate::memory;
use crate::text::from_utf8;
use pages::Pages;

/// A row group is divided into ranges of about this many bytes, decompressed.
const RANGE: usize = 1 << 24;

/// Rows of about this many bytes are read at once.
const READ: usize = 1 << 16;

/// A column of texts in some parquet files. The features `parquet` and `zstd` bring it.
///
/// ```
/// # #[cfg(feature = "zstd")]
/// # {
/// use bytepair::{Counter, Pattern, TextColumn};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zstd.parquet");
/// let column = TextColumn::open(&[path], "text")?; // "low" and "lower"
/// let mut counter = Counter::new(&Pattern::new("gpt2")?, 2)?;
/// counter.add_column(&column, &column.ranges()?, &mut |_progress| Ok(()))?;
/// assert_eq!(counter.texts(), 2);
/// # }
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct TextColumn {
    files: Vec<(PathBuf, ParquetMetaData)>,
    /// The index of the column in each file.
    columns: Vec<usize>,
    most_page_bytes: usize,
    most_text_bytes: usize,
}

/// A range of rows of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRange {
    /// The index of the file.
    pub file: usize,
    /// The index of the row group in the file.
    pub group: usize,
    /// The rows of the row group.
    pub rows: Range<usize>,
}

/// The metadata of a column in the footer of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// One for each row group.
    pub chunks: Vec<ColumnChunk>,
    /// Whether this module reads its texts.
    pub is_read: bool,
}

impl Footer {
    /// Read the footer of a file; `None` if it is damaged or has no column of this name.
    pub fn open(file: &Path, name: &str) -> Option<Self> {
        let of = |(metadata, column): (ParquetMetaData, usize)| {
            let groups = metadata.row_groups().iter();
            let chunks = groups.map(|group| ColumnChunk::of(group, column)).collect();
            Self { chunks, is_read: check(&metadata, column).is_ok() }
        };
        catch_panic(|| Ok(opened(file, name)?.map(of))).ok()?
    }
}

/// The metadata of a column in one row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnChunk {
    /// The number of rows in the group.
    pub rows: i64,
    /// The number of texts and nulls.
    pub values: i64,
    /// The bytes of its pages, decompressed.
    pub unpacked: i64,
    /// The bytes of its pages in the file.
    pub packed: i64,
    /// The offset of the dictionary page in the file, if there is one.
    pub dictionary: Option<i64>,
    /// The offset of the first data page.
    pub data: i64,
    /// The encodings of its pages, by the names in the format.
    pub encodings: Vec<String>,
}

impl ColumnChunk {
    fn of(group: &RowGroupMetaData, column: usize) -> Self {
        let chunk = group.column(column);
        Self {
            rows: group.num_rows(),
            values: chunk.num_values(),
            unpacked: chunk.uncompressed_size(),
            packed: chunk.compressed_size(),
            dictionary: chunk.dictionary_page_offset(),
            data: chunk.data_page_offset(),
            encodings: chunk.encodings().map(|encoding| encoding.to_string()).collect(),
        }
    }
}

impl TextColumn {
    /// The column of this name. Fails with [`Error::Unreadable`] if a file cannot be opened, is not
    /// parquet, or does not have the column in a form that is read here.
    pub fn open(files: &[impl AsRef<Path>], name: &str) -> Result<Self> {
        let (most_page_bytes, most_text_bytes) = (usize::MAX, usize::MAX);
        let mut opened =
            Self { files: Vec::new(), columns: Vec::new(), most_page_bytes, most_text_bytes };
        for path in files {
            let path = path.as_ref();
            catch_panic(|| opened.add(path, name)).map_err(|error| unreadable(path, error))?;
        }
        Ok(opened)
    }

    /// Make a page of more bytes, decompressed, or a longer text, an error. A thread holds three
    /// pages at most: the compressed page, the same decompressed, and the previous one.
    #[must_use]
    pub fn with_bounds(self, page_bytes: usize, text_bytes: usize) -> Self {
        Self { most_page_bytes: page_bytes, most_text_bytes: text_bytes, ..self }
    }

    fn add(&mut self, path: &Path, name: &str) -> ParquetResult<()> {
        let missing = || general(format!("it has no column {name:?}"));
        let (metadata, column) = opened(path, name)?.ok_or_else(missing)?;
        check(&metadata, column)?;
        self.files.push((path.to_owned(), metadata));
        self.columns.push(column);
        Ok(())
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// All rows, in ranges of about 16 MB. Fails with [`Error::Unreadable`] if a file is damaged.
    pub fn ranges(&self) -> Result<Vec<RowRange>> {
        let mut ranges = Vec::new();
        for (file, (path, metadata)) in self.files.iter().enumerate() {
            for group in 0..metadata.num_row_groups() {
                let of_group = catch_panic(|| self.ranges_of(file, group));
                ranges.extend(of_group.map_err(|error| unreadable(path, error))?);
            }
        }
        Ok(ranges)
    }

    /// A row group, divided at pages if it is large.
    fn ranges_of(&self, file: usize, group: usize) -> ParquetResult<Vec<RowRange>> {
        let range = |rows| RowRange { file, group, rows };
        let chunk = self.chunk(file, group);
        let rows = usize::try_from(chunk.num_values())?;
        let count = usize::try_from(chunk.uncompressed_size())?.div_ceil(RANGE);
        if count <= 1 {
            return Ok(vec![range(0..rows)]);
        }
        let mut pages = self.pages(file, group)?;
        let (mut divided, mut start, mut end) = (Vec::new(), 0, 0);
        while let Some(page) = pages.peek_next_page()? {
            end += page.num_rows.or(page.num_levels).filter(|_| !page.is_dict).unwrap_or(0);
            if end - start >= rows.div_ceil(count) {
                divided.push(range(start..end));
                start = end;
            }
            pages.skip_next_page()?;
        }
        if start < rows {
            divided.push(range(start..rows));
        }
        Ok(divided)
    }

    fn chunk(&self, file: usize, group: usize) -> &ColumnChunkMetaData {
        self.files[file].1.row_group(group).column(self.columns[file])
    }

    /// The pages of the column in a row group. The file is opened anew each time, since copies of a
    /// file handle share one read position.
    fn pages(&self, file: usize, group: usize) -> ParquetResult<Pages> {
        let (path, chunk) = (&self.files[file].0, self.chunk(file, group));
        let rows = usize::try_from(chunk.num_values())?;
        let file = File::open(path)?;
        catch_panic(|| Pages::new(file, chunk, rows, self.most_page_bytes))
    }

    /// The approximate number of bytes of text in a range; 0 if the files do not have it.
    pub fn size(&self, range: &RowRange) -> usize {
        if !self.has(range) {
            return 0;
        }
        let chunk = self.chunk(range.file, range.group);
        let [bytes, rows] = [chunk.uncompressed_size(), chunk.num_values()]
            .map(|number| usize::try_from(number).unwrap_or(0));
        (bytes / rows.max(1)).saturating_mul(range.rows.len())
    }

    /// Whether the files have the rows, according to their footers.
    pub fn has(&self, range: &RowRange) -> bool {
        let groups =
            self.files.get(range.file).map_or(0, |(_, metadata)| metadata.num_row_groups());
        let rows = || usize::try_from(self.chunk(range.file, range.group).num_values());
        let Range { start, end } = range.rows;
        range.group < groups && start <= end && rows().is_ok_and(|rows| end <= rows)
    }

    /// Call `sink` with each text of a range in order; a null is an empty text. Fails if the file
    /// cannot be read or is not UTF-8, and with any error of `sink`.
    ///
    /// # Panics
    ///
    /// If the files do not have the range: see [`has`](Self::has).
    pub fn for_each(
        &self,
        range: &RowRange,
        sink: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let path = &self.files[range.file].0;
        let first = self.first_row(range.file, range.group);
        let mut reader = RowReader::open(self, range)?;
        while let Some((row, text)) = reader.next(self)? {
            sink(self.checked(text, path, || first + row)?)?;
        }
        Ok(())
    }

    /// All row groups, each as one range.
    pub fn groups(&self) -> Result<Vec<RowRange>> {
        let mut groups = Vec::new();
        for (file, (path, metadata)) in self.files.iter().enumerate() {
            for group in 0..metadata.num_row_groups() {
                let rows = usize::try_from(self.chunk(file, group).num_values());
                let rows = rows.map_err(|error| unreadable(path, error.into()))?;
                memory::push(&mut groups, RowRange { file, group, rows: 0..rows })?;
            }
        }
        Ok(groups)
    }

    /// The text, if it is UTF-8 and not too long.
    fn checked<'t>(&self, text: &'t [u8], path: &Path, row: impl Fn() -> usize) -> Result<&'t str> {
        let path = || path.display().to_string();
        let (bytes, most) = (text.len(), self.most_text_bytes);
        if bytes > most {
            return Err(Error::RowTooLong { path: path(), row: row(), bytes, most });
        }
        let wrong = |at| Error::RowNotUtf8 { path: path(), row: row(), at };
        from_utf8(text).map_err(|error| wrong(error.valid_up_to()))
    }

    /// The number of rows of a file before a row group.
    fn first_row(&self, file: usize, group: usize) -> usize {
        let values = |group| self.chunk(file, group).num_values();
        (0..group).map(|group| usize::try_from(values(group)).unwrap_or(0)).sum()
    }
}

/// Reads the rows of a range, one after another.
pub struct RowReader {
    /// The rows that are not decoded yet.
    range: RowRange,
    column: ColumnReaderImpl<ByteArrayType>,
    /// The definition levels of the decoded rows, and the texts of those that are not null.
    levels: Vec<i16>,
    texts: Vec<ByteArray>,
    /// The number of decoded rows, of those that were returned, and of their texts.
    decoded: usize,
    returned: usize,
    returned_texts: usize,
}

impl RowReader {
    /// Fails if the file cannot be read.
    ///
    /// # Panics
    ///
    /// If the files do not have the range: see [`TextColumn::has`].
    pub fn open(of: &TextColumn, range: &RowRange) -> Result<Self> {
        let RowRange { file, group, rows } = range;
        let unreadable = |error| unreadable(&of.files[*file].0, error);
        let pages = Box::new(of.pages(*file, *group).map_err(unreadable)?);
        let chunk = of.chunk(*file, *group);
        let mut column = ColumnReaderImpl::new(chunk.column_descr_ptr(), pages);
        catch_panic(|| column.skip_records(rows.start)).map_err(unreadable)?;
        let (range, levels, texts) = (range.clone(), Vec::new(), Vec::new());
        Ok(Self { range, column, levels, texts, decoded: 0, returned: 0, returned_texts: 0 })
    }

    /// The next row of the column that was opened, and its bytes; a null has none. Fails if the
    /// file cannot be read.
    pub fn next(&mut self, of: &TextColumn) -> Result<Option<(usize, &[u8])>> {
        let path = &of.files[self.range.file].0;
        if self.returned == self.decoded {
            if Range::is_empty(&self.range.rows) {
                return Ok(None);
            }
            self.decode(of).map_err(|error| unreadable(path, error))?;
        }
        let row = self.range.rows.start - self.decoded + self.returned;
        let is_null = self.levels.get(self.returned) == Some(&0);
        self.returned += 1;
        if is_null {
            return Ok(Some((row, &[])));
        }
        self.returned_texts += 1;
        match self.texts.get(self.returned_texts - 1) {
            Some(text) => Ok(Some((row, text.data()))),
            None => Err(unreadable(path, missing(row))),
        }
    }

    /// Decode the next rows.
    fn decode(&mut self, of: &TextColumn) -> ParquetResult<()> {
        let Self { range: RowRange { file, group, rows }, column, levels, texts, .. } = self;
        levels.clear();
        texts.clear();
        let asked = rows_at_once(of.chunk(*file, *group)).min(rows.len());
        let (count, ..) = catch_panic(|| column.read_records(asked, Some(levels), None, texts))?;
        if count == 0 {
            return Err(missing(rows.start));
        }
        rows.start += count;
        (self.decoded, self.returned, self.returned_texts) = (count, 0, 0);
        Ok(())
    }
}

/// The error of a row group that ends early.
fn missing(rows: usize) -> ParquetError {
    general(format!("there are {rows} rows in its row group instead of more"))
}

impl fmt::Debug for RowReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowReader").field("range", &self.range).finish_non_exhaustive()
    }
}

/// Read a file that may be damaged. The parquet crate checks most values in a file; the last line
/// of defence turns a panic in it into an error.
pub(crate) fn catch_panic<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    let damaged = |_| Err(general("it is damaged"));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

pub(crate) fn general(reason: impl Into<String>) -> ParquetError {
    ParquetError::General(reason.into())
}

/// The error of a file. An error of this crate inside one of the parquet crate stays what it is.
pub(crate) fn unreadable(path: &Path, error: ParquetError) -> Error {
    let reason = error.to_string();
    let otherwise = || Error::Unreadable { path: path.display().to_string(), reason };
    let ParquetError::External(inner) = error else { return otherwise() };
    match inner.downcast_ref::<io::Error>() {
        Some(inner) => Error::of_io(inner, |_| otherwise()),
        None => otherwise(),
    }
}

/// The metadata of a file, and the index of the column of this name.
fn opened(path: &Path, name: &str) -> ParquetResult<Option<(ParquetMetaData, usize)>> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path)?)?;
    let columns = metadata.file_metadata().schema_descr().columns();
    let column = columns.iter().position(|column| column.path().parts() == [name]);
    Ok(column.map(|column| (metadata, column)))
}

/// Fails with the reason why a column is not read here, if there is one.
fn check(metadata: &ParquetMetaData, column: usize) -> ParquetResult<()> {
    if !is_text(&metadata.file_metadata().schema_descr().column(column)) {
        return Err(general("the column is not one text per row"));
    }
    metadata.row_groups().iter().try_for_each(|group| check_chunk(group.column(column)))
}

/// Whether a column has one text per row.
fn is_text(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Type::BYTE_ARRAY
        && column.max_rep_level() == 0
        && (column.logical_type_ref() == Some(&LogicalType::String)
            || column.converted_type() == ConvertedType::UTF8)
}

/// Fails if a chunk is compressed with what is not built in, or its metadata make no sense: the
/// parquet crate would panic at a negative offset or size.
pub(crate) fn check_chunk(chunk: &ColumnChunkMetaData) -> ParquetResult<()> {
    let offsets = [chunk.data_page_offset(), chunk.dictionary_page_offset().unwrap_or(0)];
    let sizes = [chunk.compressed_size(), chunk.uncompressed_size(), chunk.num_values()];
    if chunk.file_path().is_some() || offsets.into_iter().chain(sizes).any(|number| number < 0) {
        return Err(general("its metadata make no sense"));
    }
    match chunk.compression() {
        Compression::UNCOMPRESSED | Compression::SNAPPY => Ok(()),
        Compression::ZSTD(_) if cfg!(feature = "zstd") => Ok(()),
        Compression::ZSTD(_) => {
            Err(general("it is compressed with zstd; build bytepair with its feature `zstd`"))
        }
        other => Err(general(format!("it is compressed with {other}; use Snappy or zstd"))),
    }
}

/// How many rows are read at once; fewer if texts are large.
pub(crate) fn rows_at_once(chunk: &ColumnChunkMetaData) -> usize {
    let row = chunk.uncompressed_size() / chunk.num_values().max(1);
    (READ / usize::try_from(row).unwrap_or(1).max(1)).clamp(1, 1 << 10)
}
