/* Who asks a source session for repairs, and how much. A bounded table; what does not
 * fit is added up. Lock of the session. Private to csrc/transport/udp. */
#ifndef UM_TRANSPORT_UDP_NAKERS_H
#define UM_TRANSPORT_UDP_NAKERS_H

#include <stdint.h>

#include "transport/session/um_src_session.h"

#define UM_UDP_NAKERS 256u

struct um_udp_nakers {
    struct um_src_nak_count *list; /* NULL before the first NAK */
    uint32_t count;
    struct um_src_nak_count others; /* those beyond UM_UDP_NAKERS, or for want of memory; ip 0 */
};

void um_udp_nakers_note(struct um_udp_nakers *nakers, uint32_t ip, uint16_t port, uint64_t naks, uint64_t now_ns);
/* Most NAKs first, the others last; returns how many there are, fills up to max. */
int um_udp_nakers_list(const struct um_udp_nakers *nakers, struct um_src_nak_count *out, int max);
void um_udp_nakers_clear(struct um_udp_nakers *nakers);

#endif
