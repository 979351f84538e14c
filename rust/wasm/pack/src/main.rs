//! `pack MODULE FOLDER`: a compiled module in; `bytepair_bg.wasm`, its JavaScript as an ES module
//! with types, and in `FOLDER/classic` its JavaScript as a plain script, out. A page that is a file
//! may not run modules in a thread of its own.

use std::path::Path;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        eprintln!("pack MODULE FOLDER");
        return ExitCode::FAILURE;
    };
    let pack = |classic: bool, folder: &Path| {
        let mut bindgen = Bindgen::new();
        bindgen.input_path(module).out_name("bytepair").typescript(!classic);
        bindgen.remove_name_section(true).remove_producers_section(true);
        let bindgen = if classic { bindgen.no_modules(true) } else { bindgen.web(true) };
        bindgen.and_then(|bindgen| bindgen.generate(folder))
    };
    let folder = Path::new(folder);
    match pack(true, &folder.join("classic")).and_then(|()| pack(false, folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
