/* Options of smart sources reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "core/um_smart_source.h"
#include "um_test_options.h"

static void smart(struct world *w, const char *transport)
{
    lbm_topic_t *topic;
    SET_source(w, "transport", transport);
    context_only(w);
    MUST(lbm_src_topic_alloc(&topic, w->ctx, "smart", w->source));
    MUST(lbm_ssrc_create(&w->smart, w->ctx, topic, NULL, NULL, NULL));
}

static void smart_rm(struct world *w)
{
    smart(w, "lbt-rm");
}

static void smart_ru(struct world *w)
{
    smart(w, "lbt-ru");
}

static void smart_late(struct world *w)
{
    SET_source(w, "late_join", "1");
    smart_rm(w);
}

static int blocks;

static void *own_malloc(size_t size, void *clientd)
{
    blocks++;
    return malloc(size);
}

static void own_free(void *block, void *clientd)
{
    free(block);
}

static void smart_with_memory(struct world *w)
{
    const lbm_mem_mgt_callbacks_t memory = {.malloc_cb_func = own_malloc, .free_cb_func = own_free};
    blocks = 0;
    MUST(lbm_src_topic_attr_setopt(w->source, "mem_mgt_callbacks", &memory, sizeof memory));
    smart_rm(w);
}

static int space_of(const struct world *w)
{
    int space;
    MUST(lbm_ssrc_get_available_data_space(w->smart, &space));
    return space;
}

static int channel_rc(const struct world *w)
{
    char *buffer;
    lbm_ssrc_send_ex_info_t info = {.flags = LBM_SSRC_SEND_EX_FLAG_CHANNEL, .channel = 7};
    MUST(lbm_ssrc_buff_get(w->smart, &buffer, 0));
    return lbm_ssrc_send_ex(w->smart, buffer, 1, 0, &info);
}

static int properties_rc(const struct world *w)
{
    char *buffer;
    char *names[] = {"a", "b"};
    lbm_int32_t values[] = {1, 2};
    lbm_ssrc_send_ex_info_t info = {.flags = LBM_SSRC_SEND_EX_FLAG_PROPERTIES,
                                    .mprop_int_cnt = 2,
                                    .mprop_int_keys = names,
                                    .mprop_int_vals = values};
    MUST(lbm_ssrc_buff_get(w->smart, &buffer, 0));
    return lbm_ssrc_send_ex(w->smart, buffer, 1, 0, &info);
}

REACHES(source, smart_src_message_property_int_count, "2", smart_rm, properties_rc(w), 0);
REACHES(source, smart_src_enable_spectrum_channel, "1", smart_rm, channel_rc(w), 0);
REACHES_BINARY(source, mem_mgt_callbacks, smart_with_memory, blocks, 1);
REACHES(source, smart_src_max_message_length, "77", smart_rm, space_of(w), 77);
REACHES(source, smart_src_retention_buffer_count, "64", smart_late, seen.retention.records, 64);
REACHES(source, smart_src_user_buffer_count, "64", smart_rm, w->smart->count, 64);
REACHES(source, transport_lbtrm_smart_src_transmission_window_buffer_count, "64", smart_rm, seen.rm_source.buffers, 64);
REACHES(source, transport_lbtru_smart_src_transmission_window_buffer_count, "64", smart_ru, seen.ru_source.buffers, 64);
