/* The debug log as the public API shows it. Any thread. */
#include <lbm/lbm.h>

#include "base/um_debug.h"

void lbm_debug_filename(const char *filename)
{
    um_debug_environment();
    um_debug_set_file(filename);
}

void lbm_debug_mask(lbm_uint64_t mask)
{
    um_debug_environment();
    um_debug_set_mask(mask);
}

void lbm_debugfile_maxsize(lbm_uint64_t size)
{
    um_debug_environment();
    um_debug_set_file_size(size);
}

void lbm_debugfile_max_rollover(lbm_uint32_t size)
{
    um_debug_environment();
    um_debug_set_file_count(size);
}

void lbm_debug_noflush(int on)
{
    um_debug_set_flush(on == 0);
}

void lbm_log_debug(int on)
{
    um_debug_set_to_log(on != 0);
}

int lbm_debug_dump(const char *filename, int append)
{
    return um_debug_dump(filename, append != 0);
}

void lbm_debug_ring_buffer(size_t maxsz)
{
    um_debug_set_ring(maxsz);
}

void lbm_debug_ring_buffer_walltime(int use)
{
    um_debug_set_ring_walltime(use != 0);
}
