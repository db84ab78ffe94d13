//! Machines that are trees of files: tuned, untuned, virtual, hostile.

#[cfg(test)]
mod apply;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod needs;
