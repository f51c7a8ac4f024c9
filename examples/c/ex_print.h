/* Lines that several example programs print: rates, transport statistics,
 * events of sources and receivers, payload dumps. Rates and statistics are
 * flushed as written. May be called from callbacks on the context thread. */
#ifndef EX_PRINT_H
#define EX_PRINT_H

#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdbool.h>

/* "1.2e+05" style: value scaled by 1000 with ' ', 'K', 'M', 'G'. */
char ex_scale_rate(double *value);
/* End of a source's run; nothing for a zero interval. */
void ex_print_source_rate(double seconds, double messages, double bytes);
void ex_print_summary(double seconds, unsigned long messages, unsigned long long bytes);

void ex_print_source_stats(const lbm_src_transport_stats_t *stats);
void ex_print_receiver_stats_long(const lbm_rcv_transport_stats_t *stats);
void ex_print_receiver_stats_short(const lbm_rcv_transport_stats_t *stats);
/* Packets that the transport found missing; 0 for TCP. */
unsigned long ex_lost_packets(const lbm_rcv_transport_stats_t *stats);

void ex_dump(const char *data, size_t length);

/* Source event callback of the simple programs: connect, disconnect; wakeup clears *(atomic_int *)clientd. */
int ex_on_source_event(lbm_src_t *src, int event, void *ed, void *clientd);

enum ex_style {
    EX_STYLE_FULL,     /* lbmrcv: [topic][source][number]-RX--HFDUP--PASS--OTR-, n bytes */
    EX_STYLE_SHORT,    /* lbmrcvq, lbmwrcvq, lbmmrcv: -RX-, -OTR- */
    EX_STYLE_FAILOVER, /* lbmhfrcvq: -RX-, -OTR-, -HFDUP-, -PASS- */
    EX_STYLE_WILDCARD  /* lbmwrcv, lbmhfrcv: 64-bit numbers, -RX, -OTR, -HF64, -HF32, -HFDUP, -PASS, -HFOPT */
};

enum ex_verify_number { EX_VERIFY_HEX, EX_VERIFY_0X, EX_VERIFY_DECIMAL }; /* how -V tells which message it was */

/* What a receiving program counts and how it prints. Written by callbacks on one or more threads, read by main. */
struct ex_receive {
    enum ex_style style;
    const char *burst_word; /* "LOST BURST" or "LOSS BURST" */
    int verbose, ascii, verify, order_checks;
    enum ex_verify_number verify_number;
    unsigned long pause_ms; /* after each message */
    int announce_topics;    /* print "new topic" at each BOS instead of the session line */
    int stop_at_eos;
    unsigned long stop_after; /* messages; 0: never */
    int loss_percent;         /* stop when so many percent were lost; 0: never */
    const char *done_text;    /* printf text with the message count, printed once when stop_after is reached */

    atomic_ulong messages, bytes, repaired, off_transport, unrecovered, bursts; /* since the last interval line */
    atomic_ulong total_messages, total_unrecovered, total_bursts;
    atomic_ullong total_bytes;
    _Atomic double first, last; /* ex_now() of the first and last data message */
    atomic_ulong next_number;   /* for order_checks */
    atomic_bool number_known;
    volatile int done;
};

int ex_on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd); /* clientd: struct ex_receive */

/* The same for immediate messages without a topic: the callback of lbm_context_rcv_immediate_msgs(). */
int ex_on_immediate(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd);

/* The line of one interval, from the counters, which start again at zero. */
void ex_print_interval(struct ex_receive *receive, double seconds, const char *first_format, const char *burst_label,
                       unsigned long lost);

/* What came for a request. Written by callbacks, read by main. */
struct ex_responses {
    int verbose; /* 1: print each response; 2: with its bytes */
    atomic_int count;
    atomic_ulong bytes;
};

int ex_on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd); /* clientd: struct ex_responses */

/* Target of unicast immediate messages of this context, from its options. */
void ex_print_immediate_target(lbm_context_t *ctx);

#endif
