//! Exact-match flows.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::config::{Flow, FlowKey};

/// Which flows `GET /v1/flows` gives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct FlowQuery {
    /// Flows of one page, 1 to 100,000; absent: 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A page of flows, in no order; flows that are added meanwhile may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct FlowPage {
    /// The flows.
    pub flows: Vec<Flow>,
    /// Flows of both families.
    pub total: u64,
    /// `after` of the next page; absent: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// `DELETE /v1/flows`: which flows to remove.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSelector {
    /// These.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowKey>,
    /// Every one.
    #[serde(default)]
    pub all: bool,
}
