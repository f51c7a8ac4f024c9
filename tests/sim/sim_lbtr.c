/* The rules of LBT-RM and LBT-RU as an observer sees them. See sim_lbtr.h. */
#include "sim_lbtr.h"

#include <stdlib.h>
#include <string.h>

#include "base/um_sqn.h"
#include "sim_net.h"

#define NAK_PACKETS_PER_SPAN 30u
#define NAK_SPAN_NS (10 * SIM_MS)

struct sim_lbtr_sent {
    uint64_t repaired_ns, confirmed_ns;
    uint32_t len, stamp; /* of the payload: its length and its first bytes */
};

struct sim_lbtr_number {
    uint64_t first_ns, last_ns, quiet_ns; /* first and last NAK; none before quiet_ns */
    bool arrived, refused;
};

/* ---- sources ---- */

void sim_lbtr_stream_init(struct sim_lbtr_stream *stream, uint32_t first, size_t capacity)
{
    *stream = (struct sim_lbtr_stream){.first = first, .next = first, .trail = first, .capacity = capacity};
    stream->sent = calloc(capacity + 1, sizeof *stream->sent);
}

void sim_lbtr_stream_free(struct sim_lbtr_stream *stream)
{
    free(stream->sent);
    stream->sent = NULL;
}

static uint32_t stamp_of(const uint8_t *payload, size_t len)
{
    return len >= 4 ? um_get32(payload) : 0;
}

static const char *see_trail(struct sim_lbtr_stream *stream, uint32_t trail)
{
    if (um_sqn_older(trail, stream->trail)) {
        return "the trail moved back";
    }
    if (um_sqn_newer(trail, stream->next)) {
        return "the trail is beyond the lead";
    }
    stream->trail = trail;
    return NULL;
}

const char *sim_lbtr_data(struct sim_lbtr_stream *stream, const struct sim_lbtr_timing *timing, uint64_t now_ns,
                          uint32_t sqn, uint32_t trail, bool retransmission, const uint8_t *payload, size_t len)
{
    uint32_t n = sqn - stream->first;
    if (len == 0) {
        return "a datagram without payload";
    }
    if (!retransmission) {
        if (sqn != stream->next || n >= stream->capacity) {
            return "an original with the wrong number";
        }
        stream->next++;
        stream->last_data_ns = now_ns;
        stream->sent[n] = (struct sim_lbtr_sent){0, 0, (uint32_t)len, stamp_of(payload, len)};
        return see_trail(stream, trail);
    }
    if (um_sqn_older(sqn, trail) || !um_sqn_older(sqn, stream->next)) {
        return "a repair of what is not in the window";
    }
    struct sim_lbtr_sent *sent = &stream->sent[n];
    if (sent->len != len || sent->stamp != stamp_of(payload, len)) {
        return "a repair that is not the original";
    }
    if (sent->repaired_ns != 0 && now_ns - sent->repaired_ns < timing->ignore_ns) {
        return "repaired again within the ignore interval";
    }
    sent->repaired_ns = now_ns;
    return see_trail(stream, trail);
}

const char *sim_lbtr_sm(struct sim_lbtr_stream *stream, const struct sim_lbtr_timing *timing, uint64_t now_ns,
                        uint32_t sm_sqn, uint32_t lead, uint32_t trail, bool syn)
{
    if (sm_sqn != stream->next_sm++) {
        return "a session message with the wrong number";
    }
    if (lead != stream->next - 1) {
        return "a session message with the wrong lead";
    }
    if (!syn && stream->last_data_ns != 0 && now_ns - stream->last_data_ns < timing->sm_min_ns) {
        return "a session message within the minimum interval after data";
    }
    return see_trail(stream, trail);
}

const char *sim_lbtr_ncf(struct sim_lbtr_stream *stream, const struct sim_lbtr_timing *timing, uint64_t now_ns,
                         uint32_t trail, uint8_t reason, const struct um_lbtr_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        uint32_t sqn = um_lbtr_list_at(list, i);
        bool gone = um_sqn_older(sqn, trail);
        if (reason >= UM_LBTR_REASONS || gone != (reason == UM_LBTR_DO_NOT_RETRY)) {
            return "an NCF with the wrong reason";
        }
        if (gone) {
            continue;
        }
        if (!um_sqn_older(sqn, stream->next)) {
            return "an NCF for what was not sent";
        }
        struct sim_lbtr_sent *sent = &stream->sent[sqn - stream->first];
        if (sent->confirmed_ns != 0 && now_ns - sent->confirmed_ns < timing->ignore_ns) {
            return "a second NCF within the ignore interval";
        }
        sent->confirmed_ns = now_ns;
    }
    return list->count == 0 ? "an empty NCF" : see_trail(stream, trail);
}

/* ---- receivers ---- */

void sim_lbtr_asked_init(struct sim_lbtr_asked *asked, size_t capacity)
{
    *asked = (struct sim_lbtr_asked){.capacity = capacity};
    asked->numbers = calloc(capacity + 1, sizeof *asked->numbers);
}

void sim_lbtr_asked_free(struct sim_lbtr_asked *asked)
{
    free(asked->numbers);
    asked->numbers = NULL;
}

static const char *ask(struct sim_lbtr_number *number, const struct sim_lbtr_timing *timing, uint64_t now_ns)
{
    if (number->arrived) {
        return "a NAK for what was delivered";
    }
    if (number->last_ns != 0 && now_ns - number->last_ns < timing->backoff_ns / 2) {
        return "a NAK before half of the back-off interval was over";
    }
    if (now_ns < number->quiet_ns) {
        return "a NAK within the suppress interval";
    }
    if (number->first_ns != 0 && now_ns - number->first_ns > timing->generation_ns + timing->slack_ns) {
        return "a NAK after the generation interval";
    }
    number->first_ns = number->first_ns != 0 ? number->first_ns : now_ns;
    number->last_ns = now_ns;
    number->refused = false;
    return NULL;
}

const char *sim_lbtr_nak(struct sim_lbtr_asked *asked, const struct sim_lbtr_stream *stream,
                         const struct sim_lbtr_timing *timing, uint64_t now_ns, const struct um_lbtr_list *list,
                         bool hostile)
{
    if (now_ns / NAK_SPAN_NS != asked->span) {
        asked->span = now_ns / NAK_SPAN_NS;
        asked->span_packets = 0;
    }
    if (++asked->span_packets > 2 * NAK_PACKETS_PER_SPAN) { /* spans of the engine begin at any time */
        return "too many NAK packets";
    }
    const char *wrong = list->count == 0 || list->count > 365 ? "a NAK that is empty or too long" : NULL;
    for (size_t i = 0; i < list->count && wrong == NULL; i++) {
        uint32_t sqn = um_lbtr_list_at(list, i);
        if (i > 0 && !um_sqn_older(um_lbtr_list_at(list, i - 1), sqn)) {
            wrong = "a NAK whose numbers do not ascend";
        } else if (um_sqn_older(sqn, stream->next) && sqn - stream->first < asked->capacity) {
            wrong = ask(&asked->numbers[sqn - stream->first], timing, now_ns);
        } else if (!hostile) {
            wrong = "a NAK for what was never sent";
        }
    }
    return wrong;
}

void sim_lbtr_arrived(struct sim_lbtr_asked *asked, const struct sim_lbtr_stream *stream, uint32_t sqn)
{
    if (sqn - stream->first < asked->capacity) {
        asked->numbers[sqn - stream->first].arrived = true;
    }
}

/* Only what was asked for is known to be missing; the first refusal since then counts. */
void sim_lbtr_refused(struct sim_lbtr_asked *asked, const struct sim_lbtr_stream *stream,
                      const struct sim_lbtr_timing *timing, uint64_t now_ns, const struct um_lbtr_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        uint32_t n = um_lbtr_list_at(list, i) - stream->first;
        if (n < asked->capacity && asked->numbers[n].last_ns != 0 && !asked->numbers[n].refused) {
            asked->numbers[n].refused = true;
            asked->numbers[n].quiet_ns = now_ns + timing->suppress_ns;
        }
    }
}

/* ---- rates, statistics, the network ---- */

const char *sim_lbtr_rated(struct sim_lbtr_rates *rates, const struct um_lbtr_limiter *limiter, uint64_t now_ns,
                           size_t len, bool retransmission)
{
    uint64_t interval = now_ns / limiter->data.interval_ns;
    if (interval != rates->interval) {
        *rates = (struct sim_lbtr_rates){.interval = interval};
    }
    rates->bytes += !retransmission || limiter->retransmissions_count ? len : 0;
    rates->rx_bytes += retransmission ? len : 0;
    bool within = rates->bytes <= limiter->data.allowance && rates->rx_bytes <= limiter->rx.allowance;
    return within ? NULL : "rate limit exceeded";
}

const char *sim_lbtr_counted(const struct um_lbtr_receiver_counters *counters, uint64_t delivered, uint64_t lost,
                             uint64_t naks, uint64_t nak_packets)
{
    uint64_t unrecovered = counters->unrecovered_txw + counters->unrecovered_tmo;
    if (counters->msgs_rcved != delivered || unrecovered != lost || counters->naks_sent != naks ||
        counters->nak_pckts_sent != nak_packets) {
        return "the statistics do not say what happened";
    }
    return counters->lost >= counters->out_of_order + unrecovered ? NULL
                                                                  : "more left the list of the missing than entered it";
}

/* As many small steps as large ones. */
static uint32_t raised(struct um_rng *rng, uint32_t lead, uint32_t spare)
{
    uint32_t most = (1u << um_rng_range(rng, 1, 20)) - 1;
    return lead + spare + (uint32_t)um_rng_range(rng, 1, most > spare ? most - spare : 1);
}

size_t sim_lbtr_forge(struct um_rng *rng, enum sim_lbtr_lie lie, uint32_t trail, uint32_t lead, uint32_t spare,
                      struct sim_lbtr_forged *out)
{
    size_t count = 1;
    uint32_t sqn = raised(rng, lead, spare);
    if (lie == SIM_LIE_MIXED) {
        for (count = 0; count < SIM_FORGED_MAX / 2;) {
            count += sim_lbtr_forge(rng, (enum sim_lbtr_lie)um_rng_range(rng, 0, SIM_LIE_MIXED - 1), trail, lead, spare,
                                    out + count);
        }
        return count;
    }
    if (lie == SIM_LIE_RUN || lie == SIM_LIE_RUN_BOTH) {
        count = um_rng_range(rng, 2, 50);
    } else if (lie == SIM_LIE_FAR_STREAM) {
        count = 16;
        sqn = lead + 2000000;
    }
    bool both = lie == SIM_LIE_BOTH || lie == SIM_LIE_RUN_BOTH;
    for (size_t i = 0; i < count; i++) {
        uint32_t n = sqn + (uint32_t)i;
        out[i] = (struct sim_lbtr_forged){n, both ? n + 1 - (uint32_t)um_rng_range(rng, 0, 1) : trail,
                                          lie == SIM_LIE_REPAIR};
    }
    return count;
}

void sim_lbtr_impair(struct sim *sim, const struct sim_impairment *net)
{
    struct sim_impairment effective = *net;
    effective.delay_max_ns = net->delay_min_ns;
    effective.delay_min_ns = net->reordering > 0 ? net->delay_min_ns / 2 : net->delay_min_ns;
    sim_impair(sim, &effective);
}

static void ignore_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
}

static void ignore_timer(void *arg, uint64_t now_ns)
{
}

int sim_lbtr_add_stranger(struct sim *sim)
{
    return sim_add_node(sim, ignore_packet, ignore_timer, NULL);
}
