/* Hot failover over several contexts: one merge of what the receivers of a topic
 * in several contexts get (its members), behind lbm_hfx_*.
 *
 * Members enter the merge on the threads of their contexts, one at a time under
 * its lock, under which nothing waits and the application is not called. What the
 * merge gives goes into a line; who finds nobody delivering from it delivers, with
 * no lock held, until it is empty, and leaves the rest to its loop after a while.
 * Who finds somebody leaves its own there, as a copy. So the application is called
 * by one thread at a time, in the order of the merge, and no context waits for the
 * callback of another one. */
#ifndef UM_CORE_HFX_H
#define UM_CORE_HFX_H

#include <stdatomic.h>

#include <lbm/lbm.h>

#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_timer.h"
#include "config/um_options.h"
#include "core/um_message.h"
#include "delivery/um_hf.h"
#include "net/um_loop.h"

#define UM_HFX_MAGIC 0x554d4858u              /* "UMHX" */
#define UM_HFX_MEMBER_MAGIC 0x554d484du       /* "UMHM" */
#define UM_HFX_HELD_BYTES_MAX (64u << 20)     /* of messages that wait for a number, with what belongs to them */
#define UM_HFX_UNCALLED_BYTES_MAX (64u << 20) /* the same of messages that wait for the application */

/* To be logged when the lock has been given back. */
struct um_hfx_report {
    bool any, width, no_room, early, line, no_memory;
    uint64_t number;
    char source[LBM_MSG_MAX_SOURCE_LEN];
};

struct lbm_hfx_t_stct {
    _Atomic uint32_t magic;   /* any thread reads, also while the object is deleted */
    unsigned fork_generation; /* fixed, as the next five */
    struct um_hfx_options opts;
    char *topic;
    lbm_rcv_cb_proc proc;
    lbm_event_queue_t *evq;
    uint64_t check_ns;   /* gaps are looked at so often; 0: only when something comes */
    atomic_int refs;     /* any thread: of the application until it is deleted, of each member until it is freed */
    struct um_lock lock; /* guards all that follows but the limits; only mailboxes of loops are taken under it */
    struct um_hf merge;
    struct um_list members;     /* lbm_hfx_rcv_t.node: what waits is delivered through these */
    lbm_hfx_rcv_t *inside;      /* whose thread is in the merge */
    uint64_t now_ns;            /* the latest of the loops' times: does not go back */
    uint64_t due_ns;            /* when the merge wants to be looked at; UM_NEVER */
    struct um_list line;        /* um_msg.event.node: for the application, each with a hold on its receiver */
    size_t line_bytes;          /* of those that are copies */
    bool delivering;            /* somebody is: */
    lbm_hfx_rcv_t *calling;     /* through this one, without the lock; NULL: not just now */
    struct um_condition called; /* with lock: a call is over, and a deletion waits for that: */
    unsigned awaited;
    uint64_t refused;    /* messages for which the line had no room, or nobody was left */
    uint64_t early_told; /* of merge.stats.given_early */
    struct um_hfx_report report;
    char heard[LBM_MSG_MAX_SOURCE_LEN];        /* the source of which something came last */
    lbm_event_queue_cancel_cb_info_t deletion; /* whom its end is told. Written before `refs` goes down */
};

struct lbm_hfx_rcv_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    lbm_hfx_t *hfx;         /* fixed, a reference */
    lbm_rcv_t *rcv;         /* fixed: the receiver inside it, which owns it */
    bool leaves_optional;   /* fixed: its option hf_optional_messages is 0 */
    struct um_list node;    /* hfx->lock: hfx->members; not linked: closed, or not open yet */
    struct um_timer timer;  /* [loop] of its context, as the next one */
    uint64_t timer_ns;
    struct um_command look; /* posted under hfx->lock while it is linked: to deliver, and to keep the timer */
};

/* Behind lbm_hfx_*; `api` names the call in error texts. Application threads; 0, or -1 + error. */
int um_hfx_create(lbm_hfx_t **hfxp, const lbm_hfx_attr_t *attr, const char *symbol, lbm_rcv_cb_proc proc,
                  lbm_event_queue_t *evq);
int um_hfx_check(const lbm_hfx_t *hfx, const char *api);
/* What the merge has counted, what waits in it now, and what was refused; `hfx` is checked. Any thread. */
void um_hfx_counts(lbm_hfx_t *hfx, struct um_hf_stats *out, uint64_t *waiting, uint64_t *refused);
int um_hfx_delete(lbm_hfx_t *hfx, const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
int um_hfx_rcv_create(lbm_hfx_rcv_t **out, lbm_hfx_t *hfx, lbm_context_t *ctx, const lbm_rcv_topic_attr_t *attr,
                      void *clientd);
int um_hfx_check_rcv(const lbm_hfx_rcv_t *member, const char *api);
int um_hfx_rcv_delete(lbm_hfx_rcv_t *member, const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);

/* For core/um_receiver.c and core/um_rcv_hf.c. A member around a receiver that is being made: NULL + error. Then, when
 * the receiver is all it will be, others may deliver through it. */
lbm_hfx_rcv_t *um_hfx_member_new(lbm_hfx_t *hfx, lbm_rcv_t *rcv);
void um_hfx_member_open(lbm_hfx_rcv_t *member);
void um_hfx_member_leave(lbm_hfx_rcv_t *member); /* [loop] its receiver is off its topic, its sources have left */
void um_hfx_member_free(lbm_hfx_rcv_t *member);  /* any thread, with its receiver */

/* um_hfx_merge.c. Around what a member does with the merge [loop]; um_hfx_leave() calls the application. */
struct um_hf *um_hfx_enter(lbm_hfx_rcv_t *member);
void um_hfx_leave(lbm_hfx_rcv_t *member);
/* Inside: a message is about to be merged. False: there is no room, it counts as missing. */
bool um_hfx_takes(lbm_hfx_rcv_t *member, const struct um_msg *msg, uint64_t number);
/* Past the merge, in its turn. `msg`: the template of the member [loop]; or another message, on any thread, whose
 * library hold is taken over. */
void um_hfx_pass(lbm_hfx_rcv_t *member, struct um_msg *msg);
/* Lock: somebody of the members looks at line and timer, on its thread. */
void um_hfx_have_looked(lbm_hfx_t *hfx);
void um_hfx_empty(lbm_hfx_t *hfx); /* nobody is a member any more: drops what waits */
extern const struct um_hf_ops um_hfx_ops;
void um_hfx_on_timer(struct um_timer *timer, uint64_t now_ns);
void um_hfx_on_look(struct um_command *command);

#endif
