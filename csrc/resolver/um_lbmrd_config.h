/* The XML configuration of lbmrd: what its command line can say too, and address translation. One thread. */
#ifndef UM_RESOLVER_UM_LBMRD_CONFIG_H
#define UM_RESOLVER_UM_LBMRD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resolver/um_lbmrd_nat.h"

/* Bounds of the command line and of the file. */
#define UM_LBMRD_MAX_ACTIVITY_MS 86400000u
#define UM_LBMRD_MAX_TTL_MS 86400000u
#define UM_LBMRD_MAX_BUFFER (1u << 30)

/* What a file says. Numbers are 0 and texts NULL where it says nothing. */
struct um_lbmrd_file {
    uint64_t activity_ms, ttl_ms, port, rcvbuf, sndbuf;
    char *interface, *logfile;
    struct um_lbmrd_nat *nat;
};

/* The grammar of such files, as a DTD. */
extern const char um_lbmrd_dtd[];

/* Reads text in memory; `origin` is what messages call it. 0, or -1 + error with line and remedy. In both cases
 * um_lbmrd_file_clear frees what *out owns. */
int um_lbmrd_file_read(const char *origin, const char *data, size_t len, struct um_lbmrd_file *out);
void um_lbmrd_file_clear(struct um_lbmrd_file *file);

#endif
