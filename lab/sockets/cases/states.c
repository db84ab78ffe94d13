// TCP_INFO: the states of a connection, and values that follow from what was done.
#include "cases.h"

static uint8_t data[65536];

static struct tcp_info look(const char *what, int fd) {
  static const char *names[] = {"?",        "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT",
                                "CLOSE",    "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
  struct tcp_info info = {0};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
    line("%s: %s", what, error_name(errno));
  else
    line("%s: %s", what, info.tcpi_state < 13 ? names[info.tcpi_state] : "beyond");
  return info;
}

static void states(void) {
  int fd = stream();
  look("fresh", fd);
  bind_own(fd, true, 0);
  look("bound", fd);
  listen(fd, 5);
  look("listening", fd);
  struct pair p = pair();
  look("connected", p.fd);
  peer_shuts(p.peer, SHUT_WR);
  until(p.fd, POLLRDHUP);
  look("the peer has shut", p.fd);
  shutdown(p.fd, SHUT_WR);
  pause_ms(30);
  look("both have shut", p.fd);
  struct pair q = pair();
  shutdown(q.fd, SHUT_WR);
  pause_ms(30);
  look("shut", q.fd);
  struct pair r = pair();
  peer_resets(r.peer);
  until(r.fd, POLLERR | POLLHUP);
  look("reset", r.fd);
}

static void values(void) {
  struct pair p = pair();
  pattern(data, 50000, 0);
  send_all(p.fd, 50000, 0);
  peer_reads(p.peer, 50000);
  peer_sends(p.peer, 30000);
  arrived(p.fd, 30000);
  pause_ms(50);
  struct tcp_info info = look("used", p.fd);
  line("bytes acknowledged %llu", (unsigned long long)info.tcpi_bytes_acked - !mode.passive);
  line("bytes received %llu", (unsigned long long)info.tcpi_bytes_received);
  line("unacknowledged %u, not sent %u, lost %u", info.tcpi_unacked, info.tcpi_notsent_bytes, info.tcpi_lost);
  line("segment sizes %u %u, path %u", info.tcpi_snd_mss, info.tcpi_advmss, info.tcpi_pmtu);
  YES(info.tcpi_rtt > 0);
  YES(info.tcpi_rttvar > 0);
  YES(info.tcpi_rto >= 200000);
  YES(info.tcpi_snd_cwnd >= 10);
  YES(info.tcpi_segs_out >= 35);
  YES(info.tcpi_segs_in >= 20);
  YES(info.tcpi_data_segs_out >= 35);
  YES(info.tcpi_snd_wnd > 0);
  YES(info.tcpi_rcv_space > 0);
  YES(info.tcpi_min_rtt > 0);
  line("options %#x", info.tcpi_options);
}

static void lengths(void) {
  struct pair p = pair();
  for (int given = -1; given < 12; given += 4) {
    socklen_t length = given;
    R(getsockopt(p.fd, IPPROTO_TCP, TCP_INFO, data, &length));
    line("given %d, length %d", given, (int)length);
  }
  socklen_t length = 4096;
  R(getsockopt(p.fd, IPPROTO_TCP, TCP_INFO, data, &length));
  YES(length >= 104);
  R(setsockopt(p.fd, IPPROTO_TCP, TCP_INFO, data, 100));
}

const struct test state_cases[] = {
    {"TCP_INFO states", states, ALL},
    {"TCP_INFO values", values, ALL},
    {"TCP_INFO lengths", lengths, BOTH},
    END,
};
