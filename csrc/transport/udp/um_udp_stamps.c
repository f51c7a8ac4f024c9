/* Time stamps of datagrams that were sent. See um_udp_stamps.h. */
#define _GNU_SOURCE
#include "transport/udp/um_udp_stamps.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_udp.h"
#include "wire/um_lbmc.h"

#define READS_MAX 256 /* of the error queue in a row */

static const int stamp_flags = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                               SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;

/* Set anew, the kernel's count of datagrams starts at 0. */
static bool start(struct um_udp_stamps *stamps)
{
    int without = stamp_flags, with = stamp_flags | SOF_TIMESTAMPING_OPT_ID;
    stamps->next_id = 0;
    stamps->astray = false;
    memset(stamps->ring, 0, sizeof stamps->ring);
    return setsockopt(stamps->fd, SOL_SOCKET, SO_TIMESTAMPING, &without, sizeof without) == 0 &&
           setsockopt(stamps->fd, SOL_SOCKET, SO_TIMESTAMPING, &with, sizeof with) == 0;
}

struct um_udp_stamps *um_udp_stamps_create(int fd, const struct um_iface *iface)
{
    struct um_udp_stamps *stamps = um_calloc(1, sizeof *stamps);
    if (stamps != NULL) {
        stamps->fd = fd;
        um_udp_card_stamps(fd, iface);
        if (start(stamps)) {
            return stamps;
        }
        um_free(stamps);
    }
    um_log(UM_LOG_WARNING, "Core-9106-110", "sending without time stamps: SO_TIMESTAMPING: %s",
           stamps != NULL ? strerror(errno) : "out of memory");
    return NULL;
}

void um_udp_stamps_sent(struct um_udp_stamps *stamps, const uint8_t *payload, size_t len)
{
    uint32_t id = stamps->next_id++;
    struct um_udp_stamped *stamped = &stamps->ring[id % UM_UDP_STAMPS];
    struct um_lbmc_msg msg;
    stamped->id = id;
    stamped->waiting = false;
    for (size_t at = 0; at < len && um_lbmc_decode(payload + at, len - at, &msg) == UM_LBMC_OK; at += msg.msglen) {
        if (msg.type == UM_LBMC_MESSAGE) {
            stamped->tidx = msg.tidx;
            stamped->sqn = msg.sqn;
            stamped->waiting = true;
            return;
        }
    }
}

void um_udp_stamps_astray(struct um_udp_stamps *stamps)
{
    stamps->astray = true;
}

/* ---- the error queue ---- */

struct read_stamp {
    bool stamped, identified;
    struct timespec time;
    uint32_t id;
};

static void take_control(struct msghdr *msg, struct read_stamp *out)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SO_TIMESTAMPING) {
            struct scm_timestamping times;
            memcpy(&times, CMSG_DATA(cmsg), sizeof times);
            bool card = times.ts[2].tv_sec != 0 || times.ts[2].tv_nsec != 0;
            out->time = times.ts[card ? 2 : 0];
            out->stamped = out->time.tv_sec != 0 || out->time.tv_nsec != 0;
        } else if (cmsg->cmsg_level == SOL_IP && cmsg->cmsg_type == IP_RECVERR) {
            struct sock_extended_err err;
            memcpy(&err, CMSG_DATA(cmsg), sizeof err);
            out->identified = err.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && err.ee_info == SCM_TSTAMP_SND;
            out->id = err.ee_data;
        }
    }
}

/* False: the queue is empty. */
static bool read_one(int fd, struct read_stamp *out)
{
    _Alignas(struct cmsghdr) char control[512];
    struct msghdr msg = {.msg_control = control, .msg_controllen = sizeof control};
    memset(out, 0, sizeof *out);
    if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
        return false;
    }
    take_control(&msg, out);
    return true;
}

bool um_udp_stamps_next(struct um_udp_stamps *stamps, struct um_udp_stamp *out)
{
    struct read_stamp got;
    for (int i = 0; i < READS_MAX && read_one(stamps->fd, &got); i++) {
        struct um_udp_stamped *stamped = &stamps->ring[got.id % UM_UDP_STAMPS];
        if (!stamps->astray && got.stamped && got.identified && stamped->waiting && stamped->id == got.id) {
            stamped->waiting = false;
            *out = (struct um_udp_stamp){got.time, stamped->tidx, stamped->sqn};
            return true;
        }
    }
    return false;
}

/* Times of the old count are given up. */
void um_udp_stamps_before(struct um_udp_stamps *stamps)
{
    struct read_stamp ignored;
    if (stamps->astray) {
        for (int i = 0; i < READS_MAX && read_one(stamps->fd, &ignored); i++) {
        }
        start(stamps);
    }
}
