/* Options of live objects are shared by those whose options are equal: what counts as equal, that a change on one makes
 * a copy, and who frees it. */
#include "um_test.h"

#include <pthread.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_shared_options.h"

static struct um_receiver_options receiver_options(const char *name, const char *text)
{
    lbm_rcv_topic_attr_t *attr = NULL;
    struct um_receiver_options opts;
    if (lbm_rcv_topic_attr_create(&attr) != 0 ||
        (name != NULL && lbm_rcv_topic_attr_str_setopt(attr, name, text) != 0) ||
        um_receiver_options_resolve(attr, NULL, 0, "topic", &opts) != 0) {
        abort();
    }
    lbm_rcv_topic_attr_delete(attr);
    return opts;
}

static const struct um_receiver_options *share(const char *name, const char *text)
{
    struct um_receiver_options opts = receiver_options(name, text);
    return um_options_share(UM_SCOPE_RECEIVER, &opts);
}

TEST(equal_options_are_shared)
{
    const struct um_receiver_options *a = share(NULL, NULL), *b = share(NULL, NULL);
    CHECK(a != NULL);
    CHECK(a == b);
    CHECK_EQ(um_options_shared_count(), 1);
    um_options_drop(a);
    CHECK_EQ(um_options_shared_count(), 1);
    um_options_drop(b);
    CHECK_EQ(um_options_shared_count(), 0);
}

TEST(options_that_differ_are_not)
{
    static const char *const others[][2] = {{"ordered_delivery", "0"},
                                            {"delivery_control_maximum_burst_loss", "7"},
                                            {"message_selector", "a = 1"},
                                            {"transport_lbtrm_nak_backoff_interval", "300"}};
    enum { COUNT = sizeof others / sizeof others[0] };
    const struct um_receiver_options *plain = share(NULL, NULL), *other[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        other[i] = share(others[i][0], others[i][1]);
        CHECK(other[i] != NULL && other[i] != plain);
        const struct um_receiver_options *again = share(others[i][0], others[i][1]);
        CHECK(again == other[i]);
        um_options_drop(again);
        CHECK_EQ(um_options_shared_count(), i + 2);
    }
    for (size_t i = 0; i < COUNT; i++) {
        um_options_drop(other[i]);
    }
    um_options_drop(plain);
    CHECK_EQ(um_options_shared_count(), 0);
}

/* A range that was set to what it is by default is one that somebody has set: where it is used up, it is an error. */
TEST(a_range_that_was_set_to_its_default_is_not_one_left_alone)
{
    struct um_receiver_options opts = receiver_options(NULL, NULL);
    char low[16];
    snprintf(low, sizeof low, "%u", opts.transport_lbtru_port_low);
    um_options_clear(UM_SCOPE_RECEIVER, &opts);
    const struct um_receiver_options *by_default = share(NULL, NULL), *set = share("transport_lbtru_port_low", low);
    CHECK_EQ(by_default->transport_lbtru_port_low, set->transport_lbtru_port_low);
    CHECK(by_default != set);
    um_options_drop(by_default);
    um_options_drop(set);
}

TEST(a_source_does_not_share_with_a_receiver)
{
    struct um_source_options opts;
    CHECK_EQ(um_source_options_resolve(NULL, NULL, 0, "topic", &opts), 0);
    const struct um_source_options *source = um_options_share(UM_SCOPE_SOURCE, &opts);
    const struct um_receiver_options *receiver = share(NULL, NULL);
    CHECK_EQ(um_options_shared_count(), 2);
    um_options_drop(source);
    um_options_drop(receiver);
    CHECK_EQ(um_options_shared_count(), 0);
}

static const struct um_source_options *share_source(const char *name, const char *text)
{
    lbm_src_topic_attr_t *attr = NULL;
    struct um_source_options opts;
    if (lbm_src_topic_attr_create(&attr) != 0 || lbm_src_topic_attr_str_setopt(attr, name, text) != 0 ||
        um_source_options_resolve(attr, NULL, 0, "topic", &opts) != 0) {
        abort();
    }
    lbm_src_topic_attr_delete(attr);
    return um_options_share(UM_SCOPE_SOURCE, &opts);
}

TEST(lists_are_compared_by_what_is_in_them)
{
    const struct um_source_options *a = share_source("ume_store_name", "a"), *b = share_source("ume_store_name", "b");
    const struct um_source_options *c = share_source("ume_store_name", "a");
    CHECK_EQ(a->ume_store_name.count, 1);
    CHECK(a != b);
    CHECK(a == c);
    um_options_drop(a);
    um_options_drop(b);
    um_options_drop(c);
    CHECK_EQ(um_options_shared_count(), 0);
}

static int set_threshold(void *options, void *arg)
{
    return um_options_str_set(UM_SCOPE_RECEIVER, options, "resolution_number_of_sources_query_threshold", arg, true);
}

TEST(a_change_is_not_seen_by_others_and_equal_changes_meet_again)
{
    const struct um_receiver_options *first = share("message_selector", "a = 1"),
                                     *second = share("message_selector", "a = 1");
    CHECK(first == second);
    unsigned long before = first->resolution_number_of_sources_query_threshold;
    const struct um_receiver_options *changed = um_options_share_changed(first, set_threshold, "5");
    CHECK(changed != NULL && changed != first);
    CHECK_EQ(changed->resolution_number_of_sources_query_threshold, 5);
    CHECK_STR(changed->message_selector, "a = 1");
    CHECK(changed->message_selector != first->message_selector);
    CHECK_EQ(memcmp(changed->default_ranges, first->default_ranges, sizeof first->default_ranges), 0);
    CHECK_EQ(second->resolution_number_of_sources_query_threshold, before);
    const struct um_receiver_options *changed_too = um_options_share_changed(second, set_threshold, "5");
    CHECK(changed_too == changed);
    CHECK(um_options_share_changed(first, set_threshold, "no number") == NULL);
    um_options_drop(first);
    um_options_drop(second);
    um_options_drop(changed);
    um_options_drop(changed_too);
    CHECK_EQ(um_options_shared_count(), 0);
}

static int allowed;

static bool fail_when_used_up(size_t size)
{
    (void)size;
    return allowed-- <= 0;
}

TEST(without_memory_nothing_is_taken_over)
{
    for (int n = 0; n < 3; n++) {
        struct um_receiver_options opts = receiver_options("message_selector", "a = 1");
        allowed = n;
        um_mem_set_fail_hook(fail_when_used_up);
        const struct um_receiver_options *shared = um_options_share(UM_SCOPE_RECEIVER, &opts);
        um_mem_set_fail_hook(NULL);
        CHECK_EQ(shared != NULL, n == 2);
        if (shared == NULL) {
            CHECK_EQ(um_errnum(), UM_ENOMEM);
            CHECK_STR(opts.message_selector, "a = 1");
            um_options_clear(UM_SCOPE_RECEIVER, &opts);
        }
        CHECK_EQ(um_options_shared_count(), shared != NULL);
        um_options_drop(shared);
    }
}

TEST(a_change_without_memory_leaves_what_there_is)
{
    const struct um_receiver_options *shared = share("message_selector", "a = 1"), *changed = NULL;
    for (int n = 0; changed == NULL; n++) {
        CHECK(n < 100);
        allowed = n;
        um_mem_set_fail_hook(fail_when_used_up);
        changed = um_options_share_changed(shared, set_threshold, "5");
        um_mem_set_fail_hook(NULL);
        CHECK(changed != NULL || um_errnum() == UM_ENOMEM);
    }
    CHECK_EQ(um_options_shared_count(), 2);
    um_options_drop(shared);
    um_options_drop(changed);
    CHECK_EQ(um_options_shared_count(), 0);
}

/* Now and again the last reference goes as another one is made. */
static void *share_and_drop(void *arg)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        const struct um_receiver_options *mine = share("ordered_delivery", i % 2 == 0 ? "0" : "-1");
        if (mine == NULL || mine->ordered_delivery != (i % 2 == 0 ? 0 : -1)) {
            return (void *)"not what was asked for";
        }
        um_options_hold(mine);
        um_options_drop(mine);
        um_options_drop(mine);
    }
    return NULL;
}

TEST(threads_share_and_drop_as_they_like)
{
    pthread_t threads[4];
    void *failed[4];
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, share_and_drop, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed[i]);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(failed[i] == NULL);
    }
    CHECK_EQ(um_options_shared_count(), 0);
}
