//! Compiles the shim against the installed DPDK and links the four libraries that it needs.

use std::path::PathBuf;
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

/// A compiler call with DPDK's flags, optimised in every profile: the C files hold inline burst
/// functions.
fn compiler() -> Result<cc::Build, Failure> {
    let mut build = cc::Build::new();
    for flag in cflags()? {
        build.flag(flag);
    }
    build.opt_level(3).warnings(false).flag("-Werror=implicit-function-declaration");
    Ok(build)
}

/// The packet source as an object that `dpdk-testpmd -d` loads.
fn plugin() -> Result<PathBuf, Failure> {
    let path = PathBuf::from(std::env::var("OUT_DIR")?).join("libmillrace_source.so");
    let mut command = compiler()?.pic(true).get_compiler().to_command();
    command.args(["-shared", "-fPIC", "-DMILLRACE_SOURCE_PLUGIN", "yardstick/source.c", "-o"]);
    let status = command.arg(&path).status()?;
    if status.success() { Ok(path) } else { Err("the packet source does not compile".into()) }
}

fn main() -> Result<(), Failure> {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=yardstick");
    let library = pkg_config::Config::new()
        .atleast_version("22.11")
        .cargo_metadata(false)
        .probe("libdpdk")?;
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    let mut libraries = vec!["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"];
    let mut build = compiler()?;
    build.files(["shim/buffers.c", "shim/bursts.c", "shim/ports.c"]);
    if std::env::var_os("CARGO_FEATURE_YARDSTICKS").is_some() {
        build.files(["yardstick/source.c", "yardstick/tables.c"]);
        libraries.extend(["rte_fib", "rte_lpm", "rte_hash"]);
        println!("cargo:rustc-env=MILLRACE_SOURCE_PLUGIN={}", plugin()?.display());
    }
    build.compile("millrace_shim");
    for name in libraries {
        println!("cargo:rustc-link-lib=dylib={name}");
    }
    Ok(())
}
