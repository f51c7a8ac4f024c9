/* Fuzz target: plain-text configuration from memory. Host names resolve to nothing, so no input reaches the network. */
#include <stddef.h>
#include <stdint.h>

#include "base/um_log.h"
#include "config/um_attr.h"
#include "config/um_config.h"
#include "config/um_option_value.h"

static int no_host(const char *name, struct in_addr *out)
{
    return -1;
}

static int no_log(int level, const char *message, void *clientd)
{
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    um_option_set_host_resolver(no_host);
    um_log_set_proc(no_log, NULL);
    um_config_reset();
    um_config_text("fuzz", (const char *)data, size, NULL);
    struct um_source_options source;
    struct um_context_options context;
    if (um_context_options_resolve(NULL, &context) == 0) {
        um_options_clear(UM_SCOPE_CONTEXT, &context);
    }
    if (um_source_options_resolve(NULL, NULL, 0, "topic", &source) == 0) {
        um_options_clear(UM_SCOPE_SOURCE, &source);
    }
    static lbm_config_option_t dump[256];
    enum um_option_scope scope = size % UM_SCOPE_COUNT;
    struct um_attr attr;
    int count = 256;
    if (um_config_attr_current(&attr, scope) == 0) {
        um_options_dump(scope, attr.options, &count, dump);
        um_attr_clear(&attr);
    }
    return 0;
}
