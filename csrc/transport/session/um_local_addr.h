/* Which local address a socket of the transports binds: the interface option of
 * the object, else default_interface, else any; and the interface of multicast.
 * Used at creation, on any thread. */
#ifndef UM_TRANSPORT_SESSION_LOCAL_ADDR_H
#define UM_TRANSPORT_SESSION_LOCAL_ADDR_H

#include <lbm/lbm.h>
#include <netinet/in.h>

#include "base/um_iface.h"
#include "config/um_options.h"

/* 0, or -1 + UM_EINVAL when no interface of this host matches. */
static inline int um_local_addr(const lbm_ipv4_address_mask_t *option, const lbm_ipv4_address_mask_t *fallback,
                                struct in_addr *out)
{
    const lbm_ipv4_address_mask_t *chosen = option->addr != 0 ? option : fallback;
    struct um_iface iface;
    out->s_addr = INADDR_ANY;
    if (chosen->addr == 0) {
        return 0;
    }
    if (um_iface_match(chosen->addr, chosen->bits, &iface) != 0) {
        return -1;
    }
    *out = iface.addr;
    return 0;
}

/* An address as the value of an interface option: exactly it, or none. */
static inline lbm_ipv4_address_mask_t um_interface_value(struct in_addr addr)
{
    return (lbm_ipv4_address_mask_t){.addr = addr.s_addr, .bits = addr.s_addr != INADDR_ANY ? 32 : 0};
}

/* Puts in place of an interface option the address that um_local_addr() would bind; an interface that has gone away,
 * from which nothing can be joined, stays. */
static inline void um_local_addr_in_force(lbm_ipv4_address_mask_t *option, const lbm_ipv4_address_mask_t *fallback)
{
    struct in_addr addr;
    if (um_local_addr(option, fallback, &addr) == 0) {
        *option = um_interface_value(addr);
    }
}

/* The interface on which groups are joined and sent to. 0, or -1 + UM_EINVAL when none of this host matches. */
static inline int um_multicast_iface(const struct um_context_options *opts, struct um_iface *out)
{
    const lbm_ipv4_address_mask_t *own = &opts->resolver_multicast_interface;
    if (own->addr == 0) {
        own = &opts->default_interface;
    }
    return own->addr != 0 ? um_iface_match(own->addr, own->bits, out)
                          : um_iface_default_multicast("resolver_multicast_interface", out);
}

/* Address a source session listens on: that of the interface the option names, else of `fallback`, else any; all of
 * 127/8 can be bound. 0, or -1 + UM_EINVAL. */
int um_listen_addr(const lbm_ipv4_address_mask_t *option, const lbm_ipv4_address_mask_t *fallback, struct in_addr *out);
/* The address under which receivers most likely know a session that listens on all: that of topic resolution. */
struct in_addr um_shown_addr(const struct um_context_options *opts);

#endif
