/* Where automatic monitoring has its settings from: every variable of the environment, options that win over them, and
 * an XML configuration. Each case is a process of its own: both are read once. */
#define _GNU_SOURCE
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_child.h"
#include "um_test_net.h"
#include "um_test_mon.h"

static int run_role(const char *role, const char *text)
{
    int status = -1;
    pid_t pid = um_test_child(role, NULL, 0, "%s", text);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static atomic_int lines_of_the_alias;

static int count_line(int level, const char *line, void *clientd)
{
    if (strstr(line, "OpenUM-9060-6") != NULL) {
        atomic_fetch_add(&lines_of_the_alias, 1);
    }
    return 0;
}

static void set_variables(void)
{
    setenv("LBM_MONITOR_INTERVAL", "1", 1);
    setenv("LBM_MONITOR_TRANSPORT", "lbmsnmp", 1);
    setenv("LBM_MONITOR_TRANSPORT_OPTS", MON_NET ";topic=/of/the/variable", 1);
    setenv("LBM_MONITOR_FORMAT", "pb", 1);
    setenv("LBM_MONITOR_FORMAT_OPTS", "filter|ums.stats.event_queues=off", 1);
    setenv("LBM_MONITOR_APPID", "of the variable", 1);
    lbm_log(count_line, NULL);
}

/* Records of contexts come three times, all of one object: the context that carries them is not monitored itself. */
static lbmmon_packet_attributes_t three_records(struct mon_seen *seen)
{
    lbmmon_packet_attributes_t first = {0};
    for (int n = 0; n < 3; n++) {
        REQUIRE(mon_wait(seen, &seen->contexts, mon_count(seen, &seen->contexts) + 1));
        pthread_mutex_lock(&seen->lock);
        lbmmon_packet_attributes_t now = seen->attributes;
        pthread_mutex_unlock(&seen->lock);
        REQUIRE(n == 0 || now.mObjectID == first.mObjectID);
        first = now;
    }
    return first;
}

/* The alias is told of once, though both ends and two listeners have it. */
ROLE(variables)
{
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_event_queue_t *evq;
    set_variables();
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbmsnmp_module(),
               MON_NET ";topic=/of/the/variable");
    lbm_context_t *ctx = net_context();
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbmmon_packet_attributes_t told = three_records(&seen);
    REQUIRE(told.mModuleID == 0x0201);
    REQUIRE(strcmp(told.mApplicationSourceID, "of the variable") == 0);
    REQUIRE(mon_count(&seen, &seen.event_queues) == 0); /* the option of the format acts */
    REQUIRE(atomic_load(&lines_of_the_alias) == 1);
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(ctx));
    return 0;
}

TEST(every_variable_is_the_default_of_its_option)
{
    TEST_NEEDS_NET();
    CHECK_EQ(run_role("variables", ""), 0);
}

ROLE(options)
{
    struct mon_seen seen = MON_SEEN_INIT;
    set_variables();
    mon_listen(&seen, lbmmon_format_csv_module(), "separator=!", lbmmon_transport_lbm_module(), MON_NET);
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport", "lbm"));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", MON_NET));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_format", "csv"));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_format_opts", "separator=!"));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_appid", "of the option"));
    lbm_context_t *ctx = net_context_with(attr);
    lbmmon_packet_attributes_t told = three_records(&seen);
    REQUIRE(told.mModuleID == 0x0105);
    REQUIRE(strcmp(told.mApplicationSourceID, "of the option") == 0);
    REQUIRE(mon_now(&seen).context.tr_src_topics == 0); /* decoded with the separator */
    REQUIRE(atomic_load(&lines_of_the_alias) == 0);
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
    return 0;
}

TEST(an_option_that_is_set_wins_over_its_variable)
{
    TEST_NEEDS_NET();
    CHECK_EQ(run_role("options", ""), 0);
}

/* The request port of the context for records is known to the transport module: it is that of the configuration. The
 * interval and mode that it has there are not those of such a context. */
ROLE(document)
{
    char document[1500];
    snprintf(document, sizeof document,
             "<?xml version='1.0' encoding='UTF-8' ?>\n"
             "<um-configuration version='1.0'><applications><application name='a'><contexts>"
             "<context name='%s'><options type='context'>"
             "<option name='default_interface' default-value='127.0.0.1/32'/>"
             "<option name='resolver_multicast_interface' default-value='127.0.0.1/32'/>"
             "<option name='request_tcp_bind_request_port' default-value='1'/>"
             "<option name='request_tcp_interface' default-value='127.0.0.1/32'/>"
             "<option name='request_tcp_port' default-value='14781'/>"
             "<option name='monitor_interval' default-value='1'/>"
             "</options></context>"
             "</contexts></application></applications></um-configuration>",
             text);
    MUST(lbm_config_xml_string(document, "a"));
    lbmmon_sctl_t *control;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), NULL));
    const char *target = lbmmon_transport_lbm_ctrlmsgtarget();
    REQUIRE(target != NULL && strcmp(target, "127.0.0.1:14781") == 0);
    MON_MUST(lbmmon_sctl_destroy(control));
    return 0;
}

TEST(an_xml_configuration_has_the_context_under_either_name)
{
    TEST_NEEDS_NET();
    CHECK_EQ(run_role("document", "29west_statistics_context"), 0);
    CHECK_EQ(run_role("document", "infa_statistics_context"), 0);
}
