/* The XML configuration of lbmrd: what is read from it, and what is refused with line and remedy. */
#include <arpa/inet.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "resolver/um_lbmrd_config.h"
#include "um_test.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<lbmrd version=\"1.0\">\n"
#define DOMAINS                                                                                                        \
    "<domains>\n"                                                                                                      \
    "<domain name=\"Net-NYC\"><network>10.1.0.0/16</network></domain>\n"                                               \
    "<domain name=\"Net-NJC\"><network> 192.168.1/24 </network></domain>\n"                                            \
    "</domains>\n"
#define RULE "<rule><match address=\"10.1.1.50\" port=\"*\"/><replace address=\"192.168.1.1\" port=\"*\"/></rule>"
#define TRANSFORMATIONS                                                                                                \
    "<transformations>\n<transform source=\"Net-NYC\" destination=\"Net-NJC\">\n" RULE "\n</transform>\n"              \
    "</transformations>\n"
#define TAIL "</lbmrd>\n"

static int read_text(const char *text, struct um_lbmrd_file *out)
{
    return um_lbmrd_file_read("lbmrd.xml", text, strlen(text), out);
}

/* What is said of a file that is refused; "" when it is not. */
static const char *refusal(const char *text)
{
    struct um_lbmrd_file file;
    int result = read_text(text, &file);
    um_lbmrd_file_clear(&file);
    return result == 0 ? "" : um_errmsg();
}

TEST(the_example_is_read)
{
    struct um_lbmrd_file file;
    CHECK_EQ(read_text(HEAD DOMAINS TRANSFORMATIONS TAIL, &file), 0);
    CHECK_EQ(um_lbmrd_nat_domains(file.nat), 2);
    CHECK_EQ(um_lbmrd_nat_domain_of(file.nat, inet_addr("10.1.255.1")), 0);
    CHECK_EQ(um_lbmrd_nat_domain_of(file.nat, inet_addr("192.168.1.20")), 1);
    CHECK_EQ(um_lbmrd_nat_domain_of(file.nat, inet_addr("192.168.2.20")), UM_LBMRD_NO_DOMAIN);
    CHECK(um_lbmrd_nat_translates_for(file.nat, 1) && !um_lbmrd_nat_translates_for(file.nat, 0));
    CHECK(file.port == 0 && file.ttl_ms == 0 && file.interface == NULL && file.logfile == NULL);
    um_lbmrd_file_clear(&file);
}

TEST(the_daemon_part_is_read_and_the_last_of_several_counts)
{
    struct um_lbmrd_file file;
    CHECK_EQ(read_text(HEAD "<daemon><port>15000</port><log>/tmp/lbmrd log</log><interface>\"eth0\"</interface>\n"
                            "<activity>\n 1500 \n</activity><ttl>2500</ttl><!-- later --><port>15001</port>\n"
                            "<resolver_unicast_receiver_socket_buffer>100000</resolver_unicast_receiver_socket_buffer>"
                            "<resolver_unicast_send_socket_buffer>200000</resolver_unicast_send_socket_buffer>"
                            "<log>&#47;tmp/other</log></daemon>\n" DOMAINS TRANSFORMATIONS TAIL,
                       &file),
             0);
    CHECK_EQ(file.port, 15001);
    CHECK_EQ(file.activity_ms, 1500);
    CHECK_EQ(file.ttl_ms, 2500);
    CHECK_EQ(file.rcvbuf, 100000);
    CHECK_EQ(file.sndbuf, 200000);
    CHECK_STR(file.interface, "\"eth0\"");
    CHECK_STR(file.logfile, "/tmp/other");
    um_lbmrd_file_clear(&file);
}

TEST(a_file_without_translation_has_a_domain_that_holds_nobody)
{
    CHECK_STR(refusal(HEAD "<daemon><port>15001</port></daemon><domains><domain name=\"none\"><network>0.0.0.0/32"
                           "</network></domain></domains><transformations><transform source=\"none\" "
                           "destination=\"none\"><rule><match address=\"0.0.0.0\" port=\"0\"/><replace "
                           "address=\"0.0.0.0\" port=\"0\"/></rule></transform></transformations>" TAIL),
              "");
}

/* Parts of the refusal, and the place where something else is written. */
static void check_refused(const char *text, const char *part, const char *line)
{
    const char *why = refusal(text);
    if (strstr(why, part) == NULL || strstr(why, line) == NULL) {
        TEST_FAIL("\"%s\" has not \"%s\" and \"%s\"", why, part, line);
    }
}

TEST(what_the_grammar_refuses_is_named_with_its_line)
{
    check_refused("", "not well-formed XML", "lbmrd.xml");
    check_refused(HEAD "<domains>", "not well-formed XML", "line 3");
    check_refused(HEAD DOMAINS TAIL, "transformations", "line 2"); /* they are mandatory */
    check_refused(HEAD TRANSFORMATIONS DOMAINS TAIL, "domains", "line 2");
    check_refused(HEAD "<domains/>" TRANSFORMATIONS TAIL, "domains", "line 3");
    check_refused("<lbmrd version=\"2.0\">\n" DOMAINS TRANSFORMATIONS TAIL, "version", "line 1");
    check_refused("<lbmrd>\n" DOMAINS TRANSFORMATIONS TAIL, "version", "line 1");
    check_refused("<!DOCTYPE lbmrd [<!ENTITY a \"b\">]><lbmrd version=\"1.0\"/>", "entity declarations", "lbmrd.xml");
    check_refused(HEAD "<domains>\n<domain name=\"a\"><network>10/8</network></domain>\n<domain name=\"a\"><network>"
                       "11/8</network></domain>\n</domains>" TRANSFORMATIONS TAIL,
                  "ID a already defined", "line 5");
    check_refused(HEAD DOMAINS "<transformations>\n<transform source=\"Net-NYC\" destination=\"Net-LDN\">" RULE
                               "</transform>\n</transformations>" TAIL,
                  "Net-LDN", "");
    check_refused(HEAD "<daemon><verbose/></daemon>" DOMAINS TRANSFORMATIONS TAIL, "verbose", "line 3");
    check_refused(HEAD "<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"a\"/>" TAIL, "invalid", "line");
    check_refused("<um-configuration version=\"1.0\"/>", "um-configuration", "lbmrd.xml");
    check_refused("<daemon/>", "must be lbmrd", "lbmrd.xml");
}

TEST(what_values_mean_is_checked_and_the_remedy_is_said)
{
    static const char *const ports[] = {"0", "65536", "99999999999999999999", "-1", "1x", "", "0x10", "1 2"};
    char text[2000];
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        snprintf(text, sizeof text, HEAD "<daemon>\n<port>%s</port></daemon>" DOMAINS TRANSFORMATIONS TAIL, ports[i]);
        check_refused(text, "must be a number from 1 to 65535", "line 4");
    }
    static const char *const networks[] = {"host.dom", "10.1.0.0/33",  "10.1.0.0/", "10.1",      "10.1.0.256/8", "",
                                           "/8",       "10.1.2.3.4/8", "10.1.2.3.", "10..1.2/8", "10.1.0.0/8x",  "a/8"};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        snprintf(text, sizeof text,
                 HEAD "<domains><domain name=\"Net-NYC\">\n<network>%s</network></domain><domain name=\"Net-NJC\">"
                      "<network>1/8</network></domain></domains>" TRANSFORMATIONS TAIL,
                 networks[i]);
        check_refused(text, "must be an IPv4 address or a network such as 10.1.0.0/16", "line 4");
    }
    check_refused(HEAD "<daemon><log> </log></daemon>" DOMAINS TRANSFORMATIONS TAIL, "must not be empty", "line 3");
    check_refused(HEAD "<domains><domain name=\"Net-NYC\"><network>10.1/16</network></domain>\n<domain "
                       "name=\"Net-NJC\"><network>10.1.0.0/16</network></domain></domains>" TRANSFORMATIONS TAIL,
                  "network 10.1.0.0/16 is part of two domains", "line 4");
}

TEST(rules_need_full_addresses_and_ports)
{
    static const struct {
        const char *address, *port, *part;
    } cases[] = {{"10.1/16", "*", "must be a full IPv4 address"},  {"host", "*", "must be a full IPv4 address"},
                 {"10.1.1", "*", "must be a full IPv4 address"},   {"10.1.1.50", "65536", "a number from 0 to 65535"},
                 {"10.1.1.50", "all", "a number from 0 to 65535"}, {"10.1.1.50", "", "a number from 0 to 65535"}};
    char text[2000];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int replace = 0; replace < 2; replace++) {
            snprintf(text, sizeof text,
                     HEAD DOMAINS
                     "<transformations><transform source=\"Net-NYC\" destination=\"Net-NJC\"><rule>"
                     "<match address=\"%s\" port=\"%s\"/>\n<replace address=\"%s\" port=\"%s\"/></rule></transform>"
                     "</transformations>" TAIL,
                     replace ? "10.1.1.50" : cases[i].address, replace ? "*" : cases[i].port,
                     replace ? cases[i].address : "10.1.1.50", replace ? cases[i].port : "*");
            check_refused(text, cases[i].part, replace ? "line 8" : "line 7");
        }
    }
}

static size_t allocations_left;

static bool fail_later(size_t size)
{
    return allocations_left == 0 || --allocations_left == 0;
}

TEST(without_memory_it_is_refused_and_nothing_is_lost)
{
    int failed = 0;
    for (size_t n = 1; n < 100; n++) {
        struct um_lbmrd_file file;
        allocations_left = n;
        um_mem_set_fail_hook(fail_later);
        int result = read_text(HEAD "<daemon><log>x</log></daemon>" DOMAINS TRANSFORMATIONS TAIL, &file);
        bool exhausted = allocations_left == 0;
        um_mem_set_fail_hook(NULL);
        um_lbmrd_file_clear(&file);
        CHECK_EQ(result, exhausted ? -1 : 0);
        failed += exhausted;
    }
    CHECK(failed >= 6 && failed < 99);
}
