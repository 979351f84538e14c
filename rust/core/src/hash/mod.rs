//! Keys of short byte strings, the tables that they index, and digests as text.

pub(crate) mod key;
pub(crate) mod key_batch;
pub(crate) mod key_table;
pub(crate) mod probe_table;
pub(crate) mod row_index;
