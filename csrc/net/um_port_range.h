/* A range of local ports as two options give it, and what happens when all its ports are taken: an error when somebody
 * has set the range, otherwise any free port. Used where sockets are bound; the caller's thread. */
#ifndef UM_NET_PORT_RANGE_H
#define UM_NET_PORT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct um_port_range {
    const char *low_option, *high_option; /* the same: a single port */
    uint16_t low, high;                   /* host order; both 0: any free port */
    bool untouched;                       /* the default, which nobody has set */
    bool *told; /* with `untouched`: of the owner of the range, to say once that it gave way */
};

/* The range that the options `name`_low and `name`_high of a structure of options (config/um_options.h) give. */
#define UM_PORT_RANGE(options, name, id, told_flag)                                                                    \
    {                                                                                                                  \
        .low_option = #name "_low", .high_option = #name "_high", .low = (options)->name##_low,                        \
        .high = (options)->name##_high,                                                                                \
        .untouched =                                                                                                   \
            um_range_is_default(&(options)->default_ranges[id], (options)->name##_low, (options)->name##_high),        \
        .told = told_flag                                                                                              \
    }

/* All ports are taken. True: any free port may be used; a line tells it. False: an error. */
bool um_port_range_gives_way(const struct um_port_range *range);
/* Always -1: the error that names options, range and remedy, after the last attempt to bind has failed. */
int um_port_range_used_up(const struct um_port_range *range, const char *id);

#endif
