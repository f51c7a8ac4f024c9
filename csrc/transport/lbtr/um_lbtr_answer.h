/* Answers to NAKs at a source: repair now, queue, or refuse with a reason; which
 * refusals are told in NCF packets. Shared by LBT-RM and LBT-RU. Owned by a source
 * engine; its thread or lock. */
#ifndef UM_TRANSPORT_LBTR_ANSWER_H
#define UM_TRANSPORT_LBTR_ANSWER_H

#include "transport/lbtr/um_lbtr_limiter.h"
#include "transport/lbtr/um_lbtr_numbers.h"
#include "wire/um_lbtr.h"

#define UM_LBTR_REFUSALS 256u

/* Counters of a source; the public statistics are made of them. */
struct um_lbtr_source_counters {
    uint64_t msgs_sent, bytes_sent;
    uint64_t nak_pckts_rcved, naks_rcved, naks_ignored, naks_shed, naks_rx_delay_ignored;
    uint64_t rxs_sent, rx_bytes_sent;
    uint64_t ncfs_sent;       /* packets */
    uint64_t ncfs_withheld;   /* packets: more than NAKs may cause in a while */
    uint64_t packets_ignored; /* not for this session, broken, or of a type a source has no use for */
};

/* What keeps answers within bounds; one per session. */
struct um_lbtr_answer {
    uint64_t ignore_ns;  /* fixed */
    uint32_t ncf_max;    /* fixed: numbers per NCF packet */
    uint32_t ncf_header; /* fixed: its other bytes */
    uint32_t ncf_budget;
    uint64_t ncf_budget_ns; /* when it was filled */
    struct {
        uint64_t at_ns;
        uint32_t sqn;
    } refused[UM_LBTR_REFUSALS]; /* do-not-retry told a moment ago */
};

/* Outputs. `user` is the engine's: RM passes its session, RU the client. */
struct um_lbtr_answer_ops {
    void (*repair)(void *user, uint32_t sqn, struct um_lbtr_sent *sent);
    void (*ncf)(void *user, enum um_lbtr_reason reason, const uint32_t *sqns, size_t count);
    bool (*full)(void *user); /* the socket takes no more for now */
};

/* `ncf_max`: numbers in an NCF packet at most; `ncf_header`: its bytes beside them. */
void um_lbtr_answer_init(struct um_lbtr_answer *answer, uint64_t ignore_ns, uint32_t ncf_max, uint32_t ncf_header);
/* Answer the list of a NAK packet. `header_len`: bytes before the payload on the wire. */
void um_lbtr_answer_naks(struct um_lbtr_answer *answer, struct um_lbtr_numbers *numbers,
                         struct um_lbtr_limiter *limiter, struct um_lbtr_source_counters *counters, uint64_t now_ns,
                         const struct um_lbtr_list *list, uint32_t header_len, const struct um_lbtr_answer_ops *ops,
                         void *user);
/* Send the oldest repair that waits (there is one), if the limits allow it. */
bool um_lbtr_answer_drain_one(struct um_lbtr_numbers *numbers, struct um_lbtr_limiter *limiter, uint64_t now_ns,
                              uint32_t header_len, const struct um_lbtr_answer_ops *ops, void *user);

#endif
