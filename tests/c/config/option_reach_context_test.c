/* Options of contexts, of the request port, of delivery and of event queues reach what they rule (F25). See
 * um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include "base/um_mem.h"
#include "core/um_event_queue.h"
#include "um_test_options.h"

/* ---- the context ---- */

static void no_interface(struct world *w)
{
    SET_context(w, "default_interface", "0.0.0.0");
}

/* Every kind of session that has an address, and resolution by multicast and through lbmrd. */
static bool loopback_everywhere(struct world *w)
{
    in_addr_t loopback = inet_addr("127.0.0.1");
    SET_context(w, "resolver_multicast_interface", "0.0.0.0");
    tcp_receiver(w);
    SET_source(w, "transport", "lbt-ru");
    second_source(w);
    second_receiver_joined(w);
    bool here = um_unicast_addr(w->ctx->unicast).s_addr == loopback && seen.unicast_out.local_addr.s_addr == loopback &&
                tcp_session(w->src)->addr.s_addr == loopback && seen.connected_from.s_addr == loopback &&
                seen.udp_low[SEAM_RU_SOURCE].addr == loopback && seen.udp_low[SEAM_RU_RECEIVER].addr == loopback &&
                seen.default_interfaces == 0;
    lbm_context_t *other;
    SET_context(w, "resolver_unicast_daemon", "127.0.0.1:25380");
    SET_context(w, "resolver_unicast_port", "24402");
    MUST(lbm_context_create(&other, w->context, NULL, NULL));
    MUST(lbm_context_delete(other));
    return here && seams_bound("127.0.0.1", 24402);
}

static void nothing(struct world *w)
{
    (void)w;
}

static atomic_int called;

static int found(const char *topic, const char *source, void *clientd)
{
    (void)topic, (void)source;
    atomic_fetch_add((atomic_int *)clientd, 1);
    return 0;
}

static void with_source_notification(struct world *w)
{
    lbm_src_notify_func_t function = {found, &called};
    atomic_store(&called, 0);
    MUST(lbm_context_attr_setopt(w->context, "resolver_source_notification_function", &function, sizeof function));
    tcp_source(w);
    world_wait(w, &called, 1);
}

static lbm_uint32_t cost(const char *topic, const lbm_transport_source_info_t *info, lbm_uint32_t hf, lbm_uint32_t of,
                         void *clientd)
{
    (void)topic, (void)info, (void)hf, (void)of;
    atomic_fetch_add((atomic_int *)clientd, 1);
    return LBM_SRC_COST_FUNCTION_REJECT;
}

static void with_cost_function(struct world *w)
{
    lbm_src_cost_func_t function = {cost, &called};
    atomic_store(&called, 0);
    MUST(lbm_context_attr_setopt(w->context, "source_cost_evaluation_function", &function, sizeof function));
    tcp_source(w);
    receiver_only(w);
    world_wait(w, &called, 1);
}

static char told[LBM_MSG_MAX_SOURCE_LEN];

static int found_named(const char *topic, const char *source, void *clientd)
{
    (void)topic;
    snprintf(told, sizeof told, "%s", source);
    atomic_fetch_add((atomic_int *)clientd, 1);
    return 0;
}

/* The name of a source, as the context and as a receiver tell it. */
static bool topic_index_told(struct world *w)
{
    lbm_src_notify_func_t function = {found_named, &called};
    atomic_store(&called, 0);
    MUST(lbm_context_attr_setopt(w->context, "resolver_source_notification_function", &function, sizeof function));
    tcp_receiver(w);
    wait_bos(w);
    world_wait(w, &called, 1);
    return strchr(told, '[') != NULL || strchr(w->recorder.source, '[') != NULL;
}

static int slow(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    usleep(2000);
    return recorder_cb(rcv, msg, clientd);
}

static void slow_receiver(struct world *w)
{
    tcp_source(w);
    w->rcv = net_receiver(w->ctx, "option", w->receiver, slow, &w->recorder, NULL);
    message_through(w);
    MUST(lbm_context_reset_stats(w->ctx)); /* the messages that follow the first may take a shorter way */
    net_send(w->src, "y");
    recorder_wait(&w->recorder, LBM_MSG_DATA, 2);
    world_settle(w);
}

static bool service_time_measured(struct world *w)
{
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(w->ctx, &stats));
    return stats.rcv_cb_svc_time_max > 0 && stats.rcv_cb_svc_time_max != (lbm_ulong_t)-1;
}

REACHES(context, default_interface, "127.0.0.1/32", nothing, loopback_everywhere(w), true);
REACHES(context, delivery_control_maximum_total_map_entries, "7777", tcp_receiver, seen.dc.map_entries_max, 7777);
REACHES(context, dynamic_fragmentation_reduction, "1", any_source, w->src->stream.session->dynamic_reduction, true);
REACHES(context, file_descriptor_management_behavior, "busy_wait", context_only, seen.loop_wait, UM_LOOP_BUSY_WAIT);
REACHES(context, multiple_receive_maximum_datagrams, "5", rm_receiver,
        seen.reader_count >= 2 && seams_readers(5) == seen.reader_count, true);
REACHES(context, onload_acceleration_stack_name, "f25ctx", tcp_receiver, seams_stack("f25ctx"), 3);
REACHES(context, operational_mode, "sequential", context_only, seen.loop_embedded, false);
REACHES(context, receiver_callback_service_time_enabled, "1", slow_receiver, service_time_measured(w), true);
REACHES_BINARY(context, resolver_source_notification_function, with_source_notification, called, 1);
REACHES_BINARY(context, source_cost_evaluation_function, with_cost_function, called > 0, true);
REACHES(context, source_includes_topic_index, "0", nothing, topic_index_told(w), false);

/* ---- the profile ---- */

static int keep_attributes(const char *topic, lbm_rcv_topic_attr_t *attr, void *clientd)
{
    (void)topic, (void)attr, (void)clientd;
    return 0;
}

/* The receiver that the pattern makes is the n-th of this row to find the source. */
static bool wildcard_is_quick(struct world *w, int n)
{
    wildcard_on(w, "^option$");
    world_wait(w, &seen.dc_made, n);
    MUST(lbm_wildcard_rcv_delete(w->wildcard));
    w->wildcard = NULL;
    bool quick = seen.rm_receiver.naks.suppress_ns == MS(2);
    memset(&seen.rm_receiver, 0, sizeof seen.rm_receiver);
    return quick;
}

/* The context, a source, a receiver, and receivers that patterns make with and without a word of the application. */
static bool has_low_latency(struct world *w)
{
    lbm_wildcard_rcv_create_func_t function = {keep_attributes, NULL};
    rm_source(w);
    bool quick = seen.limits[SEAM_RM].data_bps == 10000000000u && seen.rm_source.sm_min_ns == MS(10);
    quick &= wildcard_is_quick(w, 1);
    MUST(lbm_wildcard_rcv_attr_setopt(w->wildcard_receiver, "receiver_create_callback", &function, sizeof function));
    quick &= wildcard_is_quick(w, 2);
    receiver_only(w);
    world_wait(w, &seen.dc_made, 3);
    return quick && seen.rm_receiver.naks.suppress_ns == MS(2);
}

REACHES(context, um_profile, "low_latency", nothing, has_low_latency(w), true);

/* ---- the request port ---- */

static void request_port_nameless(struct world *w)
{
    no_interface(w);
    context_only(w);
}

static uint16_t request_port(const struct world *w)
{
    return um_unicast_port(w->ctx->unicast);
}

REACHES(context, request_tcp_activity_timeout, "25001", context_only,
        seen.unicast_in.keepalive_ms == 25001 && seen.unicast_out.keepalive_ms == 25001, true);
REACHES(context, request_tcp_bind_request_port, "0", context_only, request_port(w), 0);
REACHES(context, request_tcp_interface, "127.0.0.1/32", request_port_nameless, um_unicast_addr(w->ctx->unicast).s_addr,
        inet_addr("127.0.0.1"));
REACHES(context, request_tcp_port, "24101", context_only, request_port(w), 24101);
REACHES(context, request_tcp_port_high, "14500", context_only, seen.listen.high, 14500);
REACHES(context, request_tcp_port_low, "14394", context_only, request_port(w), 14394);

/* With a range of ports, then with one port. */
static int backlogs(struct world *w)
{
    context_only(w);
    int first = seen.listen.backlog;
    lbm_context_t *other;
    SET_context(w, "request_tcp_port", "24102");
    MUST(lbm_context_create(&other, w->context, NULL, NULL));
    MUST(lbm_context_delete(other));
    return first + seen.listen.backlog;
}

static int reuses(struct world *w)
{
    context_only(w);
    return seen.listen.reuse;
}

REACHES(context, request_tcp_listen_backlog, "17", nothing, backlogs(w), 34);
REACHES(context, request_tcp_reuseaddr, "1", nothing, reuses(w), 1);

REACHES(context, response_session_maximum_buffer, "54323", context_only, seen.unicast_out.queue_limit, 54323);
REACHES(context, response_session_sender_socket_buffer, "54324", context_only, seen.unicast_out.send_buffer, 54324);
REACHES(context, response_tcp_activity_timeout, "25002", context_only, seen.unicast_out.keepalive_ms, 25002);
REACHES(context, response_tcp_deletion_timeout, "7013", context_only, seen.unicast_out.deletion_timeout_ns, MS(7013));
REACHES(context, response_tcp_interface, "127.0.0.1/32", request_port_nameless, seen.unicast_out.local_addr.s_addr,
        inet_addr("127.0.0.1"));
REACHES(context, response_tcp_nodelay, "1", context_only, seen.unicast_out.nodelay, true);

/* ---- delivery ---- */

REACHES(receiver, delivery_control_loss_check_interval, "7014", tcp_receiver, seen.dc.loss_check_interval_ns, MS(7014));
REACHES(receiver, delivery_control_maximum_burst_loss, "771", tcp_receiver, seen.dc.maximum_burst_loss, 771);
REACHES(receiver, onload_acceleration_stack_name, "f25rcv", tcp_receiver, seams_stack("f25rcv"), 1);
REACHES(receiver, um_reassembly_maximum_size, "77771", tcp_receiver, seen.dc.reassembly_size_max, 77771);

REACHES(receiver, ordered_delivery, "0", tcp_receiver, seen.dc.ordered_delivery != 0, false);

static atomic_int deleted;

static void *source_created(const char *source, void *clientd)
{
    (void)source;
    atomic_fetch_add((atomic_int *)clientd, 1);
    return clientd;
}

static int source_deleted(const char *source, void *clientd, void *source_clientd)
{
    (void)source, (void)clientd;
    atomic_fetch_add(&deleted, source_clientd == (void *)&called);
    return 0;
}

static void with_source_functions(struct world *w)
{
    lbm_rcv_src_notification_func_t function = {source_created, source_deleted, &called};
    atomic_store(&called, 0);
    atomic_store(&deleted, 0);
    MUST(lbm_rcv_topic_attr_setopt(w->receiver, "source_notification_function", &function, sizeof function));
    tcp_receiver(w);
    wait_bos(w);
    MUST(lbm_src_delete(w->src));
    w->src = NULL;
    recorder_wait(&w->recorder, LBM_MSG_EOS, 1);
    world_settle(w);
}

REACHES_BINARY(receiver, source_notification_function, with_source_functions, called == 1 && deleted == 1, true);

/* ---- event queues ---- */

static atomic_int told_events;

static void free_event(struct um_event *event)
{
    um_free(event);
}

static void run_event(struct um_event *event)
{
    usleep(2000);
    um_free(event);
}

static void put(struct world *w, struct um_event_owner *owner)
{
    static const struct um_event_ops ops = {.run = run_event, .discard = free_event, .event_class = UM_EVENT_DATA};
    struct um_event *event = um_calloc(1, sizeof *event);
    event->ops = &ops;
    um_event_enqueue(w->evq, owner, event);
}

static int on_monitor(lbm_event_queue_t *evq, int event, size_t size, lbm_ulong_t delay_us, void *clientd)
{
    (void)evq, (void)size, (void)delay_us, (void)clientd;
    atomic_fetch_or(&told_events, event);
    return 0;
}

static void queue_only(struct world *w)
{
    atomic_store(&told_events, 0);
    MUST(lbm_event_queue_create(&w->evq, on_monitor, NULL, w->event_queue));
}

/* Three events waited two milliseconds each before they were run. */
static void queue_served(struct world *w)
{
    queue_only(w);
    for (int i = 0; i < 3; i++) {
        put(w, NULL);
    }
    usleep(2000);
    while (lbm_event_dispatch(w->evq, LBM_EVENT_QUEUE_POLL) > 0) {
    }
}

static lbm_event_queue_stats_t queue_stats(struct world *w)
{
    lbm_event_queue_stats_t stats;
    MUST(lbm_event_queue_retrieve_stats(w->evq, &stats));
    return stats;
}

static void on_cancel(int dispatch_thread, void *clientd)
{
    (void)dispatch_thread;
    atomic_fetch_add((atomic_int *)clientd, 1);
}

static void on_idle(struct um_event_owner *owner)
{
    (void)owner;
}

static int cancel(struct world *w)
{
    struct um_event_owner owner;
    lbm_event_queue_cancel_cb_info_t info = {w->evq, on_cancel, &called};
    um_event_owner_init(&owner, w->evq);
    return um_event_owner_close(&owner, &info, on_idle);
}

/* In the queue, of an object with one event that was closed before that was served; it is dropped unserved. */
static lbm_ulong_t left_after_close(struct world *w)
{
    struct um_event_owner owner;
    MUST(lbm_event_queue_str_setopt(w->evq, "queue_count_enabled", "1"));
    um_event_owner_init(&owner, w->evq);
    put(w, &owner);
    MUST(um_event_owner_close(&owner, NULL, on_idle));
    lbm_ulong_t left = queue_stats(w).events;
    lbm_event_dispatch(w->evq, LBM_EVENT_QUEUE_POLL);
    return left;
}

/* Two numbers: what is there now, and what ever was. */
static bool counted(struct world *w)
{
    queue_only(w);
    put(w, NULL);
    lbm_event_queue_stats_t stats = queue_stats(w);
    lbm_event_dispatch(w->evq, LBM_EVENT_QUEUE_POLL);
    return stats.events == 1 && stats.data_msgs == 1 && stats.data_msgs_tot == 1;
}

/* The warning, and the call that asks for the size. */
static bool size_ruled(struct world *w)
{
    queue_served(w);
    return lbm_event_queue_size(w->evq) == 0 && (told_events & LBM_EVENT_QUEUE_SIZE_WARNING) != 0;
}

REACHES(event_queue, queue_age_enabled, "1", queue_served, queue_stats(w).age_max >= 2000, true);
REACHES(event_queue, queue_cancellation_callbacks_enabled, "1", queue_only, cancel(w), 0);
REACHES(event_queue, queue_count_enabled, "1", nothing, counted(w), true);
REACHES(event_queue, queue_delay_warning, "1000", queue_served, told_events &LBM_EVENT_QUEUE_DELAY_WARNING,
        LBM_EVENT_QUEUE_DELAY_WARNING);
REACHES(event_queue, queue_enqueue_notification, "1", queue_served, told_events &LBM_EVENT_QUEUE_ENQUEUE_NOTIFICATION,
        LBM_EVENT_QUEUE_ENQUEUE_NOTIFICATION);
REACHES(event_queue, queue_objects_purged_on_close, "0", queue_only, left_after_close(w), 1);
REACHES(event_queue, queue_service_time_enabled, "1", queue_served, queue_stats(w).data_msgs_svc_max >= 2000, true);
REACHES(event_queue, queue_size_warning, "2", nothing, size_ruled(w), true);

/* ---- names, by which a configuration document describes objects: last, since it is loaded once in a process ---- */

static const char document[] =
    "<?xml version='1.0' encoding='UTF-8' ?>\n"
    "<um-configuration version='1.0'><applications><application name='f25'>"
    "<contexts><context name='f25ctx'>"
    "<sources><topic topicname='option'>"
    "<options type='source'><option name='transport' default-value='lbt-ru'/></options>"
    "</topic></sources>"
    "<receivers><topic topicname='option'>"
    "<options type='receiver'><option name='delivery_control_maximum_burst_loss' default-value='773'/></options>"
    "</topic></receivers>"
    "<wildcard-receivers><wildcard-receiver pattern='^option$'>"
    "<options type='wildcard-receiver'><option name='resolver_query_maximum_interval' default-value='774'/></options>"
    "</wildcard-receiver></wildcard-receivers>"
    "<options type='context'><option name='resolver_datagram_max_size' default-value='1119'/></options>"
    "</context></contexts>"
    "<event-queues><event-queue name='f25q'>"
    "<options type='event-queue'><option name='queue_size_warning' default-value='9'/></options>"
    "</event-queue></event-queues>"
    "</application></applications></um-configuration>";

static void load_document(void)
{
    static bool loaded;
    if (!loaded) {
        MUST(lbm_config_xml_string(document, "f25"));
        loaded = true;
    }
}

static bool thread_called(const char *name)
{
    char path[64], has[32];
    bool found = false;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        found |= file != NULL && fscanf(file, "%31s", has) == 1 && strcmp(has, name) == 0;
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(tasks);
    return found;
}

/* Everything made in the context is described under its name. */
static bool described(struct world *w)
{
    load_document();
    context_only(w);
    w->src = world_source(w, "option");
    receiver_joined(w);
    bool found = seen.dc.maximum_burst_loss == 773;
    MUST(lbm_rcv_delete(w->rcv));
    w->rcv = NULL;
    wildcard_on(w, "^option$");
    world_wait(w, &seen.dc_made, 2);
    return found && seen.dc.maximum_burst_loss == 773 && seen.pattern.max_initial_ns == MS(774) &&
           seen.tr.source_datagram_max == 1119 && source_info(w->src).type == LBM_TRANSPORT_TYPE_LBTRU &&
           strcmp(seen.context_name, "f25ctx") == 0 && thread_called("um:f25ctx");
}

static void queue_of_document(struct world *w)
{
    load_document();
    queue_only(w);
}

REACHES(context, context_name, "f25ctx", nothing, described(w), true);
REACHES(event_queue, event_queue_name, "f25q", queue_of_document, lbm_event_queue_size(w->evq), 0);

/* ---- XSPs ---- */

static atomic_int mappings, zero_transports;

static lbm_xsp_t *on_mapping(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    (void)ctx, (void)info;
    atomic_fetch_add(&mappings, 1);
    return ((struct world *)clientd)->made_xsp;
}

static int on_zero_transports(lbm_xsp_t *xsp, void *clientd)
{
    (void)xsp, (void)clientd;
    atomic_fetch_add(&zero_transports, 1);
    return 0;
}

static void xsp_only(struct world *w)
{
    lbm_transport_mapping_func_t mapping = {on_mapping, w};
    atomic_store(&mappings, 0);
    atomic_store(&zero_transports, 0);
    MUST(lbm_context_attr_setopt(w->context, "transport_mapping_function", &mapping, sizeof mapping));
    context_only(w);
    MUST(lbm_xsp_create(&w->made_xsp, w->ctx, NULL, w->xsp));
}

static void with_xsp(struct world *w)
{
    xsp_only(w);
    w->src = world_source(w, "option");
    receiver_only(w);
    world_wait(w, &mappings, 1);
}

/* The only receiver is gone, and with it the session. */
static void xsp_left(struct world *w)
{
    lbm_xsp_zero_transports_func_t func = {on_zero_transports, NULL};
    MUST(lbm_xsp_attr_setopt(w->xsp, "zero_transports_function", &func, sizeof func));
    with_xsp(w);
    MUST(lbm_rcv_delete(w->rcv));
    w->rcv = NULL;
    world_wait(w, &zero_transports, 1);
}

REACHES_BINARY(context, transport_mapping_function, with_xsp, atomic_load(&mappings), 1);
REACHES(xsp, operational_mode, "sequential", xsp_only, lbm_xsp_process_events(w->made_xsp, 0), 0);
REACHES_BINARY(xsp, zero_transports_function, xsp_left, atomic_load(&zero_transports), 1);
