//! Files of counts: round trips, and the errors for damaged files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytepair::{Counts, CountsFile, Error};
use parquet::basic::{LogicalType, Repetition, Type};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn read(path: &Path) -> bytepair::Result<Counts> {
    CountsFile::open(path)?.counts()
}

/// Write a file whose columns have other types than those that `Counts::save` writes: integers of
/// 32 bits, signed or unsigned, and strings.
fn write(name: &str, rows: &[(&str, i32)], is_signed: bool) -> Result<PathBuf> {
    let pretoken = types::Type::primitive_type_builder("pretoken", Type::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String));
    let count = types::Type::primitive_type_builder("count", Type::INT32)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::integer(32, is_signed)));
    let fields = vec![Arc::new(pretoken.build()?), Arc::new(count.build()?)];
    let schema = types::Type::group_type_builder("schema").with_fields(fields).build()?;
    let path = path(name);
    let file = std::fs::File::create(&path)?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    let mut column = group.next_column()?.expect("there are two");
    let values: Vec<ByteArray> = rows.iter().map(|(text, _)| ByteArray::from(*text)).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()?;
    let mut column = group.next_column()?.expect("there are two");
    let values: Vec<i32> = rows.iter().map(|&(_, count)| count).collect();
    column.typed::<Int32Type>().write_batch(&values, None, None)?;
    column.close()?;
    group.close()?;
    writer.close()?;
    Ok(path)
}

#[test]
fn saved_counts_are_read_back() {
    let file = path("round-trip.parquet");
    let long = vec![b'a'; 3 << 20];
    let mut rows: Vec<(Vec<u8>, u64)> =
        (0..40_000u64).map(|row| (format!(" word {row}").into(), row + 1)).collect();
    rows[20_000] = (long, u64::MAX);
    rows.push((vec![0xFF, 0], 7));
    for rows in [&rows[..], &rows[..1], &[]] {
        let counts = Counts::new(rows.iter().map(|(pretoken, count)| (&**pretoken, *count)));
        counts.save(&file, &[("key", "value é"), ("empty", "")]).unwrap();
        let opened = CountsFile::open(&file).unwrap();
        assert_eq!(opened.columns().collect::<Vec<_>>(), ["pretoken", "count"]);
        let metadata: Vec<_> = opened.metadata().collect();
        assert_eq!(metadata, [("key", "value é"), ("empty", "")]);
        assert_eq!(opened.counts().unwrap(), counts);
    }
}

#[test]
fn counts_of_other_integer_types_are_read() {
    let rows = [("ab", 1), ("é", i32::MAX)];
    let counts = read(&write("signed.parquet", &rows, true).unwrap()).unwrap();
    assert_eq!(counts, Counts::new([("ab".as_bytes(), 1), ("é".as_bytes(), (1 << 31) - 1)]));
    let counts = read(&write("unsigned.parquet", &[("a", -1)], false).unwrap()).unwrap();
    assert_eq!(counts, Counts::new([(&b"a"[..], u64::from(u32::MAX))]));
}

#[test]
fn errors_name_the_rule_that_a_row_breaks() {
    for (rows, expected) in [
        (&[("a", 1), ("b", 1), ("a", 2)][..], "row 2: it has the pretoken of row 0"),
        (&[("a", 1), ("", 1)], "row 1: the pretoken is empty"),
        (&[("a", 0)], "row 0: the count is 0"),
        (&[("a", 1), ("b", -3)], "the count -3 is negative"),
    ] {
        let file = write("rule.parquet", rows, true).unwrap();
        let Err(Error::Unreadable { path, reason }) = read(&file) else { panic!("{expected}") };
        assert_eq!(path, file.display().to_string());
        assert!(reason.text().contains(expected), "{reason}");
    }
}

/// A small file holds a million equal rows. Reading must fail at the second one, before the rows
/// take memory.
#[test]
fn a_file_of_repeated_rows_is_rejected_at_the_second_row() {
    let rows: Vec<(&str, i32)> = vec![("again and again", 1); 1 << 20];
    let file = write("repeated.parquet", &rows, true).unwrap();
    assert!(file.metadata().unwrap().len() < 10_000);
    let Err(Error::Unreadable { reason, .. }) = read(&file) else { panic!("the file was read") };
    assert!(reason.text().contains("row 1: it has the pretoken of row 0"), "{reason}");
}

#[test]
fn damaged_files_do_not_panic() {
    let file = path("damaged.parquet");
    let counts = Counts::new([(&b"one"[..], 2), (&b" two"[..], 1), (&b" three"[..], 300)]);
    counts.save(&file, &[]).unwrap();
    let good = std::fs::read(&file).unwrap();
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            std::fs::write(&file, bad).unwrap();
            // A damaged file may be read without an error, but the counts must be valid.
            let Ok(counts) = read(&file) else { continue };
            assert!(counts.iter().all(|(pretoken, count)| !pretoken.is_empty() && count > 0));
        }
        std::fs::write(&file, &good[..at]).unwrap();
        assert!(matches!(read(&file), Err(Error::Unreadable { .. })), "{at} bytes");
    }
    assert!(matches!(read(Path::new("/")), Err(Error::Unreadable { .. })));
    assert!(matches!(read(&path("missing")), Err(Error::Unreadable { .. })));
}

#[test]
fn saving_to_a_missing_folder_is_an_error() {
    let missing = path("no-such-folder").join("counts.parquet");
    let saved = Counts::default().save(&missing, &[]);
    assert!(matches!(saved, Err(Error::Unwritable { .. })));
    assert!(!missing.exists());
}
