/* When datagrams of a source session really left: time stamps of the kernel or the
 * network card, read from the error queue of the socket and matched with the message
 * that was first in the datagram. Private to csrc/transport/udp.
 * "lock" = the session lock; [loop] as elsewhere. */
#ifndef UM_TRANSPORT_UDP_STAMPS_H
#define UM_TRANSPORT_UDP_STAMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/um_iface.h"

#define UM_UDP_STAMPS 4096u /* datagrams whose time is waited for; the oldest are forgotten */

struct um_udp_stamped {
    uint32_t id; /* of the kernel: datagrams since the option was set */
    uint32_t tidx, sqn;
    bool waiting;
};

struct um_udp_stamps {
    int fd;
    bool astray;                               /* lock: ids are not known any more */
    uint32_t next_id;                          /* lock */
    struct um_udp_stamped ring[UM_UDP_STAMPS]; /* lock */
};

struct um_udp_stamp {
    struct timespec time;
    uint32_t tidx, sqn;
};

/* Ask the kernel, and the card of the interface if it can. NULL: it cannot be had, which is logged. */
struct um_udp_stamps *um_udp_stamps_create(int fd, const struct um_iface *iface);
/* Lock. Before a datagram is given to the kernel while none waits for the socket. */
void um_udp_stamps_before(struct um_udp_stamps *stamps);
/* Lock. A datagram with these LBMC messages was given to the kernel; `payload` is empty for those without. */
void um_udp_stamps_sent(struct um_udp_stamps *stamps, const uint8_t *payload, size_t len);
/* Lock. The kernel may have counted datagrams we know nothing of: begin anew before the next one. */
void um_udp_stamps_astray(struct um_udp_stamps *stamps);
/* [loop] lock. The next time stamp of a datagram with a message. False: none is there. */
bool um_udp_stamps_next(struct um_udp_stamps *stamps, struct um_udp_stamp *out);

#endif
