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
#include "base/um_log.h"
#include "net/um_socket.h"

static const struct in_addr loopback = {0x0100007f};

static int listen_in(struct in_addr addr, uint16_t low, uint16_t high, uint16_t *port)
{
    const struct um_port_range range = {"tcp_port_low", "tcp_port_high", low, high, false, NULL};
    return um_socket_tcp_listen_range(addr, &range, 5, false, port);
}

TEST(an_exhausted_port_range_names_option_and_range)
{
    uint16_t port = 0, again = 0;
    int first = listen_in(loopback, 0, 0, &port);
    CHECK(first >= 0);
    CHECK(port != 0);
    CHECK_EQ(listen_in(loopback, port, port, &again), -1);
    CHECK_EQ(um_errnum(), UM_EOS);
    char range[64];
    snprintf(range, sizeof range, "tcp_port_low..tcp_port_high %u..%u", port, port);
    CHECK_CONTAINS(um_errmsg(), range);
    CHECK_CONTAINS(um_errmsg(), "widen");
    int err = 0;
    CHECK_EQ(um_socket_tcp_listen(loopback, port, 5, false, &again, &err), -1);
    CHECK_EQ(err, EADDRINUSE);
    if (port < 65535) {
        int second = listen_in(loopback, port, (uint16_t)(port + 1), &again);
        CHECK(second < 0 || again == port + 1);
        close(second);
    }
    close(first);
}

static int info_lines;

static int count_info(int level, const char *message, void *clientd)
{
    info_lines += level == UM_LOG_INFO && strstr(message, "tcp_port_low") != NULL;
    return 0;
}

static char last_line[512];

static int keep_last(int level, const char *message, void *clientd)
{
    snprintf(last_line, sizeof(last_line), "%d %s", level, message);
    return 0;
}

/* A descriptor that is no socket takes no size. */
TEST(a_buffer_size_that_cannot_be_set_has_another_identifier_than_one_that_is_not_granted)
{
    static const char *const ids[][2] = {{"Core-5688-3274", "5 Core-5688-3273: some_buffer 8192: cannot be set: "},
                                         {"Core-5688-3290", "5 Core-5688-3289: some_buffer 8192: cannot be set: "},
                                         {"Core-5688-3309", "5 Core-5688-3308: some_buffer 8192: cannot be set: "}};
    for (int i = 0; i < 3; i++) {
        um_log_set_proc(keep_last, NULL);
        last_line[0] = '\0';
        um_socket_set_rcvbuf(-1, 8192, UM_SIZE_SET, "some_buffer", ids[i][0]);
        CHECK_CONTAINS(last_line, ids[i][1]);
    }
    um_log_set_proc(NULL, NULL);
}

TEST(an_exhausted_default_range_gives_way_to_any_free_port_and_says_so_once)
{
    uint16_t port = 0, others[2];
    bool told = false;
    int first = listen_in(loopback, 0, 0, &port);
    const struct um_port_range range = {"tcp_port_low", "tcp_port_high", port, port, true, &told};
    info_lines = 0;
    um_log_set_proc(count_info, NULL);
    for (int i = 0; i < 2; i++) {
        int fd = um_socket_tcp_listen_range(loopback, &range, 5, false, &others[i]);
        CHECK(fd >= 0);
        CHECK(others[i] != 0 && others[i] != port);
        close(fd);
    }
    um_log_set_proc(NULL, NULL);
    CHECK_EQ(info_lines, 1);
    close(first);
}

TEST(the_highest_port_does_not_wrap_the_search)
{
    uint16_t port = 0;
    int a = listen_in(loopback, 65535, 65535, &port);
    int b = listen_in(loopback, 65535, 65535, &port);
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
