//! Where a server will be reached: what the daemon says when it is asked for what the program's library will ask.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::AsFd as _;
use std::path::Path;

use client::Error;
use client::session::{Link, SHARED, STACK};
use shm::session::Placement;

/// Ports that are tried: the kernel may choose one that somebody leases, if its own ports are those of `sessions.ports`, too.
const PORTS: usize = 8;

/// The router's addresses.
pub(super) struct Reach(Vec<IpAddr>);

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, address) in self.0.iter().enumerate() {
            let before = if number == 0 { "at" } else { "," };
            write!(f, "{before} {address}")?;
        }
        Ok(())
    }
}

/// Asks the daemon for the stack that the program's library will ask for, and serves a port of its own with it for a moment; else
/// why that does not work. `wanted`: where the stack is to run, if it is not for the daemon to say.
pub(super) fn reach(sessions: &Path, wanted: Option<Placement>) -> Result<Reach, String> {
    let link = Link::open(Some(sessions), "millrace exec", |socket| socket)
        .map_err(|error| why(&error))?;
    if link.addresses().is_empty() {
        let none = "no interface of the default VRF has an address: give one `addresses`";
        return Err(none.into());
    }
    let refused = |error: Error| error.to_string();
    match wanted.unwrap_or(link.placement()) {
        Placement::Inline => {
            let stack = link.open_stack(&STACK, |fd| fd).map_err(refused)?;
            try_out(&link, stack.number)?;
        }
        Placement::Shared => {
            let stack = link.open_shared(&SHARED, |fd| fd).map_err(refused)?;
            try_out(&link, stack.number)?;
        }
    }
    Ok(Reach(link.addresses().to_vec()))
}

/// Serves a port with a stack, and closes it: where it still counted, there might be no room for the program's.
fn try_out(link: &Link, stack: u32) -> Result<(), String> {
    serve_some(|listener| link.listen(stack, 0, listener.as_fd()))?;
    link.close_stack(stack).map_err(|error| error.to_string())
}

/// Has a listening socket served, at whatever port; else why none is.
fn serve_some<T>(mut serve: impl FnMut(&TcpListener) -> Result<T, Error>) -> Result<(), String> {
    let mut refused = Vec::new();
    let mut said = None;
    loop {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))
            .map_err(|error| format!("no socket can be bound: {error}"))?;
        match serve(&listener) {
            Ok(_) => return Ok(()),
            Err(Error::Refused(refusal)) if refused.len() + 1 < PORTS => {
                said = Some(Error::Refused(refusal));
                // It stays bound, so that the kernel chooses another port.
                refused.push(listener);
            }
            // With some refusals the connection is over.
            Err(Error::DaemonGone) => return Err(said.unwrap_or(Error::DaemonGone).to_string()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Why the daemon does not answer, and what to do: its socket is the user's to name here.
fn why(error: &Error) -> String {
    let Error::NoDaemon { path, source } = error else { return error.to_string() };
    let shown = path.display();
    match source.kind() {
        ErrorKind::PermissionDenied => format!(
            "this user may not connect to the daemon at {shown}; allow it to search the socket's folder and to write the socket"
        ),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => format!(
            "no daemon at {shown}; start it before the program (millrace run, or systemctl start millraced), or name its \
             sessions socket with --sessions or MILLRACE_SESSIONS if that is elsewhere"
        ),
        _ => format!(
            "no daemon at {shown}: {source}; name its sessions socket with --sessions or MILLRACE_SESSIONS"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
        socket_with,
    };
    use shm::attach::{Channel, Refusal, RefusalKind};
    use shm::session::{PROTOCOL, Reply, Request, VERSION, Welcome};

    use super::*;

    /// What a daemon is asked for that wants stacks there, and why a server is not reached when it refuses that.
    fn refused(placement: Placement, wanted: Option<Placement>) -> (Request, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.sock");
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let listener = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 1).unwrap();
        thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let channel = Channel::of(accept_with(&listener, SocketFlags::CLOEXEC).unwrap());
                let hello = channel.receive::<Request>().unwrap().message;
                assert!(matches!(hello, Request::Hello(_)), "{hello:?}");
                let (protocol, daemon) = (PROTOCOL, VERSION.into());
                let addresses = vec!["192.0.2.1".parse().unwrap()];
                let welcome = Welcome { protocol, daemon, client: 1, addresses, placement };
                channel.send(&Reply::Welcome(welcome), &[]).unwrap();
                let asked = channel.receive::<Request>().unwrap().message;
                let refusal = Refusal::new(RefusalKind::Resources, "too much");
                channel.send(&Reply::Refused(refusal), &[]).unwrap();
                asked
            });
            let why = reach(&path, wanted).err().unwrap();
            (asked.join().unwrap(), why)
        })
    }

    #[test]
    fn what_is_tried_is_the_stack_that_the_library_will_ask_for() {
        let (inline, shared) = (Placement::Inline, Placement::Shared);
        for (daemons, wanted, asked) in [
            (inline, None, Request::OpenStack(STACK)),
            (shared, None, Request::OpenShared(SHARED)),
            (inline, Some(shared), Request::OpenShared(SHARED)),
            (shared, Some(inline), Request::OpenStack(STACK)),
        ] {
            let (tried, why) = refused(daemons, wanted);
            assert_eq!(tried, asked);
            assert!(why.contains("too much"), "{why}");
        }
    }

    #[test]
    fn all_addresses_are_said() {
        let reach = Reach(vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]);
        assert_eq!(reach.to_string(), "at 192.0.2.1, 2001:db8::1");
    }

    #[test]
    fn a_port_that_somebody_leases_is_no_reason() {
        let no = |problem: &str| Error::Refused(Refusal::new(RefusalKind::Resources, problem));
        let mut ports = BTreeSet::new();
        let served = serve_some(|listener| {
            ports.insert(listener.local_addr().unwrap().port());
            if ports.len() < PORTS { Err(no("it is leased")) } else { Ok(()) }
        });
        assert_eq!((served, ports.len()), (Ok(()), PORTS), "each is another one");
        let refused = serve_some(|_| Err::<(), _>(no("nobody may")));
        assert_eq!(refused, Err("the daemon refuses: nobody may".to_owned()));
        let mut answers = vec![Error::DaemonGone, no("nobody receives it")];
        let over = serve_some(|_| Err::<(), _>(answers.pop().unwrap()));
        assert_eq!(over, Err("the daemon refuses: nobody receives it".to_owned()));
    }

    #[test]
    fn each_way_not_to_reach_the_daemon_has_its_remedy() {
        let of = |kind: ErrorKind| {
            why(&Error::NoDaemon { path: "/run/a.sock".into(), source: kind.into() })
        };
        for kind in [ErrorKind::NotFound, ErrorKind::ConnectionRefused] {
            let why = of(kind);
            assert!(why.starts_with("no daemon at /run/a.sock; start it before"), "{why}");
            assert!(why.contains("--sessions or MILLRACE_SESSIONS"), "{why}");
        }
        let why = of(ErrorKind::PermissionDenied);
        assert!(why.contains("may not connect") && why.contains("/run/a.sock"), "{why}");
        assert!(!why.contains("start"), "there is one: {why}");
        let why = of(ErrorKind::InvalidInput);
        assert!(why.starts_with("no daemon at /run/a.sock: invalid input"), "{why}");
    }
}
