//! Turns: in each round every path has one, so that noise on the machine meets all alike.

use crate::failure::Failure;
use crate::results::Samples;

use super::bed::Bed;
use super::cases::Case;
use super::nginx::{self, Nginx};
use super::path::{Path, Placement};
use super::wrk::{self, Load};

/// A turn without any request is repeated, so often at most.
const TRIES: u32 = 3;

/// The servers that the paths need, each with so many workers.
pub(super) struct Servers(Vec<Nginx>);

impl Servers {
    pub(super) fn start(bed: &Bed, paths: &[Path], workers: u32) -> Result<Self, Failure> {
        let all = [Placement::Loose, Placement::Pinned, Placement::Millrace, Placement::Shared]
            .into_iter();
        let needed = all.filter(|place| paths.iter().any(|path| path.server() == *place));
        needed.map(|place| Nginx::start(bed, place, workers)).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn of(&self, path: Path) -> Result<&Nginx, Failure> {
        let mut all = self.0.iter();
        let found = all.find(|nginx| nginx.placement == path.server());
        found.ok_or_else(|| Failure::Serve(format!("no NGINX for {path}")))
    }
}

/// One turn of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) load: Load,
    /// CPU time: s.
    pub(super) server: f64,
    pub(super) daemon: f64,
}

/// What a case has given.
pub(super) struct Contest {
    pub(super) case: Case,
    /// By path: its turns, in the order of the rounds.
    pub(super) turns: Vec<(Path, Vec<Turn>)>,
}

impl Contest {
    pub(super) fn run(
        bed: &Bed,
        servers: &Servers,
        case: Case,
        paths: &[Path],
        rounds: u32,
    ) -> Result<Self, Failure> {
        nginx::body(bed, case.body)?;
        let mut turns: Vec<(Path, Vec<Turn>)> =
            paths.iter().map(|path| (*path, Vec::new())).collect();
        for _ in 0..rounds {
            for (path, turns) in &mut turns {
                turns.push(turn(bed, servers.of(*path)?, case, *path)?);
            }
        }
        Ok(Self { case, turns })
    }

    /// A quantity of all turns of a path.
    pub(super) fn samples(&self, path: Path, what: impl Fn(&Turn) -> f64) -> Samples {
        let of = self.turns.iter().filter(|(other, _)| *other == path);
        Samples(of.flat_map(|(_, turns)| turns.iter().map(&what)).collect())
    }

    /// Requests per second of a path to those of another, round by round.
    pub(super) fn ratios(&self, path: Path, yardstick: Path) -> Samples {
        let rate = |turn: &Turn| turn.load.rate;
        let (ours, its) = (self.samples(path, rate), self.samples(yardstick, rate));
        Samples(ours.0.iter().zip(&its.0).map(|(ours, its)| ours / its).collect())
    }
}

fn turn(bed: &Bed, nginx: &Nginx, case: Case, path: Path) -> Result<Turn, Failure> {
    let url = format!("http://{}:{}/{}", Bed::address(path), nginx.port, case.body);
    let mut before;
    let mut tries = 0;
    let load = loop {
        before = (nginx.running.usage().cpu, bed.daemon().usage().cpu);
        let load = wrk::run(bed, path, case, &url)?;
        tries += 1;
        // On a machine that others use, nobody may have got a core in time.
        if load.requests > 0.0 || tries == TRIES {
            break load;
        }
    };
    let after = (nginx.running.usage().cpu, bed.daemon().usage().cpu);
    Ok(Turn { load, server: after.0 - before.0, daemon: after.1 - before.1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

    #[test]
    fn ratios_are_those_of_each_round() {
        let turn = |rate| {
            let load = Load { rate, ..Load::default() };
            Turn { load, server: 0.5, daemon: 0.25 }
        };
        let case = super::super::cases::of(&parse("--bodies 64").unwrap(), 1)[0];
        let turns = vec![
            (Path::Pinned, vec![turn(10.0), turn(100.0)]),
            (Path::Tap, vec![turn(20.0), turn(100.0)]),
        ];
        let contest = Contest { case, turns };
        assert_eq!(contest.ratios(Path::Tap, Path::Pinned).0, [2.0, 1.0]);
        assert_eq!(contest.samples(Path::Tap, |turn| turn.daemon).0, [0.25, 0.25]);
    }
}
