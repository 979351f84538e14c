//! The keywords `special`, `prepend` and `append`, prepared for encoding.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use bytepair::{EncodeOptions, Special, Tokenizer};
use pyo3::prelude::*;

use crate::{arguments, errors};

type Values = (Special, Option<u32>, Option<u32>);

/// The options of encoding, and those that were asked for last: to prepare the search for special
/// tokens takes longer than encoding a short text.
#[derive(Default)]
pub(crate) struct Options {
    plain: EncodeOptions,
    last: Mutex<Option<(Values, Arc<EncodeOptions>)>>,
}

/// Options that are ready. Those without keywords are lent, which every short text notices.
pub(crate) enum Prepared<'a> {
    Plain(&'a EncodeOptions),
    Asked(Arc<EncodeOptions>),
}

impl Deref for Prepared<'_> {
    type Target = EncodeOptions;

    fn deref(&self) -> &EncodeOptions {
        match self {
            Self::Plain(options) => options,
            Self::Asked(options) => options,
        }
    }
}

impl Options {
    pub(crate) fn prepare(
        &self,
        tokenizer: &Tokenizer,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Prepared<'_>> {
        if special.is_none() && prepend.is_none() && append.is_none() {
            return Ok(Prepared::Plain(&self.plain));
        }
        let values = arguments::options(tokenizer, special, prepend, append)?;
        // Nobody waits for the lock: it could have been held when the process was forked.
        let mut last = self.last.try_lock().ok();
        if let Some((known, options)) = last.as_deref().and_then(Option::as_ref)
            && *known == values
        {
            return Ok(Prepared::Asked(Arc::clone(options)));
        }
        let (special, prepend, append) = &values;
        let made = tokenizer.options(special, *prepend, *append);
        let made = Arc::new(made.map_err(|e| errors::python(&e))?);
        if let Some(last) = last.as_deref_mut() {
            *last = Some((values, Arc::clone(&made)));
        }
        Ok(Prepared::Asked(made))
    }
}
