//! `RowPacker`: documents to rows, while documents come.

use bytepair::rows::{RowEnd, RowPacker, RowPiece};
use pyo3::prelude::*;

use crate::row_piece::PyRowPiece;

/// Fills rows with documents by best fit, while documents come.
#[pyclass(name = "RowPacker", module = "bytepair._core")]
pub(crate) struct PyRowPacker(RowPacker);

#[pymethods]
impl PyRowPacker {
    /// With `cut`, the shortest waiting document is cut to fill a row into which none fits; else
    /// the row ends there.
    #[new]
    #[pyo3(signature = (width, buffer, *, cut))]
    fn new(width: usize, buffer: usize, cut: bool) -> Self {
        let end = if cut { RowEnd::Cut } else { RowEnd::Pad };
        Self(RowPacker::new(width, buffer, end))
    }

    /// Add a document; of equally long ones, that with the lowest number is first.
    fn add(&mut self, document: usize, length: usize) {
        self.0.add(document, length);
    }

    /// The next complete row; None if more documents must be added first.
    fn row(&mut self) -> Option<Vec<PyRowPiece>> {
        let piece = |piece: RowPiece| {
            let RowPiece { document, length } = piece;
            PyRowPiece { document, length }
        };
        Some(self.0.row()?.into_iter().map(piece).collect())
    }
}
