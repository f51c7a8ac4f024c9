/* See impair.h. */
#include "impair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void impair_init(struct impair *impair, uint64_t seed, unsigned ports)
{
    *impair = (struct impair){.seed = seed, .ports = ports};
}

/* ---- random numbers: splitmix64, a stream for every rule and port ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static void seed_rule(const struct impair *impair, struct impair_rule *rule)
{
    uint64_t mix = 0xcbf29ce484222325u ^ impair->seed;
    for (const char *at = rule->name; *at != '\0'; at++) {
        mix = (mix ^ (uint8_t)*at) * 0x100000001b3u;
    }
    for (unsigned port = 0; port < IMPAIR_PORTS; port++) {
        rule->state[port].random = next_random(&mix);
    }
}

/* ---- commands ---- */

static bool parse_chance(const char *text, char **end, double *out)
{
    *out = strtod(text, end);
    if (*end != text && **end == '%') {
        *out /= 100;
        (*end)++;
    }
    return *end != text && *out >= 0 && *out <= 1;
}

static bool parse_time(const char *text, char **end, uint64_t *out)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double value = strtod(text, end);
    for (size_t i = 0; *end != text && i < sizeof units / sizeof units[0]; i++) {
        size_t len = strlen(units[i].unit);
        if (strncmp(*end, units[i].unit, len) == 0) {
            *end += len;
            *out = (uint64_t)(value * units[i].ns);
            return value >= 0;
        }
    }
    return false;
}

static bool parse_ports(const char *text, uint32_t *out)
{
    *out = 0;
    while (*text != '\0') {
        char *end;
        unsigned long port = strtoul(text, &end, 10);
        if (end == text || port >= IMPAIR_PORTS || (*end != ',' && *end != '\0')) {
            return false;
        }
        *out |= 1u << port;
        text = *end == ',' ? end + 1 : end;
    }
    return *out != 0;
}

static bool parse_range(const char *text, unsigned long long max, unsigned long long *low, unsigned long long *high)
{
    char *end;
    *low = *high = strtoull(text, &end, 10);
    if (end != text && *end == '-') {
        text = end + 1;
        *high = strtoull(text, &end, 10);
    }
    return end != text && *end == '\0' && *low <= *high && *high <= max;
}

/* "rm.nak", "rm" and "ru" for all of a transport, "lbt" for both, "repair" for NAKs, NCFs and retransmissions. */
static uint32_t kind_bits(const char *name)
{
    uint32_t bits = 0;
    bool lbt = strcmp(name, "lbt") == 0, repair = strcmp(name, "repair") == 0;
    for (unsigned kind = 0; kind < FRAME_KINDS; kind++) {
        const char *full = frame_kind_names[kind], *dot = strchr(full, '.');
        bool is_repair =
            dot != NULL && (strcmp(dot, ".rx") == 0 || strcmp(dot, ".nak") == 0 || strcmp(dot, ".ncf") == 0);
        bool family = dot != NULL && strlen(name) == (size_t)(dot - full) && strncmp(full, name, strlen(name)) == 0;
        if (strcmp(full, name) == 0 || family || (lbt && dot != NULL) || (repair && is_repair)) {
            bits |= 1u << kind;
        }
    }
    return bits;
}

static bool parse_kinds(char *text, uint32_t *out)
{
    char *save = NULL;
    *out = 0;
    for (char *name = strtok_r(text, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save)) {
        uint32_t bits = kind_bits(name);
        if (bits == 0) {
            return false;
        }
        *out |= bits;
    }
    return *out != 0;
}

/* "1%/5": 1 % of the frames are lost, five in a row on average. */
static bool parse_burst(const char *text, struct impair_rule *rule)
{
    char *end;
    double share, length;
    if (!parse_chance(text, &end, &share) || *end != '/' || share >= 1) {
        return false;
    }
    text = end + 1;
    length = strtod(text, &end);
    if (end == text || *end != '\0' || length < 1) {
        return false;
    }
    rule->burst_leave = 1 / length;
    rule->burst_enter = share / (length * (1 - share));
    return true;
}

/* "20%/2ms": a fifth of the frames is held for 2 ms, so that later ones overtake them. */
static bool parse_reorder(const char *text, struct impair_rule *rule)
{
    char *end;
    if (!parse_chance(text, &end, &rule->reorder) || *end != '/') {
        return false;
    }
    text = end + 1;
    return parse_time(text, &end, &rule->reorder_ns) && *end == '\0';
}

/* "8000000/50ms": bits per second and the time a frame may wait. */
static bool parse_rate(const char *text, struct impair_rule *rule)
{
    char *end;
    rule->rate_bps = strtoull(text, &end, 10);
    if (end == text || *end != '/' || rule->rate_bps == 0) {
        return false;
    }
    text = end + 1;
    return parse_time(text, &end, &rule->queue_ns) && *end == '\0';
}

static bool set_chance(const char *value, double *out)
{
    char *end;
    return parse_chance(value, &end, out) && *end == '\0';
}

static bool set_time(const char *value, uint64_t *out)
{
    char *end;
    return parse_time(value, &end, out) && *end == '\0';
}

static bool set_key(struct impair_rule *rule, const char *key, char *value)
{
    unsigned long long low, high;
    if (strcmp(key, "from") == 0) {
        return parse_ports(value, &rule->from);
    } else if (strcmp(key, "to") == 0) {
        return parse_ports(value, &rule->to);
    } else if (strcmp(key, "kinds") == 0) {
        return parse_kinds(value, &rule->kinds);
    } else if (strcmp(key, "loss") == 0) {
        return set_chance(value, &rule->loss);
    } else if (strcmp(key, "burst") == 0) {
        return parse_burst(value, rule);
    } else if (strcmp(key, "duplicate") == 0) {
        return set_chance(value, &rule->duplicate);
    } else if (strcmp(key, "reorder") == 0) {
        return parse_reorder(value, rule);
    } else if (strcmp(key, "corrupt") == 0) {
        return set_chance(value, &rule->corrupt);
    } else if (strcmp(key, "unseen") == 0) {
        rule->corrupt_unseen = strcmp(value, "1") == 0;
        return rule->corrupt_unseen || strcmp(value, "0") == 0;
    } else if (strcmp(key, "shared") == 0) {
        rule->shared = strcmp(value, "1") == 0;
        return rule->shared || strcmp(value, "0") == 0;
    } else if (strcmp(key, "delay") == 0) {
        return set_time(value, &rule->delay_ns);
    } else if (strcmp(key, "jitter") == 0) {
        return set_time(value, &rule->jitter_ns);
    } else if (strcmp(key, "rate") == 0) {
        return parse_rate(value, rule);
    } else if (strcmp(key, "port") == 0 && parse_range(value, 65535, &low, &high)) {
        rule->port_low = (uint16_t)low;
        rule->port_high = (uint16_t)high;
        return true;
    } else if (strcmp(key, "sqn") == 0 && parse_range(value, UINT32_MAX, &low, &high)) {
        rule->with_sqn = true;
        rule->sqn_low = (uint32_t)low;
        rule->sqn_high = (uint32_t)high;
        return true;
    } else if (strcmp(key, "frames") == 0 && parse_range(value, UINT64_MAX, &low, &high) && low > 0) {
        rule->skip = low - 1;
        rule->count = high - low + 1;
        return true;
    }
    return false;
}

static struct impair_rule *find_rule(struct impair *impair, const char *name)
{
    for (size_t i = 0; i < impair->rules_used; i++) {
        if (strcmp(impair->rules[i].name, name) == 0) {
            return &impair->rules[i];
        }
    }
    return NULL;
}

static bool set_rule(struct impair *impair, char *words, char *reply, size_t reply_len)
{
    char *save = NULL, *name = strtok_r(words, " ", &save);
    struct impair_rule rule = {.from = ~0u, .to = ~0u, .kinds = ~(1u << FRAME_ARP), .port_high = 65535};
    if (name == NULL || strlen(name) >= sizeof rule.name) {
        snprintf(reply, reply_len, "rule: a name of at most %zu characters is wanted", sizeof rule.name - 1);
        return false;
    }
    snprintf(rule.name, sizeof rule.name, "%s", name);
    for (char *word = strtok_r(NULL, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char shown[64], *equals = strchr(word, '=');
        snprintf(shown, sizeof shown, "%s", word);
        if (equals != NULL) {
            *equals = '\0';
        }
        if (equals == NULL || !set_key(&rule, word, equals + 1)) {
            snprintf(reply, reply_len, "rule %s: %s is not understood", name, shown);
            return false;
        }
    }
    struct impair_rule *old = find_rule(impair, rule.name);
    if (old == NULL && impair->rules_used == IMPAIR_RULES) {
        snprintf(reply, reply_len, "rule %s: there are %d rules already", name, IMPAIR_RULES);
        return false;
    }
    seed_rule(impair, &rule);
    if (old != NULL) { /* counts go on */
        memcpy(rule.counts, old->counts, sizeof rule.counts);
        *old = rule;
    } else {
        impair->rules[impair->rules_used++] = rule;
    }
    return true;
}

/* A cleared rule matches nothing any more; its counts stay. */
static bool clear_rules(struct impair *impair, const char *name, char *reply, size_t reply_len)
{
    for (size_t i = 0; i < impair->rules_used; i++) {
        if (*name == '\0' || strcmp(impair->rules[i].name, name) == 0) {
            impair->rules[i].kinds = 0;
            if (*name != '\0') {
                return true;
            }
        }
    }
    if (*name != '\0') {
        snprintf(reply, reply_len, "clear: there is no rule %s", name);
    }
    return *name == '\0';
}

bool impair_command(struct impair *impair, const char *line, char *reply, size_t reply_len)
{
    char words[512], *rest;
    snprintf(words, sizeof words, "%s", line);
    rest = strchr(words, ' ');
    if (rest != NULL) {
        *rest++ = '\0';
    } else {
        rest = words + strlen(words);
    }
    uint32_t port;
    if (strcmp(words, "rule") == 0) {
        return set_rule(impair, rest, reply, reply_len);
    } else if (strcmp(words, "clear") == 0) {
        return clear_rules(impair, rest, reply, reply_len);
    } else if (strcmp(words, "cut") == 0 && parse_ports(rest, &port)) {
        impair->cut |= port;
        return true;
    } else if (strcmp(words, "mend") == 0 && parse_ports(rest, &port)) {
        impair->cut &= ~port;
        return true;
    }
    snprintf(reply, reply_len, "%s: not understood", line);
    return false;
}

/* ---- frames ---- */

static bool matches(const struct impair_rule *rule, unsigned in, unsigned out, const struct frame_info *info)
{
    bool port = rule->port_low == 0 || (info->sport >= rule->port_low && info->sport <= rule->port_high) ||
                (info->dport >= rule->port_low && info->dport <= rule->port_high);
    bool sqn = !rule->with_sqn || (info->numbered && info->sqn >= rule->sqn_low && info->sqn <= rule->sqn_high);
    return (rule->kinds >> info->kind & 1) != 0 && (rule->from >> in & 1) != 0 && (rule->to >> out & 1) != 0 && port &&
           sqn;
}

/* Loss is all that a rule for some frames does, unless it says something else. */
static bool loses_all(const struct impair_rule *rule)
{
    return rule->count > 0 && rule->loss == 0 && rule->burst_enter == 0 && rule->duplicate == 0 && rule->reorder == 0 &&
           rule->corrupt == 0 && rule->delay_ns == 0 && rule->jitter_ns == 0 && rule->rate_bps == 0;
}

static bool draw_loss(struct impair_rule *rule, unsigned stream)
{
    if (loses_all(rule)) {
        return true;
    }
    uint64_t *random = &rule->state[stream].random;
    if (rule->burst_enter > 0) {
        bool *bad = &rule->state[stream].bad;
        *bad = *bad ? uniform(random) >= rule->burst_leave : uniform(random) < rule->burst_enter;
        if (*bad) {
            return true;
        }
    }
    return rule->loss > 0 && uniform(random) < rule->loss;
}

static bool is_lost(struct impair_rule *rule, unsigned out, uint64_t serial)
{
    if (!rule->shared) {
        return draw_loss(rule, out);
    }
    if (rule->shared_serial != serial) {
        rule->shared_serial = serial;
        rule->shared_lost = draw_loss(rule, 0);
    }
    return rule->shared_lost;
}

/* When a frame that wants to leave at due_ns leaves a link of limited rate; false: its queue is full. */
static bool through_link(struct impair_rule *rule, unsigned out, size_t len, uint64_t *due_ns)
{
    uint64_t *busy = &rule->state[out].busy_until_ns;
    uint64_t begin = *busy > *due_ns ? *busy : *due_ns;
    if (begin - *due_ns > rule->queue_ns) {
        return false;
    }
    *busy = begin + (uint64_t)len * 8u * 1000000000u / rule->rate_bps;
    *due_ns = *busy;
    return true;
}

static uint64_t hold_back(struct impair_rule *rule, unsigned out)
{
    struct impair_counts *counts = &rule->counts[out];
    uint64_t *random = &rule->state[out].random, hold = rule->delay_ns;
    if (rule->jitter_ns > 0) {
        hold += (uint64_t)(uniform(random) * (double)rule->jitter_ns);
    }
    counts->delayed += hold > 0;
    if (rule->reorder > 0 && uniform(random) < rule->reorder) {
        hold += rule->reorder_ns;
        counts->reordered++;
    }
    return hold;
}

static void spoil(struct impair_rule *rule, unsigned out, const struct frame_info *info, size_t len,
                  struct impair_fate *fate, unsigned copy)
{
    size_t from = info->header_at != 0 ? info->header_at + 8 : 14, to = info->header_at != 0 ? info->end : len;
    uint64_t *random = &rule->state[out].random;
    if (rule->corrupt > 0 && uniform(random) < rule->corrupt && to > from) {
        fate->copy[copy].corrupt = true;
        fate->copy[copy].fix_checksum = rule->corrupt_unseen;
        fate->copy[copy].corrupt_at = (uint32_t)(from + next_random(random) % (to - from));
        rule->counts[out].corrupted++;
    }
}

static void apply(struct impair_rule *rule, uint64_t serial, unsigned out, const struct frame_info *info, size_t len,
                  struct impair_fate *fate)
{
    struct impair_counts *counts = &rule->counts[out];
    counts->matched++;
    if (rule->count > 0 && (counts->matched <= rule->skip || counts->matched > rule->skip + rule->count)) {
        return;
    }
    if (is_lost(rule, out, serial)) {
        counts->lost++;
        fate->copies = 0;
        return;
    }
    if (rule->duplicate > 0 && uniform(&rule->state[out].random) < rule->duplicate && fate->copies < IMPAIR_COPIES) {
        fate->copy[fate->copies++] = fate->copy[0];
        counts->duplicated++;
    }
    unsigned kept = 0;
    for (unsigned i = 0; i < fate->copies; i++) {
        fate->copy[i].due_ns += hold_back(rule, out);
        spoil(rule, out, info, len, fate, i);
        if (rule->rate_bps > 0 && !through_link(rule, out, len, &fate->copy[i].due_ns)) {
            counts->overflowed++;
            continue;
        }
        fate->copy[kept++] = fate->copy[i];
    }
    fate->copies = kept;
}

void impair_frame(struct impair *impair, uint64_t now_ns, uint64_t serial, unsigned in, unsigned out,
                  const struct frame_info *info, size_t len, struct impair_fate *fate)
{
    fate->copies = 0;
    if (((impair->cut >> in | impair->cut >> out) & 1) != 0) {
        return;
    }
    memset(&fate->copy[0], 0, sizeof fate->copy[0]);
    fate->copies = 1;
    fate->copy[0].due_ns = now_ns;
    for (size_t i = 0; i < impair->rules_used && fate->copies > 0; i++) {
        if (matches(&impair->rules[i], in, out, info)) {
            apply(&impair->rules[i], serial, out, info, len, fate);
        }
    }
}
