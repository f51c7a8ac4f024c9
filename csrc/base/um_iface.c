/* Network interfaces: enumeration, parsing of the textual forms and the default
 * choice. Owns the record of choices already logged. Any thread. */
#define _GNU_SOURCE
#include "base/um_fork.h"
#include "base/um_iface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"

#define UM_IFACE_ROLES 16
#define UM_IFACE_TEXT 512

static bool um_iface_usable(const struct ifaddrs *ifa)
{
    return ifa->ifa_addr != NULL && ifa->ifa_addr->sa_family == AF_INET;
}

static void um_iface_fill(struct um_iface *out, const struct ifaddrs *ifa)
{
    *out = (struct um_iface){.addr = ((const struct sockaddr_in *)ifa->ifa_addr)->sin_addr,
                             .up = (ifa->ifa_flags & IFF_UP) != 0,
                             .loopback = (ifa->ifa_flags & IFF_LOOPBACK) != 0,
                             .multicast = (ifa->ifa_flags & IFF_MULTICAST) != 0,
                             .index = if_nametoindex(ifa->ifa_name)};
    if (ifa->ifa_netmask != NULL) {
        out->netmask = ((const struct sockaddr_in *)ifa->ifa_netmask)->sin_addr;
    }
    snprintf(out->name, sizeof out->name, "%s", ifa->ifa_name);
}

int um_iface_list(struct um_iface **out)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0) {
        return um_error_os(errno, "CoreApi-1020-1", "listing the network interfaces");
    }
    int count = 0;
    for (const struct ifaddrs *ifa = all; ifa != NULL; ifa = ifa->ifa_next) {
        count += um_iface_usable(ifa);
    }
    struct um_iface *list = um_calloc((size_t)count, sizeof *list);
    if (list == NULL) {
        freeifaddrs(all);
        return um_error_nomem("interface list", (unsigned long)count * sizeof *list);
    }
    int i = 0;
    for (const struct ifaddrs *ifa = all; ifa != NULL; ifa = ifa->ifa_next) {
        if (um_iface_usable(ifa)) {
            um_iface_fill(&list[i++], ifa);
        }
    }
    freeifaddrs(all);
    *out = list;
    return count;
}

static uint32_t um_iface_mask(int bits)
{
    return bits == 0 ? 0 : htonl(UINT32_MAX << (32 - bits));
}

static const char *um_iface_ntop(struct in_addr addr, char text[INET_ADDRSTRLEN])
{
    return inet_ntop(AF_INET, &addr, text, INET_ADDRSTRLEN);
}

/* Append "name a.b.c.d", separated by ", ". */
static void um_iface_append(char *text, size_t size, const struct um_iface *iface)
{
    char addr[INET_ADDRSTRLEN];
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s %s", used != 0 ? ", " : "", iface->name, um_iface_ntop(iface->addr, addr));
}

int um_iface_match(uint32_t addr_net, int bits, struct um_iface *out)
{
    if (addr_net == htonl(INADDR_ANY)) {
        *out = (struct um_iface){.name = "any", .addr.s_addr = addr_net, .up = true};
        return 0;
    }
    if (bits < 0 || bits > 32) {
        return um_error(UM_EINVAL, "CoreApi-1020-2", "interface: prefix length %d: must be 0..32", bits);
    }
    struct um_iface *list;
    int count = um_iface_list(&list);
    if (count < 0) {
        return -1;
    }
    uint32_t mask = um_iface_mask(bits);
    int matches = 0;
    char others[UM_IFACE_TEXT] = "";
    for (int i = 0; i < count; i++) {
        if ((list[i].addr.s_addr & mask) != (addr_net & mask)) {
            continue;
        }
        if (matches++ == 0) {
            *out = list[i];
        } else {
            um_iface_append(others, sizeof others, &list[i]);
        }
    }
    um_free(list);
    char addr[INET_ADDRSTRLEN];
    um_iface_ntop((struct in_addr){addr_net}, addr);
    if (matches == 0) {
        return um_error(
            UM_EINVAL, "CoreApi-1020-3",
            "interface %s/%d: no interfaces matching criteria; see `ip -4 addr` for the addresses of this host", addr,
            bits);
    }
    if (matches > 1) {
        char chosen[INET_ADDRSTRLEN];
        um_log(UM_LOG_WARNING, "Core-5688-4099",
               "multiple interfaces match criteria %s/%d - will use [%s][%s]; others: %s", addr, bits, out->name,
               um_iface_ntop(out->addr, chosen), others);
    }
    return 0;
}

/* "eth0" in double quotes, the quotes already removed. */
static int um_iface_parse_device(const char *name, uint32_t *addr_net, int *bits)
{
    struct um_iface *list;
    int count = um_iface_list(&list);
    if (count < 0) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            *addr_net = list[i].addr.s_addr;
            *bits = 32;
            um_free(list);
            return 0;
        }
    }
    um_free(list);
    return um_error(UM_EINVAL, "CoreApi-1020-4", "interface \"%s\": no interface of this name has an IPv4 address",
                    name);
}

static int um_iface_resolve(const char *host, struct in_addr *out)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0) {
        return um_error(UM_EINVAL, "CoreApi-1020-5",
                        "interface %s: is neither an address nor a known host (%s); a device name needs double quotes",
                        host, gai_strerror(rc));
    }
    *out = ((const struct sockaddr_in *)found->ai_addr)->sin_addr;
    freeaddrinfo(found);
    return 0;
}

static int um_iface_parse_bits(const char *text, const char *digits, int *bits)
{
    char *end;
    errno = 0;
    long value = strtol(digits, &end, 10);
    if (errno != 0 || end == digits || *end != '\0' || value < 0 || value > 32) {
        return um_error(UM_EINVAL, "CoreApi-1020-6", "interface %s: prefix length must be 0..32", text);
    }
    *bits = (int)value;
    return 0;
}

int um_iface_parse(const char *text, uint32_t *addr_net, int *bits)
{
    char host[256];
    size_t len = strlen(text);
    if (len == 0 || len >= sizeof host) {
        return um_error(UM_EINVAL, "CoreApi-1020-7",
                        "interface \"%.40s\": must be a.b.c.d, a.b.c.d/bits, a host name or a quoted device", text);
    }
    if (text[0] == '"') {
        if (len < 3 || text[len - 1] != '"') {
            return um_error(UM_EINVAL, "CoreApi-1020-8", "interface %s: the closing quote of the device is missing",
                            text);
        }
        snprintf(host, sizeof host, "%.*s", (int)(len - 2), text + 1);
        return um_iface_parse_device(host, addr_net, bits);
    }
    int prefix = 32;
    snprintf(host, sizeof host, "%s", text);
    char *slash = strchr(host, '/');
    if (slash != NULL) {
        *slash = '\0';
        if (um_iface_parse_bits(text, slash + 1, &prefix) < 0) {
            return -1;
        }
    }
    struct in_addr addr;
    if (inet_pton(AF_INET, host, &addr) != 1 && um_iface_resolve(host, &addr) < 0) {
        return -1;
    }
    if (addr.s_addr == htonl(INADDR_ANY)) {
        *addr_net = addr.s_addr;
        *bits = 0;
        return 0;
    }
    struct um_iface iface;
    if (um_iface_match(addr.s_addr, prefix, &iface) < 0) {
        return -1;
    }
    *addr_net = iface.addr.s_addr;
    *bits = prefix;
    return 0;
}

static pthread_mutex_t choices_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(choices_lock)

/* True the first time a role settles on this address. */
static bool um_iface_choice_is_news(const char *role, struct in_addr addr)
{
    static struct {
        char role[64];
        struct in_addr addr;
    } known[UM_IFACE_ROLES];
    bool news = true;
    pthread_mutex_lock(&choices_lock);
    for (int i = 0; i < UM_IFACE_ROLES; i++) {
        if (known[i].role[0] == '\0' || strcmp(known[i].role, role) == 0) {
            news = known[i].role[0] == '\0' || known[i].addr.s_addr != addr.s_addr;
            snprintf(known[i].role, sizeof known[i].role, "%s", role);
            known[i].addr = addr;
            break;
        }
    }
    pthread_mutex_unlock(&choices_lock);
    return news;
}

static void um_iface_log_choice(const char *option, const struct um_iface *chosen, int candidates, const char *others)
{
    char addr[INET_ADDRSTRLEN];
    um_iface_ntop(chosen->addr, addr);
    if (candidates == 0) {
        um_log(UM_LOG_WARNING, "Core-5688-4107",
               "%s: no interface is up, multicast-capable and not loopback: using loopback [%s][%s], nothing leaves "
               "this host "
               "(passed over: %s); set %s to choose",
               option, chosen->name, addr, others[0] != '\0' ? others : "none", option);
    } else if (candidates == 1) {
        um_log(UM_LOG_INFO, "Core-1020-9",
               "%s: using [%s][%s], the only interface that is up, multicast-capable and not loopback (others: %s)",
               option, chosen->name, addr, others[0] != '\0' ? others : "none");
    } else {
        um_log(UM_LOG_WARNING, "Core-5688-1833",
               "%s: host has %d multicast-capable interfaces; going to use [%s][%s], the first that is up and not "
               "loopback "
               "(others: %s); set %s to choose",
               option, candidates, chosen->name, addr, others, option);
    }
}

int um_iface_default_multicast(const char *option_name, struct um_iface *out)
{
    struct um_iface *list;
    int count = um_iface_list(&list);
    if (count < 0) {
        return -1;
    }
    int candidates = 0, loopback = -1, chosen = -1;
    for (int i = 0; i < count; i++) {
        if (list[i].up && list[i].multicast && !list[i].loopback) {
            chosen = candidates++ == 0 ? i : chosen;
        } else if (list[i].up && list[i].loopback && loopback < 0) {
            loopback = i;
        }
    }
    chosen = chosen >= 0 ? chosen : loopback;
    if (chosen < 0) {
        um_free(list);
        return um_error(UM_EINVAL, "CoreApi-5688-4110",
                        "%s: no default multicast interface available: no interface with an IPv4 address is up",
                        option_name);
    }
    *out = list[chosen];
    char others[UM_IFACE_TEXT] = "";
    for (int i = 0; i < count; i++) {
        if (i != chosen) {
            um_iface_append(others, sizeof others, &list[i]);
        }
    }
    um_free(list);
    if (um_iface_choice_is_news(option_name, out->addr)) {
        um_iface_log_choice(option_name, out, candidates, others);
    }
    return 0;
}
