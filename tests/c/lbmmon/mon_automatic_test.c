/* Automatic monitoring by options and by environment variables: each case is a process of its own, since variables are
 * read when the library begins. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_child.h"
#include "um_test_net.h"
#include "um_test_mon.h"

static void listen_to_topic(struct mon_seen *seen)
{
    mon_listen(seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET);
}

/* The status of a child in a role. */
static int run_role(const char *role)
{
    int status = -1;
    pid_t pid = um_test_child(role, NULL, 0, "%s", "");
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Threads of this process with the name: contexts are told apart by theirs. */
static int threads_named(const char *wanted)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    REQUIRE(tasks != NULL);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "r");
        if (comm != NULL) {
            found += fgets(name, sizeof name, comm) != NULL && strncmp(name, wanted, strlen(wanted)) == 0;
            fclose(comm);
        }
    }
    closedir(tasks);
    return found;
}

/* A thread that has been joined may be listed for another moment. */
static bool threads_become(const char *wanted, int count)
{
    for (int i = 0; i < HANG_SECONDS * 100 && threads_named(wanted) != count; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return threads_named(wanted) == count;
}

static lbm_context_t *monitored(const char *interval)
{
    lbm_context_attr_t *attr = net_context_attr();
    if (interval != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", interval));
    }
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", MON_NET));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_appid", "automatic"));
    return net_context_with(attr);
}

/* The variable and nothing else about monitoring; the configuration file keeps contexts on the loopback network. */
static void set_interval_variable(void)
{
    char name[] = "/tmp/um_mon_automatic_XXXXXX";
    static const char text[] = "context default_interface 127.0.0.1/32\n"
                               "context resolver_multicast_interface 127.0.0.1/32\n";
    int fd = mkstemp(name);
    REQUIRE(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(fd);
    setenv("LBM_DEFAULT_CONFIG_FILE", name, 1);
    setenv("LBM_MONITOR_INTERVAL", "1", 1);
    lbm_context_t *ctx = net_context(); /* the library begins, and reads the file */
    MUST(lbm_context_delete(ctx));
    unlink(name);
}

/* Waits for two records of contexts, one after the other, whose time stamps are so many seconds apart: a loaded machine
 * makes longer pauses, and no shorter ones. Nothing else is monitored meanwhile. */
static bool comes_every(struct mon_seen *seen, time_t seconds)
{
    time_t before = 0;
    for (int tries = 0; tries < 10; tries++) {
        if (!mon_wait(seen, &seen->contexts, mon_count(seen, &seen->contexts) + 1)) {
            return false;
        }
        pthread_mutex_lock(&seen->lock);
        time_t now = seen->attributes.mTimestamp;
        pthread_mutex_unlock(&seen->lock);
        if (before != 0 && now - before == seconds) {
            return true;
        }
        before = now;
    }
    return false;
}

ROLE(environment)
{
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_event_queue_t *evq;
    set_interval_variable();
    lbm_context_t *ctx = net_context();
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    listen_to_topic(&seen);
    REQUIRE(mon_wait(&seen, &seen.event_queues, 2));
    MUST(lbm_event_queue_delete(evq));
    REQUIRE(comes_every(&seen, 1));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
    return 0;
}

TEST(check_2_the_variable_alone_monitors_contexts_and_event_queues_each_second)
{
    TEST_NEEDS_NET();
    CHECK_EQ(run_role("environment"), 0);
}

/* The variable is 1, the option 2: an event queue, which has the variable's, gets ahead of the context by more than any
 * pause of the thread that samples both, and the context's records are two seconds apart. */
ROLE(option_and_environment)
{
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_event_queue_t *evq;
    set_interval_variable();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", "2"));
    lbm_context_t *ctx = net_context_with(attr);
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    listen_to_topic(&seen);
    REQUIRE(mon_wait(&seen, &seen.contexts, 1));
    int contexts = mon_count(&seen, &seen.contexts), queues = mon_count(&seen, &seen.event_queues), ahead = 0;
    for (int n = 1; ahead < 4; n++) {
        REQUIRE(n < 60 && mon_wait(&seen, &seen.event_queues, queues + n));
        ahead = mon_count(&seen, &seen.event_queues) - queues - (mon_count(&seen, &seen.contexts) - contexts);
    }
    MUST(lbm_event_queue_delete(evq));
    REQUIRE(comes_every(&seen, 2));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
    return 0;
}

TEST(check_2_an_option_of_two_seconds_wins_over_a_variable_of_one)
{
    TEST_NEEDS_NET();
    CHECK_EQ(run_role("option_and_environment"), 0);
}

TEST(check_8_a_process_has_one_context_for_monitoring)
{
    TEST_NEEDS_NET();
    lbm_context_t *first = monitored("1"), *second = monitored("1");
    struct mon_seen seen = MON_SEEN_INIT;
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET);
    CHECK(mon_wait(&seen, &seen.contexts, 4));
    CHECK_STR(mon_now(&seen).attributes.mApplicationSourceID, "automatic");
    MON_MUST(lbmmon_rctl_destroy(seen.control)); /* whose context has the name, too */
    CHECK(threads_become("um:29west_stati", 1));
    CHECK(threads_become("um:monitoring", 1));
    MUST(lbm_context_delete(first));
    CHECK_EQ(threads_named("um:monitoring"), 1);
    MUST(lbm_context_delete(second)); /* the last monitored object takes them with it */
    CHECK(threads_become("um:monitoring", 0));
    CHECK(threads_become("um:29west_stati", 0));
}

TEST(receivers_and_patterns_tell_their_interest)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    lbm_wildcard_rcv_attr_t *wattr;
    lbm_wildcard_rcv_t *wrcv;
    lbm_context_t *ctx = monitored(NULL), *other = net_context();
    listen_to_topic(&seen);
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "monitor_interval", "1"));
    lbm_rcv_t *rcv = net_receiver(ctx, "wanted", attr, recorder_cb, &r, NULL);
    CHECK(mon_wait(&seen, &seen.topics, 1)); /* interest without a source */
    struct mon_seen now = mon_now(&seen);
    CHECK_STR(now.topic.topic, "wanted");
    CHECK_EQ(now.topic.flags, LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE);
    CHECK_STR(now.attributes.mApplicationSourceID, "automatic");

    lbm_src_t *src = net_source(other, "wanted");
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    MUST(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    int before = mon_count(&seen, &seen.topics);
    CHECK(mon_wait(&seen, &seen.topics, before + 2)); /* the second one began later */
    lbm_src_transport_stats_t stats;
    static const lbm_uint8_t none[32];
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    now = mon_now(&seen);
    CHECK_EQ(now.topic.flags, LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED);
    CHECK_STR(now.topic.source, stats.source);
    CHECK(memcmp(now.topic.otid, none, sizeof none) != 0);

    MUST(lbm_wildcard_rcv_attr_create(&wattr));
    MUST(lbm_wildcard_rcv_attr_str_setopt(wattr, "monitor_interval", "1"));
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^want", NULL, wattr, recorder_cb, &r, NULL));
    CHECK(mon_wait(&seen, &seen.patterns, 1));
    now = mon_now(&seen);
    CHECK_STR(now.pattern.pattern, "^want");
    CHECK_EQ(now.pattern.type, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE);
    lbm_wildcard_rcv_attr_delete(wattr);
    lbm_rcv_topic_attr_delete(attr);
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
}

/* A monitoring context that cannot be had is told of, and nothing else suffers. */
TEST(objects_live_also_where_monitoring_cannot_begin)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", "1"));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", "config=/no/such/file"));
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src = net_source(ctx, "t");
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

static atomic_bool told;

static int note_failure(int level, const char *message, void *clientd)
{
    if (strstr(message, "automatic monitoring does not begin") != NULL) {
        atomic_store(&told, true);
    }
    return 0;
}

/* What was missing is there a moment later: a process need not be started again to be monitored. */
TEST(monitoring_begins_when_it_can)
{
    TEST_NEEDS_NET();
    char file[] = "/tmp/um_mon_XXXXXX", options[512];
    struct mon_seen seen = MON_SEEN_INIT;
    int fd = mkstemp(file);
    REQUIRE(fd >= 0 && unlink(file) == 0);
    snprintf(options, sizeof options, "config=%s;%s", file, MON_NET);
    lbm_log(note_failure, NULL);
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", "1"));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", options));
    lbm_context_t *ctx = net_context_with(attr);
    while (!atomic_load(&told)) {
        usleep(1000);
    }
    fclose(fopen(file, "w"));
    listen_to_topic(&seen);
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
    lbm_log(NULL, NULL);
    unlink(file);
    close(fd);
}
