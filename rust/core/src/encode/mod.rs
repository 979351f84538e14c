//! Encodes text into ids.
//!
//! The text is split into pretokens; each pretoken is a token as a whole, or is merged from its
//! bytes. Most pretokens are in the cache, where many are looked up at a time.
//!
//! ```text
//! options, special   special tokens are cut out of the text, if the caller asks for it
//! repeats            chunks of text that came before have their ids already
//! encoder            splits what is left into windows of pretokens
//! lookup             finds their ids in the cache
//! misses             merges those that are not there, many in turns
//! sections           looks up long pretokens section by section, cut at split_points
//! pretoken           the ids of one pretoken, without a cache
//! sink               takes the ids
//! ```

pub(crate) mod encoder;

mod lookup;

mod misses;

pub(crate) mod options;

pub(crate) mod pretoken;

mod repeats;

mod scratch_pool;

mod sections;

mod sink;

pub(crate) mod special;

pub(crate) mod split_points;

pub use options::EncodeOptions;
pub use sink::Id;
pub use special::Special;
