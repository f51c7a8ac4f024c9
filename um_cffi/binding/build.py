"""Builds the compiled part of the binding, `um_cffi.binding._native` (cffi API mode, stable ABI).

`python um_cffi/binding/build.py` compiles it against a build tree (UM_BUILD_DIR, default `build`) into
$UM_BUILD_DIR/python/um_cffi/binding/, where the package finds it. `--emit FILE` only writes the C source, for a build
system that compiles it itself. Packaging code imports `make_ffi`, `emit` and `compile_module`.

Structures and constants are read from the public headers, so that they are described in one place.
"""

from __future__ import annotations

import argparse
import os
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODULE = "um_cffi.binding._native"
SOURCES = (
    "um_py_bridge.c",
    "um_py_xsp.c",
    "um_py_room.c",
    "um_py_positions.c",
    "um_py_sending.c",
    "um_py_slots.c",
    "um_py_messages.c",
    "um_py_plain.c",
    "um_py_intake.c",
    "um_py_streams.c",
    "um_py_acquire.c",
    "um_py_direct.c",
    "um_py_each.c",
    "um_py_arrow.c",
    "um_py_pdm.c",
    "um_py_pdm_text.c",
    "um_py_pdm_columns.c",
    "um_py_pdm_arrow.c",
    "um_py_pdm_encode.c",
    "um_py_requests.c",
    "um_py_immediate.c",
    "um_py_fast.c",
)

OPAQUE = """
    lbm_context_t lbm_context_attr_t lbm_topic_t lbm_src_t lbm_rcv_t lbm_hf_rcv_t lbm_hfx_t lbm_hfx_attr_t
    lbm_hfx_rcv_t lbm_ssrc_t um_py_block_t lbm_wildcard_rcv_t lbm_src_topic_attr_t lbm_rcv_topic_attr_t
    lbm_wildcard_rcv_attr_t lbm_event_queue_t lbm_event_queue_attr_t um_collector_t um_py_queue_t um_py_source_t
    um_py_turn_t lbm_xsp_t lbm_xsp_attr_t um_py_mapping_t um_py_room_t um_py_inbox_t um_py_request_t um_py_gate_t
    um_py_positions_t lbm_response_t lbm_msg_properties_t lbmpdm_defn_t lbmpdm_msg_t lbmmon_sctl_t
    lbmmon_format_func_t lbmmon_transport_func_t
"""
STRUCTURES = [
    "lbm_iovec",
    "lbm_config_option",
    "lbm_context_stats",
    *[f"lbm_src_transport_stats_{name}" for name in ("tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx", "broker")],
    *[f"lbm_rcv_transport_stats_{name}" for name in ("tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx", "broker")],
]
EXTENSION_STRUCTURES = [
    "um_mon_src_stats",
    "um_record",
    "um_collector_stats",
    "um_object_counts",
    "um_src_stats",
    "um_src_naks",
    "um_rcv_stats",
    "um_hf_stats",
    "um_context_stats",
]
CONSTANTS = re.compile(
    r"^#define (LBM_(?:E[A-Z_]+|MSG_[A-Z0-9_]+|SRC_(?:NONBLOCK|BLOCK|SEND_EX_FLAG_HF_\w+)|SRC_EVENT_[A-Z0-9_]+"
    r"|TRANSPORT_STAT_\w+|TOPIC_RES_REQUEST_[A-Z_]+|LOG_[A-Z]+))\s+\(?-?[0-9]",
    re.MULTILINE,
)

# Attribute objects of all scopes are used in the same way.
ATTRIBUTES = """
int {0}_create({0}_t **attr);
int {0}_delete({0}_t *attr);
int {0}_str_setopt({0}_t *attr, const char *optname, const char *optval);
int {0}_str_getopt({0}_t *attr, const char *optname, char *optval, size_t *optlen);
"""

DECLARATIONS = """
typedef struct { int type; char source[128]; ...; } lbm_src_transport_stats_t;
typedef struct { int type; char source[128]; ...; } lbm_rcv_transport_stats_t;
typedef struct {
    char topic[256]; char source[...]; int transport; int in_use; uint64_t age_ms; ...;
} um_topic_source_t;

enum { LBM_OK, LBM_FAILURE, ... };
enum { UM_ON_FULL_PAUSE, UM_ON_FULL_DROP_NEWEST, UM_ON_FULL_DROP_OLDEST, UM_ON_FULL_CONFLATE };
#define UM_MSG_FLAG_HR_TIMESTAMP ...
#define UM_MSG_FLAG_ANSWERABLE ...
#define UM_MSG_FLAG_PROPERTIES ...
#define UM_MSG_FLAG_CHANNEL ...
#define UM_MSG_FLAG_HF_RESET ...

typedef struct { const char *name; char *data; size_t size; int type; ...; } lbm_msg_properties_iter_t;
int lbm_msg_properties_create(lbm_msg_properties_t **properties);
int lbm_msg_properties_delete(lbm_msg_properties_t *properties);
int lbm_msg_properties_set(lbm_msg_properties_t *properties, const char *name, const void *value, int type,
                           size_t size);
int lbm_msg_properties_iter_create(lbm_msg_properties_iter_t **iterp);
int lbm_msg_properties_iter_delete(lbm_msg_properties_iter_t *iter);
int lbm_msg_properties_iter_first(lbm_msg_properties_iter_t *iter, lbm_msg_properties_t *properties);
int lbm_msg_properties_iter_next(lbm_msg_properties_iter_t *iter);
int um_msg_properties_read(lbm_msg_properties_t **propertiesp, const void *bytes, size_t len);
int um_msg_properties_bytes(lbm_msg_properties_t *properties, const void **bytesp, size_t *lenp);

const char *lbm_version(void);
const char *lbm_errmsg(void);
int lbm_errnum(void);
void lbm_logf(int level, const char *format, ...);
int lbm_config(const char *fname);
int lbm_config_xml_file(const char *url, const char *application_name);
int lbm_config_xml_string(const char *xml_data, const char *application_name);

int lbm_context_create(lbm_context_t **ctxp, const lbm_context_attr_t *attr, void *proc, void *clientd);
int lbm_context_delete(lbm_context_t *ctx);
int lbm_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec);
int lbm_context_unblock(lbm_context_t *ctx);
int lbm_xsp_create(lbm_xsp_t **xspp, lbm_context_t *ctx, lbm_context_attr_t *cattr, lbm_xsp_attr_t *attr);
int lbm_xsp_delete(lbm_xsp_t *xsp);
int lbm_xsp_process_events(lbm_xsp_t *xsp, lbm_ulong_t msec);
int lbm_xsp_unblock(lbm_xsp_t *xsp);
int lbm_context_str_setopt(lbm_context_t *ctx, const char *optname, const char *optval);
int lbm_context_str_getopt(lbm_context_t *ctx, const char *optname, char *optval, size_t *optlen);
int lbm_context_retrieve_stats(lbm_context_t *ctx, lbm_context_stats_t *stats);
int lbm_context_reset_stats(lbm_context_t *ctx);
int lbm_context_retrieve_rcv_transport_stats(lbm_context_t *ctx, int *num, lbm_rcv_transport_stats_t *stats);
int lbm_context_retrieve_src_transport_stats(lbm_context_t *ctx, int *num, lbm_src_transport_stats_t *stats);
int lbm_context_topic_resolution_request(lbm_context_t *ctx, unsigned short flags, lbm_ulong_t interval_msec,
                                         lbm_ulong_t duration_sec);

int lbm_src_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol, const lbm_src_topic_attr_t *attr);
typedef int (*lbm_src_cb_proc)(lbm_src_t *src, int event, void *ed, void *clientd);
int lbm_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq);
int lbm_hf_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                      lbm_event_queue_t *evq);
int lbm_src_delete(lbm_src_t *src);
int lbm_src_send(lbm_src_t *src, const char *msg, size_t len, int flags);
int lbm_src_sendv(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags);
int lbm_src_str_getopt(lbm_src_t *src, const char *optname, char *optval, size_t *optlen);
int lbm_src_str_setopt(lbm_src_t *src, const char *optname, const char *optval);
int lbm_src_retrieve_transport_stats(lbm_src_t *src, lbm_src_transport_stats_t *stats);

int lbm_rcv_topic_lookup(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                         const lbm_rcv_topic_attr_t *attr);
typedef struct lbm_msg_t_stct lbm_msg_t;
typedef ... lbm_src_channel_info_t;
typedef int (*lbm_rcv_cb_proc)(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd);
int lbm_rcv_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq);
typedef struct { uint32_t channel; ...; } um_channel_subscription_t;
int um_rcv_create_on_channels(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                              void *clientd, lbm_event_queue_t *evq, const um_channel_subscription_t *channels,
                              size_t count);
int lbm_rcv_delete(lbm_rcv_t *rcv);
int um_hf_rcv_create_on_channels(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                                 void *clientd, lbm_event_queue_t *evq, const um_channel_subscription_t *channels,
                                 size_t count);
int lbm_hf_rcv_delete(lbm_hf_rcv_t *hfrcv);
lbm_rcv_t *lbm_rcv_from_hf_rcv(lbm_hf_rcv_t *hfrcv);
int lbm_hfx_attr_create(lbm_hfx_attr_t **attr);
int lbm_hfx_attr_delete(lbm_hfx_attr_t *attr);
int lbm_hfx_attr_str_setopt(lbm_hfx_attr_t *attr, const char *optname, const char *optval);
int lbm_hfx_create(lbm_hfx_t **hfxp, lbm_hfx_attr_t *cattr, const char *symbol, lbm_rcv_cb_proc proc,
                   lbm_event_queue_t *evq);
int lbm_hfx_delete(lbm_hfx_t *hfx);
int lbm_hfx_rcv_create(lbm_hfx_rcv_t **hfrcvp, lbm_hfx_t *hfx, lbm_context_t *ctx, lbm_rcv_topic_attr_t *rattr,
                       void *clientd);
int lbm_hfx_rcv_delete(lbm_hfx_rcv_t *hfrcv);
lbm_rcv_t *lbm_rcv_from_hfx_rcv(lbm_hfx_rcv_t *hfxrcv);
int lbm_rcv_str_getopt(lbm_rcv_t *rcv, const char *optname, char *optval, size_t *optlen);
int lbm_rcv_str_setopt(lbm_rcv_t *rcv, const char *optname, const char *optval);
int lbm_rcv_retrieve_all_transport_stats(lbm_rcv_t *rcv, int *num, lbm_rcv_transport_stats_t *stats);

int um_wildcard_rcv_create_on_channels(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                                       const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr,
                                       lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                                       const um_channel_subscription_t *channels, size_t count);
int lbm_wildcard_rcv_delete(lbm_wildcard_rcv_t *wrcv);
int lbm_wildcard_rcv_str_getopt(lbm_wildcard_rcv_t *wrcv, const char *optname, char *optval, size_t *optlen);
int lbm_wildcard_rcv_str_setopt(lbm_wildcard_rcv_t *wrcv, const char *optname, const char *optval);

void lbm_set_lbtrm_loss_rate(int rate);
void lbm_set_lbtru_loss_rate(int rate);
void lbm_set_lbtrm_src_loss_rate(int rate);
void lbm_set_lbtru_src_loss_rate(int rate);

const char *um_version(void);
int um_rcv_ready(lbm_rcv_t *rcv);
int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms);
int um_wildcard_rcv_ready(lbm_wildcard_rcv_t *wrcv);
int um_wildcard_rcv_wait_ready(lbm_wildcard_rcv_t *wrcv, int sources, int timeout_ms);
int um_wildcard_rcv_transport_stats(lbm_wildcard_rcv_t *wrcv, int *num, lbm_rcv_transport_stats_t *stats);
int um_src_receivers(lbm_src_t *src);
int um_src_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms);
int um_object_counts(um_object_counts_t *counts);
int um_src_stats(lbm_src_t *src, um_src_stats_t *stats);
int um_src_naks(lbm_src_t *src, um_src_naks_t *naks, int *count);
int um_rcv_stats(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats);
int um_hf_rcv_stats(lbm_hf_rcv_t *hfrcv, um_hf_stats_t *stats);
int um_hfx_stats(lbm_hfx_t *hfx, um_hf_stats_t *stats);
int um_wildcard_rcv_stats(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats);
int um_context_stats(lbm_context_t *ctx, um_context_stats_t *stats);
int um_mon_src_stats(lbmmon_sctl_t *control, um_mon_src_stats_t *stats);
const lbmmon_format_func_t *lbmmon_format_csv_module(void);
const lbmmon_format_func_t *lbmmon_format_pb_module(void);
const lbmmon_transport_func_t *lbmmon_transport_lbm_module(void);
const lbmmon_transport_func_t *lbmmon_transport_udp_module(void);
int lbmmon_sctl_create(lbmmon_sctl_t **control, const lbmmon_format_func_t *format, const void *format_options,
                       const lbmmon_transport_func_t *transport, const void *transport_options);
int lbmmon_context_monitor(lbmmon_sctl_t *control, lbm_context_t *ctx, const char *application, unsigned int seconds);
int lbmmon_context_unmonitor(lbmmon_sctl_t *control, lbm_context_t *ctx);
int lbmmon_sctl_sample(lbmmon_sctl_t *control);
int lbmmon_sctl_destroy(lbmmon_sctl_t *control);
int lbmmon_errnum(void);
const char *lbmmon_errmsg(void);
int um_context_topics(lbm_context_t *ctx, const char *pattern, um_topic_source_t *sources, size_t size,
                      size_t *count);

int um_collector_create_ex(um_collector_t **collectorp, size_t max_bytes, int on_full);
int um_collector_delete(um_collector_t *collector);
int um_collector_wake(um_collector_t *collector);
int um_collector_fd(um_collector_t *collector);
int um_collector_see_numbers(um_collector_t *collector);
int um_collector_stats(um_collector_t *collector, um_collector_stats_t *stats);
int um_collector_dropped(um_collector_t *collector, const char *source, uint64_t *count);

typedef struct um_py_item_stct {
    uint64_t owner; int kind; uint32_t first; uint32_t last; int64_t timestamp_ns; char text[...]; ...;
} um_py_item_t;
um_py_queue_t *um_py_log_queue_create(void);
um_py_queue_t *um_py_event_queue_create(void);
void um_py_queue_delete(um_py_queue_t *queue);
int um_py_queue_fd(um_py_queue_t *queue);
void um_py_clear_fd(int fd);
void um_py_queue_wake(um_py_queue_t *queue);
int um_py_queue_take(um_py_queue_t *queue, um_py_item_t **itemp);
void um_py_item_free(um_py_item_t *item);
uint64_t um_py_queue_dropped(um_py_queue_t *queue);
int um_py_log_to(um_py_queue_t *queue);

um_py_source_t *um_py_source_create(uint64_t owner, um_py_queue_t *events);
void um_py_source_delete(um_py_source_t *state);
int um_py_source_fd(um_py_source_t *state);
lbm_src_cb_proc um_py_source_proc(void);
lbm_rcv_cb_proc um_py_collector_proc(void);
lbm_rcv_cb_proc um_py_direct_proc(void);
int um_py_in_callback(lbm_context_t *ctx);
um_py_turn_t *um_py_turn_create(void);
um_py_mapping_t *um_py_mapping_create(void);
void um_py_mapping_delete(um_py_mapping_t *mapping);
int um_py_mapping_install(um_py_mapping_t *mapping, lbm_context_attr_t *attr);
int um_py_mapping_add(um_py_mapping_t *mapping, lbm_xsp_t *xsp, const char *sources);
void um_py_mapping_remove(um_py_mapping_t *mapping, const lbm_xsp_t *xsp);
um_py_room_t *um_py_room_create(void);
void um_py_room_delete(um_py_room_t *room);
void um_py_room_wake(um_py_room_t *room);
int um_py_room_install(um_py_room_t *room, lbm_context_attr_t *attr);
uint64_t um_py_room_seen(um_py_room_t *room);
void um_py_room_wait(um_py_room_t *room, uint64_t seen, int wait_ms);
int um_py_room_fd(um_py_room_t *room);
um_py_positions_t *um_py_positions_create(void);
void um_py_positions_delete(um_py_positions_t *positions);
int um_py_positions_set(um_py_positions_t *positions, const char *source, uint32_t epoch, uint32_t wanted);
uint32_t um_py_positions_epoch(um_py_positions_t *positions, const char *source);
void um_py_positions_forget(um_py_positions_t *positions, const char *source);
int um_py_positions_install(um_py_positions_t *positions, lbm_rcv_topic_attr_t *attr);
int um_py_way_back_size(void);
void um_py_turn_delete(um_py_turn_t *turn);
int um_py_flush(um_py_source_t *state);
int um_py_flush_all(lbm_context_t *ctx, um_py_turn_t *const *turns, int count);
void um_py_source_open(um_py_source_t *state, lbm_src_t *src);
void um_py_source_take_turns(um_py_source_t *state, um_py_turn_t *turn);
int um_py_source_close(um_py_source_t *state);
int um_py_try_send(um_py_source_t *state, const char *data, size_t len, int flags);
int um_py_try_sendv(um_py_source_t *state, const lbm_iovec_t *iov, int num, int flags);
int um_py_send(um_py_source_t *state, const char *data, size_t len, const lbm_iovec_t *iov, int num, int flags,
               int slice_ms);
void um_py_block_unref(void *block);
int um_py_block_count(void);
int um_py_slots_create(lbm_ssrc_t **ssrcp, um_py_block_t **blockp, lbm_context_t *ctx, const char *symbol,
                       lbm_src_topic_attr_t *attr, uint32_t *number);
int lbm_src_channel_create(lbm_src_channel_info_t **chnp, lbm_src_t *src, uint32_t channel_num);
int lbm_src_channel_delete(lbm_src_channel_info_t *chn);
int lbm_rcv_subscribe_channel(lbm_rcv_t *rcv, uint32_t channel, void *proc, void *clientd);
int lbm_rcv_unsubscribe_channel(lbm_rcv_t *rcv, uint32_t channel);
int lbm_wildcard_rcv_unsubscribe_channel(lbm_wildcard_rcv_t *wrcv, uint32_t channel);
int lbm_wildcard_rcv_subscribe_channel(lbm_wildcard_rcv_t *wrcv, uint32_t channel, void *proc, void *clientd);
int lbm_ssrc_delete(lbm_ssrc_t *ssrc);
int lbm_ssrc_get_available_data_space(lbm_ssrc_t *ssrc, int *length);
int lbm_ssrc_buff_get(lbm_ssrc_t *ssrc, char **usr_bufp, int flags);
typedef struct lbm_ssrc_send_ex_info_t_stct {
    int flags; int mprop_int_cnt; char **mprop_int_keys; int32_t *mprop_int_vals; uint32_t channel; ...;
} lbm_ssrc_send_ex_info_t;
#define LBM_SSRC_SEND_EX_FLAG_CHANNEL ...
#define LBM_SSRC_SEND_EX_FLAG_PROPERTIES ...
#define LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER ...
#define LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO ...
int lbm_ssrc_send_ex(lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len, int flags, lbm_ssrc_send_ex_info_t *info);
int lbm_ssrc_retrieve_transport_stats(lbm_ssrc_t *ssrc, lbm_src_transport_stats_t *stats);
typedef struct um_py_extras_stct {
    lbm_msg_properties_t *properties; int hf_flags; int hf_reset; uint64_t hf_number;
    lbm_src_channel_info_t *channel; ...;
} um_py_extras_t;
int um_py_send_with(um_py_source_t *state, const char *data, size_t len, const lbm_iovec_t *iov, int num, int flags,
                    const um_py_extras_t *extras, int slice_ms);
int um_py_send_many(um_py_source_t *state, const char *base, const uint64_t *offsets, const uint32_t *lengths,
                    size_t stride, size_t length, size_t count, int flags, int slice_ms, size_t *sent);
typedef struct um_py_column_stct {
    const char *name; int type; size_t size, stride; const char *values; const uint64_t *ends; const uint8_t *there;
} um_py_column_t;
typedef struct um_py_columns_stct {
    size_t count; const um_py_column_t *columns; lbm_msg_properties_t **rows; size_t rows_stride;
    const int64_t *channels; int64_t channel;
} um_py_columns_t;
int um_py_send_many_with(um_py_source_t *state, const char *base, const uint64_t *offsets, const uint32_t *lengths,
                         const uint64_t *numbers, size_t count, int flags, const um_py_extras_t *extras,
                         const um_py_columns_t *columns, size_t first, int slice_ms, size_t *sent);

typedef struct um_py_letter_stct {
    uint64_t owner; void *msg; const char *data, *source, *topic; size_t len; uint32_t sequence_number;
    int64_t timestamp_ns; ...;
} um_py_letter_t;
um_py_inbox_t *um_py_inbox_create(size_t limit);
void um_py_inbox_delete(um_py_inbox_t *inbox);
void um_py_inbox_ref(um_py_inbox_t *inbox);
void um_py_inbox_unref(um_py_inbox_t *inbox);
int um_py_inbox_fd(um_py_inbox_t *inbox);
uint64_t um_py_inbox_dropped(um_py_inbox_t *inbox);
void um_py_inbox_wake(um_py_inbox_t *inbox);
int um_py_inbox_take(um_py_inbox_t *inbox, um_py_letter_t *letters, int max, int wait_ms);
void um_py_letters_free(const um_py_letter_t *letters, int count);
void um_py_message_free(void *msg);
int um_py_request_properties(void *msg, const void **where, size_t *len);
um_py_request_t *um_py_request_send(um_py_source_t *state, um_py_inbox_t *inbox, uint64_t owner, const char *data,
                                    size_t len, int flags, const um_py_extras_t *extras, int slice_ms);
void um_py_request_delete(um_py_request_t *request);
lbm_rcv_cb_proc um_py_responder_proc(void);
int um_py_respond(void *msg, const char *data, size_t len);

um_py_gate_t *um_py_gate_create(lbm_context_t *ctx);
void um_py_gate_open(um_py_gate_t *gate, lbm_context_t *ctx);
void um_py_gate_close(um_py_gate_t *gate);
void um_py_gate_delete(um_py_gate_t *gate);
int um_py_immediate_send(um_py_gate_t *gate, const char *target, const char *topic, const char *data, size_t len,
                         int flags);
um_py_request_t *um_py_slot_request(lbm_ssrc_t *ssrc, um_py_inbox_t *inbox, uint64_t owner, const char *buffer,
    size_t len, lbm_ssrc_send_ex_info_t *info);
um_py_request_t *um_py_immediate_request(um_py_gate_t *gate, um_py_inbox_t *inbox, uint64_t owner, const char *target,
                                         const char *topic, const char *data, size_t len, int flags);
int um_py_immediate_receive(lbm_context_t *ctx, void *clientd, int direct, int others);
int um_py_immediate_ignore(lbm_context_t *ctx, int others);
lbm_response_t *um_py_answer_open(um_py_gate_t *gate, const char *bytes);
int um_py_answer_send(lbm_response_t *answer, const char *data, size_t len);
void um_py_answer_free(void *answer);

const void *um_py_src_transport(const lbm_src_transport_stats_t *stats);
const void *um_py_rcv_transport(const lbm_rcv_transport_stats_t *stats);

int um_py_add_fast(void);

typedef struct { int64_t mant; int8_t exp; } lbmpdm_decimal_t;
typedef struct { int32_t tv_secs; int32_t tv_usecs; } lbmpdm_timestamp_t;
typedef struct {
    int flags; uint8_t req; uint32_t fixed_str_len; uint32_t num_arr_elem; ...;
} lbmpdm_field_info_attr_t;
typedef struct {
    uint16_t field_type; uint8_t is_array; size_t len; char *value; uint32_t num_arr_elem; size_t *len_arr;
    char **value_arr; ...;
} lbmpdm_field_value_t;
int lbmpdm_errnum(void);
const char *lbmpdm_errmsg(void);
int lbmpdm_cache_struct_add(lbmpdm_defn_t *defn);
int lbmpdm_cache_struct_remove(int32_t id);
int lbmpdm_cache_struct_remove_by_version(int32_t id, uint8_t vers_major, uint8_t vers_minor);
int lbmpdm_cache_struct_find(lbmpdm_defn_t **defn, int32_t id);
int lbmpdm_cache_struct_find_by_version(lbmpdm_defn_t **defn, int32_t id, uint8_t vers_major, uint8_t vers_minor);
int lbmpdm_cache_clear_all(void);
int lbmpdm_defn_create(lbmpdm_defn_t **defn, int32_t num_fields, int32_t id, int8_t major, int8_t minor,
                       uint8_t field_names_type);
int lbmpdm_defn_delete(lbmpdm_defn_t *defn);
int lbmpdm_defn_finalize(lbmpdm_defn_t *defn);
int32_t lbmpdm_defn_add_field_info_by_str_name(lbmpdm_defn_t *defn, const char *name, int16_t type,
                                               lbmpdm_field_info_attr_t *attr);
int32_t lbmpdm_defn_add_field_info_by_int_name(lbmpdm_defn_t *defn, int32_t name, int16_t type,
                                               lbmpdm_field_info_attr_t *attr);
uint32_t lbmpdm_defn_get_length(lbmpdm_defn_t *defn);
int lbmpdm_defn_serialize(lbmpdm_defn_t *defn, char *buffer, uint32_t *len);
int lbmpdm_defn_deserialize(lbmpdm_defn_t *defn, const char *bytes, uint32_t len, uint8_t swap_bytes);
int lbmpdm_msg_create(lbmpdm_msg_t **message, lbmpdm_defn_t *defn, uint32_t flags);
int lbmpdm_msg_delete(lbmpdm_msg_t *message);
int lbmpdm_msg_and_defn_delete(lbmpdm_msg_t *message);
uint32_t lbmpdm_msg_get_length(const lbmpdm_msg_t *message);
lbmpdm_defn_t *lbmpdm_msg_get_defn(const lbmpdm_msg_t *message);
uint8_t lbmpdm_msg_is_field_set(lbmpdm_msg_t *message, int32_t handle);
int lbmpdm_msg_get_field_value_stct(lbmpdm_msg_t *message, int32_t handle, lbmpdm_field_value_t *value);
int lbmpdm_field_value_stct_delete(lbmpdm_field_value_t *value);
int lbmpdm_msg_set_field_value(lbmpdm_msg_t *message, int32_t handle, void *value, size_t len);
int lbmpdm_msg_set_field_value_vec(lbmpdm_msg_t *message, int32_t handle, void *value, size_t *len, size_t count);
int lbmpdm_msg_remove_field_value(lbmpdm_msg_t *message, int32_t handle);
int lbmpdm_msg_set_incl_defn_flag(lbmpdm_msg_t *message);
int lbmpdm_msg_unset_incl_defn_flag(lbmpdm_msg_t *message);
int lbmpdm_msg_serialize(lbmpdm_msg_t *message, char *buffer);
int lbmpdm_msg_deserialize(lbmpdm_msg_t *message, const char *bytes, uint32_t len);
size_t um_py_pdm_gather(const char *base, size_t size, const char *offsets, const char *lengths, size_t stride,
                        size_t count, const char *key, uint32_t section, char *out, unsigned char *big_endian,
                        int *some_big);
typedef struct um_py_pdm_column_stct {
    int32_t code, array, required, plain; uint32_t element, count, place, width; unsigned char *valid;
    int64_t *lists, *texts; unsigned char *values; signed char *exponents; int64_t nulls; size_t elements, bytes; ...;
} um_py_pdm_column_t;
size_t um_py_pdm_memory(um_py_pdm_column_t *columns, size_t fields, size_t rows, char *memory);
size_t um_py_pdm_decode(const char *base, size_t size, const char *offsets, const char *lengths, size_t stride,
                        size_t count, const char *key, uint32_t section, um_py_pdm_column_t *columns, size_t fields,
                        int *error);
void um_py_pdm_free(void *buffer);

typedef struct um_arrow_schema um_arrow_schema_t;
struct um_arrow_schema {
    const char *format, *name, *metadata; int64_t flags, n_children; um_arrow_schema_t **children, *dictionary;
    void (*release)(um_arrow_schema_t *schema); void *private_data;
};
typedef struct um_arrow_array um_arrow_array_t;
struct um_arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children; const void **buffers;
    um_arrow_array_t **children, *dictionary; void (*release)(um_arrow_array_t *array); void *private_data;
};
typedef struct um_arrow_stream um_arrow_stream_t;
struct um_arrow_stream {
    int (*get_schema)(um_arrow_stream_t *stream, um_arrow_schema_t *out);
    int (*get_next)(um_arrow_stream_t *stream, um_arrow_array_t *out);
    const char *(*get_last_error)(um_arrow_stream_t *stream);
    void (*release)(um_arrow_stream_t *stream); void *private_data;
};

typedef struct um_py_pdm_fault_stct { int error, field; int64_t row; char text[200]; } um_py_pdm_fault_t;
typedef struct um_py_pdm_encoded_stct {
    unsigned char *data; size_t size, room; int64_t *ends; um_py_pdm_fault_t fault;
} um_py_pdm_encoded_t;
int um_py_pdm_encode(const um_py_pdm_column_t *fields, size_t count, um_arrow_schema_t *const *schemas,
                     um_arrow_array_t *const *arrays, int64_t at, int64_t rows, const char *key, uint32_t section,
                     um_py_pdm_encoded_t *out);
"""


def _without_comments(header: str) -> str:
    return re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)


def _structure(header: str, name: str) -> str:
    """The declaration of one structure of a public header, with its type name."""
    tag = next(t for t in (f"{name}_t_stct", f"{name}_stct_t", f"{name}_stct") if f"struct {t} {{" in header)
    body = re.search(rf"struct {tag} \{{(.*?)\n\}}", header, re.DOTALL)
    assert body is not None
    return f"typedef struct {tag} {{{body.group(1)}\n}} {name}_t;\n"


SDM = """
typedef struct lbmsdm_msg_t_stct lbmsdm_msg_t;
typedef struct lbmsdm_msg_attr_t_stct lbmsdm_msg_attr_t;
typedef uint16_t lbmsdm_field_type_t;
typedef struct { int64_t mant; int8_t exp; ...; } lbmsdm_decimal_t;
struct timeval { long tv_sec; long tv_usec; ...; };
#define LBMSDM_ERR_FIELD_NOT_FOUND 6
"""


def _sdm(header: str) -> str:
    """The calls of lbmsdm.h that name a field by its index; Python finds the index."""
    calls = re.findall(r"^LBMSDMExpDLL ([^;]*);", _without_comments(header), re.MULTILINE)
    other = re.compile(r"lbmsdm_(?:iter_|win32_)|_name\(")
    wanted = [call for call in calls if not other.search(call) or "get_idx_name(" in call]
    return SDM + "".join(f"{call};\n" for call in wanted)


def declarations(include_dir: Path) -> str:
    """What cffi has to know, from lbm/lbm.h and lbm/um.h below include_dir."""
    lbm = (include_dir / "lbm" / "lbm.h").read_text()
    um = (include_dir / "lbm" / "um.h").read_text()
    parts = ["typedef unsigned long int lbm_ulong_t;\ntypedef unsigned int lbm_uint_t;\n"]
    parts += [f"#define {name} ...\n" for name in dict.fromkeys(CONSTANTS.findall(lbm))]
    parts += [f"typedef ... {name};\n" for name in OPAQUE.split()]
    parts += [_structure(_without_comments(lbm), name) for name in STRUCTURES]
    parts += [_structure(_without_comments(um), name) for name in EXTENSION_STRUCTURES]
    for scope in ("context", "src_topic", "rcv_topic", "wildcard_rcv", "event_queue", "xsp"):
        parts.append(ATTRIBUTES.format(f"lbm_{scope}_attr"))
    parts.append(_sdm((include_dir / "lbm" / "lbmsdm.h").read_text()))
    return "".join(parts) + DECLARATIONS


def make_ffi(
    include_dir: Path,
    library_dirs: Sequence[str] = (),
    runtime_library_dirs: Sequence[str] = (),
    extra_compile_args: Sequence[str] = (),
    extra_link_args: Sequence[str] = (),
) -> FFI:
    """The FFI of `um_cffi.binding._native`; include_dir holds lbm/lbm.h and lbm/um.h, the library is called libum."""
    ffi = FFI()
    ffi.cdef(declarations(include_dir))
    # Free-threaded interpreters have no stable ABI; the package refuses to work on them, see guard.py.
    limited = not sysconfig.get_config_var("Py_GIL_DISABLED")
    ffi.set_source(
        MODULE,
        "#include <lbm/lbmsdm.h>\n#include <lbm/lbmmon.h>\n" + "".join((HERE / name).read_text() for name in SOURCES),
        include_dirs=[str(include_dir)],
        library_dirs=list(library_dirs),
        runtime_library_dirs=list(runtime_library_dirs),
        extra_compile_args=[
            "-std=gnu11",
            "-Wno-unused-function",
            *(["-DPy_LIMITED_API=0x03090000"] if limited else []),
            "-Werror=implicit-function-declaration",
            *extra_compile_args,
        ],
        extra_link_args=list(extra_link_args),
        libraries=["um"],
        py_limited_api=limited,
    )
    return ffi


def emit(target: Path, include_dir: Path) -> None:
    """Write the C source of the module, to be compiled with -I include_dir and linked with libum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    make_ffi(include_dir).emit_c_code(str(target))


def sanitizers(build: Path) -> list[str]:
    """The sanitizer flags of a build tree, which the module has to share, those that keep stacks whole, and as little
    optimization as the tree has: with that of Python the compiler takes twice as long.
    """
    cache = build / "CMakeCache.txt"
    found = re.search(r"^UM_SANITIZE:\w+=(.+)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    if not found:
        return []
    stacks = ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    return ["-O1", "-g1", f"-fsanitize={found.group(1)}", "-fno-sanitize-recover=undefined", *stacks]


def compile_module(
    target: Path,
    include_dir: Path,
    library_dir: Path,
    runtime_library_dir: str | None = None,
    flags: Sequence[str] = (),
) -> Path:
    """Compile the module into the folder target/um_cffi/binding and return its path.

    `runtime_library_dir` is where the module looks for libum, `$ORIGIN/...` included; library_dir unless given. `flags`
    are for compiling and linking.
    """
    ffi = make_ffi(include_dir, [str(library_dir)], [runtime_library_dir or str(library_dir)], flags, flags)
    (target / "um_cffi" / "binding").mkdir(parents=True, exist_ok=True)
    return Path(ffi.compile(tmpdir=str(target)))


def _up_to_date(stamp: Path, include_dir: Path) -> bool:
    inputs = [Path(__file__), *(HERE / name for name in SOURCES), *sorted((include_dir / "lbm").glob("*.h"))]
    return stamp.exists() and all(path.stat().st_mtime <= stamp.stat().st_mtime for path in inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile um_cffi.binding._native.")
    parser.add_argument("--build", type=Path, default=ROOT / os.environ.get("UM_BUILD_DIR", "build"))
    parser.add_argument("--emit", type=Path, help="only write the C source to this file")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    include_dir = build / "include"
    if arguments.emit is not None:
        emit(arguments.emit, include_dir)
        return
    stamp = build / "python" / "um_cffi" / "binding" / "build.stamp"
    if _up_to_date(stamp, include_dir):
        return
    print(f"-- compiling the Python binding into {stamp.parent}", flush=True)
    compile_module(build / "python", include_dir, build / "lib", flags=sanitizers(build))
    stamp.touch()


if __name__ == "__main__":
    main()
