//! Every header as a typed view, checksums, builders.
