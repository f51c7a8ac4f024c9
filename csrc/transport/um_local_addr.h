/* Which local address a socket of the transports binds: the interface option of
 * the object, else default_interface, else any; and the interface of multicast.
 * Used at creation, on any thread. */
#ifndef UM_TRANSPORT_LOCAL_ADDR_H
#define UM_TRANSPORT_LOCAL_ADDR_H

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
