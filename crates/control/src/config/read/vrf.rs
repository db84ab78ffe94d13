//! Reads VRFs.

use super::names::Names;
use super::report::Report;
use super::section::Section;
use crate::config::{MOST_VRFS, Vrf};

/// Reads the VRFs.
pub(super) fn vrfs(sections: Vec<Section<'_>>, report: &Report, names: &mut Names) -> Vec<Vrf> {
    let mut vrfs = Vec::new();
    for mut section in sections {
        let name = names.claim_vrf(report, &mut section);
        if vrfs.len() == MOST_VRFS && name.is_some() {
            let problem =
                format!("is beyond the {MOST_VRFS} VRFs, each of which has tables of its own");
            section.wrong("name", problem, "remove some".to_owned());
            break;
        }
        vrfs.extend(name.map(|name| Vrf { name }));
        section.finish();
    }
    vrfs
}
