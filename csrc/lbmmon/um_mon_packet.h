/* The packets of monitoring: a head of 12 bytes, a block of attributes, data. Pure functions on bytes; every length is
 * checked. Called by the controllers, the tools and the fuzz target. */
#ifndef UM_LBMMON_PACKET_H
#define UM_LBMMON_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lbm/lbmmon.h>

enum {
    UM_MON_HEAD_LEN = 12,
    UM_MON_PART_MAX = 65535, /* of attributes, and of data: their lengths have 16 bits */
    UM_MON_PACKET_MAX = UM_MON_HEAD_LEN + 2 * UM_MON_PART_MAX,
    UM_MON_ATTRIBUTES_MAX = 400, /* what um_mon_attributes_write() needs at most */
    UM_MON_APPID_MAX = 255       /* bytes of an application id */
};

/* A type of this implementation: lines of the log. Readers pass over types that they do not know. */
enum { UM_MON_PACKET_LOG = 0x554d };

/* Bit of an attribute in lbmmon_packet_attributes_t.mFlags: it is there. */
#define UM_MON_HAS(type) (UINT64_C(1) << (type))

struct um_mon_packet {
    unsigned type;
    const uint8_t *attributes;
    size_t attributes_len;
    const uint8_t *data;
    size_t data_len;
};

/* 0, or -1: not a packet of exactly this length. Points into the bytes. */
int um_mon_packet_read(const void *bytes, size_t len, struct um_mon_packet *out);
/* UM_MON_HEAD_LEN bytes. */
void um_mon_head_write(void *out, unsigned type, size_t attributes_len, size_t data_len);

/* A block of attributes in table form. 0, or -1: an entry leaves the block, or a value has no sensible length. Entries
 * of unknown type are passed over; integers have 4 or 8 bytes (2 where 2 suffice). */
int um_mon_attributes_read(const void *bytes, size_t len, lbmmon_packet_attributes_t *out);
/* Writes those that mFlags names; returns the length, 0: no room. */
size_t um_mon_attributes_write(const lbmmon_packet_attributes_t *attributes, void *out, size_t room);
void um_mon_attributes_init(lbmmon_packet_attributes_t *attributes);
static inline bool um_mon_has(const lbmmon_packet_attributes_t *attributes, unsigned type)
{
    return (attributes->mFlags & UM_MON_HAS(type)) != 0;
}

#endif
