//! One request on a connection of its own.

use std::io::ErrorKind;
use std::path::Path;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::ClientError;

/// Sends one request and gives the answer's head; its body comes as it is read.
pub(super) async fn request(
    socket: &Path,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Response<Incoming>, ClientError> {
    let stream = UnixStream::connect(socket).await.map_err(|error| {
        let socket = socket.to_owned();
        match error.kind() {
            ErrorKind::NotFound => ClientError::NoSocket(socket),
            ErrorKind::ConnectionRefused => ClientError::NobodyListens(socket),
            ErrorKind::PermissionDenied => ClientError::Permission(socket),
            _ => ClientError::Connect { socket, error },
        }
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(ClientError::Http)?;
    // Ends by itself when the answer has been read or dropped.
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost");
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = Full::new(Bytes::from(body.unwrap_or_default()));
    let request = request.body(body).map_err(|_| ClientError::Path(path.to_owned()))?;
    sender.send_request(request).await.map_err(ClientError::Http)
}
