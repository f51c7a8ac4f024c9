/* Domains, networks and rules of lbmrd. See um_lbmrd_nat.h. Networks are cut into intervals that do not overlap, and
 * rules are sorted by what they are looked up by, so that a datagram costs little however long the configuration is. */
#include "resolver/um_lbmrd_nat.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "wire/um_lbmr.h"

struct network {
    uint32_t first, last; /* host order */
    int prefix, domain;
};

/* From `first` to before the next one's. */
struct interval {
    uint32_t first; /* host order */
    int domain;
};

struct rule {
    int source, destination;
    size_t number; /* order in the configuration */
    struct um_lbmrd_rule text;
};

struct um_lbmrd_nat {
    int domains;
    struct network *networks;
    size_t network_count;
    struct interval *intervals; /* the first begins at 0 */
    size_t interval_count;
    struct rule *rules;
    size_t rule_count;
    bool destination[UM_LBMRD_MAX_DOMAINS]; /* a rule leads there */
};

/* ---- filling ---- */

struct um_lbmrd_nat *um_lbmrd_nat_create(void)
{
    struct um_lbmrd_nat *nat = um_calloc(1, sizeof *nat);
    if (nat == NULL) {
        um_error_nomem("address translation", sizeof *nat);
    }
    return nat;
}

void um_lbmrd_nat_destroy(struct um_lbmrd_nat *nat)
{
    if (nat == NULL) {
        return;
    }
    um_free(nat->networks);
    um_free(nat->intervals);
    um_free(nat->rules);
    um_free(nat);
}

int um_lbmrd_nat_add_domain(struct um_lbmrd_nat *nat)
{
    if (nat->domains >= UM_LBMRD_MAX_DOMAINS) {
        return um_error(UM_EINVAL, "Lbmrd-um-11", "more than %d domains: leave out those that no transform names",
                        UM_LBMRD_MAX_DOMAINS);
    }
    return nat->domains++;
}

/* Room for one more element of an array that doubles. NULL + error. */
static void *grown(void *array, size_t count, size_t size)
{
    if (count != 0 && (count & (count - 1)) != 0) {
        return array;
    }
    void *larger = um_realloc(array, (count == 0 ? 1 : count * 2) * size);
    if (larger == NULL) {
        um_error_nomem("address translation", (unsigned long)(count * 2 * size));
    }
    return larger;
}

int um_lbmrd_nat_add_network(struct um_lbmrd_nat *nat, int domain, uint32_t ip, int prefix)
{
    uint32_t mask = prefix == 0 ? 0 : UINT32_MAX << (32 - prefix), first = ntohl(ip) & mask;
    for (size_t i = 0; i < nat->network_count; i++) {
        const struct network *other = &nat->networks[i];
        if (other->first == first && other->prefix == prefix && other->domain != domain) {
            return um_error(UM_EINVAL, "Lbmrd-um-11",
                            "network %u.%u.%u.%u/%d is part of two domains: leave it in the one it belongs to",
                            first >> 24, first >> 16 & 255, first >> 8 & 255, first & 255, prefix);
        }
    }
    if (nat->network_count >= UM_LBMRD_MAX_NETWORKS) {
        return um_error(UM_EINVAL, "Lbmrd-um-11", "more than %d networks: write shorter prefixes",
                        UM_LBMRD_MAX_NETWORKS);
    }
    struct network *networks = grown(nat->networks, nat->network_count, sizeof *networks);
    if (networks == NULL) {
        return -1;
    }
    nat->networks = networks;
    networks[nat->network_count++] =
        (struct network){.first = first, .last = first | ~mask, .prefix = prefix, .domain = domain};
    return 0;
}

int um_lbmrd_nat_add_rule(struct um_lbmrd_nat *nat, int source, int destination, const struct um_lbmrd_rule *rule)
{
    if (nat->rule_count >= UM_LBMRD_MAX_RULES) {
        return um_error(UM_EINVAL, "Lbmrd-um-11", "more than %d rules: leave out those that never match",
                        UM_LBMRD_MAX_RULES);
    }
    struct rule *rules = grown(nat->rules, nat->rule_count, sizeof *rules);
    if (rules == NULL) {
        return -1;
    }
    nat->rules = rules;
    rules[nat->rule_count] =
        (struct rule){.source = source, .destination = destination, .number = nat->rule_count, .text = *rule};
    nat->rule_count++;
    nat->destination[destination] = true;
    return 0;
}

/* What a rule is looked up by. */
static int compare_key(const struct rule *rule, int source, int destination, uint32_t ip)
{
    if (rule->source != source) {
        return rule->source < source ? -1 : 1;
    }
    if (rule->destination != destination) {
        return rule->destination < destination ? -1 : 1;
    }
    return rule->text.match_ip == ip ? 0 : rule->text.match_ip < ip ? -1 : 1;
}

static int compare_rules(const void *a, const void *b)
{
    const struct rule *left = a, *right = b;
    int order = compare_key(left, right->source, right->destination, right->text.match_ip);
    return order != 0 ? order : left->number < right->number ? -1 : 1;
}

static int compare_intervals(const void *a, const void *b)
{
    const struct interval *left = a, *right = b;
    return left->first == right->first ? 0 : left->first < right->first ? -1 : 1;
}

static int domain_by_networks(const struct um_lbmrd_nat *nat, uint32_t ip)
{
    int domain = UM_LBMRD_NO_DOMAIN, longest = -1;
    for (size_t i = 0; i < nat->network_count; i++) {
        const struct network *network = &nat->networks[i];
        if (ip >= network->first && ip <= network->last && network->prefix > longest) {
            longest = network->prefix;
            domain = network->domain;
        }
    }
    return domain;
}

int um_lbmrd_nat_ready(struct um_lbmrd_nat *nat)
{
    struct interval *intervals = um_calloc(2 * nat->network_count + 1, sizeof *intervals);
    if (intervals == NULL) {
        return um_error_nomem("address translation", (unsigned long)(2 * nat->network_count * sizeof *intervals));
    }
    size_t count = 1; /* the first begins at 0 */
    for (size_t i = 0; i < nat->network_count; i++) {
        intervals[count++].first = nat->networks[i].first;
        if (nat->networks[i].last != UINT32_MAX) {
            intervals[count++].first = nat->networks[i].last + 1;
        }
    }
    qsort(intervals, count, sizeof *intervals, compare_intervals);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int domain = domain_by_networks(nat, intervals[i].first);
        if (kept == 0 || intervals[kept - 1].domain != domain) {
            intervals[kept++] = (struct interval){.first = intervals[i].first, .domain = domain};
        }
    }
    nat->intervals = intervals;
    nat->interval_count = kept;
    if (nat->rule_count > 0) {
        qsort(nat->rules, nat->rule_count, sizeof *nat->rules, compare_rules);
    }
    return 0;
}

/* ---- questions ---- */

int um_lbmrd_nat_domains(const struct um_lbmrd_nat *nat)
{
    return nat->domains;
}

int um_lbmrd_nat_domain_of(const struct um_lbmrd_nat *nat, uint32_t ip)
{
    uint32_t host = ntohl(ip);
    size_t low = 0, high = nat->interval_count; /* the interval is in [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (nat->intervals[middle].first <= host) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return nat->intervals[low].domain;
}

bool um_lbmrd_nat_translates_for(const struct um_lbmrd_nat *nat, int destination)
{
    return destination != UM_LBMRD_NO_DOMAIN && nat->destination[destination];
}

/* The first rule that matches, or NULL. */
static const struct um_lbmrd_rule *find_rule(const struct um_lbmrd_nat *nat, int source, int destination, uint32_t ip,
                                             uint16_t port)
{
    size_t low = 0, high = nat->rule_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_key(&nat->rules[middle], source, destination, ip) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < nat->rule_count && compare_key(&nat->rules[low], source, destination, ip) == 0; low++) {
        const struct um_lbmrd_rule *rule = &nat->rules[low].text;
        if (rule->match_port == UM_LBMRD_ANY_PORT || rule->match_port == port) {
            return rule;
        }
    }
    return NULL;
}

/* ---- rewriting ---- */

static uint32_t ip_at(const uint8_t *field)
{
    uint32_t ip;
    memcpy(&ip, field, sizeof ip);
    return ip;
}

/* The domain of an advertisement's source: by the address of its transport, else by that of its sender. */
static int source_domain(const struct um_lbmrd_nat *nat, const uint8_t *data, const struct um_lbmr_tir *tir,
                         uint32_t sender)
{
    struct um_lbmr_places places = {0};
    struct um_lbmr_place place;
    int domain = UM_LBMRD_NO_DOMAIN;
    if (um_lbmr_next_place(data, tir, &places, &place) && place.of_transport) {
        domain = um_lbmrd_nat_domain_of(nat, ip_at(data + place.ip));
    }
    return domain == UM_LBMRD_NO_DOMAIN ? um_lbmrd_nat_domain_of(nat, sender) : domain;
}

static unsigned rewrite_tir(const struct um_lbmrd_nat *nat, int destination, uint32_t sender, uint8_t *data,
                            const struct um_lbmr_tir *tir)
{
    struct um_lbmr_places places = {0};
    struct um_lbmr_place place;
    unsigned replaced = 0;
    int source = source_domain(nat, data, tir, sender);
    if (source == UM_LBMRD_NO_DOMAIN) {
        return 0;
    }
    while (um_lbmr_next_place(data, tir, &places, &place)) {
        const struct um_lbmrd_rule *rule =
            find_rule(nat, source, destination, ip_at(data + place.ip), um_get16(data + place.port));
        if (rule == NULL) {
            continue;
        }
        memcpy(data + place.ip, &rule->replace_ip, sizeof rule->replace_ip);
        if (rule->replace_port != UM_LBMRD_ANY_PORT) {
            um_put16(data + place.port, (uint16_t)rule->replace_port);
        }
        replaced++;
    }
    return replaced;
}

unsigned um_lbmrd_nat_rewrite(const struct um_lbmrd_nat *nat, int destination, uint32_t sender, uint8_t *data,
                              size_t len)
{
    struct um_lbmr_msg msg;
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tir tir;
    unsigned detail, replaced = 0;
    if (um_lbmr_parse(data, len, &msg, &detail) != UM_LBMR_OK) {
        return 0;
    }
    um_lbmr_records(&msg, &cursor);
    um_lbmr_skip_tqrs(&cursor);
    while (um_lbmr_next_tir(&cursor, &tir)) {
        replaced += rewrite_tir(nat, destination, sender, data, &tir);
    }
    return replaced;
}
