//! A client of the daemon's API: HTTP/JSON on a Unix socket, one connection per request.

mod connect;
mod error;
mod query;
mod stream;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{API_VERSION, ErrorBody, Version};

pub use error::ClientError;
pub use query::{segment, with_query};
pub use stream::{Lines, Stream};

/// Longest answer that is kept in memory: bytes.
const LONGEST_ANSWER: usize = 512 << 20;

/// How long the daemon may take for an answer, where nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where the daemon is asked.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    timeout: Duration,
}

impl Client {
    /// A client of the daemon on that socket. Nothing is connected yet.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), timeout: TIMEOUT }
    }

    /// The same with another bound on the time that an answer may take (30 s otherwise).
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// `GET`: `path` starts with a slash; see [`with_query`] for parameters.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let bytes = self.whole(Method::GET, path, None).await?;
        self.decode(&bytes).await
    }

    /// `GET` of a text, as of `/metrics`.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn get_text(&self, path: &str) -> Result<String, ClientError> {
        let bytes = self.whole(Method::GET, path, None).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `POST` of a JSON body.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn post<B: Serialize + ?Sized + Sync, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        self.send(Method::POST, path, body).await
    }

    /// `DELETE` with a JSON body.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn delete<B: Serialize + ?Sized + Sync, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        self.send(Method::DELETE, path, body).await
    }

    /// `PATCH` with a JSON body.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn patch<B: Serialize + ?Sized + Sync, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        self.send(Method::PATCH, path, body).await
    }

    /// `POST` whose answer is a stream, as of a trace or a capture. The time bound is for the start
    /// of the answer; what follows may take as long as it takes.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn stream<B: Serialize + ?Sized + Sync>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<Stream, ClientError> {
        let body = serde_json::to_vec(body).map_err(ClientError::Encode)?;
        let answer = self.bounded(self.start(Method::POST, path, Some(body))).await?;
        Ok(Stream::new(answer.into_body()))
    }

    async fn send<B: Serialize + ?Sized + Sync, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(ClientError::Encode)?;
        let bytes = self.whole(method, path, Some(body)).await?;
        self.decode(&bytes).await
    }

    /// An answer of another form comes from another version, most often: then that is the error.
    async fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        let error = match serde_json::from_slice(bytes) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let version = self.whole(Method::GET, "/v1/version", None).await?;
        match serde_json::from_slice::<Version>(&version) {
            Ok(theirs) if theirs.api != API_VERSION => {
                Err(ClientError::Version { api: theirs.api, version: theirs.version })
            }
            _ => Err(ClientError::Decode(error)),
        }
    }

    async fn whole(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Bytes, ClientError> {
        let ask = async {
            let answer = self.start(method, path, body).await?;
            all(answer.into_body()).await
        };
        self.bounded(ask).await
    }

    async fn bounded<T>(
        &self,
        ask: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let late = ClientError::Timeout { socket: self.socket.clone(), timeout: self.timeout };
        tokio::time::timeout(self.timeout, ask).await.unwrap_or(Err(late))
    }

    /// Sends a request; the answer has been checked for a refusal.
    async fn start(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, ClientError> {
        let answer = connect::request(&self.socket, method, path, body).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = all(answer.into_body()).await?;
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => {
                Err(ClientError::Refused { status: status.as_u16(), error: Box::new(body.error) })
            }
            Err(_) => Err(ClientError::Status { status: status.as_u16(), path: path.to_owned() }),
        }
    }
}

async fn all(body: Incoming) -> Result<Bytes, ClientError> {
    match Limited::new(body, LONGEST_ANSWER).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => match error.downcast::<hyper::Error>() {
            Ok(error) => Err(ClientError::Http(*error)),
            Err(_) => Err(ClientError::TooLong),
        },
    }
}
