/* See bench_tls.h. */
#include "bench_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>

#include "bench_common.h"

struct bench_tls {
    SSL *ssl;
};

struct bench_tls *bench_tls_open(int fd, bool accepts)
{
    struct bench_tls *tls = calloc(1, sizeof *tls);
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    const char *name = accepts ? "host" : "peer";
    char certificate[512], key[512];
    signal(SIGPIPE, SIG_IGN);
    snprintf(certificate, sizeof certificate, "%s/%s.pem", UM_BENCH_CERTIFICATES, name);
    snprintf(key, sizeof key, "%s/%s.key", UM_BENCH_CERTIFICATES, name);
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_default_read_buffer_len(ctx, 4 * 16384 + 1024);
    if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_locations(ctx, UM_BENCH_CERTIFICATES "/ca.pem", NULL) != 1) {
        bench_die("certificates: %s", ERR_reason_error_string(ERR_peek_error()));
    }
    tls->ssl = SSL_new(ctx);
    SSL_set_fd(tls->ssl, fd);
    if ((accepts ? SSL_accept(tls->ssl) : SSL_connect(tls->ssl)) != 1) {
        bench_die("handshake: %s", ERR_reason_error_string(ERR_peek_error()));
    }
    return tls;
}

void bench_tls_write(struct bench_tls *tls, const char *data, size_t len)
{
    if (SSL_write(tls->ssl, data, (int)len) <= 0 && !bench_finished()) {
        bench_die("SSL_write: %s", ERR_reason_error_string(ERR_peek_error()));
    }
}

ssize_t bench_tls_read(struct bench_tls *tls, char *data, size_t len)
{
    int got = SSL_read(tls->ssl, data, (int)len);
    return got > 0 ? got : 0;
}
