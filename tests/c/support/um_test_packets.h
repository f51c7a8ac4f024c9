/* Packets as hex text, for golden packets. */
#ifndef UM_SUPPORT_TEST_PACKETS_H
#define UM_SUPPORT_TEST_PACKETS_H

#include "um_test.h"

static inline size_t packet_bytes(const char *hex, uint8_t *out)
{
    size_t len = strlen(hex) / 2;
    for (size_t i = 0; i < len; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return len;
}

#define CHECK_PACKET(written, length, hex)                                                                             \
    do {                                                                                                               \
        uint8_t check_want_[128];                                                                                      \
        size_t check_len_ = (length);                                                                                  \
        CHECK_EQ(check_len_, packet_bytes(hex, check_want_));                                                          \
        CHECK(memcmp(written, check_want_, check_len_) == 0);                                                          \
    } while (0)

#endif
