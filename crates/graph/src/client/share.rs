//! How much of a worker a client may take by sending.
//!
//! A client sends as many slots as it was given packets to keep (an echo, a packet given back), and a few more in
//! each round of the worker, which all clients share. A packet of many slots is paid for by the rounds after it.

/// Slots taken from one client in one round at most: it may have kept packets of many rounds.
const BURST: i32 = 256;
/// Packets that a client has kept and not sent yet, as far as they count: several rings full.
const MOST: i32 = 4096;

/// One client's share on one worker.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Slots that it may send; below 0: that it has sent too many.
    credit: i32,
}

impl Share {
    /// It was given packets to keep.
    #[inline]
    pub(crate) fn earn(&mut self, packets: usize) {
        self.credit = (self.credit + packets.min(MOST as usize) as i32).min(MOST);
    }

    /// Slots that it may send now; `spare` is what is left of those that all share. One that has sent too many pays
    /// with them.
    #[inline]
    pub(crate) fn allowance(&mut self, spare: &mut i32) -> i32 {
        self.pay(spare);
        (self.credit + *spare).min(BURST)
    }

    /// It has sent so many.
    #[inline]
    pub(crate) fn spend(&mut self, slots: i32, spare: &mut i32) {
        self.credit -= slots;
        self.pay(spare);
    }

    /// It has sent what it must not: so many fewer of those that it was given may be sent.
    #[inline]
    pub(crate) fn forfeit(&mut self, slots: i32) {
        self.credit = self.credit.saturating_sub(slots).max(self.credit.min(0));
    }

    /// Pays what it has sent too many, as far as there is something to pay with.
    #[inline]
    fn pay(&mut self, spare: &mut i32) {
        let paid = (*spare).min(-self.credit).max(0);
        self.credit += paid;
        *spare -= paid;
    }

    /// Whether it has sent too many.
    #[inline]
    pub(crate) fn is_in_debt(&self) -> bool {
        self.credit < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::SPARE;

    #[test]
    fn what_was_given_may_be_sent_and_a_little_more() {
        let (mut share, mut spare) = (Share::default(), SPARE);
        assert_eq!(share.allowance(&mut spare), 8);
        share.spend(3, &mut spare);
        assert_eq!((share.allowance(&mut spare), spare), (5, 5));
        share.earn(300);
        assert_eq!(share.allowance(&mut spare), 256, "in one round");
        share.spend(256, &mut spare);
        assert_eq!((share.allowance(&mut spare), spare), (49, 5), "its own first");
        share.earn(usize::MAX);
        share.spend(4096, &mut spare);
        assert_eq!((share.allowance(&mut spare), spare), (5, 5));
    }

    #[test]
    fn what_was_given_can_be_forfeited_and_no_more() {
        let mut share = Share::default();
        share.earn(100);
        share.forfeit(30);
        assert_eq!(share.allowance(&mut { 0 }), 70);
        share.forfeit(i32::MAX);
        assert_eq!((share.allowance(&mut { 5 }), share.is_in_debt()), (5, false));
        share.spend(9, &mut { 0 });
        share.forfeit(30);
        share.spend(0, &mut { 9 });
        assert!(!share.is_in_debt(), "what was owed before");
    }

    #[test]
    fn too_many_are_paid_for_later() {
        let mut share = Share::default();
        share.spend(21, &mut { SPARE });
        assert!(share.is_in_debt());
        let mut rounds = 0;
        while share.is_in_debt() {
            let mut spare = SPARE;
            share.allowance(&mut spare);
            rounds += 1;
        }
        assert_eq!(rounds, 2, "13 slots, 8 a round");
        let mut none = 0;
        assert_eq!(share.allowance(&mut none), 0, "others have taken all");
    }
}
