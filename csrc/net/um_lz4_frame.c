/* The hello of compressed byte streams. Pure. */
#include "net/um_lz4_frame.h"

#include <string.h>

/* Magic, and 1 for LZ4. Three reserved bytes follow. */
static const uint8_t fixed[5] = {0x55, 0x4d, 0x5a, 0x31, 1};

void um_lz4_put_hello(uint8_t hello[UM_LZ4_HELLO_LEN])
{
    memset(hello, 0, UM_LZ4_HELLO_LEN);
    memcpy(hello, fixed, sizeof fixed);
}

enum um_lz4_rc um_lz4_check_hello(const uint8_t *data, size_t len)
{
    if (memcmp(data, fixed, len < sizeof fixed ? len : sizeof fixed) != 0) {
        return UM_LZ4_CORRUPT;
    }
    return len < UM_LZ4_HELLO_LEN ? UM_LZ4_MORE : UM_LZ4_WHOLE;
}
