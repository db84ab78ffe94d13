//! Longest-prefix match, exact-match flows: pure data structures read without locks.
