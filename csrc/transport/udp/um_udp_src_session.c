/* What source sessions of LBT-RM and LBT-RU have in common: sockets on the loop, the
 * engine's timer, sending under the session lock, senders that wait. See
 * um_udp_src_session.h. */
#include "transport/udp/um_udp_src_session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/lbtr/um_lbtr_window.h"
#include "wire/um_source_string.h"

#define READS_PER_PASS 8                      /* system calls, before others have their turn */
#define WAIT_EMBEDDED_NS (100 * UM_NS_PER_MS) /* the loop wakes waiting senders; this only catches the unforeseen */
#define WAIT_FULL_NS UM_NS_PER_MS             /* the socket was full, and nobody else looks after it */

/* ---- sending: lock ---- */

/* The loop is to wait for room, or to log a failure. */
static void ask_loop(struct um_udp_src_session *source)
{
    source->base.drops.refused = source->out.counters.failed + source->out.counters.dropped;
    if (!source->report_wanted && source->base.drops.refused != source->failed_told) {
        source->report_wanted = true;
        um_loop_post(source->base.env->loop, &source->base.command);
    }
    if (source->out.blocked && !source->write_wanted) {
        source->write_wanted = true;
        um_loop_post(source->base.env->loop, &source->base.command);
    }
}

void um_udp_src_session_put(struct um_udp_src_session *source, const struct sockaddr_in *to, const uint8_t *head,
                            size_t head_len, const uint8_t *body, size_t body_len)
{
    if (body_len > 0 && um_loss_drop(source->loss)) {
        return;
    }
    uint64_t tag = body_len > 0 ? um_lbtr_slot_index(body) : UINT64_MAX;
    uint64_t sent = source->out.counters.datagrams;
    if (source->stamps != NULL && um_udp_out_empty(&source->out)) {
        um_udp_stamps_before(source->stamps);
    }
    um_udp_out_put(&source->out, to, head, head_len, body, body_len, tag, source->trains && source->base.collecting);
    if (source->stamps != NULL) {
        if (source->out.counters.datagrams == sent + 1 && um_udp_out_empty(&source->out)) {
            um_udp_stamps_sent(source->stamps, body, body_len);
        } else {
            um_udp_stamps_astray(source->stamps);
        }
    }
    ask_loop(source);
}

bool um_udp_src_session_full(void *io)
{
    return ((struct um_udp_src_session *)io)->out.blocked;
}

struct um_datagram *um_udp_src_session_acquire(struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    size_t capacity;
    source->datagram = (struct um_datagram){.data = um_lbtr_src_engine_acquire(source->engine, &capacity), .refs = 1};
    return source->datagram.data != NULL ? &source->datagram : NULL;
}

void um_udp_src_session_transmit(struct um_src_session *base, struct um_datagram *datagram)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    if (base->clients == 0 && !base->connectionless) {
        base->drops.unheard_bytes += datagram->len;
    }
    um_lbtr_src_engine_pin(source->engine, source->out.oldest);
    bool gather = base->clients > 1 && !base->collecting; /* the same for several clients: one system call */
    base->collecting |= gather;
    um_lbtr_src_engine_commit(source->engine, um_src_session_clock(base), datagram->len, datagram->user_bytes);
    if (gather) {
        base->collecting = false;
        um_udp_src_session_push(base);
    }
}

void um_udp_src_session_push(struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    if (!um_udp_out_empty(&source->out) && !source->out.blocked) {
        um_udp_out_push(&source->out);
        ask_loop(source);
    }
}

/* Run the engine's timer function; what it sends goes together. */
static void run_timer(struct um_udp_src_session *source)
{
    source->timer_due_ns = UM_NEVER;
    source->base.collecting = true;
    um_lbtr_src_engine_on_timer(source->engine, um_clock_ns());
    if (source->kind->after_timer != NULL) {
        source->kind->after_timer(source);
    }
    source->base.collecting = false;
    um_udp_src_session_push(&source->base);
}

/* ---- the loop ---- */

static void arm(struct um_udp_src_session *source, uint64_t due_ns)
{
    struct um_loop *loop = source->base.env->loop;
    uint64_t now = um_clock_ns();
    if (due_ns != UM_NEVER) {
        um_timer_arm(um_loop_wheel(loop), &source->timer, um_loop_now(loop) + (due_ns > now ? due_ns - now : 0));
    }
}

void um_udp_src_session_set_timer(void *io, uint64_t due_ns)
{
    struct um_udp_src_session *source = io;
    source->timer_due_ns = due_ns;
    if (um_loop_on_thread(source->base.env->loop)) {
        arm(source, due_ns);
    } else if (!source->timer_wanted) {
        source->timer_wanted = true;
        um_loop_post(source->base.env->loop, &source->base.command);
    }
}

void um_udp_src_session_kick(void *io)
{
    struct um_udp_src_session *source = io;
    atomic_store_explicit(&source->kicked, true, memory_order_release);
    um_loop_post(source->base.env->loop, &source->base.command);
}

/* A session that has just sent what it held back has given way to those that wait: their commands are posted. */
void um_udp_src_session_relieved(void *io)
{
    struct um_udp_src_session *source = io;
    if (source->own_come_last) {
        source->own_due = true;
        um_loop_post(source->base.env->loop, &source->base.command);
    } else {
        um_src_session_relieve(&source->base);
    }
}

/* No lock. */
static void report_failures(struct um_udp_src_session *source)
{
    um_src_session_lock(&source->base);
    struct um_udp_out_counters counters = source->out.counters;
    int err = source->out.last_error;
    source->base.drops.refused = counters.failed + counters.dropped;
    bool news = counters.failed + counters.dropped != source->failed_told;
    source->report_wanted = false;
    source->failed_told = counters.failed + counters.dropped;
    um_src_session_unlock(&source->base);
    if (!news) {
        return;
    }
    lbm_src_transport_stats_t stats;
    um_udp_src_session_stats(&source->base, &stats);
    um_log_limited(um_log_of(stats.source), um_loop_now(source->base.env->loop), UM_LOG_WARNING, "Core-5688-3330",
                   "%s: datagrams that could not be sent, up to now %llu (last reason: %s) and %llu for want of room; "
                   "receivers ask for them again",
                   stats.source, (unsigned long long)counters.failed, err != 0 ? strerror(err) : "none",
                   (unsigned long long)counters.dropped);
}

static void after(struct um_udp_src_session *source)
{
    if (source->kind->after != NULL) {
        source->kind->after(source);
    }
    report_failures(source);
}

static struct um_fd *sending_fd(struct um_udp_src_session *source)
{
    return source->out_fd.fd >= 0 ? &source->out_fd : &source->in_fd;
}

static void watch_output(struct um_udp_src_session *source, bool on)
{
    struct um_fd *ufd = sending_fd(source);
    uint32_t interest = ufd == &source->in_fd ? UM_FD_READ : source->stamps != NULL ? UM_FD_EXCEPT : 0;
    if (um_loop_set_interest(source->base.env->loop, ufd, interest | (on ? UM_FD_WRITE : 0)) != 0) {
        um_log(UM_LOG_ERR, "Core-9004-1", "UDP source session: cannot be watched for room: %s", um_errmsg());
    }
}

static void on_writable(struct um_udp_src_session *source)
{
    um_src_session_lock(&source->base);
    if (um_udp_out_push(&source->out)) {
        run_timer(source);
    }
    bool again = source->out.blocked;
    source->write_wanted = again;
    um_src_session_unlock(&source->base);
    watch_output(source, again);
    after(source);
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_udp_src_session *source = UM_CONTAINER_OF(timer, struct um_udp_src_session, timer);
    um_src_session_lock(&source->base);
    source->own_come_last = true;
    run_timer(source);
    source->own_come_last = false;
    um_src_session_unlock(&source->base);
    after(source);
}

void um_udp_src_session_on_command(struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    um_src_session_lock(base);
    if (atomic_exchange_explicit(&source->kicked, false, memory_order_acquire)) {
        run_timer(source);
    }
    if (source->own_due) {
        source->own_due = false;
        um_src_session_relieve(base);
    }
    bool timer = source->timer_wanted;
    uint64_t due = source->timer_due_ns;
    bool write = source->write_wanted;
    source->timer_wanted = false;
    um_src_session_unlock(base);
    if (timer) {
        arm(source, due);
    }
    if (write) {
        watch_output(source, true);
    }
    after(source);
}

/* Lock. */
static void take_packet(struct um_udp_src_session *source, const struct um_udp_datagram *datagram)
{
    if (datagram->oversized) {
        source->base.drops.ignored_from_clients++;
        return;
    }
    const struct um_lbtr_source_counters *counters = um_lbtr_src_engine_counters(source->engine);
    struct um_lbtr_source_counters before = *counters;
    uint64_t now = um_clock_ns();
    source->kind->on_packet(source, now, datagram);
    if (counters->nak_pckts_rcved != before.nak_pckts_rcved) {
        um_udp_nakers_note(&source->nakers, datagram->from_ip, datagram->from_port,
                           counters->naks_rcved - before.naks_rcved, now);
    }
    source->base.drops.ignored_from_clients += counters->packets_ignored - before.packets_ignored;
}

static void read_packets(struct um_udp_src_session *source)
{
    struct um_udp_reader *reader = source->pool->reader;
    bool more = true;
    for (int i = 0; i < READS_PER_PASS && more && um_udp_read(reader, &source->in, &more) > 0; i++) {
        struct um_udp_datagram datagram;
        um_src_session_lock(&source->base);
        source->base.collecting = true;
        while (um_udp_next(reader, &source->in, &datagram)) {
            take_packet(source, &datagram);
        }
        source->base.collecting = false;
        um_udp_src_session_push(&source->base);
        um_src_session_unlock(&source->base);
        after(source);
    }
}

static void on_in_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_udp_src_session *source = UM_CONTAINER_OF(ufd, struct um_udp_src_session, in_fd);
    if (ready & UM_FD_WRITE) {
        on_writable(source);
    }
    if (ready & UM_FD_READ) {
        read_packets(source);
    }
}

static void report_stamp(struct um_udp_src_session *source, const struct um_udp_stamp *stamp)
{
    struct um_src_stream *stream = um_src_session_stream(&source->base, stamp->tidx);
    if (stream != NULL && stream->events->on_timestamp != NULL) {
        stream->events->on_timestamp(stream, &stamp->time, stamp->sqn);
    }
}

static void read_stamps(struct um_udp_src_session *source)
{
    struct um_udp_stamp stamp;
    bool more;
    do {
        um_src_session_lock(&source->base);
        more = um_udp_stamps_next(source->stamps, &stamp);
        um_src_session_unlock(&source->base);
        if (more) {
            report_stamp(source, &stamp);
        }
    } while (more);
}

static void on_out_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_udp_src_session *source = UM_CONTAINER_OF(ufd, struct um_udp_src_session, out_fd);
    if (ready & UM_FD_HANGUP) { /* time stamps, or what an ICMP message said: that would be told again and again */
        int ignored = 0;
        socklen_t len = sizeof ignored;
        if (source->stamps != NULL) {
            read_stamps(source);
        }
        (void)getsockopt(ufd->fd, SOL_SOCKET, SO_ERROR, &ignored, &len);
    }
    if (ready & UM_FD_WRITE) {
        on_writable(source);
    }
}

/* ---- waiting senders ---- */

/* Nobody runs the loop for us: do for every session of the transport what its timer would. */
static void drive(struct um_udp_sources *pool)
{
    struct um_list *it;
    um_lock_take(&pool->base.lock);
    UM_LIST_FOREACH(it, &pool->base.sessions)
    {
        struct um_udp_src_session *source = UM_CONTAINER_OF(it, struct um_udp_src_session, base.pool_node);
        um_src_session_lock(&source->base);
        bool kicked = atomic_exchange_explicit(&source->kicked, false, memory_order_acquire);
        if (source->out.blocked ? um_udp_out_push(&source->out) : kicked || source->timer_due_ns <= um_clock_ns()) {
            run_timer(source);
        }
        um_src_session_unlock(&source->base);
    }
    um_lock_give(&pool->base.lock);
}

void um_udp_src_session_wait(struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    if (um_loop_embedded(base->env->loop)) {
        um_condition_wait_for(&base->changed, &base->lock, WAIT_EMBEDDED_NS);
        return;
    }
    uint64_t now = um_clock_ns();
    uint64_t wait =
        source->out.blocked ? WAIT_FULL_NS : um_lbtr_limiter_next_interval(source->engine->limiter, now) - now;
    um_condition_wait_for(&base->changed, &base->lock, wait);
    um_src_session_unlock(base);
    drive(source->pool);
    um_src_session_lock(base);
}

/* Whatever is held back, the loop goes on with it by the timer. */
void um_udp_src_session_resume(struct um_src_session *base)
{
}

/* The waiting thread sleeps on the session's condition, which has been signalled. */
void um_udp_src_session_interrupt(struct um_src_session *base)
{
}

bool um_udp_src_session_is_relieved(const struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    return um_lbtr_src_engine_may_send(source->engine, true);
}

/* ---- facts ---- */

void um_udp_src_session_stats(struct um_src_session *base, lbm_src_transport_stats_t *out)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    lbm_transport_source_info_t info;
    memset(out, 0, sizeof *out);
    base->ops->source_info(base, &info);
    info.src_ip = source->shown.s_addr;
    um_source_string_format(&info, out->source, sizeof out->source);
    um_src_session_lock(base);
    source->kind->stats(source, out);
    um_src_session_unlock(base);
}

void um_udp_src_session_stats_reset(struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    um_lbtr_src_engine_stats_reset(source->engine);
    um_udp_nakers_clear(&source->nakers);
    memset(&source->out.counters, 0, sizeof source->out.counters);
    source->failed_told = 0;
}

int um_udp_src_session_naks(struct um_src_session *base, struct um_src_nak_count *out, int max)
{
    return um_udp_nakers_list(&um_udp_src_session_of(base)->nakers, out, max);
}

/* ---- beginning and end ---- */

int um_udp_src_session_open_in(struct um_udp_src_session *source, struct um_udp_sources *pool,
                               const struct um_udp_config *config, const struct um_port_range *range)
{
    int rc = um_udp_open_range(pool->reader, &source->in, config, source->addr, range);
    if (rc != 0) {
        return rc;
    }
    source->port = um_socket_local_port(source->in.fd);
    if (source->port == 0) {
        um_error_os(errno, "CoreApi-9004-6", "%s: reading the number of the port", range->low_option);
        um_udp_close(&source->in);
        return -1;
    }
    return 0;
}

int um_udp_src_session_open(struct um_udp_src_session *source, struct um_udp_sources *pool,
                            const struct um_udp_src_session_config *config, const struct um_source_options *opts,
                            int out_fd, bool connected)
{
    struct um_loop *loop = pool->base.env->loop;
    source->pool = pool;
    source->kind = config->kind;
    source->timer_due_ns = UM_NEVER;
    source->stamps = config->stamps != NULL ? um_udp_stamps_create(out_fd, config->stamps) : NULL;
    source->trains =
        source->stamps == NULL && (config->window_limit == 0 || config->window_limit >= 4 * config->datagram_max);
    um_udp_out_init(&source->out, out_fd >= 0 ? out_fd : source->in.fd, connected,
                    pool->base.env->opts->um_udp_segmentation_offload != 0);
    source->out.lean = config->smart;
    um_timer_init(&source->timer, on_timer);
    um_fd_init(&source->in_fd, source->in.fd, on_in_ready);
    um_fd_init(&source->out_fd, out_fd, on_out_ready);
    struct um_src_session_config session = {.datagram_max = config->datagram_max - config->transport_overhead,
                                            .transport_overhead = config->transport_overhead,
                                            .gate = &um_udp_limiter(pool, config->smart)->blocked,
                                            .smart = config->smart,
                                            .one_topic = config->one_topic,
                                            .connectionless = config->connectionless,
                                            .batches_blocked = true};
    if (um_src_session_init(&source->base, pool->base.env, config->ops, &session, opts) != 0) {
        um_free(source->stamps);
        return -1;
    }
    if (um_loop_add_fd(loop, &source->in_fd, UM_FD_READ) != 0) {
        um_src_session_fini(&source->base);
        um_free(source->stamps);
        return -1;
    }
    if (out_fd >= 0 && um_loop_add_fd(loop, &source->out_fd, source->stamps != NULL ? UM_FD_EXCEPT : 0) != 0) {
        um_loop_remove_fd(loop, &source->in_fd);
        um_src_session_fini(&source->base);
        um_free(source->stamps);
        return -1;
    }
    return 0;
}

/* What the rate limit or a full socket still holds back is not waited for. */
static void report_unsent(struct um_udp_src_session *source)
{
    um_src_session_lock(&source->base);
    size_t unsent = um_lbtr_src_engine_held(source->engine) + source->out.count;
    um_src_session_unlock(&source->base);
    if (unsent > 0) {
        lbm_src_transport_stats_t stats;
        um_udp_src_session_stats(&source->base, &stats);
        um_log(UM_LOG_WARNING, "Core-9004-2",
               "%s: deleted with %zu datagrams that the rate limit or a full socket still held back: not sent",
               stats.source, unsent);
    }
}

void um_udp_src_session_close(struct um_src_session *base)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    struct um_loop *loop = base->env->loop;
    report_unsent(source);
    um_timer_cancel(um_loop_wheel(loop), &source->timer);
    um_loop_remove_fd(loop, &source->in_fd);
    if (source->out_fd.fd >= 0) {
        um_loop_remove_fd(loop, &source->out_fd);
        um_fd_close(source->out_fd.fd);
    }
    um_udp_close(&source->in);
    um_lbtr_src_engine_destroy(source->engine); /* the turn leaves the limiter: nobody kicks from here on */
    if (source->kind->fini != NULL) {
        source->kind->fini(source);
    }
    um_src_session_fini(&source->base);
    um_udp_nakers_clear(&source->nakers);
    um_free(source->stamps);
    um_free(source);
}

void um_udp_src_session_forget_topic(struct um_src_session *base, uint32_t tidx)
{
    struct um_udp_src_session *source = um_udp_src_session_of(base);
    if (source->kind->forget_topic != NULL) {
        source->kind->forget_topic(source, tidx);
    }
}
