/* Where addresses and ports stand in advertisements, for those who forward them: lbmrd, which puts in the sender's
 * address and translates for other networks. Lengths have been checked by um_lbmr_next_tir. Pure functions, any
 * thread. */
#include "wire/um_lbmr.h"
#include "wire/um_transport_place.h"

struct pair {
    uint8_t ip, port; /* offsets in the option */
    bool of_store;
};

#define MOST_PAIRS 2

/* ip 0: none. */
static const struct pair option_pairs[][MOST_PAIRS] = {
    [UM_LBMR_OPT_UME] = {{.ip = 8, .port = 4, .of_store = true}, {.ip = 12, .port = 6}},
    [UM_LBMR_OPT_STORE] = {{.ip = 8, .port = 4, .of_store = true}},
    [UM_LBMR_OPT_LATE_JOIN] = {{.ip = 8, .port = 4}},
    [UM_LBMR_OPT_ULB] = {{.ip = 20, .port = 24}},
    [UM_LBMR_OPT_EXFUNC] = {{.ip = 8, .port = 4}},
};

#define OPTION_TYPES (sizeof option_pairs / sizeof option_pairs[0])

/* False: the transport has no address. */
static bool transport_place(const uint8_t *data, const struct um_lbmr_tir *tir, struct um_lbmr_place *out)
{
    if (!tir->transport.known || um_transport_place(tir->transport.code) == UM_PLACE_MEMORY) {
        return false;
    }
    size_t info = (size_t)(tir->info.ptr - data);
    *out = (struct um_lbmr_place){.ip = info, .port = info + tir->info.len - 2, .of_transport = true};
    return true;
}

bool um_lbmr_next_place(const uint8_t *data, const struct um_lbmr_tir *tir, struct um_lbmr_places *places,
                        struct um_lbmr_place *out)
{
    if (!places->transport_done) {
        places->transport_done = true;
        if (transport_place(data, tir, out)) {
            return true;
        }
    }
    while (places->option < tir->options.len) {
        const uint8_t *option = tir->options.ptr + places->option;
        const struct pair *pair =
            option[0] < OPTION_TYPES && places->pair < MOST_PAIRS ? &option_pairs[option[0]][places->pair] : NULL;
        if (pair == NULL || pair->ip == 0) {
            places->option += option[1];
            places->pair = 0;
            continue;
        }
        size_t at = (size_t)(option - data);
        *out = (struct um_lbmr_place){.ip = at + pair->ip, .port = at + pair->port, .of_store = pair->of_store};
        places->pair++;
        return true;
    }
    return false;
}

static unsigned substitute(uint8_t *field, uint32_t ip)
{
    static const uint8_t zero[4];
    if (memcmp(field, zero, 4) != 0) {
        return 0;
    }
    memcpy(field, &ip, 4);
    return 1;
}

unsigned um_lbmr_substitute_address(uint8_t *data, size_t len, uint32_t ip)
{
    struct um_lbmr_msg msg;
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tir tir;
    unsigned detail, replaced = 0;
    if (um_lbmr_parse(data, len, &msg, &detail) != UM_LBMR_OK) {
        return 0;
    }
    um_lbmr_records(&msg, &cursor);
    um_lbmr_skip_tqrs(&cursor);
    while (um_lbmr_next_tir(&cursor, &tir)) {
        struct um_lbmr_places places = {0};
        struct um_lbmr_place place;
        while (um_lbmr_next_place(data, &tir, &places, &place)) {
            replaced += place.of_store ? 0 : substitute(data + place.ip, ip);
        }
    }
    return replaced;
}
