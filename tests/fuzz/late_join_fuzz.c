/* Fuzz: a byte string is a conversation of late join: requests, information,
 * retransmissions, live messages and time, as a hostile peer would choose them. Looks
 * for memory errors and unbounded work; requests outstanding keep their bound, answers
 * to an address that proved nothing are no more than ten times what it sent, what is
 * sent keeps the rate limit, and whoever waits for it in line gets on in the end. */
#include <stdlib.h>
#include <string.h>

#include "base/um_buf.h"
#include "base/um_timer.h"
#include "delivery/um_recovery.h"
#include "delivery/um_retention.h"
#include "delivery/um_retransmitter.h"

#define STEP 8u
#define OUTSTANDING 10u
#define MESSAGE_MAX 1024u
#define VICTIM 2u /* an address that asks for nothing */

static struct {
    struct um_dc *dc;
    struct um_recovery recovery;
    struct um_retention *retention;
    uint64_t now_ns, asked, drawn;
    uint32_t next;
    uint64_t paces[UM_RETRANSMITTER_PACES]; /* bits in a second */
    uint64_t paced[UM_RETRANSMITTER_PACES]; /* bytes sent */
    unsigned pace;                          /* of the message copied last; PACES: it is sent, or not limited */
    uint64_t begin_ns, due_ns;              /* of the retransmitter's timer; UM_NEVER */
} fuzz;

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    (void)user, (void)d, (void)now_ns;
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    (void)user, (void)sqn, (void)now_ns;
}

static void on_burst(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)user, (void)first, (void)count, (void)now_ns;
}

static void on_timer(void *user, uint64_t due_ns)
{
    (void)user, (void)due_ns;
}

static bool on_wanted(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)user;
    return um_recovery_wanted(&fuzz.recovery, first, count, now_ns);
}

static const struct um_dc_ops DC_OPS = {.deliver = on_deliver,
                                        .loss = on_loss,
                                        .burst_loss = on_burst,
                                        .set_timer = on_timer,
                                        .recovery_wanted = on_wanted};

static void ask_info(void *user, bool has_low, uint32_t low)
{
    (void)user, (void)has_low, (void)low;
}

static void ask(void *user, uint32_t sqn)
{
    (void)user, (void)sqn;
    if (fuzz.recovery.request_count > OUTSTANDING) {
        abort();
    }
}

static void ask_last(void *user)
{
    (void)user;
}

static void note(void *user, enum um_recovery_note what, uint32_t count, uint64_t now_ns)
{
    (void)user, (void)what, (void)count, (void)now_ns;
}

static const struct um_recovery_ops OPS = {
    .ask_info = ask_info, .ask = ask, .ask_last = ask_last, .set_timer = on_timer, .note = note};

static bool on_range(void *user, uint32_t topic_idx, uint32_t *low, uint32_t *high)
{
    (void)user;
    return topic_idx < 2 && um_retention_range(fuzz.retention, low, high);
}

static size_t on_copy(void *user, uint32_t topic_idx, uint32_t sqn, uint8_t *out, unsigned *pace)
{
    (void)user;
    const struct um_retained *record = um_retention_find(fuzz.retention, sqn);
    if (record == NULL) {
        return 0;
    }
    memcpy(out, record->message, record->len);
    *pace = fuzz.pace = topic_idx & 1;
    return record->len;
}

static bool on_send(void *user, const struct um_retransmitter_answer *to, const uint8_t *message, size_t len)
{
    (void)user;
    fuzz.drawn += to->ip == VICTIM ? len : 0;
    if (message[0] == UM_LBMC_RETRANS) {
        fuzz.paced[fuzz.pace] += len;
    }
    return (len & 15) != 15; /* now and then its connection is full */
}

static void on_due(void *user, uint64_t due_ns)
{
    (void)user;
    fuzz.due_ns = due_ns;
}

static void on_dropped(void *user, enum um_retransmitter_drop why, const struct um_retransmitter_asker *asker,
                       uint32_t topic_idx, uint64_t now_ns)
{
    (void)user, (void)why, (void)asker, (void)topic_idx, (void)now_ns;
}

static const struct um_retransmitter_ops SOURCE_OPS = {
    .range = on_range, .copy = on_copy, .send = on_send, .set_timer = on_due, .dropped = on_dropped};

/* What the limit gives in the time since the beginning, and in the second before it. */
static void check_paces(void)
{
    for (unsigned i = 0; i < UM_RETRANSMITTER_PACES; i++) {
        uint64_t rate = fuzz.paces[i] / 8;
        double most = (double)rate * (1.0 + (double)(fuzz.now_ns - fuzz.begin_ns) / 1e9) + 1.0;
        if (rate != 0 && (double)fuzz.paced[i] > most) {
            abort();
        }
    }
}

static void fire_due(struct um_retransmitter *source)
{
    if (fuzz.due_ns <= fuzz.now_ns) {
        fuzz.due_ns = UM_NEVER;
        um_retransmitter_on_timer(source, fuzz.now_ns);
    }
}

/* Nobody asks any more: when the timer is due somebody gets on, but for once that was meant for one who has given way.
 */
static void check_line(struct um_retransmitter *source)
{
    uint64_t rounds = 2 * um_retransmitter_stats(source).waiting + UM_RETRANSMITTER_PACES;
    for (; um_retransmitter_stats(source).waiting > 0; rounds--) {
        if (fuzz.due_ns == UM_NEVER || rounds == 0) {
            abort();
        }
        fuzz.now_ns = fuzz.due_ns > fuzz.now_ns ? fuzz.due_ns : fuzz.now_ns;
        fire_due(source);
    }
    check_paces();
}

static void keep(uint32_t ahead, size_t payload)
{
    uint8_t message[MESSAGE_MAX] = {0};
    size_t len = UM_LBMC_DATA_HDR_LEN + payload % (sizeof message - UM_LBMC_DATA_HDR_LEN);
    fuzz.next += 1 + ahead;
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, (uint16_t)len, 1, fuzz.next);
    um_retention_keep(fuzz.retention, fuzz.now_ns, fuzz.next, message, len);
}

static void arrive(uint32_t sqn, bool retransmitted)
{
    struct um_buf *buf = um_buf_alloc(8);
    struct um_lbmc_msg msg = {.type = retransmitted ? UM_LBMC_RETRANS : UM_LBMC_MESSAGE, .sqn = sqn};
    msg.payload = (struct um_slice){buf->data, 4};
    if (retransmitted) {
        um_recovery_on_data(&fuzz.recovery, fuzz.now_ns, &msg, buf);
    } else {
        um_dc_on_data(fuzz.dc, fuzz.now_ns, &msg, buf);
    }
    um_buf_unref(buf);
}

static void step(struct um_retransmitter *source, const uint8_t *p)
{
    const struct um_retransmitter_asker asker = {.ip = 3 + (p[2] >> 1) % 8, .len = 88};
    uint32_t number = um_get32(p + 4), small = um_get16(p + 2);
    struct um_lbmc_rxreq rxreq = {.id = p[1] & 3, .sqn = number, .port = p[1], .ip = p[2] & 1 ? VICTIM : 0};
    struct um_lbmc_lji_req lji = {.topic_idx = p[1] & 3, .port = p[1], .ip = p[2] & 1 ? VICTIM : 0};
    fuzz.now_ns += (uint64_t)p[1] * 1000000u;
    fuzz.asked += asker.len;
    fire_due(source);
    switch (p[0] % 8) {
    case 0:
        keep(p[1] == 255 ? number : 0, small);
        break;
    case 1:
        um_retransmitter_on_rxreq(source, fuzz.now_ns, &rxreq, &asker);
        break;
    case 2:
        um_retransmitter_on_lji_req(source, fuzz.now_ns, &lji, &asker);
        break;
    case 3:
        um_recovery_on_info(&fuzz.recovery, fuzz.now_ns, number, number + small * (p[1] == 255 ? 100000u : 1u));
        break;
    case 4:
        arrive(p[1] & 1 ? number : small, true);
        break;
    case 5:
        arrive(p[1] & 1 ? number : small, false);
        break;
    case 6:
        um_recovery_on_last(&fuzz.recovery, fuzz.now_ns, number);
        break;
    default:
        fuzz.now_ns += (uint64_t)small * 1000000u;
        um_recovery_on_timer(&fuzz.recovery, fuzz.now_ns);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct um_retention_config retention = {.size_threshold = 4096};
    if (len < STEP) {
        return 0;
    }
    const struct um_dc_config dc = {.ordered_delivery = (int)(data[0] % 3) - 1,
                                    .maximum_burst_loss = 1024,
                                    .gap_timeout_ns = (uint64_t)data[1] * 1000000u,
                                    .map_entries_max = 1000,
                                    .reassembly_size_max = 65536,
                                    .caching_proximity = data[2]};
    const struct um_recovery_config config = {.late_join = (data[3] & 1) != 0,
                                              .info_interval_ns = 1000000000u,
                                              .info_maximum = 5,
                                              .request_maximum = data[4],
                                              .request_interval_ns = 500000000u,
                                              .request_timeout_ns = 10000000000u,
                                              .request_outstanding = OUTSTANDING,
                                              .ask_last = (data[3] & 2) != 0,
                                              .last_interval_ns = 1000000000u,
                                              .last_maximum = 5,
                                              .off_transport = (data[3] & 4) != 0,
                                              .otr_interval_ns = 1000000000u,
                                              .otr_interval_max_ns = 10000000000u,
                                              .otr_timeout_ns = 60000000000u,
                                              .otr_outstanding = OUTSTANDING};
    memset(&fuzz, 0, sizeof fuzz);
    fuzz.now_ns = fuzz.begin_ns = 1000000000u;
    fuzz.due_ns = UM_NEVER;
    for (unsigned i = 0; i < 2; i++) { /* a message takes a second at most; 0: no limit */
        fuzz.paces[i] = data[5 + i] == 0 ? 0 : 8 * (MESSAGE_MAX + data[5 + i] * 64u);
    }
    fuzz.dc = um_dc_create(&dc, &DC_OPS, NULL);
    fuzz.retention = um_retention_create(&retention);
    struct um_retransmitter *source = um_retransmitter_create(fuzz.paces, &SOURCE_OPS, NULL);
    um_recovery_init(&fuzz.recovery, &config, &OPS, NULL, fuzz.dc);
    um_recovery_start(&fuzz.recovery, fuzz.now_ns);
    for (size_t at = STEP; at + STEP <= len; at += STEP) {
        step(source, data + at);
        if (fuzz.drawn > UM_RETRANSMITTER_AMPLIFICATION * fuzz.asked) {
            abort();
        }
        check_paces();
    }
    check_line(source);
    um_dc_end(fuzz.dc, fuzz.now_ns);
    um_recovery_fini(&fuzz.recovery);
    um_dc_destroy(fuzz.dc);
    um_retention_destroy(fuzz.retention);
    um_retransmitter_destroy(source);
    return 0;
}
