//! The page of `explore`, and so what its module for browsers takes from JavaScript: any question
//! as JSON with any body is an answer or an error.
//!
//! The first line of the input is the question, the rest its body.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use bytepair::{Pattern, Tokenizer, Vocabulary};
use bytepair_view::View;
use libfuzzer_sys::fuzz_target;

/// So many questions are asked of a view, which keeps the tokenizers that are added.
const QUESTIONS: usize = 64;

/// A view with one tokenizer.
fn fresh() -> View {
    let tokens = (0..=255u8).map(|byte| vec![byte]).chain([b"ab".to_vec(), b"abab".to_vec()]);
    let special = [("<|bos|>".to_owned(), 300), ("<|user_start|>".to_owned(), 301)];
    let vocabulary = Vocabulary::new(tokens.zip(0..), special).unwrap();
    let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4").unwrap()).unwrap();
    let view = View::new("{}").unwrap();
    view.add("mine".to_owned(), Arc::new(tokenizer), Vec::new()).unwrap();
    view
}

thread_local! {
    static ASKED: RefCell<(View, usize)> = RefCell::new((fresh(), 0));
}

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (question, body) = (String::from_utf8_lossy(&data[..end]), data.get(end + 1..));
    ASKED.with_borrow_mut(|(view, asked)| {
        let _any = view.ask(&question, body.unwrap_or_default());
        *asked += 1;
        if *asked == QUESTIONS {
            (*view, *asked) = (fresh(), 0);
        }
    });
});
