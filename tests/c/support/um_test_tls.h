/* The certificates of tests (tests/certificates, made by tests/support/make_certificates.py), and settings of TLS that
 * use them. */
#ifndef UM_SUPPORT_TEST_TLS_H
#define UM_SUPPORT_TEST_TLS_H

#include "net/um_tls.h"

#define CERTIFICATES "../tests/certificates/"
#define TEST_KEY_PASSWORD "open sesame"

static const struct um_tls_config test_tls_host = {.certificate = CERTIFICATES "host.pem",
                                                   .key = CERTIFICATES "host.key",
                                                   .trusted = CERTIFICATES "ca.pem",
                                                   .suites = UM_TLS_DEFAULT_SUITES};
static const struct um_tls_config test_tls_peer = {.certificate = CERTIFICATES "peer.pem",
                                                   .key = CERTIFICATES "peer.key",
                                                   .trusted = CERTIFICATES "ca.pem",
                                                   .suites = UM_TLS_DEFAULT_SUITES};
/* Trusts the same authority, and is trusted by none that does. */
static const struct um_tls_config test_tls_stranger = {.certificate = CERTIFICATES "stranger.pem",
                                                       .key = CERTIFICATES "stranger.key",
                                                       .trusted = CERTIFICATES "ca.pem",
                                                       .suites = UM_TLS_DEFAULT_SUITES};

#endif
