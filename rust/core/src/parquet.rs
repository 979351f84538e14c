//! Parquet files in, the texts of a column out, in parts that threads read each by itself.
//!
//! A part is some rows of a row group that begin and end with a page. Whoever reads it unpacks one page
//! after the other, so that a thread holds one page and what is left of the one before, however large
//! the files are.
//!
//! Only what nearly all files are is read: a plain column of UTF-8, of a compression that is built in.
//! Of anything else [`TextColumn::open`] says `None`, and the caller reads it by other means.

mod bounded;

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::schema::types::ColumnDescriptor;

use crate::error::{Error, Result};
use crate::pages::keep_freed;
use crate::text::from_utf8;
use bounded::Pages;

/// A row group of more bytes, unpacked, is read in parts of about so many.
const PART: usize = 1 << 24;

/// Rows of about so many bytes are read at once.
const READ: usize = 1 << 16;

/// What the parquet crate returns.
type Parquet<T> = std::result::Result<T, ParquetError>;

/// A column of texts in some files.
#[derive(Debug)]
pub struct TextColumn {
    files: Vec<(PathBuf, ParquetMetaData)>,
    /// Which column of each file it is.
    columns: Vec<usize>,
    most_page_bytes: u64,
}

/// Rows of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which of the files.
    pub file: usize,
    /// Which row group of it.
    pub group: usize,
    /// Which rows of that.
    pub rows: Range<usize>,
}

/// What the footer of a file says of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Of each row group.
    pub chunks: Vec<Chunk>,
    /// Whether its texts can be read here.
    pub is_read: bool,
}

impl Footer {
    /// That of a file and the column of this name; `None` if there is none, or it is damaged.
    pub fn open(file: &Path, name: &str) -> Option<Self> {
        let of = |(metadata, column): (ParquetMetaData, usize)| {
            let groups = metadata.row_groups().iter();
            let chunks = groups.map(|group| Chunk::of(group, column)).collect();
            Self { chunks, is_read: is_read(&metadata, column) }
        };
        unharmed(|| Ok(opened(file, name)?.map(of))).ok()?
    }
}

/// What the footer of a file says of a column in one row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// How many rows the group has.
    pub rows: i64,
    /// How many texts and nulls.
    pub values: i64,
    /// Bytes of its pages, unpacked.
    pub unpacked: i64,
    /// Bytes of its pages in the file.
    pub packed: i64,
    /// Where in the file the page of its dictionary begins, if it has one.
    pub dictionary: Option<i64>,
    /// Where the first page of its data begins.
    pub data: i64,
    /// How its pages are written: the names that the format has.
    pub encodings: Vec<String>,
}

impl Chunk {
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
    /// The column of this name; `None` if a file is none, has no such column, or has it in a form
    /// that is not read here.
    pub fn open(files: &[impl AsRef<Path>], name: &str) -> Option<Self> {
        keep_freed();
        let mut opened = Self { files: Vec::new(), columns: Vec::new(), most_page_bytes: u64::MAX };
        for path in files {
            unharmed(|| opened.add(path.as_ref(), name)).ok()??;
        }
        Some(opened)
    }

    /// To read a page of more bytes, unpacked, is an error. A thread has three such pages in memory at
    /// most: one that is read, the same unpacked, and the one before it.
    #[must_use]
    pub fn with_page_limit(self, bytes: u64) -> Self {
        Self { most_page_bytes: bytes, ..self }
    }

    fn add(&mut self, path: &Path, name: &str) -> Parquet<Option<()>> {
        let found = opened(path, name)?.filter(|(metadata, column)| is_read(metadata, *column));
        let Some((metadata, column)) = found else { return Ok(None) };
        self.files.push((path.to_owned(), metadata));
        self.columns.push(column);
        Ok(Some(()))
    }

    /// All rows, in parts of at most about 16 MB; `None` if a file is damaged.
    pub fn parts(&self) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        for (file, (_, metadata)) in self.files.iter().enumerate() {
            for group in 0..metadata.num_row_groups() {
                parts.extend(unharmed(|| self.parts_of(file, group)).ok()?);
            }
        }
        Some(parts)
    }

    /// A row group, divided between pages if it is large.
    fn parts_of(&self, file: usize, group: usize) -> Parquet<Vec<Part>> {
        let part = |rows| Part { file, group, rows };
        let chunk = self.chunk(file, group);
        let rows = usize::try_from(chunk.num_values())?;
        let parts = usize::try_from(chunk.uncompressed_size())?.div_ceil(PART);
        if parts <= 1 {
            return Ok(vec![part(0..rows)]);
        }
        let mut pages = self.pages(file, group)?;
        let (mut divided, mut start, mut end) = (Vec::new(), 0, 0);
        while let Some(page) = pages.peek_next_page()? {
            end += page.num_rows.or(page.num_levels).filter(|_| !page.is_dict).unwrap_or(0);
            if end - start >= rows.div_ceil(parts) {
                divided.push(part(start..end));
                start = end;
            }
            pages.skip_next_page()?;
        }
        if start < rows {
            divided.push(part(start..rows));
        }
        Ok(divided)
    }

    fn chunk(&self, file: usize, group: usize) -> &ColumnChunkMetaData {
        self.files[file].1.row_group(group).column(self.columns[file])
    }

    /// The pages of the column in a row group. Each time the file is opened anew, as those who read
    /// one file through several handles of the system may share the place at which they read.
    fn pages(&self, file: usize, group: usize) -> Parquet<Pages> {
        let (path, chunk) = (&self.files[file].0, self.chunk(file, group));
        let rows = usize::try_from(chunk.num_values())?;
        let file = File::open(path)?;
        unharmed(|| Pages::new(file, chunk, rows, self.most_page_bytes))
    }

    /// About how many bytes of text a part has; 0 if there is no such part.
    pub fn size(&self, part: &Part) -> usize {
        if !self.has(part) {
            return 0;
        }
        let chunk = self.chunk(part.file, part.group);
        let [bytes, rows] = [chunk.uncompressed_size(), chunk.num_values()]
            .map(|number| usize::try_from(number).unwrap_or(0));
        (bytes / rows.max(1)).saturating_mul(part.rows.len())
    }

    /// Whether there are such rows, as far as the files say.
    pub fn has(&self, part: &Part) -> bool {
        let groups = self.files.get(part.file).map_or(0, |(_, metadata)| metadata.num_row_groups());
        let rows = || usize::try_from(self.chunk(part.file, part.group).num_values());
        let Range { start, end } = part.rows;
        part.group < groups && start <= end && rows().is_ok_and(|rows| end <= rows)
    }

    /// Call `sink` with each text of a part in order; a null is an empty text. Fails if the file cannot
    /// be read or is not UTF-8, and with whatever `sink` fails with. Panics if there is no such part.
    pub fn for_each(&self, part: &Part, sink: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        let Part { file, group, rows } = part;
        let path = || self.files[*file].0.display().to_string();
        let wrong = |reason| Error::Unreadable { path: path(), reason };
        let unreadable = |error: ParquetError| wrong(error.to_string());
        let chunk = self.chunk(*file, *group);
        let pages = Box::new(self.pages(*file, *group).map_err(unreadable)?);
        let mut column = ColumnReaderImpl::<ByteArrayType>::new(chunk.column_descr_ptr(), pages);
        unharmed(|| column.skip_records(rows.start)).map_err(unreadable)?;
        let most = rows_at_once(chunk);
        let (mut at, mut levels, mut texts) = (rows.start, Vec::new(), Vec::new());
        while at < rows.end {
            levels.clear();
            texts.clear();
            let asked = most.min(rows.end - at);
            let read = unharmed(|| column.read_records(asked, Some(&mut levels), None, &mut texts));
            let (count, ..) = read.map_err(unreadable)?;
            let missing = || wrong(format!("there are {at} rows in its row group instead of more"));
            if count == 0 {
                return Err(missing());
            }
            let mut found = texts.iter();
            for row in 0..count {
                let is_null = levels.get(row) == Some(&0);
                let bytes = if is_null { None } else { Some(found.next().ok_or_else(missing)?) };
                let text = from_utf8(bytes.map_or(&[], ByteArray::data));
                sink(text.map_err(|error| {
                    let row = self.first_row(*file, *group) + at + row;
                    Error::RowNotUtf8 { path: path(), row, at: error.valid_up_to() }
                })?)?;
            }
            at += count;
        }
        Ok(())
    }

    /// How many rows of a file stand before a row group.
    fn first_row(&self, file: usize, group: usize) -> usize {
        let values = |group| self.chunk(file, group).num_values();
        (0..group).map(|group| usize::try_from(values(group)).unwrap_or(0)).sum()
    }
}

/// Do something with a file that may be damaged, of which the parquet crate does not expect everything:
/// a panic is an error.
fn unharmed<T>(read: impl FnOnce() -> Parquet<T>) -> Parquet<T> {
    let damaged = || Err(ParquetError::General("it is damaged".to_owned()));
    crate::unharmed::unharmed(read).unwrap_or_else(damaged)
}

/// What a file says of itself, and which of its columns has a name.
fn opened(path: &Path, name: &str) -> Parquet<Option<(ParquetMetaData, usize)>> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path)?)?;
    let columns = metadata.file_metadata().schema_descr().columns();
    let column = columns.iter().position(|column| column.path().parts() == [name]);
    Ok(column.map(|column| (metadata, column)))
}

/// Whether a column can be read here.
fn is_read(metadata: &ParquetMetaData, column: usize) -> bool {
    let groups = metadata.row_groups();
    is_text(&metadata.file_metadata().schema_descr().column(column))
        && groups.iter().all(|group| unpacks(group.column(column)))
}

/// Whether a column holds texts, one a row.
fn is_text(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Type::BYTE_ARRAY
        && column.max_rep_level() == 0
        && (column.logical_type_ref() == Some(&LogicalType::String)
            || column.converted_type() == ConvertedType::UTF8)
}

/// Whether a part of a column is compressed in a way that is built in.
fn unpacks(chunk: &ColumnChunkMetaData) -> bool {
    use Compression::{SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(chunk.compression(), UNCOMPRESSED | SNAPPY | ZSTD(_)) && chunk.file_path().is_none()
}

/// How many rows are read at once: texts may be so large that more would not fit memory.
fn rows_at_once(chunk: &ColumnChunkMetaData) -> usize {
    let row = chunk.uncompressed_size() / chunk.num_values().max(1);
    (READ / usize::try_from(row).unwrap_or(1).max(1)).clamp(1, 1 << 10)
}
