//! Congestion control travels with its own state.

use crate::congestion::{Bbr, CongestionControl, Cubic, HeavyLoss, NewReno};

use crate::carried::Carried;
use crate::carried::ImportError;
use crate::carried::{Reader, Writer};

carried!(HeavyLoss { size, tx_in_flight, lost, app_limited });

impl Carried for Box<dyn CongestionControl> {
    fn put(&self, to: &mut Writer) {
        let any = self.as_any();
        if let Some(bbr) = any.downcast_ref::<Bbr>() {
            0u8.put(to);
            bbr.put(to);
        } else if let Some(cubic) = any.downcast_ref::<Cubic>() {
            1u8.put(to);
            cubic.put(to);
        } else if let Some(newreno) = any.downcast_ref::<NewReno>() {
            2u8.put(to);
            newreno.put(to);
        } else {
            debug_assert!(false, "an algorithm that does not travel: {self:?}");
            u8::MAX.put(to);
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        match u8::take(from)? {
            0 => Ok(Box::new(Bbr::take(from)?)),
            1 => Ok(Box::new(Cubic::take(from)?)),
            2 => Ok(Box::new(NewReno::take(from)?)),
            _ => from.refuse(),
        }
    }
}
