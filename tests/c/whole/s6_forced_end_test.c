/* Requirement S6: whoever is cut off, or cuts another one off, hears why: an event on either side, and a log line that
 * names the option, its limit and what was measured. Unicast connections are cut in virtual time in
 * transport/unicast/unicast_send_test.c. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <unistd.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

/* ---- the log lines that are waited for; each id is fixed before anything can log ---- */

struct heard {
    const char *id;
    int count;
    char line[1024];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct heard heard[] = {{.id = "Core-9004-6:"},
                               {.id = "Core-9006-12:"},
                               {.id = "Core-9006-11:"},
                               {.id = "Core-9006-7:"},
                               {.id = "Core-9003-18:"}};
enum { CLIENT_CUT, RU_ENDED, RM_ENDED, DATAGRAMS_LOST, CONNECTION_CUT };

static int on_log(int level, const char *message, void *clientd)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++) {
        if (strncmp(message, heard[i].id, strlen(heard[i].id)) == 0) {
            heard[i].count++;
            snprintf(heard[i].line, sizeof heard[i].line, "%s", message);
            pthread_cond_broadcast(&changed);
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int lines(int which)
{
    pthread_mutex_lock(&lock);
    int count = heard[which].count;
    pthread_mutex_unlock(&lock);
    return count;
}

static bool line_comes(int which)
{
    pthread_mutex_lock(&lock);
    bool ok = wait_for_count(&changed, &lock, &heard[which].count, 1);
    pthread_mutex_unlock(&lock);
    return ok;
}

/* True, and *amount: the line has the text in front of a number. */
static bool line_measures(int which, const char *before, const char *after, unsigned long *amount)
{
    char rest[128] = "";
    pthread_mutex_lock(&lock);
    const char *at = strstr(heard[which].line, before);
    bool ok = at != NULL && sscanf(at + strlen(before), "%lu %127[^\n]", amount, rest) == 2 &&
              strncmp(rest, after, strlen(after)) == 0;
    if (!ok) {
        fprintf(stderr, "heard: %s\n", heard[which].line);
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

static bool line_names(int which, const char *text)
{
    pthread_mutex_lock(&lock);
    bool ok = strstr(heard[which].line, text) != NULL;
    if (!ok) {
        fprintf(stderr, "heard: %s\n", heard[which].line);
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

/* ---- a receiver of LBT-RU that stops ---- */

struct clients {
    int connects, disconnects; /* lock */
};

static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    (void)src;
    (void)ed;
    struct clients *clients = clientd;
    pthread_mutex_lock(&lock);
    clients->connects += event == LBM_SRC_EVENT_CONNECT;
    clients->disconnects += event == LBM_SRC_EVENT_DISCONNECT;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

static lbm_src_t *ru_source(lbm_context_t *ctx, struct clients *clients)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-ru"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtru_client_activity_timeout", "900"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "s6", attr));
    MUST(lbm_src_create(&src, ctx, topic, on_source_event, clients, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

TEST(s6_receiver_that_stops_is_cut_off_and_either_side_hears_the_option_and_how_long_it_was)
{
    TEST_NEEDS_NET();
    struct clients clients = {0};
    unsigned long silent_ms = 0, pause_ms = 0;
    struct recorder all = RECORDER_INIT;
    MUST(lbm_log(on_log, NULL));
    lbm_context_t *sends = net_context(), *hears = net_sequential_context();
    lbm_src_t *src = ru_source(sends, &clients);
    lbm_rcv_t *rcv = net_recording_receiver(hears, "s6", &all);
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_ready(rcv) == 0; i++) {
        MUST(lbm_context_process_events(hears, 10));
    }
    pthread_mutex_lock(&lock); /* from here on it is not served; who is late finds it cut off already */
    int least = clients.connects > 0 ? clients.connects : 1;
    bool cut = wait_for_count(&changed, &lock, &clients.disconnects, least);
    pthread_mutex_unlock(&lock);
    CHECK(cut);
    CHECK(lines(CLIENT_CUT) > 0);
    CHECK(line_measures(CLIENT_CUT, "nothing was heard of this receiver for ",
                        "ms (transport_lbtru_client_activity_timeout 900)", &silent_ms));
    CHECK(silent_ms >= 900);
    int ends = recorder_count(&all, LBM_MSG_EOS);
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&all, LBM_MSG_EOS) == ends; i++) {
        MUST(lbm_context_process_events(hears, 10));
    }
    CHECK(recorder_count(&all, LBM_MSG_EOS) > ends);
    CHECK(lines(RU_ENDED) > 0);
    CHECK(line_measures(RU_ENDED, "it has begun anew, or up to ", "ms between two acknowledgements", &pause_ms));
    CHECK(line_names(RU_ENDED, "(transport_lbtru_client_activity_timeout of the source)"));
    CHECK(pause_ms > 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(hears));
    MUST(lbm_context_delete(sends));
    MUST(lbm_log(NULL, NULL));
}

/* ---- senders of multicast immediate messages ---- */

static int immediate_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx;
    return recorder_cb(NULL, msg, clientd);
}

static lbm_context_t *mim_context(const char *const *options)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "mim_address", "224.0.10.19"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_port_high", "0"));
    for (; options != NULL && options[0] != NULL; options += 2) {
        MUST(lbm_context_attr_str_setopt(attr, options[0], options[1]));
    }
    return net_context_with(attr);
}

static void send_immediate(lbm_context_t *ctx)
{
    MUST(lbm_multicast_immediate_message(ctx, NULL, "x", 1, LBM_SRC_BLOCK));
}

TEST(s6_sender_of_immediate_messages_that_falls_silent_is_told_of_with_their_own_option)
{
    TEST_NEEDS_NET();
    static const char *const options[] = {"mim_activity_timeout", "77", NULL};
    unsigned long silent_ms = 0;
    struct recorder all = RECORDER_INIT;
    MUST(lbm_log(on_log, NULL));
    lbm_context_t *sends = mim_context(NULL), *hears = mim_context(options);
    MUST(lbm_context_rcv_immediate_msgs(hears, immediate_cb, &all, NULL));
    send_immediate(sends);
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    MUST(lbm_context_delete(sends));
    CHECK(line_comes(RM_ENDED));
    CHECK(line_measures(RM_ENDED, "nothing heard for ", "ms (mim_activity_timeout 77): session ended", &silent_ms));
    CHECK(silent_ms >= 77);
    MUST(lbm_context_delete(hears));
    MUST(lbm_log(NULL, NULL));
}

TEST(datagrams_of_immediate_messages_that_are_lost_for_good_are_told_of_with_their_own_option)
{
    TEST_NEEDS_NET();
    static const char *const options[] = {"mim_send_naks", "0", "mim_nak_generation_interval", "20", NULL};
    struct recorder all = RECORDER_INIT;
    MUST(lbm_log(on_log, NULL));
    lbm_context_t *sends = mim_context(NULL), *hears = mim_context(options);
    MUST(lbm_context_rcv_immediate_msgs(hears, immediate_cb, &all, NULL));
    send_immediate(sends);
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    for (int i = 0; i < HANG_SECONDS * 1000 && lines(DATAGRAMS_LOST) == 0; i++) { /* some are lost, others come */
        lbm_set_lbtrm_loss_rate(i % 20 == 10 ? 0 : 100);
        send_immediate(sends);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    lbm_set_lbtrm_loss_rate(0);
    CHECK(line_names(DATAGRAMS_LOST, "no repair came in time (mim_nak_generation_interval)"));
    MUST(lbm_context_delete(sends));
    MUST(lbm_context_delete(hears));
    MUST(lbm_log(NULL, NULL));
}

/* ---- a connection to the request port ---- */

TEST(s6_connection_that_is_cut_within_a_message_is_told_of_where_it_came_to)
{
    TEST_NEEDS_NET();
    static const uint8_t half[] = {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}; /* ten bytes of 256 */
    lbm_uint16_t port;
    size_t len = sizeof port;
    MUST(lbm_log(on_log, NULL));
    lbm_context_t *ctx = net_context();
    MUST(lbm_context_getopt(ctx, "request_tcp_port", &port, &len));
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0);
    CHECK_EQ(write(fd, half, sizeof half), sizeof half);
    close(fd);
    CHECK(line_comes(CONNECTION_CUT));
    CHECK(line_names(CONNECTION_CUT, "ended within a message, 10 bytes of it had come"));
    CHECK(line_names(CONNECTION_CUT, "response_tcp_deletion_timeout"));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
}
