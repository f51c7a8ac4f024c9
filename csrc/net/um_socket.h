/* Socket helpers: non-blocking, close-on-exec, errors through um_error with the option named. */
#ifndef UM_NET_SOCKET_H
#define UM_NET_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/um_port_range.h"

/* Listen on addr:port (host order port; 0 = any). Returns fd or -1. *bound_port gets the real port.
 * errno of the failing call is kept in *err (EADDRINUSE drives port searches). */
int um_socket_tcp_listen(struct in_addr addr, uint16_t port, int backlog, bool reuseaddr, uint16_t *bound_port,
                         int *err);
/* The same on the first free port of the range. */
int um_socket_tcp_listen_range(struct in_addr addr, const struct um_port_range *range, int backlog, bool reuseaddr,
                               uint16_t *bound_port);
/* Non-blocking connect, optionally bound to `from` first. Returns fd (connection in progress or done) or -1. */
int um_socket_tcp_connect(struct in_addr from, struct in_addr to, uint16_t port);
/* The same from a port of the caller's (host order; 0: any). Such a connection is reset when it is closed, unless
 * um_socket_set_graceful() is called before, so that its port can be used again at once. */
int um_socket_tcp_connect_from(struct in_addr from, uint16_t from_port, struct in_addr to, uint16_t port);
void um_socket_set_graceful(int fd);
int um_socket_udp(struct in_addr addr, uint16_t port, bool reuse, int *err);
int um_socket_set_nodelay(int fd, bool on);
/* Who wants a size: a shortage of what nobody asked for is only a matter of information. */
enum um_size_origin { UM_SIZE_SET, UM_SIZE_BY_DEFAULT };

static inline enum um_size_origin um_size_origin(bool by_default)
{
    return by_default ? UM_SIZE_BY_DEFAULT : UM_SIZE_SET;
}

/* Set SO_RCVBUF/SO_SNDBUF; when the kernel grants less, one log line with both numbers and the sysctl to raise (a
 * warning where somebody has set the size). 0 = leave. */
void um_socket_set_rcvbuf(int fd, size_t bytes, enum um_size_origin origin, const char *option, const char *log_id);
void um_socket_set_sndbuf(int fd, size_t bytes, enum um_size_origin origin, const char *option, const char *log_id);
/* What the system has granted of `wanted`; 0 stays 0, the system's default. */
size_t um_socket_rcvbuf(int fd, size_t wanted);
/* For an activity timeout of T ms: KEEPIDLE = T/2000 s, KEEPCNT 10, KEEPINTVL max(1, T/20000) s. */
int um_socket_set_keepalive(int fd, unsigned timeout_ms);
uint16_t um_socket_local_port(int fd);
struct in_addr um_socket_local_addr(int fd);
/* The address that this host uses towards `to`; INADDR_ANY: unknown (no route, no descriptor). Sends nothing. */
struct in_addr um_socket_addr_towards(struct in_addr to);

#endif
