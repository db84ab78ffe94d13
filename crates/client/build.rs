//! Gives the shared library its name for the loader.

/// Bumped whenever the C interface changes.
const INTERFACE: u32 = 0;

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmillrace.so.{INTERFACE}");
    println!("cargo:rerun-if-changed=build.rs");
}
