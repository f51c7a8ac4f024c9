/* Addresses that source sessions bind and show. See um_local_addr.h. */
#include "transport/session/um_local_addr.h"

#include <arpa/inet.h>

#include "base/um_mem.h"

int um_listen_addr(const lbm_ipv4_address_mask_t *option, const lbm_ipv4_address_mask_t *fallback, struct in_addr *out)
{
    const lbm_ipv4_address_mask_t *wanted = option->addr != INADDR_ANY ? option : fallback;
    struct um_iface iface;
    out->s_addr = wanted->addr;
    if (wanted->addr == INADDR_ANY) {
        return 0;
    }
    if (um_iface_match(wanted->addr, wanted->bits, &iface) == 0) {
        *out = iface.addr;
        return 0;
    }
    return wanted->bits == 32 && (ntohl(wanted->addr) >> 24) == 127 ? 0 : -1; /* every 127/8 address can be bound */
}

struct in_addr um_shown_addr(const struct um_context_options *opts)
{
    struct in_addr shown = {INADDR_ANY};
    struct um_iface *list, iface;
    const lbm_ipv4_address_mask_t *resolving = &opts->resolver_multicast_interface;
    if (resolving->addr != INADDR_ANY && um_iface_match(resolving->addr, resolving->bits, &iface) == 0) {
        return iface.addr;
    }
    int count = um_iface_list(&list);
    for (int i = 0; i < count; i++) {
        bool better = !list[i].loopback && list[i].multicast;
        if (list[i].up && (better || shown.s_addr == INADDR_ANY)) {
            shown = list[i].addr;
        }
        if (list[i].up && better) {
            break;
        }
    }
    if (count >= 0) {
        um_free(list);
    }
    return shown;
}
