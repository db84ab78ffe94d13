//! Descriptors with which whoever has them waits for ever, and no signal ends that: a file whose file system (FUSE) does not answer
//! when it is closed, and a socket whose owner holds its lock.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shm::session::{ORDERS, OTHER_ORDERS};

use crate::instance::Instance;
use crate::{ENDLESS, daemon, listen, listening, python, serving, until, with_stack};

/// How long the file systems stay.
const HELD: Duration = Duration::from_secs(40);

/// Serves a file system with one file, in a mount namespace of its own; a child opens that file, and goes on. The file system ends
/// with the parent, which must not have the file open: whoever has to answer would wait for itself.
const FILE: &str = r#"
import select
try:
    fuse = mounted(0)
except OSError:
    print("cannot", flush=True)
    sys.exit(0)
alive, theirs = os.pipe()
if os.fork() > 0:
    serve(fuse, int(sys.argv[4]))
os.close(fuse)
os.close(theirs)
file = os.open(os.path.join(FOLDER, "file"), os.O_RDONLY)
def descriptor():
    return file
def stay():
    select.select([alive], [], [])
"#;

/// Has the kernel send a page that is missing, over a connection. Nobody ever brings the page (userfaultfd); an unprivileged process
/// would have it come from a file system of its own. The connection's lock is held meanwhile.
const SOCKET: &str = r#"
import select, threading
try:
    missing, page = missing_page(0)
except OSError:
    print("cannot", flush=True)
    sys.exit(0)
listener = socket.create_server(("127.0.0.1", 0))
locked = socket.create_connection(listener.getsockname())
file = locked.fileno()
def descriptor():
    # By the user itself: to become one, each thread has to take part.
    threading.Thread(target=os.write, args=(file, page), daemon=True).start()
    select.select([missing], [], [], 20)
    return file
def stay():
    time.sleep(int(sys.argv[4]))
"#;

/// Becomes another user, and has a stack.
const BEGIN: &str = r#"
os.setresgid(int(sys.argv[3]), int(sys.argv[3]), int(sys.argv[3]))
os.setresuid(int(sys.argv[3]), int(sys.argv[3]), int(sys.argv[3]))
channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
channel.connect(sys.argv[1])
stack = begin("handing")
def listens(file):
    try:
        return json.dumps(ask({"listen": {"stack": stack, "weight": 1}}, [file]))
    except (OSError, ValueError):
        return "refused"
"#;

/// Hands it over, and stays.
const HAND: &str = r#"
print(listens(descriptor()), flush=True)
stay()
os._exit(0)
"#;

/// Serves a port.
const SERVE: &str = r#"
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
print(listens(l.fileno()), flush=True)
sys.stdin.readline()
"#;

/// Stays until the daemon ends.
const STAY: &str = r#"
channel.settimeout(20)
print("there", flush=True)
try:
    while channel.recv(65536):
        pass
    print("over", flush=True)
except OSError as error:
    print(error, flush=True)
"#;

const HOSTILE: u32 = 54_321;
const OTHER: u32 = 54_322;

/// A process of a user, and what it says. It is killed when it is dropped.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn run(daemon: &Instance, user: u32, program: &[&str]) -> Self {
        let mut command = python(daemon, &program.concat());
        command.args([user.to_string(), HELD.as_secs().to_string()]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn says(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon that others may connect to, and a process that has handed such a descriptor over. `None`: there are none here.
fn handed_over(descriptor: &str) -> Option<(Instance, Process)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root becomes several users");
        return None;
    }
    let daemon = daemon("");
    let folder = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(daemon.path(""), folder).unwrap();
    let hostile = hand_over(&daemon, descriptor)?;
    Some((daemon, hostile))
}

fn hand_over(daemon: &Instance, descriptor: &str) -> Option<Process> {
    let mut hostile = Process::run(daemon, HOSTILE, &[ENDLESS, descriptor, BEGIN, HAND]);
    let said = hostile.says();
    if said == "cannot" {
        eprintln!("skipped: neither file systems of programs (/dev/fuse) nor userfaultfd");
        return None;
    }
    let part = if descriptor == FILE { "no socket" } else { "does not answer" };
    assert!(said.contains(part), "{said}");
    Some(hostile)
}

/// A daemon's judges: the number of each, and its state as in `/proc/PID/stat`.
fn judges(daemon: &Instance) -> Vec<(i32, String)> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|one| std::fs::read_to_string(one.path().join("stat")).ok());
    let judges = all.filter_map(|stat| {
        let (number, rest) = stat.split_once(" (millrace-judge) ")?;
        let mut words = rest.split(' ');
        let (state, parent) = (words.next()?, words.next()?);
        let is_its = parent == daemon.pid().to_string();
        is_its.then(|| (number.parse().unwrap(), state.to_owned()))
    });
    judges.collect()
}

/// The only one.
fn judge(daemon: &Instance) -> (i32, String) {
    judges(daemon).remove(0)
}

/// Whether others are served, and its user again when it is gone.
fn keeps_nobody_but_its_user(descriptor: &str) {
    let Some((daemon, hostile)) = handed_over(descriptor) else { return };
    let start = Instant::now();
    assert_eq!(daemon.get("/v1/ports").status, 200);
    let mut same = Process::run(&daemon, HOSTILE, &[BEGIN, SERVE]);
    let said = same.says();
    assert!(!said.contains("listening"), "{said}");
    let mut other = Process::run(&daemon, OTHER, &[BEGIN, SERVE]);
    let said = other.says();
    assert!(said.contains("listening") && serving(&daemon) == [1], "{said}");
    assert!(start.elapsed() < HELD / 2, "somebody waited for it");
    drop((same, hostile));
    until("it is served again", || {
        Process::run(&daemon, HOSTILE, &[BEGIN, SERVE]).says().contains("listening")
    });
}

fn keeps_no_daemon_from_its_end(descriptor: &str) {
    let Some((mut daemon, _hostile)) = handed_over(descriptor) else { return };
    let mut same = Process::run(&daemon, HOSTILE, &[BEGIN, STAY]);
    assert_eq!(same.says(), "there");
    let start = Instant::now();
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success(), "{}", daemon.log());
    assert_eq!(same.says(), "over", "its user's others do not hear of it");
    assert!(start.elapsed() < HELD / 2, "the daemon waited for it");
}

fn keeps_no_daemon_from_beginning_anew(descriptor: &str) {
    let Some((mut daemon, hostile)) = handed_over(descriptor) else { return };
    let (left, _) = judge(&daemon);
    let start = Instant::now();
    assert_eq!(daemon.request("POST", "/v1/restart", "null").json()["restarts"], 1);
    until("it is back", || {
        let version = daemon.try_request("GET", "/v1/version", "");
        version.is_some_and(|version| version.json()["restarts"] == 1)
    });
    assert!(start.elapsed() < HELD / 2, "the daemon waited for it");
    // It remembers nothing of it, and ends as well.
    let Some(_again) = hand_over(&daemon, descriptor) else { return };
    drop(hostile);
    until("the one from before is reaped", || judges(&daemon).iter().all(|judge| judge.0 != left));
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success(), "{}", daemon.log());
    assert!(start.elapsed() < HELD, "the daemon waited for it");
}

#[test]
fn a_judge_that_is_killed_is_followed_by_another_and_the_log_says_so() {
    let daemon = daemon("");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let (first, stack) = with_stack(&daemon);
    listening(listen(&first, stack, 1, &socket));
    let (number, _) = judge(&daemon);
    kill_process(Pid::from_raw(number).unwrap(), Signal::KILL).unwrap();
    until("it has ended", || judge(&daemon).1 == "Z");
    let (second, stack) = with_stack(&daemon);
    listening(listen(&second, stack, 1, &socket));
    assert_ne!(judge(&daemon).0, number);
    assert!(daemon.log().contains("has ended: signal: 9"), "{}", daemon.log());
}

#[test]
fn one_that_ends_after_its_users_thread_is_reaped() {
    // The daemon has ended the connection, and its user's thread follows.
    let Some((daemon, hostile)) = handed_over(SOCKET) else { return };
    until("nobody needs it any more", || daemon.log().contains("cannot end"));
    assert_eq!(judges(&daemon).len(), 1);
    drop(hostile);
    until("it is reaped", || judges(&daemon).is_empty());
}

#[test]
fn a_judge_takes_orders_of_its_version_only() {
    let ended = |version: &[String]| {
        let mut judge = Command::new(env!("CARGO_BIN_EXE_millrace-judge"));
        judge.args(version).stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(ended(&[]), Some(OTHER_ORDERS.into()));
    assert_eq!(ended(&[(ORDERS + 1).to_string()]), Some(OTHER_ORDERS.into()));
    // It has none at its standard input.
    assert_eq!(ended(&[ORDERS.to_string()]), Some(1));
}

#[test]
fn a_file_that_cannot_be_closed_keeps_nobody_but_its_user() {
    keeps_nobody_but_its_user(FILE);
}

#[test]
fn nor_the_daemon_from_its_end() {
    keeps_no_daemon_from_its_end(FILE);
}

#[test]
fn nor_from_beginning_anew() {
    keeps_no_daemon_from_beginning_anew(FILE);
}

#[test]
fn a_socket_that_cannot_be_examined_keeps_nobody_but_its_user() {
    keeps_nobody_but_its_user(SOCKET);
}

#[test]
fn nor_the_daemon_from_its_end_either() {
    keeps_no_daemon_from_its_end(SOCKET);
}

#[test]
fn nor_from_beginning_anew_either() {
    keeps_no_daemon_from_beginning_anew(SOCKET);
}
