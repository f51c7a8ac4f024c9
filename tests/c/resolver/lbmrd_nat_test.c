/* Address translation of lbmrd: which domain an address is in, which rule counts, what is replaced in a datagram and
 * what stays, and which clients of the engine get which bytes. */
#include <arpa/inet.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_random.h"
#include "resolver/um_lbmrd_engine.h"
#include "resolver/um_lbmrd_nat.h"
#include "um_test.h"
#include "wire/um_lbmr.h"

#define ANY UM_LBMRD_ANY_PORT

static uint32_t ip(const char *text)
{
    return inet_addr(text);
}

static int drop_log(int level, const char *message, void *clientd)
{
    return 0;
}

/* The example of the documentation: 10.1.0.0/16 behind 192.168.1.1, domains 0 and 1. */
static struct um_lbmrd_nat *make_example(void)
{
    struct um_lbmrd_nat *nat = um_lbmrd_nat_create();
    struct um_lbmrd_rule rule = {ip("10.1.1.50"), ip("192.168.1.1"), ANY, ANY};
    um_lbmrd_nat_add_domain(nat);
    um_lbmrd_nat_add_domain(nat);
    um_lbmrd_nat_add_network(nat, 0, ip("10.1.0.0"), 16);
    um_lbmrd_nat_add_network(nat, 1, ip("192.168.1.0"), 24);
    um_lbmrd_nat_add_rule(nat, 0, 1, &rule);
    um_lbmrd_nat_ready(nat);
    return nat;
}

/* Both domains and one rule from 0 to 1 with these ports. */
static struct um_lbmrd_nat *make_with_rules(const struct um_lbmrd_rule *rules, size_t count)
{
    struct um_lbmrd_nat *nat = um_lbmrd_nat_create();
    um_lbmrd_nat_add_domain(nat);
    um_lbmrd_nat_add_domain(nat);
    um_lbmrd_nat_add_network(nat, 0, ip("10.0.0.0"), 8);
    um_lbmrd_nat_add_network(nat, 1, ip("192.168.0.0"), 16);
    for (size_t i = 0; i < count; i++) {
        um_lbmrd_nat_add_rule(nat, 0, 1, &rules[i]);
    }
    um_lbmrd_nat_ready(nat);
    return nat;
}

struct datagram {
    uint8_t bytes[UM_LBMR_TIR_MAX + 64];
    size_t len;
};

static struct datagram with_tir(const struct um_lbmr_transport *transport, const struct um_lbmr_option *options,
                                size_t count)
{
    struct datagram out = {.len = 0};
    uint8_t record[UM_LBMR_TIR_MAX];
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_builder builder;
    um_lbmr_tir_begin(&writer, record, sizeof record, "orders", 7);
    for (size_t i = 0; i < count; i++) {
        um_lbmr_tir_option(&writer, &options[i]);
    }
    size_t len = um_lbmr_tir_end(&writer, transport);
    um_lbmr_begin(&builder, out.bytes, sizeof out.bytes, sizeof out.bytes, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tqr(&builder, "questions", 9);
    um_lbmr_add_tir(&builder, record, len);
    out.len = um_lbmr_finish(&builder);
    return out;
}

static struct um_lbmr_transport tcp(const char *address, uint16_t port)
{
    return (struct um_lbmr_transport){
        .code = UM_LBMR_TCP, .known = true, .ip = ip(address), .session_id = 0x01020304, .port = port};
}

static bool first_tir(const struct datagram *datagram, struct um_lbmr_tir *out)
{
    struct um_lbmr_msg msg;
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tqr tqr;
    unsigned detail;
    if (um_lbmr_validate(datagram->bytes, datagram->len, NULL) != UM_LBMR_OK ||
        um_lbmr_parse(datagram->bytes, datagram->len, &msg, &detail) != UM_LBMR_OK) {
        return false;
    }
    um_lbmr_records(&msg, &cursor);
    while (um_lbmr_next_tqr(&cursor, &tqr)) {
    }
    return um_lbmr_next_tir(&cursor, out);
}

static unsigned rewrite(const struct um_lbmrd_nat *nat, const char *sender, struct datagram *datagram)
{
    return um_lbmrd_nat_rewrite(nat, 1, ip(sender), datagram->bytes, datagram->len);
}

/* ---- domains ---- */

TEST(the_longest_prefix_decides_about_the_domain)
{
    struct um_lbmrd_nat *nat = um_lbmrd_nat_create();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(um_lbmrd_nat_add_domain(nat), i);
    }
    um_lbmrd_nat_add_network(nat, 0, ip("10.0.0.0"), 8);
    um_lbmrd_nat_add_network(nat, 1, ip("10.1.99.99"), 16); /* bits behind the prefix do not count */
    um_lbmrd_nat_add_network(nat, 2, ip("10.1.1.50"), 32);
    CHECK_EQ(um_lbmrd_nat_ready(nat), 0);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("10.0.0.0")), 0);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("10.255.255.255")), 0);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("10.1.0.0")), 1);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("10.1.1.49")), 1);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("10.1.1.50")), 2);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("10.1.1.51")), 1);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("9.255.255.255")), UM_LBMRD_NO_DOMAIN);
    CHECK_EQ(um_lbmrd_nat_domain_of(nat, ip("11.0.0.0")), UM_LBMRD_NO_DOMAIN);
    um_lbmrd_nat_destroy(nat);
}

TEST(domains_of_random_networks_are_those_of_a_plain_search)
{
    struct um_rng rng;
    um_rng_seed(&rng, 20);
    for (int round = 0; round < 30; round++) {
        uint32_t networks[40], masks[40];
        int prefixes[40];
        struct um_lbmrd_nat *nat = um_lbmrd_nat_create();
        for (int i = 0; i < 40; i++) { /* few different bits, so that many contain each other */
            prefixes[i] = (int)um_rng_range(&rng, 0, 32);
            masks[i] = prefixes[i] == 0 ? 0 : UINT32_MAX << (32 - prefixes[i]);
            networks[i] = (uint32_t)um_rng_range(&rng, 0, 3) << 30 | (uint32_t)um_rng_range(&rng, 0, 3);
            um_lbmrd_nat_add_domain(nat);
            if (um_lbmrd_nat_add_network(nat, i, htonl(networks[i]), prefixes[i]) != 0) {
                prefixes[i] = -1; /* another domain has it */
            }
        }
        CHECK_EQ(um_lbmrd_nat_ready(nat), 0);
        for (int question = 0; question < 200; question++) {
            uint32_t address = (uint32_t)um_rng_range(&rng, 0, 3) << 30 | (uint32_t)um_rng_range(&rng, 0, 5);
            int expected = UM_LBMRD_NO_DOMAIN, longest = -1;
            for (int i = 0; i < 40; i++) {
                if (prefixes[i] > longest && ((address ^ networks[i]) & masks[i]) == 0) {
                    longest = prefixes[i];
                    expected = i;
                }
            }
            CHECK_EQ(um_lbmrd_nat_domain_of(nat, htonl(address)), expected);
        }
        um_lbmrd_nat_destroy(nat);
    }
}

TEST(a_network_belongs_to_one_domain_and_tables_are_bounded)
{
    struct um_lbmrd_nat *nat = make_example();
    CHECK_EQ(um_lbmrd_nat_add_network(nat, 0, ip("10.1.2.3"), 16), 0); /* again */
    CHECK_EQ(um_lbmrd_nat_add_network(nat, 1, ip("10.1.0.0"), 16), -1);
    CHECK(strstr(um_errmsg(), "network 10.1.0.0/16 is part of two domains") != NULL);
    while (um_lbmrd_nat_domains(nat) < UM_LBMRD_MAX_DOMAINS) {
        CHECK(um_lbmrd_nat_add_domain(nat) >= 0);
    }
    CHECK_EQ(um_lbmrd_nat_add_domain(nat), -1);
    CHECK(strstr(um_errmsg(), "more than 256 domains") != NULL);
    um_lbmrd_nat_destroy(nat);
}

/* ---- rules ---- */

static void check_rules(const struct um_lbmrd_rule *rules, size_t count, const char *expected_ip,
                        uint16_t expected_port)
{
    struct um_lbmrd_nat *nat = make_with_rules(rules, count);
    struct um_lbmr_transport transport = tcp("10.1.1.50", 12001);
    struct datagram datagram = with_tir(&transport, NULL, 0);
    struct um_lbmr_tir tir;
    rewrite(nat, "10.9.9.9", &datagram);
    CHECK(first_tir(&datagram, &tir));
    CHECK_EQ(tir.transport.ip, ip(expected_ip));
    CHECK_EQ(tir.transport.port, expected_port);
    um_lbmrd_nat_destroy(nat);
}

TEST(address_and_port_are_matched_and_replaced_together)
{
    struct um_lbmrd_rule any = {ip("10.1.1.50"), ip("192.168.1.1"), ANY, ANY};
    struct um_lbmrd_rule port = {ip("10.1.1.50"), ip("192.168.1.2"), 12001, 9999};
    struct um_lbmrd_rule other_port = {ip("10.1.1.50"), ip("192.168.1.3"), 12002, 9998};
    struct um_lbmrd_rule keep = {ip("10.1.1.50"), ip("192.168.1.4"), 12001, ANY};
    struct um_lbmrd_rule other = {ip("10.1.1.51"), ip("192.168.1.5"), ANY, 1};
    struct um_lbmrd_rule again = {ip("192.168.1.1"), ip("192.168.1.6"), ANY, 2};
    check_rules(&any, 1, "192.168.1.1", 12001);
    check_rules(&port, 1, "192.168.1.2", 9999);
    check_rules(&other_port, 1, "10.1.1.50", 12001);
    check_rules(&other, 1, "10.1.1.50", 12001);
    check_rules((struct um_lbmrd_rule[]){other_port, keep, any}, 3, "192.168.1.4", 12001);
    check_rules((struct um_lbmrd_rule[]){any, port}, 2, "192.168.1.1", 12001); /* the first that matches */
    check_rules((struct um_lbmrd_rule[]){other, port, any}, 3, "192.168.1.2", 9999);
    check_rules((struct um_lbmrd_rule[]){any, again}, 2, "192.168.1.1", 12001); /* one rule for each pair */
}

TEST(without_a_transform_between_the_domains_a_tir_stays)
{
    struct um_lbmrd_nat *nat = make_example();
    struct um_lbmr_transport transport = tcp("10.1.1.50", 12001), elsewhere = tcp("172.16.0.1", 12001);
    struct datagram datagram = with_tir(&transport, NULL, 0), before = datagram;
    CHECK_EQ(um_lbmrd_nat_rewrite(nat, 0, ip("10.1.1.50"), datagram.bytes, datagram.len), 0);
    CHECK(memcmp(datagram.bytes, before.bytes, before.len) == 0);
    CHECK(um_lbmrd_nat_translates_for(nat, 1) && !um_lbmrd_nat_translates_for(nat, 0));
    CHECK(!um_lbmrd_nat_translates_for(nat, UM_LBMRD_NO_DOMAIN));
    datagram = before = with_tir(&elsewhere, NULL, 0);
    CHECK_EQ(rewrite(nat, "172.16.0.9", &datagram), 0); /* neither the address nor the sender is in a domain */
    CHECK(memcmp(datagram.bytes, before.bytes, before.len) == 0);
    um_lbmrd_nat_destroy(nat);
}

TEST(the_senders_domain_counts_where_the_address_is_in_none)
{
    struct um_lbmrd_rule rule = {ip("172.16.0.1"), ip("192.168.1.1"), ANY, ANY};
    struct um_lbmrd_nat *nat = make_with_rules(&rule, 1);
    struct um_lbmr_transport transport = tcp("172.16.0.1", 12001);
    struct um_lbmr_transport memory = {
        .code = UM_LBMR_LBTSMX, .known = true, .host_id = 0xac100001, .transport_id = 30001};
    struct um_lbmr_option request = {.type = UM_LBMR_OPT_EXFUNC};
    request.u.exfunc.src_ip = ip("172.16.0.1");
    request.u.exfunc.src_port = 14391;
    struct datagram datagram = with_tir(&transport, NULL, 0);
    CHECK_EQ(rewrite(nat, "10.0.0.1", &datagram), 1);
    datagram = with_tir(&transport, NULL, 0);
    CHECK_EQ(rewrite(nat, "172.16.0.1", &datagram), 0);
    datagram = with_tir(&memory, &request, 1); /* has no address of its own; its options have */
    struct um_lbmr_tir tir;
    CHECK_EQ(rewrite(nat, "10.0.0.1", &datagram), 1);
    CHECK(first_tir(&datagram, &tir));
    CHECK_EQ(tir.transport.host_id, 0xac100001);
    CHECK_EQ(tir.transport.transport_id, 30001);
    um_lbmrd_nat_destroy(nat);
}

/* ---- what is replaced ---- */

TEST(every_transport_with_an_address_is_translated_and_groups_stay)
{
    struct um_lbmrd_rule rule = {ip("10.1.1.50"), ip("192.168.1.1"), 12001, 13001};
    struct um_lbmrd_nat *nat = make_with_rules(&rule, 1);
    static const struct {
        uint8_t code;
        bool session_less;
    } cases[] = {{UM_LBMR_TCP, false},  {UM_LBMR_TCP, true},      {UM_LBMR_LBTRU, false},
                 {UM_LBMR_LBTRU, true}, {UM_LBMR_LBTRDMA, false}, {UM_LBMR_LBTRM, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct um_lbmr_transport transport = {.code = cases[i].code,
                                              .known = true,
                                              .session_less = cases[i].session_less,
                                              .ip = ip("10.1.1.50"),
                                              .group = ip("239.1.1.50"),
                                              .session_id = 0x01020304,
                                              .port = 12001,
                                              .dest_port = 12001};
        struct datagram datagram = with_tir(&transport, NULL, 0), before = datagram;
        struct um_lbmr_tir tir;
        CHECK_EQ(rewrite(nat, "10.1.1.50", &datagram), 1);
        CHECK(first_tir(&datagram, &tir));
        CHECK_EQ(tir.transport.ip, ip("192.168.1.1"));
        CHECK_EQ(tir.transport.port, 13001);
        CHECK_EQ(tir.transport.session_id, cases[i].session_less ? 0 : 0x01020304);
        if (cases[i].code == UM_LBMR_LBTRM) {
            CHECK_EQ(tir.transport.group, ip("239.1.1.50"));
            CHECK_EQ(tir.transport.dest_port, 12001);
        }
        size_t changed = 0;
        for (size_t at = 0; at < before.len; at++) {
            changed += datagram.bytes[at] != before.bytes[at];
        }
        CHECK(changed <= 6); /* four bytes of address, two of port */
    }
    um_lbmrd_nat_destroy(nat);
}

TEST(every_option_with_an_address_is_translated_and_the_otid_stays)
{
    struct um_lbmrd_rule rule = {ip("10.1.1.50"), ip("192.168.1.1"), ANY, ANY};
    struct um_lbmrd_nat *nat = make_with_rules(&rule, 1);
    struct um_lbmr_transport transport = tcp("10.1.1.50", 12001);
    struct um_lbmr_option options[7] = {{.type = UM_LBMR_OPT_UME},    {.type = UM_LBMR_OPT_STORE},
                                        {.type = UM_LBMR_OPT_STORE},  {.type = UM_LBMR_OPT_LATE_JOIN},
                                        {.type = UM_LBMR_OPT_EXFUNC}, {.type = UM_LBMR_OPT_ULB},
                                        {.type = UM_LBMR_OPT_OTID}};
    options[0].u.ume.src_ip = options[0].u.ume.store_ip = ip("10.1.1.50");
    options[0].u.ume.src_port = 1;
    options[0].u.ume.store_port = 2;
    options[1].u.store.ip = ip("10.1.1.50");
    options[1].u.store.port = 3;
    options[2].u.store.ip = ip("10.1.1.51"); /* of another host */
    options[3].u.late_join.src_ip = ip("10.1.1.50");
    options[3].u.late_join.src_port = 4;
    options[4].u.exfunc.src_ip = ip("10.1.1.50");
    options[4].u.exfunc.src_port = 5;
    options[5].u.ulb.src_ip = ip("10.1.1.50");
    options[5].u.ulb.src_port = 6;
    uint32_t inside = ip("10.1.1.50");
    memcpy(options[6].u.otid + 24, &inside, sizeof inside);
    struct datagram datagram = with_tir(&transport, options, 7);
    struct um_lbmr_tir tir;
    struct um_lbmr_option option;
    size_t at = 0, seen = 0, stores = 0;
    CHECK_EQ(rewrite(nat, "10.1.1.50", &datagram), 7); /* transport, two of UME, store, late join, EXFUNC, ULB */
    CHECK(first_tir(&datagram, &tir));
    while (um_lbmr_next_option(&tir, &at, &option)) {
        seen++;
        if (option.type == UM_LBMR_OPT_UME) {
            CHECK(option.u.ume.src_ip == ip("192.168.1.1") && option.u.ume.store_ip == ip("192.168.1.1"));
            CHECK(option.u.ume.src_port == 1 && option.u.ume.store_port == 2);
        } else if (option.type == UM_LBMR_OPT_STORE) {
            CHECK_EQ(option.u.store.ip, ip(stores++ == 0 ? "192.168.1.1" : "10.1.1.51"));
        } else if (option.type == UM_LBMR_OPT_LATE_JOIN) {
            CHECK(option.u.late_join.src_ip == ip("192.168.1.1") && option.u.late_join.src_port == 4);
        } else if (option.type == UM_LBMR_OPT_EXFUNC) {
            CHECK(option.u.exfunc.src_ip == ip("192.168.1.1") && option.u.exfunc.src_port == 5);
        } else if (option.type == UM_LBMR_OPT_ULB) {
            CHECK(option.u.ulb.src_ip == ip("192.168.1.1") && option.u.ulb.src_port == 6);
        } else if (option.type == UM_LBMR_OPT_OTID) {
            CHECK(memcmp(option.u.otid, options[6].u.otid, 32) == 0);
        }
    }
    CHECK_EQ(seen, 7);
    um_lbmrd_nat_destroy(nat);
}

TEST(a_datagram_without_advertisements_stays)
{
    struct um_lbmrd_nat *nat = make_example();
    uint8_t bytes[256], before[256];
    struct um_lbmr_rctx context = {
        .has_address = true, .ip = ip("10.1.1.50"), .port = 14391, .name = "c", .name_len = 1};
    size_t len = um_lbmr_encode_rctx(bytes, sizeof bytes, &context, NULL, 0);
    CHECK(len > 0);
    memcpy(before, bytes, len);
    CHECK_EQ(um_lbmrd_nat_rewrite(nat, 1, ip("10.1.1.50"), bytes, len), 0);
    CHECK(memcmp(bytes, before, len) == 0);
    um_lbmrd_nat_destroy(nat);
}

/* ---- the engine ---- */

static struct {
    int count;
    struct {
        uint32_t ip;
        struct datagram datagram;
    } sent[8];
} wire;

static int record_send(void *arg, uint32_t to, uint16_t port, const uint8_t *data, size_t len)
{
    if (wire.count < 8 && len <= sizeof wire.sent[0].datagram.bytes) {
        wire.sent[wire.count].ip = to;
        wire.sent[wire.count].datagram.len = len;
        memcpy(wire.sent[wire.count].datagram.bytes, data, len);
    }
    wire.count++;
    return 0;
}

static void record_send_all(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                            int *errors)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = record_send(arg, peers[i].ip, peers[i].port, data, len);
    }
}

TEST(each_domain_gets_its_own_copy_and_unset_addresses_are_filled_in_before)
{
    struct um_lbmrd_nat *nat = make_example();
    struct um_lbmrd_config config = {.ttl_ns = 60 * 1000000000ull,
                                     .activity_ns = 60 * 1000000000ull,
                                     .max_clients = 10,
                                     .max_address_clients = 10,
                                     .output_rate = 1000000,
                                     .output_burst = 1000000,
                                     .nat = nat,
                                     .send = record_send_all};
    static const char *const clients[] = {"10.1.1.50", "192.168.1.20", "172.16.0.1", "192.168.1.21"};
    um_log_set_proc(drop_log, NULL);
    struct um_lbmrd *engine = um_lbmrd_create(&config, 0);
    for (size_t i = 0; i < 4; i++) {
        uint8_t keepalive[4] = {0x02, 0, 0, 0};
        um_lbmrd_on_datagram(engine, 0, keepalive, sizeof keepalive, ip(clients[i]), 14402);
    }
    memset(&wire, 0, sizeof wire);
    struct um_lbmr_transport transport = tcp("0.0.0.0", 12001);
    struct um_lbmr_option request = {.type = UM_LBMR_OPT_EXFUNC};
    request.u.exfunc.src_port = 14391;
    struct datagram datagram = with_tir(&transport, &request, 1);
    um_lbmrd_on_datagram(engine, 1000000, datagram.bytes, datagram.len, ip("10.1.1.50"), 14402);
    CHECK_EQ(wire.count, 4);
    for (int i = 0; i < 4; i++) {
        bool translated = (ntohl(wire.sent[i].ip) >> 16) == 0xc0a8; /* 192.168 */
        uint32_t expected = ip(translated ? "192.168.1.1" : "10.1.1.50");
        struct um_lbmr_tir tir;
        struct um_lbmr_option option;
        size_t at = 0;
        CHECK(first_tir(&wire.sent[i].datagram, &tir));
        CHECK_EQ(tir.transport.ip, expected);
        CHECK_EQ(tir.transport.port, 12001);
        CHECK(um_lbmr_next_option(&tir, &at, &option));
        CHECK_EQ(option.u.exfunc.src_ip, expected);
        CHECK_EQ(option.u.exfunc.src_port, 14391);
    }
    CHECK_EQ(um_lbmrd_stats(engine)->translated, 2); /* once for the domain, not for each of its clients */
    /* A client that is another daemon sends its copy back, unchanged: it was forwarded already, and does not circle. */
    for (int i = 0; i < 4; i++) {
        struct datagram copy = wire.sent[i].datagram;
        if (wire.sent[i].ip != ip("10.1.1.50")) { /* who repeats what it said itself is no other daemon */
            um_lbmrd_on_datagram(engine, 2000000, copy.bytes, copy.len, wire.sent[i].ip, 14402);
        }
    }
    CHECK_EQ(wire.count, 4);
    CHECK_EQ(um_lbmrd_stats(engine)->circling, 3);
    um_lbmrd_destroy(engine);
    um_lbmrd_nat_destroy(nat);
}
