//! Datagrams: in, out, and what the network says about them (RFC 768, RFC 1122 4.1, RFC 8200 8.1).

mod icmp;
mod input;
mod output;
