#!/usr/bin/env bash
# The life of an NGINX service on Millrace, as its manual and systemd have it: a daemon that is upgraded, rolled back, reloaded,
# told to open its logs anew, loses workers and ends, while clients ask for pages.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
has nginx || skip "no nginx: scripts/setup"
one_host
start_serving

data 65536 1 >"$served/files/65536"
data 5000000 2 >"$served/files/5000000"
chmod -R a+rX "$served"
nginx_name=service
nginx service 'daemon on; worker_processes 2; user www-data;' serve logs <<END
  access_log $served/logs/access;
  root $served/files;
  server { listen 80; listen [::]:80; listen 82 reuseport; location = /pid { return 200 "\$pid\n"; } }
END
pid_file=$served/service.pid
must "nginx as a daemon serves" within 15 same "$served/files/65536" http://10.0.1.1/65536
check "its first process is gone" within 15 fails alive $!

# 1. The binary is upgraded while clients ask.
# Waits for the master that the running one has started, and its workers: its process is in $new.
started() {
  new=$(cat "$pid_file") && [ "$new" != "$nginx" ] && [ -s "$pid_file.oldbin" ] && equal "$(workers_of "$new" | wc -l)" 2
}
no_workers() { equal "$(workers_of "$1")" ''; }
# Whether the file names a process as the master.
named() { equal "$(cat "$pid_file")" "$1"; }
upgrade() {
  kill -USR2 "$nginx"
  must "$1: a new master and its workers start beside the old ones" within 20 started
  started
}
# Whether the listed processes answer, and only they: only_these FILE-OF-PROCESSES
only_these() { answering 80 >"$lab/answering" && [ -s "$lab/answering" ] && equal "$(comm -23 "$lab/answering" "$1")" ''; }
on_millrace() { grep -q libmillrace_preload "/proc/$1/maps"; }
before=$(kernel_segments)
load 80 "$served/files/65536"
if has wrk; then
  # An answer that takes longer than a busy machine may counts as an error; there is time for that after the upgrades.
  exec_on a wrk -t 1 -c 4 -d 20 --timeout 8 -H 'Connection: close' http://10.0.1.1:82/pid >"$lab/wrk" 2>&1 &
  wrk=$!
fi
sleep 1
upgrade "an upgrade"
[ "$LAB_ROUTER" = kernel ] || check "the new master is on Millrace" on_millrace "$new"
workers_of "$new" >"$lab/new"
kill -WINCH "$nginx"
check "the old workers end" within 20 no_workers "$nginx"
check "the new ones answer" within 15 only_these "$lab/new"
# Back again: the old master's workers return, the new master ends.
kill -HUP "$nginx"
check "a rollback: the old master's workers return" within 20 two_workers
kill -QUIT "$new"
check "the new master ends" within 20 fails alive "$new"
check "and the file names the old one" within 10 named "$nginx"
workers >"$lab/new"
check "the old one's workers answer" within 15 only_these "$lab/new"
upgrade "an upgrade for good"
workers_of "$new" >"$lab/new"
old=$nginx nginx=$new
kill -WINCH "$old"
check "the old workers end" within 20 no_workers "$old"
kill -QUIT "$old"
check "the old master ends" within 20 fails alive "$old"
check "the new ones answer" within 15 only_these "$lab/new"
upgrade "an upgrade of what was upgraded"
workers_of "$new" >"$lab/new"
old=$nginx nginx=$new
kill -QUIT "$old"
check "the old master ends with its workers" within 20 fails alive "$old"
workers >"$lab/old"
kill -HUP "$nginx"
check "the third generation reloads" within 20 changed
enough 100
# One that comes while only a master has the listener open may wait longer than a client does on a busy machine.
check "two of hundreds of requests failed at most" failed_at_most 2 100
if [ -n "${wrk:-}" ]; then
  wait "$wrk"
  check "nor any of wrk's, over sockets of their own" fails grep -E 'Socket errors|Non-2xx' "$lab/wrk"
  check "of which there were many" says '[0-9]{3,} requests in' cat "$lab/wrk"
fi
if [ "$LAB_ROUTER" = millrace ]; then
  check "the kernel saw none of it" equal "$(kernel_segments)" "$before"
  check "the kernel's clients are served too" equal "$(on router curl -s http://127.0.0.1/65536 | hash)" "$(hash <"$served/files/65536")"
fi

# 2. Logs.
get -o /dev/null http://10.0.1.1/65536?before
mv "$served/logs/access" "$served/logs/access.1"
kill -USR1 "$nginx"
check "logs are opened anew" within 15 test -e "$served/logs/access"
# By the workers, too, when no process has the old one open any more.
reopened() {
  local pid
  for pid in "$nginx" $(workers); do equal "$(find "/proc/$pid/fd" -lname "$served/logs/access.1")" '' || return; done
}
check "by all processes" within 15 reopened
get -o /dev/null http://10.0.1.1/65536?after
check "what comes then is in the new file" within 10 grep -q '^10\.0\.1\.2 .*?after ' "$served/logs/access"
check "and not in the old one" fails grep -q '?after ' "$served/logs/access.1"
check "which has what came before" grep -q '^10\.0\.1\.2 .*?before ' "$served/logs/access.1"

# 3. Reloads under load, of a socket that workers share and of one that each has of its own; a worker's death.
for port in 80 82; do
  load $port "$served/files/65536"
  for round in 1 2 3; do
    workers >"$lab/old"
    kill -HUP "$nginx"
    check "port $port, reload $round" within 20 changed
  done
  enough 30
  check "three reloads fail two of hundreds of requests to port $port at most" failed_at_most 2 30
done
load 80 "$served/files/65536"
sleep 1
workers >"$lab/old"
kill -KILL "$(head -n 1 "$lab/old")"
replaced() { two_workers && equal "$(comm -12 <(workers) "$lab/old" | wc -l)" 1; }
check "a killed worker is replaced" within 15 replaced
sleep 1
enough 20
# Each of the four clients has one connection at a time.
check "its death fails the requests that it had at most" failed_at_most 4 20
check "the others go on" equal "$(comm -12 <(workers) "$lab/old" | wc -l)" 1
[ "$LAB_ROUTER" = kernel ] || check "the new worker serves beside them" within 30 both_serve 80

# 4. An orderly end, with requests that take their time.
slow() { exec_on a curl -s -S -f --max-time 60 --limit-rate 250K -o "$lab/slow.$1" http://10.0.1.1/5000000; }
slow 1 & first=$!
slow 2 & second=$!
slowly() { [ -s "$lab/slow.1" ] && [ -s "$lab/slow.2" ]; }
within 15 slowly || fail "nobody is served"
check "nginx -s quit" on router nginx -p "$served" -c "$served/service.conf" -s quit
check "new connections are refused at once" within 8 says 'Connection refused|Failed to connect' get http://10.0.1.1/pid
check "while those that are served go on" alive "$first"
wait "$first"
check "to their end" equal $? 0
wait "$second"
check "both" equal $? 0
for number in 1 2; do check "with every byte" cmp "$served/files/5000000" "$lab/slow.$number"; done
check "nginx ends" within 15 fails alive "$nginx"
[ "$LAB_ROUTER" = kernel ] || check "nothing is left in the daemon" within 15 no_stacks
