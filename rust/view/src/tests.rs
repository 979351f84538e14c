//! The whole view: what it answers, and what it refuses.

use super::*;

fn view() -> View {
    let view = View::new("{}").unwrap();
    let text = "low lower lowest slow slower".repeat(3);
    let question = r#"{"what": "train", "name": "small", "size": 270, "pattern": "gpt4"}"#;
    assert_eq!(view.ask(question, text.as_bytes()), Ok(Answer::Json("0".to_owned())));
    view
}

fn json(view: &View, question: &str, body: &str) -> Value {
    match view.ask(question, body.as_bytes()).unwrap() {
        Answer::Json(json) => serde_json::from_str(&json).unwrap(),
        Answer::Bytes(bytes) => panic!("{} bytes", bytes.len()),
    }
}

#[test]
fn few_tokenizers_stand_side_by_side() {
    let shown = |count| {
        let question = json!({ "what": "compare", "shown": vec!["0"; count].join(",") });
        view().ask(&question.to_string(), b"low")
    };
    assert!(shown(MAX_TOKENIZERS).is_ok());
    assert!(shown(MAX_TOKENIZERS + 1).is_err());
}

#[test]
fn steps_end_where_encoding_ends() {
    let view = view();
    for word in ["", "x", " lower", "slowest", "é", "lowlowlow"] {
        let answer = json(&view, r#"{"what": "steps", "t": 0}"#, word);
        let steps = answer["steps"].as_array().unwrap();
        let last = steps.last().unwrap()["parts"].as_array().unwrap();
        let ids: Vec<&Value> = last.iter().map(|part| &part["id"]).collect();
        assert_eq!(ids, answer["ids"].as_array().unwrap().iter().collect::<Vec<_>>(), "{word}");
        assert_eq!(steps.len(), word.len() - last.len() + 1);
    }
}

#[test]
fn no_step_crosses_a_border_of_pretokens() {
    let view = view();
    for word in ["1234567", "lowlow slower lowest", "low, low!", "slow\n\nslower"] {
        let answer = json(&view, r#"{"what": "steps", "t": 0}"#, word);
        let last = &answer["steps"].as_array().unwrap().last().unwrap()["parts"];
        let ids: Vec<&Value> = last.as_array().unwrap().iter().map(|part| &part["id"]).collect();
        assert_eq!(ids, answer["ids"].as_array().unwrap().iter().collect::<Vec<_>>(), "{word}");
    }
}

#[test]
fn the_files_of_a_tokenizer_are_read_back() {
    let view = view();
    for format in ["native", "json"] {
        let question = format!(r#"{{"what": "file", "t": 0, "format": "{format}"}}"#);
        let Answer::Bytes(file) = view.ask(&question, b"").unwrap() else { panic!("{format}") };
        let number = view.ask(r#"{"what": "add", "name": "again"}"#, &file).unwrap();
        let Answer::Json(number) = number else { panic!("{format}") };
        let shown = format!(r#"{{"what": "compare", "shown": "0,{number}"}}"#);
        let Answer::Bytes(split) = view.ask(&shown, b"slower lowest").unwrap() else {
            panic!("{format}")
        };
        let (first, second) = split.split_at(split.len() / 2);
        assert_eq!(first, second, "{format}");
    }
}

#[test]
fn ids_that_are_typed_become_text() {
    let view = view();
    let answer = json(&view, r#"{"what": "decode", "t": 0}"#, "[108, 111]\n119");
    assert_eq!(answer, json!({ "text": "low", "exact": false })); // one token or two
    let answer = json(&view, r#"{"what": "decode", "t": 0}"#, "120 33");
    assert_eq!(answer, json!({ "text": "x!", "exact": true }));
}

#[test]
fn a_removed_tokenizer_answers_no_more_and_the_others_keep_their_numbers() {
    let view = view();
    let file = view.ask(r#"{"what": "file", "t": 0, "format": "native"}"#, b"").unwrap();
    let Answer::Bytes(file) = file else { panic!("no file") };
    view.ask(r#"{"what": "add", "name": "second"}"#, &file).unwrap();
    view.ask(r#"{"what": "remove", "t": 0}"#, b"").unwrap();
    let about = json(&view, r#"{"what": "about"}"#, "");
    assert_eq!((&about["tokenizers"][0]["t"], &about["tokenizers"][1]), (&json!(1), &Value::Null));
    let error = view.ask(r#"{"what": "steps", "t": 0}"#, b"").unwrap_err();
    assert_eq!(error.to_string(), "there is no tokenizer 0");
    assert_eq!(view.ask(r#"{"what": "add", "name": "3"}"#, &file), Ok(Answer::Json("2".into())));
}

#[test]
fn learned_merges_are_those_of_the_tokenizer() {
    let view = view();
    let answer = json(&view, r#"{"what": "learned", "t": 0, "from": 1}"#, "");
    let all = answer["all"].as_u64().unwrap();
    assert_eq!(answer["merges"].as_array().unwrap().len() as u64, all - 1);
    assert_eq!(answer["merges"][0]["id"], 257);
    assert!(answer["merges"][0]["count"].as_u64().unwrap() > 1);
}

#[test]
fn the_questions_have_the_names_of_the_lists() {
    let view = view();
    for what in READS.iter().chain(&CHANGES) {
        let question = format!(r#"{{"what": "{what}", "t": 0}}"#);
        if let Err(error) = view.ask(&question, b"") {
            assert!(!error.to_string().contains("there is no question"), "{what}");
        }
    }
}

#[test]
fn its_own_templates_are_offered_first_and_rendered_by_the_caller() {
    let templates = json!({ "templates": [{ "name": "plain", "roles": {} }] });
    let view = View::new(&templates.to_string()).unwrap();
    let core =
        Tokenizer::from_rank_file(b"YQ== 0\nYg== 1", [], bytepair::Pattern::new("gpt2").unwrap());
    view.add("mine".to_owned(), Arc::new(core.unwrap()), vec!["default".to_owned()]).unwrap();
    let about = json(&view, r#"{"what": "about"}"#, "");
    assert_eq!(about["tokenizers"][0]["templates"], json!(["default", "plain"]));
    assert_eq!(about["tokenizers"][0]["own"], json!(["default"]));
    let answer = json(&view, r#"{"what": "tokens", "t": 0}"#, "[[1, 0], [0, 1]]");
    let token = |id: u32, hex: &str, trained: u8| json!({ "id": id, "hex": hex, "trained": trained, "special": false });
    assert_eq!(answer["tokens"], json!([token(1, "62", 0), token(0, "61", 1)]));
}

#[test]
fn the_page_as_one_file_holds_so_much_and_no_more() {
    let (view, files) = (view(), BTreeMap::new());
    let long = "a".repeat(MAX_TEXT_BYTES + 1);
    let error = |view: &View, text: &str| view.to_html(&files, text, false, None).unwrap_err();
    let reason = "the text has 1,048,577 bytes; a page holds at most 1,048,576";
    assert!(error(&view, &long).to_string().starts_with(reason));
    let reason = "a page holds 1 to 6 tokenizers, not 0";
    assert_eq!(error(&View::new("{}").unwrap(), "").to_string(), reason);
    assert_eq!(error(&view, "").to_string(), "there is no script main.js");
}

#[test]
fn a_page_with_all_views_contains_the_module_and_the_tokenizers() {
    let html = "<!doctype html>\n<html lang=\"en\"><title>page</title>\n<link rel=\"icon\" href=\"x\">\
                <script src=\"main.js\"></script></head><body></body></html>";
    let files = [
        ("index.html", html),
        ("main.js", "1;"),
        ("style.css", ""),
        ("views.css", ""),
        ("icon.svg", ""),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let module = PageModule { wasm: b"wasm", worker: b"worker" };
    let page = view().to_html(&files, "</script>", true, Some(module)).unwrap();
    for id in ["wasm", "worker", "material", "tokenizer-0", "tokenizer-names", "state"] {
        assert!(page.contains(&format!("<script type=\"text/plain\" id=\"{id}\">")), "{id}");
    }
    assert!(page.contains(r#"{"special":true,"text":"\u003c/script\u003e"}"#));
    assert!(page.contains("<title>small · page</title>"));
    assert!(!page.contains("src=") && page.ends_with("</script>\n</body></html>"));
}

#[test]
fn every_wrong_question_has_its_reason() {
    let view = view();
    for (question, body, reason) in [
        ("[", "", "the question is not JSON"),
        ("[]", "", "a question is an object"),
        ("{}", "", "no string \"what\""),
        (r#"{"what": "nothing", "t": 0}"#, "", "there is no question \"nothing\""),
        (r#"{"what": "token", "t": 7}"#, "", "there is no tokenizer 7"),
        (r#"{"what": "token", "t": 0}"#, "", "no number \"id\""),
        (r#"{"what": "token", "t": 0, "id": 999}"#, "", "id 999"),
        (r#"{"what": "compare", "shown": "0,"}"#, "", "no numbers \"shown\""),
        (r#"{"what": "search", "t": 0, "kind": "x"}"#, "", "no search by \"x\""),
        (r#"{"what": "search", "t": 0, "kind": "bytes"}"#, "e4 b", "bytes are pairs"),
        (r#"{"what": "search", "t": 0, "kind": "id"}"#, "x", "an id is a whole number"),
        (r#"{"what": "search", "t": 0, "kind": "regex"}"#, "(", "invalid regular expression"),
        (r#"{"what": "decode", "t": 0}"#, "1 x", "\"x\" is no id"),
        (r#"{"what": "decode", "t": 0}"#, "999", "id 999"),
        (r#"{"what": "add", "name": "a"}"#, "", "the file is empty"),
        (r#"{"what": "add", "name": "a"}"#, "hello", "this is no tokenizer"),
        (r#"{"what": "add", "name": "a"}"#, "YQ== 0", "a rank file has no split pattern"),
        (r#"{"what": "train", "name": "a", "size": 999999}"#, "", "at most 100000 ids"),
        (r#"{"what": "file", "t": 0, "format": "x"}"#, "", "there is no format \"x\""),
        (r#"{"what": "tokens", "t": 0}"#, "[1]", "what is rendered is not JSON"),
        (r#"{"what": "chat", "t": 0, "template": "x"}"#, "[]", "there is no template 'x'"),
    ] {
        let error = view.ask(question, body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason), "{question} {body}: {error}");
    }
    let error = view.ask(r#"{"what": "compare", "shown": "0"}"#, b"a\xFF").unwrap_err();
    assert_eq!(error.to_string(), "the text is not UTF-8 at byte 1");
}

#[test]
fn a_view_holds_so_many_tokenizers_and_no_more() {
    let view = view();
    let file = b"YQ== 0";
    let question = r#"{"what": "add", "name": "a", "pattern": "gpt2"}"#;
    for _ in 1..MAX_TOKENIZERS {
        view.ask(question, file).unwrap();
    }
    assert!(view.ask(question, file).unwrap_err().to_string().contains("remove one first"));
}
