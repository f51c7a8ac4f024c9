/* Connections of the SRS: streams of net/ on one side, peers of the engine on the
 * other. See srs_server.h. */
#define _GNU_SOURCE
#include "srs_server.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "net/um_stream.h"
#include "net/um_stream_listener.h"

#define BACKLOG 1024
#define ACCEPTS_IN_A_PASS 64
#define READ_BYTES 65536
#define KEPT_OUTPUT 65536 /* a larger buffer is given back when it is empty */

struct connection {
    struct srs_server *server;
    struct um_list node; /* connections or dead */
    struct um_stream stream;
    struct um_fd ufd;
    struct um_srs_peer *peer; /* NULL: the engine has done with it */
    uint8_t *out;             /* bytes [from, to) wait for the socket */
    size_t out_capacity, from, to;
};

struct srs_server {
    struct um_loop *loop;
    const struct srs_settings *settings;
    struct um_srs_engine *engine;
    struct um_stream_listener listener;
    struct um_timer timer;
    struct um_list connections, dead; /* dead ones are freed when nothing is on the stack that may look at them */
    struct um_timer burial;
    uint8_t buffer[READ_BYTES];
};

/* ---- time ------------------------------------------------------------------------- */

static void arm(struct srs_server *server)
{
    uint64_t due = um_srs_engine_next_timer(server->engine);
    if (due == UM_NEVER) {
        um_timer_cancel(um_loop_wheel(server->loop), &server->timer);
    } else if (!um_timer_armed(&server->timer) || server->timer.due_ns != due) {
        um_timer_arm(um_loop_wheel(server->loop), &server->timer, due);
    }
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct srs_server *server = UM_CONTAINER_OF(timer, struct srs_server, timer);
    um_srs_engine_on_timer(server->engine, now_ns);
    arm(server);
}

/* ---- one connection ----------------------------------------------------------------- */

static void bury(struct srs_server *server)
{
    struct um_list *first;
    while ((first = um_list_first(&server->dead)) != NULL) {
        struct connection *connection = UM_CONTAINER_OF(first, struct connection, node);
        um_list_remove(first);
        um_free(connection->out);
        um_free(connection);
    }
}

static void on_burial(struct um_timer *timer, uint64_t now_ns)
{
    bury(UM_CONTAINER_OF(timer, struct srs_server, burial));
}

static void end(struct connection *connection, enum um_stream_closing how)
{
    struct srs_server *server = connection->server;
    um_loop_remove_fd(server->loop, &connection->ufd);
    um_stream_close(&connection->stream, how);
    connection->peer = NULL;
    um_list_remove(&connection->node);
    um_list_push_back(&server->dead, &connection->node);
    um_timer_arm(um_loop_wheel(server->loop), &server->burial, 0);
}

static bool is_dead(const struct connection *connection)
{
    return connection->stream.ops == NULL;
}

static void watch(struct connection *connection)
{
    uint32_t wanted = UM_FD_READ | (connection->from < connection->to ? UM_FD_WRITE : 0);
    um_loop_set_interest(connection->server->loop, &connection->ufd, um_stream_interest(&connection->stream, wanted));
}

/* False: the connection is at its end. */
static bool write_out(struct connection *connection)
{
    while (connection->from < connection->to) {
        ssize_t count =
            um_stream_write(&connection->stream, connection->out + connection->from, connection->to - connection->from);
        if (count < 0) {
            return false;
        }
        if (count == 0) {
            break;
        }
        connection->from += (size_t)count;
    }
    if (connection->from == connection->to) {
        connection->from = connection->to = 0;
        if (connection->out_capacity > KEPT_OUTPUT) {
            um_free(connection->out);
            connection->out = NULL;
            connection->out_capacity = 0;
        }
    }
    return true;
}

static bool keep(struct connection *connection, const uint8_t *bytes, size_t len)
{
    if (connection->from > 0) {
        memmove(connection->out, connection->out + connection->from, connection->to - connection->from);
        connection->to -= connection->from;
        connection->from = 0;
    }
    if (connection->to + len > connection->out_capacity) {
        size_t capacity = connection->to + len;
        uint8_t *out = um_realloc(connection->out, capacity);
        if (out == NULL) {
            return false;
        }
        connection->out = out;
        connection->out_capacity = capacity;
    }
    memcpy(connection->out + connection->to, bytes, len);
    connection->to += len;
    return true;
}

/* For the engine. It waits when something is left over, so there is never more than a frame or two of it. An error
 * shows when the connection is read. */
static bool send_frame(void *arg, void *handle, const uint8_t *frame, size_t len)
{
    struct connection *connection = handle;
    ssize_t sent = connection->from < connection->to ? 0 : um_stream_write(&connection->stream, frame, len);
    if (sent < 0) {
        return false;
    }
    if ((size_t)sent < len && !keep(connection, frame + sent, len - (size_t)sent)) {
        um_stream_abort(&connection->stream); /* the rest of a frame cannot be left out */
        return false;
    }
    watch(connection);
    return connection->from == connection->to;
}

/* For the engine. */
static void close_connection(void *arg, void *handle)
{
    struct connection *connection = handle;
    write_out(connection);
    end(connection, UM_STREAM_GENTLY);
}

static void lost(struct connection *connection, uint64_t now_ns)
{
    struct um_srs_peer *peer = connection->peer;
    end(connection, UM_STREAM_NOW);
    um_srs_peer_on_disconnect(peer, now_ns);
}

static void on_readable(struct connection *connection, uint64_t now_ns)
{
    struct srs_server *server = connection->server;
    ssize_t count = um_stream_read(&connection->stream, server->buffer, sizeof(server->buffer));
    if (count < 0) {
        lost(connection, now_ns);
    } else if (count > 0) {
        um_srs_peer_on_bytes(connection->peer, now_ns, server->buffer, (size_t)count);
    }
}

static void on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct connection *connection = UM_CONTAINER_OF(ufd, struct connection, ufd);
    struct srs_server *server = connection->server;
    uint32_t means = um_stream_ready(&connection->stream, ready);
    if (means & UM_FD_READ) {
        on_readable(connection, now_ns);
    }
    if (!is_dead(connection) && (means & UM_FD_WRITE) != 0 && connection->from < connection->to) {
        if (!write_out(connection)) {
            lost(connection, now_ns);
        } else if (connection->from == connection->to) {
            um_srs_peer_on_writable(connection->peer, now_ns);
        }
    }
    if (!is_dead(connection)) {
        watch(connection);
    }
    arm(server);
}

/* ---- new ones --------------------------------------------------------------------------- */

static void on_stream(struct um_stream_listener *listener, struct um_stream *stream, const struct sockaddr_in *from,
                      uint64_t now_ns)
{
    struct srs_server *server = UM_CONTAINER_OF(listener, struct srs_server, listener);
    struct connection *connection = um_calloc(1, sizeof(*connection));
    if (connection == NULL) {
        um_stream_close(stream, UM_STREAM_NOW);
        return;
    }
    connection->server = server;
    connection->stream = *stream;
    um_socket_set_nodelay(connection->stream.fd, true);
    um_fd_init(&connection->ufd, connection->stream.fd, on_ready);
    um_list_init(&connection->node);
    connection->peer =
        um_srs_engine_connect(server->engine, now_ns, connection, from->sin_addr.s_addr, ntohs(from->sin_port));
    if (connection->peer == NULL || um_loop_add_fd(server->loop, &connection->ufd, UM_FD_READ) != 0) {
        if (connection->peer != NULL) {
            um_srs_peer_on_disconnect(connection->peer, now_ns);
        }
        um_stream_close(&connection->stream, UM_STREAM_NOW);
        um_free(connection);
        return;
    }
    um_list_push_back(&server->connections, &connection->node);
    arm(server);
}

static void on_pause(struct um_stream_listener *listener, int err, uint64_t now_ns)
{
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_ERR, "SRS-um-8",
                   "no connection can be accepted for now: %s: raise the limit of open files (ulimit -n)",
                   strerror(err));
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static bool resolve(const char *name, struct in_addr *out)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = getaddrinfo(name, NULL, &hints, &found);
    if (rc != 0) {
        um_log(
            UM_LOG_CRIT, "SRS-10386-1321",
            "Attempt to start TCP Server failed; Server IP address[%s]: must be an address of this host or its name: "
            "%s",
            name, gai_strerror(rc));
        return false;
    }
    *out = ((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr;
    freeaddrinfo(found);
    return true;
}

static bool listen_on(struct srs_server *server, const struct srs_settings *settings)
{
    struct in_addr addr;
    char name[INET_ADDRSTRLEN];
    uint16_t port = 0;
    int error = 0;
    if (!resolve(settings->interface, &addr)) {
        return false;
    }
    inet_ntop(AF_INET, &addr, name, sizeof(name));
    int fd = um_socket_tcp_listen(addr, settings->port, BACKLOG, true, &port, &error);
    if (fd < 0) {
        um_log(UM_LOG_CRIT, "SRS-10386-1321",
               "Attempt to start TCP Server failed; Server IP address[%s] port[%u] failed: %s", name,
               (unsigned)settings->port, strerror(error));
        return false;
    }
    server->listener.burst = ACCEPTS_IN_A_PASS;
    server->listener.on_stream = on_stream;
    server->listener.on_pause = on_pause;
    if (um_stream_listener_start(&server->listener, server->loop, fd) != 0) {
        um_log(UM_LOG_CRIT, "SRS-10386-1321", "Attempt to start TCP Server failed: %s", um_errmsg());
        return false;
    }
    um_log(UM_LOG_INFO, "SRS-um-9", "srs started on %s:%u", name, (unsigned)port);
    return true;
}

static uint64_t used_ns(void *arg)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return um_s_ns(used.tv_sec) + (uint64_t)used.tv_nsec;
}

static struct um_srs_engine *
make_engine(const struct srs_settings *settings,
            void (*event)(void *, const char *, uint32_t, uint16_t, uint32_t, const char *, const char *), void *arg)
{
    struct um_srs_config config;
    um_srs_config_default(&config);
    config.source_lifetime_ns = um_s_ns(settings->source_lifetime_s);
    config.interest_lifetime_ns = um_s_ns(settings->interest_lifetime_s);
    config.leave_backoff_ns = um_ms_ns(settings->leave_backoff_ms);
    config.service_interval_ns = um_ms_ns(settings->service_ms);
    config.batch_records = (uint32_t)settings->batch_records;
    config.batch_bytes = (uint32_t)settings->batch_bytes;
    config.turn_batches = (uint32_t)settings->stream_max;
    config.cpu_ns = used_ns;
    config.send = send_frame;
    config.close = close_connection;
    config.event = event;
    config.arg = arg;
    return um_srs_engine_create(&config, um_clock_ns());
}

static int start_on_loop(void *arg)
{
    struct srs_server *server = arg;
    return listen_on(server, server->settings) ? 0 : -1;
}

struct srs_server *srs_server_start(struct um_loop *loop, const struct srs_settings *settings,
                                    void (*event)(void *, const char *, uint32_t, uint16_t, uint32_t, const char *,
                                                  const char *),
                                    void *arg)
{
    struct srs_server *server = um_calloc(1, sizeof(*server));
    if (server != NULL) {
        server->engine = make_engine(settings, event, arg);
    }
    if (server == NULL || server->engine == NULL) {
        um_log(UM_LOG_CRIT, "SRS-um-10", "srs cannot start: out of memory");
        um_free(server);
        return NULL;
    }
    server->loop = loop;
    server->settings = settings;
    um_list_init(&server->connections);
    um_list_init(&server->dead);
    um_timer_init(&server->timer, on_timer);
    um_timer_init(&server->burial, on_burial);
    if (um_loop_call(loop, start_on_loop, server) != 0) {
        um_srs_engine_destroy(server->engine);
        um_free(server);
        return NULL;
    }
    return server;
}

static void log_sums(const struct um_srs_stats *stats)
{
    um_log(UM_LOG_INFO, "SRS-um-11",
           "srs ends: %" PRIu64 " registrations, %" PRIu64 " connections refused, %" PRIu64
           " not registered in time, %" PRIu64 " with bad frames, %" PRIu64 " clients refused, %" PRIu64
           " silent, %" PRIu64 " too slow, %" PRIu64 " records refused, %" PRIu64 " log lines held back",
           stats->connects, stats->refused_connections, stats->late_registrations, stats->bad_frames,
           stats->refused_clients, stats->silent_clients, stats->slow_clients, stats->refused_records,
           stats->held_back_lines);
}

static int stop_on_loop(void *arg)
{
    struct srs_server *server = arg;
    um_stream_listener_stop(&server->listener);
    um_srs_engine_close_all(server->engine, um_clock_ns());
    um_timer_cancel(um_loop_wheel(server->loop), &server->timer);
    um_timer_cancel(um_loop_wheel(server->loop), &server->burial);
    bury(server);
    return 0;
}

void srs_server_stop(struct srs_server *server)
{
    um_loop_call(server->loop, stop_on_loop, server);
    log_sums(um_srs_engine_stats(server->engine));
    um_srs_engine_destroy(server->engine);
    um_free(server);
}

struct um_srs_engine *srs_server_engine(struct srs_server *server)
{
    return server->engine;
}
