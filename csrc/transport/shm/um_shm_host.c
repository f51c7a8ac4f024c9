/* Where segments live and what they are called, and what is known of this host and
 * its processes. Any thread. */
#include "transport/shm/um_shm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_log.h"

static const char *const prefix[] = {[UM_SHM_IPC] = "LBTIPC_", [UM_SHM_SMX] = "LBTSMX_"};

const char *um_shm_directory(void)
{
    const char *directory = getenv("UM_SHM_DIR");
    if (directory == NULL || directory[0] == '\0') {
        return "/dev/shm";
    }
    if (directory[0] == '/' && strlen(directory) < 64) {
        return directory;
    }
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told)) {
        um_log(UM_LOG_ERR, "Core-6976-161",
               "UM_SHM_DIR \"%s\": must be an absolute path of at most 63 bytes; /dev/shm is used", directory);
    }
    return "/dev/shm";
}

static uint32_t fnv1a(uint32_t hash, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * 16777619u;
    }
    return hash;
}

static size_t read_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t got = read(fd, out, size - 1);
    close(fd);
    out[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

uint32_t um_shm_host_id(void)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char boot_id[64];
    struct stat st = {0};
    errno = 0;
    size_t len = read_file(path, boot_id, sizeof boot_id);
    if (len == 0 && errno != ENOENT && errno != EACCES) { /* without /proc, the directory says it alone */
        um_error_os(errno, "Core-6976-139", "%s: cannot be read, so that this host is not known from others", path);
        return 0;
    }
    uint32_t hash = fnv1a(2166136261u, boot_id, len);
    if (stat(um_shm_directory(), &st) == 0) {
        uint64_t place[2] = {st.st_dev, st.st_ino};
        hash = fnv1a(hash, place, sizeof place);
    }
    return hash != 0 ? hash : 1;
}

uint64_t um_shm_start_time(uint32_t pid)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (read_file(path, text, sizeof text) == 0) {
        return 0;
    }
    char *field = strrchr(text, ')'); /* the name may hold blanks and brackets */
    for (int i = 2; field != NULL && i < 22; i++) {
        field = strchr(field + 1, ' ');
    }
    return field == NULL ? 0 : strtoull(field, NULL, 10);
}

bool um_shm_process_alive(uint32_t pid, uint64_t start_time)
{
    uint64_t now = pid == 0 ? 0 : um_shm_start_time(pid);
    return now != 0 && (start_time == 0 || now == start_time);
}

void um_shm_make_path(char *out, size_t size, enum um_shm_kind kind, uint32_t session_id, unsigned transport_id)
{
    snprintf(out, size, "%s/%s%x_%u", um_shm_directory(), prefix[kind], session_id, transport_id);
}

bool um_shm_parse_name(enum um_shm_kind kind, const char *name, struct um_shm_entry *entry)
{
    unsigned session_id, transport_id;
    int end = 0;
    size_t len = strlen(prefix[kind]);
    if (strncmp(name, prefix[kind], len) != 0 ||
        sscanf(name + len, "%8x_%5u%n", &session_id, &transport_id, &end) < 2 || end == 0 ||
        name[len + (size_t)end] != '\0' || transport_id > UINT16_MAX) {
        return false;
    }
    memset(entry, 0, sizeof *entry);
    entry->session_id = session_id;
    entry->transport_id = (uint16_t)transport_id;
    return snprintf(entry->path, sizeof entry->path, "%s/%s", um_shm_directory(), name) < (int)sizeof entry->path;
}
