//! What routes come from, by name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Letters of a name at most: see `forward::rib::Source`.
const MOST: usize = 15;

/// Greatest administrative distance of a route that somebody gives: see `forward::rib::MOST_DISTANCE`.
pub const MOST_DISTANCE: u8 = 254;

/// Administrative distances as Cisco's and FRR's routers have them. BGP's is that of routes learned from other networks.
const DISTANCES: [(&str, u8); 14] = [
    ("local", 0),
    ("connected", 0),
    ("kernel", 0),
    ("static", 1),
    ("bgp", 20),
    ("ebgp", 20),
    ("eigrp", 90),
    ("babel", 100),
    ("ospf", 110),
    ("ospf6", 110),
    ("isis", 115),
    ("rip", 120),
    ("ripng", 120),
    ("ibgp", 200),
];

/// Distance of sources that nobody knows.
const UNKNOWN: u8 = 150;

/// What implies routes: nobody gives them.
const IMPLIED: [&str; 3] = ["local", "connected", "neighbor"];

/// What a route comes from: a part of the router, or whoever gives itself a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Source(Cow<'static, str>);

impl Source {
    /// Configuration, files and people.
    pub const STATIC: Self = Self(Cow::Borrowed("static"));

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Administrative distance of its routes unless they say another.
    #[must_use]
    pub fn distance(&self) -> u8 {
        if self.0 == "neighbor" {
            // Behind all others.
            return u8::MAX;
        }
        DISTANCES.iter().find(|(name, _)| *name == self.0).map_or(UNKNOWN, |(_, known)| *known)
    }

    /// Whether its routes follow from interfaces and neighbours: nobody gives them.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        IMPLIED.contains(&self.name())
    }
}

/// The name can't be a source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a source's name is not 1 to {MOST} letters, digits, '.', '_' and '-'; use one as in ospf")]
pub struct SourceError;

impl TryFrom<Cow<'_, str>> for Source {
    type Error = SourceError;

    fn try_from(name: Cow<'_, str>) -> Result<Self, SourceError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name == Self::STATIC.0 {
            return Ok(Self::STATIC);
        }
        if name.is_empty() || name.len() > MOST || !name.bytes().all(fits) {
            return Err(SourceError);
        }
        Ok(Self(Cow::Owned(name.into_owned())))
    }
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(name: &str) -> Result<Self, SourceError> {
        Cow::Borrowed(name).try_into()
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.0.into_owned()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialSchema for Source {
    fn schema() -> RefOr<Schema> {
        String::schema()
    }
}

impl ToSchema for Source {
    fn name() -> Cow<'static, str> {
        "Source".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_usual_ones() {
        let distance = |name: &str| name.parse::<Source>().unwrap().distance();
        let known = ["connected", "static", "ebgp", "ospf", "isis", "rip", "ibgp", "mine"];
        assert_eq!(known.map(distance), [0, 1, 20, 110, 115, 120, 200, 150]);
        assert_eq!(distance("neighbor"), 255);
    }

    #[test]
    fn names_are_checked() {
        for name in ["", "sixteen-letters-", "two words", "a/b"] {
            assert_eq!(name.parse::<Source>(), Err(SourceError), "{name}");
        }
        let source: Source = serde_json::from_str("\"fifteen-letters\"").unwrap();
        assert_eq!(serde_json::to_string(&source).unwrap(), "\"fifteen-letters\"");
        assert!(serde_json::from_str::<Source>("\"\"").is_err());
        assert_eq!("static".parse(), Ok(Source::STATIC));
    }
}
