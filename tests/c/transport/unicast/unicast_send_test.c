/* The unicast layer from many threads: waiting, refusal, loss, deletion; headings and handlers; bounds. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/um_error.h"
#include "transport/unicast/um_unicast.h"
#include "um_test_awkward.h"
#include "um_test_loop.h"
#include "um_test_thread.h"

static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};

struct world {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_unicast *unicast;
    int others;
};

static void on_other(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns)
{
    ((struct world *)user)->others++;
}

static const struct um_unicast_events events = {on_other};

static int do_create(void *arg)
{
    struct world *world = arg;
    world->unicast = um_unicast_create(world->loop, &world->opts, instance, &events, world);
    return world->unicast != NULL ? 0 : -1;
}

static int do_destroy(void *arg)
{
    um_unicast_destroy(((struct world *)arg)->unicast);
    return 0;
}

static bool world_open(struct world *world, bool embedded)
{
    memset(world, 0, sizeof *world);
    test_log_start();
    test_options(&world->opts);
    world->opts.request_tcp_bind_request_port = 1;
    world->opts.response_session_maximum_buffer = 4000;
    world->opts.response_session_sender_socket_buffer = 4096; /* a break loses what the kernel holds */
    world->loop = um_loop_create(embedded, UM_LOOP_PEND, "test");
    return um_loop_call(world->loop, do_create, world) == 0;
}

static void world_close(struct world *world)
{
    if (world->unicast != NULL) {
        um_loop_call(world->loop, do_destroy, world);
    }
    um_loop_destroy(world->loop);
    um_log_set_proc(NULL, NULL);
}

static struct um_unicast_stats stats_of(struct world *world)
{
    struct um_unicast_stats stats;
    um_unicast_stats(world->unicast, &stats);
    return stats;
}

/* Sends a MESSAGE of `len` bytes in all, before its heading. */
static int send_data(struct world *world, uint16_t port, uint32_t tidx, uint32_t sqn, size_t len,
                     struct um_unicast_send *how)
{
    static _Thread_local uint8_t message[70000];
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, (uint16_t)len, tidx, sqn);
    struct iovec iov[2] = {{message, UM_LBMC_DATA_HDR_LEN},
                           {message + UM_LBMC_DATA_HDR_LEN, len - UM_LBMC_DATA_HDR_LEN}};
    struct um_unicast_send send = how != NULL ? *how : (struct um_unicast_send){.heading = UM_UNICAST_TO_ADDRESS};
    send.ip = htonl(INADDR_LOOPBACK);
    send.port = port;
    send.iov = iov;
    send.iovcnt = 2;
    return um_unicast_send(world->unicast, &send);
}

/* Blocking accept with a limit. */
static int accept_one(int listener)
{
    struct pollfd pfd = {.fd = listener, .events = POLLIN};
    return poll(&pfd, 1, (int)(HANG_LIMIT_NS / UM_NS_PER_MS)) > 0 ? accept(listener, NULL, NULL) : -1;
}

static bool read_exactly(int fd, uint8_t *out, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t got = recv(fd, out + have, len - have, 0);
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
    }
    return true;
}

/* One LBMC message from a blocking socket. False: the end. */
static bool read_message(int fd, uint8_t *bytes, struct um_lbmc_msg *msg)
{
    if (!read_exactly(fd, bytes, 4)) {
        return false;
    }
    size_t len = um_get16(bytes + 2);
    return read_exactly(fd, bytes + 4, len - 4) && um_lbmc_decode(bytes, len, msg) == UM_LBMC_OK;
}

/* A listener whose connections take few bytes while nobody reads. */
static int listen_small(uint16_t *port)
{
    int listener = test_listen(port), small = 2048;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    fcntl(listener, F_SETFL, 0);
    return listener;
}

/* ---- several threads, a connection that breaks ---- */

enum { SENDERS = 4, EACH = 600 };

/* Sends until it is done, at least EACH messages arriving. */
struct sender {
    struct world *world;
    uint16_t port;
    uint32_t id;
    atomic_bool *done;
    int failed;
};

static void *send_until_done(void *arg)
{
    struct sender *sender = arg;
    for (uint32_t i = 0; !atomic_load(sender->done); i++) {
        sender->failed += send_data(sender->world, sender->port, sender->id, i, 200 + i % 300, NULL) != 0;
    }
    return NULL;
}

struct receiver {
    int listener, breaks, connections, wrong;
    uint32_t next[SENDERS];
    atomic_bool done;
};

static bool heard_enough(const struct receiver *receiver)
{
    bool enough = receiver->breaks == 0;
    for (int i = 0; i < SENDERS; i++) {
        enough &= receiver->next[i] >= EACH;
    }
    return enough;
}

/* Reads whole messages, in order for each sender, breaking the connection now and then; stays until it is closed. */
static void *receive_with_breaks(void *arg)
{
    static uint8_t bytes[UM_LBMC_MAX_MSGLEN];
    struct receiver *receiver = arg;
    while (!atomic_load(&receiver->done)) {
        int fd = accept_one(receiver->listener);
        uint32_t in_stream = 0;
        struct um_lbmc_msg msg;
        receiver->connections++;
        while (fd >= 0 && read_message(fd, bytes, &msg)) {
            bool fits = msg.tidx < SENDERS && msg.sqn >= receiver->next[msg.tidx] && msg.stream.sqn == in_stream++;
            receiver->wrong += !fits; /* out of order, or twice */
            receiver->next[msg.tidx % SENDERS] = msg.sqn + 1;
            if (receiver->breaks > 0 && in_stream == 150) {
                receiver->breaks--;
                break;
            }
            if (heard_enough(receiver)) {
                atomic_store(&receiver->done, true);
            }
        }
        if (fd < 0) {
            receiver->wrong++;
            atomic_store(&receiver->done, true);
        } else {
            close(fd);
        }
    }
    return NULL;
}

static void threads_and_breaks(bool embedded, int breaks)
{
    struct world world;
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS], reader;
    uint16_t port = 0;
    CHECK(world_open(&world, embedded));
    struct receiver receiver = {.listener = listen_small(&port), .breaks = breaks};
    pthread_create(&reader, NULL, receive_with_breaks, &receiver);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){&world, port, i, &receiver.done, 0};
        pthread_create(&threads[i], NULL, send_until_done, &senders[i]);
    }
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(senders[i].failed, 0);
    }
    um_loop_call(world.loop, do_destroy, &world);
    world.unicast = NULL;
    pthread_join(reader, NULL);
    CHECK_EQ(receiver.wrong, 0);
    CHECK_EQ(receiver.connections, breaks + 1);
    close(receiver.listener);
    world_close(&world);
}

TEST(many_threads_send_to_one_destination_while_its_connection_breaks_and_comes_back)
{
    threads_and_breaks(true, 3);
}

TEST(waiting_senders_of_a_sequential_context_need_nobody_who_processes_events)
{
    threads_and_breaks(false, 2);
}

/* ---- waiting and its ends ---- */

struct blocked {
    struct world *world;
    uint16_t port;
    atomic_int sent, tid;
    int rc, errnum;
};

static void *send_until_it_fails(void *arg)
{
    struct blocked *blocked = arg;
    atomic_store(&blocked->tid, um_test_thread_id());
    while ((blocked->rc = send_data(blocked->world, blocked->port, 0, 0, 1000, NULL)) == 0 &&
           atomic_fetch_add(&blocked->sent, 1) < 100000) {
    }
    blocked->errnum = um_errnum();
    return NULL;
}

/* Until both senders wait. */
static void wait_until_blocked(struct blocked *two)
{
    int before = -1, now = 0;
    while (before != now || now == 0 || !um_test_thread_sleeps(atomic_load(&two[0].tid)) ||
           !um_test_thread_sleeps(atomic_load(&two[1].tid))) {
        before = now;
        usleep(100000);
        now = atomic_load(&two[0].sent) + atomic_load(&two[1].sent);
    }
}

static void deletion_wakes(bool embedded)
{
    struct world world;
    uint16_t port = 0;
    pthread_t threads[2];
    CHECK(world_open(&world, embedded));
    int listener = listen_small(&port);
    struct blocked blocked[2] = {{.world = &world, .port = port}, {.world = &world, .port = port}};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, send_until_it_fails, &blocked[i]);
    }
    wait_until_blocked(blocked);
    um_loop_call(world.loop, do_destroy, &world);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(blocked[i].rc, -1);
        CHECK_EQ(blocked[i].errnum, UM_EINVAL);
    }
    world.unicast = NULL;
    close(listener);
    world_close(&world);
}

TEST(blocked_senders_are_woken_by_deletion)
{
    deletion_wakes(true);
    deletion_wakes(false);
}

static void given_up_wakes(bool embedded)
{
    struct world world;
    uint16_t port = 0;
    pthread_t thread;
    close(test_listen(&port)); /* nobody listens there */
    CHECK(world_open(&world, embedded));
    struct blocked blocked = {.world = &world, .port = port};
    world.opts.response_tcp_deletion_timeout = 0; /* read at creation only; the least is five seconds */
    um_loop_call(world.loop, do_destroy, &world);
    CHECK_EQ(um_loop_call(world.loop, do_create, &world), 0);
    pthread_create(&thread, NULL, send_until_it_fails, &blocked);
    pthread_join(thread, NULL);
    CHECK_EQ(blocked.rc, -1);
    CHECK_EQ(blocked.errnum, UM_EOS);
    CHECK_EQ(atomic_load(&blocked.sent), 4); /* what fills the queue */
    CHECK_EQ(stats_of(&world).msgs_dropped, 4);
    CHECK_EQ(stats_of(&world).outgoing, 0);
    world_close(&world);
}

TEST(blocked_sender_learns_that_its_destination_was_given_up)
{
    given_up_wakes(true);
    given_up_wakes(false);
}

/* ---- refusal ---- */

struct waking {
    struct um_unicast_waker waker;
    struct world *world;
    uint16_t port;
    int woken, sent_in_waker;
};

static void on_room(struct um_unicast_waker *waker)
{
    struct waking *waking = UM_CONTAINER_OF(waker, struct waking, waker);
    waking->woken++;
    waking->sent_in_waker += send_data(waking->world, waking->port, 0, 0, 500, NULL) == 0; /* no lock is held */
}

static int do_refuse(void *arg)
{
    struct waking *waking = arg;
    struct um_unicast_send how = {.heading = UM_UNICAST_TO_ADDRESS,
                                  .waker = &waking->waker}; /* blocking, on the loop */
    int rc = 0;
    for (int i = 0; i < 10000 && rc == 0; i++) {
        rc = send_data(waking->world, waking->port, 0, 0, 1000, &how);
    }
    return rc;
}

TEST(refused_sender_is_told_when_there_is_room_again)
{
    struct world world;
    uint16_t port = 0;
    static uint8_t bytes[UM_LBMC_MAX_MSGLEN];
    CHECK(world_open(&world, false));
    int listener = test_listen(&port);
    struct waking waking = {.waker = {.fn = on_room}, .world = &world, .port = port};
    CHECK_EQ(um_loop_call(world.loop, do_refuse, &waking), -1); /* the queue is full before the connection is there */
    CHECK_EQ(um_errnum(), UM_EWOULDBLOCK);
    int fd = test_accept(world.loop, listener);
    CHECK(RUN_UNTIL(world.loop, waking.woken == 1));
    CHECK_EQ(waking.sent_in_waker, 1);
    CHECK(test_read(world.loop, fd, bytes, 4 * 1048 + 548));
    test_run_for_ms(world.loop, 5);
    CHECK_EQ(waking.woken, 1); /* once for all refusals */
    CHECK_EQ(um_loop_call(world.loop, do_refuse, &waking), -1);
    um_unicast_waker_cancel(world.unicast, &waking.waker);
    for (int i = 0; i < 20; i++) {
        while (recv(fd, bytes, sizeof bytes, 0) > 0) {
        }
        um_loop_run_once(world.loop, 1, 0);
    }
    CHECK_EQ(waking.woken, 1);
    close(fd);
    close(listener);
    world_close(&world);
}

/* As a callback on an XSP of the context whose connections these are. */
TEST(sender_on_another_loop_of_the_family_is_refused_instead_of_waiting)
{
    struct world world;
    uint16_t port = 0;
    CHECK(world_open(&world, false));
    struct um_loop *xsp = um_loop_create(false, UM_LOOP_PEND, "xsp");
    CHECK(xsp != NULL);
    um_loop_join_family(xsp, world.loop);
    int listener = test_listen(&port);
    struct waking waking = {.waker = {.fn = on_room}, .world = &world, .port = port};
    CHECK_EQ(um_loop_call(xsp, do_refuse, &waking), -1);
    CHECK_EQ(um_errnum(), UM_EWOULDBLOCK);
    um_unicast_waker_cancel(world.unicast, &waking.waker);
    um_loop_destroy(xsp);
    close(listener);
    world_close(&world);
}

TEST(peer_that_never_reads_costs_its_queue_and_no_more)
{
    struct world world;
    uint16_t port = 0;
    CHECK(world_open(&world, false));
    int listener = listen_small(&port);
    struct um_unicast_send how = {.heading = UM_UNICAST_BARE, .nonblocking = true};
    int refused = 0;
    for (int i = 0; i < 100000 && refused < 1000; i++) {
        refused += send_data(&world, port, 0, 0, 1000, &how) != 0;
        um_loop_run_once(world.loop, 0, 0);
    }
    CHECK_EQ(refused, 1000);
    CHECK_EQ(stats_of(&world).outgoing, 1);
    close(listener);
    world_close(&world);
}

/* ---- headings and handlers ---- */

struct seen {
    int creqs, data, kept;
    struct um_lbmc_msg last;
    uint8_t first_byte;
    struct um_buf *buf;
};

static void on_creq(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                    uint64_t now_ns)
{
    ((struct seen *)user)->creqs++;
}

static void on_data(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                    uint64_t now_ns)
{
    struct seen *seen = user;
    seen->data++;
    seen->last = *msg;
    if (seen->buf == NULL) {
        um_buf_ref(buf); /* keeps the payload */
        seen->buf = buf;
    }
}

TEST(handlers_are_found_by_the_subject_behind_the_addressing_headers)
{
    struct world world;
    static const uint8_t record[16] = {UM_LBMC_HDR_NONE, 16};
    struct seen seen = {0};
    CHECK(world_open(&world, false));
    uint16_t port = um_unicast_port(world.unicast);
    um_unicast_on_control(world.unicast, UM_LBMC_HDR_SSF_CREQ, on_creq, &seen);
    um_unicast_on_data(world.unicast, UM_LBMC_MESSAGE, on_data, &seen);
    uint32_t ip = htonl(INADDR_LOOPBACK);
    CHECK_EQ(um_unicast_send_control(world.unicast, ip, port, UM_LBMC_HDR_SSF_CREQ, record, sizeof record), 0);
    CHECK(RUN_UNTIL(world.loop, seen.creqs == 1));
    CHECK_EQ(send_data(&world, port, 77, 5, 1000, NULL), 0);
    CHECK(RUN_UNTIL(world.loop, seen.data == 1));
    CHECK_EQ(seen.last.present, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_DESTINATION);
    CHECK_EQ(seen.last.tidx, 77);
    CHECK_EQ(seen.last.sqn, 5);
    CHECK_EQ(seen.last.payload.len, 988);
    CHECK_EQ(seen.last.destination.port, port);
    struct um_unicast_send how = {.heading = UM_UNICAST_TO_INSTANCE, .instance = instance};
    CHECK_EQ(send_data(&world, port, 78, 6, 100, &how), 0);
    CHECK(RUN_UNTIL(world.loop, seen.data == 2));
    CHECK_EQ(seen.last.present, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_CTXINSTD);
    CHECK_EQ(seen.last.stream.sqn, 2);
    static const uint8_t other[8] = {9};
    how.instance = other;
    CHECK_EQ(send_data(&world, port, 78, 7, 100, &how), 0);
    CHECK(RUN_UNTIL(world.loop, stats_of(&world).msgs_foreign == 1));
    CHECK_EQ(seen.data, 2);
    um_unicast_on_data(world.unicast, UM_LBMC_MESSAGE, NULL, NULL);
    CHECK_EQ(send_data(&world, port, 79, 8, 100, NULL), 0);
    CHECK(RUN_UNTIL(world.loop, world.others == 1));
    um_buf_unref(seen.buf);
    world_close(&world);
}

TEST(messages_of_every_size_up_to_the_limit_arrive)
{
    struct world world;
    struct seen seen = {0};
    CHECK(world_open(&world, false));
    uint16_t port = um_unicast_port(world.unicast);
    um_unicast_on_data(world.unicast, UM_LBMC_MESSAGE, on_data, &seen);
    for (size_t len = UM_LBMC_DATA_HDR_LEN; len <= UM_UNICAST_MAX_MESSAGE; len += 6547) {
        int before = seen.data;
        CHECK_EQ(send_data(&world, port, 1, 1, len, NULL), 0);
        CHECK(RUN_UNTIL(world.loop, seen.data == before + 1));
        CHECK_EQ(seen.last.payload.len, len - UM_LBMC_DATA_HDR_LEN);
    }
    CHECK_EQ(send_data(&world, port, 1, 1, UM_UNICAST_MAX_MESSAGE, NULL), 0);
    CHECK_EQ(send_data(&world, port, 1, 1, UM_UNICAST_MAX_MESSAGE + 1, NULL), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    um_buf_unref(seen.buf);
    world_close(&world);
}

/* ---- how long connections stay ---- */

/* Messages of a row, sent inside one callback of an embedded loop. */
#define ROW 10
#define ROW_LEN 100

static _Thread_local int sends; /* of this thread */

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    sends++;
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    sends++;
    return syscall(SYS_sendmsg, fd, message, flags);
}

struct row {
    struct world *world;
    uint16_t port;
    uint32_t sqn;
    int refused, sends;
};

static int do_send_row(void *arg)
{
    struct row *row = arg;
    struct um_unicast_send how = {.heading = UM_UNICAST_TO_ADDRESS, .in_a_row = true};
    int before = sends;
    for (int i = 0; i < ROW; i++) {
        row->refused += send_data(row->world, row->port, 7, row->sqn++, ROW_LEN, &how) != 0;
    }
    row->sends = sends - before;
    return 0;
}

/* The time that a row gathers is short and real, so a slow machine writes each of it: the tries go on until one was
 * quick. In all of them everything comes, in order, though nothing is sent after it. */
TEST(messages_of_a_row_leave_together_behind_the_first)
{
    struct world world;
    uint8_t bytes[4096];
    struct um_lbmc_msg msg;
    CHECK(world_open(&world, true));
    struct row row = {.world = &world};
    int listener = test_listen(&row.port);
    CHECK_EQ(send_data(&world, row.port, 7, row.sqn++, ROW_LEN, NULL), 0);
    int fd = accept_one(listener);
    CHECK(read_message(fd, bytes, &msg));
    bool together = false;
    uint64_t end_ns = um_clock_ns() + HANG_LIMIT_NS;
    for (uint32_t expected = msg.sqn + 1; !together && um_clock_ns() < end_ns;) {
        CHECK_EQ(um_loop_call(world.loop, do_send_row, &row), 0);
        for (int i = 0; i < ROW; i++, expected++) {
            CHECK(read_message(fd, bytes, &msg));
            CHECK_EQ(msg.sqn, expected);
        }
        together = row.sends > 0 && row.sends < ROW;
    }
    CHECK(together);
    CHECK_EQ(row.refused, 0);
    close(fd);
    close(listener);
    world_close(&world);
}

enum { PACK = 8, PACK_LEN = 150 }; /* two of them may wait */

/* Two of one length, then one of another. */
static size_t pack_len(uint32_t i)
{
    return PACK_LEN + (i % 3 == 2 ? 4 : 0);
}

static int do_send_pack(void *arg)
{
    struct row *row = arg;
    static uint8_t pack[PACK * (PACK_LEN + 4)];
    size_t end = 0;
    for (uint32_t i = 0; i < PACK; i++) {
        size_t len = pack_len(row->sqn);
        um_lbmc_put_data_hdr(pack + end, UM_LBMC_HDR_DATA, (uint16_t)len, 7, row->sqn);
        memset(pack + end + UM_LBMC_DATA_HDR_LEN, (int)row->sqn++, len - UM_LBMC_DATA_HDR_LEN);
        end += len;
    }
    const struct iovec iov = {pack, end};
    const struct um_unicast_send send = {.ip = htonl(INADDR_LOOPBACK),
                                         .port = row->port,
                                         .heading = UM_UNICAST_TO_ADDRESS,
                                         .iov = &iov,
                                         .iovcnt = 1,
                                         .several = true,
                                         .nonblocking = true,
                                         .gathers = true};
    row->refused += um_unicast_send(row->world->unicast, &send) != 0;
    return 0;
}

static bool is_of_pack(const struct um_lbmc_msg *msg, uint32_t i)
{
    size_t len = pack_len(i) - UM_LBMC_DATA_HDR_LEN;
    bool same = msg->sqn == i && msg->stream.sqn == i && msg->payload.len == len;
    for (size_t at = 0; same && at < len; at++) {
        same = msg->payload.ptr[at] == (uint8_t)i;
    }
    return same && msg->destination.port != 0;
}

TEST(several_messages_in_one_call_are_messages_of_their_own)
{
    struct world world;
    uint8_t bytes[4096];
    struct um_lbmc_msg msg;
    CHECK(world_open(&world, true));
    struct row row = {.world = &world};
    int listener = test_listen(&row.port);
    fcntl(listener, F_SETFL, 0);
    CHECK_EQ(um_loop_call(world.loop, do_send_pack, &row), 0);
    int fd = accept_one(listener);
    CHECK_EQ(um_loop_call(world.loop, do_send_pack, &row), 0);
    for (uint32_t i = 0; i < 2 * PACK; i++) {
        CHECK(read_message(fd, bytes, &msg));
        CHECK(is_of_pack(&msg, i));
    }
    CHECK_EQ(row.refused, 0);
    close(fd);
    close(listener);
    world_close(&world);
}

struct crowd {
    struct world *world;
    uint16_t port;
    uint32_t sqn;
    int refused;
};

enum { CROWD = 24 };

/* Of two headings and several lengths: those that are alike share memory, the others begin anew. */
static int do_send_crowd(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < CROWD; i++) {
        struct um_unicast_send how = {.heading = i % 8 == 7 ? UM_UNICAST_TO_INSTANCE : UM_UNICAST_TO_ADDRESS,
                                      .instance = instance,
                                      .nonblocking = true,
                                      .gathers = true};
        size_t len = UM_LBMC_DATA_HDR_LEN + (size_t)(i * 3);
        crowd->refused += send_data(crowd->world, crowd->port, 7, crowd->sqn++, len, &how) != 0;
    }
    return 0;
}

static int do_nothing(void *arg)
{
    return 0;
}

static bool read_crowd(int fd, uint32_t *in_stream, uint32_t *sqn)
{
    uint8_t bytes[4096];
    struct um_lbmc_msg msg;
    bool right = true;
    for (int i = 0; i < CROWD; i++, ++*sqn, ++*in_stream) {
        right = right && read_message(fd, bytes, &msg) && msg.sqn == *sqn && msg.stream.sqn == *in_stream &&
                msg.payload.len == (size_t)(i * 3) && ((msg.present & UM_LBMC_HAS_CTXINSTD) != 0) == (i % 8 == 7);
    }
    return right;
}

/* The first of them wait for the connection, the next are sent on it, the last wait for another one. */
TEST(messages_that_gather_come_one_by_one_whatever_connection_they_wait_for)
{
    struct world world;
    uint32_t in_stream = 0, sqn = 0;
    CHECK(world_open(&world, true));
    struct crowd crowd = {.world = &world};
    int listener = test_listen(&crowd.port);
    fcntl(listener, F_SETFL, 0);
    CHECK_EQ(um_loop_call(world.loop, do_send_crowd, &crowd), 0);
    int fd = accept_one(listener);
    CHECK(read_crowd(fd, &in_stream, &sqn));
    CHECK_EQ(um_loop_call(world.loop, do_send_crowd, &crowd), 0);
    CHECK(read_crowd(fd, &in_stream, &sqn));
    CHECK_EQ(um_loop_call(world.loop, do_nothing, NULL), 0); /* behind the write that brought them */
    CHECK_EQ(stats_of(&world).msgs_sent, sqn);
    CHECK_EQ(crowd.refused, 0);
    struct linger abort_it = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
    close(fd); /* what is sent before it is noticed is lost with it */
    uint64_t end_ns = um_clock_ns() + HANG_LIMIT_NS;
    struct pollfd pfd = {.fd = listener, .events = POLLIN};
    while (poll(&pfd, 1, 0) == 0 && um_clock_ns() < end_ns) {
        CHECK_EQ(um_loop_call(world.loop, do_send_crowd, &crowd), 0); /* refused once enough of it waits */
        poll(&pfd, 1, 20);
    }
    fd = accept_one(listener);
    uint8_t bytes[4096];
    struct um_lbmc_msg msg;
    CHECK_EQ(um_loop_call(world.loop, do_send_crowd, &crowd), 0); /* at least so many are sent, or waited already */
    CHECK(read_message(fd, bytes, &msg));
    CHECK_EQ(msg.stream.sqn, 0); /* a stream of its own, in which everything is numbered anew */
    for (uint32_t i = 1, next = msg.sqn + 1; i < CROWD; i++, next++) {
        CHECK(read_message(fd, bytes, &msg));
        CHECK_EQ(msg.stream.sqn, i);
        CHECK(msg.sqn >= next);
        next = msg.sqn;
    }
    close(fd);
    close(listener);
    world_close(&world);
}

TEST(held_connection_outlives_the_deletion_timeout)
{
    struct world world;
    uint16_t port = 0;
    CHECK(world_open(&world, false));
    world.opts.response_tcp_deletion_timeout = 40;
    um_loop_call(world.loop, do_destroy, &world);
    CHECK_EQ(um_loop_call(world.loop, do_create, &world), 0);
    int listener = test_listen(&port);
    struct um_unicast_hold hold = {0};
    CHECK_EQ(um_unicast_hold(world.unicast, htonl(INADDR_LOOPBACK), port, &hold), 0);
    int fd = test_accept(world.loop, listener); /* connected before there is anything to send */
    CHECK(fd >= 0);
    test_run_for_ms(world.loop, 200);
    CHECK_EQ(stats_of(&world).outgoing, 1);
    um_unicast_release(world.unicast, &hold);
    CHECK(test_closed(world.loop, fd));
    CHECK_EQ(stats_of(&world).outgoing, 0);
    um_unicast_release(world.unicast, &hold); /* nothing is held */
    close(fd);
    close(listener);
    world_close(&world);
}

TEST(destinations_are_bounded_and_unused_ones_give_way)
{
    struct world world;
    uint16_t port = 0;
    struct rlimit limit, wanted = {4 * UM_UNICAST_MAX_OUTGOING, 4 * UM_UNICAST_MAX_OUTGOING};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted.rlim_cur) {
        wanted.rlim_max = limit.rlim_max > wanted.rlim_cur ? limit.rlim_max : wanted.rlim_cur;
        if (setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
            TEST_SKIP("needs more descriptors than the limit allows");
        }
    }
    close(test_listen(&port));
    CHECK(world_open(&world, false));
    static uint8_t message[20];
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, sizeof message, 0, 0);
    int rc = 0;
    for (uint32_t i = 0; i < UM_UNICAST_MAX_OUTGOING; i++) { /* nobody listens: each keeps its message */
        rc += um_unicast_send_bare(world.unicast, 0, htonl(INADDR_LOOPBACK + i), port, message, sizeof message);
        um_loop_run_once(world.loop, 0, 0);
    }
    CHECK_EQ(rc, 0);
    uint32_t one_more = htonl(INADDR_LOOPBACK + UM_UNICAST_MAX_OUTGOING);
    CHECK_EQ(um_unicast_send_bare(world.unicast, 0, one_more, port, message, sizeof message), -1);
    CHECK_EQ(um_errnum(), UM_ENOMEM);
    CHECK_EQ(stats_of(&world).destinations_refused, 1);
    CHECK(test_log_count("Core-5927-1") < 100); /* not one for each: others choose the destinations */
    uint16_t again = port;
    int listener = test_listen(&again);
    int fd = test_accept(world.loop, listener); /* the first one is reached, and has nothing queued any more */
    CHECK(RUN_UNTIL(world.loop, stats_of(&world).msgs_sent == 1));
    CHECK_EQ(um_unicast_send_bare(world.unicast, 0, one_more, port, message, sizeof message), 0);
    CHECK_EQ(stats_of(&world).outgoing, UM_UNICAST_MAX_OUTGOING);
    close(fd);
    close(listener);
    world_close(&world);
    setrlimit(RLIMIT_NOFILE, &limit);
}

struct regular {
    struct world *world;
    uint16_t port;
};

static int do_send_small(void *arg)
{
    struct regular *regular = arg;
    return send_data(regular->world, regular->port, 0, 0, 40, NULL);
}

static void pass_at(struct world *world, uint64_t time_ns);

/* What waits for a destination that is not there does not wait for as long as something is sent to it now and then. */
TEST(s6_unreachable_destination_is_given_up_though_it_is_in_use)
{
    struct world world;
    struct regular regular = {.world = &world};
    close(test_listen(&regular.port));
    CHECK(world_open(&world, false));
    uint64_t now = UM_NS_PER_SEC;
    int rc = 0;
    for (int i = 0; i < 30; i++) { /* less than the 4000 bytes that may wait */
        pass_at(&world, now);
        rc += um_loop_call(world.loop, do_send_small, &regular);
        now += UM_NS_PER_SEC;
    }
    CHECK_EQ(rc, 0);
    CHECK(stats_of(&world).msgs_dropped > 0);
    CHECK_EQ(test_log_count("not reachable for 20000 ms (response_tcp_deletion_timeout 20000, here at least 5000), "),
             1);
    world_close(&world);
}

static int do_fill(void *arg)
{
    struct regular *regular = arg;
    struct um_unicast_send how = {.heading = UM_UNICAST_TO_ADDRESS, .nonblocking = true};
    int sent = 0;
    while (sent < 100000 && send_data(regular->world, regular->port, 0, 0, 1000, &how) == 0) {
        sent++;
    }
    return sent;
}

/* What it has not taken is dropped after a minute, told once; one that reads now and then is kept. */
TEST(s6_connected_destination_that_takes_nothing_is_given_up_and_a_slow_one_is_not)
{
    struct world world;
    struct regular regular = {.world = &world};
    static uint8_t bytes[1 << 20];
    CHECK(world_open(&world, false));
    int listener = listen_small(&regular.port);
    uint64_t now = UM_NS_PER_SEC;
    pass_at(&world, now);
    CHECK(um_loop_call(world.loop, do_fill, &regular) > 0);
    int fd = accept_one(listener);
    CHECK(fd >= 0);
    for (int i = 0; i < 12; i++) { /* three minutes */
        pass_at(&world, now += 15 * UM_NS_PER_SEC);
        while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
            pass_at(&world, now);
        }
        CHECK(um_loop_call(world.loop, do_fill, &regular) > 0);
    }
    CHECK_EQ(stats_of(&world).outgoing, 1);
    pass_at(&world, now);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(stats_of(&world).msgs_dropped, 0);
        pass_at(&world, now += 14 * UM_NS_PER_SEC);
    }
    CHECK_EQ(stats_of(&world).outgoing, 1);
    for (int i = 0; i < 3; i++) { /* looked at every 20 s */
        pass_at(&world, now += 10 * UM_NS_PER_SEC);
    }
    CHECK_EQ(stats_of(&world).outgoing, 0);
    CHECK(stats_of(&world).msgs_dropped > 0);
    CHECK_EQ(test_log_count("Core-9003-8"), 1);
    CHECK_EQ(test_log_count("it takes nothing for "), 1);
    CHECK_EQ(test_log_count(" ms (response_tcp_deletion_timeout 20000, here at least 60000), "), 1);
    CHECK_EQ(test_log_count(" queued bytes are dropped"), 1);
    close(fd);
    close(listener);
    world_close(&world);
}

/* ---- strangers ---- */

/* Passes of the loop at a time of ours. */
static void pass_at(struct world *world, uint64_t time_ns)
{
    for (int i = 0; i < 5; i++) {
        um_loop_run_once(world->loop, 0, time_ns);
    }
}

TEST(strangers_share_the_request_port_and_do_not_stay)
{
    struct world world;
    enum { COUNT = UM_UNICAST_MAX_INCOMING };
    static int fds[COUNT];
    struct rlimit limit, wanted = {2 * COUNT + 64, 2 * COUNT + 64};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted.rlim_cur) {
        wanted.rlim_max = limit.rlim_max > wanted.rlim_cur ? limit.rlim_max : wanted.rlim_cur;
        if (setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
            TEST_SKIP("needs more descriptors than the limit allows");
        }
    }
    CHECK(world_open(&world, false));
    uint16_t port = um_unicast_port(world.unicast);
    uint64_t now = UM_NS_PER_SEC;
    pass_at(&world, now);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = test_connect_from("127.0.0.66", port);
        CHECK(fds[i] >= 0);
        um_loop_run_once(world.loop, 0, now);
    }
    pass_at(&world, now);
    CHECK_EQ(stats_of(&world).incoming, COUNT);
    int honest = test_connect_from("127.0.0.1", port);
    pass_at(&world, now);
    CHECK_EQ(stats_of(&world).displaced, 1); /* one of the stranger's */
    CHECK_EQ(stats_of(&world).refused, 0);
    int more = test_connect_from("127.0.0.66", port);
    pass_at(&world, now);
    CHECK_EQ(stats_of(&world).refused, 1);
    uint8_t message[12];
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, sizeof message, 0, 0);
    CHECK_EQ(write(honest, message, sizeof message), sizeof message);
    pass_at(&world, now);
    CHECK_EQ(world.others, 1);
    now += UM_UNICAST_EXPIRY_NS + 2 * UM_UNICAST_OPENING_NS;
    pass_at(&world, now);
    CHECK_EQ(stats_of(&world).incoming, 1); /* the one that had something to say */
    CHECK_EQ(stats_of(&world).expired, COUNT - 1);
    for (int i = 0; i < COUNT; i++) {
        close(fds[i]);
    }
    close(honest);
    close(more);
    world_close(&world);
    setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(strangers_leave_half_of_the_descriptors_to_others)
{
    struct world world;
    enum { COUNT = 90, LIMIT = 128 };
    static int fds[COUNT];
    struct rlimit limit, tight;
    getrlimit(RLIMIT_NOFILE, &limit);
    tight = limit;
    tight.rlim_cur = LIMIT;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    bool opened = world_open(&world, false);
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK(opened);
    uint16_t port = um_unicast_port(world.unicast);
    uint64_t now = UM_NS_PER_SEC;
    uint8_t message[12];
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, sizeof message, 0, 0);
    for (int i = 0; i < COUNT; i++) { /* each with a message: it may stay */
        fds[i] = test_connect_from("127.0.0.66", port);
        CHECK(fds[i] >= 0);
        CHECK_EQ(send(fds[i], message, sizeof message, MSG_NOSIGNAL), sizeof message);
        pass_at(&world, now);
    }
    CHECK_EQ(stats_of(&world).incoming, LIMIT / 2);
    CHECK_EQ(stats_of(&world).refused, COUNT - LIMIT / 2);
    for (int i = 0; i < COUNT; i++) {
        close(fds[i]);
    }
    world_close(&world);
}

/* ---- filters ---- */

static int do_layer(void *arg)
{
    um_unicast_set_layer(((struct world *)arg)->unicast, &awkward_layer);
    return 0;
}

TEST(unicast_messages_cross_an_awkward_stream)
{
    struct world world;
    struct seen seen = {0};
    CHECK(world_open(&world, false));
    CHECK_EQ(um_loop_call(world.loop, do_layer, &world), 0);
    uint16_t port = um_unicast_port(world.unicast);
    um_unicast_on_data(world.unicast, UM_LBMC_MESSAGE, on_data, &seen);
    struct um_unicast_send how = {.heading = UM_UNICAST_TO_ADDRESS, .nonblocking = true};
    for (uint32_t i = 0; i < 30; i++) {
        CHECK(RUN_UNTIL(world.loop, send_data(&world, port, 1, i, 300, &how) == 0));
    }
    CHECK(RUN_UNTIL(world.loop, seen.data == 30));
    CHECK_EQ(seen.last.sqn, 29);
    um_buf_unref(seen.buf);
    world_close(&world);
    CHECK_EQ(awkward_live, 0);
}

/* One that has said its greeting has a minute for its first message. */
TEST(request_connection_whose_stream_does_not_open_is_closed_after_five_seconds)
{
    struct world world;
    CHECK(world_open(&world, false));
    CHECK_EQ(um_loop_call(world.loop, do_layer, &world), 0);
    uint64_t start = UM_NS_PER_SEC;
    pass_at(&world, start);
    int silent = test_connect_from("127.0.0.66", um_unicast_port(world.unicast));
    int opens = test_connect_from("127.0.0.77", um_unicast_port(world.unicast));
    CHECK(silent >= 0 && opens >= 0);
    CHECK_EQ(write(opens, "H", 1), 1);
    pass_at(&world, start);
    CHECK_EQ(stats_of(&world).incoming, 2);
    pass_at(&world, start + UM_UNICAST_OPENING_NS - UM_NS_PER_MS);
    CHECK_EQ(stats_of(&world).incoming, 2);
    CHECK_EQ(stats_of(&world).expired, 0);
    pass_at(&world, start + UM_UNICAST_OPENING_NS + 10 * UM_NS_PER_MS);
    CHECK_EQ(stats_of(&world).incoming, 1);
    CHECK_EQ(stats_of(&world).expired, 1);
    for (uint64_t now = start + UM_UNICAST_OPENING_NS; now < start + UM_UNICAST_EXPIRY_NS; now += UM_NS_PER_SEC) {
        CHECK_EQ(stats_of(&world).incoming, 1);
        pass_at(&world, now);
    }
    pass_at(&world, start + UM_UNICAST_EXPIRY_NS + UM_UNICAST_OPENING_NS);
    CHECK_EQ(stats_of(&world).incoming, 0);
    close(silent);
    close(opens);
    world_close(&world);
    CHECK_EQ(awkward_live, 0);
}
