/* Timers of the application (lbm_schedule_timer). Any thread, callbacks
 * included; expiry on the loop or through an event queue. */
#ifndef UM_CORE_USER_TIMERS_H
#define UM_CORE_USER_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

struct um_user_timers;

struct um_user_timers *um_user_timers_create(lbm_context_t *ctx); /* NULL + error */
void um_user_timers_destroy(struct um_user_timers *timers);       /* [loop] cancels what is left */

/* Timer id (1..INT_MAX), or -1 + error. */
int um_user_timer_schedule(struct um_user_timers *timers, lbm_timer_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                           uint64_t delay_ns, bool recurring);
/* Unknown and expired ids succeed; *clientdp (may be NULL) then gets NULL. -1 only for a bad cbinfo. */
int um_user_timer_cancel(struct um_user_timers *timers, int id, void **clientdp,
                         lbm_event_queue_cancel_cb_info_t *cbinfo);

#endif
