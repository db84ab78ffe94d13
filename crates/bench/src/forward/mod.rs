//! `millrace-bench forward`: the whole forwarder on one core.

mod args;
mod cases;
mod io;
mod measure;
mod show;

pub(crate) use args::Args;

use std::path::Path;

use dpdk::yardstick::Template;
use indicatif::ProgressBar;
use tables::Prefix;

use crate::failure::Failure;
use crate::interrupt;
use crate::l3fwd::{L3fwd, LookUp, Rules, Setup};
use crate::load::{Destination, Packets, sample};
use crate::results::Report;
use crate::terminal::{progress, say};
use crate::testpmd::{self, Testpmd};
use crate::worker::{self, BUFFERS, Bed, EGRESS, PORTS, Router, Source, mac};
use cases::{Case, Family, Routes};
use measure::{Contest, Stage, Turns};

/// Measures all cases.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let cases = args.cases();
    let most = PORTS - EGRESS;
    if cases.len() > most {
        return Err(Failure::TooManyCases { count: cases.len(), most });
    }
    let (prefixes, mut bed, environment) = worker::begin(&args.run)?;
    let turns = Turns::of(args);
    let bar = progress(cases.len() * turns.count as usize);
    let mut contests = Vec::new();
    for case in cases {
        contests.push(match case.family {
            Family::V4 => contest(&mut bed, case, &prefixes.v4, &turns, args, &bar)?,
            Family::V6 => contest(&mut bed, case, &prefixes.v6, &turns, args, &bar)?,
        });
        if interrupt::came() {
            break;
        }
    }
    bar.finish_and_clear();
    show::print(&contests, args.profile);
    let report =
        Report { environment, results: contests.iter().flat_map(Contest::outcomes).collect() };
    report.write(args.run.json.file())
}

/// One case: our worker, our binding alone, and dpdk-testpmd take turns.
fn contest<A: Destination>(
    bed: &mut Bed,
    case: Case,
    full: &[Prefix<A>],
    turns: &Turns,
    args: &Args,
    bar: &ProgressBar,
) -> Result<Contest, Failure> {
    if full.is_empty() {
        let family = if case.family == Family::V4 { "IPv4" } else { "IPv6" };
        return Err(Failure::NoPrefixes(family));
    }
    bar.set_message(format!("{case}: tables"));
    let routes = match case.routes {
        Routes::Some(count) => sample(full, count, 2),
        Routes::Full => full.to_vec(),
    };
    let Source { mut rx, tx } = bed.open()?;
    let router = Router::new(&routes, bed.egress_ports())?;
    let packets = Packets::new(&routes, case.flows, case.frames, mac(rx.port()))?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("templates");
    dpdk::yardstick::write_templates(&file, &packets.templates, &packets.lengths)?;
    let mut rivals = rivals(args, case, bed, &routes, &packets.templates, &file)?;
    dpdk::yardstick::attach_source(&mut rx, &bed.pool, packets.templates, packets.lengths)?;
    let mut testpmd = None;
    if !args.no_yardstick {
        let mut started = Testpmd::spawn(&testpmd::Setup {
            name: "forward",
            devices: &["net_null0,no-rx=1"],
            templates: Some(&file),
            cores: bed.cores,
            hugepages: bed.hugepages,
            burst: args.testpmd_burst,
            buffers: BUFFERS,
            buffer_size: 2048 + dpdk::HEADROOM as u32,
        })?;
        started.warm_up()?;
        testpmd = Some(started);
    }
    let worker = bed.start(&router, args.vector)?;
    bar.set_message(case.to_string());
    let source = Source { rx, tx };
    let mut contest = Contest::new(case, routes.len(), turns);
    let stage = Stage {
        turns,
        core: bed.cores[1],
        worker: &worker,
        source: Some(source),
        testpmd: testpmd.as_mut(),
        l3fwd: &mut rivals,
    };
    contest.run(stage, bar)?;
    contest.profile = worker.profile();
    bed.egress = worker.stop()?;
    Ok(contest)
}

/// DPDK's example router with each look-up that is asked for, fed from `file`.
fn rivals<A: Destination>(
    args: &Args,
    case: Case,
    bed: &Bed,
    routes: &[Prefix<A>],
    packets: &[Template],
    file: &Path,
) -> Result<Vec<L3fwd>, Failure> {
    if args.l3fwd.is_empty() {
        return Ok(Vec::new());
    }
    let rules = Rules::new(routes, packets);
    let (fit, slow): (Vec<LookUp>, Vec<_>) =
        args.l3fwd.iter().copied().partition(|look_up| look_up.takes(routes.len()));
    for look_up in slow {
        say!(
            "{case}: l3fwd {look_up} is left out: with {} routes it starts in minutes",
            routes.len()
        );
    }
    let spawn = |look_up| {
        let (program, cores) = (args.l3fwd_program.as_deref(), bed.cores);
        L3fwd::spawn(&Setup { program, look_up, rules: &rules, templates: file, cores })
    };
    fit.into_iter().map(spawn).collect()
}
