/* Events of the sends of a context that have no source (source_event_function): who was refused an immediate message, a
 * request or a response may go on. [loop], except where any thread may call. */
#ifndef UM_CORE_CONTEXT_EVENTS_H
#define UM_CORE_CONTEXT_EVENTS_H

#include "core/um_context.h"
#include "transport/unicast/um_unicast.h"

struct um_context_events;

/* Sends over the unicast connections of the context, each with a LBM_SRC_EVENT_WAKEUP_FLAG_* of its own. */
enum um_context_sends { UM_SENDS_UIM, UM_SENDS_REQUEST, UM_SENDS_RESPONSE, UM_SENDS_KINDS };

struct um_context_events *um_context_events_create(lbm_context_t *ctx); /* NULL + error */
/* The function is called no more; what is in its queue is purged as the queue's options say. After the last send over
 * the unicast connections, which are still there. NULL is fine. */
void um_context_events_destroy(struct um_context_events *events);
/* LBM_SRC_EVENT_WAKEUP with these LBM_SRC_EVENT_WAKEUP_FLAG_*. */
void um_context_event_wakeup(struct um_context_events *events, int flags);
/* Goes along with a send of the kind that must not wait: once there is room again after it was refused, the wakeup
 * comes. Any thread. */
struct um_unicast_waker *um_context_events_waker(struct um_context_events *events, enum um_context_sends kind);

#endif
