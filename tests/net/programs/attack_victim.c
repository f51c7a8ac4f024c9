/* What a context feels while others forge topic resolution, for tests/net/test_attack_resolver.py.
 *
 *   attack_victim CONFIG
 *
 * Receives topics "genuine" and "target" and the pattern "^wild\.", has 50 sources of its own and a timer of 10 ms.
 * Prints "begin TOPIC SOURCE" and "end TOPIC SOURCE", and twice a second
 * "state MESSAGES LOST LATE_US DESCRIPTORS RESIDENT_KIB": messages of "genuine" and what is missing of them, the worst
 * delay of the timer since the last line, and what the process holds. */
#include <lbm/lbm.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMER_MS = 10, OWN_SOURCES = 50 };

static atomic_ulong messages, lost, worst_us;
static uint64_t last_ns;   /* context thread */
static unsigned long next; /* context thread: sequence number of "genuine" */
static int started;

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void must(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        exit(1);
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_BOS || msg->type == LBM_MSG_EOS) {
        printf("%s %s %s\n", msg->type == LBM_MSG_BOS ? "begin" : "end", msg->topic_name, msg->source);
    } else if (strcmp(msg->topic_name, "genuine") == 0 && msg->type == LBM_MSG_DATA) {
        if (started && msg->sequence_number != next) {
            atomic_fetch_add(&lost, msg->sequence_number - next);
        }
        started = 1;
        next = msg->sequence_number + 1;
        atomic_fetch_add(&messages, 1);
    }
    return 0;
}

static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    uint64_t now = now_ns();
    uint64_t due = last_ns + TIMER_MS * 1000000u;
    if (last_ns != 0 && now > due && (now - due) / 1000 > atomic_load(&worst_us)) {
        atomic_store(&worst_us, (now - due) / 1000);
    }
    last_ns = now;
    return 0;
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static unsigned long resident_kib(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1) {
        pages = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return pages * ((unsigned long)sysconf(_SC_PAGESIZE) / 1024);
}

static void receive(lbm_context_t *ctx, const char *name)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    must(lbm_rcv_topic_lookup(&topic, ctx, name, NULL), "lookup");
    must(lbm_rcv_create(&rcv, ctx, topic, on_message, NULL, NULL), "receiver");
}

int main(int argc, char **argv)
{
    lbm_context_t *ctx;
    lbm_wildcard_rcv_t *wildcard;
    if (argc != 2) {
        fprintf(stderr, "usage: attack_victim CONFIG\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(lbm_config(argv[1]), "configuration");
    must(lbm_context_create(&ctx, NULL, NULL, NULL), "context");
    for (unsigned i = 0; i < OWN_SOURCES; i++) {
        char name[128];
        lbm_topic_t *topic;
        lbm_src_t *src;
        snprintf(name, sizeof name, "own.%u.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i);
        must(lbm_src_topic_alloc(&topic, ctx, name, NULL), "topic");
        must(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), "source");
    }
    receive(ctx, "genuine");
    receive(ctx, "target");
    must(lbm_wildcard_rcv_create(&wildcard, ctx, "^wild\\.", NULL, NULL, on_message, NULL, NULL), "wildcard receiver");
    if (lbm_schedule_timer_recurring(ctx, on_timer, NULL, NULL, TIMER_MS) < 0) {
        must(-1, "timer");
    }
    for (;;) {
        nanosleep(&(struct timespec){0, 500000000}, NULL);
        printf("state %lu %lu %lu %u %lu\n", atomic_load(&messages), atomic_load(&lost), atomic_exchange(&worst_us, 0),
               descriptors(), resident_kib());
    }
}
