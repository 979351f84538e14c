//! Counts to a parquet file and back.
//!
//! Each row has a pretoken (the column `pretoken`, bytes) and how often it occurs (the column
//! `count`, an integer). Other tools read and write such files too, so a file may have further
//! columns, and any integer type, page size and encoding. It is read in one pass, one page of each
//! column at a time, and each row is checked before the next is read: a file that claims more rows
//! than it has, or repeats its rows, fails early.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Type, ZstdLevel};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescriptor, ColumnPath};

use crate::corpus::parquet::{
    Pages, TableSource, catch_panic, check_chunk, general, read_footer, rows_at_once, unreadable,
};
use crate::count::{Counts, DistinctRows};
use crate::error::{Error, Result};
use crate::formats;
use crate::memory;

const PRETOKEN: &str = "pretoken";
const COUNT: &str = "count";

/// The number of rows in a row group; a common choice of writers.
const GROUP_ROWS: usize = 1 << 20;
/// At most this many rows, and about this many bytes, are written at once.
const BATCH_ROWS: usize = 1 << 14;
const BATCH_BYTES: usize = 1 << 20;
/// The largest size of a pretoken in bytes: a page, whose size has 31 bits, holds whole pretokens.
const MAX_PRETOKEN_BYTES: usize = i32::MAX as usize - (1 << 20);

/// The columns are optional, like those that Arrow writes, but contain no nulls.
const SCHEMA: &str = "message schema {
    OPTIONAL BYTE_ARRAY pretoken;
    OPTIONAL INT64 count (INTEGER(64, false));
}";

// ---------------------------------------------------------------------------- writing

impl Counts {
    /// Save the counts as a parquet file, with the keys and values of `metadata`. An existing file
    /// is replaced atomically: the new one is written under a temporary name in the same folder,
    /// synced and renamed.
    ///
    /// Fails with [`Error::Unwritable`] if the file cannot be written, or if there is not enough
    /// memory.
    ///
    /// ```no_run
    /// use bytepair::{Counts, CountsFile};
    /// let counts = Counts::new([(&b"hello"[..], 2)]);
    /// counts.save("counts.parquet", &[("corpus", "news")])?;
    /// let file = CountsFile::open("counts.parquet")?;
    /// assert_eq!(file.metadata().next(), Some(("corpus", "news")));
    /// assert_eq!(file.counts()?, counts);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>, metadata: &[(&str, &str)]) -> Result<()> {
        let path = path.as_ref();
        let written = formats::replace_file(path, |file| {
            write(self, metadata, file).map_err(|error| match error {
                ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                    Ok(inner) => *inner,
                    Err(inner) => io::Error::other(inner),
                },
                other => io::Error::other(other),
            })
        });
        written.map_err(|error| Error::of_io(&error, |error| Error::unwritable(path, error)))
    }
}

fn write(counts: &Counts, metadata: &[(&str, &str)], file: &mut File) -> ParquetResult<()> {
    let pair = |&(key, value): &(&str, &str)| KeyValue::new(key.to_owned(), value.to_owned());
    let pairs = metadata.iter().map(pair).collect();
    let zstd = Compression::ZSTD(ZstdLevel::default());
    // Pretokens are distinct, so a dictionary would only take space.
    let properties = WriterProperties::builder()
        .set_compression(if cfg!(feature = "zstd") { zstd } else { Compression::SNAPPY })
        .set_column_dictionary_enabled(ColumnPath::from(PRETOKEN), false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(pairs));
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    for start in (0..counts.len()).step_by(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        write_group(counts, start..counts.len().min(start + GROUP_ROWS), &mut group)?;
        group.close()?;
    }
    writer.close().map(drop)
}

fn write_group(
    counts: &Counts,
    rows: Range<usize>,
    group: &mut SerializedRowGroupWriter<'_, &mut File>,
) -> ParquetResult<()> {
    let missing = || general("a column is missing");
    let batches = rows.clone().step_by(BATCH_ROWS);
    let batches = batches.map(|start| start..rows.end.min(start + BATCH_ROWS));
    let mut column = group.next_column()?.ok_or_else(missing)?;
    for batch in batches.clone().flat_map(|batch| counts.pieces(batch, BATCH_BYTES)) {
        let values = pretokens(counts, &batch)?;
        column.typed::<ByteArrayType>().write_batch(
            &values,
            Some(&DEFINED[..batch.len()]),
            None,
        )?;
    }
    column.close()?;
    let mut column = group.next_column()?.ok_or_else(missing)?;
    for batch in batches {
        let values: Vec<i64> = counts.range(batch.clone()).map(|row| row.1.cast_signed()).collect();
        column.typed::<Int64Type>().write_batch(&values, Some(&DEFINED[..batch.len()]), None)?;
    }
    column.close()
}

/// The definition levels of values that are not null.
static DEFINED: [i16; BATCH_ROWS] = [1; BATCH_ROWS];

/// The pretokens of a batch, which share one copy of their bytes.
fn pretokens(counts: &Counts, batch: &Range<usize>) -> ParquetResult<Vec<ByteArray>> {
    let bytes = counts.bytes_of(batch);
    // Only a batch of one pretoken can be that large.
    if bytes.len() > MAX_PRETOKEN_BYTES {
        let reason = format!("a pretoken of {} bytes does not fit a page", bytes.len());
        return Err(general(reason));
    }
    // The bytes are in memory three times: here, in a page, and compressed.
    memory::check(bytes.len().saturating_mul(3)).map_err(io::Error::from)?;
    let mut rest = Bytes::from(memory::copy(bytes).map_err(io::Error::from)?);
    let next = |(pretoken, _): (&[u8], u64)| rest.split_to(pretoken.len()).into();
    Ok(counts.range(batch.clone()).map(next).collect())
}

// ---------------------------------------------------------------------------- reading

/// A parquet file that may hold counts. Only its footer has been read.
#[derive(Debug)]
pub struct CountsFile {
    path: PathBuf,
    metadata: ParquetMetaData,
}

impl CountsFile {
    /// Read the footer of a parquet file. Fails with [`Error::Unreadable`] if the file cannot be
    /// read or is not a parquet file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let metadata = catch_panic(|| footer(path)).map_err(|error| unreadable(path, error))?;
        Ok(Self { path: path.to_owned(), metadata })
    }

    /// The names of the columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.metadata.file_metadata().schema().get_fields().iter().map(|field| field.name())
    }

    /// The keys and values of the metadata.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.metadata.file_metadata().key_value_metadata();
        let pairs = pairs.into_iter().flatten();
        pairs.filter_map(|pair| Some((&*pair.key, pair.value.as_deref()?)))
    }

    /// Read the counts. Fails with [`Error::Unreadable`] if the file is damaged, if it does not have
    /// the columns `pretoken` (bytes or text) and `count` (integers), if a pretoken is empty or
    /// occurs twice, if a count is not positive, or if a row has a null; and if there is not enough
    /// memory.
    pub fn counts(&self) -> Result<Counts> {
        let failed = |error| unreadable(&self.path, error);
        let pretoken = self.column(PRETOKEN).map_err(failed)?;
        let count = self.column(COUNT).map_err(failed)?;
        let mut rows = DistinctRows::default();
        for group in 0..self.metadata.num_row_groups() {
            self.read_group(group, [pretoken, count], &mut rows).map_err(failed)?;
        }
        Ok(rows.finish())
    }

    /// The index of a column. Fails if the file does not have it, or if its type is wrong.
    fn column(&self, name: &str) -> ParquetResult<usize> {
        let metadata = self.metadata.file_metadata();
        let Some(field) = metadata.schema().get_fields().iter().find(|f| f.name() == name) else {
            let names: Vec<&str> = self.columns().collect();
            return Err(general(format!(
                "it needs the columns pretoken and count; it has {}",
                names.join(", ")
            )));
        };
        let columns = metadata.schema_descr().columns();
        let position = columns.iter().position(|column| column.path().parts() == [name]);
        let is_flat = |&column: &usize| columns[column].max_rep_level() == 0;
        let Some(index) = position.filter(is_flat) else {
            let kind = field.get_basic_info().converted_type();
            return Err(general(format!("the column {name} is nested ({kind}, a list or struct)")));
        };
        let column = &columns[index];
        let (is_right, expected) = match name {
            COUNT => (is_integer(column), "integers"),
            _ => (is_bytes(column), "bytes"),
        };
        if is_right {
            return Ok(index);
        }
        let (logical, physical) = (column.logical_type_ref(), column.physical_type());
        let kind = logical.map_or_else(|| physical.to_string(), |kind| format!("{kind:?}"));
        Err(general(format!("the column {name} must have {expected}; its type is {kind}")))
    }

    fn read_group(
        &self,
        group: usize,
        [pretoken, count]: [usize; 2],
        rows: &mut DistinctRows,
    ) -> ParquetResult<()> {
        let mut pretokens = self.values::<ByteArrayType>(group, pretoken)?;
        let mut numbers = self.numbers(group, count)?;
        let chunk = self.metadata.row_group(group).column(pretoken);
        let most = rows_at_once(chunk);
        let mut left = usize::try_from(self.metadata.row_group(group).num_rows())?;
        while left > 0 {
            let batch = most.min(left);
            let counts = numbers(batch)?;
            for (pretoken, count) in pretokens.read(batch)?.iter().zip(counts) {
                rows.push(pretoken.data(), count).map_err(invalid_row)?;
            }
            left -= batch;
        }
        Ok(())
    }

    /// Reads the next counts of a row group from integers of any type. Fails if one is negative.
    fn numbers(&self, group: usize, column: usize) -> ParquetResult<Box<ReadCounts>> {
        let descriptor = self.metadata.file_metadata().schema_descr().column(column);
        let is_unsigned = is_unsigned(&descriptor);
        let checked = move |signed: i64, unsigned: u64| {
            let negative = |_| general(format!("the count {signed} is negative"));
            if is_unsigned { Ok(unsigned) } else { u64::try_from(signed).map_err(negative) }
        };
        if descriptor.physical_type() == Type::INT32 {
            let mut values = self.values::<Int32Type>(group, column)?;
            let count = move |&n: &i32| checked(n.into(), n.cast_unsigned().into());
            return Ok(Box::new(move |rows| values.read(rows)?.iter().map(count).collect()));
        }
        let mut values = self.values::<Int64Type>(group, column)?;
        let count = move |&n: &i64| checked(n, n.cast_unsigned());
        Ok(Box::new(move |rows| values.read(rows)?.iter().map(count).collect()))
    }

    /// A reader of the values of a column in a row group.
    fn values<T: DataType>(&self, group: usize, column: usize) -> ParquetResult<NonNulls<T>> {
        let group = self.metadata.row_group(group);
        let (rows, chunk) = (group.num_rows(), group.column(column));
        check_chunk(chunk)?;
        if chunk.num_values() != rows {
            let values = chunk.num_values();
            return Err(general(format!("a column has {values} values for {rows} rows")));
        }
        let file = TableSource::open(&self.path)?;
        // A page may be as large as its largest pretoken; `Pages` checks that there is enough
        // memory.
        let pages = catch_panic(|| Pages::new(file, chunk, usize::MAX))?;
        let reader = ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages));
        Ok(NonNulls { reader, levels: Vec::new(), values: Vec::new() })
    }
}

/// The error for a row, as an error of the parquet crate.
fn invalid_row(error: Error) -> ParquetError {
    match error {
        Error::Counts { .. } => general(error.to_string()),
        other => ParquetError::External(io::Error::from(other).into()),
    }
}

fn footer(path: &Path) -> ParquetResult<ParquetMetaData> {
    if !path.metadata()?.is_file() {
        return Err(general("this is not a regular file")); // to open a pipe would wait for its writer
    }
    read_footer(&File::open(path)?)
}

fn is_bytes(column: &ColumnDescriptor) -> bool {
    let is_plain = matches!(column.logical_type_ref(), None | Some(LogicalType::String));
    let converted = [ConvertedType::NONE, ConvertedType::UTF8];
    column.physical_type() == Type::BYTE_ARRAY
        && is_plain
        && converted.contains(&column.converted_type())
}

/// Whether a column has integers. To a logical type, the parquet crate adds the converted one.
fn is_integer(column: &ColumnDescriptor) -> bool {
    use ConvertedType::{INT_8, INT_16, INT_32, INT_64, NONE};
    let is_signed = [INT_8, INT_16, INT_32, INT_64].contains(&column.converted_type());
    let is_plain = column.converted_type() == NONE && column.logical_type_ref().is_none();
    [Type::INT32, Type::INT64].contains(&column.physical_type())
        && (is_plain || is_signed || is_unsigned(column))
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    [UINT_8, UINT_16, UINT_32, UINT_64].contains(&column.converted_type())
}

/// Reads the counts of the next rows, given their number.
type ReadCounts = dyn FnMut(usize) -> ParquetResult<Vec<u64>>;

/// Reads the values of a column in a row group, none of them null.
struct NonNulls<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> NonNulls<T> {
    /// The values of the next `rows` rows. Fails if there are fewer, or if one is null.
    fn read(&mut self, rows: usize) -> ParquetResult<&[T::T]> {
        self.levels.clear();
        self.values.clear();
        let Self { reader, levels, values } = self;
        let (read, ..) = catch_panic(|| reader.read_records(rows, Some(levels), None, values))?;
        if read < rows {
            return Err(general("a row group has fewer rows than the footer says"));
        }
        if self.values.len() < rows {
            return Err(general("a row has no pretoken or no count"));
        }
        Ok(&self.values)
    }
}
