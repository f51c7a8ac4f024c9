/* What lbmprice sends: self-describing messages, and the book that a receiver keeps of
 * them. No function here waits or sends; a failing call ends the program. */
#ifndef EX_PRICE_H
#define EX_PRICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ex_price_type { EX_PRICE = 1, EX_BOOK, EX_BOOK_FIRST, EX_BOOK_AGAIN };

/* A price has a number and a value; a book the number and value of the last price, and the lowest and the highest of
 * all; a request (EX_BOOK_FIRST, EX_BOOK_AGAIN) nothing but its type. */
struct ex_price {
    uint8_t type;
    uint32_t number;
    double last, low, high;
    double sent; /* seconds since the epoch; what is parsed */
};

/* Writes the message, stamped with the time of day, to `out`; returns its length. */
size_t ex_price_put(const struct ex_price *price, char *out, size_t size);
/* False: not a message of ours, which was said on stderr. */
bool ex_price_parse(const char *data, size_t length, struct ex_price *out);
double ex_price_wall(void); /* seconds since the epoch */

enum ex_book_state { EX_BOOK_NONE, EX_BOOK_UNCERTAIN, EX_BOOK_VALID };

struct ex_book {
    enum ex_book_state state;
    uint32_t number;  /* of the newest price seen */
    bool any;         /* a price was seen */
    uint32_t missing; /* numbers up to the newest that have not come; valid with a book */
    double last, low, high;
    unsigned long latencies;
    double latency_sum, latency_max;
};

/* A price has come. Prints its line; tells whether the state has changed. */
void ex_book_on_price(struct ex_book *book, const struct ex_price *price);
/* A book has come. True: it was wanted, and ours is valid now. */
bool ex_book_on_book(struct ex_book *book, const struct ex_price *price);
void ex_book_invalidate(struct ex_book *book);

#endif
