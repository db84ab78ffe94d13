# shellcheck shell=bash disable=SC2154
# NGINX in tests of programs that serve on Millrace: source it after serve.sh.

# Starts NGINX with what its configuration has for http: nginx NAME MAIN-DIRECTIVES [serve|execute] <<END
# A fourth word leaves access logs to the configuration. With `daemon on` NGINX leaves the process that starts it, and $nginx is
# the one that it says.
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
  # By its path: an upgrade starts what the master was started as. It writes to standard error what it cannot write to its log.
  "${3:-serve}" "$(type -P nginx)" -p "$served" -c "$served/$name.conf" 2>"$served/logs/$name.stderr" &
  nginx=$!
  until [ -s "$served/$name.pid" ]; do
    if [ "$tries" -ge 300 ] || { [[ $2 != *'daemon on'* ]] && ! alive "$nginx"; }; then nginx_log "$name"; fail "nginx ($name) does not start"; fi
    tries=$((tries + 1))
    sleep 0.1
  done
  [[ $2 != *'daemon on'* ]] || nginx=$(cat "$served/$name.pid")
}
nginx_log() { tail -n 20 "$served/logs/$1.stderr" "$served/logs/$1" 2>/dev/null | sed 's/^/nginx: /'; }
# What follows makes no sense without it: must WHAT COMMAND...
must() {
  local before=$lab_failures
  check "$@"
  [ "$lab_failures" -eq "$before" ] || { nginx_log "$nginx_name"; fail "without that the rest makes no sense"; }
}

# The workers of NGINX, or of another master: workers | workers_of MASTER
workers_of() { pgrep -P "$1" -f '^nginx: worker' 2>/dev/null | sort; }
workers() { workers_of "$nginx"; }
two_workers() { equal "$(workers | wc -l)" 2; }
# Processes that answer 40 requests for /pid, 10 connections at a time: answering PORT
answering() { get -Z --parallel-max 10 "http://10.0.1.1:$1/pid?[1-40]" -H 'Connection: close' | sort -u; }
both_serve() { equal "$(answering "$1")" "$(workers)"; }
# Workers of $lab/old neither answer nor keep others from answering.
only_new() {
  answering "$1" >"$lab/answering" && [ -s "$lab/answering" ] && equal "$(comm -12 "$lab/answering" "$lab/old")" ''
}
# Two workers, none of which is in $lab/old.
changed() { two_workers && [ -z "$(comm -12 <(workers) "$lab/old")" ]; }
# 200 requests for a page of 65,536 bytes, 50 at a time.
many() { on a curl -s -S -f --max-time 20 -Z --parallel-max 50 -o /dev/null "http://10.0.1.1/65536?[1-200]"; }
