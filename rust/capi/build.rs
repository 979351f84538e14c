//! Names the shared library as a program that is linked with it looks for it.

fn main() {
    let name = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => "-Wl,-soname,libbytepair.so",
        Ok("macos") => "-Wl,-install_name,@rpath/libbytepair.dylib",
        _ => return,
    };
    println!("cargo:rustc-cdylib-link-arg={name}");
    println!("cargo:rerun-if-changed=build.rs");
}
