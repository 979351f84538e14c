//! Names the shared library as a program that is linked with it looks for it: with the numbers of
//! the versions that are compatible. Before version 1, those with another second number are not.

fn main() {
    let series = match (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")) {
        ("0", minor) => format!("0.{minor}"),
        (major, _) => major.to_owned(),
    };
    let name = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux" | "android" | "freebsd") => format!("-Wl,-soname,libbytepair.so.{series}"),
        Ok("macos") => format!("-Wl,-install_name,@rpath/libbytepair.{series}.dylib"),
        _ => return,
    };
    println!("cargo:rustc-cdylib-link-arg={name}");
    println!("cargo:rerun-if-changed=build.rs");
}
