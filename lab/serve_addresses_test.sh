#!/usr/bin/env bash
# Addresses that a reload of the router's configuration adds and takes away, while programs run: NGINX listens there after its own
# reload, as where the kernel has them.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
needs_millrace
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
start_serving
# The router's addresses from now on: addresses ADDRESS/LENGTH...
addresses() { sed -i "s|^addresses = .*|addresses = $(strings "$@")|" "$lab_config" && millrace reload; }
# Has NGINX read its configuration again.
again() { on router "$(type -P nginx)" -p "$served" -c "$served/user.conf" -s reload; }
# NGINX cannot bind: unbound ADDRESS:PORT
unbound() { within 10 says "bind\\(\\) to $1 failed \\(99: " cat "$served/logs/user"; }
hello() { equal "$(get "http://$1/hello")" "hello from $1"; }

nginx_name=user
nginx user 'daemon off; worker_processes 2; user nobody nogroup;' <<END
  server {
    listen 10.0.1.1:80;
    location = /hello { return 200 "hello from \$server_addr\n"; }
  }
END
must "NGINX serves" within 20 says '^hello from 10.0.1.1$' get http://10.0.1.1/hello

# 1. An address comes.
sed -i 's/listen 10.0.1.1:80;/& listen 10.0.1.7:80; listen [2001:db8:1::7]:80;/' "$served/user.conf"
again
check "an address that the router does not have cannot be bound" unbound 10.0.1.7:80
check "NGINX goes on" hello 10.0.1.1
check "the router gets two addresses" addresses 10.0.1.1/24 2001:db8:1::1/64 10.0.1.7/24 2001:db8:1::7/64
again
check "NGINX listens at the new one" within 20 says '^hello from 10.0.1.7$' get http://10.0.1.7/hello
check "and over IPv6" within 20 says '^hello from 2001:db8:1::7$' get -g 'http://[2001:db8:1::7]/hello'
check "and at the first" hello 10.0.1.1

# 2. It goes. What was known of it a second ago is not asked again.
check "the router has the first alone" addresses 10.0.1.1/24 2001:db8:1::1/64
sleep 1.5
sed -i 's/listen 10.0.1.7:80;/& listen 10.0.1.7:81;/' "$served/user.conf"
again
check "an address that it had cannot be bound" unbound 10.0.1.7:81
check "NGINX goes on without it" hello 10.0.1.1
end "$nginx" QUIT

# 3. An address that the kernel has, too: connections from there leave by Millrace, where alone there is a way.
echo page >"$served/files/page"
exec_on a "$python" -m http.server 9000 --bind 10.0.1.2 --directory "$served/files" >"$served/logs/web" 2>&1 &
web=$!
within 15 opens a 9000 || fail "no server in host a"
on router ip link set lo up
on router ip address add 10.0.1.8/32 dev lo
check "the router gets an address of the kernel's" addresses 10.0.1.1/24 2001:db8:1::1/64 10.0.1.8/24
check "a connection from there" says '^page$' serve curl -s -S --max-time 20 --interface 'host!10.0.1.8' http://10.0.1.2:9000/page
end "$web" TERM
