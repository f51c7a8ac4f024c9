/* Options of encryption reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <string.h>

#include "um_test_options.h"
#include "um_test_tls.h"

/* Where the row has not set it. */
static void set_unless(struct world *w, const char *option, const char *value)
{
    char text[256] = "";
    size_t len = sizeof text;
    MUST(lbm_context_attr_str_getopt(w->context, option, text, &len));
    if (text[0] == '\0' || strcmp(text, "NULL") == 0) {
        SET_context(w, option, value);
    }
}

static void encrypted_context(struct world *w)
{
    SET_context(w, "use_tls", "1");
    set_unless(w, "tls_certificate", test_tls_host.certificate);
    set_unless(w, "tls_certificate_key", test_tls_host.key);
    set_unless(w, "tls_trusted_certificates", test_tls_host.trusted);
    context_only(w);
}

static void context_with_encrypted_key(struct world *w)
{
    SET_context(w, "tls_certificate_key", CERTIFICATES "encrypted.key");
    encrypted_context(w);
}

static void certified_context(struct world *w)
{
    SET_context(w, "tls_certificate", test_tls_host.certificate);
    SET_context(w, "tls_certificate_key", test_tls_host.key);
    context_only(w);
}

static bool is(const char *seen_text, const char *text)
{
    return seen_text != NULL && strcmp(seen_text, text) == 0;
}

REACHES(context, use_tls, "1", certified_context, w->ctx->env.stream_layer != NULL && w->ctx->filters.tls != NULL,
        true);
REACHES(context, tls_certificate, CERTIFICATES "host.pem", encrypted_context,
        is(seen.tls.certificate, CERTIFICATES "host.pem"), true);
REACHES(context, tls_certificate_key, CERTIFICATES "host.key", encrypted_context,
        is(seen.tls.key, CERTIFICATES "host.key"), true);
REACHES(context, tls_certificate_key_password, TEST_KEY_PASSWORD, context_with_encrypted_key,
        is(seen.tls.password, TEST_KEY_PASSWORD), true);
REACHES(context, tls_trusted_certificates, CERTIFICATES "ca.pem", encrypted_context,
        is(seen.tls.trusted, CERTIFICATES "ca.pem"), true);
REACHES(context, tls_cipher_suites, "TLS_AES_256_GCM_SHA384", encrypted_context,
        is(seen.tls.suites, "TLS_AES_256_GCM_SHA384"), true);
REACHES(context, tls_compression_negotiation_timeout, "7777", encrypted_context, w->ctx->filters.layer.timeout_ns,
        MS(7777));
REACHES(context, um_tls_peer_names, "address", encrypted_context, is(w->ctx->filters.tls->peer_names, "address"), true);
