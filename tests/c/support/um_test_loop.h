/* A sequential loop with options for loopback, driven by the test; a log that
 * can be searched; blocking helper sockets. For tests of code that runs on a loop. */
#ifndef UM_SUPPORT_TEST_LOOP_H
#define UM_SUPPORT_TEST_LOOP_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_options.h"
#include "net/um_loop.h"
#include "um_test.h"

#define HANG_LIMIT_NS (60 * UM_NS_PER_SEC)

static char test_log[16384];

static inline int test_log_proc(int level, const char *message, void *clientd)
{
    size_t used = strlen(test_log);
    snprintf(test_log + used, sizeof test_log - used, "%s\n", message);
    return 0;
}

static inline int test_log_count(const char *part)
{
    int count = 0;
    for (const char *at = test_log; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

static inline void test_log_start(void)
{
    test_log[0] = 0;
    um_log_set_proc(test_log_proc, NULL);
}

static inline void test_options(struct um_context_options *opts)
{
    memset(opts, 0, sizeof *opts);
    opts->default_interface.addr = htonl(INADDR_LOOPBACK);
    opts->default_interface.bits = 32;
    opts->request_tcp_listen_backlog = 5;
    opts->response_tcp_activity_timeout = -1;
    opts->response_session_maximum_buffer = 65536;
    opts->response_tcp_deletion_timeout = 20000;
}

/* Make the n-th allocation from now fail (n from 0); test_fail_stop() tells whether it was reached. */
static long test_fail_in = -1;

static inline bool test_fail_hook(size_t size)
{
    return test_fail_in >= 0 && test_fail_in-- == 0;
}

static inline void test_fail_start(long n)
{
    test_fail_in = n;
    um_mem_set_fail_hook(test_fail_hook);
}

static inline bool test_fail_stop(void)
{
    bool reached = test_fail_in < 0;
    um_mem_set_fail_hook(NULL);
    test_fail_in = -1;
    return reached;
}

/* Run the loop until the condition holds; false after the hang limit. */
#define RUN_UNTIL(loop, condition)                                                                                     \
    ({                                                                                                                 \
        uint64_t give_up_ = um_clock_ns() + HANG_LIMIT_NS;                                                             \
        bool met_;                                                                                                     \
        while (!(met_ = (condition)) && um_clock_ns() < give_up_) {                                                    \
            um_loop_run_once((loop), 5, 0);                                                                            \
        }                                                                                                              \
        met_;                                                                                                          \
    })

static inline void test_run_for_ms(struct um_loop *loop, unsigned ms)
{
    uint64_t until = um_clock_ns() + ms * UM_NS_PER_MS;
    while (um_clock_ns() < until) {
        um_loop_run_once(loop, 1, 0);
    }
}

static inline int test_listen(uint16_t *port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) != 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    *port = ntohs(addr.sin_port);
    return fd;
}

static inline int test_connect(uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The same from another address of this machine. */
static inline int test_connect_from(const char *from, uint16_t port)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
    struct sockaddr_in peer = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&local, sizeof local) != 0 ||
        connect(fd, (struct sockaddr *)&peer, sizeof peer) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Accept one connection while running the loop; the descriptor is non-blocking. */
static inline int test_accept(struct um_loop *loop, int listener)
{
    int fd = -1;
    if (RUN_UNTIL(loop, (fd = accept(listener, NULL, NULL)) >= 0)) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
}

/* Read exactly len bytes while running the loop. */
static inline bool test_read(struct um_loop *loop, int fd, void *out, size_t len)
{
    size_t have = 0;
    return RUN_UNTIL(loop, ({
                         ssize_t got = have < len ? recv(fd, (char *)out + have, len - have, 0) : 0;
                         have += got > 0 ? (size_t)got : 0;
                         have == len;
                     }));
}

/* True when the other side has closed. */
static inline bool test_closed(struct um_loop *loop, int fd)
{
    char byte[256];
    return RUN_UNTIL(loop, ({
                         ssize_t got = recv(fd, byte, sizeof byte, 0);
                         got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
                     }));
}

static inline bool test_silent(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* Write everything while running the loop. */
static inline bool test_write(struct um_loop *loop, int fd, const void *data, size_t len)
{
    size_t done = 0;
    return RUN_UNTIL(loop, ({
                         ssize_t put = send(fd, (const char *)data + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
                         done += put > 0 ? (size_t)put : 0;
                         done == len;
                     }));
}

#endif
