//! Prepares the keywords `special`, `prepend`, `append` and `add_special_tokens` for encoding.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use bytepair::{EncodeOptions, Special, Tokenizer};
use pyo3::prelude::*;

use crate::{arguments, errors};

type Values = (Special, Vec<u32>, Vec<u32>);

/// The last options that were used. They are cached because building the search for special tokens
/// takes longer than encoding a short text.
#[derive(Default)]
pub(crate) struct Options {
    last: Mutex<Option<(Values, Arc<EncodeOptions>)>>,
}

/// Prepared options. The default ones are borrowed, which saves measurable time on short texts.
pub(crate) enum Prepared<'a> {
    Plain(&'a EncodeOptions),
    Custom(Arc<EncodeOptions>),
}

impl Deref for Prepared<'_> {
    type Target = EncodeOptions;

    fn deref(&self) -> &EncodeOptions {
        match self {
            Self::Plain(options) => options,
            Self::Custom(options) => options,
        }
    }
}

impl Options {
    pub(crate) fn prepare<'a>(
        &self,
        tokenizer: &'a Tokenizer,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
        adds_special: bool,
    ) -> PyResult<Prepared<'a>> {
        if special.is_none() && prepend.is_none() && append.is_none() && !adds_special {
            return Ok(Prepared::Plain(tokenizer.plain()));
        }
        let (special, prepend, append) = arguments::options(tokenizer, special, prepend, append)?;
        let (prepend, append) = tokenizer.around(prepend, append, adds_special);
        let values: Values = (special, prepend, append);
        // Never blocks: the lock may have been held when the process forked.
        let mut last = self.last.try_lock().ok();
        if let Some((cached, options)) = last.as_deref().and_then(Option::as_ref)
            && *cached == values
        {
            return Ok(Prepared::Custom(Arc::clone(options)));
        }
        let (special, prepend, append) = &values;
        let custom = tokenizer.options(special, prepend, append);
        let custom = Arc::new(errors::checked(custom)?);
        if let Some(last) = last.as_deref_mut() {
            *last = Some((values, Arc::clone(&custom)));
        }
        Ok(Prepared::Custom(custom))
    }
}
