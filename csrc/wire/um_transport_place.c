/* The table of where sources are found. See um_transport_place.h. */
#include "wire/um_transport_place.h"

#include <lbm/lbm.h>

#include "wire/um_lbmr.h"

_Static_assert(UM_LBMR_TCP == LBM_TRANSPORT_TYPE_TCP && UM_LBMR_LBTRU == LBM_TRANSPORT_TYPE_LBTRU &&
                   UM_LBMR_LBTRM == LBM_TRANSPORT_TYPE_LBTRM && UM_LBMR_LBTIPC == LBM_TRANSPORT_TYPE_LBTIPC &&
                   UM_LBMR_LBTSMX == LBM_TRANSPORT_TYPE_LBTSMX,
               "codes on the wire are types of the interface");

static const unsigned char places[] = {
    [LBM_TRANSPORT_TYPE_TCP] = UM_PLACE_ADDRESS,   [LBM_TRANSPORT_TYPE_LBTRU] = UM_PLACE_ADDRESS,
    [LBM_TRANSPORT_TYPE_LBTRM] = UM_PLACE_GROUP,   [LBM_TRANSPORT_TYPE_LBTIPC] = UM_PLACE_MEMORY,
    [LBM_TRANSPORT_TYPE_LBTSMX] = UM_PLACE_MEMORY,
};

enum um_transport_place um_transport_place(int type)
{
    return type >= 0 && type < (int)sizeof places ? (enum um_transport_place)places[type] : UM_PLACE_UNKNOWN;
}
