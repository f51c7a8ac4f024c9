/* See bench_veth.h. */
#define _GNU_SOURCE
#include "bench_veth.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench_common.h"

static void shell(const char *line)
{
    if (system(line) != 0) {
        bench_die("failed: %s", line);
    }
}

static void configure(int role, unsigned mtu)
{
    char line[512];
    snprintf(line, sizeof line,
             "ip link set lo up && ip addr add %s/24 dev " BENCH_VETH_DEVICE " && ip link set " BENCH_VETH_DEVICE
             " mtu %u multicast on up && ip route replace 224.0.0.0/4 dev " BENCH_VETH_DEVICE,
             BENCH_VETH_ADDRESS(role), mtu);
    shell(line);
}

void bench_veth(int role, unsigned mtu)
{
    char line[256];
    if (role == 1) {
        if (unshare(CLONE_NEWNET) != 0) {
            bench_die("a network namespace needs the rights of root; try unshare --user --map-root-user");
        }
        atomic_store(&bench_shared->far_pid, getpid());
    }
    bench_meet(); /* the far namespace is there */
    if (role == 0) {
        snprintf(line, sizeof line,
                 "ip link add " BENCH_VETH_DEVICE " type veth peer name " BENCH_VETH_DEVICE " netns %d",
                 atomic_load(&bench_shared->far_pid));
        shell(line);
    }
    bench_meet(); /* the cable is there */
    configure(role, mtu);
    bench_meet(); /* both ends are up */
}
