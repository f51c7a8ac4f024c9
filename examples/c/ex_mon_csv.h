/* Records as lines of numbers in decimal, for the programs that pass them on. */
#ifndef EX_MON_CSV_H
#define EX_MON_CSV_H

#include "ex_mon.h"

/* Number of the kind and transport of a record, 1 to 18; 0: it has none. Of event queues 52 counters are passed on,
 * of contexts 19, of others all. */
int ex_mon_csv_kind(const struct ex_mon_record *record);

/* UNIX time, address, application and source string, each with a comma behind it. */
void ex_mon_csv_about(FILE *out, const struct ex_mon_record *record);
/* The counters and the end of the line. `narrow`: none above 32 bits. */
void ex_mon_csv_counters(FILE *out, const struct ex_mon_record *record, bool narrow);

#endif
