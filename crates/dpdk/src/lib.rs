//! The binding to DPDK: environment, ports, buffer pools and buffers.
