/* What the SRS daemon publishes of itself: which values each category has, which
 * of them have changed, and their text. Owned and called by the monitor's thread;
 * the sample is taken on the loop of the daemon. */
#ifndef UM_DAEMONS_SRS_RECORDS_H
#define UM_DAEMONS_SRS_RECORDS_H

#include <time.h>

#include "resolver/um_srs_engine.h"
#include "srs_settings.h"

struct srs_client {
    uint64_t id; /* of its registration */
    uint32_t ip; /* network order */
    uint16_t port;
    uint32_t session;
};

struct srs_client_sample {
    struct srs_client client;
    struct um_srs_client_stats stats;
};

struct srs_event {
    const char *type; /* static text */
    struct srs_client client;
    time_t time;
    char *topic, *source; /* the event's; NULL: none */
};

/* A record as it is published: some values of one category. */
struct srs_value {
    const char *name;
    uint64_t number;
    const char *text; /* not NULL: the value, in place of the number */
};

struct srs_record {
    enum srs_interval category;
    const struct srs_client *client; /* NULL: of no client */
    const struct srs_value *values;
    size_t count;
    const struct srs_event *event; /* of SRS_INTERVAL_EVENTS, which has no values */
};

struct srs_records; /* the newest sample, and what has been published */

/* `out` is called with every record, which is its own for the time of the call. `whole`: a record of statistics that
 * have changed has all of its values, not those alone. */
struct srs_records *srs_records_create(void (*out)(void *arg, const struct srs_record *record), void *arg, bool whole);
void srs_records_destroy(struct srs_records *records);

/* Copies the counters: on the thread of the engine, while no other function of this file runs. False: no memory; the
 * sample stays as it was. */
bool srs_records_sample(struct srs_records *records, const struct um_srs_engine *engine);
/* Statistics and options: what has changed since they were last published, or all. */
void srs_records_publish(struct srs_records *records, enum srs_interval category, const struct srs_settings *settings,
                         bool all);

/* "SRS_STATS" and so on; NULL for the default. The other way round: SRS_INTERVAL_DEFAULT when there is none. */
const char *srs_category_name(enum srs_interval category);
enum srs_interval srs_category_find(const char *name);

/* The record as JSON with a NUL behind it: free() it. NULL: no memory. *len with the NUL. */
char *srs_record_json(const struct srs_record *record, size_t *len);
/* As a monitoring packet with a protobuf message (SRSMonMsg): free() it. NULL: no memory, or more than a packet takes.
 * `host` is the address of the monitor in network order. */
char *srs_record_packet(const struct srs_record *record, uint32_t host, const char *application, size_t *len);

#endif
