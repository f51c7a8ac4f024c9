/* lbmresping: measures how long a receiver takes to find and join a new source of its
 * own context: once a second a topic with a name of its own. Everything but the
 * callback happens in main(). */
#include <arpa/inet.h>
#include <lbm/lbm.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ex_options.h"

static struct {
    unsigned long ignored;
    int ignored_flag;
} opt;

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'l', NULL, EX_UNSIGNED, &opt.ignored, "NUM", "accepted without effect"},
    {'M', NULL, EX_UNSIGNED, &opt.ignored, "NUM", "accepted without effect"},
    {'P', NULL, EX_UNSIGNED, &opt.ignored, "NUM", "accepted without effect"},
    {'s', NULL, EX_UNSIGNED, &opt.ignored, "NUM", "accepted without effect"},
    {'V', NULL, EX_FLAG, &opt.ignored_flag, NULL, "accepted without effect"},
    EX_END,
};

static const struct ex_program program = {"Measures the time of topic resolution and of joining.", "[resolver host]", 0,
                                          options};

/* The receiver hears the source. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int heard;
} joined = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    if (msg->type == LBM_MSG_BOS) {
        pthread_mutex_lock(&joined.lock);
        joined.heard = 1;
        pthread_cond_signal(&joined.changed);
        pthread_mutex_unlock(&joined.lock);
    }
    return 0;
}

static void wait_until_heard(void)
{
    pthread_mutex_lock(&joined.lock);
    while (!joined.heard) {
        pthread_cond_wait(&joined.changed, &joined.lock);
    }
    joined.heard = 0;
    pthread_mutex_unlock(&joined.lock);
}

static void measure(lbm_context_t *ctx, long id, long number)
{
    char name[64];
    lbm_topic_t *source_topic, *receiver_topic;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    snprintf(name, sizeof name, "%ld %ld", id, number);
    double began = ex_now();
    EX_TRY(lbm_rcv_topic_lookup, &receiver_topic, ctx, name, NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, receiver_topic, on_message, NULL, NULL);
    EX_TRY(lbm_src_topic_alloc, &source_topic, ctx, name, NULL);
    EX_TRY(lbm_src_create, &src, ctx, source_topic, NULL, NULL, NULL);
    EX_TRY(lbm_src_send, src, "x", 1, LBM_MSG_FLUSH | LBM_SRC_BLOCK);
    wait_until_heard();
    printf("Topic resolution and connection seq=%ld, time=%5.3g ms\n", number, (ex_now() - began) * 1000);
    fflush(stdout);
    EX_TRY(lbm_rcv_delete, rcv);
    EX_TRY(lbm_src_delete, src);
}

static void use_resolver(lbm_context_attr_t *cattr, const char *host)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    char ip[INET_ADDRSTRLEN];
    if (getaddrinfo(host, NULL, &hints, &found) != 0) {
        fprintf(stderr, "%s: unknown host\n", host);
        exit(1);
    }
    inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr, ip, sizeof ip);
    freeaddrinfo(found);
    printf("Using %s (%s) for unicast topic resolution\n", host, ip);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "resolver_unicast_daemon", ip);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_context_t *ctx;
    EX_TRY(lbm_context_attr_create, &cattr);
    if (first < argc) {
        use_resolver(cattr, argv[first]);
    }
    condition_init(&joined.changed);
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    lbm_context_attr_delete(cattr);
    srandom((unsigned)getpid());
    long id = random();
    for (long number = 0;; number++) {
        measure(ctx, id, number);
        ex_sleep_ms(1000);
    }
}
