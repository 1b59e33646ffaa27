//! Link options of the library.

fn main() {
    // Its start must come before every other library's, so that those find the environment as
    // the program's parent made it. ld.so(8) starts one object first: `-z initfirst` of ld(1).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
    println!("cargo:rerun-if-changed=build.rs");
}
