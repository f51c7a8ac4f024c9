/* See um_tr_srs.h. Each connection is a service of the cache, a reader of the
 * journal, a client engine and a socket. The context's own sources, which servers
 * do not send back, are one more service and reader. */
#include "resolver/um_tr_srs.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_hash.h"
#include "base/um_iface.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "net/um_socket.h"
#include "net/um_stream.h"
#include "resolver/um_srs_leaves.h"
#include "wire/um_transport_place.h"

#define OWN_READER UM_SRS_SERVICES_MAX
#define OWN_RETRY_NS (10 * UM_NS_PER_SEC) /* own sources that the cache had no room for */
#define OWN_STEP 512u                     /* sources put into the cache before others have their turn */
#define READ_SIZE 65536u
#define READS_PER_PASS 4
#define WRITES_PER_PASS 16
#define CLOSE_WAIT_NS (250 * UM_NS_PER_MS) /* for all connections together, while the rest is told */

struct connection {
    struct um_tr_srs *srs;
    struct um_srs_client *client;
    struct um_tr_service *service;
    unsigned reader;
    const lbm_resolver_service_entry_t *entry; /* of the context's options */
    struct in_addr from;
    struct um_stream stream;
    struct um_fd ufd;
    struct um_command output; /* something waits to be sent, or to be read without the descriptor being ready */
    struct um_timer timer;
    bool watched;       /* ufd is registered */
    bool failed;        /* since it was registered last */
    bool output_wanted; /* the socket took no more */
};

struct um_tr_srs {
    struct um_loop *loop;
    struct um_tr_engine *engine;
    struct um_tr_cache *cache;
    struct um_srs_self self;
    uint8_t ctxinst[8];
    uint32_t context_id;
    struct um_srs_journal *journal;
    struct um_srs_leaves *leaves;
    struct um_table wanted; /* wanted_item: topics and patterns, by kind and text */
    struct um_tr_service *own;
    struct um_command own_command;
    struct um_timer own_timer;
    bool none_told; /* that no server could be connected to */
    size_t count;
    struct connection connections[UM_SRS_SERVICES_MAX];
    uint8_t buffer[READ_SIZE];
};

#define EACH_CONNECTION(connection, srs)                                                                               \
    for (struct connection *connection = (srs)->connections; connection < (srs)->connections + (srs)->count;           \
         connection++)

/* ---- sockets ---- */

static void rearm(struct connection *connection)
{
    struct um_timer_wheel *wheel = um_loop_wheel(connection->srs->loop);
    uint64_t due_ns = um_srs_client_due(connection->client);
    if (due_ns == UM_NEVER) {
        um_timer_cancel(wheel, &connection->timer);
    } else if (!um_timer_armed(&connection->timer) || connection->timer.due_ns != due_ns) {
        um_timer_arm(wheel, &connection->timer, due_ns);
    }
}

static bool is_open(const struct connection *connection)
{
    return connection->stream.ops != NULL;
}

static void closed(struct connection *connection, uint64_t now_ns, const char *why)
{
    um_srs_client_closed(connection->client, now_ns, why);
}

/* Watches for what the stream waits for. */
static void watch(struct connection *connection, uint64_t now_ns)
{
    uint32_t wanted = UM_FD_READ | (connection->output_wanted ? UM_FD_WRITE : 0);
    uint32_t interest = um_stream_interest(&connection->stream, wanted);
    struct um_loop *loop = connection->srs->loop;
    int rc = connection->watched ? um_loop_set_interest(loop, &connection->ufd, interest)
                                 : um_loop_add_fd(loop, &connection->ufd, interest);
    connection->watched |= rc == 0;
    if (rc != 0) {
        closed(connection, now_ns, um_errmsg());
    }
}

/* Until the socket takes no more. */
static void write_some(struct connection *connection, uint64_t now_ns)
{
    const uint8_t *data;
    size_t len = 0;
    connection->output_wanted = false;
    for (int i = 0; i < WRITES_PER_PASS && is_open(connection); i++) {
        len = um_srs_client_output(connection->client, now_ns, &data);
        ssize_t sent = len == 0 || !is_open(connection) ? 0 : um_stream_write(&connection->stream, data, len);
        if (sent < 0) {
            closed(connection, now_ns, um_stream_reason(&connection->stream));
            return;
        }
        um_srs_client_sent(connection->client, (size_t)sent);
        if ((size_t)sent < len || len == 0) {
            break;
        }
    }
    connection->output_wanted = len != 0;
}

static void read_some(struct connection *connection, uint64_t now_ns)
{
    struct um_tr_srs *srs = connection->srs;
    for (int i = 0; i < READS_PER_PASS && is_open(connection); i++) {
        ssize_t got = um_stream_read(&connection->stream, srs->buffer, sizeof srs->buffer);
        if (got < 0) {
            closed(connection, now_ns, um_stream_reason(&connection->stream));
        } else if (got > 0) {
            um_srs_client_received(connection->client, now_ns, srs->buffer, (size_t)got);
        }
        if (got <= 0 || (size_t)got < sizeof srs->buffer) {
            break;
        }
    }
}

static void open_on(struct connection *connection, uint64_t now_ns)
{
    int rc = um_stream_open(&connection->stream);
    if (rc < 0) {
        closed(connection, now_ns, um_stream_reason(&connection->stream));
    } else if (rc > 0) {
        struct sockaddr_in local = um_stream_local(&connection->stream);
        um_socket_set_nodelay(connection->stream.fd, true);
        um_srs_client_connected(connection->client, now_ns, local.sin_addr, ntohs(local.sin_port));
    }
}

static void after(struct connection *connection, uint64_t now_ns)
{
    if (is_open(connection)) {
        watch(connection, now_ns);
    }
    rearm(connection);
}

static void on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct connection *connection = UM_CONTAINER_OF(ufd, struct connection, ufd);
    if (!connection->stream.opened) {
        open_on(connection, now_ns);
    } else {
        uint32_t means = um_stream_ready(&connection->stream, ready);
        if ((means & UM_FD_READ) != 0) {
            read_some(connection, now_ns);
        }
        if (is_open(connection) && (means & UM_FD_WRITE) != 0) {
            write_some(connection, now_ns);
        }
    }
    after(connection, now_ns);
}

static void on_output(struct um_command *command)
{
    struct connection *connection = UM_CONTAINER_OF(command, struct connection, output);
    uint64_t now_ns = um_loop_now(connection->srs->loop);
    if (is_open(connection) && connection->stream.opened && !connection->output_wanted) {
        write_some(connection, now_ns);
    }
    after(connection, now_ns);
}

/* What the kernel has already is read first: this process may have been the one that stood still. */
static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct connection *connection = UM_CONTAINER_OF(timer, struct connection, timer);
    if (is_open(connection) && connection->stream.opened) {
        read_some(connection, now_ns);
    }
    if (um_srs_client_due(connection->client) <= now_ns) {
        um_srs_client_on_timer(connection->client, now_ns);
    }
    after(connection, now_ns);
}

/* ---- operations of the client engine ---- */

static int start_connect(void *io)
{
    struct connection *connection = io;
    struct in_addr to = {connection->entry->service_ip};
    connection->srs->self.domain_id = um_tr_engine_domain_id(connection->srs->engine);
    if (um_stream_connect_from(&connection->stream, connection->from, ntohs(connection->entry->source_port), to,
                               ntohs(connection->entry->service_port)) != 0) {
        return -1;
    }
    um_fd_init(&connection->ufd, connection->stream.fd, on_ready);
    uint32_t interest = um_stream_interest(&connection->stream, 0);
    if (um_loop_add_fd(connection->srs->loop, &connection->ufd, interest) != 0) {
        um_stream_close(&connection->stream, UM_STREAM_NOW);
        return -1;
    }
    connection->watched = true;
    return 0;
}

static void stop_connection(void *io, const uint8_t *last, size_t len)
{
    struct connection *connection = io;
    if (!is_open(connection)) {
        return;
    }
    if (connection->stream.opened && connection->stream.end == UM_STREAM_LIVES && len > 0) {
        (void)um_stream_write(&connection->stream, last, len);
    }
    if (connection->watched) {
        um_loop_remove_fd(connection->srs->loop, &connection->ufd);
        connection->watched = false;
    }
    connection->output_wanted = false;
    um_stream_close(&connection->stream, UM_STREAM_GENTLY);
}

static void has_output(void *io)
{
    struct connection *connection = io;
    um_loop_post(connection->srs->loop, &connection->output);
}

/* A server may know where this context is. */
static void learn_domain(struct um_tr_srs *srs, uint32_t domain_id)
{
    uint32_t known = um_tr_engine_domain_id(srs->engine);
    if (domain_id == 0 || domain_id == known) {
        return;
    }
    if (known == 0) {
        um_tr_engine_set_domain_id(srs->engine, domain_id);
        srs->self.domain_id = domain_id;
        um_log(UM_LOG_INFO, "Core-10403-34",
               "Domain ID discovered via SRS Controller (%p); context resides in Domain ID %u.", (void *)srs,
               domain_id);
        return;
    }
    um_log_limited(um_log_of_all(), um_loop_now(srs->loop), UM_LOG_WARNING, "Core-10403-32",
                   "Domain ID %u from SRS Controller (%p) ignored; context resides in Domain ID %u.", domain_id,
                   (void *)srs, known);
}

static void on_active(void *io, uint32_t domain_id)
{
    struct connection *connection = io;
    struct um_tr_srs *srs = connection->srs;
    connection->failed = srs->none_told = false;
    learn_domain(srs, domain_id);
    srs->self.domain_id = um_tr_engine_domain_id(srs->engine);
    um_tr_service_connected(connection->service, um_loop_now(srs->loop));
}

static void on_lost(void *io)
{
    struct connection *connection = io;
    um_tr_service_lost(connection->service, um_loop_now(connection->srs->loop));
}

static void on_attempt_failed(void *io)
{
    struct um_tr_srs *srs = ((struct connection *)io)->srs;
    bool none = true;
    ((struct connection *)io)->failed = true;
    EACH_CONNECTION(connection, srs)
    {
        none = none && connection->failed;
    }
    if (none && !srs->none_told) {
        srs->none_told = true;
        um_log(
            UM_LOG_WARNING, "Core-10403-04",
            "SRS Controller (%p) SID (0x%x) for ContextID (%u) is unable to connect to any configured Server; it goes "
            "on trying",
            (void *)srs, srs->self.session_id, srs->context_id);
    }
}

static void on_source(void *io, const struct um_tr_source *source)
{
    struct connection *connection = io;
    uint64_t now_ns = um_loop_now(connection->srs->loop);
    if (source->cost < 0) {
        um_tr_cache_gone(connection->service, now_ns, source);
    } else {
        um_tr_cache_found(connection->service, now_ns, source);
    }
}

static const struct um_srs_client_ops client_ops = {.connect = start_connect,
                                                    .disconnect = stop_connection,
                                                    .has_output = has_output,
                                                    .on_active = on_active,
                                                    .on_lost = on_lost,
                                                    .on_attempt_failed = on_attempt_failed,
                                                    .on_source = on_source};

/* ---- what is told ---- */

static void tell_news(void *user)
{
    struct um_tr_srs *srs = user;
    EACH_CONNECTION(connection, srs)
    {
        um_srs_client_changed(connection->client, um_loop_now(srs->loop));
        rearm(connection);
    }
}

/* What the cache says is wanted, by name: its own word for that belongs to the service that asks by datagrams. */
struct wanted_item {
    struct um_table_link link; /* its word: the kind */
    struct um_srs_item *item;
};

static struct wanted_item *find_wanted(const struct um_tr_srs *srs, enum um_srs_kind kind, const char *text, size_t len)
{
    struct um_table_link *link = um_table_find(&srs->wanted, um_hash_bytes(text, len));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct wanted_item *wanted = UM_CONTAINER_OF(link, struct wanted_item, link);
        if (link->word == (uint32_t)kind && wanted->item->len == len && memcmp(wanted->item->text, text, len) == 0) {
            return wanted;
        }
    }
    return NULL;
}

static int add_wanted(struct um_tr_srs *srs, enum um_srs_kind kind, const char *text, size_t len)
{
    struct wanted_item *wanted = um_calloc(1, sizeof *wanted);
    if (wanted == NULL) {
        return -1;
    }
    wanted->item = um_srs_journal_add(srs->journal, kind, text, len, NULL);
    wanted->link.word = kind;
    if (wanted->item == NULL || um_table_add(&srs->wanted, &wanted->link, um_hash_bytes(text, len)) != 0) {
        if (wanted->item != NULL) {
            um_srs_journal_end(srs->journal, wanted->item);
        }
        um_free(wanted);
        return -1;
    }
    return 0;
}

static void remove_wanted(struct um_tr_srs *srs, enum um_srs_kind kind, const char *text, size_t len)
{
    struct wanted_item *wanted = find_wanted(srs, kind, text, len);
    if (wanted != NULL) {
        um_table_remove(&srs->wanted, &wanted->link);
        um_srs_journal_end(srs->journal, wanted->item);
        um_free(wanted);
        tell_news(srs);
    }
}

static bool tellable(struct um_tr_srs *srs, const char *what, const char *text, size_t len, bool of_a_kind)
{
    char shown[256];
    if (of_a_kind && len <= UM_SRS_TEXT_MAX) {
        return true;
    }
    um_log_limited(
        um_log_of_all(), um_loop_now(srs->loop), UM_LOG_WARNING, "Resolver-20",
        "resolution servers cannot be told of %s [%.60s]: they know names of up to %d characters and patterns "
        "of type pcre",
        what, um_tr_printable(text, shown), UM_SRS_TEXT_MAX);
    return false;
}

static int topic_wanted(void *service, struct um_tr_entry *entry, const struct um_tr_timing *asking)
{
    size_t len;
    const char *name = um_tr_entry_name(entry, &len);
    return tellable(service, "topic", name, len, true) ? add_wanted(service, UM_SRS_TOPIC, name, len) : 0;
}

static void topic_received(void *service, struct um_tr_entry *entry)
{
    struct um_tr_srs *srs = service;
    size_t len;
    const char *name = um_tr_entry_name(entry, &len);
    struct wanted_item *wanted = find_wanted(srs, UM_SRS_TOPIC, name, len);
    if (wanted != NULL) {
        um_srs_journal_publish(srs->journal, wanted->item);
        tell_news(srs);
    }
}

static void topic_unwanted(void *service, struct um_tr_entry *entry)
{
    size_t len;
    const char *name = um_tr_entry_name(entry, &len);
    remove_wanted(service, UM_SRS_TOPIC, name, len);
}

static int pattern_wanted(void *service, struct um_tr_wanted *wanted, const struct um_tr_timing *asking)
{
    struct um_tr_srs *srs = service;
    bool pcre = um_tr_wanted_type(wanted) == LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE;
    if (!tellable(srs, "pattern", wanted->text, wanted->len, pcre)) {
        return 0;
    }
    if (add_wanted(srs, UM_SRS_PATTERN, wanted->text, wanted->len) != 0) {
        return -1;
    }
    um_srs_journal_publish(srs->journal, find_wanted(srs, UM_SRS_PATTERN, wanted->text, wanted->len)->item);
    tell_news(srs);
    return 0;
}

static void pattern_unwanted(void *service, struct um_tr_wanted *wanted)
{
    if (um_tr_wanted_type(wanted) == LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE) {
        remove_wanted(service, UM_SRS_PATTERN, wanted->text, wanted->len);
    }
}

/* The source is still on the server's list, as far as that knows. */
static void source_ended(void *service, const struct um_tr_source *source)
{
    struct connection *connection = service;
    struct um_tr_srs *srs = connection->srs;
    um_srs_leaves_ended(srs->leaves, um_loop_now(srs->loop), source, connection->reader);
}

/* ---- own sources ---- */

static void list_own_again(struct um_tr_srs *srs, uint64_t after_ns)
{
    if (!um_timer_armed(&srs->own_timer)) {
        um_timer_arm(um_loop_wheel(srs->loop), &srs->own_timer, um_loop_now(srs->loop) + after_ns);
    }
}

static void on_own_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_tr_srs *srs = UM_CONTAINER_OF(timer, struct um_tr_srs, own_timer);
    um_srs_journal_stop(srs->journal, OWN_READER);
    um_srs_journal_begin(srs->journal, OWN_READER);
    um_loop_post(srs->loop, &srs->own_command);
}

/* A session with itself ended: whoever comes here for the source later is to find it. */
static void own_source_ended(void *service, const struct um_tr_source *source)
{
    list_own_again(service, UM_NS_PER_SEC);
}

/* The callbacks may end the item. */
static void list_own(struct um_tr_srs *srs, const struct um_srs_item *item)
{
    uint64_t now_ns = um_loop_now(srs->loop);
    struct um_tr_source source = item->at;
    char topic[UM_TR_NAME_MAX + 1];
    bool ended = item->ended;
    memcpy(topic, item->text, item->len + 1);
    source.topic = topic;
    um_srs_journal_take(srs->journal, OWN_READER);
    if (ended) {
        source.cost = -1;
        um_tr_cache_gone(srs->own, now_ns, &source);
    } else if (um_tr_cache_found(srs->own, now_ns, &source) == UM_TR_NOT_KEPT) {
        list_own_again(srs, OWN_RETRY_NS);
    }
}

static void on_own_command(struct um_command *command)
{
    struct um_tr_srs *srs = UM_CONTAINER_OF(command, struct um_tr_srs, own_command);
    const struct um_srs_item *item;
    unsigned count = 0;
    um_tr_cache_enter(srs->cache, um_loop_now(srs->loop));
    while (count++ < OWN_STEP && (item = um_srs_journal_next(srs->journal, OWN_READER)) != NULL) {
        if (item->kind == UM_SRS_SOURCE) {
            list_own(srs, item);
        } else {
            um_srs_journal_take(srs->journal, OWN_READER);
        }
    }
    um_tr_cache_leave(srs->cache);
    if (um_srs_journal_next(srs->journal, OWN_READER) != NULL) {
        um_loop_post(srs->loop, &srs->own_command);
    }
}

struct um_srs_item *um_tr_srs_add_source(struct um_tr_srs *srs, const struct um_tr_source *source)
{
    if (um_transport_place(source->info.type) != UM_PLACE_MEMORY && source->info.src_ip == INADDR_ANY) {
        um_error(
            UM_EINVAL, "CoreApi-10403-300",
            "The context is configured to use a Resolver Service which requires the respective transport interface "
            "to be specified. Topic [%s]: set default_interface, or the interface of its transport",
            source->topic);
        return NULL;
    }
    size_t len = strlen(source->topic);
    tellable(srs, "source of topic", source->topic, len, true);
    struct um_srs_item *item = um_srs_journal_add(srs->journal, UM_SRS_SOURCE, source->topic, len, source);
    if (item == NULL) {
        um_error_nomem("source for resolution servers", sizeof *item + len);
        return NULL;
    }
    if (item->at.request_port != 0 && item->at.request_ip == 0) {
        item->at.request_ip = item->at.info.src_ip;
    }
    um_srs_journal_publish(srs->journal, item);
    um_loop_post(srs->loop, &srs->own_command);
    tell_news(srs);
    return item;
}

void um_tr_srs_remove_source(struct um_tr_srs *srs, struct um_srs_item *item)
{
    um_srs_journal_end(srs->journal, item);
    um_loop_post(srs->loop, &srs->own_command);
    tell_news(srs);
}

/* ---- creation ---- */

static const struct um_tr_service_ops own_ops = {.topic_wanted = topic_wanted,
                                                 .topic_received = topic_received,
                                                 .topic_unwanted = topic_unwanted,
                                                 .pattern_wanted = pattern_wanted,
                                                 .pattern_unwanted = pattern_unwanted,
                                                 .source_ended = own_source_ended};
static const struct um_tr_service_ops listed_ops = {.source_ended = source_ended};

/* The entry's interface, default_interface, any. */
static int choose_address(const struct um_context_options *opts, const lbm_resolver_service_entry_t *entry,
                          struct in_addr *out)
{
    const lbm_ipv4_address_mask_t *own = entry->iface.addr != 0 ? &entry->iface : &opts->default_interface;
    struct um_iface iface;
    out->s_addr = INADDR_ANY;
    if (own->addr != 0) {
        if (um_iface_match(own->addr, own->bits, &iface) != 0) {
            return -1;
        }
        *out = iface.addr;
    }
    return 0;
}

static int open_connection(struct um_tr_srs *srs, const struct um_context_options *opts, size_t i)
{
    struct connection *connection = &srs->connections[i];
    struct um_srs_client_config config = {
        .journal = srs->journal, .reader = (unsigned)i, .self = &srs->self, .context_id = srs->context_id};
    connection->srs = srs;
    connection->reader = (unsigned)i;
    connection->entry = (const lbm_resolver_service_entry_t *)opts->resolver_service.items + i;
    um_stream_init(&connection->stream);
    um_command_init(&connection->output, on_output);
    um_timer_init(&connection->timer, on_timer);
    config.service_ip.s_addr = connection->entry->service_ip;
    config.service_port = ntohs(connection->entry->service_port);
    um_random_bytes(&config.seed, sizeof config.seed);
    if (choose_address(opts, connection->entry, &connection->from) != 0) {
        return -1;
    }
    connection->service = um_tr_cache_add_service(srs->cache, UM_TR_LIST, &listed_ops, connection);
    connection->client = connection->service == NULL ? NULL : um_srs_client_create(&config, &client_ops, connection);
    return connection->client == NULL ? -1 : 0;
}

static int open_own(struct um_tr_srs *srs)
{
    um_command_init(&srs->own_command, on_own_command);
    um_timer_init(&srs->own_timer, on_own_timer);
    srs->journal = um_srs_journal_create();
    srs->leaves =
        srs->journal == NULL ? NULL : um_srs_leaves_create(srs->journal, um_loop_wheel(srs->loop), tell_news, srs);
    srs->own = srs->leaves == NULL ? NULL : um_tr_cache_add_service(srs->cache, UM_TR_LIST, &own_ops, srs);
    if (srs->own == NULL) {
        return -1;
    }
    um_tr_service_connected(srs->own, um_loop_now(srs->loop));
    um_srs_journal_begin(srs->journal, OWN_READER);
    return 0;
}

struct um_tr_srs *um_tr_srs_create(struct um_loop *loop, const struct um_context_options *opts,
                                   const uint8_t ctxinst[8], struct um_tr_engine *engine)
{
    struct um_tr_srs *srs = um_calloc(1, sizeof *srs);
    if (srs == NULL) {
        um_error_nomem("topic resolution by resolution servers", sizeof *srs);
        return NULL;
    }
    srs->loop = loop;
    srs->engine = engine;
    srs->cache = um_tr_engine_cache(engine);
    memcpy(srs->ctxinst, ctxinst, sizeof srs->ctxinst);
    srs->context_id = um_get32(ctxinst + 4);
    srs->self = (struct um_srs_self){.ctxinst = srs->ctxinst,
                                     .version = UM_TR_WIRE_VERSION,
                                     .session_id = um_random_u32_nonzero(),
                                     .interest_mode = opts->resolver_service_interest_mode,
                                     .tls = opts->use_tls != 0,
                                     .compression = opts->compression != 0};
    int rc = open_own(srs);
    for (size_t i = 0; i < opts->resolver_service.count && i < UM_SRS_SERVICES_MAX && rc == 0; i++) {
        srs->count = i + 1;
        rc = open_connection(srs, opts, i);
    }
    if (rc != 0) {
        um_tr_srs_close(srs);
        return NULL;
    }
    EACH_CONNECTION(connection, srs)
    {
        um_srs_client_start(connection->client, um_loop_now(loop));
        rearm(connection);
    }
    return srs;
}

void um_tr_srs_set_host_id(struct um_tr_srs *srs, uint32_t host_id)
{
    srs->self.host_id = host_id;
}

/* ---- the end ---- */

/* The rest, as far as the other side takes it in a moment. */
static void tell_rest(struct connection *connection, uint64_t until_ns)
{
    struct pollfd wait = {.fd = connection->stream.fd, .events = POLLOUT};
    um_srs_client_finish(connection->client);
    um_socket_set_graceful(connection->stream.fd);
    for (;;) {
        write_some(connection, um_loop_now(connection->srs->loop));
        uint64_t now_ns = um_clock_ns();
        if (!is_open(connection) || !connection->output_wanted || now_ns >= until_ns) {
            return;
        }
        poll(&wait, 1, (int)((until_ns - now_ns) / UM_NS_PER_MS + 1));
    }
}

static void close_connection(struct connection *connection, uint64_t until_ns)
{
    struct um_tr_srs *srs = connection->srs;
    if (connection->client != NULL && um_srs_client_state(connection->client) == UM_SRS_ACTIVE) {
        tell_rest(connection, until_ns);
    }
    stop_connection(connection, NULL, 0);
    um_loop_unpost(srs->loop, &connection->output);
    um_timer_cancel(um_loop_wheel(srs->loop), &connection->timer);
    um_srs_client_destroy(connection->client);
}

static void free_wanted(struct um_tr_srs *srs)
{
    for (size_t i = 0; i < srs->wanted.capacity; i++) {
        struct um_table_link *link = srs->wanted.buckets[i];
        while (link != NULL) {
            struct um_table_link *next = link->next;
            um_free(UM_CONTAINER_OF(link, struct wanted_item, link));
            link = next;
        }
    }
    um_table_free(&srs->wanted);
}

void um_tr_srs_close(struct um_tr_srs *srs)
{
    if (srs == NULL) {
        return;
    }
    uint64_t until_ns = um_clock_ns() + CLOSE_WAIT_NS;
    EACH_CONNECTION(connection, srs)
    {
        close_connection(connection, until_ns);
    }
    um_loop_unpost(srs->loop, &srs->own_command);
    um_timer_cancel(um_loop_wheel(srs->loop), &srs->own_timer);
    um_srs_leaves_destroy(srs->leaves);
    um_srs_journal_destroy(srs->journal);
    free_wanted(srs);
    um_free(srs);
}

/* ---- figures ---- */

void um_tr_srs_get_stats(const struct um_tr_srs *srs, struct um_srs_link_stats *out, unsigned *connected)
{
    *out = (struct um_srs_link_stats){0};
    *connected = 0;
    EACH_CONNECTION(connection, (struct um_tr_srs *)srs)
    {
        struct um_srs_link_stats one;
        um_srs_client_get_stats(connection->client, &one);
        out->connections += one.connections;
        out->lost += one.lost;
        out->failed += one.failed;
        out->records_sent += one.records_sent;
        out->sources += one.sources;
        out->ends += one.ends;
        out->ignored += one.ignored;
        out->invalid += one.invalid;
        *connected += um_srs_client_state(connection->client) == UM_SRS_ACTIVE;
    }
}

void um_tr_srs_reset_stats(struct um_tr_srs *srs)
{
    EACH_CONNECTION(connection, srs)
    {
        um_srs_client_reset_stats(connection->client);
    }
}
