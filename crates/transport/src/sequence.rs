//! Sequence numbers: arithmetic modulo 2^32 (RFC 9293 3.4).

/// A sequence number. Order is that of the nearer way round: meaningful for numbers less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether it comes before `other`.
    #[inline(always)]
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether it comes after `other`.
    #[inline(always)]
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Bytes from `earlier` to here; 2^31 and more when `earlier` is later.
    #[inline(always)]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// `bytes` further on.
    #[inline(always)]
    #[must_use]
    pub const fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// `bytes` back.
    #[inline(always)]
    #[must_use]
    pub const fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }

    /// The later one.
    #[inline(always)]
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier one.
    #[inline(always)]
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }

    /// Whether it is in `from..=to`.
    #[inline(always)]
    #[must_use]
    pub const fn within(self, from: Self, to: Self) -> bool {
        self.since(from) <= to.since(from)
    }
}

impl std::fmt::Debug for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let (early, late) = (Seq(u32::MAX - 3), Seq(4));
        assert!(early.before(late) && late.after(early));
        assert_eq!(late.since(early), 8);
        assert_eq!((early.max(late), early.min(late)), (late, early));
        assert!(Seq(0).within(early, late) && late.within(early, late));
        assert!(!Seq(5).within(early, late));
    }
}
