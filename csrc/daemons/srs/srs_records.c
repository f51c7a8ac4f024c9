/* Values of the categories and their changes. See srs_records.h. */
#include "srs_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/um_mem.h"

#define NONE SIZE_MAX /* a record kind that protocol version 1 does not have: always 0 */
#define VALUES_MAX 32
#define OPTIONS_MAX (SRS_ATTRIBUTES_MAX + 64)

struct source_of_value {
    const char *name;
    size_t offset;
};

#define OF(name, field)                                                                                                \
    {                                                                                                                  \
        name, offsetof(struct um_srs_stats, field)                                                                     \
    }
static const struct source_of_value srs_stats[] = {
    OF("clients.next.client.ID", next_client_id),
    OF("active.clients.count", active_clients),
    OF("clients.connects.count", connects),
    OF("clients.disconnects.count", disconnects),
    OF("clients.max.concurrent.connections.count", max_concurrent),
    OF("clients.active.SIR.count", active_sources),
    OF("clients.active.RIR.count", active_interest),
    OF("clients.active.WIR.count", active_patterns),
    OF("clients.inactive.SIR.count", inactive_sources),
    OF("clients.inactive.RIR.count", inactive_interest),
    OF("clients.inactive.WIR.count", inactive_patterns),
    OF("clients.expired.SIR.count", expired_sources),
    OF("clients.expired.RIR.count", expired_interest),
    OF("clients.expired.WIR.count", expired_patterns),
    OF("clients.DR.inactive.SIR.count", delete_of_inactive_source),
    OF("clients.SLR.no.OTID.match.count", leave_unknown_otid),
    {"clients.active.DIR.count", NONE},
    {"clients.inactive.DIR.count", NONE},
    {"clients.expired.DIR.count", NONE},
    {"clients.active.RTIR.count", NONE},
    {"clients.inactive.RTIR.count", NONE},
    {"clients.expired.RTIR.count", NONE},
    {"clients.active.CNIR.count", NONE},
    {"clients.inactive.CNIR.count", NONE},
    {"clients.expired.CNIR.count", NONE},
    {"clients.duplicate.CNIR.count", NONE},
};
static const struct source_of_value srs_errors[] = {
    OF("clients.duplicate.SIR.count", duplicate_sources),
    OF("clients.duplicate.RIR.count", duplicate_interest),
    OF("clients.duplicate.WIR.count", duplicate_patterns),
    OF("clients.invalid.SDR.no.topic.match.count", delete_unknown_topic),
    OF("clients.invalid.SDR.no.OTID.match.count", delete_unknown_otid),
    OF("clients.invalid.SDR.no.transport.match.count", delete_of_others),
    OF("clients.invalid.SLR.no.topic.match.count", leave_unknown_topic),
    {"clients.invalid.DR.no.topic.match.count", NONE},
    {"clients.invalid.DR.no.OTID.match.count", NONE},
    {"clients.invalid.DR.no.transport.match.count", NONE},
    {"clients.invalid.DR.inactive.SIR.count", NONE},
    {"clients.invalid.CNIR.name.mismatch.count", NONE},
    {"clients.duplicate.DIR.count", NONE},
    {"clients.mismatched.DIR.count", NONE},
    {"clients.duplicate.RTIR.count", NONE},
};
#undef OF
#define OF(name, field)                                                                                                \
    {                                                                                                                  \
        name, offsetof(struct um_srs_client_stats, field)                                                              \
    }
static const struct source_of_value client_stats[] = {
    OF("client.SIR.received.count", sir_received),
    OF("client.SDR.received.count", sdr_received),
    OF("client.RIR.received.count", rir_received),
    OF("client.WIR.received.count", wir_received),
    OF("client.RDR.received.count", rdr_received),
    OF("client.WDR.received.count", wdr_received),
    OF("client.SLR.received.count", slr_received),
    OF("client.active.SIR.count", active_sources),
    OF("client.max.concurrent.SIR.count", max_sources),
    OF("client.SIR.sent.count", sir_sent),
    OF("client.SER.sent.count", ser_sent),
    OF("client.RIR.sent.count", rir_sent),
    OF("client.RER.sent.count", rer_sent),
    OF("client.WIR.sent.count", wir_sent),
    OF("client.WER.sent.count", wer_sent),
    OF("record.queue.depth", queue_depth),
    {"client.RTIR.received.count", NONE},
    {"client.CNIR.received.count", NONE},
    {"client.CNQR.received.count", NONE},
    {"client.unexpected.CNER.received.count", NONE},
    {"client.DIR.sent.count", NONE},
    {"client.RTIR.sent.count", NONE},
    {"client.RTER.sent.count", NONE},
    {"client.CNIR.sent.count", NONE},
};
static const struct source_of_value client_errors[] = {
    OF("client.duplicate.RIR.received.count", duplicate_rir),
    OF("client.duplicate.WIR.received.count", duplicate_wir),
    OF("client.invalid.SRS.message.received.count", invalid_messages),
    OF("client.invalid.SDR.received.count", invalid_sdr),
    {"client.duplicate.RTIR.received.count", NONE},
    {"client.duplicate.CNIR.received.count", NONE},
    {"client.duplicate.CNQR.received.count", NONE},
    {"client.unexpected.SRS.message.sent.count", NONE},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct category {
    const char *name;
    const struct source_of_value *values;
    size_t count;
} categories[SRS_INTERVAL_COUNT] = {
    [SRS_INTERVAL_SRS_STATS] = {"SRS_STATS", srs_stats, COUNT(srs_stats)},
    [SRS_INTERVAL_CLIENT_STATS] = {"UM_CLIENT_STATS", client_stats, COUNT(client_stats)},
    [SRS_INTERVAL_EVENTS] = {"CONNECTION_EVENTS", NULL, 0},
    [SRS_INTERVAL_SRS_ERRORS] = {"SRS_ERROR_STATS", srs_errors, COUNT(srs_errors)},
    [SRS_INTERVAL_CLIENT_ERRORS] = {"UM_CLIENT_ERROR_STATS", client_errors, COUNT(client_errors)},
    [SRS_INTERVAL_CONFIG] = {"CONFIG_OPTS", NULL, 0},
    [SRS_INTERVAL_INTERNAL_CONFIG] = {"INTERNAL_CONFIG_OPTS", NULL, 0},
};
_Static_assert(COUNT(srs_stats) <= VALUES_MAX && COUNT(srs_errors) <= VALUES_MAX && COUNT(client_stats) <= VALUES_MAX &&
                   COUNT(client_errors) <= VALUES_MAX,
               "values of a record");

struct clients {
    struct srs_client_sample *all; /* in the order of their ids */
    size_t count, capacity;
};

struct srs_records {
    void (*out)(void *arg, const struct srs_record *record);
    void *arg;
    bool whole;
    struct um_srs_stats sample, published[SRS_INTERVAL_COUNT];
    bool ever[SRS_INTERVAL_COUNT];
    struct clients clients, published_clients[SRS_INTERVAL_COUNT];
    char *options[2][OPTIONS_MAX]; /* published values, by their place; [1]: internal ones */
};

const char *srs_category_name(enum srs_interval category)
{
    return categories[category].name;
}

enum srs_interval srs_category_find(const char *name)
{
    for (int i = 1; i < SRS_INTERVAL_COUNT; i++) {
        if (strcmp(categories[i].name, name) == 0) {
            return (enum srs_interval)i;
        }
    }
    return SRS_INTERVAL_DEFAULT;
}

/* ---- the sample ------------------------------------------------------------------- */

static bool make_room(struct clients *clients, size_t count)
{
    if (count <= clients->capacity) {
        return true;
    }
    struct srs_client_sample *all = um_realloc(clients->all, count * sizeof(*all));
    if (all == NULL) {
        return false;
    }
    clients->all = all;
    clients->capacity = count;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct srs_client_sample *x = a, *y = b;
    return x->client.id < y->client.id ? -1 : x->client.id > y->client.id;
}

bool srs_records_sample(struct srs_records *records, const struct um_srs_engine *engine)
{
    const struct um_srs_stats *stats = um_srs_engine_stats(engine);
    struct clients *clients = &records->clients;
    struct um_srs_peer *peer = NULL;
    if (!make_room(clients, (size_t)stats->active_clients)) {
        return false;
    }
    records->sample = *stats;
    clients->count = 0;
    while (clients->count < stats->active_clients && (peer = um_srs_engine_next_client(engine, peer)) != NULL) {
        struct srs_client_sample *sample = &clients->all[clients->count++];
        sample->client = (struct srs_client){um_srs_peer_id(peer), um_srs_peer_ip(peer), um_srs_peer_port(peer),
                                             um_srs_peer_session(peer)};
        um_srs_peer_stats(peer, &sample->stats);
    }
    return true;
}

/* ---- statistics ----------------------------------------------------------------------- */

static uint64_t value_at(const void *stats, size_t offset)
{
    uint64_t value = 0;
    if (offset != NONE) {
        memcpy(&value, (const char *)stats + offset, sizeof(value));
    }
    return value;
}

static bool has_changed(const struct category *category, const void *now, const void *before)
{
    for (size_t i = 0; i < category->count; i++) {
        size_t offset = category->values[i].offset;
        if (value_at(now, offset) != value_at(before, offset)) {
            return true;
        }
    }
    return false;
}

/* `before`: NULL for all values. */
static void out_stats(struct srs_records *records, enum srs_interval category, const struct srs_client *client,
                      const void *now, const void *before)
{
    struct srs_value values[VALUES_MAX];
    struct srs_record record = {.category = category, .client = client, .values = values};
    if (before != NULL && !has_changed(&categories[category], now, before)) {
        return;
    }
    for (size_t i = 0; i < categories[category].count; i++) {
        const struct source_of_value *value = &categories[category].values[i];
        uint64_t number = value_at(now, value->offset);
        if (before == NULL || records->whole || number != value_at(before, value->offset)) {
            values[record.count++] = (struct srs_value){.name = value->name, .number = number};
        }
    }
    records->out(records->arg, &record);
}

static void publish_service(struct srs_records *records, enum srs_interval category, bool all)
{
    const void *before = all || !records->ever[category] ? NULL : &records->published[category];
    out_stats(records, category, NULL, &records->sample, before);
    records->published[category] = records->sample;
    records->ever[category] = true;
}

static void publish_clients(struct srs_records *records, enum srs_interval category, bool all)
{
    struct clients *now = &records->clients, *before = &records->published_clients[category];
    if (now->count > 0) {
        qsort(now->all, now->count, sizeof(*now->all), by_id);
    }
    for (size_t i = 0, j = 0; i < now->count; i++) {
        const struct srs_client_sample *sample = &now->all[i];
        while (j < before->count && before->all[j].client.id < sample->client.id) {
            j++;
        }
        bool known = j < before->count && before->all[j].client.id == sample->client.id;
        out_stats(records, category, &sample->client, &sample->stats, known && !all ? &before->all[j].stats : NULL);
    }
    before->count = 0; /* without memory for it, all values come again next time */
    if (now->count > 0 && make_room(before, now->count)) {
        memcpy(before->all, now->all, now->count * sizeof(*now->all));
        before->count = now->count;
    }
}

/* ---- options ------------------------------------------------------------------------------ */

struct options {
    struct srs_records *records;
    struct srs_value values[OPTIONS_MAX];
    char *names[OPTIONS_MAX];
    size_t place, count;
    bool internal, all;
};

static void add_option(void *arg, const char *path, const char *value)
{
    struct options *options = arg;
    if (options->place == OPTIONS_MAX) {
        return;
    }
    char **published = &options->records->options[options->internal][options->place++];
    if (*published != NULL && strcmp(*published, value) == 0 && !options->all) {
        return;
    }
    char *name = um_strdup(path), *text = um_strdup(value);
    if (name == NULL || text == NULL) {
        um_free(name);
        um_free(text);
        return; /* comes the next time */
    }
    um_free(*published);
    *published = text;
    options->names[options->count] = name;
    options->values[options->count++] = (struct srs_value){.name = name, .text = text};
}

static void publish_options(struct srs_records *records, enum srs_interval category,
                            const struct srs_settings *settings, bool all)
{
    struct options *options = um_calloc(1, sizeof(*options));
    if (options == NULL) {
        return;
    }
    options->records = records;
    options->internal = category == SRS_INTERVAL_INTERNAL_CONFIG;
    options->all = all;
    if (options->internal) {
        srs_settings_each_internal(settings, add_option, options);
    } else {
        srs_settings_each(settings, add_option, options);
    }
    if (options->count > 0) {
        struct srs_record record = {.category = category, .values = options->values, .count = options->count};
        records->out(records->arg, &record);
    }
    for (size_t i = 0; i < options->count; i++) {
        um_free(options->names[i]);
    }
    um_free(options);
}

void srs_records_publish(struct srs_records *records, enum srs_interval category, const struct srs_settings *settings,
                         bool all)
{
    switch (category) {
    case SRS_INTERVAL_SRS_STATS:
    case SRS_INTERVAL_SRS_ERRORS:
        publish_service(records, category, all);
        break;
    case SRS_INTERVAL_CLIENT_STATS:
    case SRS_INTERVAL_CLIENT_ERRORS:
        publish_clients(records, category, all);
        break;
    case SRS_INTERVAL_CONFIG:
    case SRS_INTERVAL_INTERNAL_CONFIG:
        publish_options(records, category, settings, all);
        break;
    case SRS_INTERVAL_DEFAULT:
    case SRS_INTERVAL_EVENTS:
    case SRS_INTERVAL_COUNT:
        break;
    }
}

/* ---- beginning and end ------------------------------------------------------------------------ */

struct srs_records *srs_records_create(void (*out)(void *arg, const struct srs_record *record), void *arg, bool whole)
{
    struct srs_records *records = um_calloc(1, sizeof(*records));
    if (records != NULL) {
        records->out = out;
        records->arg = arg;
        records->whole = whole;
    }
    return records;
}

void srs_records_destroy(struct srs_records *records)
{
    um_free(records->clients.all);
    for (int i = 0; i < SRS_INTERVAL_COUNT; i++) {
        um_free(records->published_clients[i].all);
    }
    for (int i = 0; i < OPTIONS_MAX; i++) {
        um_free(records->options[0][i]);
        um_free(records->options[1][i]);
    }
    um_free(records);
}
