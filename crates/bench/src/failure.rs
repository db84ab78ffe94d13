//! What goes wrong, in words that say what to do.

use std::io;
use std::path::PathBuf;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} line {line}: a prefix such as 192.0.2.0/24 or 2001:db8::/32 is expected", path.display())]
    Prefix { path: PathBuf, line: usize },
    #[error("there is no {0} prefix in the table; choose another file with --prefixes")]
    NoPrefixes(&'static str),
    #[error("{count} measurements in one run are too many: at most {most} ports can be opened")]
    TooManyCases { count: usize, most: usize },
    #[error("{}: {why}", path.display())]
    Plot { path: PathBuf, why: String },
    #[error("the soft device: {0}")]
    Dma(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}")]
    Serve(String),
    #[error("{program} {why}; it said: {said}")]
    NotReady { program: String, why: String, said: String },
    #[error("{}: neither a file nor a folder; name what `--json` has written", .0.display())]
    NeitherFileNorFolder(PathBuf),
    #[error("{}: more than {most} MB; no run of millrace-bench writes that much", path.display())]
    TooLong { path: PathBuf, most: u64 },
    #[error(
        "{}: no results of millrace-bench: {why}; name files that `--json` has written, or folders with no others that end in .json",
        path.display()
    )]
    Foreign { path: PathBuf, why: String },
    #[error("{}: {why}", path.display())]
    Readme { path: PathBuf, why: String },
    #[error("{}: no file in it ends in .json; write results there with `--json`", .0.display())]
    NoResults(PathBuf),
    #[error("there is no folder for results: neither HOME nor MILLRACE_BENCH_RESULTS is set")]
    NoFolder,
    #[error(
        "{}: no results are kept there; measure something without `--json`, or name files or folders of results",
        .0.display()
    )]
    NothingKept(PathBuf),
    #[error(
        "{}: one run of `{command}` is kept there, and none before it; run it again, or name A and B",
        folder.display()
    )]
    KeptOnce { folder: PathBuf, command: String },
    #[error(
        "worse by more than {percent} % and more than noise: {count} of the results above; to see whether it lasts, repeat the runs, A \
         and B in turn"
    )]
    Worse { count: usize, percent: f64 },
    #[error("{0}")]
    Namespace(String),
    #[error("{0}")]
    Placement(String),
    #[error("{}: {why}", path.display())]
    Scenario { path: PathBuf, why: String },
    #[error("the device under test: {0}")]
    UnderTest(String),
    #[error("`{0}` is no MAC address: write six bytes, such as 02:00:00:00:00:01")]
    Mac(String),
    #[error(transparent)]
    Frame(#[from] measure::frame::FrameError),
    #[error("message {1} of producer {0} came out of order")]
    Order(u32, u32),
    #[error("{0}: the stacks in memory did not do what was asked of them")]
    Transport(&'static str),
    #[error(transparent)]
    Eal(#[from] dpdk::EalError),
    #[error(transparent)]
    Pool(#[from] dpdk::PoolError),
    #[error(transparent)]
    Device(#[from] dpdk::DeviceError),
    #[error(transparent)]
    Port(#[from] dpdk::PortError),
    #[error("the port has no queue")]
    NoQueue,
    #[error("the worker takes no stacks")]
    NoStacks,
    #[error(transparent)]
    Yardstick(#[from] dpdk::yardstick::YardstickError),
    #[error(transparent)]
    Worker(#[from] graph::WorkerError),
    #[error(transparent)]
    Graph(#[from] graph::GraphError),
    #[error(transparent)]
    Memory(#[from] tables::OutOfMemory),
    #[error(transparent)]
    Readers(#[from] tables::TooManyReaders),
    #[error(transparent)]
    Routes(#[from] forward::rib::ApplyError),
    #[error(transparent)]
    Lpm(#[from] tables::LpmError),
    #[error(transparent)]
    Flow(#[from] tables::FlowError),
    #[error(transparent)]
    Flows(#[from] tables::Refused),
    #[error(transparent)]
    Prefixes(#[from] tables::PrefixError),
    #[error(transparent)]
    WirePrefix(#[from] wire::prefix::PrefixError),
    #[error(transparent)]
    Build(#[from] wire::build::BuildError),
    #[error(
        "{forwarded} packets were forwarded but others dropped ({reasons}): the measurement would \
         be of something else"
    )]
    Dropped { forwarded: u64, reasons: String },
    #[error("{0} forwarded no packet")]
    Idle(&'static str),
    #[error("dpdk-testpmd: {0}; install the package dpdk-dev, or leave it out with --no-yardstick")]
    Testpmd(String),
    #[error("l3fwd: {0}; scripts/l3fwd builds it where Debian's source packages can be had")]
    L3fwd(String),
    #[error("the other process of the packet queue: {0}")]
    OtherProcess(&'static str),
    #[error("the other process: {0}")]
    Client(#[from] client::Error),
    #[error(transparent)]
    Segment(#[from] shm::SegmentError),
    #[error(transparent)]
    Layout(#[from] shm::LayoutError),
    #[error("the thread that measures has ended early")]
    Thread,
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("the results cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}
