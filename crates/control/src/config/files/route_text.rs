//! Routes in the words of `ip route`: lines of route files, and the command line.

use std::fmt;
use std::net::IpAddr;
use std::str::{FromStr, SplitWhitespace};

use crate::config::vrf::named;
use crate::config::{
    MAX_NEXT_HOPS, MOST_DISTANCE, NextHop, Route, RouteTarget, Source, SourceError,
};
use crate::net::{AddressError, Prefix, shortened};

/// A route's text is wrong: `what is wrong; what would be right`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteTextError {
    /// The prefix.
    #[error(transparent)]
    Prefix(#[from] AddressError),
    /// Nothing stands behind the prefix.
    #[error(
        "{0} has no target; add via ADDRESS, dev NAME, lookup VRF, blackhole, unreachable or local"
    )]
    NoTarget(Prefix),
    /// A word that has no meaning there.
    #[error(
        "'{0}' has no meaning here; write PREFIX via ADDRESS, PREFIX dev NAME, PREFIX lookup VRF or PREFIX blackhole"
    )]
    Word(String),
    /// A next hop that is no address.
    #[error("'{0}' is not an address; write one as in 192.0.2.2 or 2001:db8::2")]
    Address(String),
    /// A weight that is no number.
    #[error("'{0}' is not a weight; use 1 to 64")]
    Weight(String),
    /// A distance or metric that is no number.
    #[error("'{value}' is not a {what}; use 0 to {most}")]
    Number {
        /// What it is to be.
        what: &'static str,
        /// What was given.
        value: String,
        /// The greatest.
        most: u32,
    },
    /// A source that is no name.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Nothing stands behind `via`, `dev`, `lookup` or `weight`.
    #[error("nothing follows '{0}'; give it a value")]
    NoValue(&'static str),
    /// Too many next hops.
    #[error("it has more than 64 next hops; use at most 64")]
    NextHops,
}

impl FromStr for Route {
    type Err = RouteTextError;

    /// `PREFIX via ADDRESS [dev NAME] [weight N] [ADDRESS ...]`, `PREFIX dev NAME`, `PREFIX lookup VRF`,
    /// `PREFIX blackhole|unreachable|local`; the kind may stand first, as `ip route` prints it;
    /// `default` is 0.0.0.0/0 or ::/0 by its next hop. At the end, in any order: `vrf NAME` (the route's own VRF), `source NAME`,
    /// `distance N`, `metric N`.
    fn from_str(text: &str) -> Result<Self, RouteTextError> {
        let (text, ending) = Ending::split(text)?;
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(target) = kind(first) {
            let prefix = prefix(words.next().unwrap_or_default(), false)?;
            return end(&mut words).map(|()| ending.route(prefix, target));
        }
        let target = match words.next() {
            None => return Err(RouteTextError::NoTarget(prefix(first, false)?)),
            Some("via") => RouteTarget::Via(next_hops(&mut words)?),
            Some("dev") => {
                let name = words.next().ok_or(RouteTextError::NoValue("dev"))?;
                end(&mut words)?;
                RouteTarget::Port(name.to_owned())
            }
            Some("lookup") => {
                let name = words.next().ok_or(RouteTextError::NoValue("lookup"))?;
                end(&mut words)?;
                RouteTarget::Lookup(name.to_owned())
            }
            Some(word) => {
                let target = kind(word).ok_or_else(|| RouteTextError::Word(shortened(word)))?;
                end(&mut words)?;
                target
            }
        };
        let v6 =
            matches!(&target, RouteTarget::Via(hops) if hops.iter().any(|h| h.address.is_ipv6()));
        Ok(ending.route(prefix(first, v6)?, target))
    }
}

/// What may stand behind a route.
#[derive(Default)]
struct Ending {
    vrf: Option<String>,
    source: Option<Source>,
    distance: Option<u8>,
    metric: Option<u32>,
}

impl Ending {
    /// What stands before it, and what it says.
    fn split(mut text: &str) -> Result<(&str, Self), RouteTextError> {
        let mut ending = Self::default();
        while let Some((before, value)) = last_word(text) {
            let Some((route, key)) = last_word(before) else { break };
            match key {
                "vrf" if ending.vrf.is_none() => ending.vrf = Some(value.to_owned()),
                "source" if ending.source.is_none() => ending.source = Some(value.parse()?),
                "distance" if ending.distance.is_none() => {
                    ending.distance = Some(number("distance", value, MOST_DISTANCE)?);
                }
                "metric" if ending.metric.is_none() => {
                    ending.metric = Some(number("metric", value, u32::MAX)?);
                }
                _ => break,
            }
            text = route;
        }
        Ok((text, ending))
    }

    fn route(self, prefix: Prefix, target: RouteTarget) -> Route {
        let source = self.source.unwrap_or(Source::STATIC);
        let distance = self.distance.unwrap_or_else(|| source.distance());
        let (vrf, metric) = (named(self.vrf), self.metric.unwrap_or(0));
        Route { vrf, source, prefix, distance, metric, target }
    }
}

fn number<T: FromStr + Into<u32> + Copy>(
    what: &'static str,
    text: &str,
    most: T,
) -> Result<T, RouteTextError> {
    let known: Option<T> = text.parse().ok();
    let fits = known.filter(|number| (*number).into() <= most.into());
    fits.ok_or_else(|| RouteTextError::Number { what, value: shortened(text), most: most.into() })
}

/// What stands before the last word, and that word.
fn last_word(text: &str) -> Option<(&str, &str)> {
    text.trim_end().rsplit_once(char::is_whitespace)
}

/// A prefix; an address without length is a host, as for `ip route`.
fn prefix(text: &str, v6: bool) -> Result<Prefix, AddressError> {
    let any = if v6 { IpAddr::from([0; 16]) } else { IpAddr::from([0; 4]) };
    match (text, text.parse::<IpAddr>()) {
        ("default", _) => Ok(Prefix::of(any, 0)),
        (_, Ok(host)) => Ok(Prefix::of(host, 128)),
        _ => text.parse(),
    }
}

fn kind(word: &str) -> Option<RouteTarget> {
    match word {
        "blackhole" => Some(RouteTarget::Blackhole),
        "unreachable" => Some(RouteTarget::Unreachable),
        "local" => Some(RouteTarget::Local),
        _ => None,
    }
}

fn end(words: &mut SplitWhitespace<'_>) -> Result<(), RouteTextError> {
    words.next().map_or(Ok(()), |word| Err(RouteTextError::Word(shortened(word))))
}

/// Addresses, each with its interface and weight behind it; commas and further `via` or `nexthop`
/// may stand between them.
fn next_hops(words: &mut SplitWhitespace<'_>) -> Result<Vec<NextHop>, RouteTextError> {
    let mut hops: Vec<NextHop> = Vec::new();
    while let Some(word) = words.next() {
        match (word, hops.last_mut()) {
            ("dev", Some(hop)) => {
                let name = words.next().ok_or(RouteTextError::NoValue("dev"))?;
                hop.interface = Some(name.to_owned());
            }
            ("weight", Some(hop)) => {
                let weight = words.next().ok_or(RouteTextError::NoValue("weight"))?;
                let wrong = || RouteTextError::Weight(shortened(weight));
                hop.weight = weight.parse().map_err(|_| wrong())?;
            }
            ("via" | "nexthop", Some(_)) => {}
            _ => {
                for address in word.split(',').filter(|part| !part.is_empty()) {
                    let wrong = || RouteTextError::Address(shortened(address));
                    hops.push(NextHop::new(address.parse().map_err(|_| wrong())?));
                    if hops.len() > MAX_NEXT_HOPS {
                        return Err(RouteTextError::NextHops);
                    }
                }
            }
        }
    }
    if hops.is_empty() { Err(RouteTextError::NoValue("via")) } else { Ok(hops) }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.prefix, self.target)?;
        if self.source != Source::STATIC {
            write!(f, " source {}", self.source)?;
        }
        if self.distance != self.source.distance() {
            write!(f, " distance {}", self.distance)?;
        }
        if self.metric > 0 {
            write!(f, " metric {}", self.metric)?;
        }
        self.vrf.as_ref().map_or(Ok(()), |vrf| write!(f, " vrf {vrf}"))
    }
}

impl fmt::Display for RouteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Via(hops) => {
                f.write_str("via")?;
                for hop in hops {
                    write!(f, " {}", hop.address)?;
                    if let Some(interface) = &hop.interface {
                        write!(f, " dev {interface}")?;
                    }
                    if hop.weight != 1 {
                        write!(f, " weight {}", hop.weight)?;
                    }
                }
                Ok(())
            }
            Self::Port(name) => write!(f, "dev {name}"),
            Self::Lookup(vrf) => write!(f, "lookup {vrf}"),
            Self::Blackhole => f.write_str("blackhole"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::Local => f.write_str("local"),
        }
    }
}
