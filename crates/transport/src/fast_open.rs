//! TCP Fast Open (RFC 7413): cookies that a server gives out, and those that a client keeps.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::options::SECOND;
use crate::siphash::Secret;

/// How long a server's cookies are made with one key: ns. A cookie is good for this period and the next.
const PERIOD: u64 = 86_400 * SECOND;
/// A SYN with Fast Open that got no answer: so long none is tried again, twice as long after each
/// further one (4.1.3.1): ns.
const PAUSE: u64 = 60 * SECOND;

/// A cookie: 4 to 16 bytes, an even number (4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    bytes: [u8; 16],
    length: u8,
}

impl Cookie {
    /// `None` when the length is not one that a cookie may have.
    pub(crate) fn new(from: &[u8]) -> Option<Self> {
        if !(4..=16).contains(&from.len()) || from.len() % 2 != 0 {
            return None;
        }
        let mut bytes = [0; 16];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self { bytes, length: from.len() as u8 })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

/// What a SYN or its answer says of Fast Open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// No option, or one of a length that means nothing.
    Nothing,
    /// A cookie is asked for.
    Request,
    /// A cookie.
    Cookie(Cookie),
}

/// Keys that are given from outside (`TCP_FASTOPEN_KEY`), as when several servers answer for one address, or one
/// is to be followed by another that knows its cookies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastOpenKeys {
    /// Cookies are made with it.
    pub primary: [u8; 16],
    /// Cookies that were made with it are good too, and are renewed. Before a key is changed it stands here at
    /// all servers; afterwards the old one does.
    pub backup: Option<[u8; 16]>,
}

impl std::fmt::Debug for FastOpenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FastOpenKeys")
            .field("backup", &self.backup.is_some())
            .finish_non_exhaustive()
    }
}

/// What cookies are made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// Changes by itself with the day.
    secret: Secret,
    given: Option<FastOpenKeys>,
}

fn secret_of(key: [u8; 16]) -> Secret {
    let bits = u128::from_le_bytes(key);
    Secret([bits as u64, (bits >> 64) as u64])
}

impl Keys {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, given: None }
    }

    /// Uses given keys from now on; `None`: its own again.
    pub(crate) fn give(&mut self, keys: Option<FastOpenKeys>) {
        self.given = keys;
    }

    /// The cookie for a client's address at `now` (ns): 8 bytes.
    pub(crate) fn make(&self, client: IpAddr, now: u64) -> Cookie {
        match self.given {
            Some(keys) => made_in(&secret_of(keys.primary), client, 0),
            None => made_in(&self.secret, client, now / PERIOD),
        }
    }

    /// Judges a cookie that comes from `client` at `now` (ns).
    pub(crate) fn judge(&self, client: IpAddr, cookie: &Cookie, now: u64) -> Verdict {
        if self.make(client, now) == *cookie {
            return Verdict::Good;
        }
        let older = match self.given {
            Some(keys) => keys.backup.map(|key| made_in(&secret_of(key), client, 0)),
            None => (now / PERIOD).checked_sub(1).map(|last| made_in(&self.secret, client, last)),
        };
        if older == Some(*cookie) { Verdict::Old } else { Verdict::Bad }
    }
}

fn made_in(secret: &Secret, client: IpAddr, period: u64) -> Cookie {
    let bits = crate::ends::to_v6(client).to_bits();
    // The leading number keeps these hashes apart from those of sequence numbers and ports.
    let hash = secret.hash(&[6, period, (bits >> 64) as u64, bits as u64]);
    let mut bytes = [0; 16];
    if let Some(place) = bytes.first_chunk_mut() {
        *place = hash.to_be_bytes();
    }
    Cookie { bytes, length: 8 }
}

/// What a server thinks of a client's cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// Good, but the key has changed since: the client should get a new one.
    Old,
    Bad,
}

/// What a client knows of a server.
#[derive(Debug, Clone, Copy)]
struct Server {
    cookie: Option<Cookie>,
    /// Segment size that it announced: bytes.
    mss: u16,
    /// When something was last learned: ns.
    at: u64,
    /// Nothing is tried until then: ns.
    pause_until: u64,
    /// SYNs in a row without an answer.
    silences: u8,
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing: the last tries met silence.
    Plain,
    /// Ask for a cookie.
    Ask,
    /// Send data, at most for a segment of so many bytes.
    Send(Cookie, u16),
}

/// What a client knows of servers, of so many at most.
#[derive(Debug)]
pub(crate) struct Servers {
    known: BTreeMap<IpAddr, Server>,
    most: usize,
}

impl Servers {
    pub(crate) fn new(most: usize) -> Self {
        Self { known: BTreeMap::new(), most }
    }

    pub(crate) fn plan(&self, server: IpAddr, now: u64) -> Plan {
        match self.known.get(&server) {
            Some(known) if known.pause_until > now => Plan::Plain,
            Some(Server { cookie: Some(cookie), mss, .. }) => Plan::Send(*cookie, *mss),
            _ => Plan::Ask,
        }
    }

    /// A SYN was answered; `cookie`: by a new one.
    pub(crate) fn answered(&mut self, server: IpAddr, cookie: Option<Cookie>, mss: u16, now: u64) {
        if cookie.is_none() && !self.known.contains_key(&server) {
            return;
        }
        if let Some(known) = self.entry(server, now) {
            (known.mss, known.at, known.silences) = (mss, now, 0);
            known.cookie = cookie.or(known.cookie);
        }
    }

    /// The server did not take the data, and gave no new cookie: the old one is worth nothing, and none is
    /// asked for before a pause (RFC 7413 4.1.3.1), from none of its ports.
    pub(crate) fn refused(&mut self, server: IpAddr, now: u64) {
        if let Some(known) = self.known.get_mut(&server) {
            known.cookie = None;
            known.pause_until = now.saturating_add(PAUSE);
        }
    }

    /// A SYN with the option was not answered: perhaps something on the way drops it.
    pub(crate) fn silent(&mut self, server: IpAddr, now: u64) {
        if let Some(known) = self.entry(server, now) {
            let pause = PAUSE << known.silences.min(10);
            known.at = now;
            known.silences = known.silences.saturating_add(1);
            known.pause_until = now.saturating_add(pause);
        }
    }

    fn entry(&mut self, server: IpAddr, now: u64) -> Option<&mut Server> {
        if self.known.len() >= self.most && !self.known.contains_key(&server) {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.at);
            let oldest = oldest.map(|(server, _)| *server)?;
            self.known.remove(&oldest);
        }
        let fresh = Server { cookie: None, mss: 536, at: now, pause_until: 0, silences: 0 };
        Some(self.known.entry(server).or_insert(fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    #[test]
    fn a_cookie_is_good_for_one_address_and_one_to_two_periods() {
        let secret = Secret([1, 2]);
        let cookie = Keys::new(secret).make(ip(1), PERIOD);
        let judged = |secret: &Secret, n, now| Keys::new(*secret).judge(ip(n), &cookie, now);
        assert_eq!(judged(&secret, 1, 2 * PERIOD - 1), Verdict::Good);
        assert_eq!(judged(&secret, 1, 2 * PERIOD), Verdict::Old);
        assert_eq!(judged(&secret, 1, 3 * PERIOD), Verdict::Bad);
        assert_eq!(judged(&secret, 2, PERIOD), Verdict::Bad);
        assert_eq!(judged(&Secret([1, 3]), 1, PERIOD), Verdict::Bad);
        let short = Cookie::new(&cookie.as_slice()[..4]).unwrap();
        assert_eq!(Keys::new(secret).judge(ip(1), &short, PERIOD), Verdict::Bad);
    }

    #[test]
    fn given_keys_follow_one_another() {
        let (old, new) = ([1; 16], [2; 16]);
        let with = |primary, backup| {
            let mut keys = Keys::new(Secret([1, 2]));
            keys.give(Some(FastOpenKeys { primary, backup }));
            keys
        };
        let cookie = with(old, None).make(ip(1), 5);
        let judged = |keys: Keys| keys.judge(ip(1), &cookie, 9 * PERIOD);
        assert_eq!(judged(with(old, Some(new))), Verdict::Good, "whenever, at any server");
        assert_eq!(judged(with(new, Some(old))), Verdict::Old);
        assert_eq!(judged(with(new, None)), Verdict::Bad);
        assert_eq!(judged(Keys::new(Secret([1, 2]))), Verdict::Bad);
        assert_ne!(cookie, with(new, None).make(ip(1), 5));
        assert!(!format!("{:?}", with(old, Some(new))).contains("1, 1"), "keys are not shown");
    }

    #[test]
    fn lengths_are_even_from_4_to_16() {
        let good = (0..40).filter(|length| Cookie::new(&[7; 40][..*length]).is_some());
        assert_eq!(good.collect::<Vec<_>>(), [4, 6, 8, 10, 12, 14, 16]);
    }

    #[test]
    fn a_client_remembers_what_servers_did() {
        let mut servers = Servers::new(2);
        let cookie = Cookie::new(&[1, 2, 3, 4]);
        assert_eq!(servers.plan(ip(1), 5), Plan::Ask);
        servers.answered(ip(1), None, 1000, 5);
        assert_eq!(servers.known.len(), 0);
        servers.answered(ip(1), cookie, 1000, 5);
        assert_eq!(servers.plan(ip(1), 6), Plan::Send(cookie.unwrap(), 1000));
        servers.silent(ip(1), 6);
        assert_eq!(servers.plan(ip(1), 5 + PAUSE), Plan::Plain);
        servers.silent(ip(1), 6 + PAUSE);
        assert_eq!(servers.plan(ip(1), 6 + 3 * PAUSE - 1), Plan::Plain);
        assert_eq!(servers.plan(ip(1), 6 + 3 * PAUSE), Plan::Send(cookie.unwrap(), 1000));
        servers.refused(ip(1), 6 + 3 * PAUSE);
        assert_eq!(servers.plan(ip(1), 6 + 4 * PAUSE - 1), Plan::Plain);
        assert_eq!(servers.plan(ip(1), 6 + 4 * PAUSE), Plan::Ask);
        servers.silent(ip(2), 7 + PAUSE);
        servers.silent(ip(3), 8 + PAUSE);
        assert_eq!((servers.known.len(), servers.plan(ip(1), 9 + PAUSE)), (2, Plan::Ask));
    }
}
