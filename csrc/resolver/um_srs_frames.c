/* Frames of the SRS's clients: set-up, registration, the stream they ask for,
 * batches of records, keepalives. Whoever breaks the rules is closed. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/um_mem.h"
#include "resolver/um_srs_private.h"

#define KEEPALIVE_MIN_MS 500u
#define KEEPALIVE_MAX_MS 60000u
#define LIFETIME_MAX_MS 600000u       /* nobody may be silent for longer, whatever the set-up says */
#define UNREGISTERED_FRAME_MAX 1024u  /* of who has not registered */
#define RETRY_NS (60 * UM_NS_PER_SEC) /* from a record without room to the end of the connection */

const char *srs_peer_name(const struct um_srs_peer *peer, char *out, size_t len)
{
    char ip[INET_ADDRSTRLEN];
    snprintf(out, len, "%s:%u", inet_ntop(AF_INET, &peer->address->ip, ip, sizeof(ip)), peer->port);
    return out;
}

static void report(struct um_srs_peer *peer, const char *type, const char *topic, const char *source)
{
    const struct um_srs_config *config = &peer->engine->config;
    if (config->event != NULL) {
        config->event(config->arg, type, peer->address->ip, peer->port, peer->session->id, topic, source);
    }
}

/* ---- the end of a connection -------------------------------------------------------- */

static void leave_session(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    char name[64];
    report(peer, "UM_CLIENT_DISCONNECT", NULL, NULL);
    engine->stats.active_clients--;
    engine->stats.disconnects++;
    if (srs_may_log(engine)) {
        um_log(UM_LOG_INFO, "SRS-10385-99", "TCP Disconnect received for client[%s] sessionID[0x%08" PRIx32 "]",
               srs_peer_name(peer, name, sizeof(name)), peer->session->id);
    }
    srs_session_away(peer->session);
    peer->session = NULL;
}

void srs_peer_free(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    um_list_remove(&peer->ready);
    um_list_remove(&peer->flooded);
    um_list_remove(&peer->forwarded);
    um_list_remove(&peer->all);
    srs_queue_drop(peer);
    srs_leaves_drop(peer);
    if (peer->session != NULL) {
        leave_session(peer);
    } else {
        engine->unregistered--;
        peer->address->unregistered--;
    }
    engine->connections--;
    peer->address->connections--;
    um_timer_cancel(engine->wheel, &peer->life);
    um_rsocket_reader_free(&peer->reader);
    srs_address_drop(engine, peer->address);
    um_free(peer);
}

void srs_peer_close(struct um_srs_peer *peer, enum um_rsocket_error error)
{
    struct um_srs_engine *engine = peer->engine;
    void *handle = peer->handle;
    if (error != 0) {
        struct um_rsocket_frame frame = {.type = UM_RSOCKET_ERROR, .error = error};
        srs_send_frame(peer, &frame);
    }
    srs_peer_free(peer);
    engine->config.close(engine->config.arg, handle);
}

/* Strangers cannot make the log grow: one line in a while speaks for all of them. `counter` may be NULL. Always false:
 * the peer is no more. */
static bool refuse(struct um_srs_peer *peer, uint64_t *counter, enum um_rsocket_error error, uint32_t stream,
                   const char *id, const char *why)
{
    struct um_srs_engine *engine = peer->engine;
    char name[64];
    if (counter != NULL) {
        (*counter)++;
    }
    um_log_limited(um_log_of_ip(peer->address->ip), engine->now_ns, UM_LOG_WARNING, id, "client[%s] refused: %s",
                   srs_peer_name(peer, name, sizeof(name)), why);
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_ERROR, .stream = stream, .error = error};
    srs_send_frame(peer, &frame);
    srs_peer_close(peer, 0);
    return false;
}

static bool bad(struct um_srs_peer *peer, enum um_rsocket_error error, const char *why)
{
    return refuse(peer, &peer->engine->stats.bad_frames, error, 0, "SRS-10386-1005", why);
}

/* ---- time ------------------------------------------------------------------------------ */

static uint64_t life_due(const struct um_srs_peer *peer)
{
    uint64_t due_ns = peer->heard_ns + peer->lifetime_ns;
    return peer->retry_ns != 0 && peer->retry_ns < due_ns ? peer->retry_ns : due_ns;
}

void srs_refused(struct um_srs_peer *peer)
{
    if (peer->retry_ns == 0) {
        peer->retry_ns = peer->engine->now_ns + RETRY_NS;
        um_timer_arm(peer->engine->wheel, &peer->life, life_due(peer));
    }
}

static void on_life(struct um_timer *timer, uint64_t now_ns)
{
    struct um_srs_peer *peer = UM_CONTAINER_OF(timer, struct um_srs_peer, life);
    struct um_srs_engine *engine = peer->engine;
    if (now_ns < engine->patient_until_ns) {
        um_timer_arm(engine->wheel, timer, engine->patient_until_ns);
    } else if (peer->state != SRS_REGISTERED) {
        engine->stats.late_registrations++;
        refuse(peer, NULL, UM_RSOCKET_REJECTED_SETUP, 0, "SRS-um-5", "it has not registered in time");
    } else if (peer->heard_ns + peer->lifetime_ns <= now_ns) {
        char name[64];
        engine->stats.silent_clients++;
        um_log_limited(um_log_of_ip(peer->address->ip), now_ns, UM_LOG_WARNING, "SRS-10386-7",
                       "Connection to client lost: client[%s] has been silent for %" PRIu64 " ms",
                       srs_peer_name(peer, name, sizeof(name)), (uint64_t)((now_ns - peer->heard_ns) / UM_NS_PER_MS));
        srs_peer_close(peer, UM_RSOCKET_CONNECTION_ERROR);
    } else if (peer->retry_ns != 0 && peer->retry_ns <= now_ns) {
        srs_peer_close(peer, UM_RSOCKET_CONNECTION_ERROR);
    } else {
        um_timer_arm(engine->wheel, timer, life_due(peer));
    }
}

void srs_peer_watch(struct um_srs_peer *peer)
{
    um_timer_init(&peer->life, on_life);
    um_timer_arm(peer->engine->wheel, &peer->life, peer->engine->now_ns + peer->engine->config.register_ns);
    um_rsocket_reader_init(&peer->reader, UNREGISTERED_FRAME_MAX);
}

/* ---- set-up and registration -------------------------------------------------------------- */

static bool on_setup(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    uint64_t *refused = &peer->engine->stats.refused_clients;
    if (frame->type != UM_RSOCKET_SETUP) {
        return refuse(peer, refused, UM_RSOCKET_INVALID_SETUP, 0, "SRS-10386-1005", "its first frame is no SETUP");
    }
    if (frame->major != 1 || (frame->flags & (UM_RSOCKET_RESUMES | UM_RSOCKET_LEASES)) != 0) {
        return refuse(peer, refused, UM_RSOCKET_UNSUPPORTED_SETUP, 0, "SRS-10386-1005",
                      "its SETUP asks for another version, resumption or leases");
    }
    if (frame->keepalive_ms < KEEPALIVE_MIN_MS || frame->keepalive_ms > KEEPALIVE_MAX_MS ||
        frame->lifetime_ms / 2 < frame->keepalive_ms) {
        return refuse(peer, refused, UM_RSOCKET_REJECTED_SETUP, 0, "SRS-10386-1005",
                      "its SETUP must have a keepalive interval of 500..60000 ms and a lifetime of twice that or more");
    }
    peer->lifetime_ns = um_ms_ns(frame->lifetime_ms < LIFETIME_MAX_MS ? frame->lifetime_ms : LIFETIME_MAX_MS);
    peer->state = SRS_SET_UP;
    return true;
}

/* NULL: acceptable. */
static const char *objection(const struct um_lbmsrs_request *request, const char **id)
{
    *id = request->interest_mode > UM_LBMSRS_FILTER_FORWARD ? "SRS-10704-1" : "SRS-10704-2";
    if (request->interest_mode > UM_LBMSRS_FILTER_FORWARD) {
        return "unsupported interestMode in its registration";
    }
    return request->app_type > UM_LBMSRS_STORE ? "unsupported appType in its registration" : NULL;
}

static void respond(struct um_srs_peer *peer, uint32_t stream)
{
    struct um_lbmsrs_response response = {.client_id = peer->id,
                                          .local_domain_id = peer->engine->config.domain_id,
                                          .protocol_version = UM_LBMSRS_PROTOCOL_VERSION};
    uint8_t data[UM_LBMSRS_RESPONSE_LEN];
    um_lbmsrs_put_response(data, &response);
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_PAYLOAD,
                                     .flags = UM_RSOCKET_NEXT | UM_RSOCKET_COMPLETE,
                                     .stream = stream,
                                     .data = {data, sizeof(data)}};
    srs_send_frame(peer, &frame);
}

static void count_registered(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    struct um_srs_stats *stats = &engine->stats;
    engine->unregistered--;
    peer->address->unregistered--;
    stats->connects++;
    stats->active_clients++;
    if (stats->active_clients > stats->max_concurrent) {
        stats->max_concurrent = stats->active_clients;
    }
    peer->id = stats->next_client_id++;
}

static void log_registered(struct um_srs_peer *peer, const struct um_lbmsrs_request *request)
{
    char name[64];
    srs_peer_name(peer, name, sizeof(name));
    if (!srs_may_log(peer->engine)) {
        return;
    }
    um_log(UM_LOG_INFO, "SRS-10385-98",
           "Registration protocolVersion[%u] received for client[%s] sessionID[0x%08" PRIx32 "]",
           request->protocol_version, name, request->session_id);
    if (request->protocol_version < UM_LBMSRS_PROTOCOL_VERSION) {
        um_log(UM_LOG_WARNING, "SRS-10704-3", "client[%s] registers with the earlier protocolVersion[%u]", name,
               request->protocol_version);
    }
}

static bool on_registration(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    struct um_srs_engine *engine = peer->engine;
    struct um_lbmsrs_request request;
    uint64_t *refused = &engine->stats.refused_clients;
    const char *id;
    if (frame->type != UM_RSOCKET_REQUEST_RESPONSE || !um_lbmsrs_decode_request(frame->data, &request)) {
        return refuse(peer, refused, UM_RSOCKET_REJECTED, frame->stream, "SRS-10386-1002", "invalid registration");
    }
    const char *why = objection(&request, &id);
    if (why != NULL) {
        return refuse(peer, refused, UM_RSOCKET_REJECTED, frame->stream, id, why);
    }
    struct srs_session *session = srs_session_find(engine, request.session_id);
    if (session != NULL && session->peer != NULL) {
        srs_peer_close(session->peer, UM_RSOCKET_CONNECTION_CLOSE); /* the connection it has lost */
    }
    session = srs_session_get(engine, request.session_id, peer->address);
    if (session == NULL) {
        return refuse(peer, refused, UM_RSOCKET_REJECTED, frame->stream, "SRS-um-6",
                      "there is no room for its session");
    }
    session->peer = peer;
    peer->session = session;
    peer->state = SRS_REGISTERED;
    peer->mode = request.interest_mode;
    peer->app_type = request.app_type;
    peer->reader.frame_max = UM_RSOCKET_FRAME_MAX < 4 * (size_t)engine->config.batch_bytes
                                 ? UM_RSOCKET_FRAME_MAX
                                 : 4 * (size_t)engine->config.batch_bytes;
    peer->stats.active_sources = session->source_count;
    count_registered(peer);
    log_registered(peer, &request);
    um_timer_arm(engine->wheel, &peer->life, engine->now_ns + peer->lifetime_ns);
    respond(peer, frame->stream);
    report(peer, "UM_CLIENT_CONNECT", NULL, NULL);
    return true;
}

/* ---- after the registration ------------------------------------------------------------------ */

static void begin_lists(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    if (!(peer->mode & UM_LBMSRS_FILTER)) {
        peer->flooding = true;
        peer->flood_until = engine->last_number;
        um_list_push_back(&engine->flooded, &peer->flooded);
    }
    if (peer->mode >= UM_LBMSRS_FLOOD_FORWARD) {
        peer->forwarding = true;
        um_list_push_back(&engine->forwarded, &peer->forwarded);
    }
    srs_peer_ready(peer);
}

static bool on_stream_request(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    if (peer->stream != 0 || !um_lbmsrs_is_stream_request(frame->data)) {
        return refuse(peer, &peer->engine->stats.bad_frames, UM_RSOCKET_REJECTED, frame->stream, "SRS-10386-1003",
                      "invalid stream request");
    }
    peer->stream = frame->stream;
    peer->credit = frame->request_n;
    begin_lists(peer);
    return true;
}

static void on_request_n(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    if (frame->stream == peer->stream) {
        uint64_t credit = (uint64_t)peer->credit + frame->request_n;
        peer->credit = credit < UM_RSOCKET_STREAM_MAX ? (uint32_t)credit : UM_RSOCKET_STREAM_MAX;
        srs_peer_ready(peer);
    }
}

static void on_record(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct um_srs_client_stats *stats = &peer->stats;
    const char *topic = (const char *)record->topic.ptr;
    switch (record->id) {
    case UM_LBMSRS_SIR:
        stats->sir_received++;
        report(peer, "SIR", topic, (const char *)record->source.ptr);
        srs_on_sir(peer, record);
        break;
    case UM_LBMSRS_SDR:
        stats->sdr_received++;
        report(peer, "SDR", topic, "");
        srs_on_sdr(peer, record);
        break;
    case UM_LBMSRS_RIR:
        stats->rir_received++;
        report(peer, "RIR", topic, NULL);
        srs_on_rir(peer, record);
        break;
    case UM_LBMSRS_RDR:
        stats->rdr_received++;
        report(peer, "RDR", topic, NULL);
        srs_on_rdr(peer, record);
        break;
    case UM_LBMSRS_WIR:
        stats->wir_received++;
        report(peer, "WIR", topic, NULL);
        srs_on_wir(peer, record);
        break;
    case UM_LBMSRS_WDR:
        stats->wdr_received++;
        report(peer, "WDR", topic, NULL);
        srs_on_wdr(peer, record);
        break;
    case UM_LBMSRS_SLR:
        stats->slr_received++;
        report(peer, "SLR", topic, (const char *)record->source.ptr);
        srs_on_slr(peer, record);
        break;
    default: /* ends of interest are the SRS's to send */
        stats->invalid_messages++;
    }
}

static void on_batch(struct um_srs_peer *peer, struct um_slice batch)
{
    struct um_lbmsrs_record record;
    enum um_lbmsrs_rc rc;
    char name[64];
    while ((rc = um_lbmsrs_next(&batch, &record)) == UM_LBMSRS_OK) {
        on_record(peer, &record);
    }
    if (rc != UM_LBMSRS_DONE) {
        peer->stats.invalid_messages++;
        um_log_limited(um_log_of_ip(peer->address->ip), peer->engine->now_ns, UM_LOG_WARNING, "SRS-10386-1005",
                       "invalid message[%u] of client[%s]: the rest of its batch is lost", record.id,
                       srs_peer_name(peer, name, sizeof(name)));
    }
}

static void on_cancel(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    if (frame->stream == peer->stream) { /* it leaves: what waits for it is of no use */
        peer->credit = 0;
    }
}

static bool on_request(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    switch (frame->type) {
    case UM_RSOCKET_REQUEST_STREAM:
        return on_stream_request(peer, frame);
    case UM_RSOCKET_REQUEST_FNF:
        on_batch(peer, frame->data);
        return true;
    case UM_RSOCKET_REQUEST_N:
        on_request_n(peer, frame);
        return true;
    case UM_RSOCKET_CANCEL:
        on_cancel(peer, frame);
        return true;
    case UM_RSOCKET_METADATA_PUSH: /* extension records: only between peers of protocol version 2 */
        peer->stats.invalid_messages++;
        return true;
    case UM_RSOCKET_ERROR:
        if (frame->stream == 0) {
            srs_peer_close(peer, 0);
            return false;
        }
        return true;
    default:
        return bad(peer, UM_RSOCKET_CONNECTION_ERROR, "a frame of a type that clients do not send");
    }
}

/* ---- any frame ---------------------------------------------------------------------------------- */

static bool opens_stream(uint8_t type)
{
    return type >= UM_RSOCKET_REQUEST_RESPONSE && type <= UM_RSOCKET_REQUEST_CHANNEL;
}

static void answer_keepalive(struct um_srs_peer *peer)
{
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_KEEPALIVE};
    peer->owes_keepalive = peer->blocked;
    if (!peer->blocked) {
        srs_send_frame(peer, &frame);
    }
}

/* False: the peer is no more. */
static bool on_frame(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    peer->heard_ns = peer->engine->now_ns;
    if (peer->state == SRS_OPEN) {
        return on_setup(peer, frame);
    }
    if (frame->type == UM_RSOCKET_KEEPALIVE) {
        if (frame->flags & UM_RSOCKET_RESPOND) {
            answer_keepalive(peer);
        }
        return true;
    }
    if (frame->type == UM_RSOCKET_EXT) {
        return true;
    }
    if (opens_stream(frame->type)) {
        if ((frame->flags & UM_RSOCKET_FOLLOWS) != 0) {
            return refuse(peer, &peer->engine->stats.bad_frames, UM_RSOCKET_APPLICATION_ERROR, frame->stream,
                          "SRS-10386-1005", "a frame in fragments");
        }
        if (frame->stream % 2 == 0 || frame->stream <= peer->last_stream) {
            return bad(peer, UM_RSOCKET_CONNECTION_ERROR, "a stream number that is even or does not go up");
        }
        peer->last_stream = frame->stream;
    }
    return peer->state == SRS_SET_UP ? on_registration(peer, frame) : on_request(peer, frame);
}

void um_srs_peer_on_bytes(struct um_srs_peer *peer, uint64_t now_ns, const uint8_t *data, size_t len)
{
    struct um_slice input = {data, len};
    struct um_rsocket_frame frame;
    enum um_rsocket_rc rc;
    peer->engine->now_ns = now_ns;
    while ((rc = um_rsocket_read(&peer->reader, &input, &frame)) == UM_RSOCKET_FRAME) {
        if (!on_frame(peer, &frame)) {
            return;
        }
    }
    if (rc != UM_RSOCKET_MORE) {
        bad(peer, UM_RSOCKET_CONNECTION_ERROR,
            rc == UM_RSOCKET_TOO_LONG ? "a frame longer than the bound"
                                      : (rc == UM_RSOCKET_CORRUPT ? "no frame" : "out of memory"));
    }
}

void um_srs_peer_on_writable(struct um_srs_peer *peer, uint64_t now_ns)
{
    peer->engine->now_ns = now_ns;
    peer->blocked = false;
    if (peer->owes_keepalive) {
        answer_keepalive(peer);
    }
    srs_peer_ready(peer);
}

void um_srs_peer_on_disconnect(struct um_srs_peer *peer, uint64_t now_ns)
{
    peer->engine->now_ns = now_ns;
    srs_peer_free(peer);
}
