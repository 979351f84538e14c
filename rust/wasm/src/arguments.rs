//! Converts values of JavaScript to arguments of the core, or throws a `TypeError` or `RangeError`
//! that names the argument.

use js_sys::{Array, ArrayBuffer, JsString, RangeError, TypeError, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

/// The error for a value of the wrong type, given what it must be.
pub(crate) fn wrong_type(name: &str, expected: &str, value: &JsValue) -> JsValue {
    TypeError::new(&format!("{name} must be {expected}, not {}", shown(value))).into()
}

/// A value as a message shows it.
fn shown(value: &JsValue) -> String {
    if let Some(text) = value.as_string() {
        return format!("{:?}", text.chars().take(40).collect::<String>());
    }
    match value.as_f64().map(|number| number.to_string()) {
        Some(number) => number,
        None if Array::is_array(value) => "an array".to_owned(),
        None if value.is_undefined() || value.is_null() => {
            format!("{value:?}").replace("JsValue", "")
        }
        None => String::from(value.js_typeof().unchecked_into::<JsString>()),
    }
}

/// A string; half of a surrogate pair becomes U+FFFD.
pub(crate) fn string(value: &JsValue, name: &str) -> Result<String, JsValue> {
    value.as_string().ok_or_else(|| wrong_type(name, "a string", value))
}

/// A list of strings.
pub(crate) fn strings(value: &JsValue, name: &str) -> Result<Vec<String>, JsValue> {
    let array: Option<&Array> = value.dyn_ref();
    let array = array.ok_or_else(|| wrong_type(name, "an array of strings", value))?;
    let one = |(at, one): (usize, JsValue)| string(&one, &format!("{name}[{at}]"));
    array.iter().enumerate().map(one).collect()
}

/// Bytes.
pub(crate) fn bytes(value: &JsValue, name: &str) -> Result<Vec<u8>, JsValue> {
    let array = match value.dyn_ref::<ArrayBuffer>() {
        Some(buffer) => Uint8Array::new(buffer),
        None => value
            .dyn_ref::<Uint8Array>()
            .cloned()
            .ok_or_else(|| wrong_type(name, "a Uint8Array", value))?,
    };
    let mut bytes = zeros(array.length(), name)?;
    array.copy_to(&mut bytes);
    Ok(bytes)
}

/// Memory for the copy of an array: if the module cannot have so much, that is an error, and not the
/// end of the module.
fn zeros<T: Clone + Default>(length: u32, name: &str) -> Result<Vec<T>, JsValue> {
    let (mut copy, length) = (Vec::new(), length as usize);
    if copy.try_reserve_exact(length).is_err() {
        let text = format!("{name} has {length} elements, for which the module has no memory");
        return Err(RangeError::new(&text).into());
    }
    copy.resize(length, T::default());
    Ok(copy)
}

/// A whole number of 32 bits, such as an id.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
pub(crate) fn whole(value: &JsValue, name: &str) -> Result<u32, JsValue> {
    let number = value.as_f64().ok_or_else(|| wrong_type(name, "a number", value))?;
    if number.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&number) {
        return Ok(number as u32);
    }
    let text = format!("{name} must be a whole number from 0 to 4294967295, not {number}");
    Err(RangeError::new(&text).into())
}

/// Ids: a `Uint32Array`, or an array of numbers.
pub(crate) fn ids(value: &JsValue, name: &str) -> Result<Vec<u32>, JsValue> {
    if let Some(array) = value.dyn_ref::<Uint32Array>() {
        let mut ids = zeros(array.length(), name)?;
        array.copy_to(&mut ids);
        return Ok(ids);
    }
    let array: Option<&Array> = value.dyn_ref();
    let array = array.ok_or_else(|| wrong_type(name, "a Uint32Array or an array of ids", value))?;
    array.iter().enumerate().map(|(at, id)| whole(&id, &format!("{name}[{at}]"))).collect()
}
