//! Arbitrary bytes as messages of the attach and the sessions socket. What is understood stands a second reading; as a daemon's answer
//! it gives a client queues that can be used, or an error.
#![no_main]

use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use client::{Client, Options};
use libfuzzer_sys::fuzz_target;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use shm::attach::{Channel, PROTOCOL, Reply, Request, Welcome, parse};
use shm::{Doorbell, Segment, session};

/// What the daemon answers to the next question for queues.
static ANSWER: Mutex<Option<Reply>> = Mutex::new(None);
static DAEMON: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("millrace-fuzz-{}.sock", std::process::id()));
    let listener = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("a socket");
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).expect("a short path"))
        .expect("bound");
    rustix::net::listen(&listener, 8).expect("listens");
    std::thread::spawn(move || {
        while let Ok(socket) = rustix::net::accept(&listener) {
            serve(&Channel::of(socket));
        }
    });
    path
});

fn serve(socket: &Channel) {
    // A segment, doorbells of two channels and of two workers.
    let segment = Segment::create("fuzz", 1 << 16).expect("memory");
    let pairs: Vec<(Doorbell, OwnedFd)> =
        (0..4).map(|_| Doorbell::pair().expect("a pair")).collect();
    let mut files = vec![segment.as_fd()];
    files.extend(pairs.iter().map(|(_, other)| other.as_fd()));
    while let Ok(request) = socket.receive::<Request>() {
        let answer = match request.message {
            Request::Hello(_) => Reply::Welcome(Welcome {
                protocol: PROTOCOL,
                daemon: "fuzz".into(),
                client: 1,
                ports: Vec::new(),
            }),
            Request::Open(_) => {
                let answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
                let answer = answer.unwrap_or(Reply::Closed(0));
                // As many as the answer speaks of, if there are so many.
                let count = match &answer {
                    Reply::Opened(opened) => {
                        1 + opened.channels.len() + usize::from(opened.workers)
                    }
                    _ => files.len(),
                };
                if socket.send(&answer, &files[..count.min(files.len())]).is_err() {
                    return;
                }
                continue;
            }
            Request::Start(number) => Reply::Started(number),
            Request::Close(number) => Reply::Closed(number),
            Request::Ports => Reply::Ports(Vec::new()),
        };
        if socket.send(&answer, &[]).is_err() {
            return;
        }
    }
}

fn again<M: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(
    bytes: &[u8],
) -> Option<M> {
    let message = parse::<M>(bytes).ok()?;
    let bytes = serde_json::to_vec(&message).expect("what was read can be written");
    assert_eq!(parse::<M>(&bytes).expect("what was written can be read"), message);
    Some(message)
}

fuzz_target!(|bytes: &[u8]| {
    again::<Request>(bytes);
    again::<session::Request>(bytes);
    again::<session::Reply>(bytes);
    if let [count, file @ ..] = bytes {
        if let Ok(connections) = session::unpack(file, u32::from(*count)) {
            assert_eq!(session::pack(connections).as_deref(), Some(file));
        }
    }
    let Some(answer) = again::<Reply>(bytes) else { return };
    let channels = match &answer {
        Reply::Opened(opened) => opened.channels.len().clamp(1, 2) as u16,
        _ => 1,
    };
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    let client = Client::attach(Some(&DAEMON), "fuzz").expect("a daemon of ours");
    let Ok(queues) = client.open(&Options { channels, ..Options::default() }) else { return };
    for mut channel in queues.channels {
        let mut packets = Vec::new();
        assert_eq!(channel.receive(&mut packets, 8).expect("the daemon is there"), 0);
        channel.send_bytes(&[1; 60], 0).expect("an empty ring has room");
        assert!(channel.arm(), "nothing came");
    }
});
