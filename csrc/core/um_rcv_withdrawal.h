/* Of a source that was withdrawn: when nothing of it can be on its way any more. Plain data; whose loop's it is, its
 * owner says. */
#ifndef UM_CORE_RCV_WITHDRAWAL_H
#define UM_CORE_RCV_WITHDRAWAL_H

#include <stdbool.h>
#include <stdint.h>

/* Looks between which the session was read again and brought nothing of this source: five minutes of them. Other topics
 * of the session may go on for ever. */
#define UM_RCV_WITHDRAWAL_LOOKS_MAX 1200u

struct um_rcv_withdrawal {
    uint64_t own, resumed; /* at the last look */
    unsigned in_vain;
};

static inline void um_rcv_withdrawal_begin(struct um_rcv_withdrawal *w, uint64_t own, uint64_t resumed)
{
    *w = (struct um_rcv_withdrawal){.own = own, .resumed = resumed};
}

/* A look, a while after the one before. `own`: grows with all that comes of the source; `resumed`: with each time that
 * its session is read again; `paused`: the session is left unread now; `waits`: for what may be repaired. False: it is
 * over. */
static inline bool um_rcv_withdrawal_goes_on(struct um_rcv_withdrawal *w, uint64_t own, uint64_t resumed, bool paused,
                                             bool waits)
{
    bool got_on = own != w->own, read_again = resumed != w->resumed;
    w->in_vain = got_on ? 0 : w->in_vain + read_again;
    w->own = own;
    w->resumed = resumed;
    return got_on || waits || ((paused || read_again) && w->in_vain <= UM_RCV_WITHDRAWAL_LOOKS_MAX);
}

#endif
