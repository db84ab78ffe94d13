// All of them, in the order in which they run.
#include "cases.h"

const struct test *const all_cases[] = {
    address_cases, connect_cases,    listen_cases, receive_cases,     send_cases,    message_cases, file_cases,
    close_cases,   descriptor_cases, poll_cases,   select_cases,      epoll_cases,   mixed_epoll_cases,
    signal_cases,  process_cases,    program_cases, thread_cases,     name_cases,    udp_cases,
    udp_long_cases, udp_told_cases,  family_cases, state_cases,       option_cases,  interrupted_cases,
    limit_cases,   edge_cases,       heir_cases, NULL,
};
