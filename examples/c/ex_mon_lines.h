/* Fields of protobuf messages as lines of text: a label, a colon, the value. */
#ifndef EX_MON_LINES_H
#define EX_MON_LINES_H

#include <lbm/lbmmon.h>
#include <stdio.h>

struct line {
    const char *label; /* with the blanks before the colon; NULL: the end of a table */
    const char *field; /* of the message */
    char how;          /* 0: by its type; 'x': 0x and eight digits, 'i': as an address, 's': with a second blank */
};

/* A line for each entry; a message that is not there has none. */
void ex_mon_lines(FILE *out, const char *indent, const struct line *table, const void *message);

#endif
