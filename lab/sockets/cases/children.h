// Processes that cases start.
#pragma once
#include "talk.h"

// Waits until a child ends, and says how.
void ended(pid_t child);
// Serves one connection of a listener: sends a word, then what it receives, until the end.
int serve_one(int server, const char *word);
// For a child that receives a datagram of five bytes by FD, which is bound to PORT: sends some until it ends.
void receives(pid_t child, int fd, int port);
