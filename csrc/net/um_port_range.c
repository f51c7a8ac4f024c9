/* What happens when all ports of a range are taken. See um_port_range.h. */
#include "net/um_port_range.h"

#include "base/um_error.h"
#include "base/um_log.h"

bool um_port_range_gives_way(const struct um_port_range *range)
{
    if (!range->untouched) {
        return false;
    }
    if (!*range->told) {
        *range->told = true;
        um_log(UM_LOG_INFO, "Core-9007-1",
               "all ports of the default range are in use: taking any free port (%s..%s %u..%u; set them to keep "
               "to a range)",
               range->low_option, range->high_option, range->low, range->high);
    }
    return true;
}

int um_port_range_used_up(const struct um_port_range *range, const char *id)
{
    if (range->high == 0) {
        return -1; /* any port was good: the reason of the system, recorded when binding failed, says more */
    }
    if (range->low_option == range->high_option) {
        return um_error(UM_EOS, id, "%s %u: the port is in use; choose one that is free", range->low_option,
                        range->low);
    }
    return um_error(UM_EOS, id,
                    "%s..%s %u..%u: no free port in this range; widen the range, or set both to 0 for any free port",
                    range->low_option, range->high_option, range->low, range->high);
}
