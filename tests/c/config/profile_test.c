/* The option um_profile: replaces defaults of the context and of what is created
 * in it, and nothing that was set. */
#include "um_test.h"

#include <unistd.h>

#include <lbm/lbm.h>

#include "config/um_options.h"
#include "config/um_profile.h"

#define RESOLVE_CONTEXT(attr, out) CHECK_EQ(um_context_options_resolve(attr, out), 0)

static lbm_context_attr_t *context_attr(void)
{
    lbm_context_attr_t *attr = NULL;
    if (lbm_context_attr_create(&attr) != 0) {
        abort();
    }
    return attr;
}

TEST(without_a_profile_the_defaults_are_the_documented_ones)
{
    struct um_context_options context;
    struct um_receiver_options receiver;
    RESOLVE_CONTEXT(NULL, &context);
    CHECK_EQ(context.um_profile, UM_PROFILE_NONE);
    CHECK_EQ(context.transport_lbtrm_data_rate_limit, 10000000);
    CHECK_EQ(um_receiver_options_resolve(NULL, NULL, context.um_profile, "t", &receiver), 0);
    CHECK_EQ(receiver.transport_lbtrm_nak_initial_backoff_interval, 50);
    CHECK_EQ(receiver.um_transport_lbtrm_nak_initial_backoff_interval_us, 0);
    um_options_clear(UM_SCOPE_CONTEXT, &context);
    um_options_clear(UM_SCOPE_RECEIVER, &receiver);
}

TEST(low_latency_lifts_rate_limits_and_shortens_nak_timing_of_everything_in_the_context)
{
    struct um_context_options context;
    struct um_receiver_options receiver;
    struct um_source_options source;
    lbm_context_attr_t *attr = context_attr();
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "um_profile", "low_latency"), 0);
    RESOLVE_CONTEXT(attr, &context);
    CHECK_EQ(context.um_profile, UM_PROFILE_LOW_LATENCY);
    CHECK_EQ(context.transport_lbtrm_data_rate_limit, 10000000000);
    CHECK_EQ(context.transport_lbtrm_retransmit_rate_limit, 5000000000);
    CHECK_EQ(context.transport_lbtru_data_rate_limit, 10000000000);
    CHECK_EQ(um_receiver_options_resolve(NULL, NULL, context.um_profile, "t", &receiver), 0);
    CHECK_EQ(receiver.um_transport_lbtrm_nak_initial_backoff_interval_us, 100);
    CHECK_EQ(receiver.um_transport_lbtru_nak_backoff_interval_us, 4000);
    CHECK_EQ(receiver.transport_lbtrm_nak_initial_backoff_interval, 50); /* kept, and overruled */
    CHECK_EQ(um_source_options_resolve(NULL, NULL, context.um_profile, "t", &source), 0);
    CHECK_EQ(source.transport_lbtrm_ignore_interval, 1);
    CHECK_EQ(source.transport_lbtrm_sm_minimum_interval, 10);
    lbm_context_attr_delete(attr);
    um_options_clear(UM_SCOPE_CONTEXT, &context);
    um_options_clear(UM_SCOPE_RECEIVER, &receiver);
    um_options_clear(UM_SCOPE_SOURCE, &source);
}

TEST(what_was_set_stays_even_when_it_was_set_to_its_default)
{
    struct um_context_options context;
    struct um_receiver_options receiver;
    lbm_context_attr_t *attr = context_attr();
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "um_profile", "low_latency"), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", "10000000"), 0);
    RESOLVE_CONTEXT(attr, &context);
    CHECK_EQ(context.transport_lbtrm_data_rate_limit, 10000000);
    CHECK_EQ(context.transport_lbtrm_retransmit_rate_limit, 5000000000);
    lbm_context_attr_delete(attr);
    um_options_clear(UM_SCOPE_CONTEXT, &context);

    lbm_rcv_topic_attr_t *topic = NULL;
    CHECK_EQ(lbm_rcv_topic_attr_create(&topic), 0);
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(topic, "transport_lbtrm_nak_backoff_interval", "30"), 0);
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(topic, "um_transport_lbtru_nak_backoff_interval_us", "700"), 0);
    CHECK_EQ(um_receiver_options_resolve(topic, NULL, UM_PROFILE_LOW_LATENCY, "t", &receiver), 0);
    CHECK_EQ(receiver.transport_lbtrm_nak_backoff_interval, 30);
    CHECK_EQ(receiver.um_transport_lbtrm_nak_backoff_interval_us, 0); /* would overrule what was set */
    CHECK_EQ(receiver.um_transport_lbtru_nak_backoff_interval_us, 700);
    CHECK_EQ(receiver.um_transport_lbtrm_nak_initial_backoff_interval_us, 100);
    lbm_rcv_topic_attr_delete(topic);
    um_options_clear(UM_SCOPE_RECEIVER, &receiver);
}

TEST(one_line_of_a_configuration_file_is_enough)
{
    char path[] = "/tmp/um-profile-XXXXXX";
    int fd = mkstemp(path);
    const char line[] = "context um_profile low_latency\n";
    CHECK(fd >= 0 && write(fd, line, sizeof line - 1) == (ssize_t)sizeof line - 1);
    close(fd);
    int rc = lbm_config(path);
    unlink(path);
    CHECK_EQ(rc, 0);
    struct um_context_options context;
    RESOLVE_CONTEXT(NULL, &context);
    CHECK_EQ(context.transport_lbtrm_data_rate_limit, 10000000000);
    um_options_clear(UM_SCOPE_CONTEXT, &context);
}
