/* Phase arithmetic of topic resolution. See um_tr_schedule.h. */
#include "resolver/um_tr_schedule.h"

/* A record sent this much after its phase's end still belongs to that end: ticks, not limiters, delayed it. */
#define TICK_SLACK_NS (100 * UM_NS_PER_MS)

static bool initial_enabled(const struct um_tr_timing *timing)
{
    return timing->min_initial_ns != 0 && timing->max_initial_ns != 0;
}

static uint32_t to_ms(uint64_t ns)
{
    return ns / UM_NS_PER_MS > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / UM_NS_PER_MS);
}

/* The record due next counts as sent: its gap leads to the following one and doubles. */
static void step_gap(struct um_tr_schedule *schedule, const struct um_tr_timing *timing)
{
    uint64_t doubled = 2ull * schedule->gap_ms;
    uint32_t most = to_ms(timing->max_initial_ns);
    schedule->lead_ms = schedule->gap_ms;
    schedule->gap_ms = doubled < most ? (uint32_t)doubled : most;
}

static void enter_quiescent(struct um_tr_schedule *schedule)
{
    schedule->phase = UM_TR_QUIESCENT;
    schedule->due_ns = UM_NEVER;
}

static void enter_sustain(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t start_ns,
                          uint64_t first_due_ns)
{
    if (timing->sustain_ns == 0) {
        enter_quiescent(schedule);
        return;
    }
    schedule->phase = UM_TR_SUSTAIN;
    schedule->phase_start_ns = start_ns;
    schedule->due_ns = first_due_ns;
}

static uint64_t initial_end(const struct um_tr_schedule *schedule, const struct um_tr_timing *timing)
{
    if (!initial_enabled(timing)) {
        return schedule->phase_start_ns;
    }
    return timing->initial_duration_ns == 0 ? UM_NEVER : schedule->phase_start_ns + timing->initial_duration_ns;
}

static void leave_initial(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t end_ns,
                          uint64_t now_ns)
{
    uint64_t start = now_ns > end_ns + TICK_SLACK_NS ? now_ns : end_ns;
    enter_sustain(schedule, timing, start, start + timing->sustain_ns);
}

void um_tr_schedule_start(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns)
{
    schedule->phase = UM_TR_INITIAL;
    schedule->phase_start_ns = now_ns;
    schedule->due_ns = now_ns;
    schedule->lead_ms = 0;
    schedule->gap_ms =
        to_ms(timing->min_initial_ns < timing->max_initial_ns ? timing->min_initial_ns : timing->max_initial_ns);
    if (!timing->first_at_once) {
        um_tr_schedule_sent(schedule, timing, now_ns);
    }
}

static void set_initial_due(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t due_ns,
                            uint64_t now_ns)
{
    uint64_t end = initial_end(schedule, timing);
    if (!initial_enabled(timing) || due_ns > end || now_ns >= end) {
        leave_initial(schedule, timing, end, now_ns);
        return;
    }
    schedule->due_ns = due_ns;
}

static void sustain_sent(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns)
{
    uint64_t next = schedule->due_ns + timing->sustain_ns;
    if (next + timing->sustain_ns < now_ns) {
        next = now_ns; /* limiters or a stopped process: one record of backlog, not all of them */
    }
    if (timing->sustain_duration_ns != 0 && next > schedule->phase_start_ns + timing->sustain_duration_ns) {
        enter_quiescent(schedule);
        return;
    }
    schedule->due_ns = next;
}

void um_tr_schedule_sent(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns)
{
    switch (schedule->phase) {
    case UM_TR_INITIAL:
        step_gap(schedule, timing);
        set_initial_due(schedule, timing, schedule->due_ns + schedule->lead_ms * UM_NS_PER_MS, now_ns);
        break;
    case UM_TR_SUSTAIN:
        sustain_sent(schedule, timing, now_ns);
        break;
    default:
        schedule->due_ns = UM_NEVER;
        break;
    }
}

void um_tr_schedule_answered(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns)
{
    if (schedule->phase != UM_TR_INITIAL || !initial_enabled(timing)) {
        um_tr_schedule_sustain(schedule, timing, now_ns);
        return;
    }
    /* Nearest to now: the record due next, or the one before it, which was sent lead_ms earlier? */
    uint64_t lead_ns = schedule->lead_ms * UM_NS_PER_MS;
    if (now_ns >= schedule->due_ns || schedule->due_ns - now_ns <= lead_ns / 2) {
        step_gap(schedule, timing);
    }
    set_initial_due(schedule, timing, now_ns + schedule->lead_ms * UM_NS_PER_MS, now_ns);
}

void um_tr_schedule_asked(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns)
{
    switch (schedule->phase) {
    case UM_TR_INITIAL:
        break;
    case UM_TR_SUSTAIN:
        schedule->phase_start_ns = now_ns;
        break;
    default:
        enter_sustain(schedule, timing, now_ns, now_ns);
        if (schedule->phase == UM_TR_QUIESCENT) {
            um_tr_schedule_once(schedule, now_ns);
        }
        break;
    }
}

void um_tr_schedule_sustain(struct um_tr_schedule *schedule, const struct um_tr_timing *timing, uint64_t now_ns)
{
    if (schedule->phase == UM_TR_SUSTAIN) {
        schedule->phase_start_ns = now_ns;
    } else if (schedule->phase == UM_TR_QUIESCENT) {
        enter_sustain(schedule, timing, now_ns, now_ns + timing->sustain_ns);
    } else if (!initial_enabled(timing)) {
        enter_sustain(schedule, timing, now_ns, now_ns + timing->sustain_ns);
    }
}

void um_tr_schedule_once(struct um_tr_schedule *schedule, uint64_t now_ns)
{
    schedule->due_ns = now_ns;
}
