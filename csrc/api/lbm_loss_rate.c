/* Deliberate loss, for tests of applications: the public calls. Any thread. */
#include <lbm/lbm.h>

#include "transport/session/um_loss_rate.h"

void lbm_set_lbtrm_loss_rate(int rate)
{
    um_loss_rate_set(UM_LOSS_LBTRM_RCV, rate);
}

void lbm_set_lbtrm_src_loss_rate(int rate)
{
    um_loss_rate_set(UM_LOSS_LBTRM_SRC, rate);
}

void lbm_set_lbtru_loss_rate(int rate)
{
    um_loss_rate_set(UM_LOSS_LBTRU_RCV, rate);
}

void lbm_set_lbtru_src_loss_rate(int rate)
{
    um_loss_rate_set(UM_LOSS_LBTRU_SRC, rate);
}

void lbm_set_uim_loss_rate(int rate)
{
    um_loss_rate_set(UM_LOSS_UIM, rate);
}
