//! Options that segments read, kept where segments look.

use super::cold::Cold;
use super::hot::{Hot, flag};
use super::mtu::LEAST;

/// Takes over what of the options is kept in the connection's hot part.
pub(crate) fn apply<F>(hot: &mut Hot, cold: &Cold<F>) {
    let options = &cold.options;
    // What ICMP has told of the path still holds (`shrink`).
    let narrow = hot.has(flag::FRAGMENTS) && cold.path_mtu <= LEAST.0;
    for (set, bit) in [
        (options.no_delay, flag::NO_DELAY),
        (options.cork, flag::CORK),
        (options.quick_ack, flag::QUICK_ACK),
        (!options.mtu_discovery || narrow, flag::FRAGMENTS),
        (cold.is_paced(), flag::PACED),
    ] {
        if set { hot.set(bit) } else { hot.clear(bit) }
    }
    hot.ttl = options.ttl;
    hot.service = options.dscp << 2;
}
