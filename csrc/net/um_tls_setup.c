/* What the TLS connections of a context share, from its options: each file is read and
 * checked when the context is created, since a wrong one would be noticed much later, and
 * on the other side. See um_tls.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_tls.h"

#define READ_BUFFER (4 * 16384 + 1024) /* some records with one system call */
#define WEAK_BELOW_BITS 128

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* What OpenSSL did not like, in its words. */
static const char *ssl_reason(const struct um_tls_library *lib)
{
    const char *text = lib->ERR_reason_error_string(lib->ERR_peek_error());
    return text != NULL ? text : "not what is expected";
}

/* 0, or -1 + error: OpenSSL tells less well why a file cannot be read. */
static int check_readable(const char *option, const char *file)
{
    FILE *opened = fopen(file, "re");
    char byte;
    bool reads = opened != NULL && fread(&byte, 1, 1, opened) == 1;
    bool empty = opened != NULL && feof(opened) != 0;
    int err = errno;
    if (opened != NULL) {
        fclose(opened);
    }
    return reads ? 0
                 : um_error(UM_EINVAL, "CoreApi-9565-13", "%s %s: cannot be read: %s", option, file,
                            empty ? "the file is empty" : strerror(err));
}

/* ---- certificate and key ---- */

static int check_dates(const struct um_tls *tls, const char *file)
{
    const struct um_tls_library *lib = tls->lib;
    const um_x509 *own = lib->SSL_CTX_get0_certificate(tls->ctx);
    const um_asn1_time *from = lib->X509_get0_notBefore(own), *to = lib->X509_get0_notAfter(own);
    bool early = lib->X509_cmp_current_time(from) > 0, late = lib->X509_cmp_current_time(to) < 0;
    char text[32] = "?";
    struct tm date;
    if (!early && !late) {
        return 0;
    }
    if (lib->ASN1_TIME_to_tm(early ? from : to, &date) == 1) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &date);
    }
    return um_error(UM_EINVAL, "CoreApi-9565-14",
                    early ? "tls_certificate %s: not valid before %s UTC; set the clock or wait"
                          : "tls_certificate %s: expired at %s UTC; make a new one",
                    file, text);
}

static int use_certificate(const struct um_tls *tls, const char *file)
{
    if (check_readable("tls_certificate", file) != 0) {
        return -1;
    }
    tls->lib->ERR_clear_error();
    if (tls->lib->SSL_CTX_use_certificate_chain_file(tls->ctx, file) != 1) {
        return um_error(UM_EINVAL, "CoreApi-9565-15",
                        "tls_certificate %s: %s; it must hold the certificate of this context in PEM form, then those "
                        "between it and its authority",
                        file, ssl_reason(tls->lib));
    }
    return check_dates(tls, file);
}

struct password {
    const char *text;
    bool asked;
};

/* Without it OpenSSL would ask at the terminal. */
static int give_password(char *out, int size, int writes, void *user)
{
    struct password *password = user;
    password->asked = true;
    size_t len = is_set(password->text) ? strlen(password->text) : 0;
    if (len == 0 || size < 0 || len > (size_t)size) {
        return -1;
    }
    memcpy(out, password->text, len);
    return (int)len;
}

static int key_error(const struct um_tls *tls, const struct um_tls_config *config, const struct password *password)
{
    if (password->asked && !is_set(config->password)) {
        return um_error(UM_EINVAL, "Core-9565-29",
                        "tls_certificate_key %s: it is encrypted; set tls_certificate_key_password", config->key);
    }
    if (password->asked) {
        return um_error(UM_EINVAL, "CoreApi-9565-16",
                        "tls_certificate_key %s: tls_certificate_key_password does not open it (%s)", config->key,
                        ssl_reason(tls->lib));
    }
    return um_error(UM_EINVAL, "CoreApi-9565-17",
                    "tls_certificate_key %s: %s; it must be the private key of tls_certificate in PEM form",
                    config->key, ssl_reason(tls->lib));
}

static int use_key(const struct um_tls *tls, const struct um_tls_config *config)
{
    const struct um_tls_library *lib = tls->lib;
    struct password password = {.text = config->password};
    if (check_readable("tls_certificate_key", config->key) != 0) {
        return -1;
    }
    lib->SSL_CTX_set_default_passwd_cb(tls->ctx, give_password);
    lib->SSL_CTX_set_default_passwd_cb_userdata(tls->ctx, &password);
    lib->ERR_clear_error();
    int used = lib->SSL_CTX_use_PrivateKey_file(tls->ctx, config->key, UM_SSL_FILETYPE_PEM);
    lib->SSL_CTX_set_default_passwd_cb_userdata(tls->ctx, NULL);
    if (used == 1 && lib->SSL_CTX_check_private_key(tls->ctx) == 1) {
        return 0;
    }
    const char *reason = ssl_reason(lib);
    if (used == 1 || strstr(reason, "mismatch") != NULL) {
        return um_error(UM_EINVAL, "CoreApi-9565-18",
                        "tls_certificate_key %s: not the key of the certificate in tls_certificate %s (%s)",
                        config->key, config->certificate, reason);
    }
    return key_error(tls, config, &password);
}

static int use_trusted(const struct um_tls *tls, const char *file)
{
    const struct um_tls_library *lib = tls->lib;
    lib->ERR_clear_error();
    if (!is_set(file)) {
        return lib->SSL_CTX_set_default_verify_paths(tls->ctx) == 1
                   ? 0
                   : um_error(UM_EINVAL, "CoreApi-9565-19",
                              "tls_trusted_certificates: not set, and the certificates of the system cannot be used: "
                              "%s; set it to a PEM file",
                              ssl_reason(lib));
    }
    if (check_readable("tls_trusted_certificates", file) != 0) {
        return -1;
    }
    if (lib->SSL_CTX_load_verify_locations(tls->ctx, file, NULL) != 1) {
        return um_error(UM_EINVAL, "CoreApi-9565-19",
                        "tls_trusted_certificates %s: %s; it must hold certificates in PEM form", file,
                        ssl_reason(lib));
    }
    return 0;
}

/* ---- cipher suites ---- */

struct suites {
    char old[1024], new[512]; /* of TLS 1.2 and 1.3, as OpenSSL wants them */
};

static const um_ssl_cipher *find_suite(const struct um_tls *tls, const char *name)
{
    um_ssl_stack *all = tls->lib->SSL_CTX_get_ciphers(tls->ctx);
    for (int i = 0; i < tls->lib->OPENSSL_sk_num(all); i++) {
        const um_ssl_cipher *cipher = tls->lib->OPENSSL_sk_value(all, i);
        if (strcmp(tls->lib->SSL_CIPHER_get_name(cipher), name) == 0) {
            return cipher;
        }
    }
    return NULL;
}

/* One name. OpenSSL passes over those of a list that it does not know, and takes keywords that stand for many. */
static int check_suite(const struct um_tls *probe, const char *name)
{
    const struct um_tls_library *lib = probe->lib;
    bool new = strncmp(name, "TLS_", 4) == 0;
    /* Suites that the level of security of the system forbids are looked at, too, to tell why they are refused. */
    char keyword[128];
    snprintf(keyword, sizeof keyword, "%s:@SECLEVEL=0", name);
    lib->ERR_clear_error();
    int known =
        strpbrk(name, ":@!+ ") == NULL && strlen(name) < 64
            ? new ? lib->SSL_CTX_set_ciphersuites(probe->ctx, name) : lib->SSL_CTX_set_cipher_list(probe->ctx, keyword)
            : 0;
    const um_ssl_cipher *cipher = known == 1 ? find_suite(probe, name) : NULL;
    if (cipher == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9565-20",
                        "tls_cipher_suites: unknown cipher suite \"%s\"; names are those of OpenSSL, for example "
                        "ECDHE-RSA-AES256-GCM-SHA384 (TLS 1.2) or TLS_AES_256_GCM_SHA384 (TLS 1.3)",
                        name);
    }
    int bits = lib->SSL_CIPHER_get_bits(cipher, NULL);
    if (bits < WEAK_BELOW_BITS || lib->SSL_CIPHER_get_auth_nid(cipher) == UM_NID_AUTH_NULL) {
        return um_error(
            UM_EINVAL, "CoreApi-9565-21",
            "tls_cipher_suites: cipher suite \"%s\" is weak (%d bits%s); use one with at least %d bits that "
            "authenticates",
            name, bits, bits < WEAK_BELOW_BITS ? "" : ", nobody is authenticated", WEAK_BELOW_BITS);
    }
    return 0;
}

static int add_suite(struct suites *suites, const char *name)
{
    bool new = strncmp(name, "TLS_", 4) == 0;
    char *list = new ? suites->new : suites->old;
    size_t size = new ? sizeof suites->new : sizeof suites->old, len = strlen(list);
    if (len + strlen(name) + 2 > size) {
        return um_error(UM_EINVAL, "CoreApi-9565-20", "tls_cipher_suites: too many names, at \"%s\"", name);
    }
    snprintf(list + len, size - len, "%s%s", len > 0 ? ":" : "", name);
    return 0;
}

/* `probe` is thrown away afterwards: its level of security is none. */
static int split_suites(const struct um_tls *probe, const char *text, struct suites *suites)
{
    while (*text != '\0') {
        size_t len = strcspn(text, ","), from = strspn(text, " \t");
        size_t to = len;
        while (to > from && (text[to - 1] == ' ' || text[to - 1] == '\t')) {
            to--;
        }
        char name[96];
        snprintf(name, sizeof name, "%.*s", to > from ? (int)(to - from) : 0, text + from);
        if (check_suite(probe, name) != 0 || add_suite(suites, name) != 0) {
            return -1;
        }
        text += len + (text[len] == ',');
    }
    return 0;
}

/* What is named is what is accepted; versions of which nothing is named are off. */
static int use_suites(const struct um_tls *tls, const char *text)
{
    const struct um_tls_library *lib = tls->lib;
    struct suites suites = {.old = ""};
    bool by_default = !is_set(text) || strcmp(text, UM_TLS_DEFAULT_SUITES) == 0;
    struct um_tls probe = {.lib = lib, .ctx = lib->SSL_CTX_new(lib->TLS_method())};
    if (probe.ctx == NULL) {
        return um_error_nomem("TLS context", sizeof probe);
    }
    int rc = split_suites(&probe, by_default ? UM_TLS_DEFAULT_SUITES : text, &suites);
    lib->SSL_CTX_free(probe.ctx);
    if (rc != 0) {
        return -1;
    }
    bool old = suites.old[0] != '\0', new = suites.new[0] != '\0' || by_default;
    lib->ERR_clear_error();
    if ((old && lib->SSL_CTX_set_cipher_list(tls->ctx, suites.old) != 1) ||
        (suites.new[0] != '\0' && lib->SSL_CTX_set_ciphersuites(tls->ctx, suites.new) != 1)) {
        return um_error(UM_EINVAL, "CoreApi-9565-22",
                        "tls_cipher_suites %s: refused by the security level of this system: %s", text,
                        ssl_reason(lib));
    }
    lib->SSL_CTX_ctrl(tls->ctx, UM_SSL_CTRL_SET_MIN_PROTO_VERSION, old ? UM_TLS1_2_VERSION : UM_TLS1_3_VERSION, NULL);
    lib->SSL_CTX_ctrl(tls->ctx, UM_SSL_CTRL_SET_MAX_PROTO_VERSION, new ? UM_TLS1_3_VERSION : UM_TLS1_2_VERSION, NULL);
    return 0;
}

/* ---- LBM_OPENSSL_CONTEXT_OPTIONS ---- */

/* Those that take something away, or choose; none that weakens. */
static const struct {
    const char *name;
    uint64_t value;
} overrides[] = {
    {"SSL_OP_NO_TLSv1_2", UINT64_C(0x08000000)},
    {"SSL_OP_NO_TLSv1_3", UINT64_C(0x20000000)},
    {"SSL_OP_PRIORITIZE_CHACHA", UINT64_C(0x00200000)},
    {"SSL_OP_NO_COMPRESSION", UM_SSL_OP_NO_COMPRESSION},
    {"SSL_OP_NO_TICKET", UM_SSL_OP_NO_TICKET},
    {"SSL_OP_NO_RENEGOTIATION", UM_SSL_OP_NO_RENEGOTIATION},
    {"SSL_OP_CIPHER_SERVER_PREFERENCE", UM_SSL_OP_CIPHER_SERVER_PREFERENCE},
};

static void use_overrides(const struct um_tls *tls, const char *text)
{
    while (is_set(text)) {
        size_t len = strcspn(text, " ,|");
        bool known = len == 0;
        for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++) {
            if (strlen(overrides[i].name) == len && strncmp(overrides[i].name, text, len) == 0) {
                tls->lib->SSL_CTX_set_options(tls->ctx, overrides[i].value);
                known = true;
            }
        }
        if (!known) {
            um_log(UM_LOG_WARNING, "Core-9565-26", "LBM_OPENSSL_CONTEXT_OPTIONS: unknown option \"%.*s\" ignored",
                   (int)len, text);
        }
        text += len + (text[len] != '\0');
    }
}

/* ---- creation ---- */

static void set_manners(const struct um_tls *tls)
{
    const struct um_tls_library *lib = tls->lib;
    lib->SSL_CTX_set_verify(tls->ctx, UM_SSL_VERIFY_PEER | UM_SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    lib->SSL_CTX_set_options(tls->ctx, UM_SSL_OP_NO_TICKET | UM_SSL_OP_NO_COMPRESSION | UM_SSL_OP_NO_RENEGOTIATION |
                                           UM_SSL_OP_CIPHER_SERVER_PREFERENCE);
    lib->SSL_CTX_set_num_tickets(tls->ctx, 0);
    lib->SSL_CTX_ctrl(tls->ctx, UM_SSL_CTRL_SET_SESS_CACHE_MODE, 0, NULL);
    lib->SSL_CTX_ctrl(tls->ctx, UM_SSL_CTRL_SET_DH_AUTO, 1, NULL);
    lib->SSL_CTX_ctrl(tls->ctx, UM_SSL_CTRL_MODE,
                      UM_SSL_MODE_ENABLE_PARTIAL_WRITE | UM_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    lib->SSL_CTX_ctrl(tls->ctx, UM_SSL_CTRL_SET_READ_AHEAD, 1, NULL);
    lib->SSL_CTX_set_default_read_buffer_len(tls->ctx, READ_BUFFER);
}

static int check_pair(const struct um_tls_config *config)
{
    bool certificate = is_set(config->certificate), key = is_set(config->key);
    if (certificate && key) {
        return 0;
    }
    if (!certificate && !key) {
        return um_error(UM_EINVAL, "CoreApi-9565-23",
                        "use_tls 1: tls_certificate and tls_certificate_key must be set, since both sides of a "
                        "connection prove who they are; `um tls-init` makes them");
    }
    return um_error(UM_EINVAL, certificate ? "Core-9565-31" : "Core-9565-32",
                    "use_tls 1: %s is set and %s is not; both are needed",
                    certificate ? "tls_certificate" : "tls_certificate_key",
                    certificate ? "tls_certificate_key" : "tls_certificate");
}

static int set_up(struct um_tls *tls, const struct um_tls_config *config)
{
    tls->ctx = tls->lib->SSL_CTX_new(tls->lib->TLS_method());
    if (tls->ctx == NULL) {
        return um_error_nomem("TLS context", sizeof *tls);
    }
    set_manners(tls);
    if (is_set(config->peer_names) && (tls->peer_names = um_strdup(config->peer_names)) == NULL) {
        return um_error_nomem("TLS context", strlen(config->peer_names));
    }
    if (use_suites(tls, config->suites) != 0 || use_certificate(tls, config->certificate) != 0 ||
        use_key(tls, config) != 0) {
        return -1;
    }
    use_overrides(tls, config->overrides);
    return use_trusted(tls, config->trusted);
}

struct um_tls *um_tls_create(const struct um_tls_config *config)
{
    if (check_pair(config) != 0) {
        return NULL;
    }
    const struct um_tls_library *lib = um_tls_library();
    if (lib == NULL) {
        return NULL;
    }
    struct um_tls *tls = um_calloc(1, sizeof *tls);
    if (tls == NULL) {
        um_error_nomem("TLS context", sizeof *tls);
        return NULL;
    }
    tls->lib = lib;
    int rc = set_up(tls, config);
    lib->ERR_clear_error(); /* of the thread, which may use OpenSSL itself */
    if (rc != 0) {
        um_tls_destroy(tls);
        return NULL;
    }
    return tls;
}

void um_tls_destroy(struct um_tls *tls)
{
    if (tls != NULL) {
        tls->lib->SSL_CTX_free(tls->ctx);
        um_free(tls->peer_names);
        um_free(tls);
    }
}
