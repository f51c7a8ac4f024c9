/* Names whose MurmurHash2 (seed 0) is that of "AAAAAAAAAAAA": what an attacker
 * computes who knows that a table uses it. Each step of that hash can be undone,
 * so any first eight characters have one last word that leads there. */
#ifndef UM_SUPPORT_TEST_MURMUR_H
#define UM_SUPPORT_TEST_MURMUR_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline uint32_t murmur2_mix(uint32_t word)
{
    word *= 0x5bd1e995u;
    word ^= word >> 24;
    return word * 0x5bd1e995u;
}

/* Twelve characters and a NUL; the first ones count up, and repeat where a last word would hold a NUL. */
static inline void murmur2_twin(uint32_t number, char name[13])
{
    const uint32_t multiplier = 0x5bd1e995u, inverse = 0xe59b19bdu;
    uint32_t goal = 12, aaaa;
    memcpy(&aaaa, "AAAA", 4);
    for (int i = 0; i < 3; i++) {
        goal = goal * multiplier ^ murmur2_mix(aaaa);
    }
    for (unsigned variant = 0;; variant++) {
        uint32_t hash = 12, word;
        char digits[9];
        snprintf(digits, sizeof digits, "%06x%02x", number & 0xffffffu, variant & 0xffu);
        memcpy(name, digits, 8);
        for (int i = 0; i < 2; i++) {
            memcpy(&word, name + 4 * i, 4);
            hash = hash * multiplier ^ murmur2_mix(word);
        }
        word = (hash * multiplier ^ goal) * inverse;
        word = (word ^ word >> 24) * inverse;
        memcpy(name + 8, &word, 4);
        name[12] = '\0';
        if (memchr(name + 8, '\0', 4) == NULL) {
            return;
        }
    }
}

#endif
