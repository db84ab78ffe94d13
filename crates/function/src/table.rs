//! What a shared object gives the daemon.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Function, Packet, RawPacket};

/// Version of the interface: `MILLRACE_FUNCTION_VERSION`.
pub const VERSION: u32 = 1;

/// The functions of a shared object: `struct millrace_function_table`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// [`VERSION`].
    pub version: u32,
    /// Makes an instance, or refuses with words.
    pub create: Option<unsafe extern "C" fn(*const c_char, *mut c_char, u32) -> *mut c_void>,
    /// Treats a burst.
    pub process: Option<unsafe extern "C" fn(*mut c_void, *mut RawPacket, u32)>,
    /// Takes an instance down.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// An instance, and whether it has panicked.
struct Instance<F> {
    function: F,
    failed: bool,
}

/// The table of a [`Function`]: for [`export!`](crate::export).
#[must_use]
pub const fn table<F: Function>() -> Table {
    Table {
        version: VERSION,
        create: Some(create::<F>),
        process: Some(process::<F>),
        destroy: Some(destroy::<F>),
    }
}

unsafe extern "C" fn create<F: Function>(
    argument: *const c_char,
    error: *mut c_char,
    room: u32,
) -> *mut c_void {
    let made = catch_unwind(|| {
        // SAFETY: the daemon gives a string that ends with a zero.
        let argument = unsafe { CStr::from_ptr(argument) };
        let argument = argument.to_str().map_err(|_| "the argument is no UTF-8".to_owned())?;
        F::create(argument)
    });
    match made.unwrap_or_else(|_| Err("it panicked".to_owned())) {
        Ok(function) => Box::into_raw(Box::new(Instance { function, failed: false })).cast(),
        Err(words) => {
            let bytes: Vec<u8> = words.bytes().filter(|byte| *byte != 0).collect();
            let length = bytes.len().min((room as usize).saturating_sub(1));
            if room > 0 {
                // SAFETY: the daemon gives room for so many bytes and a zero.
                unsafe {
                    error.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length);
                    error.add(length).write(0);
                }
            }
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn process<F: Function>(
    instance: *mut c_void,
    packets: *mut RawPacket,
    count: u32,
) {
    // SAFETY: the daemon gives what `create::<F>` has made, to one thread at a time, and not after `destroy`.
    let instance = unsafe { &mut *instance.cast::<Instance<F>>() };
    if instance.failed {
        return;
    }
    // SAFETY: the daemon gives so many packets, one at least, which nobody else uses meanwhile.
    let packets = unsafe { std::slice::from_raw_parts_mut(packets, count as usize) };
    let function = &mut instance.function;
    let done = catch_unwind(AssertUnwindSafe(|| {
        for raw in packets {
            // SAFETY: the daemon gives each with its bytes and the room around them, which nobody else uses during the call.
            let mut packet = unsafe { Packet::new(raw) };
            let verdict = function.process(&mut packet);
            raw.verdict = verdict.code();
        }
    }));
    instance.failed = done.is_err();
}

unsafe extern "C" fn destroy<F: Function>(instance: *mut c_void) {
    // SAFETY: the daemon gives back what `create` has made, once.
    let instance = unsafe { Box::from_raw(instance.cast::<Instance<F>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(instance)));
}
