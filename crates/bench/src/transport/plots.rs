//! Flows that share a simulated path: how fast each goes over time.

use std::path::Path;

use netsim::LinkOptions;
use netsim::flows::{Flow, Outcome, share};
use transport::options::{MILLISECOND, SECOND};
use transport::{Algorithm, Options};

use crate::failure::Failure;
use crate::results::{Axis, Line, Plot, table};
use crate::terminal::{progress, say};

/// Between two samples: ns.
const INTERVAL: u64 = SECOND / 5;
/// What came before does not count for the table: a share of the run.
const SETTLED: u64 = 2;

/// One picture.
struct Scene {
    name: &'static str,
    title: &'static str,
    path: LinkOptions,
    mtu: u16,
    flows: Vec<(Algorithm, u64)>,
    seconds: u64,
}

/// `rate`: Mbit/s; `rtt`: ms; `queue`: ms of the rate; `loss`: per million.
fn path(rate: u64, rtt: u64, queue: u64, loss: u32) -> LinkOptions {
    let rate = rate * 125_000;
    let delay = rtt * MILLISECOND / 2;
    LinkOptions { delay, rate, queue: rate * queue / 1000, loss, ..LinkOptions::default() }
}

fn scenes() -> Vec<Scene> {
    use Algorithm::{Bbr, Cubic, NewReno};
    let pair = |first, second| vec![(first, 0), (second, 5 * SECOND)];
    let shared = || path(50, 40, 40, 0);
    let scene =
        |name, title, path, mtu, flows, seconds| Scene { name, title, path, mtu, flows, seconds };
    vec![
        scene(
            "cubic-cubic",
            "CUBIC and CUBIC, 50 Mbit/s, 40 ms",
            shared(),
            1500,
            pair(Cubic, Cubic),
            60,
        ),
        scene(
            "cubic-newreno",
            "CUBIC and NewReno, 50 Mbit/s, 40 ms",
            shared(),
            1500,
            pair(Cubic, NewReno),
            60,
        ),
        scene("bbr-bbr", "BBR and BBR, 50 Mbit/s, 40 ms", shared(), 1500, pair(Bbr, Bbr), 60),
        scene("bbr-cubic", "BBR and CUBIC, 50 Mbit/s, 40 ms", shared(), 1500, pair(Bbr, Cubic), 60),
        scene(
            "loss-cubic",
            "CUBIC, 1 % loss",
            path(50, 40, 40, 10_000),
            1500,
            vec![(Cubic, 0)],
            40,
        ),
        scene(
            "loss-newreno",
            "NewReno, 1 % loss",
            path(50, 40, 40, 10_000),
            1500,
            vec![(NewReno, 0)],
            40,
        ),
        scene("loss-bbr", "BBR, 1 % loss", path(50, 40, 40, 10_000), 1500, vec![(Bbr, 0)], 40),
        scene(
            "long-cubic",
            "CUBIC, 10 Gbit/s, 100 ms",
            path(10_000, 100, 50, 0),
            9000,
            vec![(Cubic, 0)],
            12,
        ),
        scene(
            "long-bbr",
            "BBR, 10 Gbit/s, 100 ms",
            path(10_000, 100, 50, 0),
            9000,
            vec![(Bbr, 0)],
            12,
        ),
    ]
}

/// Runs every scene, writes its plot and prints what came of it. `quick`: an eighth of the time.
pub(super) fn write(folder: &Path, quick: bool) -> Result<(), Failure> {
    let scenes = scenes();
    let bar = progress(scenes.len());
    let mut rows = Vec::new();
    for scene in &scenes {
        bar.set_message(scene.title);
        let duration = scene.seconds * SECOND / if quick { 8 } else { 1 };
        let flows: Vec<Flow> =
            scene.flows.iter().map(|(algorithm, begins)| flow(*algorithm, *begins)).collect();
        let outcome = share(1, &scene.path, scene.mtu, &flows, duration, INTERVAL);
        let outcome = outcome.ok_or(Failure::Transport("no memory for a simulation"))?;
        plot(scene, &outcome, duration).write(folder)?;
        rows.push(row(scene, &outcome, duration / SETTLED));
        bar.inc(1);
    }
    bar.finish_and_clear();
    say!("{}", table(&["flows", "share of the path", "Jain's index", "sent again"], rows));
    say!("plots: {}", folder.display());
    Ok(())
}

fn flow(congestion: Algorithm, begins: u64) -> Flow {
    let options = Options {
        congestion,
        receive_buffer: 1_000_000,
        receive_buffer_limit: 600_000_000,
        transmit_buffer: 600_000_000,
        ..Options::default()
    };
    Flow { options, begins, delay: 0 }
}

fn row(scene: &Scene, outcome: &Outcome, from: u64) -> Vec<String> {
    let rate: f64 = (0..scene.flows.len()).map(|flow| outcome.rate(flow, from)).sum();
    vec![
        scene.title.to_owned(),
        format!("{:.1} %", rate * 100.0 / scene.path.rate as f64),
        format!("{:.3}", outcome.fairness(from)),
        outcome.retransmissions.to_string(),
    ]
}

fn plot(scene: &Scene, outcome: &Outcome, duration: u64) -> Plot {
    let megabits = |rate: f64| rate * 8.0 / 1e6;
    let seconds = |at: u64| at as f64 / 1e9;
    let flows = outcome.flows.iter().zip(&scene.flows).enumerate();
    let lines = flows.map(|(place, (samples, (algorithm, _)))| {
        let points = samples.iter().map(|sample| (seconds(sample.at), megabits(sample.rate)));
        Line::new(format!("{algorithm:?} {}", place + 1), points.collect())
    });
    Plot {
        name: scene.name.into(),
        title: scene.title.into(),
        horizontal: Axis::up_to(seconds(duration), "s"),
        vertical: Axis::up_to(megabits(scene.path.rate as f64) * 1.2, "Mbit/s"),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_names_its_flows() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plot.svg");
        let flows = vec![(Algorithm::Cubic, 0), (Algorithm::Bbr, SECOND)];
        let scene = Scene {
            name: "plot",
            title: "two flows",
            path: path(10, 20, 20, 0),
            mtu: 1500,
            flows: flows.clone(),
            seconds: 4,
        };
        let flows: Vec<Flow> =
            flows.into_iter().map(|(algorithm, at)| flow(algorithm, at)).collect();
        let outcome = share(1, &scene.path, 1500, &flows, 4 * SECOND, INTERVAL).unwrap();
        plot(&scene, &outcome, 4 * SECOND).write(folder.path()).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        for word in ["two flows", "Cubic 1", "Bbr 2", "Mbit/s"] {
            assert!(text.contains(word), "{word}");
        }
    }
}
