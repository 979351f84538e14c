//! Parquet files: pages above the size limit, and files or columns that cannot be read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytepair::corpus::parquet::{TableReader, TextColumn};
use bytepair::corpus::{DocumentOptions, DocumentSelection, OnError};
use parquet::basic::{Compression, ConvertedType, Repetition, Type};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types;

/// Write a file with a column of texts in many small pages.
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

/// The texts of a column up to the first error, and this error.
fn read(path: &Path, limit: usize) -> (Vec<String>, Option<String>) {
    let column =
        TextColumn::open(&[path], "text").expect("the column holds texts").with_page_limit(limit);
    let mut texts = Vec::new();
    let parts = column.ranges().expect("the pages can be located");
    let read = column.for_each(&parts[0], &mut |_, text| {
        texts.push(String::from_utf8(text.to_vec()).expect("the texts are UTF-8"));
        Ok(())
    });
    (texts, read.err().map(|error| error.to_string()))
}

#[test]
fn pages_above_the_limit_are_an_error() {
    let mut texts: Vec<String> = (0..500).map(|row| format!("text {row}")).collect();
    texts[300] = "long ".repeat(20_000);
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        #[cfg(feature = "zstd")]
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
    ];
    for (number, compression) in compressions.into_iter().enumerate() {
        let path = write(&format!("pages-{number}"), &texts, compression, false).unwrap();
        assert_eq!(read(&path, 110_000), (texts.clone(), None));
        let (before, error) = read(&path, 90_000);
        assert!(texts[..300].starts_with(&before));
        let error = error.unwrap();
        assert!(error.contains("the page has 10") && error.contains("limit of 90,000"), "{error}");
        let path = write(&format!("dictionary-{number}"), &texts, compression, true).unwrap();
        assert_eq!(read(&path, 200_000), (texts.clone(), None));
        assert!(read(&path, 90_000).1.unwrap().contains("more than the limit of"));
    }
}

#[test]
fn zstd_is_read_or_the_error_names_the_feature() {
    // A column `text` with the texts "low" and "lower".
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zstd.parquet");
    let opened = TextColumn::open(&[&path], "text");
    if cfg!(feature = "zstd") {
        assert_eq!(read(&path, usize::MAX), (vec!["low".to_owned(), "lower".to_owned()], None));
    } else {
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("zstd.parquet cannot be read"), "{error}");
        assert!(error.contains("with its feature `zstd`"), "{error}");
    }
}

#[test]
fn errors_tell_why_a_column_cannot_be_read() {
    let path = write("column", &["low".to_owned()], Compression::UNCOMPRESSED, false).unwrap();
    let wrong = |path: &Path, name| TextColumn::open(&[path], name).unwrap_err().to_string();
    assert!(wrong(&path, "texts").contains("it has no column 'texts'; it has text"));
    assert!(wrong(&path.join("missing"), "text").contains("cannot be read"));
    let not_parquet = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(
        wrong(&not_parquet, "text").contains("Cargo.toml cannot be read: Invalid Parquet file")
    );
}

#[test]
fn rows_of_pages_above_the_limit_can_be_skipped() {
    let mut texts: Vec<String> = (0..500).map(|row| format!("text {row}")).collect();
    texts[300] = "long ".repeat(20_000);
    let path = write("left-out", &texts, Compression::SNAPPY, false).unwrap();
    let read = |on_error, first_row| {
        let column = TextColumn::open(&[&path], "text").unwrap().with_page_limit(90_000);
        let options = DocumentOptions { on_error, ..DocumentOptions::default() };
        let selection = DocumentSelection { first_row, ..DocumentSelection::default() };
        let mut reader = TableReader::new(column, options, selection);
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        while let Some(documents) = reader.read()? {
            found.extend(documents.texts()?.map(|(_, text)| text.to_owned()));
            skipped.extend(documents.skipped);
        }
        Ok::<_, bytepair::Error>((found, skipped))
    };
    let error = read(OnError::Strict, 0).unwrap_err().to_string();
    assert!(error.contains("left-out, row ") && error.contains("the page has 10"), "{error}");
    let (found, skipped) = read(OnError::Skip, 0).unwrap();
    let [skip] = &skipped[..] else { panic!("{skipped:?}") };
    let [start, end] = [skip.row, skip.row + skip.rows].map(|row| usize::try_from(row).unwrap());
    assert!(start <= 300 && 300 < end && end - start < 300);
    assert_eq!(found, [&texts[..start], &texts[end..]].concat());
    let (found, skipped) = read(OnError::Skip, skip.row + 1).unwrap();
    assert_eq!((skipped[0].row, skipped[0].rows), (skip.row + 1, skip.rows - 1));
    assert_eq!(found, texts[end..]);
}
