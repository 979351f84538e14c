//! Encodes text into ids.
//!
//! The text is split into pretokens; each pretoken is either a token as a whole, or its bytes are
//! merged. Most pretokens are in the cache, where many are looked up at a time.
//!
//! ```text
//! special            divides the text at added tokens, as the options say
//! prepare            the general way from a text to pretokens, for rules without a fast one
//! repeats            caches the ids of repeated chunks of text
//! encoder            splits the rest into windows of pretokens
//! sections           divides long pretokens at split_points
//! lookup, cache      looks up the ids in the cache
//! misses             merges the pretokens that are not in the cache, many interleaved
//! pretoken           encodes one pretoken, without a cache; user-defined tokens are not merged,
//!                    and the bytes that no token covers left out if the rules ask for it
//! scratch            the buffers of a call, and the sink that receives the ids
//! ```

mod cache;
pub(crate) mod encoder;
mod lookup;
mod misses;
pub(crate) mod prepare;
pub(crate) mod pretoken;
mod repeats;
mod scratch;
mod sections;
pub(crate) mod special;
pub(crate) mod split_points;

pub use scratch::Id;
pub use special::EncodeOptions;
pub use special::Special;
