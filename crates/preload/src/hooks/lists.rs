//! Programs started with a list of arguments in the call: `execl` and its kin.
//!
//! Stable Rust cannot define variadic functions. They are defined with as many arguments as programs give, which lie where variadic
//! ones lie (System V on x86-64, AAPCS64): in registers first, then on the stack. What the caller did not give is read
//! there as whatever the stack has, and not used.

use std::ffi::{c_char, c_int};
use std::ptr::null;

use host::Errno;

use super::program;
use crate::errno;

/// A list of words that ends with null, and what follows it; `None`: it is longer than can be seen.
fn split(words: &[*const c_char]) -> Option<(&[*const c_char], &[*const c_char])> {
    let end = words.iter().position(|word| word.is_null())?;
    words.split_at_checked(end + 1)
}

/// Runs a program with a list of arguments, and what follows the list.
type Run = unsafe fn(*const c_char, &[*const c_char], &[*const c_char]) -> c_int;

/// Defines functions of the `execl` family, each by what it runs.
macro_rules! exec {
    ($($name:ident by $run:expr;)* => $words:tt) => { $( exec! { @ $name $run; $words } )* };
    (@ $name:ident $run:expr; ($($word:ident)*)) => {
        /// As its manual page says, with at most 63 arguments: `E2BIG`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, $($word: *const c_char),*) -> c_int {
            let words = [$($word),*];
            let Some((arguments, rest)) = split(&words) else {
                errno::set(Errno(libc::E2BIG));
                return -1;
            };
            let run: Run = $run;
            // SAFETY: the caller's promise, and a list that ends with null.
            unsafe { run(path, arguments, rest) }
        }
    };
}

/// # Safety
/// As for `execv`.
unsafe fn by_path(path: *const c_char, list: &[*const c_char], _: &[*const c_char]) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { program::execv(path, list.as_ptr()) }
}

/// # Safety
/// As for `execvp`.
unsafe fn by_name(file: *const c_char, list: &[*const c_char], _: &[*const c_char]) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { program::execvp(file, list.as_ptr()) }
}

/// With an environment, which follows the list.
///
/// # Safety
/// As for `execve`.
unsafe fn with_environment(
    path: *const c_char,
    list: &[*const c_char],
    rest: &[*const c_char],
) -> c_int {
    let environment = rest.first().copied().unwrap_or(null());
    // SAFETY: the caller's promise.
    unsafe { program::execve(path, list.as_ptr(), environment.cast()) }
}

// More than callers write down, and no more of the stack than lies under every function.
exec! {
    execl by by_path;
    execlp by by_name;
    execle by with_environment;
    => (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28 a29 a30
        a31 a32 a33 a34 a35 a36 a37 a38 a39 a40 a41 a42 a43 a44 a45 a46 a47 a48 a49 a50 a51 a52 a53 a54 a55 a56 a57 a58
        a59 a60 a61 a62 a63)
}
