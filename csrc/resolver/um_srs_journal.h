/* What a context has to tell resolution servers (SRS): its sources, the topics and
 * patterns it wants, sources that ended here without a word of their owner. One
 * list in the order of the latest change, and a place in it for each reader: a
 * new connection begins at its head (the full upload), one that is up to date
 * stands at its end. So nothing is queued for a connection, however slow it is,
 * and what came and went before it was told is not told at all.
 * Confined to the context's loop. */
#ifndef UM_RESOLVER_SRS_JOURNAL_H
#define UM_RESOLVER_SRS_JOURNAL_H

#include "base/um_list.h"
#include "base/um_table.h"
#include "resolver/um_resolver.h"

#define UM_SRS_SERVICES_MAX 5
#define UM_SRS_READERS_MAX (UM_SRS_SERVICES_MAX + 1) /* the last is the context's own cache */
#define UM_SRS_TEXT_MAX 254                          /* characters of a topic or pattern in a record */

struct um_srs_journal;

enum um_srs_kind { UM_SRS_SOURCE, UM_SRS_TOPIC, UM_SRS_PATTERN, UM_SRS_LEAVE };

/* Read by its readers; changed by the journal alone. */
struct um_srs_item {
    struct um_list node; /* journal->items, once published */
    uint64_t change;     /* number of its latest change: ascending in the list */
    enum um_srs_kind kind : 8;
    bool published;
    bool ended;             /* what is to be told is its end */
    uint8_t owed;           /* readers that are to be told of the end, or of the leave */
    const char *text;       /* topic or pattern, with a NUL */
    size_t len;             /* without it */
    void *user;             /* the owner's */
    struct um_tr_source at; /* of sources and leaves; shorter in memory for the others */
};

struct um_srs_journal *um_srs_journal_create(void); /* NULL + error */
void um_srs_journal_destroy(struct um_srs_journal *journal);
size_t um_srs_journal_count(const struct um_srs_journal *journal); /* published, ends included */

/* Copied. Not told until it is published. NULL: out of memory. */
struct um_srs_item *um_srs_journal_add(struct um_srs_journal *journal, enum um_srs_kind kind, const char *text,
                                       size_t len, const struct um_tr_source *source);
void um_srs_journal_publish(struct um_srs_journal *journal, struct um_srs_item *item);
/* Whoever was told is told of the end. The item is the journal's from here on. */
void um_srs_journal_end(struct um_srs_journal *journal, struct um_srs_item *item);
/* A source ended here: the readers of the mask that are reading are told, once. -1: out of memory. */
int um_srs_journal_leave(struct um_srs_journal *journal, const struct um_tr_source *source, uint8_t readers);

/* From the beginning. Reading, or again. */
void um_srs_journal_begin(struct um_srs_journal *journal, unsigned reader);
/* It reads no more: its connection is lost. */
void um_srs_journal_stop(struct um_srs_journal *journal, unsigned reader);
/* The next item to tell; NULL: none now, or not reading. The same one until it is taken. */
const struct um_srs_item *um_srs_journal_next(struct um_srs_journal *journal, unsigned reader);
void um_srs_journal_take(struct um_srs_journal *journal, unsigned reader); /* that item was told; it may be freed */

#endif
