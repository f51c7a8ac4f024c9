/* See um_srs_client.h. */
#include "resolver/um_srs_client.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "resolver/um_tr_cache.h"
#include "wire/um_rsocket.h"

#define REGISTRATION_STREAM 1u
#define SOURCES_STREAM 3u
#define FIRST_RECORDS_STREAM 5u
#define OUTPUT_SIZE 65536u
#define BATCH_MAX 16384u      /* bytes of records in a frame */
#define CONTROL_ROOM 256u     /* of the output, for what is not records */
#define LATE_NS UM_NS_PER_SEC /* a timer that is this late: this process stood still, not the other one */

struct um_srs_client {
    struct um_srs_client_config config;
    struct um_srs_client_ops ops;
    void *io;
    struct um_rng rng;
    enum um_srs_state state;
    uint64_t now_ns;
    uint64_t due_ns;   /* of the state: the end of its patience, or of the back-off */
    uint64_t heard_ns; /* last frame */
    uint64_t keepalive_due_ns;
    uint64_t told_ns;     /* latest news */
    uint64_t tell_due_ns; /* of news that wait for others; UM_NEVER: none does */
    uint64_t active_ns;   /* since when */
    uint64_t backoff_ns;  /* the latest; 0: none since the last steady connection */
    struct in_addr local_ip;
    uint16_t local_port;
    struct um_rsocket_reader reader;
    bool reading; /* um_srs_client_received() is on the stack */
    bool finishing;
    uint32_t next_stream;
    uint32_t credit;   /* frames that the server may still send */
    uint32_t to_grant; /* taken since more was granted */
    /* To be sent before records. */
    bool keepalive_owed, answer_owed, grant_owed, cancel_owed;
    size_t out_begin, out_end; /* of `out`: not sent */
    struct um_srs_link_stats stats;
    uint8_t out[OUTPUT_SIZE];
};

/* ---- log lines ---- */

static const char *address(struct in_addr ip, char text[INET_ADDRSTRLEN])
{
    return inet_ntop(AF_INET, &ip, text, INET_ADDRSTRLEN);
}

/* `each`: the beginning and the end of a connection, which come at a pace of their own. */
static void __attribute__((format(printf, 5, 6)))
log_line(struct um_srs_client *client, bool each, int level, const char *id, const char *format, ...)
{
    char server[INET_ADDRSTRLEN], local[INET_ADDRSTRLEN], what[200], line[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line,
             "SRS Controller Connection (%p) SID (0x%x) %s Server (%s:%u) Local Addr (%s:%u) for ContextID (%u)",
             (void *)client, client->config.self->session_id, what, address(client->config.service_ip, server),
             client->config.service_port, address(client->local_ip, local), client->local_port,
             client->config.context_id);
    if (each) {
        um_log(level, id, "%s", line);
    } else {
        um_log_limited(um_log_of_ip(client->config.service_ip.s_addr), client->now_ns, level, id, "%s", line);
    }
}

/* ---- the life of connections ---- */

static void forget_connection(struct um_srs_client *client)
{
    um_rsocket_reader_free(&client->reader);
    client->out_begin = client->out_end = 0;
    client->keepalive_owed = client->answer_owed = client->grant_owed = client->cancel_owed = false;
    client->next_stream = FIRST_RECORDS_STREAM;
    client->credit = UM_SRS_CREDIT;
    client->to_grant = 0;
    client->tell_due_ns = UM_NEVER;
    client->local_ip.s_addr = 0;
    client->local_port = 0;
}

/* Doubled each time, and never the same for two contexts that lost the same server. */
static uint64_t next_backoff(struct um_srs_client *client)
{
    uint64_t first = um_rng_range(&client->rng, UM_SRS_BACKOFF_FIRST_NS / 2, UM_SRS_BACKOFF_FIRST_NS * 3 / 2);
    uint64_t most = um_rng_range(&client->rng, UM_SRS_BACKOFF_MOST_NS * 3 / 4, UM_SRS_BACKOFF_MOST_NS * 5 / 4);
    uint64_t next = client->backoff_ns == 0 ? first : 2 * client->backoff_ns;
    return next < most ? next : most;
}

static void back_off(struct um_srs_client *client)
{
    client->state = UM_SRS_BACKOFF;
    client->backoff_ns = next_backoff(client);
    client->due_ns = client->now_ns + client->backoff_ns;
    client->keepalive_due_ns = UM_NEVER;
    forget_connection(client);
}

static void disconnect(struct um_srs_client *client)
{
    client->ops.disconnect(client->io, client->out + client->out_begin, client->out_end - client->out_begin);
}

/* The attempt came to nothing. The line is the caller's. */
static void fail(struct um_srs_client *client)
{
    client->stats.failed++;
    disconnect(client);
    back_off(client);
    client->ops.on_attempt_failed(client->io);
}

/* The connection has ended, or is ended here. */
static void lose(struct um_srs_client *client, const char *why)
{
    if (client->state != UM_SRS_ACTIVE) {
        fail(client);
        return;
    }
    log_line(client, true, UM_LOG_WARNING, "Core-10654-02", "got a disconnect (%s) from the", why);
    client->stats.lost++;
    if (client->now_ns - client->active_ns >= UM_SRS_STEADY_NS) {
        client->backoff_ns = 0;
    }
    disconnect(client);
    um_srs_journal_stop(client->config.journal, client->config.reader);
    back_off(client);
    client->ops.on_lost(client->io);
}

static void attempt(struct um_srs_client *client)
{
    client->state = UM_SRS_CONNECTING;
    client->due_ns = client->now_ns + UM_SRS_CONNECT_NS;
    if (client->ops.connect(client->io) != 0) {
        log_line(client, false, UM_LOG_WARNING, "Core-10779-02", "is unable to initiate connection (%.120s) to the",
                 um_errmsg());
        fail(client);
    }
}

/* ---- output ---- */

static bool put_frame(struct um_srs_client *client, const struct um_rsocket_frame *frame)
{
    size_t len = um_rsocket_encode(frame, client->out + client->out_end, OUTPUT_SIZE - client->out_end);
    client->out_end += len;
    return len != 0;
}

static bool put_registration(struct um_srs_client *client)
{
    const struct um_srs_self *self = client->config.self;
    struct um_lbmsrs_request request = {.app_type = UM_LBMSRS_APPLICATION,
                                        .client_addr = client->local_ip.s_addr,
                                        .client_port = client->local_port,
                                        .session_id = self->session_id,
                                        .host_id = self->host_id,
                                        .protocol_version = UM_LBMSRS_PROTOCOL_VERSION,
                                        .interest_mode = self->interest_mode,
                                        .local_domain_id = self->domain_id};
    uint8_t data[UM_LBMSRS_REQUEST_LEN];
    struct um_rsocket_frame frame;
    um_rsocket_setup(&frame, UM_SRS_KEEPALIVE_NS / UM_NS_PER_MS, UM_SRS_LIFETIME_NS / UM_NS_PER_MS);
    if (!put_frame(client, &frame)) {
        return false;
    }
    um_lbmsrs_put_request(data, &request);
    frame = (struct um_rsocket_frame){
        .type = UM_RSOCKET_REQUEST_RESPONSE, .stream = REGISTRATION_STREAM, .data = {data, sizeof data}};
    return put_frame(client, &frame);
}

static void put_stream_request(struct um_srs_client *client)
{
    uint8_t data[UM_LBMSRS_STREAM_REQUEST_LEN];
    um_lbmsrs_put_stream_request(data);
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_REQUEST_STREAM,
                                     .stream = SOURCES_STREAM,
                                     .request_n = UM_SRS_CREDIT,
                                     .data = {data, sizeof data}};
    put_frame(client, &frame);
}

/* What is owed and has room is sent once, however often the other side made it owed. */
static void put_control(struct um_srs_client *client)
{
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_KEEPALIVE};
    client->answer_owed = client->answer_owed && !put_frame(client, &frame);
    frame.flags = UM_RSOCKET_RESPOND;
    client->keepalive_owed = client->keepalive_owed && !put_frame(client, &frame);
    if (client->grant_owed) {
        frame = (struct um_rsocket_frame){
            .type = UM_RSOCKET_REQUEST_N, .stream = SOURCES_STREAM, .request_n = client->to_grant};
        if (put_frame(client, &frame)) {
            client->credit += client->to_grant;
            client->to_grant = 0;
            client->grant_owed = false;
        }
    }
}

/* Records that the journal has for this reader, up to the end of the batch. */
static size_t put_records(struct um_srs_client *client, uint8_t *out, size_t room)
{
    struct um_srs_journal *journal = client->config.journal;
    const struct um_srs_item *item;
    size_t used = 0;
    while ((item = um_srs_journal_next(journal, client->config.reader)) != NULL) {
        size_t len = um_srs_put_item(item, client->config.self, out + used, room - used);
        if (len == 0 && (used > 0 || room < UM_LBMSRS_RECORD_MAX)) {
            break;
        }
        used += len;
        client->stats.records_sent += len != 0; /* else no record can hold it; nobody is told for ever */
        um_srs_journal_take(journal, client->config.reader);
    }
    return used;
}

/* One frame of records. False: there is none, or no room. */
static bool put_batch(struct um_srs_client *client)
{
    size_t room = OUTPUT_SIZE - client->out_end;
    size_t least = UM_RSOCKET_HEAD_LEN + UM_LBMSRS_RECORD_MAX + CONTROL_ROOM;
    if (room < least || client->state != UM_SRS_ACTIVE || client->next_stream > UM_RSOCKET_STREAM_MAX) {
        return false;
    }
    room -= UM_RSOCKET_HEAD_LEN + CONTROL_ROOM;
    uint8_t *head = client->out + client->out_end;
    size_t len = put_records(client, head + UM_RSOCKET_HEAD_LEN, room < BATCH_MAX ? room : BATCH_MAX);
    if (len == 0) {
        return false;
    }
    um_rsocket_put_head(head, client->next_stream, UM_RSOCKET_REQUEST_FNF, 0, len);
    client->out_end += UM_RSOCKET_HEAD_LEN + len;
    client->next_stream += 2;
    client->told_ns = client->now_ns;
    return true;
}

static void fill(struct um_srs_client *client)
{
    if (client->out_begin > 0) {
        client->out_end -= client->out_begin;
        memmove(client->out, client->out + client->out_begin, client->out_end);
        client->out_begin = 0;
    }
    put_control(client);
    while (put_batch(client)) {
    }
    if (client->finishing && um_srs_journal_next(client->config.journal, client->config.reader) == NULL) {
        struct um_rsocket_frame frame = {.type = UM_RSOCKET_CANCEL, .stream = SOURCES_STREAM};
        client->cancel_owed = client->cancel_owed && !put_frame(client, &frame);
    }
}

size_t um_srs_client_output(struct um_srs_client *client, uint64_t now_ns, const uint8_t **data)
{
    client->now_ns = now_ns;
    if (client->out_end - client->out_begin < BATCH_MAX) {
        fill(client);
    }
    if (client->next_stream > UM_RSOCKET_STREAM_MAX && client->out_begin == client->out_end && !client->reading) {
        lose(client, "its stream numbers are used up");
    }
    *data = client->out + client->out_begin;
    return client->out_end - client->out_begin;
}

void um_srs_client_sent(struct um_srs_client *client, size_t len)
{
    client->out_begin += len;
}

static bool connected(const struct um_srs_client *client)
{
    return client->state == UM_SRS_REGISTERING || client->state == UM_SRS_ACTIVE;
}

/* An application makes its sources and receivers one by one, and each would be a packet of its own, with an answer. */
void um_srs_client_changed(struct um_srs_client *client, uint64_t now_ns)
{
    if (client->state != UM_SRS_ACTIVE || client->tell_due_ns != UM_NEVER) {
        return;
    }
    if (now_ns >= client->told_ns + UM_SRS_GATHER_NS) {
        client->told_ns = now_ns;
        client->ops.has_output(client->io);
    } else {
        client->tell_due_ns = client->told_ns + UM_SRS_GATHER_NS;
    }
}

void um_srs_client_finish(struct um_srs_client *client)
{
    client->finishing = client->cancel_owed = client->state == UM_SRS_ACTIVE;
}

/* ---- input: sources ---- */

static void refuse_source(struct um_srs_client *client, enum um_srs_verdict verdict,
                          const struct um_lbmsrs_record *record)
{
    char topic[256], source[256];
    if (verdict == UM_SRS_OTHER_WORLD) {
        client->stats.ignored++;
        return;
    }
    client->stats.invalid++;
    um_tr_printable((const char *)record->topic.ptr, topic);
    um_tr_printable((const char *)record->source.ptr, source);
    bool bad = verdict == UM_SRS_BAD_SOURCE;
    log_line(client, false, UM_LOG_WARNING, bad ? "Core-10403-21" : "Core-10403-23",
             "%s [%.40s] of topic [%.60s] from the",
             bad ? "could not parse the source string" : "got a suspicious source", source, topic);
}

static void take_source(struct um_srs_client *client, const struct um_lbmsrs_record *record)
{
    struct um_tr_source source;
    enum um_srs_verdict verdict = um_srs_read_source(record, client->config.self, &source);
    if (verdict != UM_SRS_TAKEN) {
        refuse_source(client, verdict, record);
        return;
    }
    source.told_by = client->config.service_ip.s_addr;
    *(source.cost < 0 ? &client->stats.ends : &client->stats.sources) += 1;
    client->ops.on_source(client->io, &source);
}

/* Records of interest are for routers. */
static void take_stray(struct um_srs_client *client, const struct um_lbmsrs_record *record)
{
    bool info = record->id == UM_LBMSRS_RIR || record->id == UM_LBMSRS_RER;
    bool wildcard = record->id == UM_LBMSRS_WIR || record->id == UM_LBMSRS_WER;
    client->stats.ignored++;
    log_line(client, false, UM_LOG_WARNING,
             record->id == UM_LBMSRS_RIR   ? "Core-10720-5"
             : record->id == UM_LBMSRS_RER ? "Core-10720-6"
             : record->id == UM_LBMSRS_WIR ? "Core-10722-2"
             : wildcard                    ? "Core-10722-4"
                                           : "Core-10403-25",
             info || wildcard ? "is no router and got a record of interest (%s) from the"
                              : "got a record (%s) from the",
             um_lbmsrs_name(record));
}

/* False: the rest of the batch is of no use. */
static bool take_batch(struct um_srs_client *client, struct um_slice batch)
{
    struct um_lbmsrs_record record;
    enum um_lbmsrs_rc rc;
    while ((rc = um_lbmsrs_next(&batch, &record)) == UM_LBMSRS_OK) {
        if (record.id == UM_LBMSRS_SIR) {
            take_source(client, &record);
        } else {
            take_stray(client, &record);
        }
    }
    if (rc == UM_LBMSRS_DONE) {
        return true;
    }
    client->stats.invalid++;
    if (rc == UM_LBMSRS_UNKNOWN) {
        log_line(client, false, UM_LOG_WARNING, "Core-10403-25", "received an invalid Message ID (%u) from the",
                 record.id);
    } else {
        log_line(client, false, UM_LOG_WARNING, "Core-10403-24", "could not parse the data from the");
    }
    return false;
}

/* ---- input: frames ---- */

static void reject_fragments(struct um_srs_client *client)
{
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_ERROR, .error = UM_RSOCKET_APPLICATION_ERROR};
    put_frame(client, &frame);
}

static void on_invalid(struct um_srs_client *client, const char *what)
{
    client->stats.invalid++;
    log_line(client, false, UM_LOG_WARNING, "Core-10403-02", "received an invalid message (%s) from the", what);
    lose(client, what);
}

static void on_registered(struct um_srs_client *client, const struct um_rsocket_frame *frame)
{
    struct um_lbmsrs_response response;
    if (!um_lbmsrs_decode_response(frame->data, &response)) {
        client->stats.invalid++;
        log_line(client, false, UM_LOG_WARNING, "Core-10403-31", "could not parse the registration response from the");
        fail(client);
        return;
    }
    log_line(client, true, UM_LOG_INFO, "Core-10403-08", "received the initial connection from the");
    client->state = UM_SRS_ACTIVE;
    client->active_ns = client->now_ns;
    client->due_ns = UM_NEVER;
    client->stats.connections++;
    put_stream_request(client);
    client->ops.on_active(client->io, response.local_domain_id);
    um_srs_journal_begin(client->config.journal, client->config.reader);
    client->ops.has_output(client->io);
}

static void on_sources(struct um_srs_client *client, const struct um_rsocket_frame *frame)
{
    if ((frame->flags & UM_RSOCKET_NEXT) != 0) {
        if (client->credit == 0) {
            on_invalid(client, "more frames than were asked for");
            return;
        }
        client->credit--;
        if (++client->to_grant >= UM_SRS_CREDIT_STEP) {
            client->grant_owed = true;
            client->ops.has_output(client->io);
        }
        if (!take_batch(client, frame->data)) {
            lose(client, "its data could not be parsed");
            return;
        }
    }
    if ((frame->flags & UM_RSOCKET_COMPLETE) != 0) {
        lose(client, "it ended the stream of sources");
    }
}

static void on_payload(struct um_srs_client *client, const struct um_rsocket_frame *frame)
{
    bool registering = client->state == UM_SRS_REGISTERING;
    if ((frame->flags & UM_RSOCKET_FOLLOWS) != 0) {
        reject_fragments(client);
        on_invalid(client, "a fragment");
    } else if (registering && frame->stream == REGISTRATION_STREAM && (frame->flags & UM_RSOCKET_NEXT) != 0) {
        on_registered(client, frame);
    } else if (!registering && frame->stream == SOURCES_STREAM) {
        on_sources(client, frame);
    } else if (registering || frame->stream != REGISTRATION_STREAM) {
        on_invalid(client, "a payload nobody asked for");
    }
}

static void on_error(struct um_srs_client *client, const struct um_rsocket_frame *frame)
{
    char shown[256], why[200], text[101];
    size_t len = frame->data.len < sizeof text - 1 ? frame->data.len : sizeof text - 1;
    memcpy(text, len == 0 ? (const uint8_t *)"" : frame->data.ptr, len);
    text[len] = '\0';
    snprintf(why, sizeof why, "error 0x%03x [%s]", frame->error, um_tr_printable(text, shown));
    if (client->state == UM_SRS_REGISTERING) {
        log_line(client, false, UM_LOG_WARNING, "Core-10403-05", "was refused (%.160s) by the", why);
    }
    lose(client, why);
}

static void on_frame(struct um_srs_client *client, const struct um_rsocket_frame *frame)
{
    client->heard_ns = client->now_ns;
    switch (frame->type) {
    case UM_RSOCKET_PAYLOAD:
        on_payload(client, frame);
        break;
    case UM_RSOCKET_KEEPALIVE:
        if ((frame->flags & UM_RSOCKET_RESPOND) != 0) {
            client->answer_owed = true;
            client->ops.has_output(client->io);
        }
        break;
    case UM_RSOCKET_ERROR:
        on_error(client, frame);
        break;
    case UM_RSOCKET_METADATA_PUSH: /* extension records, which nobody sends to a peer that does not announce them */
    case UM_RSOCKET_EXT:
        client->stats.ignored++;
        break;
    default:
        on_invalid(client, "a frame of a type that servers do not send");
    }
}

void um_srs_client_received(struct um_srs_client *client, uint64_t now_ns, const uint8_t *data, size_t len)
{
    struct um_slice input = {data, len};
    struct um_rsocket_frame frame;
    enum um_rsocket_rc rc = UM_RSOCKET_FRAME;
    client->now_ns = now_ns;
    client->reading = true;
    while (connected(client) && (rc = um_rsocket_read(&client->reader, &input, &frame)) == UM_RSOCKET_FRAME) {
        on_frame(client, &frame);
    }
    client->reading = false;
    if (connected(client) && rc == UM_RSOCKET_NO_MEMORY) {
        lose(client, "out of memory");
    } else if (connected(client) && rc != UM_RSOCKET_MORE) {
        on_invalid(client, rc == UM_RSOCKET_CORRUPT ? "not a frame" : "a frame that is too long");
    }
}

/* ---- connection and time ---- */

void um_srs_client_connected(struct um_srs_client *client, uint64_t now_ns, struct in_addr ip, uint16_t port)
{
    client->now_ns = client->heard_ns = now_ns;
    client->local_ip = ip;
    client->local_port = port;
    client->state = UM_SRS_REGISTERING;
    client->due_ns = now_ns + UM_SRS_CONNECT_NS;
    client->keepalive_due_ns = now_ns + UM_SRS_KEEPALIVE_NS;
    um_rsocket_reader_init(&client->reader, UM_RSOCKET_FRAME_MAX);
    put_registration(client);
    client->ops.has_output(client->io);
}

void um_srs_client_closed(struct um_srs_client *client, uint64_t now_ns, const char *why)
{
    client->now_ns = now_ns;
    if (client->state == UM_SRS_CONNECTING) {
        log_line(client, false, UM_LOG_WARNING, "Core-10779-02", "is unable to initiate connection (%.120s) to the",
                 why);
    } else if (client->state == UM_SRS_REGISTERING) {
        log_line(client, false, UM_LOG_WARNING, "Core-10403-05",
                 "is unable to send the initial registration request (%.120s) to the", why);
    }
    lose(client, why);
}

static void on_patience_over(struct um_srs_client *client)
{
    bool connecting = client->state == UM_SRS_CONNECTING;
    log_line(client, false, UM_LOG_WARNING, connecting ? "Core-10779-02" : "Core-10403-05",
             connecting ? "is unable to initiate connection (no answer in 5 seconds) to the"
                        : "got no answer to the initial registration request in 5 seconds from the");
    fail(client);
}

static void check_keepalive(struct um_srs_client *client)
{
    uint64_t over_ns = client->heard_ns + UM_SRS_LIFETIME_NS;
    if (client->now_ns >= over_ns + LATE_NS) { /* what came while this process stood still is to be read first */
        client->heard_ns = client->now_ns - UM_SRS_LIFETIME_NS + UM_SRS_KEEPALIVE_NS;
    } else if (client->now_ns >= over_ns) {
        lose(client, "nothing was heard of it for 20 seconds");
        return;
    }
    if (client->now_ns >= client->keepalive_due_ns) {
        client->keepalive_due_ns = client->now_ns + UM_SRS_KEEPALIVE_NS;
        client->keepalive_owed = true;
        client->ops.has_output(client->io);
    }
}

void um_srs_client_on_timer(struct um_srs_client *client, uint64_t now_ns)
{
    client->now_ns = now_ns;
    if (now_ns >= client->due_ns) {
        if (client->state == UM_SRS_BACKOFF) {
            attempt(client);
        } else {
            on_patience_over(client);
        }
        return;
    }
    if (now_ns >= client->tell_due_ns) {
        client->tell_due_ns = UM_NEVER;
        client->ops.has_output(client->io);
    }
    if (connected(client)) {
        check_keepalive(client);
    }
}

uint64_t um_srs_client_due(const struct um_srs_client *client)
{
    uint64_t due_ns = client->due_ns;
    if (connected(client)) {
        uint64_t over_ns = client->heard_ns + UM_SRS_LIFETIME_NS;
        due_ns = over_ns < due_ns ? over_ns : due_ns;
        due_ns = client->keepalive_due_ns < due_ns ? client->keepalive_due_ns : due_ns;
        due_ns = client->tell_due_ns < due_ns ? client->tell_due_ns : due_ns;
    }
    return due_ns;
}

/* ---- life and figures ---- */

struct um_srs_client *um_srs_client_create(const struct um_srs_client_config *config,
                                           const struct um_srs_client_ops *ops, void *io)
{
    struct um_srs_client *client = um_calloc(1, sizeof *client);
    if (client == NULL) {
        um_error_nomem("connection to a resolution server", sizeof *client);
        return NULL;
    }
    client->config = *config;
    client->ops = *ops;
    client->io = io;
    client->due_ns = client->keepalive_due_ns = UM_NEVER;
    um_rng_seed(&client->rng, config->seed);
    forget_connection(client);
    return client;
}

void um_srs_client_destroy(struct um_srs_client *client)
{
    if (client == NULL) {
        return;
    }
    um_srs_journal_stop(client->config.journal, client->config.reader);
    um_rsocket_reader_free(&client->reader);
    um_free(client);
}

void um_srs_client_start(struct um_srs_client *client, uint64_t now_ns)
{
    client->now_ns = now_ns;
    attempt(client);
}

enum um_srs_state um_srs_client_state(const struct um_srs_client *client)
{
    return client->state;
}

void um_srs_client_get_stats(const struct um_srs_client *client, struct um_srs_link_stats *out)
{
    *out = client->stats;
}

void um_srs_client_reset_stats(struct um_srs_client *client)
{
    client->stats = (struct um_srs_link_stats){0};
}
