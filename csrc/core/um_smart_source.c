/* Smart sources: creation, deletion, buffers. See um_smart_source.h. */
#include "core/um_smart_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "delivery/um_retention.h"
#include "wire/um_lbmc_props.h"

#define LINE 64u
#define BUFFERS_MAX (1u << 20)
#define MARK 0x534d415254425546u /* in front of each buffer */

/* The first line of a buffer. Room for properties follows, then the payload. */
struct buffer_head {
    uint64_t mark;
    bool handed_out;
    bool numbered;           /* it was sent on a channel since it is handed out */
    uint32_t channel;        /* that one */
    uint32_t property_count; /* of the properties it was sent with since then; 0: none */
    uint32_t properties_len; /* of them as they travel */
};

_Static_assert(sizeof(struct buffer_head) <= LINE, "a head is one line");

static struct buffer_head *head_of(const lbm_ssrc_t *ssrc, uint32_t number)
{
    return (struct buffer_head *)(void *)(ssrc->buffers + number * ssrc->stride);
}

static char *payload_of(const lbm_ssrc_t *ssrc, uint32_t number)
{
    return (char *)ssrc->buffers + number * ssrc->stride + ssrc->lead;
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

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Behind the buffers, in the same block: the stack. */
static int make_buffers(lbm_src_t *src)
{
    lbm_ssrc_t *ssrc = UM_CONTAINER_OF(src, lbm_ssrc_t, src);
    const struct um_source_options *opts = src->topic->opts;
    size_t whole = um_src_stream_whole_max(&src->stream), wanted = (size_t)opts->smart_src_max_message_length;
    size_t room = um_src_smart_properties_room(opts);
    if (room >= whole) {
        return um_error(UM_EINVAL, "CoreApi-10160-10",
                        "lbm_ssrc_create: topic [%s]: smart_src_message_property_int_count %d: %zu bytes of properties "
                        "leave no room for a message in a datagram with %zu",
                        src->topic->base.name, opts->smart_src_message_property_int_count, room, whole);
    }
    ssrc->space = whole - room < wanted ? whole - room : wanted;
    ssrc->lead = LINE + lines(room);
    ssrc->stride = ssrc->lead + lines(ssrc->space);
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
    head_of(ssrc, number)->property_count = 0;
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

/* ---- headers ---- */

#define CHANNEL_FLAGS (LBM_SSRC_SEND_EX_FLAG_CHANNEL | LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL)
#define PROPERTY_FLAGS (LBM_SSRC_SEND_EX_FLAG_PROPERTIES | LBM_SSRC_SEND_EX_FLAG_UPDATE_PROPERTY_VALUES)

static int check_enabled(const lbm_ssrc_t *ssrc, int flags, const char *api)
{
    const struct um_source_options *opts = ssrc->src.topic->opts;
    const char *topic = ssrc->src.topic->base.name;
    const bool channels = opts->smart_src_enable_spectrum_channel != 0,
               properties = opts->smart_src_message_property_int_count != 0;
    if ((flags & CHANNEL_FLAGS) && !channels) {
        return um_error(UM_EINVAL, "CoreApi-10160-24",
                        "%s: topic [%s]: channels of a smart source need smart_src_enable_spectrum_channel 1", api,
                        topic);
    }
    if ((flags & PROPERTY_FLAGS) && !properties) {
        return um_error(UM_EINVAL, "CoreApi-10160-15",
                        "%s: topic [%s]: properties of a smart source need smart_src_message_property_int_count", api,
                        topic);
    }
    if (channels && properties && !(flags & CHANNEL_FLAGS) != !(flags & PROPERTY_FLAGS)) {
        return um_error(UM_EINVAL, "CoreApi-10160-27",
                        "%s: topic [%s]: flags 0x%x: a message of a source with channels and properties has both or "
                        "neither",
                        api, topic, (unsigned)flags);
    }
    return 0;
}

/* What is told of a buffer that has nothing yet cannot be an update. */
static int check_buffer(const lbm_ssrc_t *ssrc, const struct buffer_head *head, int flags, const char *api)
{
    const char *wrong = NULL;
    if (head == NULL) {
        wrong = "messages on a channel or with properties are sent with a buffer of the smart source";
    } else if ((flags & LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL) && !head->numbered) {
        wrong = "LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL: the buffer was not sent on a channel yet";
    } else if ((flags & LBM_SSRC_SEND_EX_FLAG_UPDATE_PROPERTY_VALUES) && head->property_count == 0) {
        wrong = "LBM_SSRC_SEND_EX_FLAG_UPDATE_PROPERTY_VALUES: the buffer was not sent with properties yet";
    }
    return wrong == NULL
               ? 0
               : um_error(UM_EINVAL, "CoreApi-10160-25", "%s: topic [%s]: %s", api, ssrc->src.topic->base.name, wrong);
}

static bool name_valid(const char *name)
{
    size_t len = name != NULL ? strnlen(name, UM_SRC_SMART_NAME_MAX + 1) : 0;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] > 0x7f) {
            return false;
        }
    }
    return len >= 1 && len <= UM_SRC_SMART_NAME_MAX;
}

static int check_names(const lbm_ssrc_t *ssrc, const lbm_ssrc_send_ex_info_t *info, const char *api)
{
    for (int i = 0; i < info->mprop_int_cnt; i++) {
        const char *name = info->mprop_int_keys[i], *topic = ssrc->src.topic->base.name;
        if (!name_valid(name)) {
            return um_error(UM_EINVAL, "CoreApi-10160-28",
                            "%s: topic [%s]: mprop_int_keys[%d]: must have 1 to %u ASCII characters", api, topic, i,
                            UM_SRC_SMART_NAME_MAX);
        }
        for (int j = 0; j < i; j++) {
            if (strcmp(name, info->mprop_int_keys[j]) == 0) {
                return um_error(UM_EINVAL, "CoreApi-10160-29",
                                "%s: topic [%s]: mprop_int_keys[%d] and [%d] are both \"%s\": each name is used once",
                                api, topic, j, i, name);
            }
        }
    }
    return 0;
}

/* `built`: the properties that the buffer has keep their names; 0: they are written anew. */
static int check_properties(const lbm_ssrc_t *ssrc, const lbm_ssrc_send_ex_info_t *info, uint32_t built,
                            const char *api)
{
    int most = ssrc->src.topic->opts->smart_src_message_property_int_count;
    if (built != 0 ? (uint32_t)info->mprop_int_cnt != built : info->mprop_int_cnt < 1 || info->mprop_int_cnt > most) {
        return um_error(UM_EINVAL, "CoreApi-10160-31", "%s: topic [%s]: mprop_int_cnt %d: must be %s%d (%s)", api,
                        ssrc->src.topic->base.name, info->mprop_int_cnt, built != 0 ? "" : "1 to ",
                        built != 0 ? (int)built : most,
                        built != 0 ? "the values of the buffer" : "smart_src_message_property_int_count");
    }
    if (info->mprop_int_vals == NULL || (built == 0 && info->mprop_int_keys == NULL)) {
        return um_error(UM_EINVAL, "CoreApi-10160-32", "%s: topic [%s]: %s must be valid", api,
                        ssrc->src.topic->base.name, info->mprop_int_vals == NULL ? "mprop_int_vals" : "mprop_int_keys");
    }
    return built != 0 ? 0 : check_names(ssrc, info, api);
}

static void build_properties(struct buffer_head *head, const lbm_ssrc_send_ex_info_t *info)
{
    struct um_props_writer writer;
    um_props_begin(&writer, (uint8_t *)head + LINE, (uint32_t)info->mprop_int_cnt);
    for (int i = 0; i < info->mprop_int_cnt; i++) {
        const char *name = info->mprop_int_keys[i];
        size_t len = strlen(name);
        struct um_prop prop = {.name = name,
                               .hash = um_prop_hash(name, len),
                               .name_len = (uint8_t)len,
                               .type = UM_PROP_INT,
                               .size = sizeof info->mprop_int_vals[i]};
        memcpy(prop.value.bytes, &info->mprop_int_vals[i], sizeof info->mprop_int_vals[i]);
        um_props_put(&writer, &prop);
    }
    head->property_count = (uint32_t)info->mprop_int_cnt;
    head->properties_len = (uint32_t)writer.at;
}

/* Writes into the buffer what this send changes of its properties. */
static int put_properties(const lbm_ssrc_t *ssrc, struct buffer_head *head, const lbm_ssrc_send_ex_info_t *info,
                          const char *api)
{
    bool update = (info->flags & LBM_SSRC_SEND_EX_FLAG_UPDATE_PROPERTY_VALUES) != 0;
    bool build = head->property_count == 0 || (info->flags & LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER);
    if (!update && !build) {
        return 0; /* as the last time */
    }
    if (check_properties(ssrc, info, build ? 0 : head->property_count, api) != 0) {
        return -1;
    }
    if (build) {
        build_properties(head, info);
        return 0;
    }
    for (uint32_t i = 0; i < head->property_count; i++) {
        um_props_put_int((uint8_t *)head + LINE, i, info->mprop_int_vals[i]);
    }
    return 0;
}

static void put_channel(struct buffer_head *head, const lbm_ssrc_send_ex_info_t *info)
{
    if (!head->numbered ||
        (info->flags & (LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL | LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER))) {
        head->numbered = true;
        head->channel = info->channel;
    }
}

int um_smart_source_headers(lbm_ssrc_t *ssrc, const char *buffer, const lbm_ssrc_send_ex_info_t *info, const char *api,
                            struct um_chain_writer *chain, struct um_slice *properties)
{
    uint32_t number;
    chain->len = 0;
    *properties = (struct um_slice){0};
    if ((info->flags & (CHANNEL_FLAGS | PROPERTY_FLAGS)) == 0) {
        return 0;
    }
    struct buffer_head *head = number_of(ssrc, buffer, &number) ? head_of(ssrc, number) : NULL;
    if (check_enabled(ssrc, info->flags, api) != 0 || check_buffer(ssrc, head, info->flags, api) != 0) {
        return -1;
    }
    um_chain_start(chain);
    if (info->flags & PROPERTY_FLAGS) {
        if (put_properties(ssrc, head, info, api) != 0) {
            return -1;
        }
        *properties = (struct um_slice){(const uint8_t *)head + LINE, head->properties_len};
        um_chain_add_u32(chain, UM_CHAIN_PROPERTIES_LEN, 0, head->properties_len);
    }
    if (info->flags & CHANNEL_FLAGS) {
        put_channel(head, info);
        um_chain_add_u32(chain, UM_CHAIN_CHANNEL, 0, head->channel);
    }
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
