/* When the next record of one topic is due: the initial, sustaining and
 * quiescent phases of advertisements, queries and wildcard queries.
 * Pure arithmetic on the caller's clock; called by the engine, one thread. */
#ifndef UM_RESOLVER_TR_SCHEDULE_H
#define UM_RESOLVER_TR_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_timer.h"

enum um_tr_phase { UM_TR_INITIAL, UM_TR_SUSTAIN, UM_TR_QUIESCENT };

/* Shared by all topics with equal options. Intervals already raised to their tick; 0 = phase disabled. */
struct um_tr_timing {
    uint64_t min_initial_ns;
    uint64_t max_initial_ns;
    uint64_t initial_duration_ns; /* 0: never ends */
    uint64_t sustain_ns;
    uint64_t sustain_duration_ns; /* 0: never ends */
    bool first_at_once;           /* a record at the start of the schedule */
};

struct um_tr_schedule {
    uint64_t due_ns; /* UM_NEVER: nothing scheduled */
    uint64_t phase_start_ns;
    uint32_t lead_ms; /* initial phase: gap before the record due next */
    uint32_t gap_ms;  /* initial phase: gap after it */
    enum um_tr_phase phase;
    uint32_t word; /* the owner's: there is room for it anyhow */
};

void um_tr_schedule_start(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns);
/* The record due was sent (or deliberately skipped) at now: what comes next. */
void um_tr_schedule_sent(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns);
/* A query was answered at once: the schedule continues from that answer. */
void um_tr_schedule_answered(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns);
/* A query came that is to be answered by the schedule. */
void um_tr_schedule_asked(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns);
/* (Re-)enter the sustaining phase with a fresh duration; quiescent stays quiescent where sustaining is disabled. */
void um_tr_schedule_sustain(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns);
/* One record now, the phase unchanged. Only for quiescent schedules. */
void um_tr_schedule_once(struct um_tr_schedule *schedule, uint64_t now_ns);

#endif
