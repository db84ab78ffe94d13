//! What is said of a comparison.

use super::judge::{CHANCE, Judged, RUNS, Side, Verdict};
use crate::archive::{beside, quantity};

/// A yardstick that has moved by more than this, in the same direction as ours, is mentioned.
const DRIFT: f64 = 0.02;

impl Judged {
    /// One line: what it is, what it was and what it became, and whether that is more than noise.
    pub(crate) fn line(&self) -> String {
        let machine = self.before.as_ref().or(self.after.as_ref()).map(|side| &side.machine);
        let machine = machine.map_or("", String::as_str);
        match self.verdict {
            Verdict::OnlyBefore => format!("{}: only in A ({machine})", self.what),
            Verdict::OnlyAfter => format!("{}: only in B ({machine})", self.what),
            Verdict::Machines => format!(
                "{}: {}; not comparable as absolute figures, and no yardstick was measured in both",
                self.what,
                self.machines()
            ),
            _ => format!("{}: {}{}{}", self.what, self.prefix(), self.figures(), self.sentence()),
        }
    }

    fn machines(&self) -> String {
        let machine = |side: &Option<Side>| {
            side.as_ref().map_or_else(|| "unknown".to_owned(), |side| side.machine.clone())
        };
        format!("other machine: {} against {}", machine(&self.before), machine(&self.after))
    }

    fn prefix(&self) -> String {
        let Some(yardstick) = &self.ratio_to else { return String::new() };
        format!(
            "{}; not comparable as absolute figures, the ratios to {yardstick} are: ",
            self.machines()
        )
    }

    /// `50.5 -> 44.9 cycles/packet: `
    fn figures(&self) -> String {
        let value = |side: &Option<Side>| side.as_ref().map_or(f64::NAN, |side| side.value);
        let (before, after) = (value(&self.before), value(&self.after));
        let unit = if self.ratio_to.is_some() { "times" } else { self.unit.as_str() };
        if self.verdict == Verdict::Same {
            return format!("{}: ", quantity(before, unit));
        }
        format!("{} -> {}: ", beside(before, unit), quantity(after, unit))
    }

    /// What the change comes to.
    pub(super) fn sentence(&self) -> String {
        match self.verdict {
            Verdict::Same => "the same".into(),
            Verdict::Noise => match self.unseen() {
                Some(percent) => format!(
                    "no change seen: within noise (a difference under {} % would not show)",
                    short(percent)
                ),
                None => "no change seen: within noise".into(),
            },
            Verdict::Few => format!(
                "{}too few trials to tell it from noise ({}); repeat the runs, A and B in turn",
                self.change().map_or_else(String::new, |change| format!("{change}; ")),
                self.trials()
            ),
            _ => {
                let change = self.change().unwrap_or_else(|| self.direction().to_owned());
                let sense = match (self.verdict, self.wording().better) {
                    (Verdict::Different, _) | (_, None) => {
                        "; whether that is better, the unit does not say"
                    }
                    _ => "",
                };
                format!("{change}{}, more than noise{sense}{}", self.bounds(), self.drift())
            }
        }
    }

    fn direction(&self) -> &'static str {
        let value = |side: &Option<Side>| side.as_ref().map_or(f64::NAN, |side| side.value);
        let grown = self
            .ratio
            .map_or_else(|| value(&self.after) > value(&self.before), |ratio| ratio > 1.0);
        if grown { self.wording().grown } else { self.wording().shrunk }
    }

    /// `faster by 12 %`; `None` without a ratio.
    fn change(&self) -> Option<String> {
        let percent = (self.ratio? - 1.0).abs() * 100.0;
        Some(format!("{} by {} %", self.direction(), short(percent)))
    }

    /// ` (95 %: 9 to 15 %)`
    fn bounds(&self) -> String {
        let (Some([low, high]), Some(ratio)) = (self.interval, self.ratio) else {
            return String::new();
        };
        let percent = |bound: f64| short((bound - 1.0).abs() * 100.0);
        let [near, far] = if ratio > 1.0 { [low, high] } else { [high, low] };
        format!(" (95 %: {} to {} %)", percent(near), percent(far))
    }

    /// How far the true ratio may be from the one seen: percent.
    fn unseen(&self) -> Option<f64> {
        let ([low, high], ratio) = (self.interval?, self.ratio?);
        Some((high / ratio - 1.0).max(1.0 - low / ratio) * 100.0)
    }

    fn trials(&self) -> String {
        let count = |side: &Option<Side>| side.as_ref().map_or(0, |side| side.samples);
        format!("{} and {}", count(&self.before), count(&self.after))
    }

    /// Where the yardstick has gone the same way, the machine may have changed in place of the code.
    fn drift(&self) -> String {
        let (Some(ours), Some(its)) = (self.ratio, self.yardstick_ratio) else {
            return String::new();
        };
        if (its - 1.0).abs() < DRIFT || (its > 1.0) != (ours > 1.0) {
            return String::new();
        }
        let way = if its > 1.0 { self.wording().grown } else { self.wording().shrunk };
        let percent = short((its - 1.0).abs() * 100.0);
        format!("; but the yardstick was {way} by {percent} % as well: the machine has changed")
    }
}

/// What is said of all: counts of verdicts, how many may be by chance, and of how many too few runs are known.
pub(crate) fn summary(all: &[Judged]) -> String {
    let count = |verdict| all.iter().filter(|judged| judged.verdict == verdict).count();
    let compared = [Verdict::Better, Verdict::Worse, Verdict::Different, Verdict::Noise];
    let compared: usize = compared.into_iter().map(count).sum();
    let mut text = format!(
        "{compared} compared: {} better, {} worse, {} within noise",
        count(Verdict::Better),
        count(Verdict::Worse),
        count(Verdict::Noise)
    );
    let others = [
        (Verdict::Different, "different"),
        (Verdict::Same, "the same"),
        (Verdict::Few, "with too few trials"),
        (Verdict::Machines, "of other machines"),
        (Verdict::OnlyBefore, "only in A"),
        (Verdict::OnlyAfter, "only in B"),
    ];
    for (verdict, words) in others {
        let count = count(verdict);
        if count > 0 {
            text += &format!(", {count} {words}");
        }
    }
    let chance = compared as f64 * CHANCE;
    if chance >= 0.5 {
        text += &format!(
            "\nby chance alone, up to {chance:.0} of {compared} would seem to differ: repeat what surprises you"
        );
    }
    let few = all.iter().filter(|judged| judged.is_of_few_runs()).count();
    if few > 0 {
        text += &format!(
            "\n{few} of these differences: fewer than {RUNS} runs on a side, which do not show how much runs of the same build differ; \
             to see that, run A and B in turn, {RUNS} times or more, and name the folders"
        );
    }
    text
}

/// A percentage with as many digits as mean something.
fn short(percent: f64) -> String {
    if percent >= 9.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}
