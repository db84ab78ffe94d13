#!/usr/bin/env bash
# Connections that several processes have, as in serve_moves, on a stack worker of the daemon.
export MILLRACE_PLACEMENT=shared
# shellcheck source=lab/serve_moves_test.sh
. "$(dirname "$0")/serve_moves_test.sh"
