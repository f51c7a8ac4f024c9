/* Reads and writes the packets of monitoring. Owns nothing. Any thread. */
#include "lbmmon/um_mon_packet.h"

#include <string.h>

#include "base/um_bytes.h"

enum { BLOCK_HEAD_LEN = 4, ENTRY_HEAD_LEN = 4 };

int um_mon_packet_read(const void *bytes, size_t len, struct um_mon_packet *out)
{
    const uint8_t *p = bytes;
    if (len < UM_MON_HEAD_LEN || um_get32(p) != LBMMON_PACKET_SIGNATURE) {
        return -1;
    }
    *out = (struct um_mon_packet){.type = um_get16(p + 4),
                                  .attributes = p + UM_MON_HEAD_LEN,
                                  .attributes_len = um_get16(p + 6),
                                  .data_len = um_get16(p + 8)};
    out->data = out->attributes + out->attributes_len;
    return UM_MON_HEAD_LEN + out->attributes_len + out->data_len == len ? 0 : -1;
}

void um_mon_head_write(void *out, unsigned type, size_t attributes_len, size_t data_len)
{
    uint8_t *p = out;
    um_put32(p, LBMMON_PACKET_SIGNATURE);
    um_put16(p + 4, (uint16_t)type);
    um_put16(p + 6, (uint16_t)attributes_len);
    um_put16(p + 8, (uint16_t)data_len);
    um_put16(p + 10, 0);
}

/* ---- reading attributes ---- */

static bool read_integer(const uint8_t *value, size_t len, uint64_t *out)
{
    switch (len) {
    case 2:
        *out = um_get16(value);
        return true;
    case 4:
        *out = um_get32(value);
        return true;
    case 8:
        *out = um_get64(value);
        return true;
    default:
        return false;
    }
}

static void store_integer(lbmmon_packet_attributes_t *out, unsigned type, uint64_t value)
{
    switch (type) {
    case LBMMON_ATTR_TIMESTAMP:
        out->mTimestamp = (time_t)value;
        break;
    case LBMMON_ATTR_FORMAT_MODULEID:
        out->mModuleID = (lbm_ushort_t)value;
        break;
    case LBMMON_ATTR_OBJECTID:
        out->mObjectID = value;
        break;
    case LBMMON_ATTR_PROCESSID:
        out->mProcessID = value;
        break;
    case LBMMON_ATTR_SOURCE:
        out->mSourceFlag = (lbm_ushort_t)value;
        break;
    default:
        out->mDomainID = (lbm_uint32_t)value;
        break;
    }
}

static bool read_value(lbmmon_packet_attributes_t *out, unsigned type, const uint8_t *value, size_t len)
{
    uint64_t number;
    switch (type) {
    case LBMMON_ATTR_SENDER_IPV4: /* in network order here, too */
        if (len != sizeof out->mAddress) {
            return false;
        }
        memcpy(&out->mAddress, value, sizeof out->mAddress);
        return true;
    case LBMMON_ATTR_APPSOURCEID:
        len = strnlen((const char *)value, len < UM_MON_APPID_MAX ? len : UM_MON_APPID_MAX);
        memcpy(out->mApplicationSourceID, value, len);
        out->mApplicationSourceID[len] = '\0';
        return true;
    case LBMMON_ATTR_CTXINST:
        if (len != sizeof out->mContextInstance) {
            return false;
        }
        memcpy(out->mContextInstance, value, sizeof out->mContextInstance);
        return true;
    default:
        if (!read_integer(value, len, &number)) {
            return false;
        }
        store_integer(out, type, number);
        return true;
    }
}

void um_mon_attributes_init(lbmmon_packet_attributes_t *attributes)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->mPacketAttributesMagic = LBMMON_ATTR_BLOCK_MAGIC;
}

int um_mon_attributes_read(const void *bytes, size_t len, lbmmon_packet_attributes_t *out)
{
    const uint8_t *p = bytes;
    um_mon_attributes_init(out);
    if (len < BLOCK_HEAD_LEN) {
        return -1;
    }
    size_t at = BLOCK_HEAD_LEN;
    for (unsigned left = um_get16(p); left > 0; left--) {
        if (len - at < ENTRY_HEAD_LEN) {
            return -1;
        }
        unsigned type = um_get16(p + at);
        size_t value_len = um_get16(p + at + 2);
        at += ENTRY_HEAD_LEN;
        if (len - at < value_len) {
            return -1;
        }
        if (type <= LBMMON_ATTR_DOMAINID) {
            if (!read_value(out, type, p + at, value_len)) {
                return -1;
            }
            out->mFlags |= UM_MON_HAS(type);
        }
        at += value_len;
    }
    return 0;
}

/* ---- writing attributes ---- */

struct writer {
    uint8_t *at;
    size_t room;
    unsigned entries;
    bool full;
};

static uint8_t *add_entry(struct writer *w, unsigned type, size_t len)
{
    if (w->full || w->room < ENTRY_HEAD_LEN + len) {
        w->full = true;
        return NULL;
    }
    uint8_t *value = w->at + ENTRY_HEAD_LEN;
    um_put16(w->at, (uint16_t)type);
    um_put16(w->at + 2, (uint16_t)len);
    w->at += ENTRY_HEAD_LEN + len;
    w->room -= ENTRY_HEAD_LEN + len;
    w->entries++;
    return value;
}

static void add_bytes(struct writer *w, const lbmmon_packet_attributes_t *from, unsigned type, const void *bytes,
                      size_t len)
{
    uint8_t *value = um_mon_has(from, type) ? add_entry(w, type, len) : NULL;
    if (value != NULL) {
        memcpy(value, bytes, len);
    }
}

static void add_integer(struct writer *w, const lbmmon_packet_attributes_t *from, unsigned type, uint64_t number,
                        size_t len)
{
    uint8_t bytes[8];
    um_put64(bytes, number);
    add_bytes(w, from, type, bytes + sizeof bytes - len, len);
}

size_t um_mon_attributes_write(const lbmmon_packet_attributes_t *from, void *out, size_t room)
{
    if (room < BLOCK_HEAD_LEN) {
        return 0;
    }
    struct writer w = {.at = (uint8_t *)out + BLOCK_HEAD_LEN, .room = room - BLOCK_HEAD_LEN};
    add_bytes(&w, from, LBMMON_ATTR_SENDER_IPV4, &from->mAddress, sizeof from->mAddress);
    add_integer(&w, from, LBMMON_ATTR_TIMESTAMP, (uint64_t)from->mTimestamp, 4);
    add_bytes(&w, from, LBMMON_ATTR_APPSOURCEID, from->mApplicationSourceID,
              strnlen(from->mApplicationSourceID, UM_MON_APPID_MAX));
    add_integer(&w, from, LBMMON_ATTR_FORMAT_MODULEID, from->mModuleID, 2);
    add_integer(&w, from, LBMMON_ATTR_OBJECTID, from->mObjectID, 8);
    add_integer(&w, from, LBMMON_ATTR_PROCESSID, from->mProcessID, 8);
    add_integer(&w, from, LBMMON_ATTR_SOURCE, from->mSourceFlag, 4);
    add_bytes(&w, from, LBMMON_ATTR_CTXINST, from->mContextInstance, sizeof from->mContextInstance);
    add_integer(&w, from, LBMMON_ATTR_DOMAINID, from->mDomainID, 4);
    size_t len = (size_t)(w.at - (uint8_t *)out);
    um_put16(out, (uint16_t)w.entries);
    um_put16((uint8_t *)out + 2, (uint16_t)len);
    return w.full ? 0 : len;
}
