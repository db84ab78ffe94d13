//! What a restart must not lose: routes, flows, neighbours and functions that came by the API, neighbours that were
//! learned, MAC addresses that drivers make up.
//!
//! | file | job |
//! | --- | --- |
//! | `place` | the files: where they are, opened with distrust, written whole or not at all |
//! | `gather` | what is to be kept, part by part |
//! | `recall` | what was kept, checked as a whole and put in force part by part |
//! | `keeper` | when it is kept |

mod gather;
mod keeper;
mod place;
mod recall;

pub(crate) use keeper::{KeepError, Keeper};
pub(crate) use place::Place;
pub(crate) use recall::Kept;
