//! What there is at the sessions socket, for the threads that serve it.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use control::config;
use shm::attach::{Refusal, RefusalKind};
use shm::session::namespace;

use super::Host;
use super::guest::Attached;
use super::parking::Starting;
use super::shared::StackWorkers;
use crate::processes::{Bounds, Control, Holders, Process, Service, Shared};
use crate::service::Threads;

/// The sessions socket's service.
pub(super) struct Serving<H> {
    config: Arc<ArcSwap<config::Sessions>>,
    control: Control<H>,
    /// The network namespace of the daemon.
    namespace: u64,
    starting: Arc<Starting>,
    stack_workers: Arc<StackWorkers>,
    holders: Arc<Holders>,
}

impl<H> Serving<H> {
    /// `threads`: where it is looked at those that run stacks.
    ///
    /// Errors: the kernel tells network namespaces not apart (before Linux 5.14).
    pub(super) fn new(
        config: Arc<ArcSwap<config::Sessions>>,
        (control, holders): (Control<H>, Arc<Holders>),
        path: &Path,
        threads: Arc<Threads>,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0"))?;
        let starting = Arc::new(Starting::new(path, Arc::clone(&threads)));
        let stack_workers = Arc::new(StackWorkers::new(threads));
        let namespace = namespace(socket.as_fd())?;
        Ok(Self { config, control, namespace, starting, stack_workers, holders })
    }
}

impl<H: Host> Service for Serving<H> {
    const SOCKET: &'static str = "sessions";
    const THREAD: &'static str = "serve";
    const SECTION: &'static str = "sessions";
    type Guest = Attached<H>;

    fn bounds(&self) -> Bounds {
        let config = self.config.load();
        let config::Sessions { most, connections, requests, .. } = **config;
        Bounds { most, connections, requests }
    }

    fn admit(&self, process: &Process) -> Result<(), Refusal> {
        check_permission(&self.config.load(), process)
    }

    fn receive(&self, process: Process, shared: Arc<Shared>) -> Attached<H> {
        let (config, starting) = (Arc::clone(&self.config), Arc::clone(&self.starting));
        let threads = (starting, Arc::clone(&self.stack_workers));
        let control = self.control.of(process.credentials.uid, &shared.asking);
        let holders = Arc::clone(&self.holders);
        Attached::new(control, (shared, config), threads, holders, process, self.namespace)
    }
}

/// Whether a process may have stacks.
///
/// Errors: what it is told.
pub(super) fn check_permission(
    config: &config::Sessions,
    process: &Process,
) -> Result<(), Refusal> {
    let no = |problem| Err(Refusal::new(RefusalKind::Permission, problem));
    let uid = process.credentials.uid;
    if !config.enabled {
        return no("sessions are switched off: sessions.enabled is false".to_owned());
    }
    // Its own stack comes as any other does.
    if u32::try_from(process.credentials.pid) == Ok(std::process::id()) {
        return Ok(());
    }
    let everybody = config.users.is_empty() && config.groups.is_empty();
    let group = || process.groups.iter().any(|group| config.groups.contains(group));
    if uid == 0 || everybody || config.users.contains(&uid) || group() {
        return Ok(());
    }
    no(format!(
        "user {uid} may have no stacks: neither sessions.users nor sessions.groups of the \
         configuration names it; add it there"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::asks;
    use crate::sessions::Lent;
    use crate::testing;

    use std::sync::Mutex;
    use std::time::Duration;

    use shm::attach::PeerCredentials;

    #[derive(Clone, Default)]
    struct Order(Arc<Mutex<Vec<&'static str>>>);

    impl Host for Order {
        fn lend(&mut self) -> Lent<'_> {
            panic!("nobody asks for it");
        }
    }

    /// In which order two things of one user, one of another and one of root are done after something that takes long.
    async fn order_after_much() -> Vec<&'static str> {
        let (control, asked) = asks::<Order>();
        let config = Arc::new(ArcSwap::from_pointee(testing::config("").sessions));
        let path = Path::new("sessions.sock");
        let control = (control, Arc::new(Holders::new()));
        let serving = Serving::new(config, control, path, Arc::default()).unwrap();
        let user = |uid| {
            let shared = Arc::new(Shared::new().unwrap());
            let credentials = PeerCredentials { pid: 1, uid, gid: uid };
            move |serving: &Serving<Order>| {
                let process = Process { credentials, groups: Vec::new() };
                serving.receive(process, Arc::clone(&shared))
            }
        };
        let (much, one, root) = (user(1), user(2), user(0));
        let guests = [much(&serving), much(&serving), one(&serving), root(&serving)];
        let ask = async |guest: &Attached<Order>, name, takes| {
            let act = move |order: &mut Order| {
                std::thread::sleep(takes);
                order.0.lock().unwrap().push(name);
            };
            guest.control.ask(act).await.unwrap();
        };
        let (no_time, long) = (Duration::ZERO, Duration::from_millis(50));
        let order = Order::default();
        let asking = async {
            tokio::join!(
                ask(&guests[0], "much", long),
                ask(&guests[1], "more", no_time),
                ask(&guests[2], "one", no_time),
                async {
                    tokio::task::yield_now().await;
                    ask(&guests[3], "root", no_time).await;
                }
            );
        };
        tokio::select! {
            () = asked.serve(|act| act(&mut order.clone())) => {}
            () = asking => {}
        }
        let mut order = std::mem::take(&mut *order.0.lock().unwrap());
        order.retain(|name| *name != "much");
        order
    }

    #[tokio::test]
    async fn root_comes_first_and_each_user_asks_one_thing_at_a_time() {
        // Root comes before others that wait, and who asked for two things has the second done last.
        let wanted = ["root", "one", "more"];
        // A thread that stands still for as long as a rest finds it over before root has asked: then once more.
        let mut order = Vec::new();
        for _ in 0..10 {
            order = order_after_much().await;
            if order == wanted {
                break;
            }
        }
        assert_eq!(order, wanted);
    }

    #[test]
    fn everybody_may_or_those_who_are_named() {
        let may = |section: &str, uid, groups: &[u32]| {
            let config = testing::config(&format!("[sessions]\n{section}")).sessions;
            let credentials = PeerCredentials { pid: 1, uid, gid: groups[0] };
            check_permission(&config, &Process { credentials, groups: groups.to_vec() })
        };
        assert!(may("", 1000, &[1000]).is_ok());
        let users = "users = [1000]\n";
        assert!(may(users, 1000, &[5]).is_ok() && may(users, 0, &[0]).is_ok());
        let refusal = may(users, 1001, &[1000]).unwrap_err();
        assert!(refusal.message.contains("user 1001 may have no stacks"), "{refusal}");
        let groups = "groups = [50, 60]\n";
        assert!(may(groups, 1000, &[1000, 60]).is_ok() && may(groups, 50, &[1]).is_err());
        let both = "users = [7]\ngroups = [50]\n";
        assert!(may(both, 7, &[7]).is_ok() && may(both, 8, &[50]).is_ok());
        assert!(may("enabled = false\n", 0, &[0]).is_err(), "root neither");
    }
}
