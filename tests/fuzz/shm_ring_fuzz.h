/* A segment in ordinary memory, of exact size, filled with what an input says, for the fuzz targets of the rings. */
#ifndef SHM_RING_FUZZ_H
#define SHM_RING_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "transport/shm/um_shm_segment.h"

#define FUZZ_RING_LEN 4096u
#define FUZZ_DATAGRAM_MAX 512u
#define FUZZ_RECEIVERS 2u

struct fuzz_segment {
    struct um_shm_segment segment;
    struct um_shm_header header;
    struct um_shm_slot slots[FUZZ_RECEIVERS];
};

static inline void fuzz_segment_open(struct fuzz_segment *fuzz, enum um_shm_kind kind, uint32_t rec_align)
{
    memset((void *)fuzz, 0, sizeof *fuzz);
    fuzz->segment = (struct um_shm_segment){.fd = -1,
                                            .kind = kind,
                                            .path = "fuzz",
                                            .max_receivers = FUZZ_RECEIVERS,
                                            .rec_align = rec_align,
                                            .datagram_max = FUZZ_DATAGRAM_MAX,
                                            .ring_len = FUZZ_RING_LEN,
                                            .header = &fuzz->header,
                                            .slots = fuzz->slots,
                                            .ring = aligned_alloc(4096, FUZZ_RING_LEN)};
    if (fuzz->segment.ring == NULL) {
        abort();
    }
    memset(fuzz->segment.ring, 0, FUZZ_RING_LEN);
    fuzz->header.max_receivers = FUZZ_RECEIVERS;
    fuzz->header.rec_align = rec_align;
    fuzz->header.ring_len = FUZZ_RING_LEN;
    fuzz->header.datagram_max = FUZZ_DATAGRAM_MAX;
}

static inline void fuzz_segment_close(struct fuzz_segment *fuzz)
{
    free(fuzz->segment.ring);
}

#endif
