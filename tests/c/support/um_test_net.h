/* Private network for tests: moves the calling thread (and threads it starts
 * later) into a new network namespace in which only the loopback interface
 * exists, up, multicast-capable and with the multicast route. Call it first in
 * a test, before any other thread runs. UM_TEST_NET_READY: stay where we are. */
#ifndef UM_SUPPORT_TEST_NET_H
#define UM_SUPPORT_TEST_NET_H

#include <errno.h>
#include <linux/sched.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool um_test_net_lo_up(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    struct ifreq ifr;
    memset(&ifr, 0, sizeof ifr);
    strcpy(ifr.ifr_name, "lo");
    bool ok = ioctl(fd, SIOCGIFFLAGS, &ifr) == 0;
    ifr.ifr_flags |= IFF_UP | IFF_MULTICAST;
    ok = ok && ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;

    struct rtentry route;
    memset(&route, 0, sizeof route);
    struct sockaddr_in dst = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xE0000000u)};
    struct sockaddr_in mask = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xF0000000u)};
    memcpy(&route.rt_dst, &dst, sizeof dst);
    memcpy(&route.rt_genmask, &mask, sizeof mask);
    route.rt_flags = RTF_UP;
    char dev[] = "lo";
    route.rt_dev = dev;
    ok = ok && (ioctl(fd, SIOCADDRT, &route) == 0 || errno == EEXIST);
    close(fd);
    return ok;
}

/* True when the private network is ready. Idempotent; every test of a file may call it. */
static inline bool um_test_net_private(void)
{
    static int state; /* 0 not tried, 1 ready, -1 not permitted */
    if (state == 0 && getenv("UM_TEST_NET_READY") != NULL) {
        state = 1; /* whoever runs the test has made the network, perhaps one without multicast */
    }
    if (state == 0) {
        bool ok = syscall(SYS_unshare, CLONE_NEWNET) == 0 || syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNET) == 0;
        state = ok && um_test_net_lo_up() ? 1 : -1;
    }
    return state == 1;
}

#define TEST_NEEDS_NET()                                                                                               \
    do {                                                                                                               \
        if (!um_test_net_private()) {                                                                                  \
            TEST_SKIP("needs permission to make a network namespace (CAP_SYS_ADMIN)");                                 \
        }                                                                                                              \
    } while (0)

#endif
