/* Recovery of one stream. See um_recovery.h. */
#include "delivery/um_recovery.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "base/um_timer.h"

#define OPENING_LOOK_NS (20 * UM_NS_PER_MS) /* the controller still waits for the transport before it begins */

void um_recovery_init(struct um_recovery *recovery, const struct um_recovery_config *config,
                      const struct um_recovery_ops *ops, void *user, struct um_dc *dc)
{
    memset(recovery, 0, sizeof *recovery);
    recovery->config = *config;
    recovery->ops = ops;
    recovery->user = user;
    recovery->dc = dc;
    recovery->armed_ns = UM_NEVER;
}

void um_recovery_fini(struct um_recovery *recovery)
{
    um_free(recovery->requests);
    recovery->requests = NULL;
    recovery->request_head = recovery->request_span = recovery->request_count = recovery->request_capacity = 0;
}

static void arm(struct um_recovery *recovery, uint64_t due_ns)
{
    if (due_ns < recovery->armed_ns) {
        recovery->armed_ns = due_ns;
        recovery->ops->set_timer(recovery->user, due_ns);
    }
}

/* ---- requests for numbers ---- */

static bool is_replay(const struct um_recovery *recovery, uint32_t sqn)
{
    return recovery->replayed && um_sqn_older(sqn, recovery->replay_end);
}

/* The first entry, open or not, that is not older: answers come in the order of the requests, so it is the first of all
 * or not far from its distance to it. */
static uint32_t lower_request(const struct um_recovery *recovery, uint32_t sqn)
{
    const struct um_recovery_request *entries = recovery->requests;
    uint32_t low = recovery->request_head, high = low + recovery->request_span;
    if (low == high || !um_sqn_newer(sqn, entries[low].sqn)) {
        return low;
    }
    if (um_sqn_newer(sqn, entries[high - 1].sqn)) {
        return high;
    }
    uint32_t distance = sqn - entries[low].sqn;
    if (distance < high - low && entries[low + distance].sqn == sqn) {
        return low + distance;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (um_sqn_older(entries[middle].sqn, sqn)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* NULL: it is not asked for. */
static struct um_recovery_request *find_request(const struct um_recovery *recovery, uint32_t sqn)
{
    if (recovery->request_count == 0) {
        return NULL;
    }
    uint32_t i = lower_request(recovery, sqn);
    struct um_recovery_request *request = &recovery->requests[i];
    bool there = i < recovery->request_head + recovery->request_span && request->sqn == sqn && request->open;
    return there ? request : NULL;
}

/* The other entries stay where they are. */
static void forget_request(struct um_recovery *recovery, struct um_recovery_request *request)
{
    request->open = false;
    recovery->request_count--;
    while (recovery->request_span > 0 && !recovery->requests[recovery->request_head].open) {
        recovery->request_head++;
        recovery->request_span--;
    }
    if (recovery->request_span == 0) {
        recovery->request_head = 0;
    }
}

static uint32_t outstanding_max(const struct um_recovery *recovery, uint32_t sqn)
{
    uint32_t max = is_replay(recovery, sqn) ? recovery->config.request_outstanding : recovery->config.otr_outstanding;
    return max == 0 || max > UM_RECOVERY_OUTSTANDING_MAX ? UM_RECOVERY_OUTSTANDING_MAX : max;
}

/* Room for one more entry at the end: that of answered ones, or twice as much. */
static bool have_room(struct um_recovery *recovery)
{
    if (recovery->request_head + recovery->request_span < recovery->request_capacity) {
        return true;
    }
    if (recovery->request_count >= recovery->request_capacity / 2) {
        uint32_t capacity = recovery->request_capacity == 0 ? 16 : recovery->request_capacity * 2;
        struct um_recovery_request *requests = um_realloc(recovery->requests, capacity * sizeof *requests);
        if (requests == NULL) {
            return false;
        }
        recovery->requests = requests;
        recovery->request_capacity = capacity;
    }
    uint32_t open = 0, end = recovery->request_head + recovery->request_span;
    for (uint32_t i = recovery->request_head; i < end; i++) {
        if (recovery->requests[i].open) {
            recovery->requests[open++] = recovery->requests[i];
        }
    }
    recovery->request_head = 0;
    recovery->request_span = open;
    return true;
}

/* In its place by its number, which is nearly always the last. NULL: no memory. */
static struct um_recovery_request *new_request(struct um_recovery *recovery, uint32_t sqn)
{
    if (!have_room(recovery)) {
        return NULL;
    }
    uint32_t i = lower_request(recovery, sqn), end = recovery->request_head + recovery->request_span;
    struct um_recovery_request *request = &recovery->requests[i];
    if (i == end || request->sqn != sqn) {
        memmove(request + 1, request, (end - i) * sizeof *request);
        recovery->request_span++;
    }
    recovery->request_count++;
    return request;
}

static bool ask(struct um_recovery *recovery, uint32_t sqn, uint64_t now_ns)
{
    struct um_recovery_request *request = new_request(recovery, sqn);
    if (request == NULL) {
        return false;
    }
    bool replay = is_replay(recovery, sqn);
    *request = (struct um_recovery_request){.sqn = sqn,
                                            .open = true,
                                            .first_ns = now_ns,
                                            .interval_ns = replay ? recovery->config.request_interval_ns
                                                                  : recovery->config.otr_interval_ns};
    request->next_ns = now_ns + request->interval_ns;
    recovery->stats.asked++;
    arm(recovery, request->next_ns);
    recovery->ops->ask(recovery->user, sqn);
    return true;
}

/* Numbers that go with the first of `missing`, which had no answer in its time: alone; or, where its source has
 * answered nothing since it was asked for, all of a burst, which would take that time for every few of its numbers. */
static uint32_t given_up_with(const struct um_recovery *recovery, const struct um_recovery_request *request,
                              const struct um_dc_range *missing)
{
    uint32_t burst = recovery->config.otr_burst;
    bool silent = recovery->answered_ns <= request->first_ns;
    return silent && burst != 0 && missing->count >= burst && !is_replay(recovery, request->sqn) ? missing->count : 1;
}

/* Its time has come: the number is here, is asked for again, or is lost. */
static void repeat(struct um_recovery *recovery, struct um_recovery_request *request, uint64_t now_ns)
{
    const struct um_recovery_config *config = &recovery->config;
    struct um_dc_range missing;
    uint32_t sqn = request->sqn;
    bool replay = is_replay(recovery, sqn);
    if (!um_dc_next_missing(recovery->dc, sqn, &missing) || missing.first != sqn) {
        forget_request(recovery, request); /* the transport was faster, or it was lost with others */
        return;
    }
    if (now_ns - request->first_ns >= (replay ? config->request_timeout_ns : config->otr_timeout_ns)) {
        uint32_t count = given_up_with(recovery, request, &missing);
        if (um_dc_abandon(recovery->dc, now_ns, sqn, count, UM_DC_LOST)) {
            recovery->stats.timed_out += count;
            forget_request(recovery, request);
            return;
        }
    }
    if (!replay) {
        request->interval_ns = request->interval_ns * 2 < config->otr_interval_max_ns ? request->interval_ns * 2
                                                                                      : config->otr_interval_max_ns;
    }
    request->next_ns = now_ns + request->interval_ns;
    recovery->stats.repeated++;
    recovery->ops->ask(recovery->user, sqn);
}

static bool is_due(const struct um_recovery *recovery, const struct um_recovery_request *request, uint64_t now_ns)
{
    return now_ns >= request->next_ns ||
           now_ns - request->first_ns >= (is_replay(recovery, request->sqn) ? recovery->config.request_timeout_ns
                                                                            : recovery->config.otr_timeout_ns);
}

static void repeat_due(struct um_recovery *recovery, uint64_t now_ns)
{
    uint32_t end = recovery->request_head + recovery->request_span; /* no entry moves meanwhile */
    for (uint32_t i = recovery->request_head; i < end; i++) {
        struct um_recovery_request *request = &recovery->requests[i];
        if (request->open && is_due(recovery, request, now_ns)) {
            repeat(recovery, request, now_ns);
        }
    }
}

/* ---- what to ask for ---- */

/* May numbers be asked for that the transport left out? Else when. */
static bool otr_begins(struct um_recovery *recovery, const struct um_dc_range *missing, uint64_t now_ns)
{
    const struct um_recovery_config *config = &recovery->config;
    if (recovery->otr) {
        return true;
    }
    uint64_t due_ns = missing->since_ns + config->otr_delay_ns;
    size_t held =
        um_dc_held(recovery->dc); /* the controller holds no more than the threshold, and leaves us the rest */
    if (now_ns < due_ns && (held == 0 || held < config->otr_entries_threshold)) {
        arm(recovery, due_ns);
        return false;
    }
    recovery->otr = true;
    bool alert = recovery->otr_times == 0 || now_ns - recovery->otr_alert_ns >= config->otr_alert_cooldown_ns;
    recovery->otr_times = alert ? 1 : recovery->otr_times + 1;
    recovery->otr_alert_ns = alert ? now_ns : recovery->otr_alert_ns;
    recovery->ops->note(recovery->user, alert ? UM_RECOVERY_OTR_ALERT : UM_RECOVERY_OTR_AGAIN, recovery->otr_times - 1,
                        now_ns);
    return true;
}

/* How many numbers from this missing one on may be asked for now. What comes beyond the oldest missing number is held
 * until that is here. */
static uint32_t room_for_requests(const struct um_recovery *recovery, uint32_t sqn)
{
    struct um_dc_range oldest;
    uint32_t max = outstanding_max(recovery, sqn), window = recovery->config.window;
    uint32_t room = recovery->request_count < max ? max - recovery->request_count : 0;
    if (window == 0 || !um_dc_waits_for_recovery(recovery->dc, &oldest)) {
        return room;
    }
    uint32_t beyond = sqn - oldest.first;
    return beyond >= window ? 0 : room < window - beyond ? room : window - beyond;
}

/* Those of a range that are replayed, or those that are not, whichever its first one is. */
static uint32_t end_of_kind(const struct um_recovery *recovery, const struct um_dc_range *missing)
{
    uint32_t end = missing->first + missing->count;
    bool both = is_replay(recovery, missing->first) && !is_replay(recovery, end - 1);
    return both ? recovery->replay_end : end;
}

/* As many as may be asked for, the oldest first. */
static void ask_more(struct um_recovery *recovery, uint64_t now_ns)
{
    struct um_dc_range missing;
    while (!recovery->paused && um_dc_next_missing(recovery->dc, recovery->cursor, &missing)) {
        uint32_t room = room_for_requests(recovery, missing.first), end = end_of_kind(recovery, &missing);
        if (room == 0 || (!is_replay(recovery, missing.first) && !otr_begins(recovery, &missing, now_ns))) {
            return;
        }
        end = end - missing.first > room ? missing.first + room : end;
        for (uint32_t sqn = missing.first; sqn != end; sqn++) {
            if (find_request(recovery, sqn) == NULL && !ask(recovery, sqn, now_ns)) {
                arm(recovery, now_ns + recovery->config.request_interval_ns); /* no memory */
                return;
            }
            recovery->cursor = sqn + 1;
        }
    }
}

static void look(struct um_recovery *recovery, uint64_t now_ns)
{
    struct um_dc_range oldest;
    recovery->answers = 0;
    ask_more(recovery, now_ns);
    bool missing = um_dc_waits_for_recovery(recovery->dc, &oldest);
    recovery->unfinished = missing && is_replay(recovery, oldest.first);
    recovery->otr = recovery->otr && missing;
    if (um_dc_opens(recovery->dc)) {
        recovery->unfinished = recovery->state == UM_RECOVERY_REPLAYING;
        arm(recovery, now_ns + OPENING_LOOK_NS);
    }
}

bool um_recovery_wanted(struct um_recovery *recovery, uint32_t first, uint32_t count, uint64_t now_ns)
{
    bool replay = recovery->state == UM_RECOVERY_REPLAYING && (first == recovery->replay_end || recovery->unfinished);
    if (!replay && !recovery->config.off_transport) {
        return false;
    }
    recovery->replayed = replay;
    if (um_sqn_older(first, recovery->cursor)) {
        recovery->cursor = first; /* nothing was asked for yet, or long ago */
    }
    if (replay && um_sqn_newer(first + count, recovery->replay_end)) {
        recovery->replay_end = first + count;
        recovery->unfinished = true;
    }
    arm(recovery, now_ns); /* the controller may not be asked now */
    return true;
}

void um_recovery_pause(struct um_recovery *recovery)
{
    recovery->paused = true;
}

void um_recovery_resume(struct um_recovery *recovery, uint64_t now_ns)
{
    if (recovery->paused) {
        recovery->paused = false;
        arm(recovery, now_ns);
    }
}

/* ---- the beginning ---- */

static void ask_info(struct um_recovery *recovery, uint64_t now_ns)
{
    uint32_t low = 0;
    bool has_low = um_dc_oldest(recovery->dc, &low);
    recovery->times++;
    recovery->ask_ns = now_ns + recovery->config.info_interval_ns;
    arm(recovery, recovery->ask_ns);
    recovery->ops->ask_info(recovery->user, has_low, low);
}

void um_recovery_start(struct um_recovery *recovery, uint64_t now_ns)
{
    if (recovery->config.late_join) {
        recovery->state = UM_RECOVERY_ASKING;
        um_dc_await_recovery(recovery->dc);
        ask_info(recovery, now_ns);
    }
}

static void skip(struct um_recovery *recovery, uint64_t now_ns)
{
    recovery->state = UM_RECOVERY_IDLE;
    recovery->ops->note(recovery->user, UM_RECOVERY_SKIPPED, recovery->times, now_ns);
    um_dc_expect(recovery->dc, now_ns, 0, 0);
}

/* Nothing was sent yet: what follows is for us, from `next` on. */
static void on_nothing(struct um_recovery *recovery, uint64_t now_ns, uint32_t next)
{
    uint32_t oldest;
    if (um_dc_oldest(recovery->dc, &oldest) && um_sqn_newer(oldest, next)) {
        recovery->replay_end = oldest;
        um_dc_expect(recovery->dc, now_ns, next, oldest - next);
        return;
    }
    um_dc_expect_next(recovery->dc, now_ns, next);
    recovery->asks_last = recovery->config.ask_last && !um_dc_oldest(recovery->dc, &oldest);
    recovery->times = 0;
    recovery->ask_ns = now_ns;
}

/* By the option, or as the application chooses: a number that is offered, or the one after the newest. */
static uint32_t beginning(struct um_recovery *recovery, uint64_t now_ns, uint32_t low, uint32_t end)
{
    const struct um_recovery_config *config = &recovery->config;
    uint32_t first = low;
    if (config->request_maximum != 0 && end - low > config->request_maximum) {
        first = end - config->request_maximum;
    }
    if (recovery->ops->begin == NULL) {
        return first;
    }
    uint32_t chosen = recovery->ops->begin(recovery->user, low, first, end - 1);
    if (chosen - low > end - low) {
        chosen = um_sqn_older(chosen, low) ? low : end;
        recovery->ops->note(recovery->user, UM_RECOVERY_BEYOND, chosen, now_ns);
    }
    return chosen;
}

/* What came on the transport meanwhile is kept, whatever is told. */
static void on_range(struct um_recovery *recovery, uint64_t now_ns, uint32_t low, uint32_t end)
{
    uint32_t first = beginning(recovery, now_ns, low, end), oldest;
    if (um_dc_oldest(recovery->dc, &oldest) && um_sqn_older(oldest, first) && end - oldest <= UM_RECOVERY_RANGE_MAX) {
        first = oldest;
    }
    if (um_dc_oldest(recovery->dc, &oldest) && um_sqn_newer(oldest, end) && oldest - low <= UM_RECOVERY_RANGE_MAX) {
        end = recovery->replay_end = oldest; /* what was sent since the answer, and overtaken, is wanted too */
    }
    recovery->cursor = first;
    recovery->ops->note(recovery->user, UM_RECOVERY_STARTED, end - first, now_ns);
    if (first == end) {
        um_dc_expect_next(recovery->dc, now_ns, end); /* what follows is for us */
    } else {
        um_dc_expect(recovery->dc, now_ns, first, end - first);
    }
}

void um_recovery_on_info(struct um_recovery *recovery, uint64_t now_ns, uint32_t low, uint32_t high)
{
    uint32_t end = high + 1;
    if (recovery->state != UM_RECOVERY_ASKING) {
        return;
    }
    if (end - low > UM_RECOVERY_RANGE_MAX) {
        recovery->ops->note(recovery->user, UM_RECOVERY_SENSELESS, end - low, now_ns);
        return;
    }
    recovery->state = UM_RECOVERY_REPLAYING;
    recovery->replay_end = end;
    recovery->replayed = true;
    recovery->cursor = low;
    recovery->unfinished = true;
    if (end == low) {
        on_nothing(recovery, now_ns, low);
    } else {
        on_range(recovery, now_ns, low, end);
    }
    look(recovery, now_ns);
    if (recovery->asks_last) {
        arm(recovery, now_ns);
    }
}

/* ---- what comes ---- */

bool um_recovery_asked(const struct um_recovery *recovery, uint32_t sqn)
{
    return find_request(recovery, sqn) != NULL;
}

/* Each answer opens the next request. With many under way they open together, when an eighth of them is answered: what
 * is asked for at once costs less. */
static bool is_time_to_look(struct um_recovery *recovery, uint32_t sqn)
{
    struct um_dc_range oldest;
    return !is_replay(recovery, sqn) || ++recovery->answers >= outstanding_max(recovery, sqn) / 8 ||
           recovery->request_count == 0 || !um_dc_waits_for_recovery(recovery->dc, &oldest);
}

bool um_recovery_on_data(struct um_recovery *recovery, uint64_t now_ns, struct um_lbmc_msg *msg, struct um_buf *buf)
{
    struct um_recovery_request *request = find_request(recovery, msg->sqn);
    uint32_t sqn = msg->sqn;
    if (request == NULL) {
        recovery->stats.unasked++;
        return false;
    }
    forget_request(recovery, request);
    recovery->stats.recovered++;
    recovery->answered_ns = now_ns;
    msg->present |= is_replay(recovery, sqn) ? UM_LBMC_LATE_JOINED : UM_LBMC_RECOVERED;
    um_dc_on_data(recovery->dc, now_ns, msg, buf);
    if (is_time_to_look(recovery, sqn)) {
        look(recovery, now_ns);
    }
    return true;
}

void um_recovery_on_last(struct um_recovery *recovery, uint64_t now_ns, uint32_t last_sqn)
{
    if (recovery->asks_last) {
        recovery->asks_last = false;
        um_dc_on_tsni(recovery->dc, now_ns, last_sqn);
    }
}

static void ask_last(struct um_recovery *recovery, uint64_t now_ns)
{
    uint32_t oldest;
    if (recovery->times >= recovery->config.last_maximum || um_dc_oldest(recovery->dc, &oldest)) {
        recovery->asks_last = false;
        return;
    }
    recovery->times++;
    recovery->ask_ns = now_ns + recovery->config.last_interval_ns;
    recovery->ops->ask_last(recovery->user);
}

void um_recovery_on_timer(struct um_recovery *recovery, uint64_t now_ns)
{
    recovery->armed_ns = UM_NEVER;
    bool asks_info = recovery->state == UM_RECOVERY_ASKING;
    if (asks_info && now_ns >= recovery->ask_ns) {
        if (recovery->times >= recovery->config.info_maximum) {
            skip(recovery, now_ns);
        } else {
            ask_info(recovery, now_ns);
        }
    }
    if (recovery->asks_last && now_ns >= recovery->ask_ns) {
        ask_last(recovery, now_ns);
    }
    repeat_due(recovery, now_ns);
    look(recovery, now_ns);
    for (uint32_t i = recovery->request_head; i < recovery->request_head + recovery->request_span; i++) {
        if (recovery->requests[i].open) {
            arm(recovery, recovery->requests[i].next_ns);
        }
    }
    if (recovery->state == UM_RECOVERY_ASKING || recovery->asks_last) {
        arm(recovery, recovery->ask_ns);
    }
}
