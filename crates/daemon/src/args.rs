//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Millrace's data plane: routes and switches packets between the ports of its configuration.
#[derive(Debug, Clone, Parser)]
#[command(name = "millraced", version)]
pub(crate) struct Args {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// API socket, instead of the configuration's
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Check the configuration, say what is wrong, and exit
    #[arg(long)]
    pub(crate) check: bool,
    /// What to log, instead of the configuration's level
    #[arg(long, value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub(crate) log: Option<String>,
}

/// Exit codes.
pub(crate) mod exit {
    /// Something failed while starting or running.
    pub(crate) const FAILURE: u8 = 1;
    /// The configuration is wrong (the code that clap uses for a wrong command line).
    pub(crate) const CONFIGURATION: u8 = 2;
    /// Another daemon holds the API socket.
    pub(crate) const SOCKET: u8 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read() {
        let line =
            ["millraced", "--config", "a.toml", "--socket", "s", "--check", "--log", "debug"];
        let args = Args::try_parse_from(line).unwrap();
        assert_eq!(args.config, PathBuf::from("a.toml"));
        assert_eq!(args.socket, Some(PathBuf::from("s")));
        assert!(args.check);
        assert_eq!(args.log.as_deref(), Some("debug"));
    }

    #[test]
    fn a_missing_configuration_and_an_unknown_level_are_refused() {
        assert!(Args::try_parse_from(["millraced"]).is_err());
        let loud = ["millraced", "--config", "a.toml", "--log", "loud"];
        assert!(Args::try_parse_from(loud).is_err());
    }
}
