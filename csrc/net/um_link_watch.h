/* Tells in the log when the link of an interface in use goes down and comes up:
 * reliable UDP repairs what was lost, but somebody wants to know why it had to.
 * Listens to the kernel's link messages on the loop; owned by a context. */
#ifndef UM_NET_LINK_WATCH_H
#define UM_NET_LINK_WATCH_H

#include "net/um_loop.h"

struct um_link_watch;

/* [loop] Watch the interface with this address (network order), or for INADDR_ANY every one that multicast could use;
 * loopback is never watched. Creates *watch with the first. Without the kernel's or memory's consent nothing is told:
 * no error, since nothing else depends on it. */
void um_link_watch_add(struct um_link_watch **watch, struct um_loop *loop, uint32_t addr_net);
void um_link_watch_destroy(struct um_link_watch *watch); /* [loop] NULL allowed */

#endif
