/* Fuzz target: the ring of LBT-SMX. First byte: what is in disorder. Either a receiver reads a ring that is the rest of
 * the input, or a source sends while the cursors of its receivers are what the input says: 9 bytes for each message. */
#include "shm_ring_fuzz.h"
#include "transport/smx/um_smx_ring.h"

static volatile uint8_t sink;

static void read_everything(struct fuzz_segment *fuzz, uint64_t start)
{
    struct um_smx_reader reader;
    struct um_smx_message message;
    um_smx_reader_init(&reader, &fuzz->segment, &fuzz->slots[0], start & ~63ull);
    if (!um_smx_reader_skip(&reader)) {
        return;
    }
    for (unsigned i = 0; i < FUZZ_RING_LEN && um_smx_next(&reader, &message) == UM_SMX_MESSAGE; i++) {
        for (uint32_t at = 0; at < message.len; at++) { /* touch every byte */
            sink ^= message.data[at];
        }
        um_smx_release(&reader);
    }
}

/* One message of a source whose receivers write any cursor. */
static void send_one(struct fuzz_segment *fuzz, struct um_smx_writer *writer, const uint8_t *data, uint32_t number)
{
    struct um_shm_slot *slot = &fuzz->slots[data[0] & 1];
    size_t len = (data[0] >> 2) * 8u;
    len = len < writer->payload_max ? len : writer->payload_max;
    atomic_store(&slot->in_use, (data[0] & 2) != 0 ? UM_SHM_SLOT_READING : data[1] & 3);
    atomic_store(&slot->read_pos, (data[1] & 4) != 0 ? um_get64(data + 1) : writer->published - (data[2] & ~63u));
    struct um_smx_record *record = um_smx_claim(writer, len, 7, number);
    if (record == NULL && um_smx_refill(writer, len) == UM_SMX_CLAIMED) {
        record = um_smx_claim(writer, len, 7, number);
        if (record == NULL) {
            abort(); /* room was promised */
        }
    }
    if (record != NULL) {
        memset(record->payload, (int)number, len);
        um_smx_publish(writer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_segment fuzz;
    if (size < 9) {
        return 0;
    }
    fuzz_segment_open(&fuzz, UM_SHM_SMX, (data[0] & 2) != 0 ? 64 : 16);
    if ((data[0] & 1) != 0) {
        memcpy(fuzz.segment.ring, data + 9, size - 9 < FUZZ_RING_LEN ? size - 9 : FUZZ_RING_LEN);
        atomic_store(&fuzz.header.tail, um_get64(data + 1) & ~63ull);
        read_everything(&fuzz, um_get64(data + 1));
    } else {
        struct um_smx_writer writer;
        um_smx_writer_init(&writer, &fuzz.header, fuzz.slots, fuzz.segment.ring);
        uint32_t number = 0;
        for (size_t at = 1; at + 9 <= size; at += 9) {
            send_one(&fuzz, &writer, data + at, number++);
        }
    }
    fuzz_segment_close(&fuzz);
    return 0;
}
