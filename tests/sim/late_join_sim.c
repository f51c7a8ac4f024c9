/* Late join and off-transport recovery, from a source's retention to the receiver's delivery controller, over a network
 * that loses, repeats, delays and reorders under a seed. A receiver joins at a random moment of a stream that goes on;
 * requests and answers get lost; in some scenarios the source restarts in the middle, as another source of its topic.
 * Invariants: from where the receiver asked, every message once, in order where that was asked for, or reported as
 * lost; nothing lost that the retransmitter has; never more requests outstanding than the option allows. */
#include <stdlib.h>

#include "base/um_buf.h"
#include "base/um_sqn.h"
#include "base/um_timer.h"
#include "delivery/um_recovery.h"
#include "delivery/um_retention.h"
#include "delivery/um_retransmitter.h"
#include "sim_net.h"
#include "um_test.h"

#define MESSAGES 1200
#define NUMBERS (3 * MESSAGES)
#define LIVES 3
#define REQUEST_LEN 88u
#define PIECE 24u

static uint32_t below(struct um_rng *rng, uint32_t end)
{
    return (uint32_t)um_rng_range(rng, 0, end - 1);
}

enum { LIVE = 'L', UNICAST = 'U' }; /* first byte of a datagram: which way it came */

/* One life of the source: a topic index, numbers of its own. */
struct life {
    uint32_t tidx, base;
    struct um_retention *retention;
    uint32_t numbers; /* sent */
    uint32_t first_of[NUMBERS], fragments[NUMBERS];
    unsigned delivered[NUMBERS];
    bool lost[NUMBERS];
    bool made_room[NUMBERS]; /* lost as one of too many messages in parts: decisions of the project bound them */
    bool joined, ended;
    uint32_t start;      /* what the receiver asks for begins here, after base; valid when `started` */
    bool started, heard; /* live */
    uint32_t first_live;
    uint32_t newest_event;
    bool any_event;
};

struct world {
    struct sim *sim;
    struct um_rng rng;
    int source, live, unicast;
    struct life lives[LIVES];
    int life;
    /* source */
    struct um_retransmitter *retransmitter;
    uint64_t next_send_ns, next_tell_ns, restart_ns[LIVES];
    uint32_t to_send;
    uint32_t burst_first, burst_end; /* numbers of the first life that nobody hears on the transport */
    bool keeps_all, stopped;
    uint64_t data_ns; /* what comes on the transport before is told of, but not heard */
    bool far_repairs; /* the transport has not given it up, and asks for it in another hour */
    /* receiver */
    struct um_dc_config dc_config;
    struct um_recovery_config config;
    struct um_dc *dc;
    struct um_recovery recovery;
    uint64_t dc_due_ns, recovery_due_ns, join_ns, hears_ns;
    bool begun;
    uint32_t outstanding_seen;
    uint64_t dropped; /* messages in parts that the receiver gave up for their number */
    const char *broken;
    uint32_t broken_number;
};

static void broken(struct world *world, const char *why, uint32_t number)
{
    if (world->broken == NULL) {
        world->broken = why;
        world->broken_number = number;
    }
}

static struct life *life_of(struct world *world)
{
    return &world->lives[world->life];
}

/* ---- the receiver ---- */

static void arm_receiver(struct world *world)
{
    uint64_t due = world->dc_due_ns < world->recovery_due_ns ? world->dc_due_ns : world->recovery_due_ns;
    due = world->begun || world->join_ns > due ? due : world->join_ns;
    sim_set_timer(world->sim, world->live, due);
}

static void event(struct world *world, uint32_t sqn)
{
    struct life *life = life_of(world);
    if (world->dc_config.ordered_delivery == 1 && life->any_event && !um_sqn_newer(sqn, life->newest_event)) {
        broken(world, "out of order", sqn - life->base);
    }
    life->any_event = true;
    life->newest_event = sqn;
}

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    struct world *world = user;
    struct life *life = life_of(world);
    uint32_t first = d->fragment ? d->sqn : d->first_sqn;
    event(world, d->sqn);
    if (d->sqn - life->base >= life->numbers) {
        broken(world, "never sent", d->sqn - life->base);
        return;
    }
    for (uint32_t sqn = first; sqn != d->sqn + 1; sqn++) {
        if (life->delivered[sqn - life->base]++ != 0) {
            broken(world, "delivered twice", sqn - life->base);
        }
    }
    if (d->len != (d->sqn - first + 1) * PIECE || d->data[0] != (uint8_t)(first * 7)) {
        broken(world, "other bytes than sent", d->sqn - life->base);
    }
}

static void mark_lost(struct world *world, uint32_t first, uint32_t count)
{
    struct life *life = life_of(world);
    for (uint32_t sqn = first; sqn != first + count; sqn++) {
        if (sqn - life->base < life->numbers) {
            life->lost[sqn - life->base] = true;
        }
    }
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    struct world *world = user;
    struct life *life = life_of(world);
    uint64_t dropped = um_dc_stats(world->dc).discards[UM_DC_REASSEMBLY];
    event(world, sqn);
    mark_lost(world, sqn, 1);
    if (dropped != world->dropped && sqn - life->base < life->numbers) {
        life->made_room[sqn - life->base] = true;
    }
    world->dropped = dropped;
}

static void on_burst(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    mark_lost(user, first, count);
}

static void on_dc_timer(void *user, uint64_t due_ns)
{
    struct world *world = user;
    world->dc_due_ns = due_ns;
    arm_receiver(world);
}

static bool on_wanted(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    return um_recovery_wanted(&((struct world *)user)->recovery, first, count, now_ns);
}

static uint32_t on_position(void *user)
{
    (void)user;
    return 1;
}

static bool on_complete_before(void *user, uint32_t position)
{
    (void)position;
    return !((struct world *)user)->far_repairs;
}

static const struct um_dc_ops DC_OPS = {.deliver = on_deliver,
                                        .loss = on_loss,
                                        .burst_loss = on_burst,
                                        .set_timer = on_dc_timer,
                                        .position = on_position,
                                        .complete_before = on_complete_before,
                                        .recovery_wanted = on_wanted};

/* Requests are given whole; their bytes stand for what the connection adds. */
static void send_request(struct world *world, uint8_t code, const uint8_t *record, size_t len)
{
    uint8_t datagram[1 + REQUEST_LEN] = {UNICAST};
    um_lbmc_put_control_hdr(datagram + 1, code, (uint16_t)(UM_LBMC_CONTROL_HDR_LEN + len));
    memcpy(datagram + 1 + UM_LBMC_CONTROL_HDR_LEN, record, len);
    sim_unicast(world->sim, world->unicast, world->source, datagram, 1 + UM_LBMC_CONTROL_HDR_LEN + len);
}

static void ask_info(void *user, bool has_low, uint32_t low)
{
    struct world *world = user;
    struct um_lbmc_lji_req req = {.flags = has_low ? UM_LBMC_LJI_LOW : 0,
                                  .request_idx = (uint32_t)world->life + 1,
                                  .topic_idx = life_of(world)->tidx,
                                  .port = 1,
                                  .low_sqn = low};
    uint8_t record[UM_LBMC_LJI_REQ_LEN];
    um_lbmc_put_lji_req(record, UM_LBMC_HDR_NONE, &req);
    send_request(world, UM_LBMC_HDR_LJI_REQ, record, sizeof record);
}

static void ask_number(struct world *world, uint32_t sqn, bool last)
{
    struct um_lbmc_rxreq req = {
        .tsni = last, .request_idx = 1, .id = life_of(world)->tidx, .sqn = last ? 0 : sqn, .port = 1};
    uint8_t record[UM_LBMC_RXREQ_LEN];
    um_lbmc_put_rxreq(record, UM_LBMC_HDR_NONE, &req);
    send_request(world, UM_LBMC_HDR_RXREQ, record, sizeof record);
}

static void ask(void *user, uint32_t sqn)
{
    struct world *world = user;
    uint32_t count = world->recovery.request_count;
    world->outstanding_seen = count > world->outstanding_seen ? count : world->outstanding_seen;
    ask_number(world, sqn, false);
}

static void ask_last(void *user)
{
    ask_number(user, 0, true);
}

static void on_recovery_timer(void *user, uint64_t due_ns)
{
    struct world *world = user;
    world->recovery_due_ns = due_ns;
    arm_receiver(world);
}

static void note(void *user, enum um_recovery_note what, uint32_t count, uint64_t now_ns)
{
    struct world *world = user;
    struct life *life = life_of(world);
    if (what == UM_RECOVERY_STARTED && !life->started) {
        life->started = true;
        life->start = world->recovery.replay_end - count - life->base;
    }
    if (what == UM_RECOVERY_SKIPPED || what == UM_RECOVERY_SENSELESS) {
        broken(world, "no information", 0);
    }
}

static const struct um_recovery_ops RECOVERY_OPS = {
    .ask_info = ask_info, .ask = ask, .ask_last = ask_last, .set_timer = on_recovery_timer, .note = note};

static void begin_receiver(struct world *world, uint64_t now_ns)
{
    world->begun = true;
    world->dc_due_ns = world->recovery_due_ns = UM_NEVER;
    world->dc = um_dc_create(&world->dc_config, &DC_OPS, world);
    um_recovery_init(&world->recovery, &world->config, &RECOVERY_OPS, world, world->dc);
    life_of(world)->joined = true;
    um_recovery_start(&world->recovery, now_ns);
}

static void end_receiver(struct world *world, uint64_t now_ns)
{
    if (world->dc != NULL) {
        um_dc_end(world->dc, now_ns);
        um_dc_finish(world->dc, now_ns);
        um_recovery_fini(&world->recovery);
        um_dc_destroy(world->dc);
        world->dc = NULL;
        world->dropped = 0;
    }
    world->begun = false;
    world->dc_due_ns = world->recovery_due_ns = UM_NEVER;
}

static void on_receiver_timer(void *arg, uint64_t now_ns)
{
    struct world *world = arg;
    if (!world->begun && now_ns >= world->join_ns) {
        begin_receiver(world, now_ns);
    }
    if (world->dc != NULL && now_ns >= world->dc_due_ns) {
        world->dc_due_ns = UM_NEVER;
        um_dc_on_timer(world->dc, now_ns);
    }
    if (world->dc != NULL && now_ns >= world->recovery_due_ns) {
        world->recovery_due_ns = UM_NEVER;
        um_recovery_on_timer(&world->recovery, now_ns);
    }
    arm_receiver(world);
}

static void on_control(struct world *world, uint64_t now_ns, const struct um_lbmc_msg *msg, bool live)
{
    struct life *life = life_of(world);
    struct um_lbmc_tsni_iter iter = {0, 0};
    uint32_t tidx, last;
    if ((msg->present & UM_LBMC_HAS_LJ_INFO) != 0 && msg->lj_info.request_idx == (uint32_t)world->life + 1) {
        um_recovery_on_info(&world->recovery, now_ns, msg->lj_info.low, msg->lj_info.high);
    }
    while (um_lbmc_tsni_next(msg, &iter, &tidx, &last)) {
        if (tidx == life->tidx && live) {
            um_dc_on_tsni(world->dc, now_ns, last);
        } else if (tidx == life->tidx) {
            um_recovery_on_last(&world->recovery, now_ns, last);
        }
    }
}

static void on_receiver_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct world *world = arg;
    struct um_lbmc_msg msg;
    bool live = data[0] == LIVE;
    if (world->dc == NULL || (live && now_ns < world->hears_ns)) {
        return;
    }
    struct um_buf *buf = um_buf_alloc(len);
    memcpy(buf->data, data, len);
    if (um_lbmc_decode(buf->data + 1, len - 1, &msg) == UM_LBMC_OK) {
        if (msg.type == UM_LBMC_CONTROL) {
            on_control(world, now_ns, &msg, live);
        } else if (msg.tidx == life_of(world)->tidx && live && now_ns >= world->data_ns) {
            struct life *life = life_of(world);
            if (!life->heard || um_sqn_older(msg.sqn - life->base, life->first_live)) {
                life->first_live = life->heard ? life->first_live : msg.sqn - life->base;
                life->heard = true;
            }
            um_dc_on_data(world->dc, now_ns, &msg, buf);
        } else if (msg.tidx == life_of(world)->tidx && !live) {
            um_recovery_on_data(&world->recovery, now_ns, &msg, buf);
        }
    }
    um_buf_unref(buf);
}

/* ---- the source ---- */

static struct life *find_life(struct world *world, uint32_t tidx)
{
    struct life *life = life_of(world);
    return life->tidx == tidx && !world->stopped ? life : NULL; /* those before are gone */
}

static bool on_range(void *user, uint32_t tidx, uint32_t *low, uint32_t *high)
{
    struct life *life = find_life(user, tidx);
    if (life == NULL) {
        return false;
    }
    if (!um_retention_range(life->retention, low, high)) {
        *low = life->base;
        *high = *low - 1;
    }
    return true;
}

static size_t on_copy(void *user, uint32_t tidx, uint32_t sqn, uint8_t *out, unsigned *pace)
{
    struct life *life = find_life(user, tidx);
    if (life == NULL) {
        return UM_RETRANSMITTER_NO_TOPIC;
    }
    const struct um_retained *record = um_retention_find(life->retention, sqn);
    if (record == NULL) {
        return 0;
    }
    memcpy(out, record->message, record->len);
    return record->len;
}

static bool on_send(void *user, const struct um_retransmitter_answer *to, const uint8_t *message, size_t len)
{
    struct world *world = user;
    uint8_t datagram[512] = {UNICAST};
    memcpy(datagram + 1, message, len);
    sim_unicast(world->sim, world->source, world->unicast, datagram, 1 + len);
    return true;
}

static void on_dropped(void *user, enum um_retransmitter_drop why, const struct um_retransmitter_asker *asker,
                       uint32_t tidx, uint64_t now_ns)
{
    struct world *world = user;
    if (why != UM_RETRANSMITTER_NO_SOURCE && (why != UM_RETRANSMITTER_NOT_KEPT || world->keeps_all)) {
        broken(world, "a request was dropped", why);
    }
}

static const struct um_retransmitter_ops RETRANSMITTER_OPS = {
    .range = on_range, .copy = on_copy, .send = on_send, .dropped = on_dropped};

static void on_source_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct world *world = arg;
    struct um_retransmitter_asker asker = {.ip = 1, .len = len};
    struct um_lbmc_msg msg;
    if (um_lbmc_decode(data + 1, len - 1, &msg) == UM_LBMC_OK) {
        if ((msg.present & UM_LBMC_HAS_LJI_REQ) != 0) {
            um_retransmitter_on_lji_req(world->retransmitter, now_ns, &msg.lji_req, &asker);
        } else if ((msg.present & UM_LBMC_HAS_RXREQ) != 0) {
            um_retransmitter_on_rxreq(world->retransmitter, now_ns, &msg.rxreq, &asker);
        }
    }
}

static void send_number(struct world *world, uint64_t now_ns, uint32_t first, uint32_t i, uint32_t count)
{
    struct life *life = life_of(world);
    uint8_t datagram[128] = {LIVE};
    uint8_t *message = datagram + 1;
    size_t headers = UM_LBMC_DATA_HDR_LEN + (count > 1 ? UM_LBMC_FRAG_HDR_LEN : 0);
    size_t len = headers + PIECE;
    uint32_t sqn = life->base + first + i;
    um_lbmc_put_data_hdr(message, count > 1 ? UM_LBMC_HDR_FRAG : UM_LBMC_HDR_DATA, (uint16_t)len, life->tidx, sqn);
    if (count > 1) {
        um_lbmc_put_frag(message + UM_LBMC_DATA_HDR_LEN, UM_LBMC_HDR_DATA, life->base + first, i * PIECE,
                         count * PIECE);
    }
    memset(message + headers, (int)(uint8_t)(sqn * 7), PIECE);
    life->first_of[first + i] = first;
    life->fragments[first + i] = count;
    life->numbers++;
    um_retention_keep(life->retention, now_ns, sqn, message, len);
    if (first + i < world->burst_first || first + i >= world->burst_end) {
        sim_unicast(world->sim, world->source, world->live, datagram, 1 + len);
    }
}

static void new_life(struct world *world, int number)
{
    struct life *life = &world->lives[number];
    const struct um_retention_config config = {.size_threshold =
                                                   world->keeps_all ? SIZE_MAX : 40 * (UM_RETENTION_OVERHEAD + PIECE)};
    world->life = number;
    life->tidx = 1000 + (uint32_t)number;
    life->base = below(&world->rng, 3) == 0 ? UINT32_MAX - below(&world->rng, 400) : 0;
    life->retention = um_retention_create(&config);
}

static void on_source_timer(void *arg, uint64_t now_ns)
{
    struct world *world = arg;
    if (world->life + 1 < LIVES && now_ns >= world->restart_ns[world->life]) {
        life_of(world)->ended = true;
        end_receiver(world, now_ns);
        new_life(world, world->life + 1);
        world->join_ns = now_ns + below(&world->rng, 30) * UM_NS_PER_MS;
        world->hears_ns = world->join_ns + below(&world->rng, 50) * UM_NS_PER_MS;
        arm_receiver(world);
    }
    if (world->to_send > 0 && now_ns >= world->next_send_ns) {
        uint32_t count = below(&world->rng, 5) == 0 ? 1 + below(&world->rng, 3) : 1;
        uint32_t first = life_of(world)->numbers;
        for (uint32_t i = 0; i < count; i++) {
            send_number(world, now_ns, first, i, count);
        }
        world->to_send--;
        world->next_send_ns = now_ns + (1 + below(&world->rng, 10)) * UM_NS_PER_MS / 2;
    }
    if (now_ns >= world->next_tell_ns) {
        struct life *life = life_of(world);
        uint8_t datagram[32] = {LIVE};
        uint32_t last = life->base + life->numbers - 1;
        size_t len = um_lbmc_encode_tsni(datagram + 1, &life->tidx, &last, 1);
        sim_unicast(world->sim, world->source, world->live, datagram, 1 + len);
        world->next_tell_ns = now_ns + 500 * UM_NS_PER_MS;
    }
    uint64_t due = world->next_tell_ns;
    due = world->to_send > 0 && world->next_send_ns < due ? world->next_send_ns : due;
    due = world->life + 1 < LIVES && world->restart_ns[world->life] < due ? world->restart_ns[world->life] : due;
    sim_set_timer(world->sim, world->source, due);
}

/* ---- the run ---- */

enum scenario { LIVE_TRAFFIC, LOSS, RESTARTS, BURSTS, FIRST_LOST };

static void check_life(struct world *world, const struct life *life, enum scenario scenario, bool last)
{
    if (!life->joined || (!life->started && !life->heard) || !last) {
        return; /* what it did not get before the source went is reported only as far as it knew of it */
    }
    bool whole = world->keeps_all && world->config.late_join && world->config.request_maximum == 0;
    bool lossless = world->keeps_all && (scenario == LIVE_TRAFFIC || world->config.off_transport);
    uint32_t from = whole ? 0 : life->started ? life->start : life->first_live;
    for (uint32_t i = from; i < life->numbers; i++) {
        uint32_t first = life->first_of[i], count = life->fragments[i];
        bool all = true, any_lost = false, made_room = false;
        for (uint32_t k = first; k < first + count; k++) {
            all = all && life->delivered[k] == 1;
            any_lost = any_lost || life->lost[k];
            made_room = made_room || life->made_room[k];
        }
        if (first < from) {
            continue;
        }
        if (!all && !any_lost) {
            broken(world, "neither delivered nor reported", i);
        }
        if (scenario == FIRST_LOST && any_lost && !made_room && first + count <= life->first_live) {
            broken(world, "lost before the first live message", i);
        }
        if (lossless && any_lost && !made_room) {
            broken(world, "lost, and the retransmitter has it", i);
        }
    }
}

static void choose(struct world *world, enum scenario scenario)
{
    static const int modes[] = {1, 1, 1, -1, 0};
    static const uint32_t proximities[] = {0, 3, 50, 5000};
    struct um_rng *rng = &world->rng;
    bool tcp = scenario == LIVE_TRAFFIC;
    world->dc_config = (struct um_dc_config){.ordered_delivery = modes[below(rng, 5)],
                                             .maximum_burst_loss = 1u << 20,
                                             .gap_timeout_ns = tcp ? 0 : 5 * UM_NS_PER_SEC,
                                             .loss_check_interval_ns = 200 * UM_NS_PER_MS,
                                             .reassembly_size_max = 1u << 20,
                                             .caching_proximity = proximities[below(rng, 4)]};
    world->config = (struct um_recovery_config){.late_join = true,
                                                .info_interval_ns = UM_NS_PER_SEC,
                                                .info_maximum = 60,
                                                .request_interval_ns = 500 * UM_NS_PER_MS,
                                                .request_timeout_ns = 60 * UM_NS_PER_SEC,
                                                .request_outstanding = 1 + below(rng, 20),
                                                .ask_last = below(rng, 2) == 0,
                                                .last_interval_ns = UM_NS_PER_SEC,
                                                .last_maximum = 60,
                                                .off_transport = scenario != LIVE_TRAFFIC && below(rng, 2) == 0,
                                                .otr_delay_ns = below(rng, 3) * UM_NS_PER_SEC,
                                                .otr_interval_ns = UM_NS_PER_SEC,
                                                .otr_interval_max_ns = 10 * UM_NS_PER_SEC,
                                                .otr_timeout_ns = 300 * UM_NS_PER_SEC,
                                                .otr_outstanding = 1 + below(rng, 30),
                                                .otr_entries_threshold = 20 + below(rng, 1000)};
    if (world->config.off_transport) {
        world->dc_config.recovery_entries_max = world->config.otr_entries_threshold;
    }
    world->keeps_all = below(rng, 4) != 0;
    if (!world->keeps_all) {
        world->config.request_timeout_ns = world->config.otr_timeout_ns = 3 * UM_NS_PER_SEC;
    }
    world->config.request_maximum = below(rng, 3) == 0 ? 1 + below(rng, 100) : 0;
    world->to_send = below(rng, 8) == 0 ? below(rng, 4) : 100 + below(rng, MESSAGES - 100);
    world->join_ns = (1 + below(rng, 3000)) * UM_NS_PER_MS;
    world->hears_ns = world->join_ns + below(rng, 60) * UM_NS_PER_MS;
    for (int i = 0; i < LIVES; i++) {
        world->restart_ns[i] =
            scenario == RESTARTS ? (uint64_t)(i + 1) * (500 + below(rng, 2000)) * UM_NS_PER_MS : UM_NEVER;
    }
}

/* A silence of 2 to 1,000 numbers on the transport, which is a burst at the smallest maximum and often at larger ones.
 */
static void choose_burst(struct world *world)
{
    struct um_rng *rng = &world->rng;
    world->config.off_transport = true;
    world->dc_config.recovery_entries_max = world->config.otr_entries_threshold;
    world->dc_config.recovers_bursts = true;
    world->dc_config.maximum_burst_loss = 2 + below(rng, 300);
    world->config.otr_burst = world->dc_config.maximum_burst_loss;
    world->to_send = MESSAGES;
    world->burst_first = below(rng, 150);
    world->burst_end = world->burst_first + 2 + below(rng, 999);
}

/* In order, the first messages after the join are lost for up to 2.5 s, and their numbers, where late join does not
 * tell them, are known from what the source tells. */
static void choose_first_lost(struct world *world)
{
    struct um_rng *rng = &world->rng;
    world->config.off_transport = below(rng, 2) == 0;
    world->dc_config.recovers_bursts = world->config.off_transport;
    world->dc_config.recovery_entries_max =
        world->config.off_transport ? world->config.otr_entries_threshold : world->dc_config.recovery_entries_max;
    world->dc_config.ordered_delivery = 1;
    world->config.request_timeout_ns = 60 * UM_NS_PER_SEC;
    world->config.otr_timeout_ns = 300 * UM_NS_PER_SEC;
    world->keeps_all = world->far_repairs = true;
    world->to_send = 100 + below(rng, MESSAGES - 100);
    world->next_send_ns = below(rng, 2) == 0 ? 0 : world->join_ns + below(rng, 2000) * UM_NS_PER_MS;
    world->data_ns = world->join_ns + below(rng, 2500) * UM_NS_PER_MS;
}

static bool run_seed(uint64_t seed, enum scenario scenario)
{
    static const uint64_t unlimited[UM_RETRANSMITTER_PACES];
    static struct world world;
    memset(&world, 0, sizeof world);
    world.sim = sim_create(seed);
    um_rng_seed(&world.rng, seed);
    world.source = sim_add_node(world.sim, on_source_packet, on_source_timer, &world);
    world.live = sim_add_node(world.sim, on_receiver_packet, on_receiver_timer, &world);
    world.unicast = sim_add_node(world.sim, on_receiver_packet, on_receiver_timer, &world);
    world.dc_due_ns = world.recovery_due_ns = UM_NEVER;
    choose(&world, scenario);
    world.config.request_outstanding *= seed % 4 == 0 ? 8 : 1; /* so many that they open together */
    if (scenario == BURSTS) {
        choose_burst(&world);
    }
    if (scenario == FIRST_LOST) {
        choose_first_lost(&world);
    }
    struct sim_impairment bad = {.loss = 0.1,
                                 .duplication = 0.05,
                                 .reordering = 0.1,
                                 .delay_min_ns = UM_NS_PER_MS / 10,
                                 .delay_max_ns = 2 * UM_NS_PER_MS};
    struct sim_impairment good = {.delay_min_ns = UM_NS_PER_MS, .delay_max_ns = UM_NS_PER_MS};
    sim_impair(world.sim, &bad);
    sim_impair_node(world.sim, world.live, scenario == LIVE_TRAFFIC ? &good : &bad);
    world.retransmitter = um_retransmitter_create(unlimited, &RETRANSMITTER_OPS, &world);
    new_life(&world, 0);
    arm_receiver(&world);
    sim_set_timer(world.sim, world.source, UM_NS_PER_MS);
    /* One request at a time of which a fifth is repeated a second later: a thousand numbers take 400 s and more. */
    uint64_t end_ns = (400 + (scenario == BURSTS || scenario == FIRST_LOST ? 1200 / world.config.otr_outstanding : 0)) *
                      UM_NS_PER_SEC;
    sim_run(world.sim, end_ns);
    uint32_t most = world.config.request_outstanding;
    most = world.config.off_transport && world.config.otr_outstanding > most ? world.config.otr_outstanding : most;
    if (world.outstanding_seen > most) {
        broken(&world, "too many requests outstanding", world.outstanding_seen);
    }
    end_receiver(&world, end_ns + UM_NS_PER_SEC);
    for (int i = 0; i <= world.life; i++) {
        check_life(&world, &world.lives[i], scenario, i == world.life);
    }
    if (world.broken != NULL) {
        fprintf(stderr,
                "seed %llu: %s (%u); mode %d, all kept %d, start %u, maximum %u, late join %d, otr %d, proximity %u\n",
                (unsigned long long)seed, world.broken, world.broken_number, world.dc_config.ordered_delivery,
                world.keeps_all, life_of(&world)->start, world.config.request_maximum, world.config.late_join,
                world.config.off_transport, world.dc_config.caching_proximity);
    }
    um_retransmitter_destroy(world.retransmitter);
    for (int i = 0; i < LIVES; i++) {
        um_retention_destroy(world.lives[i].retention);
    }
    sim_destroy(world.sim);
    return world.broken == NULL;
}

static int failures_of(enum scenario scenario, uint64_t seeds)
{
    int failures = 0;
    for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(seeds) && failures < 5; seed++) {
        failures += !run_seed(seed, scenario);
    }
    return failures;
}

TEST(l4_who_joins_late_has_every_message_once_from_where_it_asked_while_the_stream_goes_on)
{
    CHECK_EQ(failures_of(LIVE_TRAFFIC, 2000), 0);
}

TEST(l4_with_loss_on_the_transport_too_every_message_is_delivered_once_or_reported)
{
    CHECK_EQ(failures_of(LOSS, 2000), 0);
}

/* The receiver delivers as messages come; number 2 overtakes 1, and the answer tells of 0 alone. */
TEST(l4_what_was_overtaken_between_the_answer_and_the_first_live_message_is_asked_for)
{
    CHECK(run_seed(3551187529, LOSS));
}

TEST(a_source_that_restarts_in_the_middle_is_joined_anew_from_its_own_beginning)
{
    CHECK_EQ(failures_of(RESTARTS, 2000), 0);
}

/* More messages in parts at a time than the receiver keeps: one makes room, and is told of. */
TEST(of_too_many_messages_in_parts_the_oldest_is_reported_and_the_others_are_recovered)
{
    CHECK(run_seed(2671384888, BURSTS));
}

TEST(a_burst_beyond_its_maximum_is_recovered_whatever_its_size)
{
    CHECK(run_seed(1073154978, BURSTS)); /* one request at a time, over 400 s */
    CHECK_EQ(failures_of(BURSTS, 2000), 0);
}

/* A transport whose own repair is far off: what was lost first is recovered in the time of late join or of
 * off-transport recovery, and does not hold back what follows until then. */
TEST(what_is_lost_first_is_recovered_though_the_transport_asks_for_it_much_later)
{
    CHECK_EQ(failures_of(FIRST_LOST, 2000), 0);
}
