//! A function's instance on one worker.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use dpdk::Buffer;
use function::{RawPacket, Verdict};
use graph::{CAPACITY, Exits, Function, PortId, Reason};
use libloading::Library;

/// The functions of a table that is complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) create: unsafe extern "C" fn(*const c_char, *mut c_char, u32) -> *mut c_void,
    pub(crate) process: unsafe extern "C" fn(*mut c_void, *mut RawPacket, u32),
    pub(crate) destroy: unsafe extern "C" fn(*mut c_void),
}

/// A function of a shared object, on one worker.
pub struct Instance {
    functions: Functions,
    state: *mut c_void,
    /// The only port whose packets it sees.
    port: Option<PortId>,
    packets: Vec<RawPacket>,
    /// The code lies in it. Fields are dropped in the order in which they stand, so it stands last; `destroy` runs before
    /// them all.
    _library: Arc<Library>,
}

// SAFETY: the interface says that an instance is used by one thread at a time, not always the same.
unsafe impl Send for Instance {}

impl Instance {
    pub(crate) fn new(
        library: Arc<Library>,
        functions: Functions,
        state: *mut c_void,
        port: Option<PortId>,
    ) -> Self {
        let packets = Vec::with_capacity(CAPACITY);
        Self { functions, state, port, packets, _library: library }
    }
}

impl Function for Instance {
    fn receive(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        exits: &mut Exits,
        now: u64,
    ) {
        if self.port.is_some_and(|wanted| wanted != port) {
            return;
        }
        self.packets.clear();
        for place in packets.iter_mut() {
            let Some(buffer) = place else { continue };
            if buffer.is_chained() && !buffer.linearize() {
                // Of one that fits no single buffer it sees the first part, and cannot make it longer.
                self.packets.push(raw(buffer, port, 0));
                continue;
            }
            let tailroom = u16::try_from(buffer.tailroom()).unwrap_or(u16::MAX);
            self.packets.push(raw(buffer, port, tailroom));
        }
        if self.packets.is_empty() {
            return;
        }
        let (list, count) = (self.packets.as_mut_ptr(), self.packets.len() as u32);
        // SAFETY: what `create` has made, on one thread, by the functions of the same object, which `_library` keeps; so many packets,
        // each of which leads to the bytes of a buffer that is borrowed alone here.
        unsafe { (self.functions.process)(self.state, list, count) };
        let mut treated = self.packets.iter();
        for place in packets.iter_mut().filter(|place| place.is_some()) {
            let (Some(raw), Some(buffer)) = (treated.next(), place.as_mut()) else { break };
            let fits = resize(buffer, raw);
            match Verdict::of(raw.verdict).filter(|_| fits) {
                Some(Verdict::Pass) => {}
                Some(Verdict::Transmit(port)) => {
                    if let Some(buffer) = place.take() {
                        exits.transmit(buffer, PortId::from_bits(port), now);
                    }
                }
                Some(Verdict::Drop) | None => {
                    if let Some(buffer) = place.take() {
                        exits.drop(buffer, Reason::Function);
                    }
                }
            }
        }
    }
}

fn raw(buffer: &mut Buffer, port: PortId, tailroom: u16) -> RawPacket {
    let headroom = u16::try_from(buffer.headroom()).unwrap_or(u16::MAX);
    let data = buffer.data_mut();
    let length = data.len() as u32;
    RawPacket {
        data: data.as_mut_ptr(),
        length,
        port: port.to_bits(),
        headroom,
        tailroom,
        verdict: 0,
    }
}

/// Gives the buffer the bounds that the function left. `false`: they do not lie within.
fn resize(buffer: &mut Buffer, raw: &RawPacket) -> bool {
    let before = buffer.data().as_ptr() as usize;
    let after = raw.data as usize;
    let moved = if after < before {
        buffer.prepend(before - after).is_some()
    } else {
        after == before || buffer.adjust(after - before)
    };
    let (length, now) = (raw.length as usize, buffer.data().len());
    moved
        && length > 0
        && match length.checked_sub(now) {
            Some(0) => true,
            Some(more) => buffer.append(more).is_some(),
            None => buffer.trim(now - length),
        }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: what `create` has made, given back once; the library is still there.
        unsafe { (self.functions.destroy)(self.state) };
    }
}
