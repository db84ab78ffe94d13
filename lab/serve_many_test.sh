#!/usr/bin/env bash
# Ten thousand connections to one NGINX worker on Millrace: they cost little memory and, while nobody talks, no processor
# time; whoever asks is answered, and whoever comes is served.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
has nginx || skip "no nginx: scripts/setup"
many=${LAB_MANY:-10000}
ulimit -n $((many + 2000)) 2>/dev/null || skip "no more than $(ulimit -Hn) files"
one_host
start_serving

nginx_name=many
nginx_connections=$((many + 1000)) nginx many "daemon off; worker_processes 1; user www-data;
  worker_rlimit_nofile $((many + 2000));" <<END
  keepalive_timeout 600;
  server { listen 80 backlog=4096; location = /hello { return 200 "hello\n"; } }
END
must "nginx serves" within 10 says '^hello$' get http://10.0.1.1/hello
worker=$(workers)

# Resident memory of processes in bytes, without what they share with others' libraries: memory PID...
memory() { for pid; do awk '/^(Pss_Anon|Pss_Shmem):/ {sum += $2} END {print sum * 1024}' "/proc/$pid/smaps_rollup"; done | awk '{n += $1} END {printf "%d\n", n}'; }
# Processor time that processes have used: clock ticks.
ticks() { for pid; do awk '{print $14 + $15}' "/proc/$pid/stat"; done | awk '{n += $1} END {print n}'; }

before=$(memory "$worker" ${daemon:+"$daemon"})
mkfifo "$lab/crowd.in"
exec_on a "$python" "$lab_root/lab/serve/crowd" 10.0.1.1 80 "$many" <"$lab/crowd.in" >"$lab/crowd" 2>&1 &
crowd=$!
exec 7>"$lab/crowd.in"
check "$many connections are opened, and each is answered" within 90 grep -q '^connected\|^failed' "$lab/crowd"
must "all of them" says "^connected $many\$" cat "$lab/crowd"
after=$(memory "$worker" ${daemon:+"$daemon"})
echo "memory: $(((after - before) / many)) bytes for each connection in NGINX and the daemon"
if [ "$LAB_ROUTER" = millrace ]; then
  established() { equal "$(value "show sessions --state established --process nginx --limit 1" .total)" "$1"; }
  # Stacks write them down within half a second.
  check "millrace show sessions counts them" within 10 established "$many"
fi

# Nobody talks.
sleep 2
used=$(ticks "$nginx" "$worker" ${daemon:+"$daemon"})
sleep 10
used=$(($(ticks "$nginx" "$worker" ${daemon:+"$daemon"}) - used))
echo "idle for 10 s: $used ticks of $(($(getconf CLK_TCK) * 10))"
check "NGINX and the daemon take under 2 % of a core while nobody talks" test "$used" -le $(($(getconf CLK_TCK) * 10 * 2 / 100))

asked() { echo "ask $1" >&7 && within 90 says "^answered $1\$" tail -n 1 "$lab/crowd"; }
check "a hundred of them ask" asked 100
check "and all" asked "$many"
check "whoever comes is served" get -o /dev/null -Z --parallel-max 20 'http://10.0.1.1/hello?[1-100]'
exec 7>&-
wait "$crowd"
check "none was closed" equal "$(grep -c failed "$lab/crowd")" 0
if [ "$LAB_ROUTER" = millrace ]; then
  check "when they end, nothing is left of them" within 30 established 0
fi
end "$nginx" QUIT
