/* Contexts that send each other unicast immediate messages, and sockets in place of contexts, for tests of both. */
#ifndef UM_SUPPORT_TEST_UIM_H
#define UM_SUPPORT_TEST_UIM_H

#include <arpa/inet.h>
#include <unistd.h>

#include "core/um_context.h"
#include "um_test_log.h"
#include "um_test_rcv.h"

static inline int immediate_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx;
    return recorder_cb(NULL, msg, clientd);
}

static inline lbm_context_t *open_context(const char *option, const char *value)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_interface", "127.0.0.1/32"));
    if (option != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, option, value));
    }
    return net_context_with(attr);
}

static inline uint16_t port_of(lbm_context_t *ctx)
{
    lbm_uint16_t port;
    size_t len = sizeof port;
    MUST(lbm_context_getopt(ctx, "request_tcp_port", &port, &len));
    return ntohs(port);
}

struct target {
    char text[160];
};

static inline struct target target_of(lbm_context_t *ctx)
{
    struct target target;
    snprintf(target.text, sizeof target.text, "TCP:127.0.0.1:%u", port_of(ctx));
    return target;
}

static inline int send_text(lbm_context_t *ctx, const char *target, const char *topic, const char *text, int flags)
{
    return lbm_unicast_immediate_message(ctx, target, topic, text, strlen(text), flags);
}

static inline int hits(void)
{
    pthread_mutex_lock(&log_lock);
    int count = log_hits;
    pthread_mutex_unlock(&log_lock);
    return count;
}

static inline bool comes_true(bool (*fn)(void *arg), void *arg)
{
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        if (fn(arg)) {
            return true;
        }
        sleep_ms(1);
    }
    return false;
}

static inline struct um_unicast_stats layer_of(lbm_context_t *ctx)
{
    struct um_unicast_stats stats = {0};
    um_unicast_stats(ctx->unicast, &stats);
    return stats;
}

/* A listening socket that accepts in the kernel and never reads. */
static inline int deaf_port(uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4096;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t len = sizeof addr;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    REQUIRE(bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0 && listen(fd, 4096) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    *port = ntohs(addr.sin_port);
    return fd;
}

static inline int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0);
    return fd;
}

#endif
