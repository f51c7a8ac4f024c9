/* See frame.h. */
#include "frame.h"

#include <string.h>

const char *const frame_kind_names[FRAME_KINDS] = {
    [FRAME_OTHER] = "other",     [FRAME_ARP] = "arp",         [FRAME_TCP] = "tcp",       [FRAME_UDP] = "udp",
    [FRAME_RM_DATA] = "rm.data", [FRAME_RM_RX] = "rm.rx",     [FRAME_RM_SM] = "rm.sm",   [FRAME_RM_NAK] = "rm.nak",
    [FRAME_RM_NCF] = "rm.ncf",   [FRAME_RU_DATA] = "ru.data", [FRAME_RU_RX] = "ru.rx",   [FRAME_RU_SM] = "ru.sm",
    [FRAME_RU_NAK] = "ru.nak",   [FRAME_RU_NCF] = "ru.ncf",   [FRAME_RU_ACK] = "ru.ack", [FRAME_RU_CREQ] = "ru.creq",
    [FRAME_RU_RST] = "ru.rst",
};

enum { ETHERNET = 14, IP_UDP = 17, IP_TCP = 6, RETRANSMISSION_RM = 0x20, RETRANSMISSION_RU = 0x4000 };

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static bool within(uint16_t port, uint16_t low, uint16_t high)
{
    return port >= low && port <= high;
}

static void classify_rm(const uint8_t *payload, size_t len, struct frame_info *out)
{
    static const uint8_t kinds[16] = {[2] = FRAME_RM_SM, [3] = FRAME_RM_NAK, [4] = FRAME_RM_NCF};
    if (len < 8 || payload[0] >> 4 != 0) {
        return;
    }
    if ((payload[0] & 0x0f) == 0 && len >= 20) {
        out->kind = (payload[16] & RETRANSMISSION_RM) != 0 ? FRAME_RM_RX : FRAME_RM_DATA;
        out->numbered = true;
        out->sqn = get32(payload + 8);
    } else if (kinds[payload[0] & 0x0f] != 0) {
        out->kind = kinds[payload[0] & 0x0f];
    }
}

static void classify_ru(const uint8_t *payload, size_t len, struct frame_info *out)
{
    static const uint8_t kinds[16] = {[2] = FRAME_RU_SM,  [3] = FRAME_RU_NAK,  [4] = FRAME_RU_NCF,
                                      [5] = FRAME_RU_ACK, [6] = FRAME_RU_CREQ, [7] = FRAME_RU_RST};
    if (len < 4 || payload[0] >> 4 != 0) {
        return;
    }
    if ((payload[0] & 0x0f) == 0 && len >= 12) {
        out->kind = (get16(payload + 2) & RETRANSMISSION_RU) != 0 ? FRAME_RU_RX : FRAME_RU_DATA;
        out->numbered = true;
        out->sqn = get32(payload + 4);
    } else if (kinds[payload[0] & 0x0f] != 0) {
        out->kind = kinds[payload[0] & 0x0f];
    }
}

void frame_classify(const uint8_t *data, size_t len, const struct frame_ports *ports, struct frame_info *out)
{
    *out = (struct frame_info){.kind = FRAME_OTHER};
    if (len < ETHERNET) {
        return;
    }
    out->group = (data[0] & 1) != 0;
    uint16_t ethertype = get16(data + 12);
    if (ethertype == 0x0806) {
        out->kind = FRAME_ARP;
    }
    const uint8_t *ip = data + ETHERNET;
    if (ethertype != 0x0800 || len < ETHERNET + 20 || ip[0] >> 4 != 4) {
        return;
    }
    size_t header_len = (size_t)(ip[0] & 0x0f) * 4, total = get16(ip + 2);
    bool later_fragment = (get16(ip + 6) & 0x1fff) != 0;
    if (header_len < 20 || total < header_len + 8 || total > len - ETHERNET || later_fragment) {
        return;
    }
    const uint8_t *transport = ip + header_len;
    if (ip[9] != IP_UDP && (ip[9] != IP_TCP || total < header_len + 20)) {
        return;
    }
    out->kind = ip[9] == IP_TCP ? FRAME_TCP : FRAME_UDP;
    out->header_at = ETHERNET + header_len;
    out->end = ETHERNET + total;
    out->sport = get16(transport);
    out->dport = get16(transport + 2);
    if (out->kind == FRAME_TCP) {
        return;
    }
    size_t payload_len = total - header_len - 8;
    if (within(out->dport, ports->rm_low, ports->rm_high) || within(out->sport, ports->rm_low, ports->rm_high)) {
        classify_rm(transport + 8, payload_len, out);
    } else if (within(out->dport, ports->ru_low, ports->ru_high) || within(out->sport, ports->ru_low, ports->ru_high)) {
        classify_ru(transport + 8, payload_len, out);
    }
}

static uint32_t sum16(const uint8_t *at, size_t len, uint32_t sum)
{
    for (; len > 1; at += 2, len -= 2) {
        sum += get16(at);
    }
    return len == 1 ? sum + (uint32_t)(at[0] << 8) : sum;
}

void frame_checksum(uint8_t *data, const struct frame_info *info)
{
    if (info->header_at == 0) {
        return;
    }
    uint8_t *field = data + info->header_at + (info->kind == FRAME_TCP ? 16 : 6);
    size_t len = info->end - info->header_at;
    memset(field, 0, 2);
    uint32_t sum = (info->kind == FRAME_TCP ? IP_TCP : IP_UDP) + (uint32_t)len;
    sum = sum16(data + ETHERNET + 12, 8, sum); /* both addresses */
    sum = sum16(data + info->header_at, len, sum);
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    uint16_t checksum = (uint16_t)~sum;
    if (checksum == 0 && info->kind != FRAME_TCP) {
        checksum = 0xffff;
    }
    field[0] = (uint8_t)(checksum >> 8);
    field[1] = (uint8_t)checksum;
}
