/* Sockets: port ranges, connects, and the state every socket must have. */
#include "um_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "net/um_socket.h"

static const struct in_addr loopback = {0x0100007f};

TEST(an_exhausted_port_range_names_option_and_range)
{
    uint16_t port = 0, again = 0;
    int first = um_socket_tcp_listen_range(loopback, 0, 0, 5, false, "transport_tcp_port", &port);
    CHECK(first >= 0);
    CHECK(port != 0);
    CHECK_EQ(um_socket_tcp_listen_range(loopback, port, port, 5, false, "transport_tcp_port", &again), -1);
    CHECK_EQ(um_errnum(), UM_EOS);
    char range[64];
    snprintf(range, sizeof range, "transport_tcp_port %u..%u", port, port);
    CHECK_CONTAINS(um_errmsg(), range);
    int err = 0;
    CHECK_EQ(um_socket_tcp_listen(loopback, port, 5, false, &again, &err), -1);
    CHECK_EQ(err, EADDRINUSE);
    if (port < 65535) {
        int second =
            um_socket_tcp_listen_range(loopback, port, (uint16_t)(port + 1), 5, false, "transport_tcp_port", &again);
        CHECK(second < 0 || again == port + 1);
        close(second);
    }
    close(first);
}

TEST(the_highest_port_does_not_wrap_the_search)
{
    uint16_t port = 0;
    int a = um_socket_tcp_listen_range(loopback, 65535, 65535, 5, false, "p", &port);
    int b = um_socket_tcp_listen_range(loopback, 65535, 65535, 5, false, "p", &port);
    CHECK_EQ(b, -1);
    close(a);
}

TEST(an_address_of_another_host_cannot_be_bound_and_the_error_says_which)
{
    int err = 0;
    CHECK_EQ(um_socket_tcp_listen((struct in_addr){htonl(0xc0000201u)}, 0, 5, false, NULL, &err), -1);
    CHECK_EQ(err, EADDRNOTAVAIL);
    CHECK_CONTAINS(um_errmsg(), "192.0.2.1");
}

TEST(a_connect_is_non_blocking_and_can_start_from_an_address)
{
    uint16_t port = 0;
    int err = 0;
    int listener = um_socket_tcp_listen(loopback, 0, 5, true, &port, &err);
    CHECK(listener >= 0);
    int fd = um_socket_tcp_connect((struct in_addr){htonl(0x7f000002u)}, loopback, port);
    CHECK(fd >= 0);
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    CHECK_EQ(poll(&wait, 1, 10000), 1);
    CHECK_EQ(um_socket_local_addr(fd).s_addr, htonl(0x7f000002u));
    CHECK_EQ(um_socket_set_nodelay(fd, true), 0);
    CHECK_EQ(um_socket_set_keepalive(fd, 60000), 0);
    int idle = 0, interval = 0;
    socklen_t len = sizeof idle;
    CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &len), 0);
    CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, &len), 0);
    CHECK_EQ(idle, 30);
    CHECK_EQ(interval, 3);
    close(fd);
    close(listener);
    CHECK_EQ(um_socket_local_port(-1), 0);
    CHECK_EQ(um_socket_set_nodelay(-1, true), -1);
    CHECK_EQ(um_errnum(), UM_EOS);
}
