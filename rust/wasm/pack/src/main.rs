//! `pack MODULE FOLDER`: a compiled module in, `bytepair.js`, `bytepair.d.ts` and
//! `bytepair_bg.wasm` out.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        eprintln!("pack MODULE FOLDER");
        return ExitCode::FAILURE;
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("bytepair").typescript(true);
    bindgen.remove_name_section(true).remove_producers_section(true);
    let packed = bindgen.web(true).and_then(|bindgen| bindgen.generate(folder));
    match packed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
