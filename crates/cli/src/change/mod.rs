//! Commands that change something.

pub(crate) mod flow;
pub(crate) mod function;
pub(crate) mod neighbor;
mod parts;
pub(crate) mod port;
pub(crate) mod reload;
pub(crate) mod restart;
pub(crate) mod route;
pub(crate) mod save;

use control::api::Changed;

use crate::failure::Failure;
use crate::output;
use crate::units::count;

/// Tells what a change did; `what` is the plural of what was changed.
fn told(json: bool, changed: Changed, what: &str) -> Result<(), Failure> {
    if json {
        return output::json(&changed);
    }
    let done =
        [(changed.added, "added"), (changed.replaced, "replaced"), (changed.removed, "removed")];
    let done: Vec<_> = done
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", count(*number)))
        .collect();
    let done = if done.is_empty() { "nothing changed".to_owned() } else { done.join(", ") };
    output::line(format!("{what}: {done}"))
}
