/* TLS for the bare loop of bench_tcp: OpenSSL called directly, on a blocking socket, with the certificates, versions,
 * record sizes and read buffers that libum has. Only where OpenSSL's headers are installed. */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bench_tls;

struct bench_tls *bench_tls_open(int fd, bool accepts);
void bench_tls_write(struct bench_tls *tls, const char *data, size_t len); /* all of it, or the run is over */
ssize_t bench_tls_read(struct bench_tls *tls, char *data, size_t len);     /* 0: the end */

#endif
