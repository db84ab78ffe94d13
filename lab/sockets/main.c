// The command line, and the run: every case in a process of its own, with a time limit.
#include "sockets.h"
#include "cases/cases.h"
#include "peer.h"
#include <getopt.h>
#include <sys/prctl.h>

struct mode mode;
const char *own4, *own6, *peer4, *peer6, *control_path, *program;
static const char *only = "", *cases_path;
static int limit_s = 10, jobs = 1;
enum { MOST_JOBS = 64 };

static const struct { unsigned bit; struct mode mode; } modes[] = {
    {ONCE, {"once", AF_INET, true, false}},         {PASSIVE4, {"passive4", AF_INET, true, false}},
    {ACTIVE4, {"active4", AF_INET, false, false}},  {PASSIVE6, {"passive6", AF_INET6, true, false}},
    {ACTIVE6, {"active6", AF_INET6, false, false}}, {MAPPED, {"mapped", AF_INET6, true, true}},
};

// In the child: the case, and nothing after it.
static void run_case(const struct test *test) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_DFL);
  meet_peer();
  test->run();
  fflush(NULL);
  _exit(0);
}

// Cases that run.
static struct running {
  pid_t child;
  struct timespec end;
  char name[sizeof prefix];
} slots[MOST_JOBS];

static void start_case(struct running *slot, const struct test *test) {
  clock_gettime(CLOCK_MONOTONIC, &slot->end);
  slot->end.tv_sec += limit_s;
  strcpy(slot->name, prefix);
  slot->child = fork();
  if (slot->child) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  run_case(test);
}

// Whether a slot's case is over. Says how it ended when not as it should; no case runs longer than the limit.
static bool is_over(struct running *slot) {
  int status = 0;
  if (waitpid(slot->child, &status, WNOHANG) == 0) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < slot->end.tv_sec || (now.tv_sec == slot->end.tv_sec && now.tv_nsec <= slot->end.tv_nsec)) return false;
    strcpy(prefix, slot->name);
    line("DID NOT END");
    kill(-slot->child, SIGKILL);
    waitpid(slot->child, NULL, 0);
  } else {
    strcpy(prefix, slot->name);
    kill(-slot->child, SIGKILL);
    if (WIFSIGNALED(status)) line("DIED of %s", sigabbrev_np(WTERMSIG(status)));
    if (WIFEXITED(status) && WEXITSTATUS(status)) line("ENDED with %d", WEXITSTATUS(status));
  }
  slot->child = 0;
  return true;
}

// A slot without a case: waits until there is one. With EMPTY until none has a case.
static struct running *free_slot(bool empty) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (struct timespec tick = {.tv_nsec = 100000000};; sigtimedwait(&set, NULL, &tick)) {
    struct running *found = NULL;
    int busy = 0;
    for (int i = 0; i < jobs; i++)
      if (slots[i].child && !is_over(&slots[i]))
        busy++;
      else
        found = &slots[i];
    if (empty ? !busy : !!found) return found;
  }
}

// Whether a case is in the file of names that was given, one a line.
static bool listed(void) {
  if (!cases_path) return true;
  FILE *names = fopen(cases_path, "r");
  char name[sizeof prefix];
  bool found = false;
  while (names && !found && fgets(name, sizeof name, names)) {
    name[strcspn(name, "\n")] = 0;
    found = strcmp(name, prefix) == 0;
  }
  if (names) fclose(names);
  return found;
}

static int run_all(bool list) {
  int count = 0;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (const struct test *const *group = all_cases; *group; group++)
    for (const struct test *test = *group; test->name; test++)
      for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (!(test->modes & modes[i].bit)) continue;
        snprintf(prefix, sizeof prefix, "%s/%s", test->name, modes[i].mode.name);
        if (!strstr(prefix, only) || !listed()) continue;
        count++;
        if (list) {
          puts(prefix);
          continue;
        }
        char name[sizeof prefix];
        strcpy(name, prefix);
        struct running *slot = free_slot(false);
        strcpy(prefix, name);
        mode = modes[i].mode;
        start_case(slot, test);
      }
  free_slot(true);
  fprintf(stderr, "%d cases\n", count);
  return count == 0;
}

// An IPv4 and an IPv6 address, 'A,B'.
static void addresses(char *text, const char **v4, const char **v6) {
  *v4 = strtok(text, ",");
  *v6 = strtok(NULL, ",");
}

static int usage(void) {
  fputs("usage: sockets subject|peer --control PATH --own IPV4,IPV6 --peer IPV4,IPV6 [--only TEXT] [--cases FILE]\n"
        "               [--limit SECONDS] [--jobs N]\n"
        "       sockets list\n"
        "The peer serves subjects at PATH, a Unix socket; a subject runs the cases whose names contain TEXT and are in\n"
        "FILE, N at a time, and writes down what every call returns. --own and --peer are the addresses of the side that is started, and the other's.\n",
        stderr);
  return 2;
}

int main(int count, char **words) {
  static const struct option options[] = {
      {"control", 1, NULL, 'c'}, {"own", 1, NULL, 'o'},   {"peer", 1, NULL, 'p'},
      {"only", 1, NULL, 'n'},    {"limit", 1, NULL, 'l'}, {"cases", 1, NULL, 'a'},
      {"jobs", 1, NULL, 'j'},    {0},
  };
  program = words[0];
  // A case that executes this program again says so in the first word.
  if (count > 1 && strncmp(words[1], "child-", 6) == 0) return executed(count, words);
  for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) switch (option) {
      case 'c': control_path = optarg; break;
      case 'o': addresses(optarg, &own4, &own6); break;
      case 'p': addresses(optarg, &peer4, &peer6); break;
      case 'n': only = optarg; break;
      case 'a': cases_path = optarg; break;
      case 'l': limit_s = atoi(optarg); break;
      case 'j': jobs = atoi(optarg) < 1 ? 1 : atoi(optarg) > MOST_JOBS ? MOST_JOBS : atoi(optarg); break;
      default: return usage();
    }
  const char *role = optind < count ? words[optind] : "";
  if (strcmp(role, "list") == 0) return run_all(true);
  if (!control_path || !own4 || !own6 || !peer4 || !peer6) return usage();
  if (strcmp(role, "peer") == 0) return be_peer();
  if (strcmp(role, "subject") == 0) return run_all(false);
  return usage();
}
