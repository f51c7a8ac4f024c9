/* Clients of TCP source sessions: what they send (the session id and nothing else of
 * use), when they are written to by the loop, and their end. Everything here runs on
 * the loop. How they come is in um_tcp_accept.c. */
#include "transport/tcp/um_tcp_client.h"

#include "base/um_error.h"
#include "base/um_mem.h"

#define UM_READS_PER_PASS 16

/* ---- what a client sends ---- */

static void ignore_message(struct um_tcp_client *client, uint8_t type, uint8_t next_hdr, uint64_t now_ns)
{
    struct um_tcp_src_session *session = client->session;
    um_src_session_lock(&session->base);
    session->base.drops.ignored_from_clients++;
    um_src_session_unlock(&session->base);
    if (type != UM_LBMC_CONTROL && type != UM_LBMC_EOT) {
        um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-6937-32",
                       "%s sent a data message to a source: ignored", client->text);
    } else if (next_hdr == UM_LBMC_HDR_TCP_SID) {
        um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-6937-10",
                       "%s sent a session id header that is not well formed: ignored", client->text);
    } else {
        um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-6937-33",
                       "%s sent a control message (header 0x%02x) that a source does not know: ignored", client->text,
                       next_hdr);
    }
}

/* False: the client means another session. */
static bool take_message(struct um_tcp_client *client, const struct um_lbmc_msg *msg, bool well_formed, uint64_t now_ns)
{
    if (well_formed && msg->type == UM_LBMC_CONTROL && (msg->present & UM_LBMC_HAS_TCP_SID)) {
        return msg->tcp_sid == client->session->session_id;
    }
    ignore_message(client, client->in[0] & 0x0f, client->in[1], now_ns);
    return true;
}

/* Use up the messages at the start of `in`. False: close. */
static bool parse(struct um_tcp_client *client, uint64_t now_ns)
{
    size_t at = 0;
    bool keep = true;
    while (keep && at < client->in_len) {
        struct um_lbmc_msg msg;
        size_t left = client->in_len - at;
        enum um_lbmc_rc rc = um_lbmc_decode(client->in + at, left, &msg);
        if (rc == UM_LBMC_FRAMING && client->in[at] == UM_STREAM_TLS_BYTE) {
            um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-9565-38",
                           "%s: the other side uses TLS, this context has use_tls 0: connection closed", client->text);
            return false;
        }
        if (rc == UM_LBMC_FRAMING) {
            um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-6036-1",
                           "%s: the stream is not LBMC (starts with %02x %02x): closing the connection", client->text,
                           client->in[at], left > 1 ? client->in[at + 1] : 0);
            return false;
        }
        if (rc == UM_LBMC_SHORT) {
            size_t need = left >= UM_LBMC_CONTROL_HDR_LEN ? um_get16(client->in + at + 2) : 0;
            if (need > sizeof client->in) {
                ignore_message(client, client->in[at] & 0x0f, client->in[at + 1], now_ns);
                client->in_skip = need - left;
                at = client->in_len;
            }
            break;
        }
        memmove(client->in, client->in + at, left); /* take_message looks at the start */
        client->in_len = left;
        at = msg.msglen;
        keep = take_message(client, &msg, rc == UM_LBMC_OK, now_ns);
    }
    memmove(client->in, client->in + at, client->in_len - at);
    client->in_len -= at;
    return keep;
}

static bool feed(struct um_tcp_client *client, const uint8_t *data, size_t len, uint64_t now_ns)
{
    while (len > 0) {
        size_t part = client->in_skip < len ? client->in_skip : len;
        client->in_skip -= part;
        data += part;
        len -= part;
        part = sizeof client->in - client->in_len < len ? sizeof client->in - client->in_len : len;
        memcpy(client->in + client->in_len, data, part);
        client->in_len += part;
        data += part;
        len -= part;
        if (part > 0 && !parse(client, now_ns)) {
            return false;
        }
    }
    return true;
}

enum client_read_rc { READ_ALL, READ_MORE, READ_END };

/* Under the lock, since a filter reads and writes with one state. */
static ssize_t read_some(struct um_tcp_client *client, void *data, size_t len, bool *pending)
{
    struct um_src_session *base = &client->session->base;
    um_src_session_lock(base);
    bool writer_reads = client->stream.write_wants == UM_FD_READ;
    ssize_t got = um_stream_read(&client->stream, data, len);
    *pending = client->stream.pending;
    if (writer_reads && um_tcp_client_has_output(client)) {
        /* The writer waited for what has just been read. */
        if (base->polling) {
            um_tcp_interrupt(base);
        } else {
            um_tcp_ask_loop_to_write(client);
        }
    }
    um_src_session_unlock(base);
    return got;
}

/* A filter could make nothing of what came. */
static void tell_end(struct um_tcp_client *client, uint64_t now_ns)
{
    struct um_tcp_src_session *session = client->session;
    um_src_session_lock(&session->base);
    const char *reason = client->stream.end == UM_STREAM_FAILED ? client->stream.reason : NULL;
    um_src_session_unlock(&session->base);
    if (reason != NULL) {
        um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-5688-3935", "%s: connection closed: %s",
                       client->text, reason);
    }
}

static enum client_read_rc client_read(struct um_tcp_client *client, uint64_t now_ns)
{
    uint8_t data[4096];
    bool pending = false;
    for (int i = 0; i < UM_READS_PER_PASS; i++) {
        ssize_t got = read_some(client, data, sizeof data, &pending);
        if (got < 0) {
            tell_end(client, now_ns);
        }
        if (got < 0 || (got > 0 && !feed(client, data, (size_t)got, now_ns))) {
            return READ_END;
        }
        if (got == 0) {
            return READ_ALL;
        }
    }
    return pending ? READ_MORE : READ_ALL; /* otherwise the descriptor tells */
}

/* The socket has room. A waiting sender that polls it too goes first. */
static void client_write(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    um_src_session_lock(base);
    if (!base->polling) {
        um_tcp_client_write(client);
    }
    if (base->polling || !um_tcp_client_has_output(client)) {
        client->write_wanted = false;
    }
    um_src_session_unlock(base);
}

/* A client whose queue nobody would write out is not kept. */
static void watch(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    um_src_session_lock(base);
    bool writes = client->write_wanted && !client->dead;
    uint32_t interest =
        writes ? um_stream_interest(&client->stream, UM_FD_READ | UM_FD_WRITE) : client->stream.read_wants;
    um_src_session_unlock(base);
    if (um_loop_set_interest(base->env->loop, &client->ufd, interest) == 0) {
        return;
    }
    um_log(UM_LOG_ERR, "Core-5688-3932", "%s: cannot be watched, connection closed: %s", client->text, um_errmsg());
    um_src_session_lock(base);
    um_tcp_client_fail(client);
    um_src_session_unlock(base);
}

static void client_ready(struct um_tcp_client *client, uint32_t means, uint64_t now_ns)
{
    enum client_read_rc rc = READ_ALL;
    if (means & UM_FD_WRITE) {
        client_write(client);
    }
    if (means & UM_FD_READ) {
        rc = client_read(client, now_ns);
    }
    if (rc == READ_END) {
        um_tcp_client_close(client);
        return;
    }
    if (rc == READ_MORE) {
        um_loop_post(client->session->base.env->loop, &client->session->base.command);
    }
    watch(client);
}

void um_tcp_client_on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_tcp_client *client = UM_CONTAINER_OF(ufd, struct um_tcp_client, ufd);
    struct um_src_session *base = &client->session->base;
    if (!client->stream.opened && !um_tcp_client_opens(client)) {
        return;
    }
    um_src_session_lock(base);
    uint32_t means = um_stream_ready(&client->stream, ready);
    um_src_session_unlock(base);
    client_ready(client, means, now_ns);
}

/* ---- the end ---- */

void um_tcp_src_session_report(struct um_tcp_src_session *session, const char *text, bool connected)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->base.streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->announce_pending) {
            continue; /* the announcement lists the clients there are then */
        }
        if (connected) {
            stream->events->on_connect(stream, text);
        } else {
            stream->events->on_disconnect(stream, text);
        }
    }
}

static void client_free(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    um_src_session_lock(base);
    if (!client->dead) {
        client->dead = true;
        um_tcp_client_drop_queue(client);
    }
    um_src_session_unlock(base);
    um_u32_map_clear(&client->topics);
    um_datagram_queue_free(&client->queue);
    um_free(client);
}

void um_tcp_client_discard(struct um_tcp_client *client, enum um_stream_closing how)
{
    struct um_tcp_src_session *session = client->session;
    um_src_session_lock(&session->base);
    int at = 0;
    while (at < session->base.clients && session->clients[at] != client) {
        at++;
    }
    if (at < session->base.clients) {
        session->base.clients--;
        memmove(session->clients + at, session->clients + at + 1,
                (size_t)(session->base.clients - at) * sizeof *session->clients);
    }
    if (session->base.polling) {
        um_tcp_interrupt(&session->base); /* a poll holds on to the socket */
    }
    um_src_session_unlock(&session->base);
    um_loop_remove_fd(session->base.env->loop, &client->ufd);
    struct um_stream stream = client->stream;
    client_free(client);
    um_stream_close(&stream, how);
    um_src_session_lock(&session->base);
    um_tcp_pressure(session);
    um_src_session_unlock(&session->base);
}

void um_tcp_client_close(struct um_tcp_client *client)
{
    struct um_tcp_src_session *session = client->session;
    char text[sizeof client->text];
    memcpy(text, client->text, sizeof text);
    um_tcp_client_discard(client, UM_STREAM_NOW);
    um_tcp_report_drops(session, um_loop_now(session->base.env->loop));
    um_tcp_src_session_report(session, text, false);
}

bool um_tcp_client_wants(const struct um_tcp_client *client, uint32_t tidx)
{
    bool listed = um_u32_map_get(&client->topics, tidx) != NULL;
    return client->session->ssf == UM_TCP_SSF_EXCLUSION ? !listed : listed;
}

/* Tell a client the last number of the topics it will get (or of one of them), so that it is ready. */
void um_tcp_client_put_tsni(struct um_tcp_client *client, struct um_src_stream *only)
{
    struct um_src_session *base = &client->session->base;
    uint32_t tidx[UM_LBMC_TSNI_MAX], sqn[UM_LBMC_TSNI_MAX];
    size_t count = 0;
    struct um_datagram *datagram = NULL;
    struct um_list *it;
    for (it = base->streams.next;; it = it->next) {
        bool end = it == &base->streams;
        struct um_src_stream *stream = end ? NULL : UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (count == UM_LBMC_TSNI_MAX || (end && count > 0)) {
            if (datagram != NULL && datagram->len + 8 + 8 * count > base->datagram_max) {
                um_tcp_client_put(client, datagram);
                um_datagram_unref(base, datagram);
                datagram = NULL;
            }
            if (datagram == NULL && (datagram = um_datagram_get(base)) == NULL) {
                um_tcp_client_fail_no_memory(client);
                return;
            }
            datagram->len += (uint32_t)um_lbmc_encode_tsni(datagram->data + datagram->len, tidx, sqn, count);
            datagram->continues = base->open_messages > 0;
            count = 0;
        }
        if (end) {
            break;
        }
        bool wanted = only != NULL
                          ? stream == only
                          : client->session->ssf == UM_TCP_SSF_NONE || um_tcp_client_wants(client, stream->tidx);
        if (wanted) {
            tidx[count] = stream->tidx;
            sqn[count++] = um_src_stream_last_sqn(stream);
        }
    }
    if (datagram != NULL) {
        um_tcp_client_put(client, datagram);
        um_datagram_unref(base, datagram);
    }
}

void um_tcp_src_session_announce(struct um_src_session *base, struct um_src_stream *stream)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    for (int i = 0; i < base->clients; i++) { /* only the loop changes the array */
        stream->events->on_connect(stream, session->clients[i]->text);
    }
}

/* Senders asked for the loop's help with queues, and for lines in the log. */
void um_tcp_src_session_on_command(struct um_src_session *base)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    for (int i = base->clients - 1; i >= 0; i--) { /* backwards: it may close the client and so remove it */
        struct um_tcp_client *client = session->clients[i];
        um_src_session_lock(base);
        bool pending = client->stream.pending;
        um_src_session_unlock(base);
        if (pending) {
            client_ready(client, UM_FD_READ, um_loop_now(base->env->loop));
        } else {
            watch(client);
        }
    }
    um_tcp_report_drops(session, um_loop_now(base->env->loop));
}
