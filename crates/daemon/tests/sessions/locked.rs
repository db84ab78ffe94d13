//! Memory that its process keeps the kernel writing to. Whoever seals the file waits until that is over, and no signal ends
//! who waits.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{IFlags, MemfdFlags, ioctl_setflags, memfd_create};
use rustix::process::Signal;

use crate::instance::Instance;
use crate::{ENDLESS, config, daemon, python, stacks, until, with_stack};

/// How long the process stays.
const HELD: Duration = Duration::from_secs(20);

/// Has the kernel write a page that is missing into a stack's memory, and starts the stack. Nobody ever brings the page
/// (userfaultfd); an unprivileged process would have it come from a file system of its own (FUSE).
const PROCESS: &str = r#"
import select, threading
try:
    missing, page = missing_page(0)
except OSError:
    print("cannot", flush=True)
    sys.exit(0)
stack, files = open_stack("writer")
threading.Thread(target=os.write, args=(files[0], page), daemon=True).start()
select.select([missing], [], [], 20)
channel.send(json.dumps({"start-stack": stack}).encode())
print("written to", flush=True)
time.sleep(int(sys.argv[3]))
os._exit(0)
"#;

/// A process that has the kernel write into the memory of a stack that is to be started, for [`HELD`]. `None`: there is no
/// userfaultfd here.
fn written_to(daemon: &Instance) -> Option<Child> {
    let mut program = python(daemon, &[ENDLESS, PROCESS].concat());
    let mut process =
        program.arg(HELD.as_secs().to_string()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.trim() == "cannot" {
        process.wait().unwrap();
        return None;
    }
    assert_eq!(line.trim(), "written to");
    Some(process)
}

fn end(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

/// Whether this system makes memory immutable.
fn is_able() -> bool {
    let file = memfd_create("able", MemfdFlags::CLOEXEC).unwrap();
    ioctl_setflags(&file, IFlags::IMMUTABLE).is_ok()
}

#[test]
fn nobody_waits_for_immutable_memory_that_is_written_to_for_ever() {
    if !is_able() {
        return;
    }
    let mut daemon = daemon("");
    let Some(process) = written_to(&daemon) else { return };
    let start = Instant::now();
    until("it is started", || stacks(&daemon).iter().all(|stack| stack["started"] == true));
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success(), "{}", daemon.log());
    assert!(start.elapsed() < HELD / 2, "the daemon waited for the process");
    end(process);
}

#[test]
fn memory_that_is_sealed_and_written_to_for_ever_blocks_nobody_but_its_user() {
    let daemon = Instance::start_without_immutable(&config(""));
    // It keeps its pages all the same.
    drop(with_stack(&daemon));
    assert!(daemon.log().contains("CAP_LINUX_IMMUTABLE"), "{}", daemon.log());
    until("its stack is gone", || stacks(&daemon).is_empty());
    let Some(process) = written_to(&daemon) else { return };
    let start = Instant::now();
    // Meanwhile the daemon hears that the stack is to be started.
    for _ in 0..10 {
        sleep(Duration::from_millis(100));
        assert_eq!(daemon.get("/v1/ports").status, 200);
    }
    assert_eq!(stacks(&daemon)[0]["started"], false, "the user's thread waits");
    assert!(start.elapsed() < HELD / 2, "somebody waited for it");
    end(process);
    until("nothing is left", || stacks(&daemon).is_empty());
}
