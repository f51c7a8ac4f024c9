/* What the relay knows of a frame: kind, ports, sequence number. Pure functions on
 * bytes, independent of the library's own decoders, which the relay's counts are
 * compared with. */
#ifndef RELAY_FRAME_H
#define RELAY_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind {
    FRAME_OTHER,
    FRAME_ARP,
    FRAME_TCP,
    FRAME_UDP, /* not LBT-RM or LBT-RU */
    FRAME_RM_DATA,
    FRAME_RM_RX, /* retransmission */
    FRAME_RM_SM,
    FRAME_RM_NAK,
    FRAME_RM_NCF,
    FRAME_RU_DATA,
    FRAME_RU_RX,
    FRAME_RU_SM,
    FRAME_RU_NAK,
    FRAME_RU_NCF,
    FRAME_RU_ACK,
    FRAME_RU_CREQ,
    FRAME_RU_RST,
    FRAME_KINDS
};

extern const char *const frame_kind_names[FRAME_KINDS];

/* UDP ports on which LBT-RM and LBT-RU are looked for, either end; the library's default ranges to begin with. */
struct frame_ports {
    uint16_t rm_low, rm_high, ru_low, ru_high;
};

struct frame_info {
    enum frame_kind kind;
    bool group;       /* to a multicast or broadcast address */
    bool numbered;    /* sqn is set: DATA and retransmissions */
    uint32_t sqn;     /* of the transport session */
    uint16_t sport;   /* UDP and TCP, else 0 */
    uint16_t dport;   /* UDP and TCP, else 0 */
    size_t header_at; /* of UDP or TCP in the frame; 0: neither, or a later IP fragment */
    size_t end;       /* of the IP packet in the frame: what follows is padding */
};

void frame_classify(const uint8_t *data, size_t len, const struct frame_ports *ports, struct frame_info *out);

/* Computes the UDP or TCP checksum of a frame anew. */
void frame_checksum(uint8_t *data, const struct frame_info *info);

#endif
