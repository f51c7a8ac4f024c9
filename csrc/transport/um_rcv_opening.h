/* The beginning of a stream whose transport still misses datagrams from before its first message: what comes is held
 * until those have come or are given up, so that a message sent to a receiver that was ready is not taken for one from
 * before its time. Called by um_rcv_session.c on the loop. */
#ifndef UM_TRANSPORT_RCV_OPENING_H
#define UM_TRANSPORT_RCV_OPENING_H

#include "transport/um_rcv_transport.h"

/* Is the stream's data to be held, this message being the first or one of them? Takes it when so. */
bool um_rcv_opening_hold(struct um_rcv_session *session, struct um_rcv_stream *stream, const struct um_lbmc_msg *msg,
                         struct um_buf *buf, uint64_t now_ns);
/* Hand on what need not be held any more. The session may end in it. */
void um_rcv_openings_check(struct um_rcv_session *session, uint64_t now_ns);
/* Hand on everything held for the stream, in order. False: the stream has left, and may not exist any more. */
bool um_rcv_opening_release(struct um_rcv_stream *stream, uint64_t now_ns);
/* Throw it away: the stream leaves. */
void um_rcv_opening_forget(struct um_rcv_stream *stream);

#endif
