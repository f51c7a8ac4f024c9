/* LBMR faults: which counter each adds to and the operator's log line.
 * Called by the resolver engine and lbmrd when a datagram is dropped.
 * Pure functions, any thread. */
#include "wire/um_lbmr.h"

#include <stdio.h>

enum fault_shape { ORIGIN_ONLY, DETAIL_DECIMAL, DETAIL_HEX, VALUE_ORIGIN_LEN, BARE };

struct fault_row {
    const char *id;
    enum um_lbmr_counter counter;
    enum fault_shape shape;
    const char *text;
};

#define MALFORMED UM_LBMR_COUNT_MALFORMED

static const struct fault_row fault_rows[UM_LBMR_FAULT_COUNT] = {
    [UM_LBMR_OK] = {"", MALFORMED, BARE, ""},
    [UM_LBMR_FAULT_SHORT] = {"Core-5688-3378", MALFORMED, ORIGIN_ONLY, "LBMR packet malformed. Dropping. "},
    [UM_LBMR_FAULT_VERSION] = {"Core-5688-3377", UM_LBMR_COUNT_VERSION, VALUE_ORIGIN_LEN, "LBMR Version"},
    [UM_LBMR_FAULT_TRAILER_LAST] = {"Core-5688-3379", MALFORMED, ORIGIN_ONLY,
                                    "LBMR optlen malformed. Dropping packet. "},
    [UM_LBMR_FAULT_TRAILER_TOTAL] = {"Core-5688-3380", MALFORMED, ORIGIN_ONLY,
                                     "LBMR optlen total_len malformed. Dropping packet. "},
    [UM_LBMR_FAULT_TRAILER_ZERO] = {"Core-5937-1", MALFORMED, ORIGIN_ONLY,
                                    "Invalid 0-length LBMR option. Dropping packet. "},
    [UM_LBMR_FAULT_TRAILER_UNKNOWN] = {"Core-5688-3383", MALFORMED, DETAIL_DECIMAL, "LBMR option invalid type"},
    [UM_LBMR_FAULT_TRAILER_DOMAIN] = {"Core-6259-6", MALFORMED, DETAIL_DECIMAL, "LBMR Domain ID option invalid len"},
    [UM_LBMR_FAULT_TYPE] = {"Core-5688-3384", UM_LBMR_COUNT_TYPE, VALUE_ORIGIN_LEN, "LBMR Type"},
    [UM_LBMR_FAULT_EXT_TYPE] = {"Core-5688-3387", UM_LBMR_COUNT_TYPE, VALUE_ORIGIN_LEN, "LBMR Extended Type"},
    [UM_LBMR_FAULT_TQR] = {"Core-5937-2", MALFORMED, ORIGIN_ONLY,
                           "LBMR Topic Query Record malformed. Dropping remainder. "},
    [UM_LBMR_FAULT_TIR] = {"Core-5937-3", MALFORMED, ORIGIN_ONLY,
                           "LBMR Topic Info Record malformed. Dropping remainder. "},
    [UM_LBMR_FAULT_OPTION_FIRST] = {"Core-5688-3388", MALFORMED, BARE,
                                    "LBMR Topic Info Record Option not Length. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_LENGTH] = {"Core-5688-3389", MALFORMED, BARE,
                                     "LBMR Topic Info Record Length Option not correct size. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_SMALL] = {"Core-5688-3390", MALFORMED, BARE,
                                    "LBMR Topic Info Record Total Length not large enough. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_LARGE] = {"Core-5872-1", MALFORMED, BARE,
                                    "LBMR Topic Info Record Total Length too large. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_ZERO] = {"Core-5937-6", MALFORMED, BARE,
                                   "LBMR Topic Info Record option length invalid. Dropping Remainder."},
    [UM_LBMR_FAULT_OPTION_UME] = {"Core-5688-3391", MALFORMED, BARE,
                                  "LBMR Topic Info Record UME Option not correct size. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_LATE_JOIN] = {"Core-5688-3392", MALFORMED, BARE,
                                        "LBMR Topic Info Record Late Join Option not correct size. "
                                        "Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_STORE] = {"Core-5688-3393", MALFORMED, BARE,
                                    "LBMR Topic Info Record UME Store Option not correct size. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_STORE_GROUP] = {"Core-5688-3394", MALFORMED, BARE,
                                          "LBMR Topic Info Record UME Store Group Option not correct size. "
                                          "Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_EXFUNC] = {"Core-6361-130", MALFORMED, BARE,
                                     "LBMR Topic Info Record EXFUNC Option not correct size. Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_UNKNOWN] = {"Core-5688-3397", MALFORMED, BARE,
                                      "LBMR Topic Info Record Option not understood and does not have ignore. "
                                      "Dropping remainder."},
    [UM_LBMR_FAULT_OPTION_SUM] = {"Core-5688-3398", MALFORMED, BARE,
                                  "LBMR Topic Info Record Option length incongruent. Dropping remainder."},
    [UM_LBMR_FAULT_TOPIC_MGMT] = {"Core-5688-3400", MALFORMED, BARE,
                                  "LBMR Topic Mgmt Record Length not correct size. Dropping remainder."},
    [UM_LBMR_FAULT_RCTX] = {"Core-6759-1", MALFORMED, ORIGIN_ONLY, "LBMR RCTXINFO packet malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_LEN] = {"Core-6759-2", MALFORMED, ORIGIN_ONLY, "LBMR RCTXINFO len malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_RECORD] = {"Core-6759-3", MALFORMED, ORIGIN_ONLY,
                                   "LBMR RCTXINFO rec len malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_ADDRESS] = {"Core-6759-4", MALFORMED, ORIGIN_ONLY,
                                    "LBMR RCTXINFO address malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_INSTANCE] = {"Core-6759-5", MALFORMED, ORIGIN_ONLY,
                                     "LBMR RCTXINFO instance malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_DOMAIN] = {"Core-6759-6", MALFORMED, ORIGIN_ONLY,
                                   "LBMR RCTXINFO odomain malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_NAME] = {"Core-6759-7", MALFORMED, ORIGIN_ONLY, "LBMR RCTXINFO name malformed. Dropping. "},
    [UM_LBMR_FAULT_RCTX_OPTION] = {"Core-6759-8", MALFORMED, DETAIL_HEX, "LBMR RCTXINFO unknown opt"},
    [UM_LBMR_FAULT_ROUTE_DOMAIN] = {"Core-10164-1", MALFORMED, ORIGIN_ONLY,
                                    "LBMR remote domain route with domain ID 0. Dropping. "},
    [UM_LBMR_FAULT_ROUTE_SHORT] = {"Core-6259-9", MALFORMED, ORIGIN_ONLY,
                                   "LBMR remote domain route length does not match its domains. Dropping. "},
    [UM_LBMR_FAULT_ROUTE_LEN] = {"Core-6259-10", MALFORMED, ORIGIN_ONLY,
                                 "LBMR remote domain route length does not match the datagram. Dropping. "},
};

const char *um_lbmr_fault_id(enum um_lbmr_fault fault)
{
    return fault_rows[fault].id;
}

enum um_lbmr_counter um_lbmr_fault_counter(enum um_lbmr_fault fault)
{
    return fault_rows[fault].counter;
}

void um_lbmr_fault_text(enum um_lbmr_fault fault, unsigned detail, const char *origin, unsigned port, size_t len,
                        char *out, size_t out_len)
{
    const struct fault_row *row = &fault_rows[fault];
    switch (row->shape) {
    case ORIGIN_ONLY:
        snprintf(out, out_len, "%sOrigin: %s:%u", row->text, origin, port);
        break;
    case DETAIL_DECIMAL:
        snprintf(out, out_len, "%s [%u]. Dropping packet. Origin: %s:%u", row->text, detail, origin, port);
        break;
    case DETAIL_HEX:
        snprintf(out, out_len, "%s 0x%02x. Dropping. Origin: %s:%u", row->text, detail, origin, port);
        break;
    case VALUE_ORIGIN_LEN:
        snprintf(out, out_len, "%s 0x%x incorrect (%s:%u len %zu). Dropping.", row->text, detail, origin, port, len);
        break;
    default:
        snprintf(out, out_len, "%s", row->text);
        break;
    }
}
