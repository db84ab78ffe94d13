//! Gives the shared library its name for the loader.

/// Bumped whenever the C interface changes: what a program was compiled with must be what it finds.
const INTERFACE: u32 = 1;

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmillrace.so.{INTERFACE}");
    println!("cargo:rerun-if-changed=build.rs");
}
