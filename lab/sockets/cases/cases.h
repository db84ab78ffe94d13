#pragma once
#include "../sockets.h"
extern const struct test address_cases[], connect_cases[], listen_cases[], option_cases[], receive_cases[], send_cases[],
    message_cases[], file_cases[], close_cases[], descriptor_cases[], poll_cases[], select_cases[], epoll_cases[],
    mixed_epoll_cases[], signal_cases[], process_cases[], thread_cases[], name_cases[], udp_cases[], udp_long_cases[],
    udp_told_cases[], family_cases[], state_cases[], interrupted_cases[], limit_cases[], edge_cases[], heir_cases[],
    program_cases[];
extern const struct test *const all_cases[];
// What this program does when a case executes it: `child-accept FD` and the like.
int executed(int count, char **words);
#define END {NULL, NULL, 0}
