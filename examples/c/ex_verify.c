/* Verifiable payloads: 2 bytes Internet checksum over the whole message,
 * 4 magic bytes, random bytes, two zero bytes at the end. No state but rand(). */
#include "ex_verify.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char ex_magic[4] = {0x1b, 0x33, 0x56, 0xda};

static uint16_t ex_checksum(const char *data, size_t length)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + 1 < length; i += 2) {
        uint16_t word;
        memcpy(&word, data + i, 2);
        sum += word;
    }
    if (i < length) {
        uint16_t word = 0;
        memcpy(&word, data + i, 1);
        sum += word;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

size_t ex_verify_length(size_t length)
{
    if (length >= EX_VERIFY_MIN_LENGTH) {
        return length;
    }
    printf("Specified message length %u is too small for verifiable messages.\n", (unsigned)length);
    printf("Setting message length to minimum (%u).\n", EX_VERIFY_MIN_LENGTH);
    return EX_VERIFY_MIN_LENGTH;
}

void ex_verify_fill(char *data, size_t length)
{
    memset(data, 0, length);
    memcpy(data + 2, ex_magic, sizeof(ex_magic));
    for (size_t i = 6; i + 2 < length; i++) {
        data[i] = (char)rand();
    }
    uint16_t sum = ex_checksum(data, length);
    memcpy(data, &sum, 2);
}

enum ex_verdict ex_verify_check(const char *data, size_t length, int verbose)
{
    if (length < EX_VERIFY_MIN_LENGTH) {
        return EX_NOT_VERIFIABLE;
    }
    uint16_t sum = ex_checksum(data, length);
    if (verbose) {
        printf("Message calculated cksum 0x%x\n", sum);
    }
    if (sum == 0) {
        return EX_GOOD;
    }
    return memcmp(data + 2, ex_magic, sizeof(ex_magic)) == 0 ? EX_BAD : EX_NOT_VERIFIABLE;
}
