//! Reads columns of texts from parquet files: all rows in order, or ranges of them on many threads.

mod column;
mod footer;
mod source;
mod table_reader;

pub use column::{RowRange, TextColumn, stated_size};
pub(crate) use column::{catch_panic, check_chunk, rows_at_once, unreadable};
pub(crate) use footer::read_footer;
pub use source::ReadSeek;
pub(crate) use source::{Pages, TableSource, general};
pub use table_reader::TableReader;
