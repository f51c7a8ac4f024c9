/* Deflate by zlib; the frame around it is gzip's, or a zip archive's: local
 * header, data, data descriptor, central directory. See srs_pack.h. */
#define _GNU_SOURCE
#include "srs_pack.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK 65536
#define RAW_DEFLATE (-15) /* zlib's window bits: no frame */
#define GZIP_FRAME (15 + 16)
#define ZIP_LOCAL 0x04034b50u
#define ZIP_DESCRIPTOR 0x08074b50u
#define ZIP_CENTRAL 0x02014b50u
#define ZIP_END 0x06054b50u
#define ZIP_VERSION 20
#define ZIP_HAS_DESCRIPTOR 8
#define ZIP_DEFLATED 8
#define ZIP_DATE_1980 0x21 /* 1 January: the name says the date */

struct packed {
    uint32_t crc, in, out;
};

static bool deflate_all(FILE *in, FILE *out, int window, struct packed *packed)
{
    unsigned char from[CHUNK], to[CHUNK];
    z_stream stream = {0};
    int rc = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
    bool last = false;
    while (rc == Z_OK && !last) {
        stream.next_in = from;
        stream.avail_in = (uInt)fread(from, 1, sizeof(from), in);
        last = stream.avail_in < sizeof(from);
        packed->crc = (uint32_t)crc32(packed->crc, from, stream.avail_in);
        packed->in += stream.avail_in;
        do {
            stream.next_out = to;
            stream.avail_out = sizeof(to);
            rc = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
            size_t len = sizeof(to) - stream.avail_out;
            packed->out += (uint32_t)len;
            if (fwrite(to, 1, len, out) != len) {
                rc = Z_ERRNO;
            }
        } while (rc == Z_OK && stream.avail_out == 0);
        rc = rc == Z_BUF_ERROR ? Z_OK : rc;
    }
    deflateEnd(&stream);
    return rc == Z_STREAM_END && !ferror(in);
}

static void put16(FILE *out, unsigned value)
{
    fputc((int)(value & 0xff), out);
    fputc((int)(value >> 8 & 0xff), out);
}

static void put32(FILE *out, uint32_t value)
{
    put16(out, value & 0xffff);
    put16(out, value >> 16);
}

/* What local header and central directory have in common. */
static void put_member(FILE *out, const struct packed *packed, size_t name_len)
{
    put16(out, ZIP_VERSION);
    put16(out, ZIP_HAS_DESCRIPTOR);
    put16(out, ZIP_DEFLATED);
    put16(out, 0);
    put16(out, ZIP_DATE_1980);
    put32(out, packed->crc);
    put32(out, packed->out);
    put32(out, packed->in);
    put16(out, (unsigned)name_len);
    put16(out, 0);
}

static bool zip(FILE *in, FILE *out, const char *name)
{
    struct packed packed = {0};
    size_t len = strlen(name);
    put32(out, ZIP_LOCAL);
    put_member(out, &packed, len);
    fputs(name, out);
    if (!deflate_all(in, out, RAW_DEFLATE, &packed)) {
        return false;
    }
    put32(out, ZIP_DESCRIPTOR);
    put32(out, packed.crc);
    put32(out, packed.out);
    put32(out, packed.in);
    uint32_t central = (uint32_t)ftell(out);
    put32(out, ZIP_CENTRAL);
    put16(out, ZIP_VERSION);
    put_member(out, &packed, len);
    for (int i = 0; i < 3; i++) { /* comment length, disk, internal attributes */
        put16(out, 0);
    }
    put32(out, 0);
    put32(out, 0); /* the local header is at the beginning */
    fputs(name, out);
    uint32_t end = (uint32_t)ftell(out);
    put32(out, ZIP_END);
    put32(out, 0);
    put16(out, 1);
    put16(out, 1);
    put32(out, end - central);
    put32(out, central);
    put16(out, 0);
    return true;
}

bool srs_pack(const char *path, enum srs_log_compression compression)
{
    const char *slash = strrchr(path, '/');
    char target[4096 + 8];
    struct packed packed = {0};
    snprintf(target, sizeof(target), "%s%s", path, compression == SRS_COMPRESS_ZIP ? ".zip" : ".gz");
    FILE *in = fopen(path, "rbe"), *out = in != NULL ? fopen(target, "wbe") : NULL;
    bool good = false;
    if (out != NULL) {
        good = compression == SRS_COMPRESS_ZIP ? zip(in, out, slash != NULL ? slash + 1 : path)
                                               : deflate_all(in, out, GZIP_FRAME, &packed);
        good = !ferror(out) && good;
        good = fclose(out) == 0 && good;
        unlink(good ? path : target);
    }
    if (in != NULL) {
        fclose(in);
    }
    return good;
}
