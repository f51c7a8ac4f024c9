/* Fields of a CSV record: writing into a room, reading from bytes that may say anything. Pure functions. For the CSV
 * module and the fuzz target. */
#ifndef UM_LBMMON_CSV_TEXT_H
#define UM_LBMMON_CSV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lbmmon/um_mon_fields.h"

/* Counts on when there is no more room: `len` is what is needed. */
struct um_mon_csv_writer {
    char *out;
    size_t room, len;
    char separator;
};

void um_mon_csv_put_decimal(struct um_mon_csv_writer *w, int value);
void um_mon_csv_put_hex(struct um_mon_csv_writer *w, unsigned long long value);
void um_mon_csv_put_text(struct um_mon_csv_writer *w, const char *text, size_t max); /* quoted, at most max bytes */
void um_mon_csv_put_bytes(struct um_mon_csv_writer *w, const unsigned char *bytes, size_t len);
void um_mon_csv_put_record(struct um_mon_csv_writer *w, const struct um_mon_record *record, const void *counters);

struct um_mon_csv_reader {
    const char *at, *end;
    char separator;
    bool over; /* no field is left */
};

void um_mon_csv_reader_init(struct um_mon_csv_reader *r, const char *text, size_t len, char separator);
/* Each false: there is no field, or something else in it. */
bool um_mon_csv_get_decimal(struct um_mon_csv_reader *r, int *out);
bool um_mon_csv_get_hex(struct um_mon_csv_reader *r, unsigned long long *out); /* of long ones the last 16 digits */
bool um_mon_csv_get_text(struct um_mon_csv_reader *r, char *out, size_t room);
bool um_mon_csv_get_bytes(struct um_mon_csv_reader *r, unsigned char *out, size_t len);
/* Fields that are not there are 0 if they may be missing; further ones are passed over. */
bool um_mon_csv_get_record(struct um_mon_csv_reader *r, const struct um_mon_record *record, bool may_miss,
                           void *counters);

#endif
