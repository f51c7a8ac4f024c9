/* Monitoring records for the programs that receive them: what a record is, how it comes,
 * how it is printed. Records come on the thread of the receive controller, one at a time. */
#ifndef EX_MON_H
#define EX_MON_H

#include <lbm/lbmmon.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* What a record says of its sender; `has` is LBMMON_ATTR_* as bits. */
struct ex_mon_about {
    unsigned has;
    char application[256];
    char address[16]; /* dotted */
    lbm_uint_t ipv4;  /* the same, network order */
    lbm_ulong_t process, object, source_flag;
    lbm_uint8_t instance[8];
    lbm_uint32_t domain;
    time_t sent;
};

bool ex_mon_has(const struct ex_mon_about *about, int attribute);

struct ex_mon_record {
    int type; /* LBMMON_PACKET_TYPE_* */
    struct ex_mon_about about;
    union {
        const void *any;
        const lbm_src_transport_stats_t *source;
        const lbm_rcv_transport_stats_t *receiver;
        const lbm_event_queue_stats_t *queue;
        const lbm_context_stats_t *context;
        const lbm_rcv_topic_stats_t *topic; /* `count` of them, one for each source */
        const lbm_wildcard_rcv_stats_t *wildcard;
        const Lbmmon__UMPMonMsg *store;
        const Lbmmon__DROMonMsg *router;
        const Lbmmon__SRSMonMsg *srs;
    } stats; /* valid until the function that is given the record returns */
    size_t count;
};

typedef void (*ex_mon_on_record)(const struct ex_mon_record *record, void *clientd);

/* Command line of a receiving program. */
struct ex_mon_options {
    const char *transport, *transport_opts, *format, *format_opts; /* NULL: lbm, none, csv, none */
};

/* NULL: no module of this name. */
const lbmmon_transport_func_t *ex_mon_transport(const char *name);
const lbmmon_format_func_t *ex_mon_format(const char *name);

/* Starts receiving; ends the program with status 1 when that fails. Stop with lbmmon_rctl_destroy(). */
lbmmon_rctl_t *ex_mon_start(const struct ex_mon_options *options, ex_mon_on_record on_record, void *clientd);
_Noreturn void ex_mon_fail(const char *function);

/* The counters of a record in the order of their structure; 0: it has none, or its transport is unknown. */
size_t ex_mon_counters(const struct ex_mon_record *record, const lbm_ulong_t **counters);
/* LBM_TRANSPORT_STAT_* of a source or receiver record, -1 of others; "" where there is no source string. */
int ex_mon_transport_type(const struct ex_mon_record *record);
const char *ex_mon_source(const struct ex_mon_record *record);

/* A counter as it is shown: its label with the blanks before the colon, and its unit. */
struct ex_mon_label {
    const char *text, *unit;
};

struct ex_mon_labels {
    const char *transport; /* as shown behind "Transport: "; NULL: has none */
    const struct ex_mon_label *labels;
    size_t count;
    const unsigned char *order; /* of the counters in their structure; NULL: as they are */
};

/* NULL: records of this type or transport have no counters. */
const struct ex_mon_labels *ex_mon_labels(int type, int transport);

/* Signals that end a receiving program, blocked: for sigwait(). Before there are threads. */
sigset_t ex_mon_ends(void);

/* A text of a sender, at most `max` bytes of it, as a terminal may have it: without control characters. */
void ex_mon_put(FILE *out, const char *text, size_t max);
/* The record in words, or as one line of JSON; flushed. */
void ex_mon_print(FILE *out, const struct ex_mon_record *record);
void ex_mon_print_store(FILE *out, const Lbmmon__UMPMonMsg *message);
void ex_mon_print_router(FILE *out, const Lbmmon__DROMonMsg *message);
/* {"type":"UMSMonMsg","message":{...}}, all fields of the protobuf message, those that are zero too. */
void ex_mon_print_json(FILE *out, const struct ex_mon_record *record);

#endif
