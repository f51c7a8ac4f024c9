/* What the parts of a source session (um_src_*.c) call of each other. Lock of the
 * session unless marked [loop]. */
#ifndef UM_TRANSPORT_SESSION_SRC_PARTS_H
#define UM_TRANSPORT_SESSION_SRC_PARTS_H

#include "transport/session/um_src_batch.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A message held by an explicit batch: one ready-made LBMC message. */
struct um_held {
    struct um_list node;
    size_t len, user_len, headers;
    uint32_t sqn;
    int open_change; /* +1: first of several fragments, -1: last of them */
    uint8_t data[];
};

/* um_src_batch.c */
/* Room for one LBMC message in the batch; what does not fit behind the present contents goes out first. */
uint8_t *um_src_batch_reserve(struct um_src_session *session, uint32_t tidx, size_t len);
/* The message is complete; the batch goes out when it is full, or at once with `flush`. */
void um_src_batch_added(struct um_src_session *session, size_t user_len, bool was_empty, bool flush);
void um_src_batch_full(struct um_src_session *session);
void um_src_batch_timers_init(struct um_src_session *session);
void um_src_batch_timers_arm(struct um_src_session *session);    /* [loop] what was asked for meanwhile */
void um_src_batch_timers_cancel(struct um_src_session *session); /* [loop] */

/* um_src_wait.c */
int um_src_closing_error(void);
/* Wait until sends are not blocked, and until no other thread is inside a message of this stream. */
int um_src_wait_turn(struct um_src_session *session, struct um_src_stream *stream, bool own_message);
void um_src_wake_waiters(struct um_src_session *session);
void um_src_report_wakeups(struct um_src_session *session); /* [loop] no lock */

/* um_src_send.c */
int um_src_send_now(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send, uint16_t marks);
static inline void um_src_collect(struct um_src_session *session)
{
    session->collecting = true;
}
static inline void um_src_push(struct um_src_session *session)
{
    session->collecting = false;
    if (session->ops->push != NULL) {
        session->ops->push(session);
    }
}

/* um_src_explicit.c */
int um_src_send_explicit(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send);
/* The held messages enter the batch one by one by its normal rules. A failed allocation leaves the rest held. */
int um_src_release_held(struct um_src_session *session, struct um_src_stream *stream);
/* Out of memory to the end: what is still held never goes out. Returns the bytes given up. */
size_t um_src_drop_held(struct um_src_session *session, struct um_list *list);

/* um_src_tsni.c */
void um_src_tsni_resume(struct um_src_session *session, struct um_src_stream *stream);
void um_src_tsni_init(struct um_src_session *session);
void um_src_tsni_fini(struct um_src_session *session);                                 /* [loop] */
void um_src_tsni_add(struct um_src_session *session, struct um_src_stream *stream);    /* [loop] no lock */
void um_src_tsni_remove(struct um_src_session *session, struct um_src_stream *stream); /* [loop] no lock */
void um_src_tsni_resume_streams(struct um_src_session *session);                       /* [loop] no lock */

#endif
