/* Log lines that others can cause: of each identifier and origin one line in 60 s, the others are counted. Owned by
 * um_log.c, which locks, and logs what is taken here; has no clock of its own. Bounded whatever strangers send: at most
 * UM_LOG_ORIGINS_EACH origins of one identifier are told apart, and UM_LOG_ORIGINS in all; further ones count as one.
 */
#ifndef UM_BASE_LOG_LIMITS_H
#define UM_BASE_LOG_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_list.h"

#define UM_LOG_INTERVAL_NS 60000000000u
#define UM_LOG_IDS 512 /* identifiers are the library's own: a test counts them */
#define UM_LOG_ORIGINS 512
#define UM_LOG_ORIGINS_EACH 32
#define UM_LOG_ORIGIN_ALL UINT64_MAX /* no origin: all lines of the identifier are alike */
#define UM_LOG_WORDS 120             /* kept of the line that was logged */

/* One identifier and origin, or one identifier and all origins for which there is no place. */
struct um_log_place {
    struct um_list node;       /* limits.told: begun, the oldest first */
    struct um_log_place *next; /* of its bucket, or of those that are free */
    struct um_log_place **bucket;
    struct um_log_place *all; /* that of the identifier; itself */
    const char *id;           /* NULL: free */
    uint64_t origin, begun_ns, left_out;
    unsigned origins; /* of the identifier that have a place */
    int level;
    char words[UM_LOG_WORDS];
};

struct um_log_limits {
    struct um_list told;
    struct um_log_place *free;
    unsigned id_count, origin_count;
    struct um_log_place *buckets[1024];
    struct um_log_place ids[UM_LOG_IDS], origins[UM_LOG_ORIGINS];
};

/* What is to be logged about lines that were left out. */
struct um_log_left_out {
    const char *id;
    int level;
    uint64_t count;
    char words[UM_LOG_WORDS];
};

/* Nothing is known: before the first use, and when somebody else takes the lines. Keeps its hands off unused pages. */
void um_log_limits_clear(struct um_log_limits *limits);

/* True: there has been a line of this identifier and origin just now; this one is counted. */
bool um_log_limits_left_out(struct um_log_limits *limits, uint64_t now_ns, const char *id, uint64_t origin);
/* True: it is to be logged, and its words are told here then. Else it is counted. The identifier is a constant. */
bool um_log_limits_take(struct um_log_limits *limits, uint64_t now_ns, const char *id, uint64_t origin, int level);
void um_log_limits_words(struct um_log_limits *limits, const char *id, uint64_t origin, const char *words);

/* False: none is due, whose places are free. Else the next that is: call again. */
bool um_log_limits_next_due(struct um_log_limits *limits, uint64_t now_ns, struct um_log_left_out *out);
/* When to ask again; UINT64_MAX: there are no places. */
uint64_t um_log_limits_due_ns(const struct um_log_limits *limits);

#endif
