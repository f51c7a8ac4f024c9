/* Interfaces: the textual forms, matching, and the default choice (requirement O2) in a private network. */
#include "um_test.h"

#include <arpa/inet.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_iface.h"
#include "um_test_net.h"

static char lines[8192];
static int line_count, last_level;
static int on_log(int level, const char *message, void *clientd)
{
    size_t used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "%s\n", message);
    last_level = level;
    line_count++;
    return 0;
}

static void log_start(void)
{
    lines[0] = '\0';
    line_count = 0;
    um_log_set_proc(on_log, NULL);
}

static uint32_t parsed(const char *text, int *bits)
{
    uint32_t addr = 0;
    return um_iface_parse(text, &addr, bits) == 0 ? ntohl(addr) : UINT32_MAX;
}

TEST(interface_text_is_an_address_a_prefix_a_device_or_a_host)
{
    TEST_NEEDS_NET();
    int bits = -1;
    CHECK_EQ(parsed("127.0.0.1", &bits), 0x7f000001u);
    CHECK_EQ(bits, 32);
    CHECK_EQ(parsed("127.0.0.0/8", &bits), 0x7f000001u);
    CHECK_EQ(bits, 8);
    CHECK_EQ(parsed("127.9.9.9/8", &bits), 0x7f000001u);
    CHECK_EQ(parsed("\"lo\"", &bits), 0x7f000001u);
    CHECK_EQ(bits, 32);
    CHECK_EQ(parsed("localhost", &bits), 0x7f000001u);
    CHECK_EQ(parsed("localhost/8", &bits), 0x7f000001u);
    CHECK_EQ(parsed("0.0.0.0", &bits), 0);
    CHECK_EQ(bits, 0);
    CHECK_EQ(parsed("0.0.0.0/0", &bits), 0);
}

TEST(bad_interface_text_is_refused_with_the_text_and_the_reason)
{
    TEST_NEEDS_NET();
    static const char *const bad[] = {"",     "127.0.0.1/33", "127.0.0.1/", "127.0.0.1/x", "127.0.0.1/-1", "\"\"",
                                      "\"lo", "\"none0\"",    "10.1.2.3",   "10.0.0.0/8",  "127.0.0.1/8/8"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t addr = 42;
        int bits = 42;
        if (um_iface_parse(bad[i], &addr, &bits) != -1) {
            TEST_FAIL("\"%s\" was accepted", bad[i]);
        }
        CHECK_EQ(um_errnum(), UM_EINVAL);
        CHECK_EQ(addr, 42);
    }
    char longer[400];
    memset(longer, '1', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    uint32_t addr;
    int bits;
    CHECK_EQ(um_iface_parse(longer, &addr, &bits), -1);
    um_iface_parse("10.1.2.3", &addr, &bits);
    CHECK_CONTAINS(um_errmsg(), "10.1.2.3/32");
    CHECK_CONTAINS(um_errmsg(), "no interfaces matching criteria");
}

/* In the private network: veth pairs w0 (10.7.0.1), w1 (10.8.0.1) and w2 (10.8.0.2). */
static bool make_interfaces(void)
{
    static int made;
    if (made == 0) {
        made = system("ip link add w0 type veth peer name p0 && ip link add w1 type veth peer name p1 && "
                      "ip link add w2 type veth peer name p2 && ip addr add 10.7.0.1/16 dev w0 && "
                      "ip addr add 10.8.0.1/16 dev w1 && ip addr add 10.8.0.2/16 dev w2") == 0
                   ? 1
                   : -1;
    }
    return made == 1;
}

TEST(o2_without_another_interface_loopback_is_used_with_one_warning_that_names_the_option)
{
    TEST_NEEDS_NET();
    struct um_iface iface;
    log_start();
    int rc = um_iface_default_multicast("option_a", &iface);
    rc |= um_iface_default_multicast("option_a", &iface);
    um_log_set_proc(NULL, NULL);
    CHECK_EQ(rc, 0);
    CHECK_STR(iface.name, "lo");
    CHECK_EQ(line_count, 1);
    CHECK_EQ(last_level, UM_LOG_WARNING);
    CHECK_CONTAINS(lines, "set option_a");
}

TEST(o2_the_only_candidate_is_logged_as_information_with_the_interfaces_passed_over)
{
    TEST_NEEDS_NET();
    if (!make_interfaces() || system("ip link set w1 up") != 0) {
        TEST_SKIP("needs ip(8) and veth interfaces");
    }
    struct um_iface iface;
    log_start();
    int rc = um_iface_default_multicast("option_b", &iface);
    um_log_set_proc(NULL, NULL);
    CHECK_EQ(rc, 0);
    CHECK_STR(iface.name, "w1");
    CHECK_EQ(iface.addr.s_addr, htonl(0x0a080001u));
    CHECK_EQ(last_level, UM_LOG_INFO);
    CHECK_CONTAINS(lines, "[w1][10.8.0.1]");
    CHECK_CONTAINS(lines, "lo 127.0.0.1");
    CHECK_CONTAINS(lines, "w0 10.7.0.1");
}

TEST(o2_with_three_candidates_choice_reason_and_alternatives_are_logged_once_as_a_warning)
{
    TEST_NEEDS_NET();
    if (!make_interfaces() || system("ip link set w0 up && ip link set w1 up && ip link set w2 up") != 0) {
        TEST_SKIP("needs ip(8) and veth interfaces");
    }
    struct um_iface *list, first = {0}, chosen;
    int count = um_iface_list(&list);
    CHECK(count >= 4);
    for (int i = count - 1; i >= 0; i--) {
        first = !list[i].loopback && list[i].up ? list[i] : first;
    }
    um_free(list);
    log_start();
    int rc = um_iface_default_multicast("option_c", &chosen);
    rc |= um_iface_default_multicast("option_c", &chosen);
    um_log_set_proc(NULL, NULL);
    CHECK_EQ(rc, 0);
    CHECK_STR(chosen.name, first.name);
    CHECK_EQ(line_count, 1);
    CHECK_EQ(last_level, UM_LOG_WARNING);
    CHECK_CONTAINS(lines, "3 multicast-capable interfaces");
    CHECK_CONTAINS(lines, "first that is up and not loopback");
    CHECK_CONTAINS(lines, "10.7.0.1");
    CHECK_CONTAINS(lines, "10.8.0.1");
    CHECK_CONTAINS(lines, "10.8.0.2");
    CHECK_CONTAINS(lines, "set option_c to choose");
}

TEST(o2_an_ambiguous_prefix_takes_the_first_match_and_warns)
{
    TEST_NEEDS_NET();
    if (!make_interfaces()) {
        TEST_SKIP("needs ip(8) and veth interfaces");
    }
    int bits;
    log_start();
    uint32_t addr = parsed("10.8.0.0/16", &bits);
    um_log_set_proc(NULL, NULL);
    CHECK(addr == 0x0a080001u || addr == 0x0a080002u);
    CHECK_EQ(line_count, 1);
    CHECK_CONTAINS(lines, "multiple interfaces match criteria 10.8.0.0/16");
}
