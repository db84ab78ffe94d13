# shellcheck shell=bash disable=SC2154
# NGINX in tests of programs that serve on Millrace: source it after serve.sh.

# Starts NGINX with what its configuration has for http: nginx NAME MAIN-DIRECTIVES [serve|execute] <<END
# A fourth word leaves access logs to the configuration.
nginx() {
  local name=$1 tries=0 access="access_log off;"
  [ -z "${4:-}" ] || access=
  {
    echo "pid $served/$name.pid; error_log $served/logs/$name info; $2 events { worker_connections ${nginx_connections:-1024}; ${nginx_events:-} }"
    echo "http { $access default_type text/plain;"
    for temp in client_body proxy fastcgi uwsgi scgi; do echo "${temp}_temp_path $served/temp/$temp;"; done
    cat
    echo "}"
  } >"$served/$name.conf"
  # NGINX writes to standard error what it cannot write to its log.
  "${3:-serve}" nginx -p "$served" -c "$served/$name.conf" 2>"$served/logs/$name.stderr" &
  nginx=$!
  until [ -s "$served/$name.pid" ]; do
    if ! alive "$nginx" || [ "$tries" -ge 100 ]; then nginx_log "$name"; fail "nginx ($name) does not start"; fi
    tries=$((tries + 1))
    sleep 0.1
  done
}
nginx_log() { tail -n 20 "$served/logs/$1.stderr" "$served/logs/$1" 2>/dev/null | sed 's/^/nginx: /'; }
# What follows makes no sense without it: must WHAT COMMAND...
must() {
  local before=$lab_failures
  check "$@"
  [ "$lab_failures" -eq "$before" ] || { nginx_log "$nginx_name"; fail "without that the rest makes no sense"; }
}

# Clients that ask for a page of 65,536 bytes over and over, until `enough`.
load() {
  rm -f "$lab/enough"
  exec_on a "$lab_root/lab/serve/load" 10.0.1.1 80 /65536 65536 "$(hash <"$served/files/65536")" 4 "$lab/enough" \
    >"$lab/load" 2>&1 &
  load=$!
}
enough() {
  touch "$lab/enough"
  wait "$load"
}
# Whether none of their requests failed, of hundreds.
none_failed() {
  # shellcheck disable=SC2016 # awk's own variables
  awk '/requests/ {print; good = $1 > 300 && $3 == 0} END {exit !good}' "$lab/load" || {
    cat "$lab/load"
    return 1
  }
}
