//! Turns: in each round every path has one, so that noise on the machine meets all alike.

use crate::failure::Failure;
use crate::results::Samples;
use crate::terminal::Parts;
use crate::turns::Rounds;

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
    pub(super) turns: Rounds<Path, Turn>,
}

impl Contest {
    pub(super) fn run(
        bed: &Bed,
        servers: &Servers,
        case: Case,
        paths: &[Path],
        rounds: u32,
        bar: &Parts,
    ) -> Result<Self, Failure> {
        nginx::body(bed, case.body)?;
        let turns = Rounds::take(paths, rounds, |path| {
            let turn = turn(bed, servers.of(path)?, case, path);
            bar.step();
            turn
        })?;
        Ok(Self { case, turns })
    }

    /// Requests per second of a path to those of another, round by round.
    pub(super) fn ratios(&self, path: Path, yardstick: Path) -> Samples {
        let rates = |path| self.turns.samples(path, |turn| turn.load.rate);
        rates(path).ratios(&rates(yardstick))
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
    use crate::turns::Calm;

    #[test]
    fn ratios_are_those_of_each_round() {
        let turn = |rate| {
            let load = Load { rate, ..Load::default() };
            Turn { load, server: 0.5, daemon: 0.25 }
        };
        let case = super::super::cases::of(&parse("--bodies 64").unwrap(), 1)[0];
        let mut rates = [10.0, 20.0, 100.0, 100.0].into_iter();
        let paths = [Path::Pinned, Path::Tap];
        let calm = Calm::quiet(2);
        let turns = Rounds::taken(&paths, calm, |_| Ok(turn(rates.next().unwrap()))).unwrap();
        let contest = Contest { case, turns };
        assert_eq!(contest.ratios(Path::Tap, Path::Pinned).0, [2.0, 1.0]);
        assert_eq!(contest.turns.samples(Path::Tap, |turn| turn.daemon).0, [0.25, 0.25]);
    }
}
