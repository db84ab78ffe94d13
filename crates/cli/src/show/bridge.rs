//! `millrace show bridge`

use control::api::Bridge;

use crate::failure::Failure;
use crate::output::{Table, line, or_dash};
use crate::units::{age, count};

pub(super) fn bridges(bridges: Vec<Bridge>) -> Result<(), Failure> {
    if bridges.is_empty() {
        return line("no bridges; declare them with [[bridge]] in the configuration");
    }
    for bridge in bridges {
        let filtering = if bridge.vlan_filtering { "with" } else { "without" };
        line(format!(
            "{}: {} members, {} of {} addresses learned, ageing {} s, {filtering} VLAN filtering",
            bridge.name,
            bridge.members.len(),
            count(bridge.learned.used),
            count(bridge.learned.capacity),
            bridge.ageing
        ))?;
        let mut members = Table::new(&["member", "vlans", "untagged"]);
        for member in bridge.members {
            let vlans: Vec<_> = member.vlans.iter().map(ToString::to_string).collect();
            let vlans = if vlans.is_empty() { "all".to_owned() } else { vlans.join(",") };
            members.row([member.interface, vlans, or_dash(member.untagged)]);
        }
        members.print("no members")?;
        let mut macs = Table::new(&["mac", "#vlan", "member", "#seen"]);
        for mac in bridge.macs {
            let seen = format!("{} ago", age(u64::from(mac.age) * 1_000));
            macs.row([mac.mac.to_string(), or_dash(mac.vlan), mac.interface, seen]);
        }
        macs.print("no address learned yet")?;
    }
    Ok(())
}
