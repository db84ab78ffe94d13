#!/usr/bin/env bash
# The test bed itself: a daemon that had to be killed at the end fails its test, also one that a restart has left.
. "$(dirname "$0")/lab.sh"
needs_millrace

# A daemon that says that it runs, and does nothing else. One that is deaf does not end when it is told to.
mkdir "$lab/obeys" "$lab/deaf"
cat >"$lab/obeys/millraced" <<'END'
#!/bin/bash
touch "$4"
while true; do sleep 0.1; done
END
{ head -n 1 "$lab/obeys/millraced"; echo "trap '' TERM"; tail -n +2 "$lab/obeys/millraced"; } >"$lab/deaf/millraced"
chmod +x "$lab/obeys/millraced" "$lab/deaf/millraced"

# A test with that daemon that finds nothing wrong: bed obeys|deaf [COMMAND]
bed() {
  # shellcheck disable=SC2016 # the other shell's own variables
  LAB_BIN=$lab/$1 bash -c '. "$0"; lab_patience=2; launch; within 10 test -e "$lab_socket" || fail "it does not run"; eval "$1"' \
    "$lab_root/lab/lab.sh" "${2:-}"
}
check "a daemon that ends when it is told to is fine" bed obeys
killed() {
  local output status=0
  output=$(bed "$@" 2>&1) || status=$?
  equal "$status" 1 && says '^not ok: the daemon had to be killed$' echo "$output"
}
check "a test whose daemon had to be killed fails" killed deaf
# As after a restart: the test has started another one.
check "and so does one whose daemon is not the one that it has started" killed deaf daemon=
check "nobody is left" fails pgrep -f "$lab/deaf/millraced"
