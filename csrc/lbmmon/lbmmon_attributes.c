/* lbmmon_attr_get_*: what a packet says of its sender, for the callbacks of a receive controller. They are given the
 * decoded attributes; of a passed-through packet the block in table form. Owns nothing. Any thread. */
#include <string.h>

#include <lbm/lbmmon.h>

#include "base/um_bytes.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_packet.h"

/* Decoded into `room` if the block is not yet. NULL: not a block, or it has no such attribute. */
static const lbmmon_packet_attributes_t *with(const void *block, unsigned type, const void *out,
                                              lbmmon_packet_attributes_t *room, const char *api)
{
    lbm_ushort_t magic;
    if (block == NULL || out == NULL) {
        um_mon_error(LBMMON_EINVAL, "%s: %s: must not be NULL", api, block == NULL ? "AttributeBlock" : "the result");
        return NULL;
    }
    memcpy(&magic, block, sizeof magic);
    const lbmmon_packet_attributes_t *attributes = block;
    if (magic != LBMMON_ATTR_BLOCK_MAGIC) {
        if (um_mon_attributes_read(block, um_get16((const uint8_t *)block + 2), room) != 0) {
            um_mon_error(LBMMON_EINVAL, "%s: AttributeBlock: must be what the callback was given", api);
            return NULL;
        }
        attributes = room;
    }
    if (!um_mon_has(attributes, type)) {
        um_mon_error(LBMMON_EINVAL, "%s: the packet does not have this attribute", api);
        return NULL;
    }
    return attributes;
}

/* A getter of a plain value. */
#define GET(function, attribute, type, member)                                                                         \
    int function(const void *AttributeBlock, type *Value)                                                              \
    {                                                                                                                  \
        lbmmon_packet_attributes_t room;                                                                               \
        const lbmmon_packet_attributes_t *found = with(AttributeBlock, attribute, Value, &room, #function);            \
        if (found == NULL) {                                                                                           \
            return -1;                                                                                                 \
        }                                                                                                              \
        *Value = (type)found->member;                                                                                  \
        return 0;                                                                                                      \
    }

GET(lbmmon_attr_get_ipv4sender, LBMMON_ATTR_SENDER_IPV4, lbm_uint_t, mAddress)
GET(lbmmon_attr_get_timestamp, LBMMON_ATTR_TIMESTAMP, time_t, mTimestamp)
GET(lbmmon_attr_get_objectid, LBMMON_ATTR_OBJECTID, lbm_ulong_t, mObjectID)
GET(lbmmon_attr_get_contextid, LBMMON_ATTR_CONTEXTID, lbm_ulong_t, mObjectID)
GET(lbmmon_attr_get_processid, LBMMON_ATTR_PROCESSID, lbm_ulong_t, mProcessID)
GET(lbmmon_attr_get_source, LBMMON_ATTR_SOURCE, lbm_ulong_t, mSourceFlag)
GET(lbmmon_attr_get_domainid, LBMMON_ATTR_DOMAINID, lbm_uint32_t, mDomainID)

int lbmmon_attr_get_appsourceid(const void *AttributeBlock, char *ApplicationSourceID, size_t Length)
{
    lbmmon_packet_attributes_t room;
    const lbmmon_packet_attributes_t *found =
        with(AttributeBlock, LBMMON_ATTR_APPSOURCEID, ApplicationSourceID, &room, "lbmmon_attr_get_appsourceid");
    if (found == NULL) {
        return -1;
    }
    size_t len = strlen(found->mApplicationSourceID);
    if (len >= Length) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_attr_get_appsourceid: Length %zu: must be at least %zu", Length,
                            len + 1);
    }
    memcpy(ApplicationSourceID, found->mApplicationSourceID, len + 1);
    return 0;
}

int lbmmon_attr_get_ctxinst(const void *AttributeBlock, lbm_uint8_t *ContextInstance, size_t Length)
{
    lbmmon_packet_attributes_t room;
    const lbmmon_packet_attributes_t *found =
        with(AttributeBlock, LBMMON_ATTR_CTXINST, ContextInstance, &room, "lbmmon_attr_get_ctxinst");
    if (found == NULL) {
        return -1;
    }
    if (Length < sizeof found->mContextInstance) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_attr_get_ctxinst: Length %zu: must be at least %zu", Length,
                            sizeof found->mContextInstance);
    }
    memcpy(ContextInstance, found->mContextInstance, sizeof found->mContextInstance);
    return 0;
}

int lbmmon_attributes_deserialize(lbmmon_packet_attributes_t *Attributes, char *Source, size_t Length)
{
    if (Attributes == NULL || Source == NULL) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_attributes_deserialize: %s: must not be NULL",
                            Attributes == NULL ? "Attributes" : "Source");
    }
    if (um_mon_attributes_read(Source, Length, Attributes) != 0) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_attributes_deserialize: %zu bytes: not a block of attributes",
                            Length);
    }
    return 0;
}
