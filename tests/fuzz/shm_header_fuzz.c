/* Fuzz target: the header of a shared-memory segment as a receiver checks it. The first byte chooses the transport and
 * what of the header is made right, the next four are the length of the file in pages. An accepted geometry lies inside
 * the file and leaves room for records. */
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "transport/shm/um_shm_parts.h"

static const char *const magic[] = {[UM_SHM_IPC] = "UMIPC\0\0\1", [UM_SHM_SMX] = "UMSMX\0\0\1"};

static void check(bool ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct um_shm_segment segment = {.fd = -1, .path = "fuzz", .session_id = 7, .transport_id = 9};
    struct um_shm_header header;
    if (size < 5) {
        return 0;
    }
    uint64_t file_len = (uint64_t)um_get32(data + 1) * 4096;
    segment.kind = (data[0] & 1) != 0 ? UM_SHM_SMX : UM_SHM_IPC;
    memset(&header, 0, sizeof header);
    memcpy((void *)&header, data + 5, size - 5 < sizeof header ? size - 5 : sizeof header);
    if ((data[0] & 2) != 0) { /* the identity is right, so that the rest is looked at */
        memcpy(header.magic, magic[segment.kind], sizeof header.magic);
        header.version = UM_SHM_VERSION;
        header.endian_tag = UM_SHM_ENDIAN_TAG;
        header.session_id = segment.session_id;
        header.transport_id = segment.transport_id;
        header.pool_off = UM_SHM_POOL_OFF;
        header.slot_size = UM_SHM_SLOT_SIZE;
        header.total_len = file_len;
    }
    if (um_shm_check_header(&segment, &header, file_len) != 0) {
        return 0;
    }
    um_shm_adopt_geometry(&segment, &header);
    uint64_t pool_end = UM_SHM_POOL_OFF + (uint64_t)UM_SHM_SLOT_SIZE * segment.max_receivers;
    check(segment.total_len == file_len && segment.max_receivers >= 1);
    check(pool_end <= segment.ring_off && segment.ring_off % 4096 == 0);
    check(segment.ring_off <= file_len && segment.ring_len <= file_len - segment.ring_off);
    check(segment.ring_len >= 64 && 2ull * segment.datagram_max <= segment.ring_len);
    return 0;
}
