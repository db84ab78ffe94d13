//! Packet functions that run in the daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/functions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionAdd {
    /// Name of the shared object in the folder that `functions.folder` names.
    pub file: String,
    /// What the function is given when an instance is made.
    #[serde(default)]
    pub argument: String,
    /// Only on the worker of this core; absent: on all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u16>,
    /// Only packets of this port; absent: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
}

/// `GET /v1/functions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Function {
    /// Its number.
    pub id: u32,
    /// Since it was added: seconds.
    pub age: u64,
    /// What was asked for.
    #[serde(flatten)]
    pub asked: FunctionAdd,
}
