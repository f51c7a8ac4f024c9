/* The benchmark's two sides for peer libraries: warm-up, measuring, ending are the
 * same for all; a peer only sends, polls and flushes. */
#ifndef PEER_SIDES_H
#define PEER_SIDES_H

#include "../bench_common.h"

struct peer {
    /* Both: publisher and subscriber in each role (ping-pong); otherwise role 0 publishes, role 1 subscribes. */
    void *(*open)(int role, bool both);
    void (*send)(void *side, const void *data, size_t len);
    void (*flush)(void *side);
    /* Hands what has come to on_message(data); waits up to timeout_ms for the first. */
    void (*poll)(void *side, void (*on_message)(const void *data), int timeout_ms);
};

/* To be called by side(role), after bench_veth. */
void peer_run(const struct peer *peer, int role);

#endif
