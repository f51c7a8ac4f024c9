/* Smart sources: creation, deletion, buffers. See um_smart_source.h. */
#include "core/um_smart_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "delivery/um_retention.h"

#define LINE 64u
#define BUFFERS_MAX (1u << 20)
#define MARK 0x534d415254425546u /* in front of each buffer */

/* The line in front of a buffer's payload. */
struct buffer_head {
    uint64_t mark;
    bool handed_out;
    bool numbered;    /* it was sent on a channel since it is handed out */
    uint32_t channel; /* that one */
};

_Static_assert(sizeof(struct buffer_head) <= LINE, "a head is one line");

static struct buffer_head *head_of(const lbm_ssrc_t *ssrc, uint32_t number)
{
    return (struct buffer_head *)(void *)(ssrc->buffers + number * ssrc->stride);
}

static char *payload_of(const lbm_ssrc_t *ssrc, uint32_t number)
{
    return (char *)ssrc->buffers + number * ssrc->stride + LINE;
}

/* False: it is none of the source's. */
static bool number_of(const lbm_ssrc_t *ssrc, const char *buffer, uint32_t *number)
{
    uintptr_t first = (uintptr_t)payload_of(ssrc, 0), at = (uintptr_t)buffer;
    if (at < first || (at - first) % ssrc->stride != 0 || (at - first) / ssrc->stride >= ssrc->count) {
        return false;
    }
    *number = (uint32_t)((at - first) / ssrc->stride);
    return true;
}

/* ---- checks ---- */

int um_smart_source_check(const lbm_ssrc_t *ssrc, const char *api)
{
    if (ssrc == NULL || ssrc->src.magic != UM_SOURCE_MAGIC || !ssrc->src.stream.smart) {
        return um_error(UM_EINVAL, "CoreApi-10160-1", "%s: ssrc must be valid", api);
    }
    return um_source_check(&ssrc->src, api);
}

static unsigned checks_of_environment(void)
{
    const char *text = getenv("LBM_SMART_SOURCE_CHECK");
    unsigned checks = text != NULL ? (unsigned)strtoul(text, NULL, 0) : 0;
    if (checks != 0) {
        um_log(UM_LOG_WARNING, "Core-10160-2", "LBM_SMART_SOURCE_CHECK %#x: smart sources are checked, and slower",
               checks);
    }
    return checks;
}

int um_smart_source_inspect(lbm_ssrc_t *ssrc, const char *buffer, const char *api)
{
    uint32_t number;
    if ((ssrc->checks & UM_SMART_CHECK_THREAD) && !um_src_stream_own_thread(&ssrc->src.stream)) {
        return um_error(UM_EINVAL, "CoreApi-10160-3",
                        "%s: topic [%s]: another thread sends on this transport session: one thread sends on all smart "
                        "sources of a session",
                        api, ssrc->src.topic->base.name);
    }
    if ((ssrc->checks & (UM_SMART_CHECK_POINTER | UM_SMART_CHECK_STRUCTURE)) == 0) {
        return 0;
    }
    if (!number_of(ssrc, buffer, &number)) {
        return um_error(UM_EINVAL, "CoreApi-10160-4", "%s: topic [%s]: %p is no buffer of this smart source", api,
                        ssrc->src.topic->base.name, (const void *)buffer);
    }
    if ((ssrc->checks & UM_SMART_CHECK_STRUCTURE) &&
        (head_of(ssrc, number)->mark != MARK || !head_of(ssrc, number)->handed_out)) {
        return um_error(UM_EINVAL, "CoreApi-10160-5", "%s: topic [%s]: buffer %p %s", api, ssrc->src.topic->base.name,
                        (const void *)buffer,
                        head_of(ssrc, number)->mark != MARK ? "was written in front of its beginning"
                                                            : "is not handed out: call lbm_ssrc_buff_get()");
    }
    return 0;
}

/* ---- memory ---- */

static void *allocate(const lbm_mem_mgt_callbacks_t *memory, size_t size)
{
    return memory->malloc_cb_func != NULL ? memory->malloc_cb_func(size, memory->clientd) : um_malloc(size);
}

static void release(const lbm_mem_mgt_callbacks_t *memory, void *block)
{
    if (memory->malloc_cb_func == NULL) {
        um_free(block);
    } else if (block != NULL && memory->free_cb_func != NULL) {
        memory->free_cb_func(block, memory->clientd);
    }
}

/* Behind the buffers, in the same block: the stack. */
static int make_buffers(lbm_src_t *src)
{
    lbm_ssrc_t *ssrc = UM_CONTAINER_OF(src, lbm_ssrc_t, src);
    const struct um_source_options *opts = src->topic->opts;
    size_t whole = um_src_stream_whole_max(&src->stream), wanted = (size_t)opts->smart_src_max_message_length;
    ssrc->space = whole < wanted ? whole : wanted;
    ssrc->stride = LINE + (ssrc->space + LINE - 1) / LINE * LINE;
    ssrc->count = um_src_smart_count((uint32_t)opts->smart_src_user_buffer_count, BUFFERS_MAX, ssrc->stride,
                                     "smart_src_user_buffer_count", "Core-9941-1212", src->topic->base.name);
    if (ssrc->count == 0) {
        return -1;
    }
    size_t size = ssrc->count * (ssrc->stride + sizeof *ssrc->stack) + LINE;
    ssrc->allocated = allocate(&ssrc->memory, size);
    if (ssrc->allocated == NULL) {
        return um_error_nomem("buffers of a smart source", size);
    }
    memset(ssrc->allocated, 0, size); /* the first messages find the pages there */
    ssrc->buffers = (uint8_t *)(((uintptr_t)ssrc->allocated + LINE - 1) / LINE * LINE);
    ssrc->stack = (uint32_t *)(void *)(ssrc->buffers + ssrc->count * ssrc->stride);
    for (uint32_t i = 0; i < ssrc->count; i++) {
        head_of(ssrc, i)->mark = MARK;
        ssrc->stack[i] = ssrc->count - 1 - i; /* the first one handed out is the first of the block */
    }
    ssrc->unused = ssrc->count;
    return 0;
}

int um_smart_source_get(lbm_ssrc_t *ssrc, char **buffer)
{
    if (ssrc->unused == 0) {
        return um_error(UM_ENOMEM, "CoreApi-10160-6",
                        "lbm_ssrc_buff_get: topic [%s]: all %u buffers (smart_src_user_buffer_count) are handed out",
                        ssrc->src.topic->base.name, ssrc->count);
    }
    uint32_t number = ssrc->stack[--ssrc->unused];
    head_of(ssrc, number)->handed_out = true;
    head_of(ssrc, number)->numbered = false;
    *buffer = payload_of(ssrc, number);
    return 0;
}

int um_smart_source_put(lbm_ssrc_t *ssrc, const char *buffer)
{
    uint32_t number;
    if (!number_of(ssrc, buffer, &number) || !head_of(ssrc, number)->handed_out) {
        return um_error(UM_EINVAL, "CoreApi-10160-7",
                        "lbm_ssrc_buff_put: topic [%s]: %p is no buffer of this smart source, or is not handed out",
                        ssrc->src.topic->base.name, (const void *)buffer);
    }
    head_of(ssrc, number)->handed_out = false;
    ssrc->stack[ssrc->unused++] = number;
    return 0;
}

int um_smart_source_channel(lbm_ssrc_t *ssrc, const char *buffer, const lbm_ssrc_send_ex_info_t *info, const char *api,
                            struct um_chain_writer *out)
{
    const bool update = (info->flags & LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL) != 0;
    uint32_t number;
    out->len = 0;
    if (!update && (info->flags & LBM_SSRC_SEND_EX_FLAG_CHANNEL) == 0) {
        return 0;
    }
    if (ssrc->src.topic->opts->smart_src_enable_spectrum_channel == 0) {
        return um_error(UM_EINVAL, "CoreApi-10160-24",
                        "%s: topic [%s]: channels of a smart source need smart_src_enable_spectrum_channel 1", api,
                        ssrc->src.topic->base.name);
    }
    struct buffer_head *head = number_of(ssrc, buffer, &number) ? head_of(ssrc, number) : NULL;
    if (head == NULL || (update && !head->numbered)) {
        return um_error(UM_EINVAL, "CoreApi-10160-25", "%s: topic [%s]: %s", api, ssrc->src.topic->base.name,
                        head == NULL
                            ? "messages on a channel are sent with a buffer of the smart source"
                            : "LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL: the buffer was not sent on a channel yet");
    }
    if (update || !head->numbered || (info->flags & LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER)) {
        head->numbered = true;
        head->channel = info->channel;
    }
    um_chain_start(out);
    um_chain_add_u32(out, UM_CHAIN_CHANNEL, 0, head->channel);
    return 0;
}

/* ---- life ---- */

/* Of the events of a source, those of its messages, and that there is room again. */
static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    lbm_ssrc_t *ssrc = UM_CONTAINER_OF(src, lbm_ssrc_t, src);
    if (event == LBM_SRC_EVENT_CONNECT || event == LBM_SRC_EVENT_DISCONNECT) {
        return 0;
    }
    return ssrc->proc(ssrc, event, ed, ssrc->clientd);
}

static int check_options(const struct um_source_options *opts, const char *topic)
{
    if (!um_src_transports_smart(opts->transport)) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-10160-8",
                        "lbm_ssrc_create: topic [%s]: there are no smart sources on transport %s; set transport lbt-rm "
                        "or lbt-ru",
                        topic, um_src_transports_name(opts->transport));
    }
    if (opts->smart_src_max_message_length < 1) {
        return um_error(UM_EINVAL, "CoreApi-10160-9",
                        "lbm_ssrc_create: topic [%s]: smart_src_max_message_length %d: must be at least 1", topic,
                        opts->smart_src_max_message_length);
    }
    if (opts->smart_src_message_property_int_count != 0) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-10160-10",
                        "lbm_ssrc_create: topic [%s]: smart_src_message_property_int_count is not implemented in this "
                        "version",
                        topic);
    }
    return 0;
}

static int check(lbm_ssrc_t **ssrcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_event_queue_t *evq)
{
    if (ssrcp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-11", "lbm_ssrc_create: ssrcp must be valid");
    }
    if (um_context_check(ctx, "lbm_ssrc_create") != 0 ||
        um_topic_check(topic, ctx, UM_TOPIC_SOURCE, "lbm_ssrc_create") != 0) {
        return -1;
    }
    if (evq != NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-12",
                        "lbm_ssrc_create: evq must be NULL: smart sources have no event queue");
    }
    return check_options(UM_CONTAINER_OF(topic, struct um_src_topic, base)->opts, topic->name);
}

int um_smart_source_create(lbm_ssrc_t **ssrcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_ssrc_cb_proc proc,
                           void *clientd, lbm_event_queue_t *evq)
{
    if (check(ssrcp, ctx, topic, evq) != 0) {
        return -1;
    }
    lbm_ssrc_t *ssrc = um_calloc(1, sizeof *ssrc);
    if (ssrc == NULL) {
        return um_error_nomem("smart source", sizeof *ssrc);
    }
    struct um_src_topic *src_topic = UM_CONTAINER_OF(topic, struct um_src_topic, base);
    lbm_src_t *src;
    ssrc->src.ctx = ctx;
    ssrc->src.topic = src_topic;
    ssrc->src.proc = proc != NULL ? on_event : NULL;
    ssrc->src.stream.smart = true;
    ssrc->proc = proc;
    ssrc->clientd = clientd;
    ssrc->memory = src_topic->opts->mem_mgt_callbacks;
    ssrc->checks = checks_of_environment();
    if (um_source_start(&src, &ssrc->src, NULL, make_buffers, "lbm_ssrc_create") != 0) {
        release(&ssrc->memory, ssrc->allocated);
        um_free(ssrc);
        return -1;
    }
    *ssrcp = ssrc;
    return 0;
}

int um_smart_source_delete(lbm_ssrc_t *ssrc)
{
    if (um_smart_source_check(ssrc, "lbm_ssrc_delete") != 0) {
        return -1;
    }
    const lbm_mem_mgt_callbacks_t memory = ssrc->memory;
    void *block = ssrc->allocated;
    if (um_source_delete(&ssrc->src, NULL, "lbm_ssrc_delete") != 0) {
        return -1;
    }
    release(&memory, block);
    return 0;
}

void um_smart_source_in_force(const lbm_ssrc_t *ssrc, struct um_source_options *out)
{
    out->smart_src_user_buffer_count = (int)ssrc->count;
    out->smart_src_retention_buffer_count =
        (int)um_src_smart_power((uint32_t)out->smart_src_retention_buffer_count, UM_RETENTION_RECORDS_MAX);
}
