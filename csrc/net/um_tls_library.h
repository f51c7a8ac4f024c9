/* OpenSSL as this library uses it, found when the first context wants encryption: the
 * library is neither linked nor needed to build. Any thread. */
#ifndef UM_NET_TLS_LIBRARY_H
#define UM_NET_TLS_LIBRARY_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The names of OpenSSL's own headers, of which nothing but pointers is used. */
typedef struct ssl_st um_ssl;
typedef struct ssl_ctx_st um_ssl_ctx;
typedef struct ssl_method_st um_ssl_method;
typedef struct ssl_cipher_st um_ssl_cipher;
typedef struct bio_st um_bio;
typedef struct bio_method_st um_bio_method;
typedef struct x509_st um_x509;
typedef struct X509_name_st um_x509_name;
typedef struct asn1_string_st um_asn1_time;
typedef struct stack_st um_ssl_stack;

/* Values of its headers, the same in versions 1.1.1 to 3. */
enum {
    UM_SSL_ERROR_WANT_READ = 2,
    UM_SSL_ERROR_WANT_WRITE = 3,
    UM_SSL_ERROR_ZERO_RETURN = 6,
    UM_SSL_VERIFY_PEER = 1,
    UM_SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2,
    UM_SSL_FILETYPE_PEM = 1,
    UM_SSL_CTRL_MODE = 33,
    UM_SSL_CTRL_SET_READ_AHEAD = 41,
    UM_SSL_CTRL_SET_SESS_CACHE_MODE = 44,
    UM_SSL_CTRL_SET_DH_AUTO = 118,
    UM_SSL_CTRL_SET_MIN_PROTO_VERSION = 123,
    UM_SSL_CTRL_SET_MAX_PROTO_VERSION = 124,
    UM_SSL_MODE_ENABLE_PARTIAL_WRITE = 1,
    UM_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2,
    UM_TLS1_2_VERSION = 0x0303,
    UM_TLS1_3_VERSION = 0x0304,
    UM_BIO_TYPE_SOURCE_SINK = 0x0400,
    UM_BIO_CTRL_FLUSH = 11,
    UM_BIO_FLAGS_READ = 1,
    UM_BIO_FLAGS_WRITE = 2,
    UM_BIO_FLAGS_SHOULD_RETRY = 8,
    UM_NID_AUTH_NULL = 1053
};
#define UM_SSL_OP_NO_TICKET UINT64_C(0x00004000)
#define UM_SSL_OP_NO_COMPRESSION UINT64_C(0x00020000)
#define UM_SSL_OP_CIPHER_SERVER_PREFERENCE UINT64_C(0x00400000)
#define UM_SSL_OP_NO_RENEGOTIATION UINT64_C(0x40000000)
#define UM_OPENSSL_INIT_NO_ATEXIT UINT64_C(0x00080000)

typedef int um_tls_password_fn(char *out, int size, int writes, void *user);
typedef int um_bio_write_fn(um_bio *bio, const char *data, int len);
typedef int um_bio_read_fn(um_bio *bio, char *data, int len);
typedef long um_bio_ctrl_fn(um_bio *bio, int command, long number, void *pointer);

/* Result, name, arguments; those of libssl, then those of libcrypto, which come with it. */
#define UM_TLS_FUNCTIONS(X)                                                                                            \
    X(int, OPENSSL_init_ssl, (uint64_t options, const void *settings))                                                 \
    X(const um_ssl_method *, TLS_method, (void))                                                                       \
    X(um_ssl_ctx *, SSL_CTX_new, (const um_ssl_method *method))                                                        \
    X(void, SSL_CTX_free, (um_ssl_ctx * ctx))                                                                          \
    X(long, SSL_CTX_ctrl, (um_ssl_ctx * ctx, int command, long number, void *pointer))                                 \
    X(uint64_t, SSL_CTX_set_options, (um_ssl_ctx * ctx, uint64_t options))                                             \
    X(void, SSL_CTX_set_verify, (um_ssl_ctx * ctx, int mode, void *callback))                                          \
    X(void, SSL_CTX_set_default_passwd_cb, (um_ssl_ctx * ctx, um_tls_password_fn * callback))                          \
    X(void, SSL_CTX_set_default_passwd_cb_userdata, (um_ssl_ctx * ctx, void *user))                                    \
    X(int, SSL_CTX_use_certificate_chain_file, (um_ssl_ctx * ctx, const char *file))                                   \
    X(int, SSL_CTX_use_PrivateKey_file, (um_ssl_ctx * ctx, const char *file, int type))                                \
    X(int, SSL_CTX_check_private_key, (const um_ssl_ctx *ctx))                                                         \
    X(um_x509 *, SSL_CTX_get0_certificate, (const um_ssl_ctx *ctx))                                                    \
    X(int, SSL_CTX_load_verify_locations, (um_ssl_ctx * ctx, const char *file, const char *folder))                    \
    X(int, SSL_CTX_set_default_verify_paths, (um_ssl_ctx * ctx))                                                       \
    X(int, SSL_CTX_set_cipher_list, (um_ssl_ctx * ctx, const char *names))                                             \
    X(int, SSL_CTX_set_ciphersuites, (um_ssl_ctx * ctx, const char *names))                                            \
    X(um_ssl_stack *, SSL_CTX_get_ciphers, (const um_ssl_ctx *ctx))                                                    \
    X(int, SSL_CTX_set_num_tickets, (um_ssl_ctx * ctx, size_t count))                                                  \
    X(void, SSL_CTX_set_default_read_buffer_len, (um_ssl_ctx * ctx, size_t len))                                       \
    X(const char *, SSL_CIPHER_get_name, (const um_ssl_cipher *cipher))                                                \
    X(int, SSL_CIPHER_get_bits, (const um_ssl_cipher *cipher, int *of_algorithm))                                      \
    X(int, SSL_CIPHER_get_auth_nid, (const um_ssl_cipher *cipher))                                                     \
    X(um_ssl *, SSL_new, (um_ssl_ctx * ctx))                                                                           \
    X(void, SSL_free, (um_ssl * ssl))                                                                                  \
    X(void, SSL_set_bio, (um_ssl * ssl, um_bio * reads, um_bio * writes))                                              \
    X(void, SSL_set_connect_state, (um_ssl * ssl))                                                                     \
    X(void, SSL_set_accept_state, (um_ssl * ssl))                                                                      \
    X(int, SSL_do_handshake, (um_ssl * ssl))                                                                           \
    X(int, SSL_read, (um_ssl * ssl, void *data, int len))                                                              \
    X(int, SSL_write, (um_ssl * ssl, const void *data, int len))                                                       \
    X(int, SSL_shutdown, (um_ssl * ssl))                                                                               \
    X(int, SSL_get_error, (const um_ssl *ssl, int result))                                                             \
    X(int, SSL_has_pending, (const um_ssl *ssl))                                                                       \
    X(long, SSL_get_verify_result, (const um_ssl *ssl))                                                                \
    X(unsigned long, ERR_peek_error, (void))                                                                           \
    X(void, ERR_clear_error, (void))                                                                                   \
    X(const char *, ERR_reason_error_string, (unsigned long error))                                                    \
    X(int, BIO_get_new_index, (void))                                                                                  \
    X(um_bio_method *, BIO_meth_new, (int type, const char *name))                                                     \
    X(int, BIO_meth_set_write, (um_bio_method * method, um_bio_write_fn * function))                                   \
    X(int, BIO_meth_set_read, (um_bio_method * method, um_bio_read_fn * function))                                     \
    X(int, BIO_meth_set_ctrl, (um_bio_method * method, um_bio_ctrl_fn * function))                                     \
    X(um_bio *, BIO_new, (const um_bio_method *method))                                                                \
    X(int, BIO_free, (um_bio * bio))                                                                                   \
    X(void, BIO_set_data, (um_bio * bio, void *data))                                                                  \
    X(void *, BIO_get_data, (um_bio * bio))                                                                            \
    X(void, BIO_set_init, (um_bio * bio, int init))                                                                    \
    X(void, BIO_set_flags, (um_bio * bio, int flags))                                                                  \
    X(void, BIO_clear_flags, (um_bio * bio, int flags))                                                                \
    X(const um_asn1_time *, X509_get0_notBefore, (const um_x509 *certificate))                                         \
    X(const um_asn1_time *, X509_get0_notAfter, (const um_x509 *certificate))                                          \
    X(int, X509_cmp_current_time, (const um_asn1_time *time))                                                          \
    X(int, ASN1_TIME_to_tm, (const um_asn1_time *time, struct tm *out))                                                \
    X(const char *, X509_verify_cert_error_string, (long error))                                                       \
    X(void, X509_free, (um_x509 * certificate))                                                                        \
    X(int, X509_check_host, (um_x509 * certificate, const char *name, size_t len, unsigned flags, char **found))       \
    X(int, X509_check_ip_asc, (um_x509 * certificate, const char *address, unsigned flags))                            \
    X(int, OPENSSL_sk_num, (const um_ssl_stack *stack))                                                                \
    X(void *, OPENSSL_sk_value, (const um_ssl_stack *stack, int at))

#define UM_TLS_FUNCTION(result, name, arguments) result(*name) arguments;
struct um_tls_library {
    UM_TLS_FUNCTIONS(UM_TLS_FUNCTION)
    um_x509 *(*get1_peer_certificate)(const um_ssl *ssl); /* named differently by 1.1.1 and 3 */
};
#undef UM_TLS_FUNCTION

/* Loaded and initialised, for as long as the process lives. NULL + UM_EOPNOTSUPP: there is none that fits. */
const struct um_tls_library *um_tls_library(void);

#endif
