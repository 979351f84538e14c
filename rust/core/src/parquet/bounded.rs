//! The pages of a column, none of which takes more memory than is allowed.
//!
//! A page is unpacked as a whole, and a text is never divided between two: so how large pages are says
//! how much memory reading takes, and a file may say anything. The parquet crate keeps the size to itself;
//! but it reads the header of a page from where the header begins, and there the size stands.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::Parquet;

/// The pages of a column in a row group.
pub(super) struct Pages {
    file: Arc<Noted>,
    reader: SerializedPageReader<Noted>,
    most_bytes: u64,
}

/// A file, and where it was last read from.
struct Noted {
    file: File,
    last: AtomicU64,
}

impl Pages {
    /// Those of a chunk with so many rows; to read one of more than `most_bytes`, unpacked, is an error.
    pub(super) fn new(
        file: File,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        most_bytes: u64,
    ) -> Parquet<Self> {
        let file = Arc::new(Noted { file, last: AtomicU64::new(0) });
        let reader = SerializedPageReader::new(Arc::clone(&file), chunk, rows, None)?;
        Ok(Self { file, reader, most_bytes })
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Parquet<Option<Page>> {
        if self.reader.peek_next_page()?.is_none() {
            return Ok(None);
        }
        let bytes = self.file.size_of_page()?;
        if bytes > self.most_bytes {
            return Err(ParquetError::General(format!(
                "a page has {bytes} bytes, which are unpacked at once, and {} are allowed; raise the limit on \
                 memory, or write the file with smaller pages (a text is never divided between two)",
                self.most_bytes
            )));
        }
        self.reader.get_next_page()
    }

    fn peek_next_page(&mut self) -> Parquet<Option<PageMetadata>> {
        self.reader.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Parquet<()> {
        self.reader.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Parquet<bool> {
        self.reader.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Parquet<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl Length for Noted {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Noted {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Parquet<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Parquet<Bytes> {
        self.file.get_bytes(start, length)
    }
}

impl Noted {
    /// How many bytes a page has when it is unpacked, whose header was read last.
    ///
    /// A header begins with three numbers: the kind of the page, its size unpacked, and its size.
    fn size_of_page(&self) -> Parquet<u64> {
        let mut header = self.file.get_read(self.last.load(Ordering::Relaxed))?;
        number(&mut header)?;
        number(&mut header)
    }
}

/// The number in the next field of a header; it is not negative.
fn number(header: &mut impl Read) -> Parquet<u64> {
    /// A number of 32 bits, in the field behind the last one.
    const NEXT: u8 = 0x15;
    let damaged = || ParquetError::General("the header of a page is damaged".to_owned());
    let mut byte = [0];
    header.read_exact(&mut byte)?;
    if byte != [NEXT] {
        return Err(damaged());
    }
    let mut folded = 0;
    for shift in (0..35).step_by(7) {
        header.read_exact(&mut byte)?;
        folded |= u64::from(byte[0] & 0x7F) << shift;
        if byte[0] < 0x80 {
            return Ok(folded / 2);
        }
    }
    Err(damaged())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use parquet::basic::{Compression, ConvertedType, Repetition, Type, ZstdLevel};
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types;

    use super::*;
    use crate::parquet::TextColumn;

    /// A file with a column of texts, a page for every few bytes of them.
    fn write(name: &str, texts: &[String], compression: Compression, dictionary: bool) -> PathBuf {
        let path = std::env::temp_dir().join(format!("bytepair-{}-{name}", std::process::id()));
        let column = types::Type::primitive_type_builder("text", Type::BYTE_ARRAY)
            .with_repetition(Repetition::REQUIRED)
            .with_converted_type(ConvertedType::UTF8);
        let fields = vec![Arc::new(column.build().unwrap())];
        let schema = types::Type::group_type_builder("schema").with_fields(fields).build().unwrap();
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(dictionary)
            .set_data_page_size_limit(2000)
            .set_write_batch_size(1);
        let file = File::create(&path).unwrap();
        let properties = Arc::new(properties.build());
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(&**text)).collect();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        path
    }

    /// The texts of a column until there is an error.
    fn read(path: &Path, limit: u64) -> (Vec<String>, Option<String>) {
        let column = TextColumn::open(&[path], "text").unwrap().with_page_limit(limit);
        let mut texts = Vec::new();
        let read = column.for_each(0, &mut |text| {
            texts.push(text.to_owned());
            Ok(())
        });
        (texts, read.err().map(|error| error.to_string()))
    }

    #[test]
    fn pages_up_to_the_limit_are_read_and_larger_ones_are_an_error() {
        let mut texts: Vec<String> = (0..500).map(|row| format!("text {row}")).collect();
        texts[300] = "long ".repeat(20_000);
        let zstd = Compression::ZSTD(ZstdLevel::default());
        for (number, compression) in [Compression::UNCOMPRESSED, zstd].into_iter().enumerate() {
            let path = write(&format!("pages-{number}"), &texts, compression, false);
            assert_eq!(read(&path, 110_000), (texts.clone(), None));
            let (before, error) = read(&path, 90_000);
            assert!(texts[..300].starts_with(&before));
            let error = error.unwrap();
            assert!(
                error.contains("a page has 10") && error.contains("90000 are allowed"),
                "{error}"
            );
            std::fs::remove_file(path).unwrap();
            let path = write(&format!("dictionary-{number}"), &texts, compression, true);
            assert_eq!(read(&path, 200_000), (texts.clone(), None));
            assert!(read(&path, 90_000).1.unwrap().contains("allowed"));
            std::fs::remove_file(path).unwrap();
        }
    }
}
