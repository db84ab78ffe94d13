//! Answers: JSON, and refusals in the one form that all errors have.

use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Json, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control::ConfigError;
use control::api::ErrorBody;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest body that is read at once: bytes. Some 10 us for each kilobyte.
const SHORT: usize = 16 << 10;

/// What a handler returns.
pub(crate) type Answer<T> = Result<Json<T>, Refusal>;

/// An answer that may be long, written as JSON while the control thread does other things.
///
/// Errors: the daemon ends.
pub(crate) async fn long<T: Serialize + Send + 'static>(answer: T) -> Result<Response, Refusal> {
    made_elsewhere(move || answer).await
}

/// The same of an answer that also takes long to make.
///
/// Errors: as of [`long`].
pub(crate) async fn made_elsewhere<T: Serialize>(
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Refusal> {
    let written = tokio::task::spawn_blocking(move || Json(make()).into_response()).await;
    written.map_err(|error| Refusal::failed(error, "ask again"))
}

/// An error as the API tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    remedy: String,
    details: Vec<ConfigError>,
}

impl Refusal {
    /// A configuration is wrong.
    pub(crate) fn configuration(details: Vec<ConfigError>) -> Self {
        Self { details, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "config", "", "") }
    }

    /// What was asked is malformed or names what cannot be.
    pub(crate) fn invalid(message: impl ToString, remedy: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message, remedy)
    }

    /// What was asked about is not there.
    pub(crate) fn not_found(message: impl ToString, remedy: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", message, remedy)
    }

    /// It is there already, or another operation is in the way.
    pub(crate) fn conflict(message: impl ToString, remedy: impl ToString) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message, remedy)
    }

    /// A capacity is reached; what was there is kept.
    pub(crate) fn full(message: impl ToString, remedy: impl ToString) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "full", message, remedy)
    }

    /// Too many at once.
    pub(crate) fn busy(message: impl ToString, remedy: impl ToString) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message, remedy)
    }

    /// The device or the system did not do it.
    pub(crate) fn failed(message: impl ToString, remedy: impl ToString) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "failed", message, remedy)
    }

    fn new(
        status: StatusCode,
        code: &'static str,
        message: impl ToString,
        remedy: impl ToString,
    ) -> Self {
        Self {
            status,
            code,
            message: message.to_string(),
            remedy: remedy.to_string(),
            details: Vec::new(),
        }
    }

    fn of_status(status: StatusCode, message: String) -> Self {
        let (code, remedy) = match status {
            StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "send the list in smaller parts"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("media-type", "send JSON with the header Content-Type: application/json")
            }
            _ => ("invalid", "see /openapi.json for what is expected"),
        };
        Self::new(status, code, message, remedy)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = if self.details.is_empty() {
            ErrorBody::new(self.code, self.message, self.remedy)
        } else {
            ErrorBody::of_config(self.details)
        };
        (self.status, Json(body)).into_response()
    }
}

/// A JSON body whose faults are told in the common form.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send + 'static> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let refuse = |rejection: JsonRejection| {
            Refusal::of_status(rejection.status(), rejection.body_text())
        };
        if !is_long(request.headers()) {
            return Ok(Self(Json::from_request(request, state).await.map_err(refuse)?.0));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| Refusal::of_status(rejection.status(), rejection.body_text()))?;
        let read = tokio::task::spawn_blocking(move || Json::from_bytes(&bytes));
        let read = read.await.map_err(|error| Refusal::failed(error, "send it again"))?;
        Ok(Self(read.map_err(refuse)?.0))
    }
}

/// Reads a request to its end before anything of it is looked at, whether its body is needed or not: a connection that is
/// closed with bytes unread is reset, and its answer with it.
pub(crate) async fn read_whole(request: Request, next: Next) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), &())
        .await
        .map_err(|rejection| Refusal::of_status(rejection.status(), rejection.body_text()))?;
    Ok(next.run(Request::from_parts(parts, bytes.into())).await)
}

/// Whether a JSON body takes so long to read that others would notice: then it is read on a thread of its own.
fn is_long(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let length = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    length.is_none_or(|length: usize| length > SHORT)
        && text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"))
}

/// Query parameters whose faults are told in the common form.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Query(query) = Query::from_request_parts(parts, state).await.map_err(
            |rejection: QueryRejection| {
                Refusal::of_status(rejection.status(), rejection.body_text())
            },
        )?;
        Ok(Self(query))
    }
}

/// No such path.
pub(crate) async fn unknown_path(uri: Uri) -> Refusal {
    let message = format!("there is no {}", uri.path());
    Refusal::not_found(message, "see /openapi.json for what there is")
}

/// The path exists, but not with this method.
pub(crate) async fn unknown_method(uri: Uri, method: Method) -> Refusal {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        format!("{} does not take {method}", uri.path()),
        "see /openapi.json for what it takes",
    )
}
