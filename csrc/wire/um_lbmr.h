/* LBMR, the UDP protocol of topic resolution: decoding, encoding, validation.
 * Pure functions on byte slices; used by the resolver engine, the lbmrd daemon
 * and tools. No state, any thread. IPv4 addresses are in network byte order as
 * they stand in the packet, every other number is in host order. */
#ifndef UM_WIRE_LBMR_H
#define UM_WIRE_LBMR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"

#define UM_LBMR_HEADER_LEN 4
#define UM_LBMR_NAME_MAX 255   /* longest name accepted from the wire, without its NUL */
#define UM_LBMR_TRAILER_MAX 36 /* every trailer option, option-length option included */
#define UM_LBMR_TIR_MAX 768    /* no record this library builds is longer */
#define UM_LBMR_OPTIONS_PRESENT 0x08

enum um_lbmr_type {
    UM_LBMR_NORMAL = 0,
    UM_LBMR_WC_TQRS = 1,
    UM_LBMR_UCAST_RCV_ALIVE = 2,
    UM_LBMR_UCAST_SRC_ALIVE = 3,
    UM_LBMR_TOPIC_MGMT = 4,
    UM_LBMR_QUEUE_RES = 6,
    UM_LBMR_EXT = 7
};

enum um_lbmr_ext_type {
    UM_LBMR_EXT_PSER = 1,
    UM_LBMR_EXT_QUEUE_MGMT = 2,
    UM_LBMR_EXT_CTXINFO = 3,
    UM_LBMR_EXT_REQUEST = 4,
    UM_LBMR_EXT_GATEWAY = 5,
    UM_LBMR_EXT_ROUTE = 6,
    UM_LBMR_EXT_RCTXINFO = 7
};

enum um_lbmr_transport_code {
    UM_LBMR_TCP = 0x00,
    UM_LBMR_LBTRU = 0x01,
    UM_LBMR_TCP6 = 0x02,
    UM_LBMR_LBTSMX = 0x04,
    UM_LBMR_LBTRM = 0x10,
    UM_LBMR_PGM = 0x11,
    UM_LBMR_LBTRDMA = 0x20,
    UM_LBMR_LBTIPC = 0x40
};

/* ---- faults ------------------------------------------------------------ */

/* Why a datagram, or the rest of it, is not used. One per row of the validation table. */
enum um_lbmr_fault {
    UM_LBMR_OK = 0,
    UM_LBMR_FAULT_SHORT,           /* no room for a header, or an extended message shorter than its fixed part */
    UM_LBMR_FAULT_VERSION,         /* detail: the version */
    UM_LBMR_FAULT_TRAILER_LAST,    /* the last trailer option is not a proper option length */
    UM_LBMR_FAULT_TRAILER_TOTAL,   /* the trailer's total length does not fit the datagram or its options */
    UM_LBMR_FAULT_TRAILER_ZERO,    /* an option of length 0 */
    UM_LBMR_FAULT_TRAILER_UNKNOWN, /* detail: the option type */
    UM_LBMR_FAULT_TRAILER_DOMAIN,  /* detail: the option length */
    UM_LBMR_FAULT_TYPE,            /* detail: the type */
    UM_LBMR_FAULT_EXT_TYPE,        /* detail: the extended type */
    UM_LBMR_FAULT_TQR,
    UM_LBMR_FAULT_TIR,
    UM_LBMR_FAULT_OPTION_FIRST,  /* first TIR option is not the option length */
    UM_LBMR_FAULT_OPTION_LENGTH, /* that option's own length is not 4 */
    UM_LBMR_FAULT_OPTION_SMALL,  /* total length below 4 */
    UM_LBMR_FAULT_OPTION_LARGE,  /* total length beyond the datagram */
    UM_LBMR_FAULT_OPTION_ZERO,   /* an option too short for its own header, or of a wrong length without a row below */
    UM_LBMR_FAULT_OPTION_UME,
    UM_LBMR_FAULT_OPTION_LATE_JOIN,
    UM_LBMR_FAULT_OPTION_STORE,
    UM_LBMR_FAULT_OPTION_STORE_GROUP,
    UM_LBMR_FAULT_OPTION_EXFUNC,
    UM_LBMR_FAULT_OPTION_UNKNOWN,
    UM_LBMR_FAULT_OPTION_SUM, /* options do not end at the total length */
    UM_LBMR_FAULT_TOPIC_MGMT,
    UM_LBMR_FAULT_RCTX, /* header */
    UM_LBMR_FAULT_RCTX_LEN,
    UM_LBMR_FAULT_RCTX_RECORD,
    UM_LBMR_FAULT_RCTX_ADDRESS,
    UM_LBMR_FAULT_RCTX_INSTANCE,
    UM_LBMR_FAULT_RCTX_DOMAIN,
    UM_LBMR_FAULT_RCTX_NAME,
    UM_LBMR_FAULT_RCTX_OPTION,  /* detail: the option type */
    UM_LBMR_FAULT_ROUTE_DOMAIN, /* a domain ID of zero */
    UM_LBMR_FAULT_ROUTE_SHORT,  /* length field and number of domains disagree */
    UM_LBMR_FAULT_ROUTE_LEN,    /* length field and datagram disagree */
    UM_LBMR_FAULT_COUNT
};

enum um_lbmr_counter { UM_LBMR_COUNT_MALFORMED, UM_LBMR_COUNT_VERSION, UM_LBMR_COUNT_TYPE };

/* The operator's line: "<id>: <text>" with %s:%d of the origin filled in by um_lbmr_fault_text. */
const char *um_lbmr_fault_id(enum um_lbmr_fault fault);
enum um_lbmr_counter um_lbmr_fault_counter(enum um_lbmr_fault fault);
/* Writes the text (without the id) into out; origin is "a.b.c.d", port in host order, len the datagram's. */
void um_lbmr_fault_text(enum um_lbmr_fault fault, unsigned detail, const char *origin, unsigned port, size_t len,
                        char *out, size_t out_len);

/* ---- decoding ---------------------------------------------------------- */

#define UM_LBMR_VERSION_UME 0x0001
#define UM_LBMR_VERSION_UMQ 0x0002
#define UM_LBMR_VERSION_TLS 0x0004
#define UM_LBMR_VERSION_COMPRESSION 0x0008

enum um_lbmr_source_type { UM_LBMR_SOURCE_APPLICATION = 0, UM_LBMR_SOURCE_ROUTER = 1, UM_LBMR_SOURCE_STORE = 2 };

struct um_lbmr_trailer {
    bool present;
    bool has_source_id, has_source_type, has_version, has_domain;
    uint8_t source_id[8];
    uint8_t source_type;
    uint16_t version_flags; /* without the ignore bit */
    uint32_t version;
    uint32_t domain_id;
    uint16_t len; /* bytes at the end of the datagram */
};

struct um_lbmr_msg {
    uint8_t version;
    uint8_t type;
    uint8_t ext_type;      /* type EXT only */
    uint8_t tqrs;          /* or QQRs */
    uint16_t tirs;         /* or QIRs */
    struct um_slice bytes; /* the message with its header, without the trailer */
    struct um_lbmr_trailer trailer;
};

/* Header and trailer. On a fault *detail says which value (0 where none applies). */
enum um_lbmr_fault um_lbmr_parse(const uint8_t *data, size_t len, struct um_lbmr_msg *out, unsigned *detail);
/* Is the type, and for EXT the extended type, one that exists? */
enum um_lbmr_fault um_lbmr_check_type(const struct um_lbmr_msg *msg, unsigned *detail);
/* NORMAL without records, or one of the two alive types. */
bool um_lbmr_is_keepalive(const struct um_lbmr_msg *msg);

/* Walks the records of one message. `fault` tells why a walk ended early. */
struct um_lbmr_cursor {
    const uint8_t *ptr;
    const uint8_t *end;
    uint8_t type;
    unsigned tqrs_left;
    unsigned tirs_left; /* also topic management and RCTXINFO records */
    enum um_lbmr_fault fault;
    unsigned detail;
};

struct um_lbmr_tqr {
    const char *name; /* NUL-terminated, inside the datagram */
    size_t len;
    uint8_t pattern_type; /* 0 in a NORMAL message; 1 PCRE, 2 POSIX */
};

/* Transport information block of a TIR. */
struct um_lbmr_transport {
    uint8_t code;
    bool known;        /* false: a code or length this version does not know; skip the record */
    bool session_less; /* old 6-byte form of TCP and LBT-RU */
    uint32_t ip;       /* TCP, LBT-RU, LBT-RM source, RDMA; network order */
    uint32_t group;    /* LBT-RM; network order */
    uint32_t host_id;  /* IPC, SMX */
    uint32_t session_id;
    uint16_t port;         /* TCP/LBT-RU/RDMA port, LBT-RM source unicast port */
    uint16_t dest_port;    /* LBT-RM */
    uint16_t transport_id; /* IPC, SMX */
};

struct um_lbmr_tir {
    const char *name; /* NUL-terminated, inside the datagram */
    size_t name_len;
    uint32_t index;
    uint16_t ttl;
    struct um_slice options; /* after the option-length option; empty when there are none */
    bool has_options;
    struct um_slice info; /* raw transport block */
    struct um_lbmr_transport transport;
};

enum um_lbmr_option_type {
    UM_LBMR_OPT_LENGTH = 0x00,
    UM_LBMR_OPT_UME = 0x01,
    UM_LBMR_OPT_STORE = 0x02,
    UM_LBMR_OPT_STORE_GROUP = 0x03,
    UM_LBMR_OPT_LATE_JOIN = 0x04,
    UM_LBMR_OPT_RCR_INDEX = 0x05,
    UM_LBMR_OPT_QUEUE = 0x06,
    UM_LBMR_OPT_COST = 0x07,
    UM_LBMR_OPT_OTID = 0x08,
    UM_LBMR_OPT_CTXINST = 0x09,
    UM_LBMR_OPT_STORE_CTXINST = 0x0A,
    UM_LBMR_OPT_ULB = 0x0B,
    UM_LBMR_OPT_QUEUE_CTXINST = 0x0C,
    UM_LBMR_OPT_DOMAIN = 0x0D,
    UM_LBMR_OPT_EXFUNC = 0x0E
};

#define UM_LBMR_IGNORE16 0x8000
#define UM_LBMR_IGNORE8 0x80

/* One TIR option, any type. `flags` is as on the wire (u8 or u16 by type). */
struct um_lbmr_option {
    uint8_t type;
    uint16_t flags;
    union {
        struct {
            uint16_t store_port, src_port;
            uint32_t store_ip, src_ip, reg_id, transport_idx, high, low;
        } ume;
        struct {
            uint8_t group;
            uint16_t port, index;
            uint32_t ip, reg_id;
        } store;
        struct {
            uint8_t group;
            uint16_t size;
        } store_group;
        struct {
            uint16_t src_port;
            uint32_t src_ip, transport_idx, high, low;
        } late_join;
        uint32_t rcr_index;
        struct {
            const char *name; /* NUL-terminated */
            size_t len;
        } queue;
        struct {
            uint8_t hops;
            int32_t cost;
        } cost;
        uint8_t otid[32];
        struct {
            uint8_t index;
            uint8_t bytes[8];
        } instance; /* context, store context, queue context */
        struct {
            uint32_t queue_id, src_id, src_ip;
            uint8_t reg_id[8];
            uint16_t src_port;
        } ulb;
        uint32_t domain_id;
        struct {
            uint16_t src_port;
            uint32_t src_ip, functionality;
        } exfunc;
    } u;
};

#define UM_LBMR_EXFUNC_LATE_JOIN 0x1u
#define UM_LBMR_EXFUNC_UME 0x2u
#define UM_LBMR_EXFUNC_UMQ 0x4u
#define UM_LBMR_EXFUNC_ULB 0x8u

/* Start a walk over a NORMAL, WC_TQRS or TOPIC_MGMT message; any other type has no records. */
void um_lbmr_records(const struct um_lbmr_msg *msg, struct um_lbmr_cursor *cursor);
/* Queries come first; false at their end or on a fault. */
bool um_lbmr_next_tqr(struct um_lbmr_cursor *cursor, struct um_lbmr_tqr *out);
/* To the first TIR. */
static inline void um_lbmr_skip_tqrs(struct um_lbmr_cursor *cursor)
{
    struct um_lbmr_tqr tqr;
    while (um_lbmr_next_tqr(cursor, &tqr)) {
    }
}
/* To be called when next_tqr has returned false without a fault. All options of a returned TIR have been validated. */
bool um_lbmr_next_tir(struct um_lbmr_cursor *cursor, struct um_lbmr_tir *out);
/* Walk the options of a TIR from next_tir: start with *offset 0. Unknown options are skipped. */
bool um_lbmr_next_option(const struct um_lbmr_tir *tir, size_t *offset, struct um_lbmr_option *out);

/* Topic management. */
enum um_lbmr_tm_type { UM_LBMR_TM_LEAVE = 0, UM_LBMR_TM_USE = 1 };
#define UM_LBMR_TM_RESPONSE 0x80
#define UM_LBMR_TM_PCRE 0x40
#define UM_LBMR_TM_POSIX 0x20
struct um_lbmr_tmr {
    uint8_t type;
    uint8_t flags;
    const char *name;
    size_t len;
};
bool um_lbmr_next_tmr(struct um_lbmr_cursor *cursor, struct um_lbmr_tmr *out);

#define UM_LBMR_CTX_QUERY 0x8000
#define UM_LBMR_CTX_ADDRESS 0x4000
#define UM_LBMR_CTX_INSTANCE 0x2000
#define UM_LBMR_CTX_NAME 0x0001
struct um_lbmr_ctxinfo {
    uint8_t hop_count;
    uint16_t flags;
    uint16_t port;
    uint32_t ip;
    uint8_t instance[8];
    const char *name; /* NULL without one */
    size_t name_len;
};
enum um_lbmr_fault um_lbmr_decode_ctxinfo(const struct um_lbmr_msg *msg, struct um_lbmr_ctxinfo *out);

enum um_lbmr_fault um_lbmr_decode_request(const struct um_lbmr_msg *msg, uint16_t *flags);

struct um_lbmr_rctx {
    bool query;
    bool has_address, has_instance, has_origin_domain;
    uint32_t address_domain, ip;
    uint16_t port;
    uint8_t instance[8];
    uint32_t origin_domain;
    const char *name; /* NULL without one */
    size_t name_len;
};
/* Header check and start of a walk; the fault is in the cursor too. */
enum um_lbmr_fault um_lbmr_rctx_records(const struct um_lbmr_msg *msg, struct um_lbmr_cursor *cursor);
bool um_lbmr_next_rctx(struct um_lbmr_cursor *cursor, struct um_lbmr_rctx *out);

struct um_lbmr_route {
    uint32_t ip;
    uint16_t port;
    uint16_t count;
    const uint8_t *domains; /* count big-endian u32 */
};
enum um_lbmr_fault um_lbmr_decode_route(const struct um_lbmr_msg *msg, struct um_lbmr_route *out);

/* Every record and option of a message whose header, trailer and type have been checked. */
enum um_lbmr_fault um_lbmr_validate_message(const struct um_lbmr_msg *msg, unsigned *detail);

/* The whole datagram: header, trailer and every record and option. `detail` may be NULL. */
enum um_lbmr_fault um_lbmr_validate(const uint8_t *data, size_t len, unsigned *detail);

/* ---- addresses in advertisements (um_lbmr_places.c) --------------------- */

/* An address with its port in a TIR: of its transport, and of those options that have one. */
struct um_lbmr_place {
    size_t ip, port;   /* where they stand in the datagram; 4 and 2 bytes */
    bool of_transport; /* the address that data comes from; it is the first of its TIR */
    bool of_store;
};

struct um_lbmr_places {
    size_t option; /* offset of the next one in the options */
    unsigned pair; /* of that option; the transport's is taken before them */
    bool transport_done;
};

/* The next place in a TIR from um_lbmr_next_tir; start with zeroed *places. `data` is the datagram. False at the end.
 * LBT-IPC and LBT-SMX have no address. */
bool um_lbmr_next_place(const uint8_t *data, const struct um_lbmr_tir *tir, struct um_lbmr_places *places,
                        struct um_lbmr_place *out);

/* Replace 0.0.0.0 by ip (network order) in the transport blocks and in the UME source, late join, EXFUNC and ULB
 * addresses of every TIR of a valid datagram. Store addresses stay. Returns how many were replaced. */
unsigned um_lbmr_substitute_address(uint8_t *data, size_t len, uint32_t ip);

/* ---- encoding ---------------------------------------------------------- */

/* Trailer bytes for this sender, option-length option included. Returns the length. */
size_t um_lbmr_encode_trailer(uint8_t out[UM_LBMR_TRAILER_MAX], const struct um_lbmr_trailer *trailer);

/* One TIR record: begin, options in the order wanted, end. end returns the length, 0 when it did not fit. */
struct um_lbmr_tir_writer {
    uint8_t *buf;
    size_t capacity;
    size_t len;
    size_t fixed_at;   /* offset of the transport byte */
    size_t options_at; /* 0: none yet */
    bool overflow;
};
void um_lbmr_tir_begin(struct um_lbmr_tir_writer *writer, uint8_t *buf, size_t capacity, const char *name,
                       uint32_t index);
void um_lbmr_tir_option(struct um_lbmr_tir_writer *writer, const struct um_lbmr_option *option);
size_t um_lbmr_tir_end(struct um_lbmr_tir_writer *writer, const struct um_lbmr_transport *transport);

/* A datagram of records of one type, up to a size limit. The first record is always taken when it fits the buffer. */
struct um_lbmr_builder {
    uint8_t *buf;
    size_t capacity;
    size_t limit;
    size_t len; /* of header and records so far */
    uint8_t type;
    unsigned tqrs;
    unsigned tirs; /* or topic management records */
    const uint8_t *trailer;
    size_t trailer_len;
};
/* type: NORMAL, WC_TQRS or TOPIC_MGMT. `trailer` (may be empty) must outlive finish. */
void um_lbmr_begin(struct um_lbmr_builder *builder, uint8_t *buf, size_t capacity, size_t limit, uint8_t type,
                   const uint8_t *trailer, size_t trailer_len);
/* false: does not fit; finish, send, begin again. */
bool um_lbmr_add_tqr(struct um_lbmr_builder *builder, const char *name, size_t name_len);
bool um_lbmr_add_wildcard_tqr(struct um_lbmr_builder *builder, uint8_t pattern_type, const char *pattern, size_t len);
bool um_lbmr_add_tir(struct um_lbmr_builder *builder, const uint8_t *record, size_t len);
bool um_lbmr_add_tmr(struct um_lbmr_builder *builder, uint8_t type, uint8_t flags, const char *name, size_t name_len);
bool um_lbmr_builder_empty(const struct um_lbmr_builder *builder);
/* Completes header and trailer; returns the datagram's length. */
size_t um_lbmr_finish(struct um_lbmr_builder *builder);

/* Whole messages; they return the length, 0 when `capacity` is too small. `trailer` NULL for none. */
size_t um_lbmr_encode_keepalive(uint8_t *out, size_t capacity, uint8_t type);
size_t um_lbmr_encode_request(uint8_t *out, size_t capacity, uint16_t flags, const uint8_t *trailer,
                              size_t trailer_len);
size_t um_lbmr_encode_ctxinfo(uint8_t *out, size_t capacity, const struct um_lbmr_ctxinfo *info, const uint8_t *trailer,
                              size_t trailer_len);
size_t um_lbmr_encode_rctx(uint8_t *out, size_t capacity, const struct um_lbmr_rctx *record, const uint8_t *trailer,
                           size_t trailer_len);

#endif
