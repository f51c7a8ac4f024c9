/* The configuration of the SRS daemon: defaults, the XML file, its schema, and
 * the text that shows what is in force. Used by main() before anything else
 * runs; one thread. */
#ifndef UM_DAEMONS_SRS_SETTINGS_H
#define UM_DAEMONS_SRS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SRS_CATEGORIES 7 /* publishing intervals: enum srs_interval without the default */
#define SRS_ATTRIBUTES_MAX 256
#define SRS_INTERVAL_MIN_MS UINT64_C(200) /* of publishing; 0: off */
#define SRS_INTERVAL_MAX_MS UINT64_C(7776000000)

enum srs_log_roll { SRS_ROLL_DISABLE, SRS_ROLL_DAILY, SRS_ROLL_HOURLY };
enum srs_log_compression { SRS_COMPRESS_NONE, SRS_COMPRESS_ZIP, SRS_COMPRESS_GZIP };

struct srs_log_settings {
    char *file; /* NULL: standard output */
    enum srs_log_roll frequency;
    uint64_t size_mb; /* 0: not by size */
    uint64_t max_history;
    uint64_t total_size_cap_mb;
    enum srs_log_compression compression;
};

enum srs_interval {
    SRS_INTERVAL_DEFAULT,
    SRS_INTERVAL_SRS_STATS,
    SRS_INTERVAL_CLIENT_STATS,
    SRS_INTERVAL_EVENTS,
    SRS_INTERVAL_SRS_ERRORS,
    SRS_INTERVAL_CLIENT_ERRORS,
    SRS_INTERVAL_CONFIG,
    SRS_INTERVAL_INTERNAL_CONFIG,
    SRS_INTERVAL_COUNT
};

struct srs_attribute {
    char *scope, *name, *value;
};

struct srs_monitor_settings {
    char *topic; /* NULL: nothing is published */
    uint64_t ping_ms;
    uint64_t interval_ms[SRS_INTERVAL_COUNT];
    struct srs_attribute attributes[SRS_ATTRIBUTES_MAX];
    unsigned attribute_count;
    bool events_allowed, snapshots_allowed, changes_allowed;
    bool protobuf; /* monitor-format pb */
};

struct srs_settings {
    struct srs_log_settings log;
    char *pid_file; /* NULL: none */
    char *interface;
    uint16_t port;
    uint64_t state_lifetime_s, source_lifetime_s, interest_lifetime_s, route_lifetime_s, name_lifetime_s;
    uint64_t leave_backoff_ms;
    char *application_id; /* NULL: none */
    uint64_t stream_max, service_ms, batch_records, batch_bytes;
    bool debug_monitor;
    struct srs_monitor_settings monitor;
};

/* Elements of publishing-interval, in the order of enum srs_interval. */
extern const char *const srs_interval_names[SRS_INTERVAL_COUNT];

static inline bool srs_interval_good(uint64_t ms)
{
    return ms == 0 || (ms >= SRS_INTERVAL_MIN_MS && ms <= SRS_INTERVAL_MAX_MS);
}

/* The XML schema of configuration files. */
extern const char srs_schema[];

/* All defaults. False: out of memory. */
bool srs_settings_default(struct srs_settings *settings);
/* Reads and checks the file on top of the defaults. False: what is wrong has been written to `errors`. */
bool srs_settings_load(struct srs_settings *settings, const char *path, FILE *errors);
void srs_settings_free(struct srs_settings *settings);
/* What is in force, as a configuration file. */
void srs_settings_dump(const struct srs_settings *settings, FILE *out);

/* Calls fn for each option and its value, by its path "um-srs.srs.port". */
void srs_settings_each(const struct srs_settings *settings, void (*fn)(void *arg, const char *path, const char *value),
                       void *arg);
/* The same for options that the service accepts and does not use. */
void srs_settings_each_internal(const struct srs_settings *settings,
                                void (*fn)(void *arg, const char *path, const char *value), void *arg);

#endif
