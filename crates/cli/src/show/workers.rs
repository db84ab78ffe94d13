//! `millrace show workers`

use control::api::Worker;

use super::watch::Watched;
use crate::failure::Failure;
use crate::output::Table;
use crate::units::{count, decimal, packet_rate, percent};

/// `millrace show workers`
pub(super) struct Workers;

impl Watched for Workers {
    type Row = Worker;
    const PATH: &'static str = "/v1/workers";

    fn totals(&self, workers: &[Worker]) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "#core",
            "state",
            "#load",
            "#packets",
            "#cycles/packet",
            "#to control",
            "#rounds",
            "#idle",
            "#sleeps",
            "#ICMP limited",
        ]);
        for worker in workers {
            table.row([
                worker.core.to_string(),
                state(worker).to_owned(),
                percent(worker.utilization()),
                count(worker.packets),
                decimal(worker.cycles_per_packet()),
                count(worker.punts),
                count(worker.rounds),
                count(worker.idle_rounds),
                count(worker.sleeps),
                count(worker.icmp_limited),
            ]);
        }
        table.print("no workers")
    }

    fn rates(&self, before: &[Worker], now: &[Worker], seconds: f64) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "#core",
            "state",
            "#load",
            "#packets",
            "#cycles/packet",
            "#to control",
            "#sleeps/s",
            "#ICMP limited",
        ]);
        for worker in now {
            let since = before.iter().find(|old| old.core == worker.core);
            let new = since.map_or_else(|| worker.clone(), |old| difference(worker, old));
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            let sleeps = new.sleeps as f64 / seconds.max(f64::MIN_POSITIVE);
            table.row([
                new.core.to_string(),
                state(&new).to_owned(),
                percent(new.utilization()),
                packet_rate(new.packets, seconds),
                decimal(new.cycles_per_packet()),
                packet_rate(new.punts, seconds),
                format!("{sleeps:.0}"),
                packet_rate(new.icmp_limited, seconds),
            ]);
        }
        table.print("no workers")
    }
}

fn state(worker: &Worker) -> &'static str {
    if worker.answers { "up" } else { "no answer" }
}

/// What a worker counted since `old`; a counter that went back has started anew.
fn difference(now: &Worker, old: &Worker) -> Worker {
    Worker {
        rounds: now.rounds.saturating_sub(old.rounds),
        idle_rounds: now.idle_rounds.saturating_sub(old.idle_rounds),
        busy_cycles: now.busy_cycles.saturating_sub(old.busy_cycles),
        idle_cycles: now.idle_cycles.saturating_sub(old.idle_cycles),
        sleep_cycles: now.sleep_cycles.saturating_sub(old.sleep_cycles),
        packets: now.packets.saturating_sub(old.packets),
        punts: now.punts.saturating_sub(old.punts),
        sleeps: now.sleeps.saturating_sub(old.sleeps),
        icmp_limited: now.icmp_limited.saturating_sub(old.icmp_limited),
        ..now.clone()
    }
}
