/* Resolution through two lbmrds in virtual time: engines of daemons and contexts on the virtual network, a thousand
 * clients, and one daemon after the other killed and started again without what it knew. */
#include <arpa/inet.h>

#include "base/um_log.h"
#include "base/um_timer.h"
#include "resolver/um_lbmrd_engine.h"
#include "resolver/um_tr_engine.h"
#include "resolver/um_tr_unicast.h"
#include "sim_net.h"
#include "um_test.h"
#include "wire/um_lbmr.h"

#define DAEMONS 2
#define SOURCES 10
#define RECEIVERS 60
#define CONTEXTS (SOURCES + RECEIVERS)
#define CROWD 930 /* clients that only send keepalives and count what they get */
#define CROWD_SLICE_NS (50 * SIM_MS)
#define CROWD_SLICES 10 /* a keepalive of each in half a second */
#define CROWD_IP 0x0a100000u
#define DAEMON_PORT 15380
#define CLIENT_PORT 14402
#define DEAF_NS (2 * SIM_SEC)
#define COPY_NS 3000 /* of processor time, as measured on loopback */

struct world;

struct daemon {
    struct world *world;
    int node;
    struct um_lbmrd *engine; /* NULL: killed */
    uint64_t back_ns;        /* when it is started again */
};

struct context {
    struct world *world;
    int node;
    struct um_tr_engine *engine;
    struct um_tr_unicast *unicast;
    uint64_t engine_due_ns, asked_ns, found_ns;
};

struct world {
    struct sim *sim;
    struct daemon daemons[DAEMONS];
    struct context contexts[CONTEXTS];
    int keeper; /* node for the crowd, the kills and the new receivers */
    unsigned slice, receivers, kills;
    bool killing;
    uint64_t kill_ns, next_receiver_ns;
    uint64_t crowd_got;
    uint64_t used_ns; /* by daemons, for copies */
};

static uint32_t node_ip(int node)
{
    return htonl(0x0a000001u + (uint32_t)node);
}

static int drop_log(int level, const char *message, void *clientd)
{
    return 0;
}

/* ---- daemons ---- */

static int daemon_send(void *arg, uint32_t ip, uint16_t port, const uint8_t *data, size_t len)
{
    struct daemon *daemon = arg;
    uint32_t host = ntohl(ip);
    daemon->world->used_ns += COPY_NS;
    if (host >= CROWD_IP) {
        daemon->world->crowd_got += len > 4 ? data[1] + um_get16(data + 2) : 0; /* questions and advertisements */
    } else {
        sim_unicast(daemon->world->sim, daemon->node, (int)(host - 0x0a000001u), data, len);
    }
    return 0;
}

static void daemon_send_all(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                            int *errors)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = daemon_send(arg, peers[i].ip, peers[i].port, data, len);
    }
}

static uint64_t daemon_cpu(void *arg)
{
    return ((struct daemon *)arg)->world->used_ns;
}

static void daemon_arm(struct daemon *daemon)
{
    sim_set_timer(daemon->world->sim, daemon->node,
                  daemon->engine != NULL ? um_lbmrd_next_timer(daemon->engine) : daemon->back_ns);
}

static void daemon_start(struct daemon *daemon, uint64_t now_ns)
{
    struct um_lbmrd_config config = {.ttl_ns = 60 * SIM_SEC,
                                     .activity_ns = 60 * SIM_SEC,
                                     .max_clients = UM_LBMRD_MAX_CLIENTS,
                                     .max_address_clients = UM_LBMRD_MAX_ADDRESS_CLIENTS,
                                     .output_rate = UM_LBMRD_OUTPUT_RATE,
                                     .output_burst = UM_LBMRD_OUTPUT_BURST,
                                     .max_output_rate = UM_LBMRD_MAX_OUTPUT_RATE,
                                     .start_burst = UM_LBMRD_START_BURST,
                                     .time_rate = UM_LBMRD_TIME_RATE,
                                     .time_burst = UM_LBMRD_TIME_BURST,
                                     .gather_clients = UM_LBMRD_GATHER_CLIENTS,
                                     .gather_client_ns = UM_LBMRD_GATHER_CLIENT_NS,
                                     .own_ip = node_ip(daemon->node),
                                     .own_port = DAEMON_PORT,
                                     .cpu_ns = daemon_cpu,
                                     .send = daemon_send_all,
                                     .arg = daemon};
    daemon->engine = um_lbmrd_create(&config, now_ns);
    daemon_arm(daemon);
}

static void daemon_kill(struct daemon *daemon, uint64_t back_ns)
{
    um_lbmrd_destroy(daemon->engine);
    daemon->engine = NULL;
    daemon->back_ns = back_ns;
    daemon_arm(daemon);
}

static void daemon_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct daemon *daemon = arg;
    uint8_t bytes[UM_LBMR_TIR_MAX + 8192];
    if (daemon->engine != NULL && len <= sizeof bytes) {
        memcpy(bytes, data, len);
        um_lbmrd_on_datagram(daemon->engine, now_ns, bytes, len, node_ip(from), CLIENT_PORT);
        daemon_arm(daemon);
    }
}

static void daemon_on_timer(void *arg, uint64_t now_ns)
{
    struct daemon *daemon = arg;
    if (daemon->engine == NULL) {
        daemon_start(daemon, now_ns);
    } else {
        um_lbmrd_on_timer(daemon->engine, now_ns);
        daemon_arm(daemon);
    }
}

/* ---- contexts ---- */

static void context_arm(struct context *context)
{
    uint64_t due = um_tr_unicast_next(context->unicast);
    sim_set_timer(context->world->sim, context->node, due < context->engine_due_ns ? due : context->engine_due_ns);
}

static enum um_tr_sent context_send(void *io, const uint8_t *data, size_t len)
{
    struct context *context = io;
    int current = um_tr_unicast_current(context->unicast);
    if (current < 0) {
        return UM_TR_DISCARDED;
    }
    um_tr_unicast_sent(context->unicast, (size_t)current);
    sim_unicast(context->world->sim, context->node, context->world->daemons[current].node, data, len);
    return UM_TR_SENT;
}

static void context_set_timer(void *io, uint64_t due_ns)
{
    struct context *context = io;
    context->engine_due_ns = due_ns;
    if (context->unicast != NULL) {
        context_arm(context);
    }
}

static void context_keepalive(void *io, size_t daemon)
{
    struct context *context = io;
    uint8_t bytes[UM_LBMR_HEADER_LEN];
    size_t len = um_lbmr_encode_keepalive(bytes, sizeof bytes, UM_LBMR_UCAST_RCV_ALIVE);
    sim_unicast(context->world->sim, context->node, context->world->daemons[daemon].node, bytes, len);
}

static void context_went_inactive(void *io, size_t daemon, bool heard_before)
{
}

static void context_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct context *context = arg;
    um_tr_unicast_heard(context->unicast, now_ns, (size_t)(from - context->world->daemons[0].node));
    um_tr_engine_on_packet(context->engine, now_ns, data, len, node_ip(from), DAEMON_PORT);
    context_arm(context);
}

static void context_on_timer(void *arg, uint64_t now_ns)
{
    struct context *context = arg;
    if (now_ns >= um_tr_unicast_next(context->unicast)) {
        um_tr_unicast_on_timer(context->unicast, now_ns);
    }
    if (now_ns >= context->engine_due_ns) {
        um_tr_engine_on_timer(context->engine, now_ns);
    }
    context_arm(context);
}

static void on_source(void *topic_user, const struct um_tr_source *source)
{
    struct context *context = topic_user;
    if (context != NULL && context->found_ns == 0) {
        context->found_ns = sim_now(context->world->sim);
    }
}

static struct um_tr_config engine_config(const struct context *context)
{
    struct um_tr_config config = {.cache = true,
                                  .extended_options = true,
                                  .queries_possible = true,
                                  .source_datagram_max = 8192,
                                  .receiver_datagram_max = 8192};
    for (int i = 0; i < UM_TR_LANE_COUNT; i++) {
        config.rates[i].bits_per_second = 1000000;
    }
    config.rates[UM_TR_LANE_INITIAL_ADVERT].records_per_second = 1000;
    config.rates[UM_TR_LANE_INITIAL_QUERY].records_per_second = 1000;
    um_put32(config.ctxinst, (uint32_t)context->node + 1);
    return config;
}

/* A context as it is with the default options, which has something to resolve from now on. */
static void context_open(struct context *context, struct world *world)
{
    static const struct um_tr_ops ops = {.send = context_send, .set_timer = context_set_timer};
    static const struct um_resolver_events events = {.on_source = on_source};
    static const struct um_tr_unicast_ops unicast_ops = {context_keepalive, context_went_inactive};
    static const struct um_tr_unicast_config unicast = {.activity_timeout_ns = 1000 * SIM_MS,
                                                        .check_interval_ns = 200 * SIM_MS,
                                                        .change_interval_ns = 200 * SIM_MS,
                                                        .keepalive_interval_ns = 500 * SIM_MS};
    uint64_t now_ns = sim_now(world->sim);
    context->world = world;
    struct um_tr_config config = engine_config(context);
    context->unicast = um_tr_unicast_create(&unicast, &unicast_ops, context, DAEMONS,
                                            um_rng_range(sim_rng(world->sim), 0, UINT32_MAX), now_ns);
    context->engine = um_tr_engine_create(&config, &ops, context, &events, context, now_ns);
    um_tr_unicast_start(context->unicast, now_ns);
    context_arm(context);
}

static void topic_name(char out[32], unsigned number)
{
    snprintf(out, 32, "topic.%u", number);
}

static void advertise(struct context *context, unsigned number)
{
    char topic[32];
    topic_name(topic, number);
    struct um_tr_advert_spec spec = {.topic = topic};
    struct um_tr_advert_options options = {.timing = {.min_initial_ns = 10 * SIM_MS,
                                                      .max_initial_ns = 500 * SIM_MS,
                                                      .initial_duration_ns = 5 * SIM_SEC,
                                                      .sustain_ns = SIM_SEC,
                                                      .sustain_duration_ns = 60 * SIM_SEC,
                                                      .first_at_once = true},
                                           .immediate_response = true};
    spec.info.type = LBM_TRANSPORT_TYPE_TCP;
    spec.info.src_port = 14371;
    spec.info.session_id = 0x1000u + number;
    spec.info.topic_idx = number;
    um_tr_engine_advertise(context->engine, sim_now(context->world->sim), &spec, &options);
}

static void subscribe(struct context *context, unsigned number)
{
    char topic[32];
    topic_name(topic, number);
    struct um_tr_query_options options = {.timing = {.min_initial_ns = 20 * SIM_MS,
                                                     .max_initial_ns = 200 * SIM_MS,
                                                     .initial_duration_ns = 5 * SIM_SEC,
                                                     .sustain_ns = SIM_SEC,
                                                     .sustain_duration_ns = 60 * SIM_SEC,
                                                     .first_at_once = true},
                                          .sources_threshold = 10000000};
    context->asked_ns = sim_now(context->world->sim);
    um_tr_engine_subscribe(context->engine, context->asked_ns, topic, &options, false, context);
}

/* ---- the keeper ---- */

/* A share of the crowd says that it is there, to each daemon that runs. */
static void crowd_speaks(struct world *world, uint64_t now_ns)
{
    for (uint32_t i = world->slice; i < CROWD; i += CROWD_SLICES) {
        for (int d = 0; d < DAEMONS; d++) {
            uint8_t bytes[4] = {0x02, 0, 0, 0};
            if (world->daemons[d].engine != NULL) {
                um_lbmrd_on_datagram(world->daemons[d].engine, now_ns, bytes, sizeof bytes, htonl(CROWD_IP + i),
                                     CLIENT_PORT);
            }
        }
    }
    world->slice = (world->slice + 1) % CROWD_SLICES;
}

/* One of the daemons, in turn; it is back after up to two and a half seconds, and before the other one is killed. */
static void kill_one(struct world *world, uint64_t now_ns)
{
    struct um_rng *rng = sim_rng(world->sim);
    uint64_t away_ns = um_rng_range(rng, 20, 2500) * SIM_MS;
    daemon_kill(&world->daemons[world->kills++ % DAEMONS], now_ns + away_ns);
    world->kill_ns = now_ns + 3 * SIM_SEC + um_rng_range(rng, 0, 1000) * SIM_MS;
}

static void start_receiver(struct world *world, uint64_t now_ns)
{
    struct context *context = &world->contexts[SOURCES + world->receivers];
    context_open(context, world);
    subscribe(context, world->receivers % SOURCES);
    world->receivers++;
    world->next_receiver_ns = now_ns + um_rng_range(sim_rng(world->sim), 0, 600) * SIM_MS;
}

static void keeper_on_timer(void *arg, uint64_t now_ns)
{
    struct world *world = arg;
    crowd_speaks(world, now_ns);
    if (world->killing && now_ns >= world->kill_ns) {
        kill_one(world, now_ns);
    }
    while (world->killing && world->receivers < RECEIVERS && now_ns >= world->next_receiver_ns) {
        start_receiver(world, now_ns);
    }
    sim_set_timer(world->sim, world->keeper, now_ns + CROWD_SLICE_NS);
}

static void keeper_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
}

static void world_open(struct world *world, uint64_t seed)
{
    const struct sim_impairment network = {.delay_min_ns = 50000, .delay_max_ns = 2 * SIM_MS};
    memset(world, 0, sizeof *world);
    um_log_set_proc(drop_log, NULL);
    world->sim = sim_create(seed);
    sim_impair(world->sim, &network);
    for (int d = 0; d < DAEMONS; d++) {
        world->daemons[d].world = world;
        world->daemons[d].node = sim_add_node(world->sim, daemon_on_packet, daemon_on_timer, &world->daemons[d]);
        daemon_start(&world->daemons[d], sim_now(world->sim));
    }
    for (int i = 0; i < CONTEXTS; i++) {
        world->contexts[i].node = sim_add_node(world->sim, context_on_packet, context_on_timer, &world->contexts[i]);
    }
    world->keeper = sim_add_node(world->sim, keeper_on_packet, keeper_on_timer, world);
    sim_set_timer(world->sim, world->keeper, sim_now(world->sim) + CROWD_SLICE_NS);
}

static void world_close(struct world *world)
{
    for (int i = 0; i < CONTEXTS; i++) {
        um_tr_engine_destroy(world->contexts[i].engine);
        um_tr_unicast_destroy(world->contexts[i].unicast);
    }
    for (int d = 0; d < DAEMONS; d++) {
        um_lbmrd_destroy(world->daemons[d].engine);
    }
    sim_destroy(world->sim);
}

/* The longest that a receiver was deaf; UINT64_MAX when one has not found its source. */
static uint64_t longest_deaf(const struct world *world)
{
    uint64_t longest = 0;
    for (unsigned i = SOURCES; i < SOURCES + world->receivers; i++) {
        const struct context *context = &world->contexts[i];
        uint64_t deaf = context->found_ns == 0 ? UINT64_MAX : context->found_ns - context->asked_ns;
        longest = deaf > longest ? deaf : longest;
    }
    return longest;
}

/* Half of the sources have been silent for long when the killing begins: they only answer. */
static uint64_t run_kills(uint64_t seed, unsigned *kills, uint64_t *crowd_got)
{
    static struct world world;
    world_open(&world, seed);
    for (unsigned i = 0; i < SOURCES; i++) {
        if (i == SOURCES / 2) {
            sim_run(world.sim, sim_now(world.sim) + 70 * SIM_SEC);
        }
        context_open(&world.contexts[i], &world);
        advertise(&world.contexts[i], i);
    }
    world.killing = true;
    world.kill_ns = world.next_receiver_ns = sim_now(world.sim) + 500 * SIM_MS;
    while (world.receivers < RECEIVERS) {
        sim_run(world.sim, sim_now(world.sim) + SIM_SEC);
    }
    sim_run(world.sim, sim_now(world.sim) + 5 * SIM_SEC);
    uint64_t deaf = longest_deaf(&world);
    *kills = world.kills;
    *crowd_got = world.crowd_got;
    world_close(&world);
    return deaf;
}

TEST(d5_no_new_receiver_stays_deaf_for_more_than_two_seconds_while_one_of_two_daemons_is_killed_every_few_seconds)
{
    uint64_t longest = 0;
    for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(4); seed++) {
        unsigned kills = 0;
        uint64_t crowd_got = 0, deaf = run_kills(seed, &kills, &crowd_got);
        CHECK(kills >= 3);
        CHECK(crowd_got > CROWD * 100);
        CHECK(deaf <= DEAF_NS || sim_report("one_of_two_daemons_is_killed", seed));
        longest = deaf > longest ? deaf : longest;
    }
    printf("one of two daemons is killed: a new receiver was deaf for %llu ms at most\n",
           (unsigned long long)(longest / SIM_MS));
}

TEST(d5_a_thousand_clients_of_one_daemon_all_find_the_sources)
{
    static struct world world;
    world_open(&world, sim_first_seed());
    daemon_kill(&world.daemons[1], UINT64_MAX);
    for (unsigned i = 0; i < CONTEXTS; i++) {
        context_open(&world.contexts[i], &world);
        if (i < SOURCES) {
            advertise(&world.contexts[i], i);
        } else {
            subscribe(&world.contexts[i], i % SOURCES);
            world.receivers++;
        }
    }
    sim_run(world.sim, sim_now(world.sim) + 3 * SIM_SEC);
    CHECK_EQ(um_lbmrd_clients(world.daemons[0].engine), CONTEXTS + CROWD);
    CHECK(longest_deaf(&world) <= DEAF_NS);
    CHECK_EQ(um_lbmrd_stats(world.daemons[0].engine)->over_budget, 0);
    CHECK_EQ(um_lbmrd_stats(world.daemons[0].engine)->invalid, 0);
    CHECK(world.crowd_got > CROWD * 100);
    world_close(&world);
}
