/* The numbers that a hot-failover source sends: counted up, or read from a file, so
 * that gaps, optional messages and resets can be shown. Called by main(). */
#ifndef EX_NUMBERS_H
#define EX_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct ex_number {
    uint64_t value;
    bool optional; /* "14o" in a file: receivers may leave the message out */
    bool reset;    /* "14r": receivers begin anew; 14 is the next number they expect */
};

struct ex_numbers {
    uint64_t next;    /* without a file: the next number */
    const char *name; /* of the file, "-" is stdin; NULL: none */
    void *file;       /* FILE * */
    int bits;         /* 32 or 64 */
};

/* `file` NULL: from `first` on. Ends the program with status 1 when the file cannot be read. */
void ex_numbers_open(struct ex_numbers *numbers, const char *file, uint64_t first, int bits);
/* False: no more. Ends the program when the file has something else. Numbers of 32 bits go on at 0 after the last. */
bool ex_numbers_next(struct ex_numbers *numbers, struct ex_number *out);
void ex_numbers_close(struct ex_numbers *numbers);

#endif
