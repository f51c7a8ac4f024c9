/* Sockets: always non-blocking and close-on-exec; failures name the address or
 * the option that caused them. No state except which buffer clamps were logged.
 * Any thread. */
#define _GNU_SOURCE
#include "net/um_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"

#define UM_CLAMPS_LOGGED_MAX 32

static struct sockaddr_in um_sockaddr(struct in_addr addr, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = addr};
}

/* Close after a failure, keeping errno for the caller. */
static int um_socket_fail(int fd, int *err, int saved)
{
    if (fd >= 0) {
        um_fd_close(fd);
    }
    errno = saved;
    if (err != NULL) {
        *err = saved;
    }
    return -1;
}

static int um_socket_bound(int type, struct in_addr addr, uint16_t port, bool reuseaddr, int *err)
{
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &addr, text, sizeof text);
    const char *kind = type == SOCK_STREAM ? "TCP" : "UDP";
    int fd = um_fd_own(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        int saved = errno;
        um_error_os(saved, "CoreApi-1030-1", "creating a %s socket", kind);
        return um_socket_fail(fd, err, saved);
    }
    int one = 1;
    if (reuseaddr && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0) {
        int saved = errno;
        um_error_os(saved, "CoreApi-1030-2", "SO_REUSEADDR on the %s socket for %s:%u", kind, text, port);
        return um_socket_fail(fd, err, saved);
    }
    struct sockaddr_in sin = um_sockaddr(addr, port);
    if (bind(fd, (struct sockaddr *)&sin, sizeof sin) < 0) {
        int saved = errno;
        um_error_os(saved, "CoreApi-1030-3", "binding a %s socket to %s:%u", kind, text, port);
        return um_socket_fail(fd, err, saved);
    }
    return fd;
}

int um_socket_tcp_listen(struct in_addr addr, uint16_t port, int backlog, bool reuseaddr, uint16_t *bound_port,
                         int *err)
{
    int fd = um_socket_bound(SOCK_STREAM, addr, port, reuseaddr, err);
    if (fd < 0) {
        return -1;
    }
    if (listen(fd, backlog) < 0) {
        int saved = errno;
        um_error_os(saved, "CoreApi-1030-4", "listening on TCP port %u", port);
        return um_socket_fail(fd, err, saved);
    }
    uint16_t bound = um_socket_local_port(fd);
    if (bound == 0) {
        int saved = errno;
        um_error_os(saved, "CoreApi-1030-11", "reading the number of the TCP port bound for port %u", port);
        return um_socket_fail(fd, err, saved);
    }
    if (bound_port != NULL) {
        *bound_port = bound;
    }
    return fd;
}

int um_socket_tcp_listen_range(struct in_addr addr, const struct um_port_range *range, int backlog, bool reuseaddr,
                               uint16_t *bound_port)
{
    int err = 0;
    for (unsigned port = range->low; port <= range->high; port++) {
        int fd = um_socket_tcp_listen(addr, (uint16_t)port, backlog, reuseaddr, bound_port, &err);
        if (fd >= 0 || err != EADDRINUSE) {
            return fd;
        }
    }
    return um_port_range_gives_way(range) ? um_socket_tcp_listen(addr, 0, backlog, reuseaddr, bound_port, &err)
                                          : um_port_range_used_up(range, "CoreApi-1030-5");
}

/* A port chosen at connect time only needs to be free for this peer; older kernels choose it here. One that is given
 * may still be that of the connection before. */
static int um_socket_bind_own(int fd, struct in_addr from, uint16_t from_port)
{
    int one = 1;
    struct sockaddr_in local = um_sockaddr(from, from_port);
    if (from_port == 0) {
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    } else {
        struct linger reset = {.l_onoff = 1};
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    return bind(fd, (struct sockaddr *)&local, sizeof local);
}

void um_socket_set_graceful(int fd)
{
    struct linger off = {0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof off);
}

int um_socket_tcp_connect(struct in_addr from, struct in_addr to, uint16_t port)
{
    return um_socket_tcp_connect_from(from, 0, to, port);
}

int um_socket_tcp_connect_from(struct in_addr from, uint16_t from_port, struct in_addr to, uint16_t port)
{
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &to, text, sizeof text);
    int fd = um_fd_own(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return um_error_os(errno, "CoreApi-1030-6", "creating a TCP socket for %s:%u", text, port);
    }
    bool bound = from.s_addr != htonl(INADDR_ANY) || from_port != 0;
    if (bound && um_socket_bind_own(fd, from, from_port) < 0) {
        int saved = errno;
        char local_text[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &from, local_text, sizeof local_text);
        um_error_os(saved, "CoreApi-1030-7", "binding to %s:%u before connecting to %s:%u", local_text, from_port, text,
                    port);
        return um_socket_fail(fd, NULL, saved);
    }
    struct sockaddr_in peer = um_sockaddr(to, port);
    if (connect(fd, (struct sockaddr *)&peer, sizeof peer) < 0 && errno != EINPROGRESS && errno != EINTR) {
        int saved = errno;
        um_error_os(saved, "CoreApi-1030-8", "connecting to %s:%u", text, port);
        return um_socket_fail(fd, NULL, saved);
    }
    return fd;
}

int um_socket_udp(struct in_addr addr, uint16_t port, bool reuse, int *err)
{
    return um_socket_bound(SOCK_DGRAM, addr, port, reuse, err);
}

int um_socket_set_nodelay(int fd, bool on)
{
    int value = on;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value) < 0) {
        return um_error_os(errno, "CoreApi-1030-9", "TCP_NODELAY");
    }
    return 0;
}

static pthread_mutex_t clamps_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(clamps_lock)

/* Many sockets share one option: a clamp is logged once per option and granted size. */
static bool um_socket_clamp_is_news(const char *option, int granted)
{
    static struct {
        char option[64];
        int granted;
    } known[UM_CLAMPS_LOGGED_MAX];
    bool news = true;
    pthread_mutex_lock(&clamps_lock);
    for (int i = 0; i < UM_CLAMPS_LOGGED_MAX; i++) {
        if (known[i].option[0] == '\0') {
            snprintf(known[i].option, sizeof known[i].option, "%s", option);
            known[i].granted = granted;
            break;
        }
        if (strcmp(known[i].option, option) == 0 && known[i].granted == granted) {
            news = false;
            break;
        }
    }
    pthread_mutex_unlock(&clamps_lock);
    return news;
}

/* A size that is not taken at all is told by another identifier than one that is not granted. */
static const char *not_set(const char *log_id)
{
    static const char *const ids[][2] = {{"Core-5688-3274", "Core-5688-3273"},
                                         {"Core-5688-3290", "Core-5688-3289"},
                                         {"Core-5688-3309", "Core-5688-3308"}};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (strcmp(ids[i][0], log_id) == 0) {
            return ids[i][1];
        }
    }
    return log_id;
}

static void um_socket_set_buffer(int fd, int name, const char *sysctl, size_t bytes, enum um_size_origin origin,
                                 const char *option, const char *log_id)
{
    if (bytes == 0) {
        return;
    }
    int wanted = bytes > INT32_MAX / 2 ? INT32_MAX / 2 : (int)bytes;
    int granted = 0;
    socklen_t len = sizeof granted;
    if (setsockopt(fd, SOL_SOCKET, name, &wanted, sizeof wanted) < 0 ||
        getsockopt(fd, SOL_SOCKET, name, &granted, &len) < 0) {
        um_log_limited(um_log_of(option), um_clock_ns(), UM_LOG_WARNING, not_set(log_id), "%s %zu: cannot be set: %s",
                       option, bytes, strerror(errno));
        return;
    }
    granted /= 2; /* the kernel reports twice the usable size */
    if (granted < wanted && um_socket_clamp_is_news(option, granted)) {
        um_log(origin == UM_SIZE_BY_DEFAULT ? UM_LOG_INFO : UM_LOG_WARNING, log_id,
               "%s %zu: the system grants only %d bytes; raise the limit with `sysctl -w %s=%zu`", option, bytes,
               granted, sysctl, bytes);
    }
}

void um_socket_set_rcvbuf(int fd, size_t bytes, enum um_size_origin origin, const char *option, const char *log_id)
{
    um_socket_set_buffer(fd, SO_RCVBUF, "net.core.rmem_max", bytes, origin, option, log_id);
}

size_t um_socket_rcvbuf(int fd, size_t wanted)
{
    int granted = 0;
    socklen_t len = sizeof granted;
    if (wanted == 0 || getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len) < 0) {
        return wanted;
    }
    size_t usable = (size_t)granted / 2; /* the kernel reports twice the usable size */
    return usable < wanted ? usable : wanted;
}

void um_socket_set_sndbuf(int fd, size_t bytes, enum um_size_origin origin, const char *option, const char *log_id)
{
    um_socket_set_buffer(fd, SO_SNDBUF, "net.core.wmem_max", bytes, origin, option, log_id);
}

int um_socket_set_keepalive(int fd, unsigned timeout_ms)
{
    int on = 1, count = 10;
    int idle = timeout_ms / 2000 > 0 ? (int)(timeout_ms / 2000) : 1;
    int interval = timeout_ms / 20000 > 0 ? (int)(timeout_ms / 20000) : 1;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval) < 0) {
        return um_error_os(errno, "CoreApi-1030-10", "TCP keepalive (activity timeout %u ms)", timeout_ms);
    }
    return 0;
}

static struct sockaddr_in um_socket_local(int fd)
{
    struct sockaddr_in local = {0};
    socklen_t len = sizeof local;
    if (getsockname(fd, (struct sockaddr *)&local, &len) < 0) {
        memset(&local, 0, sizeof local);
    }
    return local;
}

uint16_t um_socket_local_port(int fd)
{
    return ntohs(um_socket_local(fd).sin_port);
}

struct in_addr um_socket_local_addr(int fd)
{
    return um_socket_local(fd).sin_addr;
}

struct in_addr um_socket_addr_towards(struct in_addr to)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = to};
    struct in_addr from = {.s_addr = INADDR_ANY};
    int fd = um_fd_own(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return from;
    }
    if (connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0) {
        from = um_socket_local_addr(fd);
    }
    um_fd_close(fd);
    return from;
}
