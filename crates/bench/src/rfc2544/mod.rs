//! `millrace-bench rfc2544`: what a device between two ports can do, by RFC 2544.
//!
//! | module | job |
//! | --- | --- |
//! | `args`, `scenario` | what is to be measured |
//! | `needed` | what a device needs of this machine |
//! | `device`, `millraced`, `kernel`, `impaired` | devices under test that the bench starts |
//! | `addresses` | of the tester, the device and the flows |
//! | `neighbor` | ARP and neighbour discovery |
//! | `seats` | cores of the tester, and of a device that names none |
//! | `bed` | the tester's ports and the device between them |
//! | `clock`, `lane`, `trial` | one trial |
//! | `throughput`, `latency`, `frame_loss`, `back_to_back` | the tests of RFC 2544 26 |
//! | `show`, `outcomes` | tables, and results |

mod addresses;
mod args;
mod back_to_back;
mod bed;
mod clock;
mod device;
mod frame_loss;
pub(crate) mod impaired;
mod kernel;
mod lane;
mod latency;
mod millraced;
mod needed;
mod neighbor;
mod outcomes;
mod scenario;
mod seats;
mod show;
mod throughput;
mod trial;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dpdk::{BufferPool, Memory};
use indicatif::ProgressBar;
use measure::load::Sizes;

use crate::failure::Failure;
use crate::machine::{self, Environment};
use crate::results::Report;
use crate::terminal::say;
use crate::{interrupt, process};
pub(crate) use args::{Args, Impaired};
use bed::Bed;
use device::Place;
use millraced::Updates;
use scenario::{Device, Machine, Scenario, Test};
use seats::Seats;
use trial::{Load, Outcome, Until};

/// How often a void trial is repeated.
const REPEATS: u32 = 3;
/// How often one is repeated that lost frames while others took time from the machine.
const DISTURBED_REPEATS: u32 = 1;
/// Length of a trial of the tester alone: s.
const ALONE: f64 = 1.0;

/// What was measured with one frame size.
#[derive(Debug, Default)]
struct Measured {
    /// The most that the tester can do: bit/s on the wire.
    own: f64,
    throughput: Option<throughput::Measured>,
    latency: Vec<latency::Measured>,
    frame_loss: Vec<frame_loss::Point>,
    back_to_back: Option<measure::search::BurstSummary>,
    taken: Taken,
    /// Routes of the device that were changed in a second meanwhile.
    updates: Option<f64>,
}

/// What runs trials: counts them, repeats void ones, and looks whether the device is still there.
struct Session<'a> {
    scenario: &'a Scenario,
    bed: Bed,
    stop: &'a AtomicBool,
    bar: &'a ProgressBar,
    /// Where the bar stands when the test that is going on is over: ms.
    planned: u64,
    least: u16,
    settle: Duration,
    /// So far.
    taken: Taken,
    /// Those since somebody took them last.
    tried: Vec<Tried>,
    /// Why there can be no more: the device went away.
    gone: Option<Failure>,
}

/// Numbers of trials.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// All of them.
    trials: u32,
    /// Those that say nothing of the device, and those that others disturbed.
    void: u32,
    disturbed: u32,
}

/// A trial, in the results.
#[derive(Debug, Clone, Copy, serde::Serialize)]
struct Tried {
    /// bit/s on the wire, each way.
    rate: f64,
    offered: u64,
    /// Frames that did not come back intact, and those that the tester should have sent and did not.
    missing: u64,
    missed: u64,
    void: bool,
    disturbed: bool,
}

/// Measures a scenario.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut scenarios = Scenario::read(&args.scenario)?;
    if args.quick {
        scenarios.iter_mut().for_each(|scenario| scenario.trials.quicken());
    }
    let machine = Machine::here();
    scenarios.retain(|scenario| {
        let missing = scenario.needs.missing(&machine);
        if !missing.is_empty() {
            say!("{}\nnot here: it needs {}", show::plan(scenario), missing.join("; "));
        } else if args.check {
            say!("{}", show::plan(scenario));
        }
        missing.is_empty()
    });
    let cores = machine::cores();
    let topology = doctor::Machine::read(Path::new("/"), None).topology;
    let seats =
        Seats::of(&cores, |core| u16::try_from(core).map_or(0, |core| topology.node_of(core)));
    scenarios.iter().try_for_each(|scenario| scenario.fits(&args.scenario, &cores, seats.far))?;
    let programs = process::programs(args.programs.as_deref())?;
    scenarios.iter().try_for_each(|scenario| needed::check(scenario, &programs))?;
    if args.check || scenarios.is_empty() {
        return Ok(());
    }
    let stop = interrupt::keep_results();
    let memory = if args.no_huge { Memory::Plain } else { Memory::Auto };
    let eal = bed::environment(&scenarios, memory)?;
    let configuration = scenario::configuration(&scenarios);
    let environment = Environment::of(eal, "none").with_configuration(configuration);
    say!("{}", environment.lines());
    let place =
        Place { programs, core: seats.device, second: seats.second, hugepages: eal.hugepages() };
    let core = seats.tester;
    let (mut results, mut outcome) = (Vec::new(), Ok(()));
    let pool = bed::pool("rfc2544")?;
    for scenario in &scenarios {
        say!("{}", show::plan(scenario));
        let far = seats.far.filter(|_| scenario.is_far());
        let place = Place { core: far.unwrap_or(seats.device), ..place.clone() };
        if scenario.shares(core, place.core) {
            say!("tester and device share core {core}: the figures mean little");
        }
        let mut measured = Vec::new();
        outcome = measure(scenario, &place, pool, core, stop, &mut measured);
        if measured.is_empty() {
            break;
        }
        show::print(scenario, &measured);
        results.extend(outcomes::outcomes(scenario, &measured));
        if outcome.is_err() || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if results.is_empty() {
        return outcome;
    }
    // What was measured before something went wrong is kept.
    let report = Report { environment, results };
    report.write(args.json.file())?;
    outcome
}

/// Measures the tester alone, then the device; what is complete is kept whatever happens then.
fn measure(
    scenario: &Scenario,
    place: &Place,
    pool: BufferPool,
    core: usize,
    stop: &AtomicBool,
    measured: &mut Vec<(Sizes, Measured)>,
) -> Result<(), Failure> {
    let sizes = scenario.sizes();
    let alone = Scenario { device: Device::None {}, ..scenario.clone() };
    let bar = crate::terminal::timed(Duration::from_secs_f64(scenario.seconds()));
    bar.enable_steady_tick(Duration::from_millis(200));
    // Only trials run on the tester's core: what is started is not to inherit it.
    let mut bed = Bed::new(&alone, place, pool)?;
    let own = machine::on(core, || {
        let until = Until { stop, is_whole: &|| true };
        let limits = sizes.iter().map(|size| {
            bar.set_message(format!("{size} B: the tester alone"));
            let limit = trial::limit(&mut bed.tester, *size, ALONE, until);
            bar.inc(milliseconds(ALONE));
            limit
        });
        limits.collect::<Result<Vec<_>, _>>()
    })?;
    drop(bed);
    if stop.load(Ordering::Relaxed) {
        // The last of these trials was cut short, and the device has not been looked at.
        bar.finish_and_clear();
        return Ok(());
    }
    bar.set_message("the device starts");
    let mut session = Session {
        scenario,
        bed: Bed::new(scenario, place, pool)?,
        stop,
        bar: &bar,
        planned: 0,
        least: scenario.frames.least(),
        settle: Duration::from_secs_f64(scenario.trials.settle),
        taken: Taken::default(),
        tried: Vec::new(),
        gone: None,
    };
    let outcome = machine::on(core, || {
        for (size, own) in sizes.iter().zip(own) {
            measured.push((*size, Measured { own, ..Measured::default() }));
            let Some((_, into)) = measured.last_mut() else { continue };
            let (before, begin) = (session.changed()?, Instant::now());
            session.taken = Taken::default();
            let done = session.measure(*size, into);
            into.taken = session.taken;
            done?;
            let changed = session.changed()?.zip(before).map(|(after, before)| after - before);
            into.updates = changed.map(|count| count as f64 / begin.elapsed().as_secs_f64());
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    });
    bar.finish_and_clear();
    outcome
}

impl Session<'_> {
    /// All tests with one frame size.
    fn measure(&mut self, sizes: Sizes, into: &mut Measured) -> Result<(), Failure> {
        let top = self.top(into.own);
        let scenario = self.scenario;
        for test in scenario.trials.in_order() {
            let seconds = scenario.trials.seconds_of(test);
            self.planned = self.bar.position() + milliseconds(seconds);
            match test {
                Test::Throughput => into.throughput = throughput::measure(self, sizes, top)?,
                Test::Latency => {
                    let throughput =
                        into.throughput.as_ref().map_or(0.0, throughput::Measured::rate);
                    latency::measure(self, sizes, throughput, &mut into.latency)?;
                }
                Test::FrameLoss => frame_loss::measure(self, sizes, top, &mut into.frame_loss)?,
                Test::BackToBack => {
                    let throughput =
                        into.throughput.as_ref().map_or(0.0, throughput::Measured::rate);
                    into.back_to_back = back_to_back::measure(self, sizes, top, throughput)?;
                }
            }
            self.bar.set_position(self.planned);
            if let Some(gone) = self.gone.take() {
                return Err(gone);
            }
        }
        Ok(())
    }

    /// The highest load: the line rate, or what the tester can do if that is less: bit/s. It was alone over shared memory, and may do
    /// more by the ports of a card: there, void trials tell.
    fn top(&self, own: f64) -> f64 {
        let line = self.scenario.trials.line_rate.map(|gigabits| gigabits * 1e9);
        match self.scenario.device {
            Device::External { .. } => line.unwrap_or(own),
            _ => line.map_or(own, |line| own.min(line)),
        }
    }

    /// Whether there are no more trials: tests keep what they have.
    fn is_stopped(&self) -> bool {
        self.gone.is_some() || self.stop.load(Ordering::Relaxed)
    }

    /// A load for so many seconds.
    fn lasting(&self, sizes: Sizes, rate: f64, seconds: f64) -> Load {
        Load::lasting(sizes, self.least, rate, seconds, self.settle)
    }

    /// Routes of the device that were changed so far; `None`: nobody changes any.
    fn changed(&self) -> Result<Option<u64>, Failure> {
        self.bed.updates().map(Updates::changed).transpose()
    }

    /// Runs a trial, again if it is void, or if more than `tolerated` was lost while others took time from the machine. `None`:
    /// all were void, the device is gone, or the user wants no more.
    fn trial(&mut self, load: &Load, tolerated: f64) -> Result<Option<Outcome>, Failure> {
        let (mut voids, mut disturbed) = (0, 0);
        while voids <= REPEATS {
            let outcome = self.bed.run(load, self.stop)?;
            // Trials that are repeated are not in the plan.
            let passed = self.bar.position() + milliseconds(outcome.seconds);
            self.bar.set_position(passed.min(self.planned));
            if self.is_stopped() {
                return Ok(None);
            }
            self.taken.trials += 1;
            self.taken.disturbed += u32::from(outcome.disturbed);
            if outcome.broken {
                self.gone = Some(gone(load, &outcome));
                return Ok(None);
            }
            self.changed()?;
            let void = outcome.is_void(tolerated);
            self.taken.void += u32::from(void);
            self.tried.push(Tried::of(load, &outcome, void));
            if void {
                voids += 1;
            } else if outcome.disturbed
                && outcome.loss() > tolerated
                && disturbed < DISTURBED_REPEATS
            {
                disturbed += 1;
            } else {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }
}

impl Tried {
    fn of(load: &Load, outcome: &Outcome, void: bool) -> Self {
        let counts = outcome.total();
        Self {
            rate: load.rate,
            offered: counts.offered,
            missing: counts.offered.saturating_sub(counts.delivered),
            missed: outcome.missed.iter().sum(),
            void,
            disturbed: outcome.disturbed,
        }
    }
}

/// The unit of the bar.
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}

/// Why a trial has ended early, and what it has seen.
fn gone(load: &Load, outcome: &Outcome) -> Failure {
    let counts = outcome.total();
    Failure::UnderTest(format!(
        "a link to it went down {:.1} s after a trial had begun with frames of {} B: of {} that were sent, {} came back",
        outcome.seconds, load.sizes, counts.offered, counts.delivered
    ))
}
