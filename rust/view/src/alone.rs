//! Packs the files of the page into one HTML file that needs no server.
//!
//! There are two pages. The light one shows one text: the data of its tokens are in the page. The
//! whole one has all views, for any text: the module for browsers and the tokenizers are in the page.
//!
//! Both contain their script and style. Their policy lets the browser run only that script, by its
//! hash, and load nothing. Text and names are JSON without `<`, so they cannot end an element.

use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::bundle::{PageFiles, bundle};
use crate::error::{ViewResult, wrong};

/// What a page with all views runs: the module for browsers, and the script of its thread.
#[derive(Debug, Clone, Copy)]
pub struct PageModule<'m> {
    /// The compiled module.
    pub wasm: &'m [u8],
    /// The script.
    pub worker: &'m [u8],
}

/// An element that a script of the page reads: its id and its text.
pub(crate) type Element = (String, String);

/// An element of JSON, which is safe in HTML: without `<`, `>` and `&`.
pub(crate) fn element(id: &str, value: &Value) -> Element {
    let text = value.to_string();
    let safe = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    (id.to_owned(), safe)
}

/// An element of bytes: deflated, in base64.
pub(crate) fn packed(id: String, bytes: &[u8]) -> ViewResult<Element> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let deflated = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let deflated = deflated.map_err(|error| wrong(error.to_string()))?;
    Ok((id, BASE64_STANDARD.encode(deflated)))
}

/// The page: `index.html` with the script `main.js`, the style sheets, and elements; `kind` is the
/// class of the page.
pub(crate) fn html(
    files: &PageFiles,
    names: &[&str],
    kind: &str,
    elements: &[Element],
) -> ViewResult<String> {
    let file = |name: &str| {
        files.get(name).map(String::as_str).ok_or_else(|| wrong(format!("there is no {name}")))
    };
    let (script, style) =
        (bundle(files, "main.js")?, [file("style.css")?, file("views.css")?].concat());
    let module = if kind == WHOLE { " 'wasm-unsafe-eval'; worker-src blob:" } else { "" };
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src \
         '{}'{module}; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:image/svg+xml;base64,{}\">\n<style>{style}</style>\n",
        hash(&script),
        hash(&style),
        BASE64_STANDARD.encode(file("icon.svg")?),
    );
    let data = elements
        .iter()
        .map(|(id, text)| format!("<script type=\"text/plain\" id=\"{id}\">{text}</script>\n"));
    let data: String = data.collect();
    let parts = IndexParts::new(file("index.html")?)?;
    let names = escaped(&names.join(", "));
    Ok(format!(
        "<!doctype html>\n<html class=\"{kind}\"{}<title>{names} · {}{head}{}{data}\
         <script type=\"module\">{script}</script>\n{}",
        parts.begin, parts.title, parts.body, parts.end,
    ))
}

/// The class of the page of one text.
pub(crate) const LIGHT: &str = "one-text";
/// The class of the page with all views.
pub(crate) const WHOLE: &str = "all-views";

/// The parts of `index.html` between those that are replaced.
struct IndexParts<'h> {
    /// After `<html`.
    begin: &'h str,
    /// After `<title>`.
    title: &'h str,
    /// After what the page of the server loads.
    body: &'h str,
    /// From the end of the body on.
    end: &'h str,
}

impl<'h> IndexParts<'h> {
    fn new(html: &'h str) -> ViewResult<Self> {
        let parts = || {
            let (begin, rest) =
                html.strip_prefix("<!doctype html>\n<html")?.split_once("<title>")?;
            let (title, rest) = rest.split_once("<link rel=\"icon\"")?;
            let at = rest.find("</head>")?;
            let (body, end) = rest[at..].split_at(rest[at..].find("</body>")?);
            Some(Self { begin, title, body, end })
        };
        parts().ok_or_else(|| wrong("index.html has not the parts that are replaced"))
    }
}

/// The name of a script or a style in a policy.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, character| {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
        out
    })
}
