//! Configuration model and API types.
