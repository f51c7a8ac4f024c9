/* What contexts know of topics, in the records of a resolution server (SRS) and
 * out of them. Pure functions, except that faults are for the caller to log. */
#ifndef UM_RESOLVER_SRS_RECORDS_H
#define UM_RESOLVER_SRS_RECORDS_H

#include "resolver/um_srs_journal.h"
#include "wire/um_lbmsrs.h"

/* Who tells. */
struct um_srs_self {
    const uint8_t *ctxinst; /* 8 bytes, as long as it is used */
    uint32_t host_id;       /* of shared memory; 0: every host's is taken for ours */
    uint32_t domain_id;     /* 0: unknown */
    uint32_t version;       /* of the formats; informational */
    uint32_t session_id;    /* the same for all connections of a context */
    uint8_t interest_mode;  /* enum um_lbmsrs_interest_mode */
    bool tls, compression;
};

/* Writes the record that tells the item, or its end. 0: no room. */
size_t um_srs_put_item(const struct um_srs_item *item, const struct um_srs_self *self, uint8_t *out, size_t room);

enum um_srs_verdict {
    UM_SRS_TAKEN,
    UM_SRS_OTHER_WORLD, /* encrypted or compressed otherwise than this context, or in the memory of another host: of no
                           use, in silence */
    UM_SRS_BAD_SOURCE,  /* a source string that is none */
    UM_SRS_UNREACHABLE  /* an address or port that no source can have */
};

/* What a source record says; *out points into the record. */
enum um_srs_verdict um_srs_read_source(const struct um_lbmsrs_record *record, const struct um_srs_self *self,
                                       struct um_tr_source *out);

#endif
