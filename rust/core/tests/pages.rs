//! Parquet files whose pages are larger than is allowed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytepair::corpus::parquet::TextColumn;
use parquet::basic::{Compression, ConvertedType, Repetition, Type, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types;

/// A file with a column of texts, a page for every few bytes of them.
fn write(
    name: &str,
    texts: &[String],
    compression: Compression,
    dictionary: bool,
) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let column = types::Type::primitive_type_builder("text", Type::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_converted_type(ConvertedType::UTF8);
    let fields = vec![Arc::new(column.build()?)];
    let schema = types::Type::group_type_builder("schema").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(dictionary)
        .set_data_page_size_limit(2000)
        .set_write_batch_size(1);
    let file = File::create(&path)?;
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    let mut column = group.next_column()?.expect("there is one");
    let values: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(&**text)).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()?;
    group.close()?;
    writer.close()?;
    Ok(path)
}

/// The texts of a column until there is an error.
fn read(path: &Path, limit: usize) -> (Vec<String>, Option<String>) {
    let column = TextColumn::open(&[path], "text")
        .expect("it is one of texts")
        .with_bounds(limit, usize::MAX);
    let mut texts = Vec::new();
    let parts = column.ranges().expect("its pages can be found");
    let read = column.for_each(&parts[0], &mut |text| {
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
        let path = write(&format!("pages-{number}"), &texts, compression, false).unwrap();
        assert_eq!(read(&path, 110_000), (texts.clone(), None));
        let (before, error) = read(&path, 90_000);
        assert!(texts[..300].starts_with(&before));
        let error = error.unwrap();
        assert!(
            error.contains("the page has 10") && error.contains("the 90,000 unpacked"),
            "{error}"
        );
        let path = write(&format!("dictionary-{number}"), &texts, compression, true).unwrap();
        assert_eq!(read(&path, 200_000), (texts.clone(), None));
        assert!(read(&path, 90_000).1.unwrap().contains("unpacked at once"));
    }
}
