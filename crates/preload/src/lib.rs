//! `libmillrace_preload.so`: the socket calls of a program, on a TCP/IP stack of its own.
//!
//! Loaded ahead of the C library (`LD_PRELOAD`), it takes the names of the calls that concern sockets and events. A
//! call about a descriptor that is none of ours goes straight on to the C library.
//!
//! | module | job |
//! | --- | --- |
//! | `real` | the C library's own functions, which the hooks shadow |
//! | `uncancelled` | the kernel's calls by number, for a thread that must not be cancelled meanwhile |
//! | `arguments` | what `va_start` makes of variadic arguments |
//! | `kinds` | what each descriptor is: one byte, read without a lock |
//! | `memory` | whether memory that the application names is there |
//! | `process` | the process's state, made when it is first needed, and anew in a forked child |
//! | `sockets` | the sessions, wherever their stack runs |
//! | `state` | what is behind the lock: the stack, its sockets, and who waits for them |
//! | `waiting` | epoll instances and threads that wait for sessions |
//! | `kernel_watch` | whether the kernel's files have events, read from memory |
//! | `sleeping` | a thread that sleeps until something needs it |
//! | `signals` | the application's handlers: called when their thread does not have the state |
//! | `caretaker` | minds the stack while the application does something else |
//! | `arrival` | tells threads that wait in the kernel that the process has a state |
//! | `routes` | what the daemon is asked in the middle of calls |
//! | `asking` | changes of a socket in several steps, for which others are asked |
//! | `inherited` | sessions and sockets that a program has of the one before it |
//! | `hooks` | the names, by subject |
//! | `start` | what happens when the loader has loaded this library |

mod address;
mod arguments;
mod arrival;
mod asking;
mod call;
mod caretaker;
mod clock;
mod environment;
mod errno;
mod hooks;
mod inherited;
mod internal;
mod kernel_watch;
mod kinds;
mod memory;
mod process;
mod real;
mod report;
mod routes;
mod signals;
mod sleeping;
mod sockets;
mod start;
mod state;
mod uncancelled;
mod vectors;
mod waiting;
