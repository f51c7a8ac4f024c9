/* Requirement O3: a socket buffer that the kernel clamps is read back and
 * reported once, with both numbers and the sysctl line; what is granted is silent. */
#include "um_test.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_log.h"
#include "net/um_socket.h"

static char line[2048];
static int line_count, line_level;
static int on_log(int level, const char *message, void *clientd)
{
    snprintf(line, sizeof line, "%s", message);
    line_level = level;
    line_count++;
    return 0;
}

static int udp_socket(void)
{
    int err;
    return um_socket_udp((struct in_addr){htonl(INADDR_LOOPBACK)}, 0, false, &err);
}

static int granted_by_the_kernel(int fd, int option)
{
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value / 2 : -1;
}

static void check_clamped(bool receive, enum um_size_origin origin)
{
    const size_t wanted = 1000000000;
    char option[64];
    snprintf(option, sizeof option, "o3_%s_socket_buffer_%d", receive ? "receiver" : "sender", origin);
    int fd = udp_socket();
    CHECK(fd >= 0);
    line_count = 0;
    um_log_set_proc(on_log, NULL);
    for (int i = 0; i < 3; i++) { /* many sockets, one line */
        if (receive) {
            um_socket_set_rcvbuf(fd, wanted, origin, option, "Core-5688-3274");
        } else {
            um_socket_set_sndbuf(fd, wanted, origin, option, "Core-5688-3274");
        }
    }
    um_log_set_proc(NULL, NULL);
    int granted = granted_by_the_kernel(fd, receive ? SO_RCVBUF : SO_SNDBUF);
    close(fd);
    if ((size_t)granted >= wanted) {
        TEST_SKIP("the kernel grants a gigabyte here");
    }
    char number[32];
    snprintf(number, sizeof number, "only %d bytes", granted);
    CHECK_EQ(line_count, 1);
    CHECK_EQ(line_level, origin == UM_SIZE_SET ? UM_LOG_WARNING : UM_LOG_INFO);
    CHECK_CONTAINS(line, option);
    CHECK_CONTAINS(line, "1000000000");
    CHECK_CONTAINS(line, number);
    CHECK_CONTAINS(line, receive ? "sysctl -w net.core.rmem_max=1000000000" : "sysctl -w net.core.wmem_max=1000000000");
}

TEST(o3_a_clamped_receive_buffer_is_reported_once_with_the_sysctl_line)
{
    check_clamped(true, UM_SIZE_SET);
}

TEST(o3_a_clamped_send_buffer_is_reported_once_with_the_sysctl_line)
{
    check_clamped(false, UM_SIZE_SET);
}

TEST(o3_a_clamped_default_that_nobody_has_set_is_a_matter_of_information)
{
    check_clamped(true, UM_SIZE_BY_DEFAULT);
    check_clamped(false, UM_SIZE_BY_DEFAULT);
}

TEST(o3_a_granted_buffer_is_silent_and_zero_leaves_the_default)
{
    int fd = udp_socket();
    CHECK(fd >= 0);
    int before = granted_by_the_kernel(fd, SO_RCVBUF);
    line_count = 0;
    um_log_set_proc(on_log, NULL);
    um_socket_set_rcvbuf(fd, 0, UM_SIZE_SET, "o3_zero", "Core-5688-3274");
    int after_zero = granted_by_the_kernel(fd, SO_RCVBUF);
    um_socket_set_rcvbuf(fd, 8192, UM_SIZE_SET, "o3_small", "Core-5688-3274");
    um_log_set_proc(NULL, NULL);
    CHECK_EQ(after_zero, before);
    CHECK_EQ(granted_by_the_kernel(fd, SO_RCVBUF), 8192);
    CHECK_EQ(line_count, 0);
    close(fd);
}
