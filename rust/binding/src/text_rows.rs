//! `TextRows`: the texts of a parquet file, batch by batch, without Arrow.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytepair::corpus::parquet::{RowRange, RowReader, TextColumn};
use bytepair::memory;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors;

/// The bytes of some texts, end to end; the start of each, and the end of the last.
type TextArrays<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

/// Iterates over the texts of a column, in order, in batches of about as many bytes as asked for;
/// a null is an empty text. The texts may be no UTF-8. Raises `OSError` if the file cannot be read,
/// when it is opened or later.
#[pyclass(name = "TextRows", module = "bytepair._core")]
pub(crate) struct PyTextRows {
    column: TextColumn,
    /// The row groups that are left, the next one last.
    groups: Vec<RowRange>,
    /// Locked, since a reader is not shared by threads.
    reader: Mutex<Option<RowReader>>,
    rows: usize,
    batch_bytes: usize,
}

impl PyTextRows {
    /// The next texts and their ends.
    fn next_batch(&mut self) -> bytepair::Result<(Vec<u8>, Vec<i64>)> {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        // Empty texts are counted too.
        while bytes.len() + ends.len() <= self.batch_bytes {
            let current = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
            let Some(reader) = current else {
                let Some(group) = self.groups.pop() else { break };
                *current = Some(RowReader::open(&self.column, &group)?);
                continue;
            };
            let Some((_, text)) = reader.next(&self.column)? else {
                *current = None;
                continue;
            };
            memory::reserve(&mut bytes, text.len())?;
            memory::reserve(&mut ends, 1)?;
            bytes.extend_from_slice(text);
            ends.push(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        }
        Ok((bytes, ends))
    }
}

#[pymethods]
impl PyTextRows {
    #[new]
    #[pyo3(signature = (path, column, *, batch_bytes, most_page_bytes))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        column: &str,
        batch_bytes: usize,
        most_page_bytes: usize,
    ) -> PyResult<Self> {
        let opened = py.detach(|| {
            let column = TextColumn::open(&[path], column)?;
            let groups = column.groups()?;
            Ok((column.with_bounds(most_page_bytes, usize::MAX), groups))
        });
        let (column, mut groups) = errors::checked(opened)?;
        let rows = groups.iter().map(|group| group.rows.len()).sum();
        groups.reverse();
        Ok(Self { column, groups, reader: Mutex::default(), rows, batch_bytes })
    }

    /// The number of rows of the file.
    fn __len__(&self) -> usize {
        self.rows
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<TextArrays<'py>>> {
        let (bytes, ends) = errors::checked(py.detach(|| self.next_batch()))?;
        let is_over = ends.len() == 1;
        Ok((!is_over).then(|| (bytes.into_pyarray(py), ends.into_pyarray(py))))
    }
}
