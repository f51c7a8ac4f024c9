/* Verifiable payloads: checksum, magic bytes, random filling. Pure functions on
 * byte buffers, used by senders and receivers of every program that has -V. */
#ifndef EX_VERIFY_H
#define EX_VERIFY_H

#include <stddef.h>

#define EX_VERIFY_MIN_LENGTH 8

/* Raises a too small length to the minimum and says so on stdout. */
size_t ex_verify_length(size_t length);
void ex_verify_fill(char *data, size_t length);

enum ex_verdict { EX_NOT_VERIFIABLE = -1, EX_BAD = 0, EX_GOOD = 1 };
enum ex_verdict ex_verify_check(const char *data, size_t length, int verbose);

#endif
