//! Bundles scripts that import each other into one script without imports.
//!
//! Each file becomes a function that runs once, after the files that it imports, and returns what it
//! exports. Only the forms of imports and exports that the page uses are supported, one per line;
//! everything else is an error.

use std::collections::BTreeMap;

use fancy_regex::Regex;

use crate::error::{ViewResult, wrong};

/// The files of a page, by name.
pub(crate) type PageFiles = BTreeMap<String, String>;

/// The regular expressions that find imports, exports, and what cannot be bundled.
struct Forms {
    import: Regex,
    export: Regex,
    strange: Regex,
    waits: Regex,
}

impl Forms {
    fn new() -> ViewResult<Self> {
        let regex = |text| Regex::new(text).map_err(|error| wrong(error.to_string()));
        Ok(Self {
            import: regex(
                r#"(?m)^import (?:\* as )?(\w+|\{ [\w, ]+ \}) from "\./([\w-]+)\.js";$"#,
            )?,
            export: regex(r"(?m)^export ((?:async )?function|class|const) (\w+)")?,
            strange: regex(r"(?im)^(?:import|export)\b.*|\bimport\(|<!--|</?script")?,
            waits: regex(r"(?m)^(?:const .* = )?await ")?,
        })
    }

    /// The names of the files that a script imports.
    fn imports(&self, script: &str) -> Vec<String> {
        let captures = self.import.captures_iter(script).filter_map(Result::ok);
        captures.map(|one| format!("{}.js", &one[2])).collect()
    }

    /// A script as a function that returns what it exports.
    fn wrapped(&self, name: &str, script: &str) -> ViewResult<String> {
        let imported = self.import.captures_iter(script).filter_map(Result::ok);
        let constants = imported.map(|one| {
            let names = one[1].replace(" as ", ": ");
            (one[0].to_owned(), format!("const {names} = ${};", &one[2]))
        });
        let mut body = script.to_owned();
        for (import, constant) in constants {
            body = body.replace(&import, &constant);
        }
        let exports = self.export.captures_iter(body.as_str()).filter_map(Result::ok);
        let exports: Vec<String> = exports.map(|one| one[2].to_owned()).collect();
        let body = self.export.replace_all(&body, "$1 $2");
        let body: &str = &body;
        if let Ok(Some(strange)) = self.strange.find(body) {
            let strange = strange.as_str();
            return Err(wrong(format!("{name} has {strange:?}, which cannot be bundled")));
        }
        let waits = self.waits.is_match(body).unwrap_or(true);
        let begin = if waits { "await (async () => {" } else { "(() => {" };
        let (constant, exports) = (name.trim_end_matches(".js"), exports.join(", "));
        Ok(format!("const ${constant} = {begin}\n{body}\nreturn {{ {exports} }};\n}})();"))
    }
}

/// One script equivalent to `entry`. Fails if a script is missing, if scripts import each other in a
/// circle, or if one cannot be bundled or would end its element of HTML.
pub(crate) fn bundle(files: &PageFiles, entry: &str) -> ViewResult<String> {
    let (forms, mut order) = (Forms::new()?, Vec::new());
    visit(&forms, files, entry, &mut order, &mut Vec::new())?;
    let scripts = order.iter().map(|name| forms.wrapped(name, &files[name]));
    Ok(scripts.collect::<ViewResult<Vec<_>>>()?.join("\n"))
}

/// Append a file to the order, after those that it imports; `above` are those that import it.
fn visit(
    forms: &Forms,
    files: &PageFiles,
    name: &str,
    order: &mut Vec<String>,
    above: &mut Vec<String>,
) -> ViewResult<()> {
    if order.iter().any(|one| one == name) {
        return Ok(());
    }
    let is_circle = above.iter().any(|one| one == name);
    above.push(name.to_owned());
    if is_circle {
        let circle = above.join(" ");
        return Err(wrong(format!("scripts import each other in a circle: {circle}")));
    }
    let script = files.get(name).ok_or_else(|| wrong(format!("there is no script {name}")))?;
    for import in forms.imports(script) {
        visit(forms, files, &import, order, above)?;
    }
    above.pop();
    order.push(name.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pairs: &[(&str, &str)]) -> PageFiles {
        pairs.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn a_script_runs_once_after_those_that_it_imports() {
        let files = files(&[
            ("a.js", "export const one = 1;"),
            ("b.js", "import { one as first } from \"./a.js\";\nexport async function two() {}"),
            (
                "c.js",
                "import * as b from \"./b.js\";\nimport { one } from \"./a.js\";\nawait b.two();",
            ),
            ("d.js", "not used"),
        ]);
        let expected = "\
            const $a = (() => {\nconst one = 1;\nreturn { one };\n})();\n\
            const $b = (() => {\nconst { one: first } = $a;\nasync function two() {}\nreturn { two };\n})();\n\
            const $c = await (async () => {\nconst b = $b;\nconst { one } = $a;\nawait b.two();\nreturn {  };\n})();";
        assert_eq!(bundle(&files, "c.js").unwrap(), expected);
    }

    #[test]
    fn unsupported_scripts_are_refused() {
        for (script, reason) in [
            ("import \"./b.js\";", "cannot be bundled"),
            ("export default 1;", "cannot be bundled"),
            ("export { one };", "cannot be bundled"),
            ("const a = '</script>';", "cannot be bundled"),
            ("const a = '<!--';", "cannot be bundled"),
            ("import('./b.js');", "cannot be bundled"),
            ("import * as b from \"./b.js\";", "circle: a.js b.js a.js"),
            ("import { c } from \"./c.js\";", "there is no script c.js"),
        ] {
            let files = files(&[("a.js", script), ("b.js", "import * as a from \"./a.js\";")]);
            let error = bundle(&files, "a.js").unwrap_err().to_string();
            assert!(error.contains(reason), "{script}: {error}");
        }
    }
}
