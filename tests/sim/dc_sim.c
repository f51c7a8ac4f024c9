/* Delivery controller over a channel that loses, repairs, repeats, delays and
 * reorders under a seed (2000; see sim_net.h). Invariants: nothing twice, nothing out of order in
 * ordered mode, every message delivered intact or reported lost, memory bounded. Half of the sources
 * end at once, with gaps open and messages half received. */
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_sqn.h"
#include "base/um_timer.h"
#include "delivery/um_dc.h"
#include "sim_net.h"
#include "um_test.h"

#define MS UM_NS_PER_MS
#define MESSAGES_MAX 160
#define PACKETS_MAX 1600 /* fragments of all messages */

struct message {
    uint32_t first_sqn, fragments, len;
    unsigned delivered; /* whole deliveries */
    bool reported;      /* a loss or burst event names one of its numbers */
    bool skipped;       /* recovery has abandoned one of them in silence */
};

struct packet {
    struct um_lbmc_msg msg;
    struct um_buf *buf;
    unsigned delivered; /* mode 0 */
    bool reported, skipped;
    unsigned asked; /* of recovery: how often */
    uint64_t asked_at;
};

struct arrival {
    uint64_t at;
    uint32_t order; /* ties arrive in order of making */
    int packet;     /* -1: a TSNI */
    uint32_t tsni;
};

struct sim {
    uint64_t seed;
    struct um_rng rng;
    struct um_dc_config config;
    struct um_dc *dc;
    uint64_t timer_due;
    uint32_t base; /* sqn of the first fragment */
    struct message messages[MESSAGES_MAX];
    int message_count;
    struct packet packets[PACKETS_MAX];
    int packet_count;
    struct arrival arrivals[PACKETS_MAX * 4];
    int arrival_count;
    uint64_t now, repairs_until; /* the transport, what was sent before the first arrival */
    bool abrupt;                 /* the source ends without a last word */
    uint32_t known;              /* numbers from base on that something told of */
    bool any_event;
    uint32_t newest_event; /* ordered mode: events never go back */
    const char *broken;
    uint32_t broken_sqn;
};

static void broken(struct sim *sim, const char *what, uint32_t sqn)
{
    if (sim->broken == NULL) {
        sim->broken = what;
        sim->broken_sqn = sqn;
    }
}

static uint8_t payload_byte(uint32_t first_sqn, uint32_t index)
{
    return (uint8_t)(first_sqn * 31u + index * 7u + (index >> 8));
}

static struct message *message_of(struct sim *sim, uint32_t sqn)
{
    for (int i = 0; i < sim->message_count; i++) {
        struct message *m = &sim->messages[i];
        if (sqn - m->first_sqn < m->fragments) {
            return m;
        }
    }
    return NULL;
}

static void event_at(struct sim *sim, uint32_t first, uint32_t last)
{
    if (sim->config.ordered_delivery == 1 && sim->any_event && !um_sqn_newer(first, sim->newest_event)) {
        broken(sim, "event out of order", first);
    }
    sim->any_event = true;
    sim->newest_event = last;
}

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    (void)now_ns;
    struct sim *sim = user;
    event_at(sim, d->first_sqn, d->sqn);
    struct message *m = message_of(sim, d->sqn);
    if (m == NULL || m->first_sqn != d->first_sqn) {
        broken(sim, "delivery of a message never sent", d->sqn);
        return;
    }
    uint32_t offset = 0;
    if (sim->config.ordered_delivery == 0) {
        struct packet *p = &sim->packets[d->sqn - sim->base];
        if (p->delivered++ != 0) {
            broken(sim, "fragment delivered twice", d->sqn);
        }
        offset = p->msg.frag.offset;
        if (d->len != p->msg.payload.len || d->fragment != (m->fragments > 1)) {
            broken(sim, "fragment of the wrong shape", d->sqn);
        }
    } else {
        if (m->delivered++ != 0) {
            broken(sim, "message delivered twice", d->sqn);
        }
        if (m->reported) {
            broken(sim, "message delivered after it was reported lost", d->sqn);
        }
        if (d->len != m->len || d->sqn != m->first_sqn + m->fragments - 1) {
            broken(sim, "message of the wrong shape", d->sqn);
        }
    }
    for (uint32_t i = 0; i < d->len; i++) {
        if (d->data[i] != payload_byte(d->first_sqn, offset + i)) {
            broken(sim, "payload damaged", d->sqn);
            break;
        }
    }
}

static void mark_lost(struct sim *sim, uint32_t sqn)
{
    uint32_t index = sqn - sim->base;
    if (index >= (uint32_t)sim->packet_count) {
        broken(sim, "loss of a number never sent", sqn);
        return;
    }
    struct packet *p = &sim->packets[index];
    if (sim->config.ordered_delivery == 0 && p->delivered != 0) {
        broken(sim, "delivered and then reported lost", sqn);
    }
    p->reported = true;
    struct message *m = message_of(sim, sqn);
    if (sim->config.ordered_delivery != 0 && m->delivered != 0) {
        broken(sim, "delivered and then reported lost", sqn);
    }
    m->reported = true;
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    (void)now_ns;
    event_at(user, sqn, sqn);
    mark_lost(user, sqn);
}

static void on_burst(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)now_ns;
    struct sim *sim = user;
    event_at(sim, first, first + count - 1);
    for (uint32_t i = 0; i < count; i++) {
        mark_lost(sim, first + i);
    }
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    ((struct sim *)user)->timer_due = due_ns;
}

static bool chance(struct sim *sim, unsigned percent)
{
    return um_rng_range(&sim->rng, 1, 100) <= percent;
}

static void choose_config(struct sim *sim)
{
    static const int modes[] = {1, 1, -1, 0};
    static const uint32_t bursts[] = {2, 5, 30, 1024};
    static const uint32_t limits[] = {0, 5, 40, 200000};
    static const uint64_t timeouts[] = {0, 20, 200, 10000};
    static const uint64_t checks[] = {0, 7, 100};
    sim->config.ordered_delivery = modes[um_rng_range(&sim->rng, 0, 3)];
    sim->config.maximum_burst_loss = bursts[um_rng_range(&sim->rng, 0, 3)];
    sim->config.map_entries_max = limits[um_rng_range(&sim->rng, 0, 3)];
    sim->config.gap_timeout_ns = timeouts[um_rng_range(&sim->rng, 0, 3)] * MS;
    sim->config.loss_check_interval_ns = checks[um_rng_range(&sim->rng, 0, 2)] * MS;
    sim->config.reassembly_size_max = chance(sim, 20) ? 3000 : 1u << 20;
    /* a third of the seeds begin so that the numbers wrap within the run */
    sim->abrupt = chance(sim, 50);
    sim->base = chance(sim, 33) ? 0u - (uint32_t)um_rng_range(&sim->rng, 0, 300) : um_rng_u32(&sim->rng);
}

static void make_message(struct sim *sim, uint32_t fragment_size)
{
    struct message *m = &sim->messages[sim->message_count];
    m->len = (uint32_t)um_rng_range(&sim->rng, 0, chance(sim, 30) ? fragment_size * 12 : fragment_size);
    m->first_sqn = sim->base + (uint32_t)sim->packet_count;
    m->fragments = m->len <= fragment_size ? 1 : (m->len + fragment_size - 1) / fragment_size;
    if (sim->packet_count + (int)m->fragments > PACKETS_MAX) {
        return;
    }
    sim->message_count++;
    for (uint32_t k = 0; k < m->fragments; k++) {
        struct packet *p = &sim->packets[sim->packet_count];
        uint32_t offset = k * fragment_size;
        uint32_t size = m->len - offset < fragment_size ? m->len - offset : fragment_size;
        p->buf = um_buf_alloc(size + 1);
        for (uint32_t i = 0; i < size; i++) {
            p->buf->data[i] = payload_byte(m->first_sqn, offset + i);
        }
        p->msg.sqn = sim->base + (uint32_t)sim->packet_count++;
        p->msg.payload = (struct um_slice){p->buf->data, size};
        if (m->fragments > 1) {
            p->msg.present = UM_LBMC_HAS_FRAG;
            p->msg.frag.first_sqn = m->first_sqn;
            p->msg.frag.offset = offset;
            p->msg.frag.len = m->len;
        }
    }
}

static void arrive(struct sim *sim, uint64_t at, int packet, uint32_t tsni)
{
    struct arrival *a = &sim->arrivals[sim->arrival_count];
    *a = (struct arrival){at, (uint32_t)sim->arrival_count, packet, tsni};
    sim->arrival_count++;
}

static int by_time(const void *left, const void *right)
{
    const struct arrival *a = left, *b = right;
    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    return a->order < b->order ? -1 : 1;
}

/* Decide the fate of every packet beforehand, then sort by arrival. Returns the time of the last sending. */
static uint64_t schedule(struct sim *sim, bool clean_start)
{
    unsigned loss = (unsigned)um_rng_range(&sim->rng, 0, 30);
    unsigned repair = (unsigned)um_rng_range(&sim->rng, 0, 100);
    unsigned repeat = (unsigned)um_rng_range(&sim->rng, 0, 20);
    unsigned delay = chance(sim, 50) ? (unsigned)um_rng_range(&sim->rng, 0, 60) : 0;
    uint64_t now = MS;
    for (int i = 0; i < sim->packet_count; i++) {
        now += um_rng_range(&sim->rng, 0, 5) * MS;
        uint64_t at = now + um_rng_range(&sim->rng, 0, delay) * MS;
        bool certain = clean_start && i < (int)sim->messages[0].fragments;
        if (certain) {
            arrive(sim, now, i, 0);
            now += 100 * MS;
        } else if (!chance(sim, loss)) {
            arrive(sim, at, i, 0);
        } else if (chance(sim, repair)) {
            arrive(sim, at + um_rng_range(&sim->rng, 1, 300) * MS, i, 0);
        }
        if (!certain && chance(sim, repeat)) {
            arrive(sim, at + um_rng_range(&sim->rng, 0, 400) * MS, i, 0);
        }
        if (!certain && chance(sim, 3)) { /* the last number sent, or one before it, late or in time */
            uint32_t back = (uint32_t)um_rng_range(&sim->rng, 0, i < 2 ? i : 2);
            arrive(sim, now + um_rng_range(&sim->rng, 0, 50) * MS, -1, sim->packets[i].msg.sqn - back);
        }
    }
    qsort(sim->arrivals, (size_t)sim->arrival_count, sizeof sim->arrivals[0], by_time);
    return now;
}

static void run_timers(struct sim *sim, uint64_t until)
{
    while (sim->timer_due <= until) {
        uint64_t now = sim->timer_due;
        sim->timer_due = UM_NEVER;
        um_dc_on_timer(sim->dc, now);
    }
}

static void check_bounds(struct sim *sim)
{
    if (sim->config.map_entries_max != 0 && um_dc_held(sim->dc) > sim->config.map_entries_max) {
        broken(sim, "order map over its limit", 0);
    }
    if (um_dc_reassembly_bytes(sim->dc) > 64 * sim->config.reassembly_size_max) {
        broken(sim, "reassembly over its limit", 0);
    }
}

static void know(struct sim *sim, uint32_t sqn)
{
    uint32_t count = sqn - sim->base + 1;
    sim->known = count > sim->known ? count : sim->known;
}

static void play(struct sim *sim, uint64_t last_sent)
{
    uint64_t now = 0;
    for (int i = 0; i < sim->arrival_count; i++) {
        struct arrival *a = &sim->arrivals[i];
        sim->now = now = a->at;
        run_timers(sim, now);
        if (a->packet < 0) {
            um_dc_on_tsni(sim->dc, now, a->tsni);
            know(sim, a->tsni);
        } else {
            know(sim, sim->packets[a->packet].msg.sqn);
            um_dc_on_data(sim->dc, now, &sim->packets[a->packet].msg, sim->packets[a->packet].buf);
        }
        um_dc_on_progress(sim->dc, now);
        check_bounds(sim);
    }
    sim->now = sim->repairs_until > now ? sim->repairs_until : now;
    um_dc_on_progress(sim->dc, now);
    if (sim->abrupt) {
        um_dc_end(sim->dc, now);
        um_dc_finish(sim->dc, now);
        return;
    }
    know(sim, sim->base + (uint32_t)sim->packet_count - 1);
    /* the idle source tells its last number until every gap is settled */
    now = now > last_sent ? now : last_sent;
    for (int i = 0; i < 3; i++) {
        now += 20000 * MS;
        run_timers(sim, now);
        um_dc_on_tsni(sim->dc, now, sim->base + (uint32_t)sim->packet_count - 1);
    }
    run_timers(sim, now + 60000 * MS);
}

static void check_complete(struct sim *sim)
{
    if (um_dc_held(sim->dc) != 0) {
        broken(sim, "messages still held at the end", 0);
    }
    if (sim->abrupt && um_dc_stats(sim->dc).discards[UM_DC_UNFINISHED] > um_dc_stats(sim->dc).lost) {
        broken(sim, "discarded at the end without a loss", 0);
    }
    for (int i = 0; i < sim->message_count; i++) {
        struct message *m = &sim->messages[i];
        if (m->first_sqn - sim->base >= sim->known) {
            break; /* nobody here knows that it was sent */
        }
        if (sim->config.ordered_delivery != 0) {
            if (m->delivered == 0 && !m->reported) {
                broken(sim, "message neither delivered nor reported", m->first_sqn);
            }
            continue;
        }
        for (uint32_t k = 0; k < m->fragments && m->first_sqn + k - sim->base < sim->known; k++) {
            struct packet *p = &sim->packets[m->first_sqn + k - sim->base];
            if (p->delivered == 0 && !p->reported) {
                broken(sim, "fragment neither delivered nor reported", m->first_sqn + k);
            }
        }
    }
}

static uint32_t on_position(void *user)
{
    return (uint32_t)(((struct sim *)user)->now / MS);
}

static bool on_complete_before(void *user, uint32_t position)
{
    const struct sim *sim = user;
    return sim->now >= sim->repairs_until || position > sim->repairs_until / MS;
}

static const struct um_dc_ops OPS = {.position = on_position,
                                     .complete_before = on_complete_before,

                                     .deliver = on_deliver,
                                     .loss = on_loss,
                                     .burst_loss = on_burst,
                                     .set_timer = on_set_timer};

static bool run_seed(uint64_t seed)
{
    static struct sim sim;
    memset(&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.timer_due = UM_NEVER;
    um_rng_seed(&sim.rng, seed);
    choose_config(&sim);
    uint32_t fragment_size = (uint32_t)um_rng_range(&sim.rng, 10, 400);
    int count = (int)um_rng_range(&sim.rng, 1, MESSAGES_MAX);
    for (int i = 0; i < count; i++) {
        make_message(&sim, fragment_size);
    }
    /* without a clean start leading loss is silent: then only order and integrity are checked */
    bool clean_start = chance(&sim, 70) && sim.messages[0].len <= sim.config.reassembly_size_max;
    uint64_t last_sent = schedule(&sim, clean_start);
    sim.repairs_until = chance(&sim, 50) ? um_rng_range(&sim.rng, 0, 1000) * MS : 0;
    sim.dc = um_dc_create(&sim.config, &OPS, &sim);
    play(&sim, last_sent);
    if (clean_start) {
        check_complete(&sim);
    }
    um_dc_destroy(sim.dc);
    for (int i = 0; i < sim.packet_count; i++) {
        if (atomic_load(&sim.packets[i].buf->refs) != 1) {
            broken(&sim, "buffer reference leaked", sim.packets[i].msg.sqn);
        }
        um_buf_unref(sim.packets[i].buf);
    }
    if (sim.broken != NULL) {
        fprintf(stderr, "UM_SIM_SEED=%llu: %s (number %u; mode %d, burst %u, limit %u, timeout %llu ms)\n",
                (unsigned long long)seed, sim.broken, sim.broken_sqn, sim.config.ordered_delivery,
                sim.config.maximum_burst_loss, sim.config.map_entries_max,
                (unsigned long long)(sim.config.gap_timeout_ns / MS));
    }
    return sim.broken == NULL;
}

TEST(f38_every_message_is_delivered_once_and_in_order_or_reported_lost_under_all_seeds)
{
    int failures = 0;
    for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(2000) && failures < 5; seed++) {
        failures += !run_seed(seed);
    }
    CHECK_EQ(failures, 0);
}

/* ---- a late joiner ---- */

#define TICK (10 * MS)
#define OUTSTANDING 10
#define ANSWERS_MAX (PACKETS_MAX * 8)

enum recovery { ANSWERS, REFUSES, DIES }; /* refuses: abandons what it was asked for often */

struct answer {
    uint64_t at;
    int packet; /* -1: done */
};

/* Joins a stream that has been sent from `base` on; recovery brings what is older and, with `otr`, every gap. */
struct late {
    struct sim sim;
    int live_from; /* packet */
    int low, high; /* packets that the source still has when it is asked */
    uint64_t told_at;
    bool told, refused, otr;
    enum recovery kind;
    uint64_t dies_at;
    uint32_t heard; /* live packets: the first */
    struct answer answers[ANSWERS_MAX];
    int answer_count;
};

static bool on_wanted(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)count, (void)now_ns;
    struct late *late = user;
    return late->otr || first - late->sim.base < late->heard;
}

static const struct um_dc_ops LATE_OPS = {.deliver = on_deliver,
                                          .loss = on_loss,
                                          .burst_loss = on_burst,
                                          .set_timer = on_set_timer,
                                          .recovery_wanted = on_wanted};

static void answer(struct late *late, uint64_t at, int packet)
{
    if (late->answer_count < ANSWERS_MAX) {
        late->answers[late->answer_count++] = (struct answer){at, packet};
    }
}

static void bring(struct late *late, uint64_t now)
{
    struct sim *sim = &late->sim;
    for (int i = 0; i < late->answer_count; i++) {
        struct answer *a = &late->answers[i];
        if (a->packet >= 0 && a->at <= now) {
            struct um_lbmc_msg msg = sim->packets[a->packet].msg;
            msg.present |= UM_LBMC_LATE_JOINED;
            um_dc_on_data(sim->dc, now, &msg, sim->packets[a->packet].buf);
            check_bounds(sim);
            a->packet = -1;
        }
    }
}

static void refuse_packet(struct late *late, uint64_t now, struct packet *p)
{
    bool lost = chance(&late->sim, 50);
    if (!lost) {
        p->skipped = true;
        message_of(&late->sim, p->msg.sqn)->skipped = true;
    }
    if (!um_dc_abandon(late->sim.dc, now, p->msg.sqn, 1, lost ? UM_DC_LOST : UM_DC_SKIPPED)) {
        broken(&late->sim, "not abandoned", p->msg.sqn);
    }
}

/* The oldest first, a few at a time, again after a while. */
static void ask(struct late *late, uint64_t now)
{
    struct sim *sim = &late->sim;
    struct um_dc_range range;
    uint32_t from = um_dc_due(sim->dc);
    for (int open = 0; open < OUTSTANDING && um_dc_next_missing(sim->dc, from, &range); open++) {
        from = range.first + 1;
        if (range.first - sim->base >= (uint32_t)sim->packet_count) {
            broken(sim, "recovery owns what was never sent", range.first);
            return;
        }
        struct packet *p = &sim->packets[range.first - sim->base];
        if (p->asked != 0 && now - p->asked_at < 200 * MS) {
            continue;
        }
        if (p->asked >= 5 && late->kind == REFUSES) {
            refuse_packet(late, now, p);
            continue;
        }
        p->asked++;
        p->asked_at = now;
        if (late->kind != REFUSES || chance(sim, 70)) {
            int packet = (int)(range.first - sim->base);
            answer(late, now + um_rng_range(&sim->rng, 0, 300) * MS, packet);
            if (chance(sim, 10)) {
                answer(late, now + um_rng_range(&sim->rng, 0, 300) * MS, packet);
            }
        }
    }
}

/* What the source said of itself; packets since may have been sent and lost before the first one came. */
static void tell(struct late *late, uint64_t now)
{
    late->told = true;
    late->refused =
        !um_dc_expect(late->sim.dc, now, late->sim.base + (uint32_t)late->low, (uint32_t)(late->high - late->low + 1));
}

static void step(struct late *late, uint64_t now, int *next)
{
    struct sim *sim = &late->sim;
    run_timers(sim, now);
    for (; *next < sim->arrival_count && sim->arrivals[*next].at <= now; (*next)++) {
        struct arrival *a = &sim->arrivals[*next];
        if (a->packet >= 0 && a->packet < late->live_from) {
            continue; /* from before the join */
        }
        if (a->packet < 0) {
            if (a->tsni - sim->base >= (uint32_t)late->live_from) {
                um_dc_on_tsni(sim->dc, now, a->tsni);
            }
            continue;
        }
        late->heard = late->heard == 0 ? (uint32_t)a->packet + 1 : late->heard;
        um_dc_on_data(sim->dc, now, &sim->packets[a->packet].msg, sim->packets[a->packet].buf);
        check_bounds(sim);
    }
    if (!late->told && now >= late->told_at) {
        tell(late, now);
    }
    bring(late, now);
    if (late->told && (late->kind != DIES || now < late->dies_at)) {
        ask(late, now);
    }
}

static void check_late(struct late *late)
{
    struct sim *sim = &late->sim;
    if (um_dc_held(sim->dc) != 0) {
        broken(sim, "messages still held at the end", 0);
    }
    for (int i = 0; i < sim->message_count && !late->refused; i++) {
        struct message *m = &sim->messages[i];
        if (m->first_sqn - sim->base < (uint32_t)late->low) {
            continue;
        }
        if (sim->config.ordered_delivery != 0 && m->delivered == 0 && !m->reported && !m->skipped) {
            broken(sim, "message neither delivered nor reported nor skipped", m->first_sqn);
        }
        for (uint32_t k = 0; sim->config.ordered_delivery == 0 && k < m->fragments; k++) {
            struct packet *p = &sim->packets[m->first_sqn + k - sim->base];
            if (p->delivered == 0 && !p->reported && !p->skipped) {
                broken(sim, "fragment neither delivered nor reported nor skipped", p->msg.sqn);
            }
        }
    }
}

static void choose_late(struct late *late)
{
    static const uint32_t proximities[] = {0, 3, 40, 5000};
    static const uint32_t entries[] = {0, 0, 4, 100};
    struct sim *sim = &late->sim;
    sim->config.reassembly_size_max = 1u << 20;
    sim->config.recovery_timeout_ns = 3000 * MS;
    sim->config.caching_proximity = proximities[um_rng_range(&sim->rng, 0, 3)];
    sim->config.recovery_entries_max = entries[um_rng_range(&sim->rng, 0, 3)];
    late->otr = chance(sim, 50);
    late->kind = (enum recovery)um_rng_range(&sim->rng, 0, 2);
    late->live_from = (int)um_rng_range(&sim->rng, 1, (uint64_t)sim->packet_count - 1);
    late->low = (int)um_rng_range(&sim->rng, 0, (uint64_t)late->live_from - 1);
    late->high = (int)um_rng_range(&sim->rng, (uint64_t)late->low, (uint64_t)sim->packet_count - 1);
    if (sim->config.ordered_delivery != 1 && late->high < late->live_from - 1) {
        late->high = late->live_from - 1; /* else a live message decides what is older */
    }
}

static bool run_late(uint64_t seed)
{
    static struct late late;
    struct sim *sim = &late.sim;
    memset(&late, 0, sizeof late);
    sim->timer_due = UM_NEVER;
    um_rng_seed(&sim->rng, seed);
    choose_config(sim);
    uint32_t fragment_size = (uint32_t)um_rng_range(&sim->rng, 10, 400);
    int count = (int)um_rng_range(&sim->rng, 3, MESSAGES_MAX);
    for (int i = 0; i < count; i++) {
        make_message(sim, fragment_size);
    }
    choose_late(&late);
    uint64_t last_sent = schedule(sim, false);
    uint64_t joined = 0, now = 0;
    for (int i = 0; i < sim->arrival_count && joined == 0; i++) {
        joined = sim->arrivals[i].packet >= late.live_from ? sim->arrivals[i].at : 0;
    }
    late.told_at = joined + um_rng_range(&sim->rng, 0, 600) * MS;
    late.dies_at = late.told_at + um_rng_range(&sim->rng, 0, 2000) * MS;
    late.told_at = chance(sim, 30) ? 0 : late.told_at; /* before anything live */
    sim->dc = um_dc_create(&sim->config, &LATE_OPS, &late);
    um_dc_await_recovery(sim->dc);
    int next = 0;
    for (; now < last_sent + 120000 * MS && (now < last_sent + 1000 * MS || um_dc_waits(sim->dc, now)); now += TICK) {
        step(&late, now, &next);
    }
    um_dc_on_tsni(sim->dc, now, sim->base + (uint32_t)sim->packet_count - 1);
    um_dc_end(sim->dc, now);
    check_late(&late);
    um_dc_destroy(sim->dc);
    for (int i = 0; i < sim->packet_count; i++) {
        if (atomic_load(&sim->packets[i].buf->refs) != 1) {
            broken(sim, "buffer reference leaked", sim->packets[i].msg.sqn);
        }
        um_buf_unref(sim->packets[i].buf);
    }
    if (sim->broken != NULL) {
        fprintf(stderr, "UM_SIM_SEED=%llu: %s (number %u, %u from the first; mode %d, burst %u, limit %u)\n",
                (unsigned long long)seed, sim->broken, sim->broken_sqn, sim->broken_sqn - sim->base,
                sim->config.ordered_delivery, sim->config.maximum_burst_loss, sim->config.map_entries_max);
    }
    return sim->broken == NULL;
}

TEST(a_late_joiner_has_everything_once_and_in_order_or_is_told_what_is_lost_under_all_seeds)
{
    int failures = 0;
    for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(1000) && failures < 5; seed++) {
        failures += !run_late(seed);
    }
    CHECK_EQ(failures, 0);
}
