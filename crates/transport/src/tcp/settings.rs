//! Options that segments read, kept where segments look.

use super::cold::Cold;
use super::hot::{Hot, flag};

/// Takes over what of the options is kept in the connection's hot part.
pub(crate) fn apply<F>(hot: &mut Hot, cold: &Cold<F>) {
    let options = &cold.options;
    for (set, bit) in [
        (options.no_delay, flag::NO_DELAY),
        (options.cork, flag::CORK),
        (options.quick_ack, flag::QUICK_ACK),
        (!options.mtu_discovery || hot.has(flag::NARROW), flag::FRAGMENTS),
        (cold.is_paced(), flag::PACED),
    ] {
        if set { hot.set(bit) } else { hot.clear(bit) }
    }
    hot.ttl = options.ttl;
    hot.service = options.dscp << 2;
}
