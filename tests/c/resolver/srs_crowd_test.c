/* D4: many contexts and topics resolved by one resolution server (SRS), in one
 * process: the resolvers of the contexts and the server's engine over loopback, and
 * beside it what datagrams would take for the same. With UM_SOAK the counts of the
 * requirement: 200 contexts and 100,000 topics, of which each context offers 500 and
 * wants 500 others. */
#include "um_test.h"

#include <sys/resource.h>

#include "net/um_socket.h"
#include "resolver/um_resolver.h"
#include "resolver/um_srs_engine.h"
#include "um_test_loop.h"
#include "um_test_net.h"
#include "wire/um_rsocket.h"

#define SEC UM_NS_PER_SEC
#define CONTEXTS_MAX 200
#define LINKS_MAX (CONTEXTS_MAX + 8)
#define SEGMENT 1448 /* bytes in a packet of an Ethernet */

/* ---- the server ---- */

struct link {
    int fd; /* 0: free */
    struct um_srs_peer *peer;
    struct um_rsocket_reader reader; /* counts frames */
    uint8_t *out;
    size_t begin, len, capacity;
};

static struct {
    int listen_fd;
    uint16_t port;
    struct um_srs_engine *engine;
    struct link links[LINKS_MAX];
    uint64_t frames; /* both ways */
    uint64_t bytes;
} server;

static void link_close(struct link *link)
{
    close(link->fd);
    free(link->out);
    um_rsocket_reader_free(&link->reader);
    *link = (struct link){0};
}

static bool link_flush(struct link *link)
{
    while (link->len > 0) {
        ssize_t sent = send(link->fd, link->out + link->begin, link->len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) {
            return false;
        }
        link->begin += (size_t)sent;
        link->len -= (size_t)sent;
    }
    link->begin = 0;
    return true;
}

static bool server_send(void *arg, void *handle, const uint8_t *frame, size_t len)
{
    struct link *link = handle;
    if (link->begin + link->len + len > link->capacity) {
        link->capacity = 2 * (link->begin + link->len + len);
        link->out = realloc(link->out, link->capacity);
        if (link->out == NULL) {
            abort();
        }
    }
    memcpy(link->out + link->begin + link->len, frame, len);
    link->len += len;
    server.frames++;
    server.bytes += len;
    return link_flush(link);
}

static void server_close(void *arg, void *handle)
{
    link_close(handle);
}

/* Port 0: a free one. */
static bool server_start(uint16_t port, uint64_t now_ns)
{
    struct um_srs_config config;
    int err = 0;
    memset(&server, 0, sizeof server);
    um_srs_config_default(&config);
    config.send = server_send;
    config.close = server_close;
    server.engine = um_srs_engine_create(&config, now_ns);
    server.listen_fd =
        um_socket_tcp_listen((struct in_addr){htonl(INADDR_LOOPBACK)}, port, 512, true, &server.port, &err);
    return server.engine != NULL && server.listen_fd >= 0;
}

static void server_accept(uint64_t now_ns)
{
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    int fd;
    while ((fd = accept(server.listen_fd, (struct sockaddr *)&from, &len)) >= 0) {
        struct link *link = server.links;
        while (link->fd > 0) {
            link++;
        }
        um_socket_set_nodelay(fd, true);
        link->fd = fd;
        um_rsocket_reader_init(&link->reader, UM_RSOCKET_FRAME_MAX);
        link->peer = um_srs_engine_connect(server.engine, now_ns, link, from.sin_addr.s_addr, ntohs(from.sin_port));
    }
}

static void count_frames(struct link *link, const uint8_t *bytes, size_t len)
{
    struct um_slice input = {bytes, len};
    struct um_rsocket_frame frame;
    server.bytes += len;
    while (um_rsocket_read(&link->reader, &input, &frame) == UM_RSOCKET_FRAME) {
        server.frames++;
    }
}

static void server_step(uint64_t now_ns)
{
    static uint8_t bytes[262144];
    server_accept(now_ns);
    for (struct link *link = server.links; link < server.links + LINKS_MAX; link++) {
        ssize_t got = link->fd > 0 ? recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT) : -1;
        if (got > 0) {
            count_frames(link, bytes, (size_t)got);
            um_srs_peer_on_bytes(link->peer, now_ns, bytes, (size_t)got);
        } else if (got == 0) {
            um_srs_peer_on_disconnect(link->peer, now_ns);
            link_close(link);
        }
        if (link->fd > 0 && link->len > 0 && link_flush(link)) {
            um_srs_peer_on_writable(link->peer, now_ns);
        }
    }
    if (um_srs_engine_next_timer(server.engine) <= now_ns) {
        um_srs_engine_on_timer(server.engine, now_ns);
    }
}

/* Every connection ends, and nothing is remembered. */
static void server_kill(void)
{
    for (struct link *link = server.links; link < server.links + LINKS_MAX; link++) {
        if (link->fd > 0) {
            link_close(link);
        }
    }
    um_srs_engine_destroy(server.engine);
    close(server.listen_fd);
}

/* ---- contexts ---- */

struct end {
    struct um_loop *loop;
    struct um_resolver *resolver;
    unsigned number;
};

static struct {
    struct end ends[CONTEXTS_MAX];
    unsigned contexts, topics; /* topics: of each context */
    struct um_context_options opts;
    struct um_source_options source;
    struct um_receiver_options receiver;
    struct um_option_list no_services;
    lbm_resolver_service_entry_t service;
    unsigned found;
    uint64_t now_ns;
} crowd;

static void on_source(void *topic_user, const struct um_tr_source *source)
{
    crowd.found++;
}

static int end_open(void *arg)
{
    static const struct um_resolver_events events = {.on_source = on_source};
    struct end *end = arg;
    uint8_t instance[8] = {(uint8_t)end->number, (uint8_t)(end->number >> 8), 0, 0, 0, 0, 0, 1};
    end->resolver = um_resolver_create(end->loop, &crowd.opts, instance, &events, NULL);
    return end->resolver == NULL ? -1 : 0;
}

static int end_close(void *arg)
{
    um_resolver_destroy(((struct end *)arg)->resolver);
    return 0;
}

static int end_advertise(void *arg)
{
    struct end *end = arg;
    char topic[64];
    for (unsigned i = 0; i < crowd.topics; i++) {
        struct um_tr_advert_spec spec = {.topic = topic, .info.type = LBM_TRANSPORT_TYPE_TCP};
        snprintf(topic, sizeof topic, "market.data.%u", end->number * crowd.topics + i);
        spec.info.src_ip = htonl(INADDR_LOOPBACK);
        spec.info.src_port = (lbm_ushort_t)(20000 + end->number);
        spec.info.session_id = end->number + 1;
        spec.info.topic_idx = i + 1;
        if (um_resolver_advertise(end->resolver, &spec, &crowd.source) == NULL) {
            return -1;
        }
    }
    return 0;
}

/* Of the context after it. */
static int end_receive(void *arg)
{
    struct end *end = arg;
    char topic[64];
    for (unsigned i = 0; i < crowd.topics; i++) {
        snprintf(topic, sizeof topic, "market.data.%u", (end->number + 1) % crowd.contexts * crowd.topics + i);
        struct um_tr_topic *added = um_resolver_lookup(end->resolver, topic, &crowd.receiver, NULL);
        if (added == NULL) {
            return -1;
        }
        um_resolver_receive(end->resolver, added, false);
    }
    return 0;
}

static int quiet(int level, const char *message, void *clientd)
{
    return 0;
}

static bool crowd_start(unsigned contexts, unsigned topics)
{
    memset(&crowd, 0, sizeof crowd);
    um_log_set_proc(quiet, NULL);
    crowd.contexts = contexts;
    crowd.topics = topics;
    crowd.now_ns = um_clock_ns();
    if (um_context_options_resolve(NULL, &crowd.opts) != 0 ||
        um_source_options_resolve(NULL, NULL, 0, "market", &crowd.source) != 0 ||
        um_receiver_options_resolve(NULL, NULL, 0, "market", &crowd.receiver) != 0) {
        return false;
    }
    crowd.opts.default_interface = (lbm_ipv4_address_mask_t){.addr = htonl(INADDR_LOOPBACK), .bits = 32};
    crowd.no_services = crowd.opts.resolver_service;
    return true;
}

static bool crowd_open(bool by_server)
{
    if (by_server) {
        crowd.service =
            (lbm_resolver_service_entry_t){.service_ip = htonl(INADDR_LOOPBACK), .service_port = htons(server.port)};
        crowd.opts.resolver_service = (struct um_option_list){1, sizeof crowd.service, &crowd.service};
    }
    crowd.opts.resolver_disable_udp_topic_resolution = by_server;
    for (unsigned i = 0; i < crowd.contexts; i++) {
        struct end *end = &crowd.ends[i];
        end->number = i;
        end->loop = um_loop_create(false, UM_LOOP_PEND, "test");
        if (end->loop == NULL || um_loop_call(end->loop, end_open, end) != 0) {
            return false;
        }
    }
    return true;
}

static bool crowd_each(int (*fn)(void *arg))
{
    for (unsigned i = 0; i < crowd.contexts; i++) {
        if (um_loop_call(crowd.ends[i].loop, fn, &crowd.ends[i]) != 0) {
            return false;
        }
    }
    return true;
}

static void crowd_step(void)
{
    for (unsigned i = 0; i < crowd.contexts; i++) {
        um_loop_run_once(crowd.ends[i].loop, 0, crowd.now_ns);
    }
}

static void crowd_stop(void)
{
    crowd_each(end_close);
    for (unsigned i = 0; i < crowd.contexts; i++) {
        um_loop_destroy(crowd.ends[i].loop);
    }
    crowd.opts.resolver_service = crowd.no_services;
    um_options_clear(UM_SCOPE_CONTEXT, &crowd.opts);
    um_options_clear(UM_SCOPE_SOURCE, &crowd.source);
    um_options_clear(UM_SCOPE_RECEIVER, &crowd.receiver);
}

/* In real time. */
static void run(void)
{
    uint64_t now_ns = um_clock_ns();
    crowd.now_ns = now_ns > crowd.now_ns ? now_ns : crowd.now_ns;
    crowd_step();
    server_step(crowd.now_ns);
}

static bool run_until_found(unsigned wanted)
{
    uint64_t began_ns = um_clock_ns();
    while (crowd.found < wanted && um_clock_ns() - began_ns < 6 * HANG_LIMIT_NS) {
        run();
    }
    return crowd.found == wanted;
}

/* A server that was restarted learns everything again. */
static bool run_until_listed(unsigned sources, unsigned topics_wanted)
{
    uint64_t began_ns = um_clock_ns();
    const struct um_srs_stats *stats = um_srs_engine_stats(server.engine);
    while ((stats->active_sources < sources || stats->active_interest < topics_wanted) &&
           um_clock_ns() - began_ns < 6 * HANG_LIMIT_NS) {
        run();
    }
    return stats->active_sources == sources && stats->active_interest == topics_wanted;
}

/* What one context sends for its topics with default options; it hears itself alone. */
static void datagrams_of_one_context(unsigned topics, uint64_t *datagrams, uint64_t *bytes)
{
    lbm_context_stats_t stats = {0};
    *datagrams = *bytes = 0;
    if (!crowd_start(1, topics) || !crowd_open(false)) {
        return;
    }
    crowd_each(end_advertise);
    crowd.contexts = 2; /* of the next one, which is not there */
    um_loop_call(crowd.ends[0].loop, end_receive, &crowd.ends[0]);
    crowd.contexts = 1;
    for (uint64_t end_ns = crowd.now_ns + 70 * SEC; crowd.now_ns < end_ns; crowd.now_ns += 10 * UM_NS_PER_MS) {
        crowd_step();
    }
    um_resolver_stats(crowd.ends[0].resolver, &stats);
    crowd_stop();
    *datagrams = stats.tr_dgrams_sent;
    *bytes = stats.tr_bytes_sent;
}

TEST(d4_a_crowd_is_resolved_by_a_server_with_a_tenth_of_the_datagrams_also_after_its_restart)
{
    TEST_NEEDS_NET();
    bool soak = getenv("UM_SOAK") != NULL;
    unsigned contexts = soak ? CONTEXTS_MAX : 20, topics = soak ? 500 : 50;
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    uint64_t datagrams, datagram_bytes;
    datagrams_of_one_context(topics, &datagrams, &datagram_bytes);
    datagrams *= contexts;
    datagram_bytes *= contexts;
    CHECK(crowd_start(contexts, topics));
    CHECK(server_start(0, crowd.now_ns));
    CHECK(crowd_open(true));
    uint64_t began_ns = um_clock_ns();
    CHECK(crowd_each(end_advertise));
    CHECK(crowd_each(end_receive));
    CHECK(run_until_found(contexts * topics));
    uint64_t took_ns = um_clock_ns() - began_ns;
    printf("     %u contexts, %u topics: resolved in %.2f s; %llu frames, %llu packets of data; without a server %llu "
           "datagrams, %llu packets\n",
           contexts, contexts * topics, (double)took_ns / 1e9, (unsigned long long)server.frames,
           (unsigned long long)(server.bytes / SEGMENT), (unsigned long long)datagrams,
           (unsigned long long)(datagram_bytes / SEGMENT));
    CHECK(datagrams > 10 * server.frames);
    uint16_t port = server.port;
    server_kill();
    crowd_step();
    CHECK(server_start(port, crowd.now_ns));
    began_ns = um_clock_ns();
    CHECK(run_until_listed(contexts * topics, contexts * topics));
    printf("     a restarted server knows them all after %.2f s\n", (double)(um_clock_ns() - began_ns) / 1e9);
    crowd_stop();
    server_kill();
}
