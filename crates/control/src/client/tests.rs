//! Against a socket that answers with fixed bytes.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

use super::{Client, ClientError, segment, with_query};
use crate::api::{Changed, RouteQuery, TraceStep, Version};

/// Answers every connection with the next of `answers`, and gives what was asked.
async fn serve(
    answers: Vec<String>,
) -> (tempfile::TempDir, Client, tokio::task::JoinHandle<Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let task = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 65_536];
            let count = stream.read(&mut bytes).await.unwrap();
            asked.push(String::from_utf8_lossy(&bytes[..count]).into_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    (folder, Client::new(socket), task)
}

fn http(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

const VERSION: &str = r#"{"version":"9.1","api":77,"dpdk":"d","pid":1}"#;

#[tokio::test]
async fn asks_and_reads() {
    let (_folder, client, task) = serve(vec![
        http("200 OK", r#"{"version":"1","api":1,"dpdk":"DPDK 22.11","pid":7}"#),
        http("200 OK", r#"{"added":1,"replaced":0,"removed":0}"#),
    ])
    .await;
    let version: Version = client.get("/v1/version").await.unwrap();
    assert_eq!(version.pid, 7);
    let changed: Changed = client.post("/v1/routes", &["x"]).await.unwrap();
    assert_eq!(changed.added, 1);
    let asked = task.await.unwrap();
    assert!(asked[0].starts_with("GET /v1/version HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[1].starts_with("POST /v1/routes HTTP/1.1\r\n"), "{}", asked[1]);
    assert!(asked[1].contains("content-type: application/json") && asked[1].ends_with(r#"["x"]"#));
}

#[tokio::test]
async fn refusals_are_told() {
    let body = r#"{"error":{"code":"full","message":"no room","remedy":"raise limits.routes4"}}"#;
    let (_folder, client, _task) =
        serve(vec![http("507 Insufficient Storage", body), http("502 Bad Gateway", "")]).await;
    let error = client.post::<_, Changed>("/v1/routes", &()).await.unwrap_err();
    assert_eq!(error.to_string(), "no room; raise limits.routes4");
    assert!(matches!(error, ClientError::Refused { status: 507, .. }));
    let error = client.get::<Changed>("/v1/x").await.unwrap_err();
    assert!(matches!(error, ClientError::Status { status: 502, .. }), "{error}");
}

#[tokio::test]
async fn another_version_is_told_apart_from_nonsense() {
    let answers = vec![http("200 OK", "[]"), http("200 OK", VERSION)];
    let (_folder, client, _task) = serve(answers).await;
    let error = client.get::<Changed>("/v1/x").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "millraced 9.1 has version 77 of the API, this program needs 1; \
         use millrace and millraced of the same version"
    );
    let (_folder, client, _task) = serve(vec![http("200 OK", "[]"), http("200 OK", "{}")]).await;
    let error = client.get::<Changed>("/v1/x").await.unwrap_err();
    assert!(matches!(error, ClientError::Decode(_)), "{error}");
}

#[tokio::test]
async fn streams_come_line_by_line() {
    let step = r#"{"packet":0,"core":1,"time":5,"node":"ip4-input","seen":"s","fate":"f"}"#;
    let body = format!("{step}\n\n{step}");
    let (_folder, client, _task) = serve(vec![http("200 OK", &body)]).await;
    let mut lines = client.stream("/v1/trace", &()).await.unwrap().lines();
    for _ in 0..2 {
        let step: TraceStep = lines.next().await.unwrap().unwrap();
        assert_eq!(step.node, "ip4-input");
    }
    assert_eq!(lines.next::<TraceStep>().await.unwrap(), None);
}

#[tokio::test]
async fn a_daemon_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let ask = |socket: PathBuf| async move {
        Client::new(socket).get::<Version>("/v1/version").await.unwrap_err()
    };
    let error = ask(socket.clone()).await;
    assert!(matches!(error, ClientError::NoSocket(_)));
    assert!(error.to_string().contains("is millraced running? start it with"), "{error}");
    drop(UnixListener::bind(&socket).unwrap());
    assert!(matches!(ask(socket.clone()).await, ClientError::NobodyListens(_)));
    let _listener = {
        std::fs::remove_file(&socket).unwrap();
        UnixListener::bind(&socket).unwrap()
    };
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o000)).unwrap();
    let client = Client::new(&socket).with_timeout(Duration::from_millis(50));
    let error = client.get::<Version>("/v1/version").await.unwrap_err();
    // Root may use any socket; then nobody accepts and the time runs out.
    let told = matches!(error, ClientError::Permission(_) | ClientError::Timeout { .. });
    assert!(told, "{error}");
}

#[test]
fn queries_are_encoded() {
    let after = Some("2001:db8::/32".parse().unwrap());
    let query = RouteQuery { family: Some(6), after, ..RouteQuery::default() };
    let path = with_query("/v1/routes", &query);
    assert_eq!(path, "/v1/routes?after=2001%3Adb8%3A%3A%2F32&family=6");
    assert_eq!(with_query("/v1/routes", &RouteQuery::default()), "/v1/routes");
    assert_eq!(segment("a/b c"), "a%2Fb%20c");
}
