/* TLS over byte streams: one side of a mutually authenticated connection as a filter
 * (um_stream.h). What all connections of a context share (certificate, trusted
 * certificates, ciphers) is made with the context; a stream under it is as any other: one
 * thread at a time uses it. */
#ifndef UM_NET_TLS_H
#define UM_NET_TLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/um_clock.h"
#include "base/um_log.h"
#include "net/um_stream.h"
#include "net/um_tls_library.h"

/* The default of tls_cipher_suites: with it the suites of TLS 1.3 that OpenSSL offers are accepted, too. */
#define UM_TLS_DEFAULT_SUITES "DHE-RSA-AES256-GCM-SHA384"
/* Whoever connects makes this side compute before it has proved anything: so much of each window of time goes to
 * handshakes of those, then new connections wait for the next one. */
#define UM_TLS_WINDOW_NS (100 * UM_NS_PER_MS)
#define UM_TLS_WINDOW_WORK_NS (40 * UM_NS_PER_MS)

/* The options; NULL or empty: not set. Read by um_tls_create() only. */
struct um_tls_config {
    const char *certificate, *key, *password, *trusted, *suites;
    const char *peer_names; /* of which the other side's certificate must have one */
    const char *overrides;  /* LBM_OPENSSL_CONTEXT_OPTIONS */
};

struct um_tls {
    const struct um_tls_library *lib;
    um_ssl_ctx *ctx;
    char *peer_names;                      /* copied; NULL: any */
    _Atomic uint64_t window_ns, worked_ns; /* when the present window began, and the work of it. Any thread */
};

/* Reads the files. NULL + error, which names the option, the file and what to do. Any thread. */
struct um_tls *um_tls_create(const struct um_tls_config *config);
void um_tls_destroy(struct um_tls *tls); /* no stream is covered any more; NULL: no effect */
/* Covers a stream, see um_stream_cover(). 0, or -1 + error: then it is as it was. */
int um_tls_cover(struct um_tls *tls, struct um_stream *stream, enum um_stream_role role);
/* The work for strangers of this window is done: accept nobody before the next one. Any thread. */
bool um_tls_busy(struct um_tls *tls, uint64_t now_ns);

/* ---- um_tls_peer.c ---- */

/* Why the certificate of the other side is refused for its names; NULL: it is not. */
const char *um_tls_check_names(const struct um_tls *tls, const um_ssl *ssl, int fd);

#endif
