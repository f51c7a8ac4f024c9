/* The identity of a source in the whole network (OTID): how one is made of the
 * source's transport, and how those of others are kept in eight bytes where they
 * are made in the same way. Pure functions; the cache's thread. */
#ifndef UM_RESOLVER_TR_OTID_H
#define UM_RESOLVER_TR_OTID_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#define UM_TR_OTID_LEN 32

/* What an OTID says beside the source's transport and context. */
struct um_tr_otid_own {
    uint32_t domain_id;
    uint32_t place; /* address as the source knows it (network order), or host id of shared memory */
};

void um_tr_otid_make(const lbm_transport_source_info_t *info, const uint8_t ctxinst[8],
                     const struct um_tr_otid_own *own, uint8_t out[UM_TR_OTID_LEN]);

enum um_tr_otid_form { UM_TR_OTID_NONE, UM_TR_OTID_MADE, UM_TR_OTID_FOREIGN };

/* Whose form says what is in it. */
union um_tr_otid {
    struct um_tr_otid_own own; /* MADE */
    uint8_t *bytes;            /* FOREIGN */
};

/* info and ctxinst are those of the source, the same for all calls. FOREIGN ones allocate; NONE: out of memory. */
enum um_tr_otid_form um_tr_otid_keep(union um_tr_otid *otid, const lbm_transport_source_info_t *info,
                                     const uint8_t ctxinst[8], const uint8_t bytes[UM_TR_OTID_LEN]);
/* All zero where there is none. */
void um_tr_otid_get(const union um_tr_otid *otid, enum um_tr_otid_form form, const lbm_transport_source_info_t *info,
                    const uint8_t ctxinst[8], uint8_t out[UM_TR_OTID_LEN]);
void um_tr_otid_free(union um_tr_otid *otid, enum um_tr_otid_form form);

#endif
