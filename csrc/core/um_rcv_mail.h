/* Between the two halves of a source whose flow belongs to the loop of an XSP: its
 * orders and news wait here for the other loop, each kind once, so posting them
 * allocates nothing. The last order is to close, the last answer that it is done.
 * These two are posted by themselves, after all else: then no loop has anything of
 * the source any more, in its mailbox either. */
#ifndef UM_CORE_RCV_MAIL_H
#define UM_CORE_RCV_MAIL_H

#include "core/um_rcv_flow.h"

enum um_rcv_order {
    UM_RCV_ORDER_BEGIN = 1u << 0,
    UM_RCV_ORDER_AUDIENCE = 1u << 1,
    UM_RCV_ORDER_WITHDRAWN = 1u << 2, /* takes back KEEP, which takes back this one */
    UM_RCV_ORDER_KEEP = 1u << 3,
    UM_RCV_ORDER_MAKE_WAY = 1u << 4,
    UM_RCV_ORDER_CLOSE = 1u << 5 /* no order follows; answered by um_rcv_source_on_closed() */
};

enum um_rcv_news { UM_RCV_NEWS_BOS = 1u << 0, UM_RCV_NEWS_PROOF = 1u << 1, UM_RCV_NEWS_END = 1u << 2 };

struct um_rcv_mail *um_rcv_mail_create(struct um_rcv_flow *flow); /* NULL: out of memory */
void um_rcv_mail_destroy(struct um_rcv_mail *mail);               /* when it is closed, or before the first order */

/* [loop] of the context. Takes over a reference on the audience, which BEGIN and AUDIENCE need. */
void um_rcv_mail_order(struct um_rcv_mail *mail, enum um_rcv_order order, struct um_rcv_audience *audience);
/* [loop] of the flow. `why` of END. */
void um_rcv_mail_tell(struct um_rcv_mail *mail, enum um_rcv_news news, enum um_rcv_flow_end why);
const char *um_rcv_mail_failure(const struct um_rcv_mail *mail); /* why the session could not be joined, at END */

#endif
