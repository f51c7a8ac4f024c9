/* The error of a call that is not implemented yet, in lbm_errnum() and in the error state of its module.
 * Owns the per-thread errors of lbmmon. Called from application threads. */
#include "api/not_implemented/um_not_implemented.h"

#include <stdio.h>

#include <lbm/lbmmon.h>

#include "base/um_error.h"
#include "base/um_log.h"

struct module_error {
    int errnum;
    char text[192];
};

static _Thread_local struct module_error module_errors[UM_MODULE_COUNT];

/* These modules have no number for "not supported"; the nearest one of each. */
static const int module_errnums[UM_MODULE_COUNT] = {
    [UM_MODULE_LBM] = LBM_EOPNOTSUPP,
    [UM_MODULE_MON] = LBMMON_EOP,
};

int um_not_implemented(enum um_module module, const char *function, const char *feature)
{
    struct module_error *error = &module_errors[module];
    error->errnum = module_errnums[module];
    snprintf(error->text, sizeof error->text, "%s: %s not implemented in this version (see docs/roadmap.md)", function,
             feature);
    return um_error(UM_EOPNOTSUPP, "CoreApi-9001-1", "%s", error->text);
}

void um_not_implemented_void(enum um_module module, const char *function, const char *feature)
{
    (void)um_not_implemented(module, function, feature);
    um_log(UM_LOG_WARNING, "CoreApi-9001-2", "%s", module_errors[module].text);
}

int um_module_errnum(enum um_module module)
{
    return module_errors[module].errnum;
}

const char *um_module_errmsg(enum um_module module)
{
    return module_errors[module].text;
}
