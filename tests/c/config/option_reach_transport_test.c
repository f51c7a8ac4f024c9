/* Options of sources, of TCP and of transports through shared memory reach what they rule (F25). See um_test_options.h.
 */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <arpa/inet.h>

#include "transport/ipc/um_ipc_src_session.h"
#include "transport/smx/um_smx_src_session.h"
#include "um_test_options.h"

static void nothing(struct world *w)
{
    (void)w;
}

static void no_interface(struct world *w)
{
    SET_context(w, "default_interface", "0.0.0.0");
}

/* ---- sources ---- */

#define SESSION (w->src->stream.session)

/* Also while the source lives: something else, then the default. */
static bool interval_ruled(struct world *w)
{
    tcp_source(w);
    bool first = SESSION->interval_ns == MS(70);
    MUST(lbm_src_str_setopt(w->src, "implicit_batching_interval", "71"));
    bool second = SESSION->interval_ns == MS(71);
    MUST(lbm_src_str_setopt(w->src, "implicit_batching_interval", "200"));
    return first && second && SESSION->interval_ns == MS(200);
}

static bool length_ruled(struct world *w)
{
    tcp_source(w);
    bool first = SESSION->minimum_length == 1771;
    MUST(lbm_src_str_setopt(w->src, "implicit_batching_minimum_length", "1772"));
    bool second = SESSION->minimum_length == 1772;
    MUST(lbm_src_str_setopt(w->src, "implicit_batching_minimum_length", "2048"));
    return first && second && SESSION->minimum_length == 2048;
}

static bool type_ruled(struct world *w)
{
    tcp_source(w);
    bool first = SESSION->adaptive;
    MUST(lbm_src_str_setopt(w->src, "implicit_batching_interval", "71"));
    bool still = SESSION->adaptive;
    MUST(lbm_src_str_setopt(w->src, "implicit_batching_type", "default"));
    return first && still && !SESSION->adaptive;
}

REACHES(source, implicit_batching_interval, "70", nothing, interval_ruled(w), true);
REACHES(source, implicit_batching_minimum_length, "1771", nothing, length_ruled(w), true);
REACHES(source, implicit_batching_type, "adaptive", nothing, type_ruled(w), true);
REACHES(source, onload_acceleration_stack_name, "f25src", tcp_source, seams_stack("f25src"), 1);
REACHES(source, transport, "lbt-ru", any_source, source_info(w->src).type, LBM_TRANSPORT_TYPE_LBTRU);
REACHES(source, transport_topic_sequence_number_info_active_threshold, "81", tcp_source, w->src->stream.tsni_active_ns,
        MS(81000));
REACHES(source, transport_topic_sequence_number_info_interval, "7015", tcp_source, w->src->stream.tsni_interval_ns,
        MS(7015));

/* Over both transports that filter. */
static bool filters(struct world *w)
{
    tcp_source(w);
    SET_source(w, "transport", "lbt-ru");
    second_source(w);
    return tcp_session(w->src)->ssf == UM_TCP_SSF_INCLUSION && w->second->stream.session->filtering;
}

REACHES(source, transport_source_side_filtering_behavior, "inclusion", nothing, filters(w), true);

/* ---- TCP sources ---- */

#define TCP tcp_session(w->src)

static void tcp_source_nameless(struct world *w)
{
    no_interface(w);
    tcp_source(w);
}

static void two_tcp_sources(struct world *w)
{
    tcp_source(w);
    second_source(w);
}

/* The only port of the range is shared, instead of the next one being taken, when it is somebody else's. */
static bool next_port_free(struct world *w)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(14372), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    lbm_topic_t *topic;
    bool taken = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    SET_context(w, "transport_tcp_port_low", "14372");
    SET_source(w, "transport", "tcp");
    context_only(w);
    MUST(lbm_src_topic_alloc(&topic, w->ctx, "option", w->source));
    bool created = lbm_src_create(&w->src, w->ctx, topic, NULL, NULL, NULL) == 0;
    close(fd);
    return !taken || created;
}

REACHES(context, transport_tcp_datagram_max_size, "7772", tcp_source, SESSION->datagram_max, 7772);
REACHES(context, transport_tcp_maximum_ports, "1", two_tcp_sources, same_session(w), true);
REACHES(context, transport_tcp_port_high, "14372", nothing, next_port_free(w), false);
REACHES(context, transport_tcp_port_low, "24375", tcp_source, TCP->port, 24375);
REACHES(source, transport_session_maximum_buffer, "77773", tcp_source, TCP->limit, 77773);
REACHES(source, transport_tcp_activity_timeout, "25003", tcp_source, TCP->keepalive_ms, 25003);
REACHES(source, transport_tcp_interface, "127.0.0.1/32", tcp_source_nameless, TCP->addr.s_addr, inet_addr("127.0.0.1"));
REACHES(source, transport_tcp_listen_backlog, "18", tcp_source, seen.listen.backlog, 18);
REACHES(source, transport_tcp_multiple_receiver_behavior, "source_paced", tcp_source, TCP->behavior,
        LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_SOURCE_PACED);
REACHES(source, transport_tcp_multiple_receiver_send_order, "random", tcp_source, TCP->random_order, true);
REACHES(source, transport_tcp_nodelay, "0", tcp_source, TCP->nodelay, false);
REACHES(source, transport_tcp_port, "24103", tcp_source, TCP->port, 24103);
REACHES(source, transport_tcp_reuseaddr, "1", tcp_source, seen.listen.reuse, true);
REACHES(source, transport_tcp_sender_socket_buffer, "54325", tcp_source, TCP->sndbuf, 54325);
REACHES(source, transport_tcp_use_session_id, "0", tcp_source, TCP->reports_id, false);

/* ---- TCP receivers ---- */

static void tcp_receiver_nameless(struct world *w)
{
    no_interface(w);
    tcp_receiver(w);
}

static void tcp_receiver_with_timer(struct world *w)
{
    tcp_receiver(w);
    wait_bos(w);
    world_settle(w);
}

static void tcp_receiver_kept_alive(struct world *w)
{
    SET_receiver(w, "transport_tcp_activity_timeout", "25004");
    tcp_receiver_with_timer(w);
}

/* By the timer of the receiver, and by that of TCP. */
static bool activity_ruled(struct world *w)
{
    tcp_receiver_with_timer(w);
    bool timer = seams_timer(7001000);
    SET_receiver(w, "transport_tcp_activity_method", "SO_KEEPALIVE");
    second_source(w);
    lbm_context_t *other;
    lbm_rcv_t *rcv;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_create(&other, attr, NULL, NULL));
    MUST(lbm_context_attr_delete(attr));
    rcv = net_receiver(other, "option", w->receiver, recorder_cb, &w->recorder, NULL);
    recorder_wait(&w->recorder, LBM_MSG_BOS, 2);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(other));
    return timer && seen.keepalive_ms == 7001000;
}

REACHES(context, transport_tcp_receiver_socket_buffer, "54326", tcp_receiver_with_timer,
        seams_named("transport_tcp_receiver_socket_buffer"), 54326);
REACHES(receiver, transport_tcp_activity_method, "SO_KEEPALIVE", tcp_receiver_kept_alive, seen.keepalive_ms, 25004);
REACHES(receiver, transport_tcp_activity_timeout, "7001000", nothing, activity_ruled(w), true);
REACHES(receiver, transport_tcp_interface, "127.0.0.1/32", tcp_receiver_nameless, seen.connected_from.s_addr,
        inet_addr("127.0.0.1"));

/* ---- LBT-IPC ---- */

static struct um_ipc_src_session *ipc_session(const lbm_src_t *src)
{
    return UM_CONTAINER_OF(src->stream.session, struct um_ipc_src_session, base);
}

static const struct um_ipc_rcv_session *ipc_rcv(void)
{
    struct um_list *node = um_list_first(&seen.ipc_receivers->poller.polled);
    return node == NULL ? NULL : um_ipc_rcv_session_of(um_shm_polled(node));
}

static void two_ipc_sources(struct world *w)
{
    ipc_source(w);
    second_source(w);
}

/* In the segment, where receivers see it, and by the source's timer. */
static bool ipc_tells_every(struct world *w, uint64_t ms)
{
    ipc_source(w);
    return seen.shm.sm_interval_ms == ms && ipc_session(w->src)->sm_interval_ns == MS(ms) && seams_timer(ms);
}

REACHES(context, transport_lbtipc_datagram_max_size, "7774", ipc_source,
        seen.shm.datagram_max == 7774 && SESSION->datagram_max == 7774, true);
REACHES(context, transport_lbtipc_id_high, "20001", two_ipc_sources, same_session(w), true);
REACHES(context, transport_lbtipc_id_low, "20003", ipc_source, seen.shm.transport_id, 20003);
REACHES(context, transport_lbtipc_pend_behavior_linger_loop_count, "7", ipc_receiver, seen.ipc_receivers->linger, 7);
REACHES(context, transport_lbtipc_receiver_operational_mode, "sequential", context_only, seen.ipc_receivers->sequential,
        true);
REACHES(context, transport_lbtipc_receiver_thread_behavior, "busy_wait", ipc_receiver, seen.ipc_receivers->busy_wait,
        true);
REACHES(context, transport_lbtipc_recycle_receive_buffers, "1", ipc_receiver, seen.pool_keep_least > 1, true);
REACHES(context, um_lbtipc_receiver_thread_cpu, "0", ipc_receiver, seams_named("um_lbtipc_receiver_thread_cpu"), 0);
REACHES(source, transport_lbtipc_behavior, "receiver_paced", ipc_source, seen.shm.flags &UM_SHM_FLAG_RECEIVER_PACED,
        UM_SHM_FLAG_RECEIVER_PACED);
REACHES(source, transport_lbtipc_id, "20011", two_ipc_sources,
        seen.shm.transport_id == 20011 && ipc_session(w->src)->base.place.named && same_session(w), true);
REACHES(source, transport_lbtipc_maximum_receivers_per_transport, "7", ipc_source, seen.shm.max_receivers, 7);
REACHES(source, transport_lbtipc_sm_interval, "7016000", nothing, ipc_tells_every(w, 7016000), true);
REACHES(source, transport_lbtipc_transmission_window_size, "77824", ipc_source,
        seen.shm.ring_len == um_ipc_ring_len(77824, 65535) && ipc_session(w->src)->window == 77824, true);
REACHES(receiver, transport_lbtipc_activity_timeout, "7017", ipc_receiver,
        ipc_rcv() != NULL ? ipc_rcv()->timeout_ns : 0, MS(7017));
REACHES(receiver, transport_lbtipc_dro_loss_recovery_timeout, "7018", ipc_receiver, seen.dc.gap_timeout_ns, MS(7018));

/* ---- LBT-SMX ---- */

static struct um_smx_src_session *smx_session(const lbm_src_t *src)
{
    return um_smx_src_session_of(src->stream.session);
}

static void two_smx_sources(struct world *w)
{
    smx_source(w);
    second_source(w);
}

/* By the source and by the receiver. */
static bool smx_counts(struct world *w)
{
    smx_receiver(w);
    message_through(w);
    lbm_rcv_transport_stats_t received[1];
    lbm_src_transport_stats_t sent;
    int count = 1;
    MUST(lbm_context_retrieve_rcv_transport_stats(w->ctx, &count, received));
    MUST(lbm_src_retrieve_transport_stats(w->src, &sent));
    return count == 1 && received[0].transport.lbtsmx.lbm_msgs_rcved > 0 && sent.transport.lbtsmx.msgs_sent > 0;
}

/* The source will not tell of itself for an hour. */
static bool smx_times_out(struct world *w)
{
    SET_source(w, "transport_lbtsmx_sm_interval", "3600000");
    smx_receiver(w);
    wait_bos(w);
    return recorder_wait(&w->recorder, LBM_MSG_EOS, 1);
}

REACHES(context, transport_lbtsmx_id_high, "30001", two_smx_sources, same_session(w), true);
REACHES(context, transport_lbtsmx_id_low, "30003", smx_source, seen.shm.transport_id, 30003);
REACHES(context, transport_lbtsmx_message_statistics_enabled, "1", nothing, smx_counts(w), true);
REACHES(context, um_lbtsmx_receiver_thread_cpu, "0", smx_receiver, seams_named("um_lbtsmx_receiver_thread_cpu"), 0);
REACHES(source, transport_lbtsmx_datagram_max_size, "100000", smx_source, /* the window holds two */
        seen.shm.datagram_max == 100000 && SESSION->datagram_max == 100000 && seen.shm.ring_len == 262144, true);
REACHES(source, transport_lbtsmx_id, "30011", smx_source,
        seen.shm.transport_id == 30011 && smx_session(w->src)->base.place.named, true);
REACHES(source, transport_lbtsmx_maximum_receivers_per_transport, "7", smx_source, seen.shm.max_receivers, 7);
REACHES(source, transport_lbtsmx_sm_interval, "7019", smx_source, seen.shm.sm_interval_ms == 7019 && seams_timer(7019),
        true);
REACHES(source, transport_lbtsmx_transmission_window_size, "262144", smx_source,
        seen.shm.ring_len == 262144 && smx_session(w->src)->window == 262144, true);
REACHES(receiver, transport_lbtsmx_activity_timeout, "300", nothing, smx_times_out(w), true);
