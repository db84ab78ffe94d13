//! Files of routes and flows, read line by line in bounded memory.

mod flow_file;
mod lines;
mod route_file;
mod route_text;

#[cfg(test)]
mod tests;

pub use flow_file::FlowFile;
pub use route_file::RouteFile;
pub use route_text::RouteTextError;
