#!/usr/bin/env bash
# The UDP servers and clients of serve_udp on a stack worker of the daemon.
export MILLRACE_PLACEMENT=shared
# shellcheck source=lab/serve_udp_test.sh
. "$(dirname "$0")/serve_udp_test.sh"
