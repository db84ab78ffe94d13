//! Compiles the shim against the installed DPDK and links the four libraries that it needs.

use std::process::Command;

type Failure = Box<dyn std::error::Error>;

/// Every token of `pkg-config --cflags libdpdk`: the crate `pkg-config` drops `-include` and
/// `-march`, without which the headers do not compile.
fn cflags() -> Result<Vec<String>, Failure> {
    let tool = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(tool).args(["--cflags", "libdpdk"]).output()?;
    if !output.status.success() {
        return Err("pkg-config does not find libdpdk: install libdpdk-dev".into());
    }
    Ok(String::from_utf8(output.stdout)?.split_whitespace().map(str::to_owned).collect())
}

fn main() -> Result<(), Failure> {
    println!("cargo:rerun-if-changed=shim.c");
    let library = pkg_config::Config::new()
        .atleast_version("22.11")
        .cargo_metadata(false)
        .probe("libdpdk")?;
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    let mut build = cc::Build::new();
    for flag in cflags()? {
        build.flag(flag);
    }
    // The shim holds the inline burst functions, so it is optimised in every profile.
    build.opt_level(3).warnings(false).file("shim.c").compile("millrace_shim");
    for name in ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"] {
        println!("cargo:rustc-link-lib=dylib={name}");
    }
    Ok(())
}
