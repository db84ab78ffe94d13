//! Makes `millrace.h` of the C border: `millrace-header FOLDER-OF-THE-CRATE`, to standard output.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: millrace-header FOLDER");
        return ExitCode::FAILURE;
    };
    match generate(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millrace-header: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let config = cbindgen::Config::from_file(folder.join("header/cbindgen.toml"))?;
    let builder =
        cbindgen::Builder::new().with_config(config).with_src(folder.join("src/c/mod.rs"));
    builder.generate()?.write(std::io::stdout());
    Ok(())
}
