//! What is asked of NGINX.

use std::fmt;

use super::args::Args;

/// Bytes of the body that comparisons of other things are made with.
const BODY: u32 = 64;
/// Connections that they are made with.
const CONNECTIONS: u32 = 64;

/// One load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    /// Bytes.
    pub(super) body: u32,
    pub(super) connections: u32,
    /// Of NGINX.
    pub(super) workers: u32,
    /// Connections are used again; else each request has its own.
    pub(super) keep_alive: bool,
}

impl Case {
    const PLAIN: Self = Self { body: BODY, connections: CONNECTIONS, workers: 1, keep_alive: true };
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { body, connections, workers, keep_alive } = self;
        let life = if *keep_alive { "keep-alive" } else { "a connection each" };
        let plural = |count: &u32| if *count == 1 { "" } else { "s" };
        write!(
            f,
            "{body} B, {connections} connection{}, {workers} worker{}, {life}",
            plural(connections),
            plural(workers)
        )
    }
}

/// What is measured, by number of workers.
pub(super) fn of(args: &Args, most_workers: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    if !args.bodies.is_empty() || !args.connections.is_empty() || !args.workers.is_empty() {
        let or = |list: &[u32], plain| if list.is_empty() { vec![plain] } else { list.to_vec() };
        for workers in or(&args.workers, 1) {
            for body in or(&args.bodies, BODY) {
                for connections in or(&args.connections, CONNECTIONS) {
                    let keep_alive = !args.close;
                    cases.push(Case { body, connections, workers, keep_alive });
                }
            }
        }
    } else if args.quick {
        cases.push(Case::PLAIN);
        cases.push(Case { connections: 1, ..Case::PLAIN });
        cases.push(Case { keep_alive: false, ..Case::PLAIN });
    } else {
        let bodies = [0, 64, 1_024, 10_240, 102_400];
        cases.extend(bodies.map(|body| Case { body, ..Case::PLAIN }));
        cases.extend([1, 16, 256, 1_000].map(|connections| Case { connections, ..Case::PLAIN }));
        cases.push(Case { keep_alive: false, ..Case::PLAIN });
        let more = (1..).map(|power| 1 << power).take_while(|workers| *workers <= most_workers);
        cases.extend(more.map(|workers| Case { workers, ..Case::PLAIN }));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

    fn cases(line: &str) -> Vec<Case> {
        of(&parse(line).unwrap(), 4)
    }

    #[test]
    fn a_choice_or_every_combination() {
        assert_eq!(cases("--quick").len(), 3);
        let all = cases("");
        assert_eq!(all.iter().map(|case| case.workers).max(), Some(4));
        assert!(all.windows(2).all(|two| two[0].workers <= two[1].workers), "workers start once");
        let few = cases("--bodies 0,1000 --connections 1,2,3 --close");
        assert_eq!(few.len(), 6);
        assert!(few.iter().all(|case| !case.keep_alive && case.workers == 1));
    }
}
