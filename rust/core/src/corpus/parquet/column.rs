//! Reads the texts of a column of parquet files, in ranges of rows that threads read independently.
//!
//! A range is a part of a row group and starts and ends at page boundaries. Its reader decompresses
//! one page after the other, so a thread holds one page and the rest of the previous one, however
//! large the files are.
//!
//! A column must be flat, and of text, of bytes that are UTF-8, or of nulls only. For all others,
//! [`TextColumn::open`] fails.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{fmt, io, vec};

use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::page::{PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::Length;
use parquet::schema::types::ColumnDescriptor;

use crate::corpus::parquet::footer::read_footer;
use crate::corpus::parquet::source::{
    Pages, ReadSeek, TableSource, because, general, shares_prefixes,
};
use crate::corpus::stream::stand_in_at;
use crate::error::{Error, Hint, OTHER_COLUMN, RENDER, Reason, Result};

/// A row group is divided into ranges of about this many decompressed bytes.
const RANGE_BYTES: usize = 1 << 24;
/// A row group is divided into at most this many ranges.
const MAX_RANGES: usize = 16;
/// A range has at least about this many compressed bytes.
const RANGE_FILE_BYTES: usize = 1 << 20;
/// A file may state at most this many rows for each compressed byte, and `MAX_EMPTY_ROWS` more: a run of
/// nulls takes no bytes.
const MAX_ROWS_PER_BYTE: usize = 64;
const MAX_EMPTY_ROWS: usize = 1 << 24;

/// Rows of about this many bytes are read at once.
const READ_BYTES: usize = 1 << 16;

/// A column of texts in some parquet files. Requires the feature `parquet`; files compressed with
/// zstd also require the feature `zstd`.
///
/// ```
/// # #[cfg(feature = "zstd")]
/// # {
/// use bytepair::{Counter, FileCountOptions, Pattern, Reached, TextColumn};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zstd.parquet");
/// let column = TextColumn::open(&[path], "text")?; // "low" and "lower"
/// let mut counter = Counter::new(&Pattern::new("gpt2")?, 2)?;
/// let (ranges, options) = (column.ranges()?, FileCountOptions::default());
/// let mut reached = Reached::default();
/// counter.add_column(&column, &ranges, &mut reached, &options, &mut |_| Ok(()))?;
/// assert_eq!((reached.place.file, counter.texts()), (1, 2));
/// # }
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct TextColumn {
    files: Vec<Table>,
    most_page_bytes: usize,
}

/// A parquet file with the column.
struct Table {
    /// The path; for messages only, if the file is an object of the caller.
    path: PathBuf,
    object: Option<TableSource>,
    metadata: ParquetMetaData,
    /// The index of the column.
    column: usize,
    /// The number of rows before each row group, and in the file, according to its footer.
    starts: Vec<usize>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Table {
    /// Open the column `name` of the file at the path, or of `object`.
    fn open(path: &Path, object: Option<TableSource>, name: &str) -> Result<Self> {
        let opened = || {
            let source = source(path, object.as_ref())?;
            let metadata = read_footer(&source).map_err(|error| not_parquet(path, error))?;
            let column = find(&metadata, name)?;
            let (mut starts, mut rows, mut bytes) = (vec![0], 0_usize, 0_usize);
            for chunk in metadata.row_groups().iter().map(|group| group.column(column)) {
                check_chunk(chunk)?;
                rows = rows.saturating_add(usize::try_from(chunk.num_values())?);
                bytes = bytes.saturating_add(usize::try_from(chunk.compressed_size())?);
                starts.push(rows);
            }
            if rows > bytes.saturating_mul(MAX_ROWS_PER_BYTE).saturating_add(MAX_EMPTY_ROWS) {
                return Err(general(format!("it states {rows} rows in {bytes} bytes")));
            }
            if bytes as u64 > source.len() {
                return Err(general("its row groups have more bytes than the file"));
            }
            Ok((metadata, column, starts))
        };
        let opened = catch_panic(opened).map_err(|error| unreadable(path, error));
        let (metadata, column, starts) = opened?;
        Ok(Self { path: path.to_owned(), object, metadata, column, starts })
    }
}

/// The bytes of an object, or else of the file at the path.
fn source(path: &Path, object: Option<&TableSource>) -> io::Result<TableSource> {
    object.map_or_else(|| TableSource::open(path), |object| Ok(object.clone()))
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

/// The ranges of a row group that end at these rows.
fn ranges_between(file: usize, group: usize, ends: Vec<usize>) -> Vec<RowRange> {
    let starts = std::iter::once(0).chain(ends.clone());
    let ranges = starts.zip(ends).map(|(start, end)| RowRange { file, group, rows: start..end });
    ranges.filter(|range| !Range::is_empty(&range.rows)).collect()
}

/// Leave out the first rows of a row group, of which these are the ranges.
pub(crate) fn skip_rows(ranges: &mut Vec<RowRange>, rows: usize) {
    for range in ranges.iter_mut() {
        range.rows.start = range.rows.start.max(rows);
    }
    ranges.retain(|range| !Range::is_empty(&range.rows));
}

impl TextColumn {
    /// Open the column `name` of some files. Fails with [`Error::Unreadable`] if a file cannot be
    /// opened, is not parquet, or does not have the column in a supported form.
    pub fn open(files: &[impl AsRef<Path>], name: &str) -> Result<Self> {
        let files = files.iter().map(|path| Table::open(path.as_ref(), None, name));
        Ok(Self { files: files.collect::<Result<_>>()?, most_page_bytes: usize::MAX })
    }

    /// Open the column in the files before the first one that cannot be opened.
    #[must_use]
    pub fn open_first(files: &[impl AsRef<Path>], name: &str) -> Self {
        let files = files.iter().map_while(|path| Table::open(path.as_ref(), None, name).ok());
        Self { files: files.collect(), most_page_bytes: usize::MAX }
    }

    /// Open the column `name` of a file of `size` bytes, which come from `source`; the path is for
    /// messages.
    pub fn of_source(
        source: Box<dyn ReadSeek>,
        size: u64,
        path: &Path,
        name: &str,
    ) -> Result<Self> {
        let source = TableSource::windowed(source, size);
        let files = vec![Table::open(path, Some(source), name)?];
        Ok(Self { files, most_page_bytes: usize::MAX })
    }

    /// Make a page of more than `bytes` decompressed bytes an error. A thread holds at most three
    /// pages: the current page, compressed and decompressed, and the previous one.
    #[must_use]
    pub fn with_page_limit(self, bytes: usize) -> Self {
        Self { most_page_bytes: bytes, ..self }
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// All rows, in ranges of about 16 MB. Fails with [`Error::Unreadable`] if a file is damaged.
    pub fn ranges(&self) -> Result<Vec<RowRange>> {
        self.ranges_from(0, 0)
    }

    /// All rows from the row `row` of the file `file` on, as [`ranges`](Self::ranges) gives them.
    pub fn ranges_from(&self, file: usize, row: usize) -> Result<Vec<RowRange>> {
        let first = |later| if later == file { row } else { 0 };
        let of_files = (file..self.files()).map(|later| self.ranges_of_file(later, first(later)));
        Ok(of_files.collect::<Result<Vec<_>>>()?.concat())
    }

    /// The rows of one file from the row `row` on, as [`ranges`](Self::ranges) gives them.
    pub fn ranges_of_file(&self, file: usize, row: usize) -> Result<Vec<RowRange>> {
        let of_group = |group| self.read(file, || self.ranges_of_group(file, group));
        let of_groups = (0..self.groups(file)).map(of_group);
        let mut ranges = of_groups.collect::<Result<Vec<_>>>()?;
        for (group, ranges) in ranges.iter_mut().enumerate() {
            skip_rows(ranges, row.saturating_sub(self.first_row(file, group)));
        }
        Ok(ranges.concat())
    }

    /// A row group; if it is large, it is divided at page boundaries.
    fn ranges_of_group(&self, file: usize, group: usize) -> ParquetResult<Vec<RowRange>> {
        let chunk = self.chunk(file, group);
        let rows = usize::try_from(chunk.num_values())?;
        // The metadata of a page tell its rows but not its bytes, so the ranges have about equal
        // rows. A range is found by passing over the pages before it, so there are few, whatever
        // size the file states.
        let count =
            usize::try_from(chunk.uncompressed_size())?.div_ceil(RANGE_BYTES).min(MAX_RANGES);
        let count = count.min(usize::try_from(chunk.compressed_size())?.div_ceil(RANGE_FILE_BYTES));
        let (mut ends, mut end) = (Vec::new(), 0);
        if count > 1 {
            let mut pages = self.pages(file, group)?;
            while let Some(page) = pages.peek_next_page()? {
                end += rows_of(&page);
                if end - ends.last().unwrap_or(&0) >= rows.div_ceil(count) {
                    ends.push(end);
                }
                pages.skip_next_page()?;
            }
        }
        ends.push(rows);
        Ok(ranges_between(file, group, ends))
    }

    /// The rows of a row group, where those of each page that is too large to be decompressed are a
    /// range of their own.
    pub(crate) fn readable(&self, file: usize, group: usize) -> ParquetResult<Vec<RowRange>> {
        let chunk = self.chunk(file, group);
        let rows = usize::try_from(chunk.num_values())?;
        let (mut ends, mut end) = (Vec::new(), 0);
        if usize::try_from(chunk.uncompressed_size())? > self.most_page_bytes {
            let mut pages = self.pages(file, group)?;
            // A damaged header ends this loop; reading the rows after it reports the error.
            while let Ok(Some((page, bytes))) = pages.peek() {
                let start = end;
                // A header may claim any number of rows.
                end += rows_of(&page).min(rows - end);
                if bytes > self.most_page_bytes {
                    ends.extend([start, end]);
                }
                pages.skip_next_page()?;
            }
        }
        ends.push(rows);
        Ok(ranges_between(file, group, ends))
    }

    fn chunk(&self, file: usize, group: usize) -> &ColumnChunkMetaData {
        let Table { metadata, column, .. } = &self.files[file];
        metadata.row_group(group).column(*column)
    }

    /// The pages of the column in a row group.
    fn pages(&self, file: usize, group: usize) -> ParquetResult<Pages> {
        let Table { path, object, .. } = &self.files[file];
        Pages::new(source(path, object.as_ref())?, self.chunk(file, group), self.most_page_bytes)
    }

    /// Read a part of a file, which may be damaged.
    pub(crate) fn read<T>(
        &self,
        file: usize,
        read: impl FnOnce() -> ParquetResult<T>,
    ) -> Result<T> {
        catch_panic(read).map_err(|error| unreadable(self.path(file), error))
    }

    /// The approximate number of bytes of text in a range.
    ///
    /// # Panics
    ///
    /// If the files do not have the range, as for each method that takes one.
    pub fn size(&self, range: &RowRange) -> usize {
        let chunk = self.chunk(range.file, range.group);
        let [bytes, rows] = [chunk.uncompressed_size(), chunk.num_values()]
            .map(|number| usize::try_from(number).unwrap_or(0));
        (bytes / rows.max(1)).saturating_mul(range.rows.len())
    }

    /// Call `sink` with the index in the file and the bytes of each row of a range, in order; a null
    /// has no bytes. Fails if the file cannot be read, and with any error of `sink`.
    pub fn for_each(
        &self,
        range: &RowRange,
        sink: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let first = self.first_row(range.file, range.group);
        let mut reader = RowReader::open(self, range)?;
        while let Some((row, text)) = reader.next(self)? {
            sink((first + row) as u64, text.data())?;
        }
        Ok(())
    }

    /// The path of a file.
    pub(crate) fn path(&self, file: usize) -> &Path {
        &self.files[file].path
    }

    /// The number of row groups of a file.
    pub(crate) fn groups(&self, file: usize) -> usize {
        self.files[file].metadata.num_row_groups()
    }

    /// The number of rows of a file, according to its footer.
    pub fn rows(&self, file: usize) -> usize {
        self.first_row(file, self.groups(file))
    }

    /// The index in the file of the first row of a row group.
    pub fn first_row(&self, file: usize, group: usize) -> usize {
        self.files[file].starts[group]
    }
}

/// Reads the rows of a range, one after another.
pub(crate) struct RowReader {
    /// The range without the rows decoded so far.
    range: RowRange,
    column: ColumnReaderImpl<ByteArrayType>,
    /// The decoded rows that were not returned.
    texts: vec::IntoIter<ByteArray>,
}

impl RowReader {
    /// Start to read a range of rows, which the files must have. Fails if the file cannot be read.
    pub(crate) fn open(of: &TextColumn, range: &RowRange) -> Result<Self> {
        let &RowRange { file, group, ref rows } = range;
        let column = of.read(file, || {
            let (chunk, pages) = (of.chunk(file, group), of.pages(file, group)?);
            let mut column = ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages));
            let step = if shares_prefixes(chunk) { 1 } else { rows.start.max(1) };
            let mut steps = (0..rows.start).step_by(step);
            steps.try_for_each(|_| column.skip_records(step).map(drop))?;
            Ok(column)
        })?;
        Ok(Self { range: range.clone(), column, texts: vec::IntoIter::default() })
    }

    /// The index in the row group and the bytes of the next row; a null has no bytes. `of` must be
    /// the column passed to [`open`](Self::open). Fails if the file cannot be read.
    pub(crate) fn next(&mut self, of: &TextColumn) -> Result<Option<(usize, ByteArray)>> {
        if self.texts.len() == 0 && !Range::is_empty(&self.range.rows) {
            self.texts = of.read(self.range.file, || self.decode(of))?.into_iter();
        }
        // The start of the range has moved beyond the decoded rows already.
        let row = self.range.rows.start - self.texts.len();
        Ok(self.texts.next().map(|text| (row, text)))
    }

    /// Decode the next rows.
    fn decode(&mut self, of: &TextColumn) -> ParquetResult<Vec<ByteArray>> {
        let RowRange { file, group, rows } = &mut self.range;
        let most = rows_at_once(of.chunk(*file, *group)).min(rows.len());
        let (mut levels, mut texts) = (Vec::new(), Vec::new());
        let (count, ..) = self.column.read_records(most, Some(&mut levels), None, &mut texts)?;
        // Nulls have a level but no text.
        if levels.contains(&0) {
            let mut others = texts.into_iter();
            let text = |level: &i16| if *level == 0 { Some("".into()) } else { others.next() };
            texts = levels.iter().map_while(text).collect();
        }
        // By the footer the range has more rows, but the row group has ended.
        if count == 0 || texts.len() != count {
            return Err(general(format!("its row group ends after {} rows", rows.start)));
        }
        rows.start += count;
        Ok(texts)
    }
}

/// The number of rows in a page of a flat column.
fn rows_of(page: &PageMetadata) -> usize {
    page.num_rows.or(page.num_levels).filter(|_| !page.is_dict).unwrap_or(0)
}

/// The compressed bytes that the footer of a file states, and the values and rows, each at most 2^63.
///
/// ```
/// use std::io::Cursor;
/// use bytepair::corpus::parquet::stated_size;
/// assert!(stated_size(Box::new(Cursor::new(b"no table")), 8, "a.parquet".as_ref()).is_err());
/// ```
pub fn stated_size(source: Box<dyn ReadSeek>, size: u64, path: &Path) -> Result<(u64, u64)> {
    let source = TableSource::windowed(source, size);
    let footer = catch_panic(|| read_footer(&source)).map_err(|error| unreadable(path, error))?;
    let mut stated = (0u64, 0u64);
    for group in footer.row_groups() {
        stated.1 = stated.1.saturating_add(group.num_rows().unsigned_abs());
        for chunk in group.columns() {
            stated.0 = stated.0.saturating_add(chunk.compressed_size().unsigned_abs());
            stated.1 = stated.1.saturating_add(chunk.num_values().unsigned_abs());
        }
    }
    Ok(stated)
}

/// Read a file that may be damaged. The parquet crate checks most values in a file, but not all; a
/// panic in it becomes an error.
pub(crate) fn catch_panic<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    let damaged = |_| Err(general("it is damaged"));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

/// The error for a file whose footer cannot be read, with what it may be and what to do.
fn not_parquet(path: &Path, error: ParquetError) -> ParquetError {
    match (error, stand_in_at(path)) {
        (ParquetError::External(inner), _) => ParquetError::External(inner),
        (_, Some(reason)) => because(reason),
        (ParquetError::General(reason) | ParquetError::EOF(reason), None) => {
            because(Reason::new(reason, const { &Hint::new("download or write it again") }))
        }
        (other, None) => other,
    }
}

/// Convert an error of the parquet crate. An error of this crate that it wraps is returned
/// unchanged.
pub(crate) fn unreadable(path: &Path, error: ParquetError) -> Error {
    let reason = match &error {
        ParquetError::General(reason) | ParquetError::EOF(reason) => reason.clone(),
        _ => error.to_string(),
    };
    let otherwise = || Error::unreadable(path, reason);
    let ParquetError::External(inner) = error else { return otherwise() };
    if let Some(reason) = inner.downcast_ref::<Reason>() {
        return Error::unreadable(path, reason.clone());
    }
    match inner.downcast_ref::<io::Error>() {
        Some(inner) => Error::of_io(inner, |_| otherwise()),
        None => otherwise(),
    }
}

/// The index of the column `name`. Fails if there is none, or if it does not have one text per row.
fn find(metadata: &ParquetMetaData, name: &str) -> ParquetResult<usize> {
    let schema = metadata.file_metadata().schema_descr();
    let column = schema.columns().iter().position(|column| column.path().parts() == [name]);
    let fields = schema.root_schema().get_fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    match column {
        Some(column) if is_text(&schema.column(column)) => Ok(column),
        None if !names.contains(&name) => {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let text = format!("it has no column '{name}'; it has {names}");
            Err(because(Reason::new(text, OTHER_COLUMN)))
        }
        Some(column) => {
            let kind = schema.column(column).physical_type();
            Err(general(format!("its column '{name}' has type {kind}, not text")))
        }
        None => {
            let text = format!("its column '{name}' is nested, not text");
            Err(because(Reason::new(text, RENDER)))
        }
    }
}

/// Whether a column has one text per row, or only nulls.
fn is_text(column: &ColumnDescriptor) -> bool {
    let logical = column.logical_type_ref();
    let converted = column.converted_type();
    // Bytes without a logical type are texts that some libraries write; each is checked as it is read.
    let is_utf8 = column.physical_type() == Type::BYTE_ARRAY
        && (logical == Some(&LogicalType::String)
            || converted == ConvertedType::UTF8
            || (logical.is_none() && converted == ConvertedType::NONE));
    let is_flat = column.max_rep_level() == 0 && column.path().parts().len() == 1;
    is_flat && (is_utf8 || logical == Some(&LogicalType::Unknown))
}

/// Fails if the compression of a chunk is not supported, or if its metadata are invalid: the
/// parquet crate would panic at a negative offset or size.
pub(crate) fn check_chunk(chunk: &ColumnChunkMetaData) -> ParquetResult<()> {
    let offsets = [chunk.data_page_offset(), chunk.dictionary_page_offset().unwrap_or(0)];
    let sizes = [chunk.compressed_size(), chunk.uncompressed_size(), chunk.num_values()];
    if chunk.file_path().is_some() || offsets.into_iter().chain(sizes).any(|number| number < 0) {
        return Err(general("its metadata are inconsistent"));
    }
    match chunk.compression() {
        // The crate ignores the stated size of a page in the old LZ4.
        old @ (Compression::LZO | Compression::LZ4) => {
            let hint = const { &Hint::new("write it with zstd or LZ4_RAW") };
            Err(because(Reason::new(format!("it is compressed with {old}"), hint)))
        }
        Compression::ZSTD(_) if !cfg!(feature = "zstd") => {
            Err(general("it is compressed with zstd; build bytepair with its feature `zstd`"))
        }
        _ => Ok(()),
    }
}

/// The number of rows to read at once; fewer if texts are large. In a delta encoding, a text shares
/// a prefix with the previous one and may be much longer than its stored bytes, so rows are read
/// one by one.
pub(crate) fn rows_at_once(chunk: &ColumnChunkMetaData) -> usize {
    if shares_prefixes(chunk) {
        return 1;
    }
    let row = chunk.uncompressed_size() / chunk.num_values().max(1);
    (READ_BYTES / usize::try_from(row).unwrap_or(1).max(1)).clamp(1, 1 << 10)
}
