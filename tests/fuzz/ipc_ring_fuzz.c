/* Fuzz target: what a receiver of LBT-IPC reads from a ring that is not in order. First 32 bytes: where to begin, tail,
 * resync, oldest; the rest is the ring. Each record is copied out within its bounds, and reading comes to an end. */
#include "shm_ring_fuzz.h"
#include "transport/ipc/um_ipc_ring.h"

#define READS_MAX (4 * FUZZ_RING_LEN / UM_IPC_RECORD_HDR)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_segment fuzz;
    struct um_ipc_reader reader;
    if (size < 32) {
        return 0;
    }
    fuzz_segment_open(&fuzz, UM_SHM_IPC, 32);
    atomic_store(&fuzz.header.tail, um_get64(data + 8));
    atomic_store(&fuzz.header.resync, um_get64(data + 16));
    atomic_store(&fuzz.header.oldest, um_get64(data + 24));
    memcpy(fuzz.segment.ring, data + 32, size - 32 < FUZZ_RING_LEN ? size - 32 : FUZZ_RING_LEN);
    uint8_t *out = malloc(FUZZ_DATAGRAM_MAX); /* of exact size */
    if (out == NULL) {
        abort();
    }
    if (um_ipc_reader_init(&reader, &fuzz.segment, um_get64(data))) {
        enum um_ipc_read got = UM_IPC_READ_CONTROL;
        for (unsigned i = 0; got != UM_IPC_READ_IDLE && got != UM_IPC_READ_CORRUPT && i < READS_MAX; i++) {
            uint32_t len = 0;
            got = um_ipc_read(&reader, out, &len);
            if (got == UM_IPC_READ_DATA && len > FUZZ_DATAGRAM_MAX) {
                abort();
            }
        }
    }
    free(out);
    fuzz_segment_close(&fuzz);
    return 0;
}
