//! Files and bytes to tokenizers, and back.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytepair::formats::{HEAD_BYTES, TokenizerFormat, kind};
use bytepair::{Error, Pattern, Tokenizer};

use crate::arguments::{self, TextSlice, not_null};
use crate::failure::{CallFailure, Code};
use crate::result::{ErrorReport, caught, guard};
use crate::tokenizer::Handle;

/// Where a call puts the tokenizer that it makes.
type Out<'a> = Option<&'a mut MaybeUninit<*mut Handle>>;

pub(crate) fn put_tokenizer(place: Out<'_>, tokenizer: Tokenizer) -> Result<(), CallFailure> {
    let place = not_null("tokenizer", place)?;
    place.write(Box::into_raw(Box::new(Handle { core: Arc::new(tokenizer) })));
    Ok(())
}

/// Load a tokenizer from a native file, which is mapped into memory (read on Windows, where a mapped
/// file could not be replaced), or from a tokenizer.json. The content of the file tells which.
///
/// While the tokenizer is in use, nobody may write to a native file or truncate it; it may be
/// deleted or replaced. The path is UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_load(
    path: *const c_char,
    tokenizer: Option<&mut MaybeUninit<*mut Handle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees that a zero byte ends the path.
        let path = unsafe { path_of(path) }?;
        let mut file = File::open(&path).map_err(|e| unreadable(&path, &e))?;
        let mut head = Vec::new();
        let read = file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|e| unreadable(&path, &e))?;
        if cfg!(not(windows)) && kind(&head)? == TokenizerFormat::Native {
            // SAFETY: the caller guarantees that nobody changes the file.
            return put_tokenizer(tokenizer, unsafe { Tokenizer::map(&file) }?);
        }
        file.rewind().map_err(|e| unreadable(&path, &e))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| unreadable(&path, &e))?;
        put_tokenizer(tokenizer, of_bytes(&bytes)?)
    })
}

/// Load a tokenizer from the bytes of a native file or of a tokenizer.json, which are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_load_bytes(
    data: *const u8,
    length: usize,
    tokenizer: Option<&mut MaybeUninit<*mut Handle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many bytes.
        let bytes = unsafe { arguments::array("data", data, length) }?;
        put_tokenizer(tokenizer, of_bytes(bytes)?)
    })
}

/// Load a tokenizer from a rank file: on each line a token in base64, a space and its rank, which
/// is its id, as tiktoken publishes them.
///
/// The file has neither a split pattern nor special tokens: pass the name of a pattern, such as
/// "gpt4", or a regular expression, and the names of the special tokens with their ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_load_ranks(
    path: *const c_char,
    pattern: *const c_char,
    special_names: *const TextSlice,
    special_ids: *const u32,
    special_count: usize,
    tokenizer: Option<&mut MaybeUninit<*mut Handle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees the arguments as the header says.
        let (path, ranks) = unsafe {
            (
                path_of(path)?,
                RankArguments::new(pattern, special_names, special_ids, special_count)?,
            )
        };
        let bytes = std::fs::read(&path).map_err(|e| unreadable(&path, &e))?;
        put_tokenizer(tokenizer, ranks.load(&bytes)?)
    })
}

/// Load a tokenizer from the bytes of a rank file; see bytepair_load_ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_load_ranks_bytes(
    data: *const u8,
    length: usize,
    pattern: *const c_char,
    special_names: *const TextSlice,
    special_ids: *const u32,
    special_count: usize,
    tokenizer: Option<&mut MaybeUninit<*mut Handle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees the arguments as the header says.
        let (bytes, ranks) = unsafe {
            let ranks = RankArguments::new(pattern, special_names, special_ids, special_count)?;
            (arguments::array("data", data, length)?, ranks)
        };
        put_tokenizer(tokenizer, ranks.load(bytes)?)
    })
}

/// Save a tokenizer as a native file, which replaces a file of that name at once. The path is
/// UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_save(
    tokenizer: Option<&Handle>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees that a zero byte ends the path.
        let path = unsafe { path_of(path) }?;
        Ok(not_null("tokenizer", tokenizer)?.core.save(path)?)
    })
}

/// Free a tokenizer. What was made from it stays valid, except pointers into it. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_tokenizer_free(tokenizer: Option<Box<Handle>>) {
    caught((), || drop(tokenizer));
}

/// What a rank file does not have.
struct RankArguments {
    pattern: Pattern,
    special: Vec<(String, u32)>,
}

impl RankArguments {
    /// # Safety
    ///
    /// A zero byte ends the pattern, and there are `count` names and ids.
    unsafe fn new(
        pattern: *const c_char,
        names: *const TextSlice,
        ids: *const u32,
        count: usize,
    ) -> Result<Self, CallFailure> {
        // SAFETY: the caller guarantees it.
        let (pattern, names, ids) = unsafe {
            (
                arguments::text("pattern", pattern, usize::MAX)?,
                arguments::texts("special_names", names, count)?,
                arguments::array("special_ids", ids, count)?,
            )
        };
        let special = names.into_iter().map(str::to_owned).zip(ids.iter().copied()).collect();
        Ok(Self { pattern: Pattern::new(pattern)?, special })
    }

    fn load(self, bytes: &[u8]) -> Result<Tokenizer, CallFailure> {
        Ok(Tokenizer::from_rank_file(bytes, self.special, self.pattern)?)
    }
}

/// A tokenizer in one of the formats that say all.
fn of_bytes(bytes: &[u8]) -> Result<Tokenizer, CallFailure> {
    match kind(&bytes[..bytes.len().min(HEAD_BYTES)])? {
        TokenizerFormat::Native => Ok(Tokenizer::from_bytes(bytes)?),
        TokenizerFormat::TokenizerJson => Ok(Tokenizer::from_tokenizer_json(bytes)?),
        TokenizerFormat::Ranks => Err(CallFailure::Argument(
            "this is a rank file, which has no split pattern; load it with bytepair_load_ranks"
                .to_owned(),
        )),
    }
}

/// # Safety
///
/// Unless it is NULL, a zero byte ends the path.
unsafe fn path_of(path: *const c_char) -> Result<PathBuf, CallFailure> {
    let path = not_null("path", (!path.is_null()).then_some(path))?;
    // SAFETY: the caller guarantees it.
    let path = unsafe { CStr::from_ptr(path) };
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Ok(PathBuf::from(std::ffi::OsStr::from_bytes(path.to_bytes())))
    }
    #[cfg(not(unix))]
    {
        let text = path.to_str();
        let text = text.map_err(|_| CallFailure::Argument("the path is not UTF-8".to_owned()))?;
        Ok(PathBuf::from(text))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> CallFailure {
    let (path, reason) = (path.display().to_string(), error.to_string());
    CallFailure::Core(Error::Unreadable { path, reason: reason.into() })
}
