//! `GET /openapi.json`: what the API takes and gives.

use axum::Json;
use control::api;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(info(title = "Millrace"), components(schemas(api::ErrorBody, api::Version)))]
struct Document;

/// The document.
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}
