/* A TLS connection as a byte stream. OpenSSL reads and writes what is covered through
 * functions of ours, which keep what the socket does not take: so a write is over when
 * its bytes are in a record, as the rules of um_stream.h want it, and no write raises a
 * signal. See um_tls.h. */
#include "net/um_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/um_error.h"
#include "base/um_mem.h"

#define RECORD_MAX 16384u
#define HELD_MAX (64u * 1024u) /* more than one record only where alerts and key updates come behind it */
#define ALERT_RECORD 0x15

struct tls_stream {
    struct um_stream below;
    struct um_tls *tls;
    um_ssl *ssl; /* NULL: nothing has come from the one who connects */
    bool accepts;
    bool heard;    /* the first byte has come */
    bool foreign;  /* and is none of TLS */
    bool read_end; /* the end is noted, and was behind bytes: the next read tells */
    uint8_t first; /* byte */
    uint8_t *held; /* what the socket did not take, from held_at to held_len; NULL: never so far */
    size_t held_at, held_len, held_size;
    uint8_t *gather; /* a record's worth of pieces; NULL: never so far */
};

/* ---- what OpenSSL reads and writes ---- */

static bool is_holding(const struct tls_stream *t)
{
    return t->held_at < t->held_len;
}

static bool hold(struct tls_stream *t, const char *data, size_t len)
{
    if (len == 0) {
        return true;
    }
    if (!is_holding(t)) {
        t->held_at = t->held_len = 0;
    }
    if (t->held_len + len > t->held_size) {
        size_t size = t->held_len + len < RECORD_MAX + 1024 ? RECORD_MAX + 1024 : t->held_len + len;
        uint8_t *more = size <= HELD_MAX ? um_realloc(t->held, size) : NULL;
        if (more == NULL) {
            return false;
        }
        t->held = more;
        t->held_size = size;
    }
    memcpy(t->held + t->held_len, data, len);
    t->held_len += len;
    return true;
}

static int bio_write(um_bio *bio, const char *data, int len)
{
    struct tls_stream *t = um_tls_library()->BIO_get_data(bio);
    ssize_t sent = is_holding(t) ? 0 : um_stream_write(&t->below, data, (size_t)len);
    if (sent < 0 || !hold(t, data + sent, (size_t)(len - sent))) {
        return -1;
    }
    return len;
}

static int bio_read(um_bio *bio, char *data, int len)
{
    const struct um_tls_library *lib = um_tls_library();
    struct tls_stream *t = lib->BIO_get_data(bio);
    lib->BIO_clear_flags(bio, UM_BIO_FLAGS_READ | UM_BIO_FLAGS_SHOULD_RETRY);
    ssize_t got = um_stream_read(&t->below, data, (size_t)len);
    if (got == 0) {
        lib->BIO_set_flags(bio, UM_BIO_FLAGS_READ | UM_BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    if (got < 0) {
        return t->below.end == UM_STREAM_EOF ? 0 : -1;
    }
    if (!t->heard) {
        t->heard = true;
        t->first = (uint8_t)data[0];
        t->foreign = t->first != UM_STREAM_TLS_BYTE && (t->accepts || t->first != ALERT_RECORD);
    }
    return t->foreign ? -1 : (int)got;
}

static long bio_ctrl(um_bio *bio, int command, long number, void *pointer)
{
    return command == UM_BIO_CTRL_FLUSH;
}

static um_bio_method *method;

static void make_method(void)
{
    const struct um_tls_library *lib = um_tls_library();
    method = lib->BIO_meth_new(lib->BIO_get_new_index() | UM_BIO_TYPE_SOURCE_SINK, "byte stream");
    if (method != NULL) {
        lib->BIO_meth_set_write(method, bio_write);
        lib->BIO_meth_set_read(method, bio_read);
        lib->BIO_meth_set_ctrl(method, bio_ctrl);
    }
}

/* False: out of memory. */
static bool make_ssl(struct tls_stream *t)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct um_tls_library *lib = t->tls->lib;
    pthread_once(&once, make_method);
    um_bio *bio = method != NULL ? lib->BIO_new(method) : NULL;
    t->ssl = bio != NULL ? lib->SSL_new(t->tls->ctx) : NULL;
    if (bio == NULL) {
        return false;
    }
    if (t->ssl == NULL) {
        lib->BIO_free(bio);
        return false;
    }
    lib->BIO_set_data(bio, t);
    lib->BIO_set_init(bio, 1);
    lib->SSL_set_bio(t->ssl, bio, bio);
    if (t->accepts) {
        lib->SSL_set_accept_state(t->ssl);
    } else {
        lib->SSL_set_connect_state(t->ssl);
    }
    return true;
}

/* ---- ends ---- */

static int out_of_memory(struct um_stream *stream)
{
    return um_stream_ended(stream, UM_STREAM_FAILED, ENOMEM, NULL);
}

struct peer_name {
    char text[INET_ADDRSTRLEN + 8];
};

static struct peer_name name_of(const struct um_stream *stream)
{
    struct peer_name name;
    char ip[INET_ADDRSTRLEN];
    struct sockaddr_in peer = um_stream_peer(stream);
    inet_ntop(AF_INET, &peer.sin_addr, ip, sizeof ip);
    snprintf(name.text, sizeof name.text, "%s:%u", ip, ntohs(peer.sin_port));
    return name;
}

static int not_tls(struct um_stream *stream, struct tls_stream *t)
{
    um_log_limited(um_log_of_ip(um_stream_peer(stream).sin_addr.s_addr), um_clock_ns(), UM_LOG_WARNING, "Core-9565-38",
                   "connection %s %s: the other side does not use TLS (its first byte is 0x%02x), this context has "
                   "use_tls 1: connection closed",
                   t->accepts ? "from" : "to", name_of(stream).text, t->first);
    return um_stream_ended(stream, UM_STREAM_FAILED, EPROTO, "the other side does not use TLS");
}

static int refuse(struct um_stream *stream, struct tls_stream *t, const char *why)
{
    um_log_limited(um_log_of_ip(um_stream_peer(stream).sin_addr.s_addr), um_clock_ns(), UM_LOG_WARNING,
                   t->accepts ? "Core-9565-28" : "Core-9565-27",
                   "connection %s %s: the certificate of the other side is refused: %s (tls_trusted_certificates)",
                   t->accepts ? "from" : "to", name_of(stream).text, why);
    return um_stream_ended(stream, UM_STREAM_FAILED, EPROTO, why);
}

/* OpenSSL gave up. */
static int fail(struct um_stream *stream, struct tls_stream *t)
{
    const struct um_tls_library *lib = t->tls->lib;
    long verified = lib->SSL_get_verify_result(t->ssl);
    const char *reason = lib->ERR_reason_error_string(lib->ERR_peek_error());
    lib->ERR_clear_error();
    if (t->foreign) {
        return not_tls(stream, t);
    }
    if (verified != 0 && !stream->opened) {
        return refuse(stream, t, lib->X509_verify_cert_error_string(verified));
    }
    if (t->below.end == UM_STREAM_EOF) {
        return um_stream_ended(stream, UM_STREAM_FAILED, ECONNRESET,
                               stream->opened ? "cut off: the other side did not end it (no close notify of TLS)"
                                              : "closed by the other side during the TLS handshake");
    }
    if (t->below.end != UM_STREAM_LIVES) {
        return um_stream_ended(stream, UM_STREAM_FAILED, t->below.err, t->below.reason);
    }
    return um_stream_ended(stream, UM_STREAM_FAILED, EPROTO, reason != NULL ? reason : "TLS failed");
}

/* ---- held bytes ---- */

static void set_unsent(struct um_stream *stream, struct tls_stream *t)
{
    stream->unsent = is_holding(t) || t->below.unsent;
    stream->write_wants = t->below.write_wants;
}

/* 1: nothing is held back any more. 0: the socket takes no more. -1: the end. */
static int push(struct um_stream *stream, struct tls_stream *t)
{
    while (is_holding(t)) {
        ssize_t sent = um_stream_write(&t->below, t->held + t->held_at, t->held_len - t->held_at);
        if (sent < 0) {
            return um_stream_ended(stream, UM_STREAM_FAILED, t->below.err, t->below.reason);
        }
        if (sent == 0) {
            break;
        }
        t->held_at += (size_t)sent;
    }
    bool lives = um_stream_flush(&t->below);
    set_unsent(stream, t);
    return !lives ? um_stream_ended(stream, UM_STREAM_FAILED, t->below.err, t->below.reason) : !stream->unsent;
}

/* ---- the handshake ---- */

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * UM_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int shake_hands(struct tls_stream *t)
{
    if (!t->accepts) {
        return t->tls->lib->SSL_do_handshake(t->ssl);
    }
    uint64_t before_ns = cpu_ns();
    int rc = t->tls->lib->SSL_do_handshake(t->ssl);
    atomic_fetch_add_explicit(&t->tls->worked_ns, cpu_ns() - before_ns, memory_order_relaxed);
    return rc;
}

bool um_tls_busy(struct um_tls *tls, uint64_t now_ns)
{
    uint64_t since_ns = atomic_load_explicit(&tls->window_ns, memory_order_relaxed);
    if (now_ns - since_ns >= UM_TLS_WINDOW_NS || now_ns < since_ns) {
        atomic_store_explicit(&tls->window_ns, now_ns, memory_order_relaxed);
        atomic_store_explicit(&tls->worked_ns, 0, memory_order_relaxed);
        return false;
    }
    return atomic_load_explicit(&tls->worked_ns, memory_order_relaxed) >= UM_TLS_WINDOW_WORK_NS;
}

/* Who connects and says nothing costs no more than a plain connection. 1: the first byte is there, and one of TLS. */
static int await_first_byte(struct um_stream *stream, struct tls_stream *t)
{
    ssize_t got = recv(t->below.fd, &t->first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        return um_stream_ended(stream, UM_STREAM_FAILED, got == 0 ? ECONNRESET : errno,
                               "closed by the other side before the TLS handshake");
    }
    if (got < 0) {
        stream->open_wants = t->below.read_wants;
        return 0;
    }
    return t->first == UM_STREAM_TLS_BYTE ? 1 : not_tls(stream, t);
}

static int tls_open(struct um_stream *stream)
{
    struct tls_stream *t = stream->state;
    const struct um_tls_library *lib = t->tls->lib;
    int rc = um_stream_open_below(stream, &t->below);
    if (rc > 0 && t->ssl == NULL && t->accepts) {
        rc = await_first_byte(stream, t);
    }
    if (rc <= 0) {
        return rc;
    }
    if (t->ssl == NULL && !make_ssl(t)) {
        return out_of_memory(stream);
    }
    if (push(stream, t) < 0) {
        return -1;
    }
    lib->ERR_clear_error();
    rc = shake_hands(t);
    set_unsent(stream, t);
    if (rc == 1) {
        const char *why = um_tls_check_names(t->tls, t->ssl, stream->fd);
        stream->pending = lib->SSL_has_pending(t->ssl) == 1;
        stream->read_wants = t->below.read_wants;
        return why == NULL ? 1 : refuse(stream, t, why);
    }
    if (lib->SSL_get_error(t->ssl, rc) != UM_SSL_ERROR_WANT_READ) {
        push(stream, t); /* the alert that says why */
        return fail(stream, t);
    }
    stream->open_wants = (uint8_t)(t->below.read_wants | (stream->unsent ? stream->write_wants : 0));
    return 0;
}

/* ---- bytes ---- */

/* Behind `got` bytes: what kept the next one from coming. */
static ssize_t read_stopped(struct um_stream *stream, struct tls_stream *t, int rc, size_t got)
{
    const struct um_tls_library *lib = t->tls->lib;
    int error = lib->SSL_get_error(t->ssl, rc);
    set_unsent(stream, t);
    if (error == UM_SSL_ERROR_WANT_READ) {
        stream->read_wants = t->below.read_wants;
        stream->pending = t->below.pending;
        return (ssize_t)got;
    }
    if (error == UM_SSL_ERROR_ZERO_RETURN) {
        um_stream_ended(stream, UM_STREAM_EOF, 0, NULL);
    } else {
        fail(stream, t);
    }
    t->read_end = stream->pending = got > 0;
    return got > 0 ? (ssize_t)got : -1;
}

static ssize_t tls_read(struct um_stream *stream, void *data, size_t len)
{
    struct tls_stream *t = stream->state;
    const struct um_tls_library *lib = t->tls->lib;
    size_t got = 0;
    if (t->read_end || (is_holding(t) && push(stream, t) < 0)) {
        return -1;
    }
    lib->ERR_clear_error();
    while (got < len) {
        int rc = lib->SSL_read(t->ssl, (uint8_t *)data + got, (int)(len - got));
        if (rc <= 0) {
            return read_stopped(stream, t, rc, got);
        }
        got += (size_t)rc;
    }
    set_unsent(stream, t);
    stream->pending = lib->SSL_has_pending(t->ssl) == 1 || t->below.pending;
    return (ssize_t)got;
}

/* The next bytes of the pieces, at most a record's worth, in one piece. NULL: out of memory. */
static const uint8_t *next_piece(struct tls_stream *t, const struct iovec *iov, int count, size_t skip, size_t *len)
{
    while (count > 0 && skip >= iov->iov_len) {
        skip -= iov->iov_len;
        iov++;
        count--;
    }
    size_t first = count > 0 ? iov->iov_len - skip : 0;
    if (count <= 1 || first >= RECORD_MAX) {
        *len = first < RECORD_MAX ? first : RECORD_MAX;
        return count > 0 ? (const uint8_t *)iov->iov_base + skip : t->gather;
    }
    if (t->gather == NULL && (t->gather = um_malloc(RECORD_MAX)) == NULL) {
        return NULL;
    }
    *len = 0;
    for (; count > 0 && *len < RECORD_MAX; count--, iov++, skip = 0) {
        size_t part = iov->iov_len - skip < RECORD_MAX - *len ? iov->iov_len - skip : RECORD_MAX - *len;
        memcpy(t->gather + *len, (const uint8_t *)iov->iov_base + skip, part);
        *len += part;
    }
    return t->gather;
}

static ssize_t tls_write(struct um_stream *stream, const struct iovec *iov, int count)
{
    struct tls_stream *t = stream->state;
    const struct um_tls_library *lib = t->tls->lib;
    size_t total = 0, taken = 0;
    int rc = push(stream, t);
    if (rc <= 0 || count == 0) {
        return rc < 0 ? -1 : 0;
    }
    for (int i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    lib->ERR_clear_error();
    while (taken < total && !is_holding(t)) {
        size_t len;
        const uint8_t *piece = next_piece(t, iov, count, taken, &len);
        if (piece == NULL) {
            return out_of_memory(stream);
        }
        rc = lib->SSL_write(t->ssl, piece, (int)len);
        if (rc <= 0) {
            return fail(stream, t);
        }
        taken += (size_t)rc;
    }
    set_unsent(stream, t);
    return (ssize_t)taken;
}

/* ---- beginning and end ---- */

static void tls_close(struct um_stream *stream, enum um_stream_closing how)
{
    struct tls_stream *t = stream->state;
    const struct um_tls_library *lib = t->tls->lib;
    if (stream->opened && stream->end == UM_STREAM_LIVES && push(stream, t) > 0) {
        lib->ERR_clear_error();
        lib->SSL_shutdown(t->ssl);
        lib->ERR_clear_error();
    }
    lib->SSL_free(t->ssl);
    um_stream_close(&t->below, how);
    um_free(t->held);
    um_free(t->gather);
    um_free(t);
}

static const struct um_stream_ops tls_ops = {tls_open, tls_read, tls_write, tls_close};

int um_tls_cover(struct um_tls *tls, struct um_stream *stream, enum um_stream_role role)
{
    struct tls_stream *t = um_calloc(1, sizeof *t);
    if (t == NULL) {
        return um_error_nomem("TLS stream", sizeof *t);
    }
    t->tls = tls;
    t->accepts = role == UM_STREAM_ACCEPTS;
    um_stream_cover(stream, &t->below, &tls_ops, t);
    return 0;
}
