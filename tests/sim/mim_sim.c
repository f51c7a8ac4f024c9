/* Multicast immediate messages on a virtual network, without I/O: the engines of a sender's session, and at each
 * receiver, for every session heard, that of the session and the flow behind it, as core joins them. Loss, reordering,
 * duplicates, senders that restart, go and come back, wraps of the numbers. UM_SIM_SEEDS sets how many seeds run. */
#include "um_test.h"

#include <stdlib.h>

#include "base/um_buf.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "delivery/um_mim_flow.h"
#include "sim_net.h"
#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/lbtr/um_lbtrm_src_engine.h"
#include "wire/um_lbmc.h"

#define GROUP 0
#define SENDER_IP 0x0100000au
#define RECEIVERS 3
#define SESSIONS 4
#define MESSAGES 200u /* of a session */
#define ACTIVITY_NS (60 * SIM_SEC)
#define IDLE_NS (5 * SIM_SEC) /* of a delivery controller */
#define SM_MAX_NS SIM_SEC
#define LISTENED_NS (4 * SM_MAX_NS) /* long enough to know what was there before */
#define EACH_SEED(count) for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(count); seed++)

static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};

enum fate { UNKNOWN, DELIVERED, LOST };

struct world;

/* A session as one receiver has it. */
struct heard {
    struct receiver *receiver;
    struct um_lbtr_rcv_engine *engine;
    struct um_mim_flow flow;
    uint64_t engine_due, flow_due;
    uint32_t position; /* of the datagram being handed on */
    bool opening, ended;
    uint8_t fate[MESSAGES];
    bool any;
    uint32_t last; /* delivered, counted from the first number */
    unsigned delivered, lost;
};

struct receiver {
    struct world *world;
    int node;
    uint64_t since_ns, look_due;
    struct heard *heard[SESSIONS]; /* by number of the session */
};

struct world {
    const char *name;
    uint64_t seed;
    struct sim *sim;
    struct um_rng rng;
    struct um_lbtr_limiter limiter;
    int sender;
    struct um_lbtr_src_engine *source; /* NULL: no session */
    struct um_lbtrm_session session;
    unsigned number;          /* of the session, from 0 */
    uint32_t first[SESSIONS]; /* number of its first message */
    unsigned sent[SESSIONS];
    uint64_t engine_due, app_due, every_ns;
    unsigned to_send;
    bool ordered;
    struct receiver receivers[RECEIVERS];
    struct um_mim_flow_config config;
    const char *broken;
};

static void broken(struct world *w, const char *what)
{
    w->broken = w->broken != NULL ? w->broken : what;
}

/* ---- the sender ---- */

static void rearm_sender(struct world *w)
{
    sim_set_timer(w->sim, w->sender, w->engine_due < w->app_due ? w->engine_due : w->app_due);
}

static void source_set_timer(void *io, uint64_t due_ns)
{
    struct world *w = io;
    w->engine_due = due_ns;
    rearm_sender(w);
}

static void source_kick(void *io)
{
    source_set_timer(io, sim_now(((struct world *)io)->sim));
}

static void source_relieved(void *io)
{
}

static void source_send(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    struct world *w = io;
    uint8_t packet[2048];
    memcpy(packet, head, head_len);
    if (body_len > 0) {
        memcpy(packet + head_len, body, body_len);
    }
    sim_multicast(w->sim, GROUP, w->sender, packet, head_len + body_len);
}

static const struct um_lbtrm_src_engine_ops source_ops = {.send = source_send,
                                                          .common.set_timer = source_set_timer,
                                                          .common.kick = source_kick,
                                                          .common.relieved = source_relieved};

static void open_session(struct world *w, uint32_t first)
{
    const struct um_lbtrm_src_engine_config config = {.session = {14390, 0x1000 + w->number},
                                                      .tgsz = 8,
                                                      .datagram_max = 1400,
                                                      .window_size = 1 << 20,
                                                      .ignore_ns = 20 * SIM_MS,
                                                      .sm_min_ns = 200 * SIM_MS,
                                                      .sm_max_ns = SM_MAX_NS};
    w->session = config.session;
    w->first[w->number] = first;
    w->source = um_lbtrm_src_engine_create(&config, &w->limiter, &source_ops, w);
}

static void close_session(struct world *w)
{
    um_lbtr_src_engine_destroy(w->source);
    w->source = NULL;
    w->engine_due = UM_NEVER;
    w->number++;
    rearm_sender(w);
}

/* As csrc/core/um_mim_sender.c writes it; even ones have a topic. */
static void send_message(struct world *w)
{
    size_t room;
    uint8_t *out = um_lbtr_src_engine_acquire(w->source, &room);
    uint32_t n = w->sent[w->number]++, sqn = w->first[w->number] + n;
    size_t len = UM_LBMC_DATA_HDR_LEN;
    len += n % 2 == 0 ? um_lbmc_put_topicname(out + len, UM_LBMC_HDR_CTXINST, "topic", 5) : 0;
    len += um_lbmc_put_ctxinst(out + len, UM_LBMC_HDR_DATA, instance);
    um_put32(out + len, n);
    len += 4;
    um_lbmc_put_data_hdr(out, n % 2 == 0 ? UM_LBMC_HDR_TOPICNAME : UM_LBMC_HDR_CTXINST, (uint16_t)len, 0, sqn);
    um_lbtr_src_engine_commit(w->source, sim_now(w->sim), len, 4);
}

static void sender_on_timer(void *arg, uint64_t now_ns)
{
    struct world *w = arg;
    if (w->source != NULL && now_ns >= w->engine_due) {
        w->engine_due = UM_NEVER;
        um_lbtr_src_engine_on_timer(w->source, now_ns);
    }
    if (now_ns >= w->app_due) {
        send_message(w);
        w->app_due = --w->to_send > 0 ? now_ns + w->every_ns : UM_NEVER;
    }
    rearm_sender(w);
}

static void sender_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct world *w = arg;
    if (w->source != NULL) {
        um_lbtrm_src_engine_on_packet(w->source, now_ns, data, len);
    }
}

static void send_some(struct world *w, unsigned count, uint64_t every_ns)
{
    w->to_send = count;
    w->every_ns = every_ns;
    w->app_due = sim_now(w->sim);
    rearm_sender(w);
}

/* ---- receivers: what core does between the engines ---- */

static unsigned session_of(const struct heard *heard)
{
    const struct receiver *r = heard->receiver;
    for (unsigned i = 0; i < SESSIONS; i++) {
        if (r->heard[i] == heard) {
            return i;
        }
    }
    return SESSIONS;
}

static void rearm_receiver(struct receiver *r)
{
    uint64_t due = r->look_due;
    for (unsigned i = 0; i < SESSIONS; i++) {
        const struct heard *heard = r->heard[i];
        if (heard != NULL && !heard->ended) {
            due = heard->engine_due < due ? heard->engine_due : due;
            due = heard->flow_due < due ? heard->flow_due : due;
        }
    }
    sim_set_timer(r->world->sim, r->node, due);
}

static void dc_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    struct heard *heard = user;
    struct world *w = heard->receiver->world;
    uint32_t n = d->sqn - w->first[session_of(heard)];
    bool topic = (d->msg->present & UM_LBMC_HAS_TOPICNAME) != 0;
    if (n >= w->sent[session_of(heard)] || d->len != 4 || um_get32(d->data) != n || topic != (n % 2 == 0) ||
        (topic && (d->msg->topic_name.len != 5 || memcmp(d->msg->topic_name.ptr, "topic", 5) != 0))) {
        broken(w, "delivered something else than was sent");
        return;
    }
    broken(w, heard->fate[n] == DELIVERED ? "delivered twice" : NULL);
    broken(w, heard->fate[n] == LOST ? "delivered after it was lost" : NULL);
    broken(w, w->ordered && heard->any && n <= heard->last ? "delivered out of order" : NULL);
    heard->fate[n] = DELIVERED;
    heard->delivered++;
    heard->any = true;
    heard->last = n;
}

static void note_lost(struct heard *heard, uint32_t first, uint32_t count)
{
    struct world *w = heard->receiver->world;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = first + i - w->first[session_of(heard)];
        if (n < MESSAGES) {
            broken(w, heard->fate[n] != UNKNOWN ? "lost what was delivered, or lost before" : NULL);
            heard->fate[n] = LOST;
            heard->lost++;
        }
    }
}

static void dc_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    note_lost(user, sqn, 1);
}

static void dc_burst_loss(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    note_lost(user, first_sqn, count);
}

static void dc_set_timer(void *user, uint64_t due_ns)
{
    ((struct heard *)user)->flow_due = due_ns;
}

static uint32_t dc_position(void *user)
{
    return ((struct heard *)user)->position;
}

static bool dc_complete_before(void *user, uint32_t position)
{
    const struct heard *heard = user;
    return !heard->ended && um_lbtr_rcv_engine_complete_before(heard->engine, position);
}

static void dc_opening(void *user, bool on)
{
    ((struct heard *)user)->opening = on;
}

static const struct um_dc_ops dc_ops = {.deliver = dc_deliver,
                                        .loss = dc_loss,
                                        .burst_loss = dc_burst_loss,
                                        .set_timer = dc_set_timer,
                                        .position = dc_position,
                                        .complete_before = dc_complete_before,
                                        .opening = dc_opening};

static void rcv_nak(void *io, const uint8_t *data, size_t len)
{
    struct heard *heard = io;
    sim_unicast(heard->receiver->world->sim, heard->receiver->node, heard->receiver->world->sender, data, len);
}

static void rcv_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    struct heard *heard = io;
    struct um_buf *buf = um_buf_alloc(payload->len);
    struct um_lbmc_msg msg;
    memcpy(buf->data, payload->ptr, payload->len);
    heard->position = sqn;
    if (um_lbmc_decode(buf->data, payload->len, &msg) != UM_LBMC_OK) {
        broken(heard->receiver->world, "a message that cannot be understood");
    } else {
        um_mim_flow_on_data(&heard->flow, now_ns, &msg, buf);
    }
    um_buf_unref(buf);
}

static void rcv_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
}

static void rcv_begin(void *io, uint64_t now_ns)
{
}

static void rcv_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    struct heard *heard = io;
    heard->ended = true;
    um_mim_flow_end(&heard->flow, now_ns, true);
}

static void rcv_set_timer(void *io, uint64_t due_ns)
{
    ((struct heard *)io)->engine_due = due_ns;
}

static const struct um_lbtr_rcv_outputs rcv_ops = {rcv_nak, rcv_deliver,   rcv_lost, rcv_begin,
                                                   rcv_end, rcv_set_timer, NULL};

static struct heard *join(struct receiver *r, unsigned number, const struct um_lbtrm_session *session, uint64_t now_ns)
{
    struct world *w = r->world;
    struct heard *heard = um_calloc(1, sizeof *heard);
    const struct um_lbtrm_rcv_engine_config config = {
        .source_ip = SENDER_IP,
        .session = *session,
        .naks = {5 * SIM_MS, 20 * SIM_MS, 100 * SIM_MS, 10 * SIM_SEC, true, 0},
        .activity_ns = ACTIVITY_NS,
    };
    heard->receiver = r;
    heard->engine_due = heard->flow_due = UM_NEVER;
    heard->engine = um_lbtrm_rcv_engine_create(&config, &w->rng, &rcv_ops, heard, now_ns);
    um_mim_flow_init(&heard->flow, &w->config, &dc_ops, heard);
    if (now_ns - r->since_ns >= LISTENED_NS) {
        um_lbtrm_rcv_engine_from_start(heard->engine);
        um_mim_flow_from_start(&heard->flow);
    }
    r->heard[number] = heard;
    return heard;
}

static void rcv_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct receiver *r = arg;
    struct um_lbtrm_packet packet;
    if (um_lbtrm_decode(data, len, &packet) != UM_LBTR_OK || packet.session.session_id - 0x1000 >= SESSIONS) {
        return;
    }
    unsigned number = packet.session.session_id - 0x1000;
    struct heard *heard = r->heard[number];
    if (heard == NULL && (packet.type == UM_LBTRM_DATA || packet.type == UM_LBTRM_SM)) {
        heard = join(r, number, &packet.session, now_ns);
    }
    if (heard != NULL && !heard->ended) {
        um_lbtrm_rcv_engine_on_packet(heard->engine, now_ns, data, len, SENDER_IP);
        if (heard->opening && !heard->ended) {
            um_mim_flow_on_progress(&heard->flow, now_ns);
        }
    }
    rearm_receiver(r);
}

static void heard_on_timer(struct heard *heard, uint64_t now_ns)
{
    if (!heard->ended && now_ns >= heard->engine_due) {
        heard->engine_due = UM_NEVER;
        um_lbtr_rcv_engine_on_timer(heard->engine, now_ns);
    }
    if (!heard->ended && heard->opening) {
        um_mim_flow_on_progress(&heard->flow, now_ns);
    }
    if (!heard->ended && now_ns >= heard->flow_due) {
        heard->flow_due = UM_NEVER;
        um_mim_flow_on_timer(&heard->flow, now_ns);
    }
}

static void rcv_on_timer(void *arg, uint64_t now_ns)
{
    struct receiver *r = arg;
    for (unsigned i = 0; i < SESSIONS; i++) {
        if (r->heard[i] != NULL) {
            heard_on_timer(r->heard[i], now_ns);
        }
        if (r->heard[i] != NULL && !r->heard[i]->ended && now_ns >= r->look_due) {
            um_mim_flow_look(&r->heard[i]->flow, now_ns);
        }
    }
    r->look_due = now_ns >= r->look_due ? now_ns + SIM_SEC : r->look_due;
    rearm_receiver(r);
}

/* ---- worlds ---- */

static struct world *create(const char *name, uint64_t seed, int ordered)
{
    struct world *w = um_calloc(1, sizeof *w);
    const struct um_lbtr_limiter_config limits = {
        .data_bps = 100000000, .retransmit_bps = 50000000, .interval_ns = 10 * SIM_MS, .retransmissions_count = true};
    w->name = name;
    w->seed = seed;
    w->ordered = ordered != 0;
    w->sim = sim_create(seed);
    um_rng_seed(&w->rng, seed);
    um_lbtr_limiter_init(&w->limiter, &limits);
    w->engine_due = w->app_due = UM_NEVER;
    w->config = (struct um_mim_flow_config){.dc = {.ordered_delivery = ordered,
                                                   .maximum_burst_loss = 1024,
                                                   .gap_timeout_ns = 10 * SIM_SEC,
                                                   .reassembly_size_max = 8192},
                                            .window_size = 256,
                                            .window_step = 128,
                                            .idle_ns = IDLE_NS};
    w->sender = sim_add_node(w->sim, sender_on_packet, sender_on_timer, w);
    for (int i = 0; i < RECEIVERS; i++) {
        struct receiver *r = &w->receivers[i];
        r->world = w;
        r->node = sim_add_node(w->sim, rcv_on_packet, rcv_on_timer, r);
        r->look_due = SIM_SEC;
        sim_join(w->sim, GROUP, r->node);
        rearm_receiver(r);
    }
    sim_run(w->sim, sim_now(w->sim) + LISTENED_NS);
    return w;
}

static void weather(struct world *w)
{
    const struct sim_impairment net = {
        .loss = 0.1, .duplication = 0.05, .reordering = 0.1, .delay_min_ns = SIM_MS, .delay_max_ns = 5 * SIM_MS};
    sim_impair(w->sim, &net);
}

static void fair(struct world *w)
{
    sim_impair(w->sim, &(struct sim_impairment){.delay_min_ns = SIM_MS, .delay_max_ns = SIM_MS});
}

static void run(struct world *w, uint64_t ns)
{
    sim_run(w->sim, sim_now(w->sim) + ns);
}

/* Each receiver has all messages of all sessions. */
static void settled(struct world *w)
{
    for (int i = 0; i < RECEIVERS; i++) {
        for (unsigned s = 0; s < SESSIONS; s++) {
            const struct heard *heard = w->receivers[i].heard[s];
            if (w->sent[s] > 0 && (heard == NULL || heard->delivered != w->sent[s] || heard->lost != 0)) {
                broken(w, "not everything was delivered");
            }
        }
    }
}

static bool finish(struct world *w)
{
    bool ok = w->broken == NULL;
    if (!ok) {
        fprintf(stderr, "%s\n", w->broken);
        sim_report(w->name, w->seed);
    }
    for (int i = 0; i < RECEIVERS; i++) {
        for (unsigned s = 0; s < SESSIONS; s++) {
            struct heard *heard = w->receivers[i].heard[s];
            if (heard != NULL) {
                um_mim_flow_end(&heard->flow, sim_now(w->sim), false);
                um_lbtr_rcv_engine_destroy(heard->engine);
                um_free(heard);
            }
        }
    }
    if (w->source != NULL) {
        um_lbtr_src_engine_destroy(w->source);
    }
    sim_destroy(w->sim);
    um_free(w);
    return ok;
}

/* ---- scenarios ---- */

static bool under_loss(const char *name, uint64_t seed, int ordered)
{
    struct world *w = create(name, seed, ordered);
    weather(w);
    open_session(w, 0);
    send_some(w, MESSAGES, SIM_MS);
    run(w, 3 * SIM_SEC);
    fair(w);
    run(w, 5 * SIM_SEC);
    settled(w);
    return finish(w);
}

TEST(under_loss_everything_comes_once_and_in_order)
{
    EACH_SEED(2000)
    {
        CHECK(under_loss("under_loss_everything_comes_once_and_in_order", seed, 1));
    }
}

TEST(under_loss_everything_comes_once_as_it_arrives)
{
    EACH_SEED(2000)
    {
        CHECK(under_loss("under_loss_everything_comes_once_as_it_arrives", seed, 0));
    }
}

/* A session begins, breaks off without a word, and another one follows from number 0. */
TEST(restarted_sender_is_another_session_from_its_start)
{
    EACH_SEED(1000)
    {
        struct world *w = create("restarted_sender_is_another_session_from_its_start", seed, 1);
        weather(w);
        open_session(w, 0);
        send_some(w, 50, SIM_MS);
        run(w, 2 * SIM_SEC);
        fair(w);
        run(w, 2 * SIM_SEC);
        close_session(w);
        weather(w);
        open_session(w, 0);
        send_some(w, 50, SIM_MS);
        run(w, 2 * SIM_SEC);
        fair(w);
        run(w, 2 * SIM_SEC);
        settled(w);
        CHECK(finish(w));
    }
}

/* Silent for longer than a delivery controller lives, the session goes on; silent for longer than a session, it ends.
 */
TEST(sender_that_was_silent_goes_on_where_it_was_and_one_that_was_gone_begins_anew)
{
    EACH_SEED(500)
    {
        struct world *w =
            create("sender_that_was_silent_goes_on_where_it_was_and_one_that_was_gone_begins_anew", seed, 1);
        open_session(w, 0);
        for (int i = 0; i < 2; i++) {
            weather(w);
            send_some(w, 20, SIM_MS);
            run(w, 2 * SIM_SEC);
            fair(w);
            run(w, IDLE_NS + 3 * SIM_SEC);
        }
        for (int i = 0; i < RECEIVERS; i++) {
            if (w->receivers[i].heard[0] == NULL || w->receivers[i].heard[0]->flow.counts.restarts != 1) {
                broken(w, "the delivery controller was not made anew");
            }
        }
        close_session(w);
        run(w, ACTIVITY_NS + SIM_SEC);
        for (int i = 0; i < RECEIVERS; i++) {
            if (w->receivers[i].heard[0] == NULL || !w->receivers[i].heard[0]->ended) {
                broken(w, "the session did not end");
            }
        }
        weather(w);
        open_session(w, 0);
        send_some(w, 20, SIM_MS);
        run(w, 2 * SIM_SEC);
        fair(w);
        run(w, 2 * SIM_SEC);
        settled(w);
        CHECK(finish(w));
    }
}

/* The session has run long enough for its numbers to wrap; receivers have not listened for long. */
TEST(numbers_wrap)
{
    EACH_SEED(500)
    {
        struct world *w = create("numbers_wrap", seed, 1);
        for (int i = 0; i < RECEIVERS; i++) {
            w->receivers[i].since_ns = sim_now(w->sim);
        }
        fair(w);
        open_session(w, (uint32_t) - (int32_t)(seed % 100) - 1);
        send_some(w, 1, SIM_MS);
        run(w, 10 * SIM_MS);
        weather(w);
        send_some(w, MESSAGES - 1, SIM_MS);
        run(w, 3 * SIM_SEC);
        fair(w);
        run(w, 3 * SIM_SEC);
        settled(w);
        CHECK(finish(w));
    }
}

/* The sender goes before it has repaired: what is missing is told as lost when the session ends, nothing is in doubt.
 */
TEST(sender_that_goes_for_good_leaves_nothing_in_doubt)
{
    EACH_SEED(1000)
    {
        struct world *w = create("sender_that_goes_for_good_leaves_nothing_in_doubt", seed, 1);
        weather(w);
        open_session(w, 0);
        send_some(w, 50, SIM_MS);
        run(w, 51 * SIM_MS);
        close_session(w);
        run(w, ACTIVITY_NS + 2 * SIM_SEC);
        for (int i = 0; i < RECEIVERS; i++) {
            const struct heard *heard = w->receivers[i].heard[0];
            bool whole = heard != NULL && heard->ended && heard->any;
            for (uint32_t n = 0; whole && n < heard->last; n++) {
                whole = heard->fate[n] != UNKNOWN;
            }
            broken(w, whole ? NULL : "neither delivered nor lost");
        }
        CHECK(finish(w));
    }
}
