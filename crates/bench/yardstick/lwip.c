/* lwIP driven as our transport is: packets in memory, without I/O, the server's share of the time.
 *
 * usage: lwip-yardstick pair|receive|send CONNECTIONS BYTES ROUNDS      prints TSC cycles per unit, a line a round
 *
 * One stack has both ends; each is bound to a device of its own, whose output is the other's input. */
#include <lwip/init.h>
#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, ROOM = 2048, QUEUE = 4 * BATCH, WARM = 20000 };

struct queue {
  int count;
  uint16_t length[QUEUE];
  char bytes[QUEUE][ROOM];
};

static struct netif client_side, server_side;
static struct queue to_server, to_client;
static struct tcp_pcb **clients, **servers;
static int accepted, answered, received, answers;
static char body[ROOM], sink[ROOM];
static int size;

static uint64_t cycles(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

static void fail(const char *why) {
  fprintf(stderr, "lwip-yardstick: %s\n", why);
  exit(1);
}

/* A device's output: the packet waits for the other side. */
static err_t output(struct netif *netif, struct pbuf *packet, const ip4_addr_t *to) {
  struct queue *queue = netif == &client_side ? &to_server : &to_client;
  (void)to;
  if (queue->count == QUEUE || packet->tot_len > ROOM) return ERR_MEM;
  pbuf_copy_partial(packet, queue->bytes[queue->count], packet->tot_len, 0);
  queue->length[queue->count++] = packet->tot_len;
  return ERR_OK;
}

static err_t set_up(struct netif *netif) {
  netif->name[0] = 'm', netif->name[1] = 'r';
  netif->mtu = 1500;
  netif->output = output;
  return ERR_OK;
}

/* Hands over what waits. Gives the time that the stack spent on it. */
static uint64_t hand_over(struct queue *queue, struct netif *to) {
  struct pbuf *packets[QUEUE];
  int count = queue->count;
  for (int place = 0; place < count; place++) {
    packets[place] = pbuf_alloc(PBUF_RAW, queue->length[place], PBUF_RAM);
    if (!packets[place]) fail("no memory");
    pbuf_take(packets[place], queue->bytes[place], queue->length[place]);
  }
  queue->count = 0;
  uint64_t start = cycles();
  for (int place = 0; place < count; place++) ip4_input(packets[place], to);
  return cycles() - start;
}

static void put(struct tcp_pcb *pcb) {
  if (tcp_write(pcb, body, (u16_t)size, TCP_WRITE_FLAG_COPY) != ERR_OK) fail("no room to write");
  tcp_output(pcb);
}

static void take(struct tcp_pcb *pcb, struct pbuf *data) {
  pbuf_copy_partial(data, sink, data->tot_len, 0);
  tcp_recved(pcb, data->tot_len);
  pbuf_free(data);
}

static err_t on_request(void *unused, struct tcp_pcb *pcb, struct pbuf *data, err_t error) {
  (void)unused, (void)error;
  if (!data) return ERR_OK;
  take(pcb, data);
  received++;
  if (answers) put(pcb);
  return ERR_OK;
}

static err_t on_answer(void *unused, struct tcp_pcb *pcb, struct pbuf *data, err_t error) {
  (void)unused, (void)error;
  if (!data) return ERR_OK;
  take(pcb, data);
  answered++;
  return ERR_OK;
}

static err_t on_accept(void *unused, struct tcp_pcb *pcb, err_t error) {
  (void)unused, (void)error;
  tcp_nagle_disable(pcb);
  tcp_recv(pcb, on_request);
  servers[accepted++] = pcb;
  return ERR_OK;
}

static void set_up_connections(int count) {
  ip4_addr_t mask, none, client, server;
  IP4_ADDR(&mask, 255, 255, 255, 0), IP4_ADDR(&none, 0, 0, 0, 0);
  IP4_ADDR(&client, 10, 0, 0, 1), IP4_ADDR(&server, 10, 0, 1, 1);
  netif_add(&client_side, &client, &mask, &none, NULL, set_up, ip4_input);
  netif_add(&server_side, &server, &mask, &none, NULL, set_up, ip4_input);
  netif_set_up(&client_side), netif_set_link_up(&client_side);
  netif_set_up(&server_side), netif_set_link_up(&server_side);
  struct tcp_pcb *listener = tcp_new();
  ip_addr_t address = IPADDR4_INIT(server.addr), own = IPADDR4_INIT(client.addr);
  tcp_bind_netif(listener, &server_side);
  if (tcp_bind(listener, &address, 80) != ERR_OK) fail("bind");
  listener = tcp_listen_with_backlog(listener, 255);
  tcp_bind_netif(listener, &server_side);
  tcp_accept(listener, on_accept);
  for (int place = 0; place < count; place++) {
    clients[place] = tcp_new();
    if (!clients[place]) fail("no connection");
    tcp_bind_netif(clients[place], &client_side);
    tcp_bind(clients[place], &own, (u16_t)(1024 + place));
    tcp_nagle_disable(clients[place]);
    tcp_recv(clients[place], on_answer);
    if (tcp_connect(clients[place], &address, 80, NULL) != ERR_OK) fail("connect");
    if (place % BATCH == BATCH - 1 || place + 1 == count) {
      for (int turn = 0; turn < 3; turn++) {
        hand_over(&to_server, &server_side);
        hand_over(&to_client, &client_side);
      }
    }
  }
  if (accepted != count) fail("not all connections were made");
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: pair|receive|send CONNECTIONS BYTES ROUNDS");
  int pair = !strcmp(argv[1], "pair"), send = !strcmp(argv[1], "send");
  int count = atoi(argv[2]), rounds = atoi(argv[4]);
  size = atoi(argv[3]);
  if (count < 1 || count > 60000 || size < 1 || size > 1448) fail("1 to 60000 connections, 1 to 1448 bytes");
  clients = calloc((size_t)count, sizeof *clients), servers = calloc((size_t)count, sizeof *servers);
  lwip_init();
  set_up_connections(count);
  answers = pair;
  int times = count < WARM / 10 ? WARM / 10 / count : 1;
  for (int round = 0; round <= rounds; round++) {
    uint64_t spent = 0;
    received = answered = 0;
    for (int time = 0; time < times; time++) {
      for (int first = 0; first < count; first += BATCH) {
        int end = first + BATCH < count ? first + BATCH : count;
        uint64_t start = cycles();
        for (int place = first; place < end; place++) put(send ? servers[place] : clients[place]);
        if (send) spent += cycles() - start, hand_over(&to_client, &client_side);
        if (send) tcp_fasttmr();
        spent += hand_over(&to_server, &server_side);
        if (!pair && !send) start = cycles(), tcp_fasttmr(), spent += cycles() - start;
        hand_over(&to_client, &client_side);
        if (pair) continue;
        tcp_fasttmr();
        hand_over(&to_server, &server_side);
        hand_over(&to_client, &client_side);
      }
    }
    int units = send || pair ? answered : received;
    if (units != count * times) fail("a segment was lost");
    if (round) printf("%.1f\n", (double)spent / units);
  }
  return 0;
}
