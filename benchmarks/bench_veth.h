/* A cable for benchmarks over UDP: role 1 moves into a network namespace of its own,
 * joined to role 0's by a veth pair. Called once by each role, first of all. */
#ifndef BENCH_VETH_H
#define BENCH_VETH_H

#define BENCH_VETH_NETWORK "10.77.0.0/24"
#define BENCH_VETH_ADDRESS(role) ((role) == 0 ? "10.77.0.1" : "10.77.0.2")
#define BENCH_VETH_DEVICE "bench0" /* on both ends */

/* Frames of up to mtu bytes; multicast is routed over the cable. Needs the rights of root in its user namespace. */
void bench_veth(int role, unsigned mtu);

#endif
