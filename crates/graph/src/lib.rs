//! The vector engine: vectors, nodes, the worker loop, counters, tracing.
