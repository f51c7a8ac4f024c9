/* The lines that a process has logged, as records of their own: after a sample, those that a controller has not told
 * yet. Owns nothing; the lines are in base/um_log_kept.c. Sampling threads, with no lock held. */
#include <string.h>

#include <lbm/gen/um_log_mon.pb-c.h>

#include "base/um_log_kept.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "lbmmon/um_mon_options.h"
#include "lbmmon/um_mon_pb.h"
#include "lbmmon/um_mon_sctl.h"

/* What one packet tells. */
struct told {
    struct um_log_line kept[UM_LOG_KEPT_LINES];
    Openum__LogMonMsg__Line lines[UM_LOG_KEPT_LINES];
    Openum__LogMonMsg__Line *list[UM_LOG_KEPT_LINES];
    size_t count;
};

static void add_line(struct told *told, const struct um_log_line *line)
{
    struct um_log_line *mine = &told->kept[told->count];
    Openum__LogMonMsg__Line *out = told->list[told->count] = &told->lines[told->count];
    *mine = *line;
    openum__log_mon_msg__line__init(out);
    out->number = mine->number;
    out->level = (uint32_t)mine->level;
    out->timestamp_sec = mine->wall_ns / UM_NS_PER_SEC;
    out->timestamp_usec = (uint32_t)(mine->wall_ns % UM_NS_PER_SEC / 1000);
    out->text.data = (uint8_t *)mine->text;
    out->text.len = strlen(mine->text);
    told->count++;
}

static void send_told(lbmmon_sctl_t *control, const struct um_mon_sample *sample, struct told *told)
{
    lbmmon_packet_attributes_t attributes;
    struct um_mon_pb_attributes about;
    Openum__LogMonMsg message = OPENUM__LOG_MON_MSG__INIT;
    um_mon_sample_attributes(sample, control->ip, &attributes);
    /* of the process, and of none of its objects */
    attributes.mFlags &= ~(UM_MON_HAS(LBMMON_ATTR_OBJECTID) | UM_MON_HAS(LBMMON_ATTR_CTXINST));
    attributes.mModuleID = MAKE_MODULE_VERSION(LBMMON_FORMAT_PB_MODULE_ID, LBMMON_FORMAT_PB_VERSION_CURRENT);
    attributes.mFlags |= UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    um_mon_pb_put_attributes(&about, &attributes);
    message.attributes = &about.message;
    message.lines = told->list;
    message.n_lines = told->count;
    size_t size = UM_MON_PART_MAX;
    if (um_mon_pb_pack(&message, (char *)control->packet + UM_MON_DATA_AT, &size) != 0) {
        atomic_fetch_add(&control->counts.not_written, 1);
        return;
    }
    um_mon_send_packet(control, UM_MON_PACKET_LOG, &attributes, size);
}

void um_mon_send_log(lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    struct um_log_line line;
    struct told *told = NULL;
    if (!control->tells_log) {
        return;
    }
    while (um_log_kept_next(control->log_told, &line) && (told == NULL || told->count < UM_LOG_KEPT_LINES)) {
        if (told == NULL && (told = um_calloc(1, sizeof *told)) == NULL) {
            return; /* they are kept for the next time */
        }
        add_line(told, &line);
        control->log_told = line.number;
    }
    if (told != NULL) {
        send_told(control, sample, told);
        um_free(told);
    }
}

bool um_mon_tells_log(const lbmmon_format_func_t *format, const char *format_opts)
{
    if (format != lbmmon_format_csv_module() && format != lbmmon_format_pb_module()) {
        return false;
    }
    struct um_mon_option option;
    const char *rest = format_opts;
    bool tells = true, on;
    while ((rest = um_mon_option_next(rest, &option)) != NULL) {
        if (strcmp(option.name, "log") == 0 && um_mon_switch(option.value, &on)) {
            tells = on;
        }
    }
    return tells;
}
