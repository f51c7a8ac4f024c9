/* See um_srs_records.h. */
#include "resolver/um_srs_records.h"

#include <arpa/inet.h>
#include <string.h>

#include "wire/um_source_string.h"
#include "wire/um_transport_place.h"

#define CLASS_D_FIRST 0xe0000000u /* multicast, reserved and broadcast addresses */

static struct um_slice text_of(const char *text, size_t len)
{
    return (struct um_slice){(const uint8_t *)text, len};
}

/* ---- telling ---- */

static void fill_source(const struct um_srs_item *item, const struct um_srs_self *self, struct um_lbmsrs_record *out)
{
    const struct um_tr_source *at = &item->at;
    out->host_id = self->host_id;
    out->topic_index = at->info.topic_idx;
    out->functionality_flags = at->functionality;
    out->request_ip = at->request_ip;
    out->request_port = at->request_port;
    out->encryption = self->tls ? 1 : 0;
    out->compression = self->compression ? 1 : 0;
    out->domain_id = self->domain_id;
}

static uint16_t id_of(const struct um_srs_item *item)
{
    switch (item->kind) {
    case UM_SRS_SOURCE:
        return item->ended ? UM_LBMSRS_SDR : UM_LBMSRS_SIR;
    case UM_SRS_TOPIC:
        return item->ended ? UM_LBMSRS_RDR : UM_LBMSRS_RIR;
    case UM_SRS_PATTERN:
        return item->ended ? UM_LBMSRS_WDR : UM_LBMSRS_WIR;
    default:
        return UM_LBMSRS_SLR;
    }
}

size_t um_srs_put_item(const struct um_srs_item *item, const struct um_srs_self *self, uint8_t *out, size_t room)
{
    struct um_lbmsrs_record record = {.id = id_of(item),
                                      .topic = text_of(item->text, item->len),
                                      .context_instance = self->ctxinst,
                                      .context_type = UM_LBMSRS_APPLICATION,
                                      .version = self->version};
    char source[UM_SOURCE_STRING_MAX] = "";
    if (item->kind == UM_SRS_SOURCE || item->kind == UM_SRS_LEAVE) {
        lbm_transport_source_info_t info = item->at.info;
        info.topic_idx = 0;
        int len = um_source_string_format(&info, source, sizeof source);
        record.source = text_of(source, len > 0 ? (size_t)len : 0);
        record.otid = item->at.otid;
    } else {
        record.domain_id = self->domain_id;
    }
    if (record.id == UM_LBMSRS_SIR) {
        fill_source(item, self, &record);
    }
    return um_lbmsrs_put(&record, out, room);
}

/* ---- hearing ---- */

/* The form of lbm_transport_source_*; LBT-RU is also written as one word. */
static bool parse_source(struct um_slice source, lbm_transport_source_info_t *out)
{
    static const char one_word[] = "LBTRU:";
    char text[UM_LBMSRS_STRING_MAX + 8];
    const char *from = (const char *)source.ptr;
    size_t len = source.len, at = 0;
    if (len >= sizeof one_word && memcmp(from, one_word, sizeof one_word - 1) == 0) {
        memcpy(text, "LBT-RU:", 7);
        at = 7;
        from += sizeof one_word - 1;
        len -= sizeof one_word - 1;
    }
    memcpy(text + at, from, len);
    text[at + len] = '\0';
    return um_source_string_parse(text, out) == 0;
}

/* Nobody can be reached there, so only a broken or hostile context says so. */
static bool unreachable(const lbm_transport_source_info_t *info)
{
    enum um_transport_place place = um_transport_place(info->type);
    bool memory = place == UM_PLACE_MEMORY, address = place == UM_PLACE_ADDRESS;
    bool nowhere = info->src_ip == 0 || ntohl(info->src_ip) >= CLASS_D_FIRST;
    return (!memory && nowhere) || (address && info->src_port == 0);
}

enum um_srs_verdict um_srs_read_source(const struct um_lbmsrs_record *record, const struct um_srs_self *self,
                                       struct um_tr_source *out)
{
    memset(out, 0, sizeof *out);
    if ((record->encryption != 0) != self->tls || (record->compression != 0) != self->compression) {
        return UM_SRS_OTHER_WORLD;
    }
    if (!parse_source(record->source, &out->info) || um_transport_place(out->info.type) == UM_PLACE_UNKNOWN) {
        return UM_SRS_BAD_SOURCE;
    }
    if (unreachable(&out->info)) {
        return UM_SRS_UNREACHABLE;
    }
    bool memory = um_transport_place(out->info.type) == UM_PLACE_MEMORY;
    if (memory && self->host_id != 0 && record->host_id != self->host_id) {
        return UM_SRS_OTHER_WORLD;
    }
    out->topic = (const char *)record->topic.ptr;
    out->info.topic_idx = record->topic_index;
    memcpy(out->otid, record->otid, sizeof out->otid);
    out->has_otid = true;
    memcpy(out->ctxinst, record->context_instance, sizeof out->ctxinst);
    out->has_ctxinst = true;
    if (record->request_port != 0) { /* without a port there is nothing to ask */
        out->functionality = record->functionality_flags;
        out->request_ip = record->request_ip == 0 ? out->info.src_ip : record->request_ip;
        out->request_port = record->request_port;
    }
    out->cost = record->cost;
    out->domain_id = record->domain_id;
    return UM_SRS_TAKEN;
}
