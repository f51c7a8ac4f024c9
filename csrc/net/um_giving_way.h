/* A thread that replays gives way to those that send and receive what is live: one of
 * these for each loop, used by its request port (transport/unicast), on the loop. What
 * it takes from the scheduler while a replay lasts it gives back when that is over. */
#ifndef UM_NET_GIVING_WAY_H
#define UM_NET_GIVING_WAY_H

#include "net/um_loop.h"

#define UM_GIVING_WAY_MESSAGES 256u                 /* so many messages of a replay ... */
#define UM_GIVING_WAY_WITHIN_NS UM_NS_PER_SEC       /* ... in this time make its thread give way ... */
#define UM_GIVING_WAY_QUIET_NS (UM_NS_PER_SEC / 10) /* ... until none has come for so long */
#define UM_GIVING_WAY_SLICE_NS (10 * UM_NS_PER_MS)  /* several times a scheduler's own: 0.7 to 4 ms */

struct um_giving_way {
    struct um_loop *loop;  /* fixed */
    struct um_timer timer; /* [loop] armed while it gives way */
    uint64_t begin_ns;     /* [loop] of the time in which `count` came */
    uint64_t last_ns;      /* [loop] when something of a replay came last */
    uint64_t yields_ns;    /* [loop] the core is not offered before */
    uint32_t count;        /* [loop] */
    uint64_t own_slice_ns; /* [loop] the thread's, to be given back; 0: it has it */
};

void um_giving_way_init(struct um_giving_way *way, struct um_loop *loop);
void um_giving_way_fini(struct um_giving_way *way); /* [loop] */
/* A read is done that brought so many messages of a replay, or requests for them: not 0. [loop], on its own thread if
 * it is embedded. */
void um_giving_way_after(struct um_giving_way *way, uint32_t messages, uint64_t now_ns);

#endif
