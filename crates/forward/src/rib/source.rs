//! What routes come from, by name.

use std::fmt;
use std::str::FromStr;

/// Letters of a name at most: it is stored in place, since every change of a route says it.
const MOST: usize = 15;

/// What a route comes from: a part of the router, or whoever the API gives a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Filled up with zeros, so that names are in their alphabetical order.
    name: [u8; MOST],
    length: u8,
}

impl Source {
    /// The router's own addresses and the broadcast addresses of its networks.
    pub const LOCAL: Self = Self::known("local");
    /// The network of an interface's address.
    pub const CONNECTED: Self = Self::known("connected");
    /// A neighbour on a connected network.
    pub const NEIGHBOR: Self = Self::known("neighbor");
    /// Configuration and people.
    pub const STATIC: Self = Self::known("static");

    const fn known(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut name = [0; MOST];
        let mut at = 0;
        while at < bytes.len() && at < MOST {
            name[at] = bytes[at];
            at += 1;
        }
        Self { name, length: at as u8 }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = self.name.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// Whether its routes follow from interfaces and neighbours: nobody adds or removes them.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        [Self::LOCAL, Self::CONNECTED, Self::NEIGHBOR].contains(self)
    }
}

/// The name can't be a source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a source has 1 to {MOST} letters, digits, '.', '_' and '-'")]
pub struct SourceNameError;

impl FromStr for Source {
    type Err = SourceNameError;

    fn from_str(text: &str) -> Result<Self, SourceNameError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || text.len() > MOST || !text.bytes().all(fits) {
            return Err(SourceNameError);
        }
        Ok(Self::known(text))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_whole_and_in_order() {
        for name in ["a", "bgp", "ospf-10.0_x", "fifteen-letters"] {
            let source: Source = name.parse().unwrap();
            assert_eq!((source.name(), source.to_string().as_str()), (name, name));
        }
        for name in ["", "sixteen-letters-", "two words", "gr\u{fc}n", "a/b"] {
            assert_eq!(name.parse::<Source>(), Err(SourceNameError), "{name}");
        }
        let [one, two]: [Source; 2] = ["bgp", "bgp2"].map(|name| name.parse().unwrap());
        assert!(one < two && two < Source::STATIC);
        assert_eq!("static".parse(), Ok(Source::STATIC));
        assert!(Source::LOCAL.is_implied() && !Source::STATIC.is_implied());
    }
}
