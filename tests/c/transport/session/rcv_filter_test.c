/* Filter requests of a session with more topics than the way to its source takes at once: each is asked for, none again
 * and again before others, and what is refused is not told topic by topic. The unicast layer is the test's. */
#include "um_test.h"

#include "base/um_log.h"
#include "transport/session/um_rcv_transport.h"

static int send_seam(struct um_unicast *unicast, uint32_t from_ip, uint32_t ip, uint16_t port, const uint8_t *message,
                     size_t len);
#define um_unicast_send_bare send_seam
#include "transport/session/um_rcv_filter.c"
#undef um_unicast_send_bare

#define TOPICS 10

static unsigned room, refused, retries, asked[TOPICS], stopped;
static int warnings;
static struct um_rcv_session session;
static struct um_rcv_stream streams[TOPICS];

static int send_seam(struct um_unicast *unicast, uint32_t from_ip, uint32_t ip, uint16_t port, const uint8_t *message,
                     size_t len)
{
    struct um_lbmc_msg msg;
    if (room == 0) {
        refused++;
        return um_error(UM_EWOULDBLOCK, "T-1", "full");
    }
    room--;
    if (um_lbmc_decode(message, len, &msg) == UM_LBMC_OK && msg.ssf_creq.topic_idx < TOPICS) {
        *(msg.ssf_creq.mode == MODE_INCLUDE ? &asked[msg.ssf_creq.topic_idx] : &stopped) += 1;
    }
    return 0;
}

void um_rcv_session_retry_filter(struct um_rcv_session *of)
{
    of->filter.retry = true;
    retries++;
}

/* What the pool does a second later. */
static void retry(void)
{
    session.filter.retry = false;
    um_rcv_filter_go_on(&session, (struct um_unicast *)&session);
}

static int on_log(int level, const char *text, void *user)
{
    warnings += strstr(text, "Core-9002-4") != NULL;
    return 0;
}

static void init_source(uint16_t port)
{
    struct um_lbmc_ssf_init init = {.transport_idx = 3, .client_idx = 8, .port = port, .ip = 1};
    um_rcv_filter_on_init(&session, (struct um_unicast *)&session, &init);
}

static void setup(void)
{
    static const struct um_rcv_session_ops ops;
    memset(&session, 0, sizeof session);
    memset(streams, 0, sizeof streams);
    memset(asked, 0, sizeof asked);
    room = refused = retries = stopped = 0;
    warnings = 0;
    session.ops = &ops;
    um_list_init(&session.streams);
    for (uint32_t i = 0; i < TOPICS; i++) {
        streams[i].tidx = i;
        streams[i].session = &session;
        um_list_push_back(&session.streams, &streams[i].node);
    }
    um_log_set_proc(on_log, NULL);
}

static bool each_asked(unsigned times)
{
    for (unsigned i = 0; i < TOPICS; i++) {
        if (asked[i] != times) {
            return false;
        }
    }
    return true;
}

TEST(what_is_refused_is_asked_for_where_it_stopped)
{
    setup();
    room = 4;
    init_source(99);
    CHECK_EQ(retries, 1);
    CHECK_EQ(refused, 1); /* the others would be, too */
    room = 4;
    retry();
    room = 4;
    retry();
    CHECK(each_asked(1));
    CHECK_EQ(retries, 2);
    CHECK_EQ(refused, 2);
    CHECK(warnings <= 1);
    room = TOPICS;
    retry(); /* nothing is due */
    CHECK(each_asked(1));
    um_log_set_proc(NULL, NULL);
}

TEST(a_new_connection_is_told_everything_whatever_was_due)
{
    setup();
    room = 4;
    init_source(99);
    room = TOPICS;
    um_rcv_filter_include_all(&session, (struct um_unicast *)&session);
    for (unsigned i = 0; i < TOPICS; i++) {
        CHECK_EQ(asked[i], i < 4 ? 2 : 1);
    }
    um_log_set_proc(NULL, NULL);
}

TEST(a_topic_that_joins_or_leaves_while_others_wait_does_not_overtake_and_is_not_asked_for)
{
    setup();
    um_list_remove(&streams[9].node);
    room = 4;
    init_source(99);
    um_list_push_back(&session.streams, &streams[9].node);
    um_rcv_filter_set(&session, (struct um_unicast *)&session, &streams[9], true);
    CHECK_EQ(refused, 1);
    um_list_remove(&streams[8].node);
    room = TOPICS;
    um_rcv_filter_set(&session, (struct um_unicast *)&session, &streams[8], false);
    CHECK_EQ(stopped, 1);
    room = TOPICS;
    retry();
    CHECK_EQ(asked[8], 0);
    CHECK_EQ(asked[9], 1);
    CHECK_EQ(asked[7], 1);
    um_log_set_proc(NULL, NULL);
}
