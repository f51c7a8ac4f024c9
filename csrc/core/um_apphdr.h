/* Chains of application headers (lbm_apphdr_chain_t) as applications build them:
 * kept in the form in which they travel. For one thread at a time. */
#ifndef UM_CORE_APPHDR_H
#define UM_CORE_APPHDR_H

#include <lbm/lbm.h>

#include "wire/um_lbmc_chain.h"

#define UM_APPHDR_MAGIC 0x554d4148u /* "UMAH" */

struct lbm_apphdr_chain_t_stct {
    uint32_t magic;
    struct um_chain_writer writer;
};

int um_apphdr_check(const lbm_apphdr_chain_t *chain, const char *api); /* 0, or -1 + UM_EINVAL */

/* As um_chain_begin() wants it. */
static inline struct um_slice um_apphdr_elements(const lbm_apphdr_chain_t *chain)
{
    return (struct um_slice){chain->writer.bytes + UM_CHAIN_HDR_LEN - 1, chain->writer.len - UM_CHAIN_HDR_LEN + 1};
}

#endif
