/* Options of topic resolution reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <arpa/inet.h>

#include "um_test_options.h"

/* ---- the engine ---- */

static bool wildcards_possible(struct world *w)
{
    return lbm_wildcard_rcv_create(&w->wildcard, w->ctx, "x", w->receiver, w->wildcard_receiver, recorder_cb,
                                   &w->recorder, NULL) == 0;
}

REACHES(context, disable_extended_topic_resolution_message_options, "1", context_only, seen.tr.extended_options, false);
REACHES(context, resolver_cache, "0", context_only, seen.tr.cache || wildcards_possible(w), false);
REACHES(context, resolver_datagram_max_size, "1111", context_only,
        seen.tr.source_datagram_max == 1111 && seen.tr.receiver_datagram_max == 1111, true);
REACHES(context, resolver_source_datagram_max_size, "1112", context_only, seen.tr.source_datagram_max, 1112);
REACHES(context, resolver_receiver_datagram_max_size, "1113", context_only, seen.tr.receiver_datagram_max, 1113);
REACHES(context, resolver_disable_udp_topic_resolution, "1", context_only,
        seen.tr.queries_possible || seen.bind_count != 0, false);
REACHES(context, resolver_domain_id_active_propagation_timeout, "33", context_only, seen.tr.domain_timeout, 33);

#define RATE(lane) seen.tr.rates[UM_TR_LANE_##lane]
REACHES(context, resolver_initial_advertisement_bps, "777001", context_only, RATE(INITIAL_ADVERT).bits_per_second,
        777001);
REACHES(context, resolver_initial_advertisements_per_second, "771", context_only,
        RATE(INITIAL_ADVERT).records_per_second, 771);
REACHES(context, resolver_initial_query_bps, "777002", context_only, RATE(INITIAL_QUERY).bits_per_second, 777002);
REACHES(context, resolver_initial_queries_per_second, "772", context_only, RATE(INITIAL_QUERY).records_per_second, 772);
REACHES(context, resolver_sustain_advertisement_bps, "777003", context_only, RATE(SUSTAIN_ADVERT).bits_per_second,
        777003);
REACHES(context, resolver_sustain_advertisements_per_second, "773", context_only,
        RATE(SUSTAIN_ADVERT).records_per_second, 773);
REACHES(context, resolver_sustain_query_bps, "777004", context_only, RATE(SUSTAIN_QUERY).bits_per_second, 777004);
REACHES(context, resolver_sustain_queries_per_second, "774", context_only, RATE(SUSTAIN_QUERY).records_per_second, 774);
REACHES(context, resolver_wildcard_query_bps, "777005", context_only, RATE(WILDCARD_QUERY).bits_per_second, 777005);
REACHES(context, resolver_wildcard_queries_per_second, "775", context_only, RATE(WILDCARD_QUERY).records_per_second,
        775);

static uint32_t hash_of_abc(void)
{
    return seen.tr.hash == NULL ? 0 : seen.tr.hash("abc", 3, seen.tr.hash_user);
}

static lbm_ulong_t hash_ex(const char *text, size_t len, void *clientd)
{
    return len == 3 && memcmp(text, "abc", 3) == 0 ? *(lbm_ulong_t *)clientd : 1;
}

static void with_hash_ex(struct world *w)
{
    static lbm_ulong_t answer = 4711;
    lbm_str_hash_func_ex_t function = {hash_ex, &answer};
    MUST(lbm_context_attr_setopt(w->context, "resolver_string_hash_function_ex", &function, sizeof function));
    context_only(w);
}

REACHES(context, resolver_string_hash_function, "djb2", context_only, hash_of_abc(), 193485963);
REACHES_BINARY(context, resolver_string_hash_function_ex, with_hash_ex, hash_of_abc(), 4711);

/* ---- multicast ---- */

static void no_interface(struct world *w)
{
    SET_context(w, "default_interface", "0.0.0.0");
}

/* The interface of multicast is named by nothing else. */
static void nameless_source(struct world *w)
{
    no_interface(w);
    rm_source(w);
}

static void advertised_source(struct world *w)
{
    tcp_source(w);
    world_wait(w, &seen.datagrams_sent, 1);
}

/* What is sent to the group, and where it is listened to. */
static bool resolves_at(const char *ip, uint16_t port)
{
    return seams_bound(ip, port) && (ip == NULL || seen.sent_to.addr == inet_addr(ip)) &&
           (port == 0 || seen.sent_to.port == port);
}

/* UDP sockets of this process that send multicast with this TTL. */
static int sockets_with_ttl(int ttl)
{
    int count = 0;
    for (int fd = 3; fd < 256; fd++) {
        int has = 0, type = 0;
        socklen_t len = sizeof has, type_len = sizeof type;
        count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_DGRAM &&
                 getsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &has, &len) == 0 && has == ttl;
    }
    return count;
}

REACHES(context, resolver_multicast_address, "224.9.9.1", advertised_source, resolves_at("224.9.9.1", 0), true);
REACHES(context, resolver_multicast_incoming_address, "224.9.9.2", context_only, seams_bound("224.9.9.2", 0), true);
REACHES(context, resolver_multicast_incoming_port, "24961", context_only, seams_bound(NULL, 24961), true);
REACHES(context, resolver_multicast_interface, "127.0.0.1/32", nameless_source, seen.default_interfaces, 0);
REACHES(context, resolver_multicast_outgoing_address, "224.9.9.3", advertised_source, seen.sent_to.addr,
        inet_addr("224.9.9.3"));
REACHES(context, resolver_multicast_outgoing_port, "24962", advertised_source, seen.sent_to.port, 24962);
REACHES(context, resolver_multicast_port, "24963", advertised_source, resolves_at(NULL, 24963), true);
REACHES(context, resolver_multicast_receiver_socket_buffer, "54321", context_only,
        seams_named("resolver_multicast_receiver_socket_buffer"), 54321);
REACHES(context, resolver_multicast_ttl, "77", rm_source, sockets_with_ttl(77), 2);

/* ---- lbmrd ---- */

static void daemon_context(struct world *w)
{
    SET_context(w, "resolver_unicast_daemon", "127.0.0.1:25380");
    context_only(w);
}

static void nameless_daemon_context(struct world *w)
{
    no_interface(w);
    daemon_context(w);
}

/* As before there were lists: one daemon, in options of its own. */
static void old_daemon_source(struct world *w)
{
    SET_context(w, "resolver_unicast_address", "127.0.0.1");
    advertised_source(w);
}

/* The first port of the default range is taken. */
static bool next_port_free(struct world *w)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(14402), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    bool taken = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    SET_context(w, "resolver_unicast_daemon", "127.0.0.1:25380");
    bool created = lbm_context_create(&w->ctx, w->context, NULL, NULL) == 0;
    close(fd);
    return !taken || created;
}

static void nothing(struct world *w)
{
    (void)w;
}

static void strangers_datagram(struct world *w)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(24555), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    SET_context(w, "resolver_unicast_port", "24555");
    daemon_context(w);
    sendto(fd, "stranger", 8, 0, (struct sockaddr *)&to, sizeof to);
    close(fd);
    lbm_context_stats_t stats = {0};
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.tr_dgrams_rcved + stats.tr_dgrams_dropped_ver == 0; i++) {
        world_settle(w);
        if (seen.packets != 0) {
            return;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        MUST(lbm_context_retrieve_stats(w->ctx, &stats));
    }
}

REACHES(context, resolver_unicast_activity_timeout, "7001", daemon_context, seen.unicast.activity_timeout_ns, MS(7001));
REACHES(context, resolver_unicast_address, "127.0.0.2", advertised_source,
        seen.daemons == 1 && seen.sent_to.addr == inet_addr("127.0.0.2"), true);
REACHES(context, resolver_unicast_change_interval, "7002", daemon_context, seen.unicast.change_interval_ns, MS(7002));
REACHES(context, resolver_unicast_check_interval, "7003", daemon_context, seen.unicast.check_interval_ns, MS(7003));
REACHES(context, resolver_unicast_daemon, "127.0.0.1:25381", advertised_source,
        seen.daemons == 1 && seen.sent_to.port == 25381, true);
REACHES(context, resolver_unicast_destination_port, "25382", old_daemon_source, seen.sent_to.port, 25382);
REACHES(context, resolver_unicast_force_alive, "1", daemon_context, seen.unicast.force_alive, true);
REACHES(context, resolver_unicast_ignore_unknown_source, "0", strangers_datagram, seen.packets, 1);
REACHES(context, resolver_unicast_interface, "127.0.0.1/32", nameless_daemon_context, seams_bound("127.0.0.1", 14402),
        true);
REACHES(context, resolver_unicast_keepalive_interval, "7004", daemon_context, seen.unicast.keepalive_interval_ns,
        MS(7004));
REACHES(context, resolver_unicast_port, "24556", daemon_context, seams_bound(NULL, 24556), true);
REACHES(context, resolver_unicast_port_high, "14402", nothing, next_port_free(w), false);
REACHES(context, resolver_unicast_port_low, "14404", daemon_context, seams_bound(NULL, 14402), false);
REACHES(context, resolver_unicast_receiver_socket_buffer, "54322", daemon_context,
        seams_named("resolver_unicast_receiver_socket_buffer"), 54322);

/* ---- resolution servers ---- */

static void service_context(struct world *w)
{
    SET_context(w, "resolver_service", "127.0.0.1:25390");
    context_only(w);
}

REACHES(context, resolver_service, "127.0.0.1:25391", context_only, seen.service.port == 25391, true);
REACHES(context, resolver_service_interest_mode, "flood", service_context, seen.service.interest_mode, 0);

/* ---- sources ---- */

#define ADVERT seen.advert.timing
REACHES(source, resolver_advertisement_maximum_initial_interval, "7005", any_source, ADVERT.max_initial_ns, MS(7005));
REACHES(source, resolver_advertisement_minimum_initial_duration, "7006", any_source, ADVERT.initial_duration_ns,
        MS(7006));
REACHES(source, resolver_advertisement_minimum_initial_interval, "170", any_source, ADVERT.min_initial_ns, MS(170));
REACHES(source, resolver_advertisement_minimum_sustain_duration, "78", any_source, ADVERT.sustain_duration_ns,
        MS(78000));
REACHES(source, resolver_advertisement_send_immediate_response, "0", any_source, seen.advert.immediate_response, false);
REACHES(source, resolver_advertisement_sustain_interval, "7008", any_source, ADVERT.sustain_ns, MS(7008));
REACHES(source, resolver_send_final_advertisements, "1", any_source, seen.advert.final_advertisements, true);
REACHES(source, resolver_send_initial_advertisement, "0", any_source, ADVERT.first_at_once, false);

/* ---- receivers ---- */

static void lone_receiver(struct world *w)
{
    context_only(w);
    receiver_only(w);
}

static void told_of_no_source(struct world *w)
{
    SET_receiver(w, "resolver_query_maximum_initial_interval", "20"); /* a query each tick */
    lone_receiver(w);
    recorder_wait(&w->recorder, LBM_MSG_NO_SOURCE_NOTIFICATION, 1);
}

#define QUERY seen.query.timing
REACHES(receiver, resolution_no_source_notification_threshold, "3", told_of_no_source,
        seen.query.no_source_threshold == 3 && seen.no_source_threshold == 3 &&
            recorder_count(&w->recorder, LBM_MSG_NO_SOURCE_NOTIFICATION) > 0,
        true);
REACHES(receiver, resolution_number_of_sources_query_threshold, "4", lone_receiver,
        seen.query.sources_threshold == 4 && seen.sources_threshold == 4, true);
REACHES(receiver, resolver_query_maximum_initial_interval, "7009", lone_receiver, QUERY.max_initial_ns, MS(7009));
REACHES(receiver, resolver_query_minimum_initial_duration, "7010", lone_receiver, QUERY.initial_duration_ns, MS(7010));
REACHES(receiver, resolver_query_minimum_initial_interval, "180", lone_receiver, QUERY.min_initial_ns, MS(180));
REACHES(receiver, resolver_query_minimum_sustain_duration, "79", lone_receiver, QUERY.sustain_duration_ns, MS(79000));
REACHES(receiver, resolver_query_sustain_interval, "7011", lone_receiver, QUERY.sustain_ns, MS(7011));

/* ---- wildcard receivers ---- */

static void wildcard_only(struct world *w)
{
    wildcard_on(w, "^option$");
}

/* Means "option" to regex, and is refused by pcre. */
static void wildcard_of_regex(struct world *w)
{
    wildcard_on(w, "^[[.o.]]ption$");
    w->src = world_source(w, "option");
    wait_bos(w);
}

static void wildcard_with_source(struct world *w)
{
    wildcard_only(w);
    w->src = world_source(w, "option");
    wait_bos(w);
}

static int calls(const char *topic, void *clientd)
{
    (void)topic;
    atomic_fetch_add((atomic_int *)clientd, 1);
    return 0;
}

static int created(const char *topic, lbm_rcv_topic_attr_t *attr, void *clientd)
{
    (void)attr;
    return calls(topic, clientd);
}

static atomic_int called;

static void with_pattern_callback(struct world *w)
{
    lbm_wildcard_rcv_compare_func_t function = {calls, &called};
    atomic_store(&called, 0);
    SET_wildcard_receiver(w, "pattern_type", "appcb");
    MUST(lbm_wildcard_rcv_attr_setopt(w->wildcard_receiver, "pattern_callback", &function, sizeof function));
    wildcard_with_source(w);
}

static void with_create_callback(struct world *w)
{
    lbm_wildcard_rcv_create_func_t function = {created, &called};
    atomic_store(&called, 0);
    MUST(lbm_wildcard_rcv_attr_setopt(w->wildcard_receiver, "receiver_create_callback", &function, sizeof function));
    wildcard_with_source(w);
}

static void with_delete_callback(struct world *w)
{
    lbm_wildcard_rcv_delete_func_t function = {calls, &called};
    atomic_store(&called, 0);
    MUST(lbm_wildcard_rcv_attr_setopt(w->wildcard_receiver, "receiver_delete_callback", &function, sizeof function));
    wildcard_with_source(w);
    MUST(lbm_wildcard_rcv_delete(w->wildcard));
    w->wildcard = NULL;
    world_settle(w);
}

/* The only source goes; its receiver lingers from the tenth unanswered query on. */
static void without_its_source(struct world *w)
{
    SET_receiver(w, "resolver_query_maximum_initial_interval", "20");
    SET_source(w, "resolver_send_final_advertisements", "1");
    wildcard_with_source(w);
    MUST(lbm_src_delete(w->src));
    w->src = NULL;
    for (int i = 0; i < HANG_SECONDS * 1000 && !seams_timer(7000500); i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

REACHES_BINARY(wildcard_receiver, pattern_callback, with_pattern_callback, called > 0, true);
REACHES(wildcard_receiver, pattern_type, "regex", wildcard_of_regex,
        seen.pattern_type == 2 && recorder_count(&w->recorder, LBM_MSG_BOS) == 1, true);
REACHES_BINARY(wildcard_receiver, receiver_create_callback, with_create_callback, called, 1);
REACHES_BINARY(wildcard_receiver, receiver_delete_callback, with_delete_callback, called, 1);
REACHES(wildcard_receiver, resolver_no_source_linger_timeout, "7000500", without_its_source, seams_timer(7000500),
        true);
REACHES(wildcard_receiver, resolver_query_maximum_interval, "7012", wildcard_only, seen.pattern.max_initial_ns,
        MS(7012));
REACHES(wildcard_receiver, resolver_query_minimum_duration, "80", wildcard_only, seen.pattern.initial_duration_ns,
        MS(80000));
REACHES(wildcard_receiver, resolver_query_minimum_interval, "190", wildcard_only, seen.pattern.min_initial_ns, MS(190));
