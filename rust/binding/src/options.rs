//! The keywords `special`, `prepend` and `append`, prepared for encoding.

use std::sync::{Arc, Mutex};

use bytepair::encode::EncodeOptions;
use bytepair::{Special, Tokenizer};
use pyo3::prelude::*;

use crate::{arguments, errors};

type Values = (Special, Option<u32>, Option<u32>);

/// The options of encoding, and those that were asked for last: to prepare the search for special
/// tokens takes longer than encoding a short text.
#[derive(Default)]
pub(crate) struct Options {
    plain: Arc<EncodeOptions>,
    last: Mutex<Option<(Values, Arc<EncodeOptions>)>>,
}

impl Options {
    pub(crate) fn prepare(
        &self,
        tokenizer: &Tokenizer,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<EncodeOptions>> {
        if special.is_none() && prepend.is_none() && append.is_none() {
            return Ok(Arc::clone(&self.plain));
        }
        let values = arguments::options(tokenizer, special, prepend, append)?;
        // Nobody waits for the lock: it could have been held when the process was forked.
        let mut last = self.last.try_lock().ok();
        if let Some((known, options)) = last.as_deref().and_then(Option::as_ref)
            && *known == values
        {
            return Ok(Arc::clone(options));
        }
        let (special, prepend, append) = &values;
        let made = EncodeOptions::new(tokenizer, special, *prepend, *append);
        let made = Arc::new(made.map_err(|e| errors::python(&e))?);
        if let Some(last) = last.as_deref_mut() {
            *last = Some((values, Arc::clone(&made)));
        }
        Ok(made)
    }
}
