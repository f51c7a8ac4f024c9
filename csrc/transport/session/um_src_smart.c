/* What source sessions have for smart sources alone: counts of buffers, the length
 * of a message that goes in one piece, the thread that sends. */
#include <assert.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "transport/session/um_src_batch.h"
#include "wire/um_lbmc_props.h"

static_assert(UM_SRC_SMART_HEADERS >= 16 + 8 * UM_LBMC_TSNI_MAX, "the longest TSNI fits their shortest datagram");

size_t um_src_smart_properties_room(const struct um_source_options *opts)
{
    size_t count = (size_t)opts->smart_src_message_property_int_count;
    return count == 0 ? 0 : um_props_len(count, count * (UM_SRC_SMART_NAME_MAX + 1 + sizeof(int32_t)));
}

size_t um_src_smart_message_max(const struct um_source_options *opts)
{
    return (size_t)opts->smart_src_max_message_length + um_src_smart_properties_room(opts);
}

uint32_t um_src_smart_power(uint32_t wanted, uint32_t max)
{
    uint32_t count = 1;
    while (count < wanted && count < max) {
        count *= 2;
    }
    return count;
}

/* Reserved memory is written at once: what the machine does not have would end some process. */
static uint64_t memory_max(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : UINT64_MAX;
}

uint32_t um_src_smart_count(uint32_t wanted, uint32_t max, size_t each, const char *option, const char *id,
                            const char *topic)
{
    uint32_t count = um_src_smart_power(wanted, max);
    if (count > memory_max() / each) {
        um_error(UM_EINVAL, "CoreApi-10160-30",
                 "source \"%s\": %s %u: buffers of %zu bytes take more than the %llu MiB that are half of this "
                 "machine's memory; set at most %llu",
                 topic, option, wanted, each, (unsigned long long)(memory_max() >> 20),
                 (unsigned long long)(memory_max() / each));
        return 0;
    }
    if (count != wanted) {
        um_log(UM_LOG_WARNING, id, "source \"%s\": %s %u: %u is used instead: a power of two, %u at most", topic,
               option, wanted, count, max);
    }
    return count;
}

size_t um_src_stream_whole_max(const struct um_src_stream *stream)
{
    return stream->session->datagram_max - stream->session->header_reserve;
}

bool um_src_stream_own_thread(struct um_src_stream *stream)
{
    static _Thread_local char here; /* its address tells threads apart */
    uintptr_t none = 0;
    return atomic_compare_exchange_strong(&stream->session->smart_thread, &none, (uintptr_t)&here) ||
           none == (uintptr_t)&here;
}
