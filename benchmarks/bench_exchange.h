/* A bare replay: two threads, a connection each way over loopback. One asks for so
 * many messages at a time, the other one copies them out of a large memory and sends
 * them; the system calls, sizes and numbers under way are those of a late join. For
 * bench_late_join, which looks at what it does to others. */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_common.h"

#define BENCH_EXCHANGE_REQUEST 64u /* about the bytes of a request of late join, with what precedes it */
#define BENCH_EXCHANGE_BEYOND 40u  /* about those of an answer beside its payload */
#define BENCH_EXCHANGE_READ 65536u
#define BENCH_EXCHANGE_BUFFER (4 << 20)

struct bench_exchange {
    uint32_t under_way; /* requests */
    size_t answer;      /* bytes of one */
    uint8_t *kept;      /* what is sent again */
    size_t kept_len;
    int requests[2], answers[2]; /* connections: who writes, who reads */
    _Atomic uint64_t answered;
    pthread_t asker, answerer;
};

static inline void bench_exchange_connect(int ends[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int one = 1, room = BENCH_EXCHANGE_BUFFER, listener = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(listener, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&addr, &len) != 0 ||
        connect(ends[0], (struct sockaddr *)&addr, sizeof addr) != 0 || (ends[1] = accept(listener, NULL, NULL)) < 0) {
        bench_die("a connection over loopback");
    }
    setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(listener);
}

static inline bool bench_exchange_write(int fd, const uint8_t *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        sent += (size_t)n;
    }
    return true;
}

static inline int bench_exchange_watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) {
        bench_die("epoll");
    }
    return set;
}

/* Waits, reads once. False: over. */
static inline bool bench_exchange_read(int set, int fd, uint8_t *into, size_t *len)
{
    struct epoll_event event;
    if (epoll_wait(set, &event, 1, -1) < 1) {
        return true; /* a signal */
    }
    ssize_t n = recv(fd, into, BENCH_EXCHANGE_READ, MSG_DONTWAIT);
    *len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Asks again for what was answered: for each at once, or, with many under way, for an eighth of them together. */
static inline void *bench_exchange_ask(void *arg)
{
    struct bench_exchange *x = arg;
    uint8_t *buffer = malloc(BENCH_EXCHANGE_READ), *asked = calloc(x->under_way, BENCH_EXCHANGE_REQUEST);
    uint32_t lot = x->under_way >= 8 ? x->under_way / 8 : 1, open = x->under_way;
    size_t got = 0;
    int set = bench_exchange_watch(x->answers[1]);
    bool on = bench_exchange_write(x->requests[0], asked, (size_t)open * BENCH_EXCHANGE_REQUEST);
    while (on && bench_exchange_read(set, x->answers[1], buffer, &got)) {
        uint32_t answers = (uint32_t)(got / x->answer);
        got -= answers * x->answer;
        open -= answers;
        atomic_fetch_add_explicit(&x->answered, answers, memory_order_relaxed);
        uint32_t more = x->under_way - open;
        if (more >= lot) {
            open += more;
            on = bench_exchange_write(x->requests[0], asked, (size_t)more * BENCH_EXCHANGE_REQUEST);
        }
    }
    shutdown(x->requests[0], SHUT_RDWR);
    close(set);
    free(asked);
    free(buffer);
    return NULL;
}

static inline void *bench_exchange_answer(void *arg)
{
    struct bench_exchange *x = arg;
    size_t most = BENCH_EXCHANGE_READ / BENCH_EXCHANGE_REQUEST + 1, got = 0, at = 0;
    uint8_t *buffer = malloc(BENCH_EXCHANGE_READ), *answers = malloc(most * x->answer);
    int set = bench_exchange_watch(x->requests[1]);
    bool on = true;
    while (on && bench_exchange_read(set, x->requests[1], buffer, &got)) {
        size_t count = got / BENCH_EXCHANGE_REQUEST;
        got -= count * BENCH_EXCHANGE_REQUEST;
        for (size_t i = 0; i < count; i++, at = at + 2 * x->answer <= x->kept_len ? at + x->answer : 0) {
            memcpy(answers + i * x->answer, x->kept + at, x->answer);
        }
        on = bench_exchange_write(x->answers[0], answers, count * x->answer);
    }
    shutdown(x->answers[0], SHUT_RDWR);
    close(set);
    free(answers);
    free(buffer);
    return NULL;
}

static inline void bench_exchange_begin(struct bench_exchange *x, uint32_t under_way, size_t size, uint64_t kept)
{
    memset(x, 0, sizeof *x);
    x->under_way = under_way;
    x->answer = size + BENCH_EXCHANGE_BEYOND;
    x->kept_len = x->answer * kept;
    x->kept = malloc(x->kept_len);
    if (x->kept == NULL) {
        bench_die("no memory");
    }
    memset(x->kept, 1, x->kept_len);
    bench_exchange_connect(x->requests);
    bench_exchange_connect(x->answers);
    if (pthread_create(&x->answerer, NULL, bench_exchange_answer, x) != 0 ||
        pthread_create(&x->asker, NULL, bench_exchange_ask, x) != 0) {
        bench_die("pthread_create");
    }
}

/* How many were answered. */
static inline uint64_t bench_exchange_end(struct bench_exchange *x)
{
    uint64_t answered = atomic_load(&x->answered);
    shutdown(x->requests[1], SHUT_RDWR);
    pthread_join(x->answerer, NULL);
    pthread_join(x->asker, NULL);
    for (int i = 0; i < 2; i++) {
        close(x->requests[i]);
        close(x->answers[i]);
    }
    free(x->kept);
    return answered;
}

#endif
