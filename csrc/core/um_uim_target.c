/* Reading the targets of unicast immediate messages. See um_uim_target.h. */
#include "core/um_uim_target.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

#include "base/um_error.h"
#include "wire/um_source_string.h"

static int bad_target(const char *text, const char *api, const char *why)
{
    return um_error(UM_EINVAL, "CoreApi-20222-1",
                    "%s: target \"%.100s\"%s: must be TCP:ip:port, TCP:domain:ip:port or SOURCE:source-string, as in "
                    "TCP:10.1.2.3:14391",
                    api, text, why);
}

/* Decimal digits up to the end of the text or a colon, which is stepped over. */
static bool read_number(const char **at, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;
    const char *p = *at;
    if (*p < '0' || *p > '9') {
        return false;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (uint64_t)(*p - '0');
        if (value > max) {
            return false;
        }
    }
    if (*p != ':' && *p != '\0') {
        return false;
    }
    *at = *p == ':' ? p + 1 : p;
    *out = (uint32_t)value;
    return true;
}

static bool read_address(const char **at, uint32_t *out)
{
    char text[INET_ADDRSTRLEN];
    size_t len = strcspn(*at, ":");
    struct in_addr addr;
    if (len >= sizeof text || (*at)[len] != ':') {
        return false;
    }
    memcpy(text, *at, len);
    text[len] = '\0';
    if (inet_pton(AF_INET, text, &addr) != 1) {
        return false;
    }
    *at += len + 1;
    *out = addr.s_addr;
    return true;
}

static int parse_address(const char *text, const char *rest, struct um_uim_target *out, const char *api)
{
    uint32_t port = 0;
    const char *at = rest;
    if (!read_address(&at, &out->ip)) {
        at = rest;
        if (!read_number(&at, UINT32_MAX, &out->domain) || !read_address(&at, &out->ip)) {
            return bad_target(text, api, "");
        }
    }
    const char *last = at;
    if (!read_number(&at, UINT16_MAX, &port) || strchr(last, ':') != NULL) {
        return bad_target(text, api, ": its port");
    }
    if (out->ip == INADDR_ANY || port == 0) {
        return bad_target(text, api, port == 0 ? ": port 0 (the context has no request port)" : ": address 0.0.0.0");
    }
    out->kind = UM_UIM_TO_ADDRESS;
    out->port = (uint16_t)port;
    return 0;
}

int um_uim_target_parse(const char *text, struct um_uim_target *out, const char *api)
{
    memset(out, 0, sizeof *out);
    if (text == NULL || text[0] == '\0') {
        return bad_target("", api, text == NULL ? " (NULL)" : "");
    }
    if (strncmp(text, "TCP:", 4) == 0) {
        return parse_address(text, text + 4, out, api);
    }
    if (strncmp(text, "SOURCE:", 7) == 0) {
        out->kind = UM_UIM_TO_SOURCE;
        return um_source_string_parse(text + 7, &out->source) == 0
                   ? 0
                   : bad_target(text, api, ": what follows SOURCE: is not a source string");
    }
    return bad_target(text, api, "");
}
