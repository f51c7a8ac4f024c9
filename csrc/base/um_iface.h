/* Network interfaces: enumeration, the textual forms that options take, and the choice of a default (logged, with the
 * alternatives). Any thread. */
#ifndef UM_BASE_IFACE_H
#define UM_BASE_IFACE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct um_iface {
    char name[32];
    struct in_addr addr;
    struct in_addr netmask;
    bool up, loopback, multicast;
    unsigned index;
};

/* IPv4 interfaces; caller frees with um_free. Returns the count, -1 + um_error. */
int um_iface_list(struct um_iface **out);

/* Parse "a.b.c.d", "a.b.c.d/n", "\"eth0\"", "host", "host/n". Fills network-order address (host bits of the
 * chosen interface kept as given by the original: addr = address of the matching interface, bits = prefix as given).
 * "0.0.0.0" and "0.0.0.0/0" give 0/0 (not bound). -1 + UM_EINVAL when malformed or nothing matches. */
int um_iface_parse(const char *text, uint32_t *addr_net, int *bits);

/* First interface whose address matches addr/bits; INADDR_ANY gives any. 0, or -1 + UM_EINVAL. */
int um_iface_match(uint32_t addr_net, int bits, struct um_iface *out);

/* First interface that is up, multicast-capable and not loopback; else loopback with one warning. Logs the
 * choice, the reason and the alternatives once per process and role. */
int um_iface_default_multicast(const char *option_name, struct um_iface *out);

#endif
