/* LZ4 for the bare loop of bench_tcp: liblz4 called directly, on a blocking socket, with the blocks, headers and read
 * sizes that libum has. Only where liblz4's headers are installed. */
#ifndef BENCH_LZ4_H
#define BENCH_LZ4_H

#include <stddef.h>
#include <sys/types.h>

struct bench_lz4;

struct bench_lz4 *bench_lz4_open(void); /* for one direction */
/* The frame of at most 65535 bytes; valid until the next call. */
const char *bench_lz4_pack(struct bench_lz4 *lz4, const char *data, size_t len, size_t *frame_len);
/* What the whole frames hold that came; 0: the end; -1: errno of recv(). */
ssize_t bench_lz4_read(struct bench_lz4 *lz4, int fd, int flags, char *data, size_t len);

#endif
