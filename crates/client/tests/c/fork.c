/* A program that forks while it holds packets; tests/c.rs plays the daemon and looks at what it notices. */
#include <millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, millrace_error());          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum { LONG = 60000 };

/* Every function with a channel, a client and packets that are the parent's. */
static void child(millrace_client *client, millrace_channel *channel, millrace_packet *held) {
    millrace_packet packet;
    millrace_port ports[8];
    millrace_channel *other;
    uint8_t copy[100], *data;
    CHECK(millrace_receive(channel, &packet, 1) == MILLRACE_FORKED);
    CHECK(strstr(millrace_error(), "attach anew"));
    CHECK(millrace_wait(channel, 0) == MILLRACE_FORKED && millrace_wait_for_room(channel, 0) == MILLRACE_FORKED);
    CHECK(millrace_arm(channel) == 0 && millrace_flush(channel, 0) == MILLRACE_FORKED);
    CHECK(millrace_send(channel, held, 1) == MILLRACE_FORKED && millrace_return(channel, held, 1) == MILLRACE_FORKED);
    CHECK(millrace_send_bytes(channel, "x", 1, 0) == MILLRACE_FORKED);
    CHECK(millrace_return_bytes(channel, "x", 1, 0) == MILLRACE_FORKED);
    CHECK(millrace_copy(channel, held, copy, sizeof copy) == 0 && millrace_piece(channel, held, 0, &data) == 0);
    CHECK(millrace_release(channel, held, 2) == 2);
    CHECK(millrace_ports(client, ports, 8) == MILLRACE_FORKED);
    CHECK(millrace_open(client, NULL, &other, 1) == MILLRACE_FORKED);
    millrace_close(channel);
    /* A session of its own. */
    CHECK(millrace_reattach(client) == 0 && millrace_ports(client, ports, 8) == 2);
    millrace_detach(client);
    _exit(7);
}

int main(void) {
    millrace_client *client;
    millrace_channel *channel;
    millrace_packet held[2];
    int status;
    CHECK(millrace_attach(NULL, "fork", &client) == 0);
    CHECK(millrace_open(client, NULL, &channel, 1) == 1);
    puts("open");
    fflush(stdout);
    for (int i = 0; i < 2; i++) CHECK(millrace_wait(channel, LONG) == 1 && millrace_receive(channel, held + i, 1) == 1);
    CHECK(millrace_arm(channel) == 1);
    pid_t pid = fork();
    if (pid == 0) child(client, channel, held);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    puts("forked");
    fflush(stdout);
    getchar();
    /* Nothing has changed for the parent. */
    CHECK(held[0].data[0] == 1 && held[1].data[59] == 2);
    CHECK(millrace_send(channel, held, 1) == 1 && millrace_release(channel, held + 1, 1) == 1);
    puts("sent");
    fflush(stdout);
    getchar();
    millrace_close(channel);
    millrace_detach(client);
    puts("closed");
    return 0;
}
