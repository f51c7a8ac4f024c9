/* LBMSRS, the messages of TCP topic resolution between contexts and the SRS:
 * decoding, encoding, validation. Frames around them: um_rsocket.h. Pure
 * functions on byte slices, any thread. IPv4 addresses are in network byte order
 * as they stand in the packet, every other number is in host order. */
#ifndef UM_WIRE_UM_LBMSRS_H
#define UM_WIRE_UM_LBMSRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"

#define UM_LBMSRS_PORT 27000
#define UM_LBMSRS_PROTOCOL_VERSION 1    /* registration and the records 4 to 12 */
#define UM_LBMSRS_PROTOCOL_EXTENSIONS 2 /* announced by who also knows the records 13 to 18 */
#define UM_LBMSRS_OTID_LEN 32
#define UM_LBMSRS_INSTANCE_LEN 8
#define UM_LBMSRS_STRING_MAX 254    /* longest topic, pattern, source string or name, without its NUL */
#define UM_LBMSRS_RECORD_MAX 609    /* a source record with the longest strings */
#define UM_LBMSRS_ROUTE_DOMAINS 256 /* domains of one route that are taken from the wire */

enum um_lbmsrs_id {
    UM_LBMSRS_REGISTRATION_REQUEST = 1,
    UM_LBMSRS_REGISTRATION_RESPONSE = 2,
    UM_LBMSRS_STREAM_REQUEST = 3,
    UM_LBMSRS_SIR = 4, /* source info; with a negative cost the SER, source end */
    UM_LBMSRS_SDR = 5, /* source delete */
    UM_LBMSRS_RIR = 6, /* receiver info */
    UM_LBMSRS_RDR = 7, /* receiver delete */
    UM_LBMSRS_RER = 8, /* receiver end */
    UM_LBMSRS_WIR = 9, /* the same of wildcard receivers */
    UM_LBMSRS_WDR = 10,
    UM_LBMSRS_WER = 11,
    UM_LBMSRS_SLR = 12,  /* source leave */
    UM_LBMSRS_CNQR = 13, /* extension records: context name query */
    UM_LBMSRS_CNIR = 14, /* context name info */
    UM_LBMSRS_CNER = 15, /* context name end */
    UM_LBMSRS_DIR = 16,  /* domain info */
    UM_LBMSRS_RTIR = 17, /* route info */
    UM_LBMSRS_RTER = 18  /* route end */
};

enum um_lbmsrs_app_type { UM_LBMSRS_APPLICATION = 0, UM_LBMSRS_ROUTER = 1, UM_LBMSRS_STORE = 2 };

enum um_lbmsrs_interest_mode {
    UM_LBMSRS_FLOOD = 0,
    UM_LBMSRS_FILTER = 1,
    UM_LBMSRS_FLOOD_FORWARD = 2, /* routers: other clients' interest is forwarded to them */
    UM_LBMSRS_FILTER_FORWARD = 3
};

#define UM_LBMSRS_FUNC_LATE_JOIN 0x1u
#define UM_LBMSRS_FUNC_UME 0x2u
#define UM_LBMSRS_FUNC_UMQ 0x4u
#define UM_LBMSRS_FUNC_ULB 0x8u
#define UM_LBMSRS_COST_END (-1)

/* ---- messages 1, 2, 3: alone in their frame, of exact length ------------- */

#define UM_LBMSRS_REQUEST_LEN 23
#define UM_LBMSRS_RESPONSE_LEN 15
#define UM_LBMSRS_STREAM_REQUEST_LEN 3

struct um_lbmsrs_request {
    uint8_t app_type;
    uint32_t client_addr; /* network order */
    uint16_t client_port;
    uint32_t session_id;
    uint32_t host_id;
    uint8_t protocol_version;
    uint8_t interest_mode;
    uint32_t local_domain_id;
};

struct um_lbmsrs_response {
    uint64_t client_id;
    uint32_t local_domain_id;
    uint8_t protocol_version;
};

/* False: another message ID or another length. Values are not judged. */
bool um_lbmsrs_decode_request(struct um_slice data, struct um_lbmsrs_request *out);
bool um_lbmsrs_decode_response(struct um_slice data, struct um_lbmsrs_response *out);
bool um_lbmsrs_is_stream_request(struct um_slice data);
/* `out` has room for the message's length. */
void um_lbmsrs_put_request(uint8_t *out, const struct um_lbmsrs_request *request);
void um_lbmsrs_put_response(uint8_t *out, const struct um_lbmsrs_response *response);
void um_lbmsrs_put_stream_request(uint8_t *out);

/* ---- records 4 to 12 ------------------------------------------------------ */

/* One record; members it does not have are zero. Strings are without their NUL; of decoded ones the NUL follows in
 * the batch, so `ptr` is a C string. */
struct um_lbmsrs_record {
    uint16_t id;
    const uint8_t *otid;    /* SIR, SDR, SLR: 32 bytes */
    struct um_slice topic;  /* or the pattern */
    struct um_slice source; /* SIR, SLR: source string without topic index */
    uint32_t host_id;       /* SIR, to the next blank line */
    uint32_t topic_index;
    uint32_t functionality_flags;
    uint32_t request_ip; /* network order */
    uint16_t request_port;
    uint8_t encryption;  /* 0 none, 1 TLS */
    uint8_t compression; /* 0 none, 1 LZ4 */
    uint32_t ulb_source_id, ulb_queue_id;
    uint64_t ulb_registration_id;
    uint16_t ttl;
    int32_t cost; /* negative: source end record */

    uint32_t domain_id;              /* SIR, receiver and wildcard receiver records */
    const uint8_t *context_instance; /* all but SDR: 8 bytes */
    uint8_t context_type;            /* enum um_lbmsrs_app_type */
    uint32_t version, version_flags;
};

static inline bool um_lbmsrs_is_end(const struct um_lbmsrs_record *record)
{
    return record->id == UM_LBMSRS_SIR && record->cost < 0;
}

enum um_lbmsrs_rc {
    UM_LBMSRS_OK,
    UM_LBMSRS_DONE,       /* the batch is used up */
    UM_LBMSRS_UNKNOWN,    /* not one of the record IDs: where the next one would begin is unknown */
    UM_LBMSRS_SHORT,      /* ends inside the record */
    UM_LBMSRS_BAD_STRING, /* not ended by its NUL, or one inside it, or an empty topic, pattern or name */
    UM_LBMSRS_BAD_VALUE   /* a route or domain record with domain 0, or with more domains than are taken */
};

/* The next record of the batch, which moves on. After anything but OK the rest of the batch is of no use. */
enum um_lbmsrs_rc um_lbmsrs_next(struct um_slice *batch, struct um_lbmsrs_record *out);

/* Bytes the record takes; 0: unknown ID, a string too long or empty where it must not be, or a pointer missing. */
size_t um_lbmsrs_len(const struct um_lbmsrs_record *record);
/* Writes it; 0: no room, or um_lbmsrs_len() is 0. */
size_t um_lbmsrs_put(const struct um_lbmsrs_record *record, uint8_t *out, size_t room);

/* Name of a record for logs: "SIR", "SER", ... */
const char *um_lbmsrs_name(const struct um_lbmsrs_record *record);

/* ---- extension records 13 to 18, in METADATA_PUSH frames ------------------ */

struct um_lbmsrs_ext {
    uint16_t id;
    struct um_slice name; /* CNQR, CNIR, CNER; without its NUL */
    uint32_t domain_id;   /* CNQR, CNIR, DIR */
    uint32_t route_index; /* RTIR, RTER */
    uint32_t ip;          /* CNIR, RTIR, RTER; network order */
    uint16_t port;
    const uint8_t *origin_instance; /* all but CNQR: 8 bytes */
    struct um_slice domains;        /* RTIR: the domain IDs as on the wire, see um_lbmsrs_ext_domain() */
};

enum um_lbmsrs_rc um_lbmsrs_ext_next(struct um_slice *batch, struct um_lbmsrs_ext *out);
size_t um_lbmsrs_ext_len(const struct um_lbmsrs_ext *record);
size_t um_lbmsrs_ext_put(const struct um_lbmsrs_ext *record, uint8_t *out, size_t room);

static inline size_t um_lbmsrs_ext_domain_count(const struct um_lbmsrs_ext *record)
{
    return record->domains.len / 4;
}

static inline uint32_t um_lbmsrs_ext_domain(const struct um_lbmsrs_ext *record, size_t at)
{
    return um_get32(record->domains.ptr + 4 * at);
}

#endif
