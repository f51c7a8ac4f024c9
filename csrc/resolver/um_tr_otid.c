/* Identities of sources. See um_tr_otid.h. */
#include "resolver/um_tr_otid.h"

#include <string.h>

#include "base/um_bytes.h"
#include "base/um_mem.h"
#include "wire/um_transport_place.h"

static bool in_memory(const lbm_transport_source_info_t *info)
{
    return um_transport_place(info->type) == UM_PLACE_MEMORY;
}

void um_tr_otid_make(const lbm_transport_source_info_t *info, const uint8_t ctxinst[8],
                     const struct um_tr_otid_own *own, uint8_t out[UM_TR_OTID_LEN])
{
    memset(out, 0, UM_TR_OTID_LEN);
    out[0] = 1;
    out[1] = (uint8_t)info->type;
    um_put32(out + 4, own->domain_id);
    memcpy(out + 8, ctxinst, 8);
    um_put32(out + 16, info->topic_idx);
    um_put32(out + 20, info->session_id);
    if (in_memory(info)) {
        um_put32(out + 24, own->place);
        um_put16(out + 28, (uint16_t)info->transport_id);
    } else {
        memcpy(out + 24, &own->place, 4);
        um_put16(out + 28, info->src_port);
        um_put16(out + 30, um_transport_place(info->type) == UM_PLACE_GROUP ? info->dest_port : 0);
    }
}

enum um_tr_otid_form um_tr_otid_keep(union um_tr_otid *otid, const lbm_transport_source_info_t *info,
                                     const uint8_t ctxinst[8], const uint8_t bytes[UM_TR_OTID_LEN])
{
    uint8_t made[UM_TR_OTID_LEN];
    struct um_tr_otid_own own = {.domain_id = um_get32(bytes + 4)};
    if (in_memory(info)) {
        own.place = um_get32(bytes + 24);
    } else {
        memcpy(&own.place, bytes + 24, 4);
    }
    um_tr_otid_make(info, ctxinst, &own, made);
    if (memcmp(made, bytes, UM_TR_OTID_LEN) == 0) {
        otid->own = own;
        return UM_TR_OTID_MADE;
    }
    otid->bytes = um_malloc(UM_TR_OTID_LEN);
    if (otid->bytes == NULL) {
        return UM_TR_OTID_NONE;
    }
    memcpy(otid->bytes, bytes, UM_TR_OTID_LEN);
    return UM_TR_OTID_FOREIGN;
}

void um_tr_otid_get(const union um_tr_otid *otid, enum um_tr_otid_form form, const lbm_transport_source_info_t *info,
                    const uint8_t ctxinst[8], uint8_t out[UM_TR_OTID_LEN])
{
    switch (form) {
    case UM_TR_OTID_MADE:
        um_tr_otid_make(info, ctxinst, &otid->own, out);
        return;
    case UM_TR_OTID_FOREIGN:
        memcpy(out, otid->bytes, UM_TR_OTID_LEN);
        return;
    default:
        memset(out, 0, UM_TR_OTID_LEN);
        return;
    }
}

void um_tr_otid_free(union um_tr_otid *otid, enum um_tr_otid_form form)
{
    if (form == UM_TR_OTID_FOREIGN) {
        um_free(otid->bytes);
    }
}
