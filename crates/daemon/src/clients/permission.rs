//! Who may attach, and to which ports: by what the kernel says of the process.

use control::config::ClientRule;
use shm::attach::{Refusal, RefusalKind};

use crate::processes::Process;
use crate::service::group_id;

/// The group whose members may attach where the configuration has no rules.
const GROUP: &str = "millrace";

/// The ports that a client may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allowed {
    All,
    These(Vec<String>),
}

/// What a process hears that may not attach. `rules`: those in force, by which the group counts or does not.
pub(super) fn stranger(rules: &[ClientRule], process: &Process) -> Refusal {
    let uid = process.credentials.uid;
    let problem = if rules.is_empty() {
        format!(
            "user {uid} may not attach; be root or in the group {GROUP}, or add a [[client]] rule \
             to the configuration"
        )
    } else {
        format!(
            "user {uid} may not attach: no [[client]] rule of the configuration names it or one of \
             its groups; add one, or be root"
        )
    };
    Refusal::new(RefusalKind::Permission, problem)
}

/// Whether a process is in the group whose members may attach where there are no rules. Reads a file: not for the control
/// thread.
pub(super) fn is_member(process: &Process) -> bool {
    group_id(GROUP).is_ok_and(|group| process.groups.contains(&group))
}

impl Allowed {
    /// Of a process; `member`: [`is_member`] has said so. `None`: it may not attach.
    pub(super) fn of(rules: &[ClientRule], process: &Process, member: bool) -> Option<Self> {
        let Process { credentials, groups } = process;
        if credentials.uid == 0 {
            return Some(Self::All);
        }
        if rules.is_empty() {
            return member.then_some(Self::All);
        }
        let mut ports = None::<Vec<String>>;
        for rule in rules {
            let user = rule.uid == Some(credentials.uid);
            if !user && !rule.gid.is_some_and(|gid| groups.contains(&gid)) {
                continue;
            }
            if rule.ports.is_empty() {
                return Some(Self::All);
            }
            ports.get_or_insert_default().extend(rule.ports.iter().cloned());
        }
        ports.map(Self::These)
    }

    /// Whether the port is among them.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(ports) => ports.iter().any(|port| port == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::attach::PeerCredentials;

    fn rule(uid: Option<u32>, gid: Option<u32>, ports: &[&str]) -> ClientRule {
        ClientRule { uid, gid, ports: ports.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn users_and_groups_get_what_the_rules_say() {
        let rules = [
            rule(Some(1000), None, &["left"]),
            rule(None, Some(50), &["right"]),
            rule(None, Some(60), &[]),
        ];
        let of = |uid, groups: &[u32]| {
            let credentials = PeerCredentials { pid: 1, uid, gid: groups[0] };
            // The group counts only where there are no rules.
            Allowed::of(&rules, &Process { credentials, groups: groups.to_vec() }, true)
        };
        assert_eq!(of(0, &[0]), Some(Allowed::All));
        assert_eq!(of(1001, &[1001]), None);
        let left = of(1000, &[1000]).unwrap();
        assert!(left.has("left") && !left.has("right"));
        let both = of(1000, &[1000, 50]).unwrap();
        assert!(both.has("left") && both.has("right") && !both.has("other"));
        assert_eq!(of(1000, &[60]), Some(Allowed::All));
        // Without rules nobody but root and the group.
        let credentials = PeerCredentials { pid: 1, uid: 1000, gid: 4_000_000 };
        let nobody = Process { credentials, groups: vec![4_000_000] };
        assert!(!is_member(&nobody));
        assert_eq!(Allowed::of(&[], &nobody, false), None);
        assert_eq!(Allowed::of(&[], &nobody, true), Some(Allowed::All));
    }

    #[test]
    fn a_stranger_hears_of_the_group_only_while_it_counts() {
        let credentials = PeerCredentials { pid: 1, uid: 1000, gid: 1000 };
        let process = Process { credentials, groups: vec![1000] };
        let without = stranger(&[], &process).message;
        assert!(without.contains("in the group millrace"), "{without}");
        let with = stranger(&[rule(Some(5), None, &[])], &process).message;
        assert!(!with.contains(GROUP) && with.contains("no [[client]] rule"), "{with}");
    }
}
