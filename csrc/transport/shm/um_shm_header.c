/* The header of a segment: its layout, how a source fills it in, and what a
 * receiver checks before it believes a word of it. Both work on a private copy of
 * the page. */
#include "transport/shm/um_shm_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/um_error.h"

#define HUGE_PAGE (2u * 1024u * 1024u)

_Static_assert(sizeof(struct um_shm_header) == 4096, "the header is a page");
_Static_assert(offsetof(struct um_shm_header, sm_interval_ms) == 0x58, "layout");
_Static_assert(offsetof(struct um_shm_header, tail) == 0x100 && offsetof(struct um_shm_header, oldest) == 0x180,
               "layout");
_Static_assert(offsetof(struct um_shm_header, activity) == 0x200 && offsetof(struct um_shm_header, join_epoch) == 0x280,
               "layout");
_Static_assert(sizeof(struct um_shm_slot) == UM_SHM_SLOT_SIZE && offsetof(struct um_shm_slot, read_pos) == 0x80,
               "layout");
_Static_assert(sizeof(struct um_shm_control) == 4096 && offsetof(struct um_shm_control, futex) == 0x80, "layout");

static const char *const segment_magic[] = {[UM_SHM_IPC] = "UMIPC\0\0\1", [UM_SHM_SMX] = "UMSMX\0\0\1"};

bool um_shm_huge_pages(uint64_t ring_len)
{
    const char *wish = getenv("UM_SHM_HUGEPAGES");
    return wish != NULL && wish[0] == '1' && ring_len >= HUGE_PAGE;
}

void um_shm_describe(struct um_shm_header *header, const struct um_shm_spec *spec, uint32_t session_id)
{
    uint64_t page = um_shm_huge_pages(spec->ring_len) ? HUGE_PAGE : 4096;
    uint64_t ring_off = UM_SHM_POOL_OFF + (uint64_t)UM_SHM_SLOT_SIZE * spec->max_receivers;
    memcpy(header->magic, segment_magic[spec->kind], sizeof header->magic);
    header->version = UM_SHM_VERSION;
    header->endian_tag = UM_SHM_ENDIAN_TAG;
    header->pool_off = UM_SHM_POOL_OFF;
    header->slot_size = UM_SHM_SLOT_SIZE;
    header->max_receivers = spec->max_receivers;
    header->rec_align = spec->rec_align;
    header->ring_off = (ring_off + page - 1) / page * page;
    header->ring_len = spec->ring_len;
    header->total_len = (header->ring_off + spec->ring_len + 4095) / 4096 * 4096;
    header->datagram_max = spec->datagram_max;
    header->flags = spec->flags;
    header->session_id = session_id;
    header->transport_id = spec->transport_id;
    header->src_pid = (uint32_t)getpid();
    header->src_start_time = um_shm_start_time(header->src_pid);
    header->sm_interval_ms = spec->sm_interval_ms;
}

int um_shm_refuse(const struct um_shm_segment *segment, const char *what, unsigned long long value)
{
    return um_error(UM_EINVAL, "Core-6976-127", "%s: %s %llu: not a segment that can be joined", segment->path, what,
                    value);
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Every field that is used later; `header` is a private copy. */
int um_shm_check_header(const struct um_shm_segment *segment, const struct um_shm_header *header, uint64_t file_len)
{
    bool smx = segment->kind == UM_SHM_SMX;
    if (memcmp(header->magic, segment_magic[segment->kind], sizeof header->magic) != 0) {
        return um_error(UM_EINVAL, "Core-6976-126", "%s: not a segment of libum", segment->path);
    }
    if (header->version >> 16 != UM_SHM_VERSION >> 16) {
        return um_error(UM_EINVAL, "Core-6976-128", "%s: segment version 0x%08x, expected 0x%08x: use the same library",
                        segment->path, header->version, UM_SHM_VERSION);
    }
    if (header->endian_tag != UM_SHM_ENDIAN_TAG) {
        return um_shm_refuse(segment, "byte order", header->endian_tag);
    }
    if (header->total_len != file_len) {
        return um_shm_refuse(segment, "length", header->total_len);
    }
    if (header->session_id != segment->session_id || header->transport_id != segment->transport_id) {
        return um_shm_refuse(segment, "session id", header->session_id);
    }
    if (header->pool_off != UM_SHM_POOL_OFF || header->slot_size != UM_SHM_SLOT_SIZE || header->max_receivers < 1 ||
        header->max_receivers > UM_SHM_RECEIVERS_MAX) {
        return um_shm_refuse(segment, "receiver slots", header->max_receivers);
    }
    uint64_t pool_end = UM_SHM_POOL_OFF + (uint64_t)UM_SHM_SLOT_SIZE * header->max_receivers;
    if (header->ring_off < pool_end || header->ring_off % 4096 != 0 || header->ring_off > file_len) {
        return um_shm_refuse(segment, "ring offset", header->ring_off);
    }
    if (header->ring_len < 64 || header->ring_len > file_len - header->ring_off ||
        (smx ? !is_power_of_two(header->ring_len) : header->ring_len % 32 != 0)) {
        return um_shm_refuse(segment, "ring length", header->ring_len);
    }
    if (smx ? header->rec_align != 16 && (header->rec_align != 64 || header->ring_len < 4096)
            : header->rec_align != 32) {
        return um_shm_refuse(segment, "record alignment", header->rec_align);
    }
    if (header->datagram_max < 16 || header->datagram_max > header->ring_len / 2) {
        return um_shm_refuse(segment, "datagram size", header->datagram_max);
    }
    return 0;
}

void um_shm_adopt_geometry(struct um_shm_segment *segment, const struct um_shm_header *header)
{
    segment->session_id = header->session_id;
    segment->transport_id = header->transport_id;
    segment->max_receivers = header->max_receivers;
    segment->rec_align = header->rec_align;
    segment->datagram_max = header->datagram_max;
    segment->flags = header->flags;
    segment->ring_len = header->ring_len;
    segment->ring_off = header->ring_off;
    segment->total_len = header->total_len;
    segment->sm_interval_ms = header->sm_interval_ms;
}
