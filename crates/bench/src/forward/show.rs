//! The table that people read.

use dpdk::Eal;

use super::cases::Routes;
use super::measure::{Contest, GOAL, Rival};
use crate::results::{Samples, table, verdict};
use crate::terminal::say;

/// The large case may cost so many times what the small one does.
const SCALE: f64 = 2.0;

/// Prints all contests, and how they compare with the goals.
pub(crate) fn print(contests: &[Contest], profile: bool) {
    say!(
        "TSC cycles per packet on one core, median (least); above io, in each turn, median (of 80 % of the turns):"
    );
    say!("{}", table(&HEADER, contests.iter().map(row).collect()));
    for contest in contests {
        let above = contest.above_io();
        if above.median().is_finite() {
            let (case, met) = (contest.case, verdict(above.median() <= GOAL));
            say!("{case}: {} above io; goal {GOAL}: {met}", spread(&above, 1));
        }
    }
    scale(contests);
    for contest in contests {
        contest.l3fwd.iter().for_each(|rival| beside(contest, rival));
    }
    for contest in contests.iter().filter(|_| profile) {
        say!("\n{}: TSC cycles of each node", contest.case);
        let rows = contest.profile.iter();
        let rows = rows.map(|(name, vector, cycles)| {
            vec![(*name).to_owned(), format!("{vector:.0}"), format!("{cycles:.2}")]
        });
        say!("{}", table(&["node", "packets/vector", "cycles/packet"], rows.collect()));
    }
}

/// How DPDK's example router compares.
fn beside(contest: &Contest, rival: &Rival) {
    let (case, look_up) = (contest.case, rival.look_up);
    let ratio = contest.beside(rival);
    let cycles = number(rival.samples.median(), rival.samples.min());
    let goal = contest
        .case
        .goal()
        .map(|goal| format!("; goal {goal}: {}", verdict(ratio.median() <= goal)));
    let unequal = Eal::get().is_some_and(Eal::hugepages) && !rival.hugepages;
    let pages = if unequal { ", its tables in pages of 4 KB" } else { "" };
    say!(
        "{case}: l3fwd {look_up} {cycles}; ours {} of its cycles above io{}{pages}",
        spread(&ratio, 2),
        goal.unwrap_or_default()
    );
}

const HEADER: [&str; 8] =
    ["case", "Mpps", "forward", "above io", "testpmd io", "testpmd macswap", "binding io", ""];

fn row(contest: &Contest) -> Vec<String> {
    let pair = |samples: &Samples| number(samples.median(), samples.min());
    vec![
        contest.case.to_string(),
        format!("{:.1}", dpdk::tsc_hz() as f64 / contest.forward.median() / 1e6),
        pair(&contest.forward),
        spread(&contest.above_io(), 1),
        pair(&contest.io),
        pair(&contest.macswap),
        pair(&contest.binding),
        String::new(),
    ]
}

fn number(median: f64, least: f64) -> String {
    if median.is_finite() { format!("{median:.1} ({least:.1})") } else { "-".into() }
}

/// The median of turns, and between what eight of ten of them lie.
fn spread(turns: &Samples, digits: usize) -> String {
    if !turns.median().is_finite() {
        return "-".into();
    }
    let [middle, low, high] = [turns.median(), turns.percentile(10.0), turns.percentile(90.0)];
    format!("{middle:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// Compares a million flows over a full table with the small case of the same family.
fn scale(contests: &[Contest]) {
    let large =
        |contest: &&Contest| contest.case.flows >= 1_000_000 && contest.case.routes == Routes::Full;
    for large in contests.iter().filter(large) {
        let small = contests.iter().find(|small| {
            small.case.flows == 10_000
                && small.case.routes == Routes::Some(10_000)
                && small.case.family == large.case.family
                && small.case.frames == large.case.frames
        });
        if let Some(small) = small {
            let times = large.forward.median() / small.forward.median();
            let met = verdict(times <= SCALE);
            say!(
                "{}: {times:.2} times the cycles of 10k flows and routes; goal {SCALE}: {met}",
                large.case
            );
        }
    }
}
