//! How the API refuses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::ConfigError;

/// Body of every answer with status 4xx or 5xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ApiError,
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiError {
    /// A word for programs, as in `not-found`.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// What would be right.
    pub remedy: String,
    /// Everything that is wrong with a configuration, where that is the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ConfigError>,
}

impl ErrorBody {
    /// An error of that code and text.
    pub fn new(
        code: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (code, message, remedy) = (code.into(), message.into(), remedy.into());
        Self { error: ApiError { code, message, remedy, details: Vec::new() } }
    }

    /// The refusal of a configuration, with everything that is wrong with it.
    #[must_use]
    pub fn of_config(details: Vec<ConfigError>) -> Self {
        let message = match details.len() {
            1 => "the configuration has an error; nothing was changed".to_owned(),
            count => format!("the configuration has {count} errors; nothing was changed"),
        };
        let mut body = Self::new("config", message, "correct the file and reload again");
        body.error.details = details;
        body
    }
}
