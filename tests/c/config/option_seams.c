/* The recorder of option_seams.h. Each __wrap_ function is called in place of the function of that name in csrc. */
#include "option_seams.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_buf.h"
#include "base/um_clock.h"
#include "base/um_iface.h"
#include "base/um_timer.h"
#include "net/um_onload.h"
#include "net/um_socket.h"
#include "net/um_udp_send.h"
#include "resolver/um_srs_client.h"
#include "resolver/um_tr_agent.h"
#include "transport/shm/um_shm_thread.h"
#include "transport/udp/um_udp_stamps.h"

struct option_seams seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define RECORD(...)                                                                                                    \
    do {                                                                                                               \
        pthread_mutex_lock(&seen.lock);                                                                                \
        __VA_ARGS__;                                                                                                   \
        pthread_mutex_unlock(&seen.lock);                                                                              \
    } while (0)

void seams_forget(void)
{
    pthread_mutex_lock(&seen.lock);
    memset((char *)&seen + sizeof seen.lock, 0, sizeof seen - sizeof seen.lock);
    seen.pool_keep_least = SIZE_MAX;
    pthread_mutex_unlock(&seen.lock);
}

long long seams_named(const char *option)
{
    long long value = -1000;
    RECORD(for (int i = 0; i < seen.named_count;
                i++) { value = strcmp(seen.named[i].option, option) == 0 ? seen.named[i].value : value; });
    return value;
}

bool seams_bound(const char *ip, uint16_t port)
{
    bool found = false;
    RECORD(for (int i = 0; i < seen.bind_count; i++) {
        found |= (ip == NULL || seen.binds[i].addr == inet_addr(ip)) && (port == 0 || seen.binds[i].port == port);
    });
    return found;
}

int seams_stack(const char *name)
{
    int count = 0;
    RECORD(for (int i = 0; i < seen.stack_count; i++) { count += strcmp(seen.stacks[i], name) == 0; });
    return count;
}

int seams_readers(unsigned batch)
{
    int count = 0;
    RECORD(for (int i = 0; i < seen.reader_count; i++) { count += seen.readers[i].batch == batch; });
    return count;
}

bool seams_timer(uint64_t ms)
{
    uint64_t wanted = ms * UM_NS_PER_MS, slack = 2 * UM_NS_PER_SEC;
    bool found = false;
    RECORD(for (unsigned i = 0; i < seen.delay_count && i < SEAM_MAX;
                i++) { found |= seen.delays[i] + slack >= wanted && seen.delays[i] <= wanted + slack; });
    return found;
}

static void note_named(const char *option, long long value)
{
    RECORD(if (seen.named_count < 64) { seen.named[seen.named_count++] = (struct seam_named){option, value}; });
}

/* Has to be declared as the header declares it: the linker would not notice a difference. */
#define WRAP(type, name, parameters)                                                                                   \
    extern __typeof__(name) __real_##name, __wrap_##name;                                                              \
    type __wrap_##name parameters

/* ---- topic resolution ---- */

WRAP(struct um_tr_engine *, um_tr_engine_create,
     (const struct um_tr_config *config, const struct um_tr_ops *ops, void *io, const struct um_resolver_events *events,
      void *user, uint64_t now_ns))
{
    RECORD(seen.tr = *config);
    return __real_um_tr_engine_create(config, ops, io, events, user, now_ns);
}

WRAP(int, um_tr_engine_set_context_info,
     (struct um_tr_engine * engine, const char *name, uint32_t request_ip, uint16_t request_port))
{
    RECORD(snprintf(seen.context_name, sizeof seen.context_name, "%s", name == NULL ? "" : name));
    return __real_um_tr_engine_set_context_info(engine, name, request_ip, request_port);
}

WRAP(struct um_tr_unicast *, um_tr_unicast_create,
     (const struct um_tr_unicast_config *config, const struct um_tr_unicast_ops *ops, void *io, size_t daemons,
      uint64_t seed, uint64_t now_ns))
{
    RECORD(seen.unicast = *config; seen.daemons = daemons);
    return __real_um_tr_unicast_create(config, ops, io, daemons, seed, now_ns);
}

WRAP(struct um_srs_client *, um_srs_client_create,
     (const struct um_srs_client_config *config, const struct um_srs_client_ops *ops, void *io))
{
    RECORD(seen.service.port = config->service_port; seen.service.interest_mode = config->self->interest_mode);
    return __real_um_srs_client_create(config, ops, io);
}

WRAP(struct um_tr_advert *, um_tr_engine_advertise,
     (struct um_tr_engine * engine, uint64_t now_ns, const struct um_tr_advert_spec *spec,
      const struct um_tr_advert_options *options))
{
    RECORD(seen.advert = *options);
    return __real_um_tr_engine_advertise(engine, now_ns, spec, options);
}

WRAP(struct um_tr_topic *, um_tr_engine_lookup,
     (struct um_tr_engine * engine, uint64_t now_ns, const char *topic, const struct um_tr_query_options *options,
      void *topic_user))
{
    RECORD(seen.query = *options);
    return __real_um_tr_engine_lookup(engine, now_ns, topic, options, topic_user);
}

WRAP(struct um_tr_pattern *, um_tr_engine_subscribe_pattern,
     (struct um_tr_engine * engine, uint64_t now_ns, const char *pattern, int pattern_type,
      const struct um_tr_timing *timing, bool (*match)(void *pattern_user, const char *topic), void *pattern_user))
{
    RECORD(seen.pattern = *timing; seen.pattern_type = pattern_type; seen.patterns_made++);
    return __real_um_tr_engine_subscribe_pattern(engine, now_ns, pattern, pattern_type, timing, match, pattern_user);
}

WRAP(void, um_tr_topic_set_thresholds,
     (struct um_tr_topic * topic, uint64_t sources_threshold, uint64_t no_source_threshold, bool internal))
{
    RECORD(seen.sources_threshold = sources_threshold; seen.no_source_threshold = no_source_threshold);
    __real_um_tr_topic_set_thresholds(topic, sources_threshold, no_source_threshold, internal);
}

WRAP(enum um_tr_sent, um_tr_send_to, (int fd, uint32_t ip, uint16_t port, const uint8_t *data, size_t len))
{
    RECORD(seen.sent_to = ((struct seam_bind){ip, port}); seen.datagrams_sent++);
    return __real_um_tr_send_to(fd, ip, port, data, len);
}

WRAP(void, um_tr_engine_on_packet,
     (struct um_tr_engine * engine, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t from_ip,
      uint16_t from_port))
{
    RECORD(seen.packets++);
    __real_um_tr_engine_on_packet(engine, now_ns, data, len, from_ip, from_port);
}

WRAP(int, um_iface_default_multicast, (const char *option_name, struct um_iface *out))
{
    RECORD(seen.default_interfaces++);
    return __real_um_iface_default_multicast(option_name, out);
}

/* ---- delivery and engines of transports ---- */

WRAP(struct um_dc *, um_dc_create, (const struct um_dc_config *config, const struct um_dc_ops *ops, void *user))
{
    RECORD(seen.dc = *config; seen.dc_made++);
    return __real_um_dc_create(config, ops, user);
}

WRAP(void, um_mim_flow_init,
     (struct um_mim_flow * flow, const struct um_mim_flow_config *config, const struct um_dc_ops *ops, void *user))
{
    RECORD(seen.mim_flow = *config);
    __real_um_mim_flow_init(flow, config, ops, user);
}

WRAP(void, um_hf_init, (struct um_hf * hf, const struct um_hf_config *config, const struct um_hf_ops *ops, void *user))
{
    RECORD(seen.hf = *config; seen.merges_made++);
    __real_um_hf_init(hf, config, ops, user);
}

WRAP(void, um_recovery_init,
     (struct um_recovery * recovery, const struct um_recovery_config *config, const struct um_recovery_ops *ops,
      void *user, struct um_dc *dc))
{
    RECORD(seen.recovery = *config);
    __real_um_recovery_init(recovery, config, ops, user, dc);
}

WRAP(struct um_retention *, um_retention_create, (const struct um_retention_config *config))
{
    RECORD(seen.retention = *config; seen.retentions_made++);
    return __real_um_retention_create(config);
}

WRAP(struct um_lbtr_src_engine *, um_lbtrm_src_engine_create,
     (const struct um_lbtrm_src_engine_config *config, struct um_lbtr_limiter *limiter,
      const struct um_lbtrm_src_engine_ops *ops, void *io))
{
    RECORD(seen.rm_source = *config);
    return __real_um_lbtrm_src_engine_create(config, limiter, ops, io);
}

WRAP(struct um_lbtr_rcv_engine *, um_lbtrm_rcv_engine_create,
     (const struct um_lbtrm_rcv_engine_config *config, struct um_rng *rng, const struct um_lbtr_rcv_outputs *ops,
      void *io, uint64_t now_ns))
{
    RECORD(seen.rm_receiver = *config);
    return __real_um_lbtrm_rcv_engine_create(config, rng, ops, io, now_ns);
}

WRAP(struct um_lbtr_src_engine *, um_lbtru_src_engine_create,
     (const struct um_lbtru_src_engine_config *config, struct um_lbtr_limiter *limiter,
      const struct um_lbtru_src_engine_ops *ops, void *io))
{
    RECORD(seen.ru_source = *config);
    return __real_um_lbtru_src_engine_create(config, limiter, ops, io);
}

WRAP(struct um_lbtr_rcv_engine *, um_lbtru_rcv_engine_create,
     (const struct um_lbtru_rcv_engine_config *config, struct um_rng *rng, const struct um_lbtr_rcv_outputs *ops,
      void *io, uint64_t now_ns))
{
    RECORD(seen.ru_receiver = *config);
    return __real_um_lbtru_rcv_engine_create(config, rng, ops, io, now_ns);
}

WRAP(void, um_lbtr_limiter_init, (struct um_lbtr_limiter * limiter, const struct um_lbtr_limiter_config *config))
{
    RECORD(seen.limits[config->retransmissions_count ? SEAM_RM : SEAM_RU] = *config);
    __real_um_lbtr_limiter_init(limiter, config);
}

WRAP(int, um_shm_create, (struct um_shm_segment * segment, const struct um_shm_spec *spec))
{
    RECORD(seen.shm = *spec);
    return __real_um_shm_create(segment, spec);
}

WRAP(void, um_shm_thread_pin, (const struct um_shm_thread *thread, int cpu, const char *option))
{
    note_named(option, cpu);
    __real_um_shm_thread_pin(thread, cpu, option);
}

WRAP(struct um_rcv_transport *, um_ipc_receivers_create, (struct um_transport_env * env))
{
    struct um_rcv_transport *receivers = __real_um_ipc_receivers_create(env);
    RECORD(seen.ipc_receivers = um_ipc_receivers_of(receivers));
    return receivers;
}

WRAP(struct um_unicast_in *, um_unicast_in_create, (const struct um_unicast_in_config *config, int listen_fd))
{
    RECORD(seen.unicast_in = *config);
    return __real_um_unicast_in_create(config, listen_fd);
}

WRAP(struct um_unicast_out *, um_unicast_out_create, (const struct um_unicast_out_config *config))
{
    RECORD(seen.unicast_out = *config);
    return __real_um_unicast_out_create(config);
}

/* ---- sockets ---- */

WRAP(int, um_udp_open_group,
     (struct um_udp_reader * reader, struct um_udp_socket *socket, const struct um_udp_config *config,
      struct in_addr group, uint16_t port, const struct um_iface *iface, bool any_address))
{
    RECORD(seen.udp[SEAM_RM_RECEIVER] = *config; seen.group = ((struct seam_bind){group.s_addr, port}));
    return __real_um_udp_open_group(reader, socket, config, group, port, iface, any_address);
}

static _Thread_local bool opening_source; /* else the socket is a receiver's */

WRAP(int, um_udp_src_session_open_in,
     (struct um_udp_src_session * source, struct um_udp_sources *pool, const struct um_udp_config *config,
      const struct um_port_range *range))
{
    opening_source = true;
    int rc = __real_um_udp_src_session_open_in(source, pool, config, range);
    opening_source = false;
    return rc;
}

WRAP(int, um_udp_open_range,
     (struct um_udp_reader * reader, struct um_udp_socket *socket, const struct um_udp_config *config,
      struct in_addr addr, const struct um_port_range *range))
{
    enum seam_udp kind = !opening_source                                         ? SEAM_RU_RECEIVER
                         : strstr(range->low_option, "transport_lbtrm_") != NULL ? SEAM_RM_SOURCE
                                                                                 : SEAM_RU_SOURCE;
    RECORD(seen.udp[kind] = *config; seen.udp_low[kind] = ((struct seam_bind){addr.s_addr, range->low});
           seen.udp_high[kind] = range->high);
    return __real_um_udp_open_range(reader, socket, config, addr, range);
}

WRAP(struct um_udp_reader *, um_udp_reader_create, (unsigned batch, size_t datagram_max, bool offload))
{
    RECORD(if (seen.reader_count < 16) {
        seen.readers[seen.reader_count].batch = batch;
        seen.readers[seen.reader_count].datagram_max = datagram_max;
        seen.readers[seen.reader_count++].offload = offload;
    });
    return __real_um_udp_reader_create(batch, datagram_max, offload);
}

WRAP(void, um_udp_out_init, (struct um_udp_out * out, int fd, bool connected, bool segment))
{
    RECORD(seen.outs++; seen.outs_segmenting += segment);
    __real_um_udp_out_init(out, fd, connected, segment);
}

WRAP(int, um_udp_src_session_open,
     (struct um_udp_src_session * source, struct um_udp_sources *pool, const struct um_udp_src_session_config *config,
      const struct um_source_options *opts, int out_fd, bool connected))
{
    RECORD(seen.window_size = config->window_size; seen.window_limit = config->window_limit);
    return __real_um_udp_src_session_open(source, pool, config, opts, out_fd, connected);
}

WRAP(struct um_udp_stamps *, um_udp_stamps_create, (int fd, const struct um_iface *iface))
{
    RECORD(seen.stamps++);
    return __real_um_udp_stamps_create(fd, iface);
}

static void note_listen(struct in_addr addr, uint16_t port, uint16_t high, int backlog, bool reuse)
{
    RECORD(seen.listen.addr = addr; seen.listen.port = port; seen.listen.high = high; seen.listen.backlog = backlog;
           seen.listen.reuse = reuse);
}

WRAP(int, um_socket_tcp_listen,
     (struct in_addr addr, uint16_t port, int backlog, bool reuseaddr, uint16_t *bound_port, int *err))
{
    note_listen(addr, port, port, backlog, reuseaddr);
    return __real_um_socket_tcp_listen(addr, port, backlog, reuseaddr, bound_port, err);
}

WRAP(int, um_socket_tcp_listen_range,
     (struct in_addr addr, const struct um_port_range *range, int backlog, bool reuseaddr, uint16_t *bound_port))
{
    note_listen(addr, range->low, range->high, backlog, reuseaddr);
    return __real_um_socket_tcp_listen_range(addr, range, backlog, reuseaddr, bound_port);
}

WRAP(int, um_socket_tcp_connect, (struct in_addr from, struct in_addr to, uint16_t port))
{
    RECORD(seen.connected_from = from);
    return __real_um_socket_tcp_connect(from, to, port);
}

WRAP(int, um_lz4_cover, (struct um_lz4 * lz4, struct um_stream *stream))
{
    RECORD(seen.lz4_streams++);
    return __real_um_lz4_cover(lz4, stream);
}

WRAP(int, um_socket_set_keepalive, (int fd, unsigned timeout_ms))
{
    RECORD(seen.keepalive_ms = timeout_ms);
    return __real_um_socket_set_keepalive(fd, timeout_ms);
}

WRAP(int, um_socket_udp, (struct in_addr addr, uint16_t port, bool reuse, int *err))
{
    RECORD(if (seen.bind_count < 64) { seen.binds[seen.bind_count++] = (struct seam_bind){addr.s_addr, port}; });
    return __real_um_socket_udp(addr, port, reuse, err);
}

WRAP(void, um_socket_set_rcvbuf,
     (int fd, size_t bytes, enum um_size_origin origin, const char *option, const char *log_id))
{
    note_named(option, (long long)bytes);
    __real_um_socket_set_rcvbuf(fd, bytes, origin, option, log_id);
}

WRAP(void, um_socket_set_sndbuf,
     (int fd, size_t bytes, enum um_size_origin origin, const char *option, const char *log_id))
{
    note_named(option, (long long)bytes);
    __real_um_socket_set_sndbuf(fd, bytes, origin, option, log_id);
}

/* ---- the rest ---- */

WRAP(struct um_loop *, um_loop_create, (bool embedded, enum um_loop_wait wait, const char *thread_name))
{
    RECORD(seen.loop_embedded = embedded; seen.loop_wait = wait);
    return __real_um_loop_create(embedded, wait, thread_name);
}

static const char *note_tls(int at, const char *text)
{
    snprintf(seen.tls_texts[at], sizeof seen.tls_texts[at], "%s", text != NULL ? text : "");
    return seen.tls_texts[at];
}

WRAP(struct um_tls *, um_tls_create, (const struct um_tls_config *config))
{
    RECORD(seen.tls = (struct um_tls_config){.certificate = note_tls(0, config->certificate),
                                             .key = note_tls(1, config->key),
                                             .password = note_tls(2, config->password),
                                             .trusted = note_tls(3, config->trusted),
                                             .suites = note_tls(4, config->suites)});
    return __real_um_tls_create(config);
}

WRAP(bool, um_onload_enter, (const char *stack))
{
    if (stack != NULL) {
        RECORD(if (seen.stack_count < 8) {
            snprintf(seen.stacks[seen.stack_count++], sizeof seen.stacks[0], "%s", stack);
        });
    }
    return __real_um_onload_enter(stack);
}

WRAP(struct um_buf_pool *, um_buf_pool_create, (size_t capacity, size_t keep_max))
{
    RECORD(seen.pool_keep_least = keep_max < seen.pool_keep_least ? keep_max : seen.pool_keep_least);
    return __real_um_buf_pool_create(capacity, keep_max);
}

WRAP(void, um_timer_arm, (struct um_timer_wheel * wheel, struct um_timer *timer, uint64_t due_ns))
{
    uint64_t now_ns = um_clock_ns();
    RECORD(seen.delays[seen.delay_count++ % SEAM_MAX] = due_ns > now_ns ? due_ns - now_ns : 0);
    __real_um_timer_arm(wheel, timer, due_ns);
}
