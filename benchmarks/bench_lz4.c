/* See bench_lz4.h. */
#include "bench_lz4.h"

#include <arpa/inet.h>
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bench_common.h"

#define HEADER 4 /* the length before compression, and after it; equal: stored as it is */
#define BLOCK_MAX 65535

struct bench_lz4 {
    size_t have, at;
    char frame[HEADER + BLOCK_MAX]; /* that is sent, or what came and was not unpacked yet */
};

struct bench_lz4 *bench_lz4_open(void)
{
    return calloc(1, sizeof(struct bench_lz4));
}

const char *bench_lz4_pack(struct bench_lz4 *lz4, const char *data, size_t len, size_t *frame_len)
{
    if (len == 0 || len > BLOCK_MAX) {
        bench_die("a block of %zu bytes", len);
    }
    int made = LZ4_compress_default(data, lz4->frame + HEADER, (int)len, (int)len - 1);
    if (made <= 0) {
        memcpy(lz4->frame + HEADER, data, len);
        made = (int)len;
    }
    uint16_t lengths[2] = {htons((uint16_t)len), htons((uint16_t)made)};
    memcpy(lz4->frame, lengths, HEADER);
    *frame_len = HEADER + (size_t)made;
    bench_shared->plain_bytes += len;
    bench_shared->packed_bytes += *frame_len;
    return lz4->frame;
}

/* Bytes; 0: the frame is not whole, or there is no room for it. */
static size_t unpack_frame(struct bench_lz4 *lz4, char *data, size_t room)
{
    const char *frame = lz4->frame + lz4->at;
    uint16_t lengths[2];
    if (lz4->have - lz4->at < HEADER) {
        return 0;
    }
    memcpy(lengths, frame, HEADER);
    size_t plain = ntohs(lengths[0]), packed = ntohs(lengths[1]);
    if (lz4->have - lz4->at < HEADER + packed || plain > room) {
        return 0;
    }
    if (packed == plain) {
        memcpy(data, frame + HEADER, plain);
    } else if (LZ4_decompress_safe(frame + HEADER, data, (int)packed, (int)plain) != (int)plain) {
        bench_die("a block of %zu bytes does not become %zu", packed, plain);
    }
    lz4->at += HEADER + packed;
    return plain;
}

ssize_t bench_lz4_read(struct bench_lz4 *lz4, int fd, int flags, char *data, size_t len)
{
    size_t got = 0;
    while (got == 0) {
        for (size_t part; (part = unpack_frame(lz4, data + got, len - got)) > 0; got += part) {
        }
        if (got == 0) {
            memmove(lz4->frame, lz4->frame + lz4->at, lz4->have - lz4->at);
            lz4->have -= lz4->at;
            lz4->at = 0;
            ssize_t came = recv(fd, lz4->frame + lz4->have, sizeof lz4->frame - lz4->have, flags);
            if (came <= 0) {
                return came;
            }
            lz4->have += (size_t)came;
        }
    }
    return (ssize_t)got;
}
