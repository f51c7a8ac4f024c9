/* The files behind segments and control objects: made without a name, owner and
 * mode as the environment says, pages reserved, mapped, named, removed. Called by
 * the thread that opens or closes the object. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"

#define DEFAULT_MODE 0666u

bool um_shm_has_name(const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void um_shm_unlink_if_same(const char *path, dev_t dev, ino_t ino)
{
    if (um_shm_has_name(path, dev, ino)) {
        (void)unlink(path);
    }
}

/* UM_SHM_MODE in octal, else 0666; either after the umask. UM_SHM_OWNER is "uid:gid", -1 for unchanged. */
static mode_t wanted_mode(void)
{
    const char *text = getenv("UM_SHM_MODE");
    char *end = NULL;
    unsigned long mode = text != NULL ? strtoul(text, &end, 8) : DEFAULT_MODE;
    return text != NULL && (*end != '\0' || end == text || mode > 0777) ? DEFAULT_MODE : (mode_t)mode;
}

int um_shm_set_owner(int fd, const char *path)
{
    const char *text = getenv("UM_SHM_OWNER");
    long uid, gid;
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    if (sscanf(text, "%ld:%ld", &uid, &gid) != 2) {
        return um_error(UM_EINVAL, "Core-6976-141", "UM_SHM_OWNER \"%s\": must be uid:gid in numbers, -1 for unchanged",
                        text);
    }
    return fchown(fd, (uid_t)uid, (gid_t)gid) == 0
               ? 0
               : um_error_os(errno, "Core-6976-142", "%s: owner %s (UM_SHM_OWNER)", path, text);
}

/* A file without a name where the file system has them: a process killed while it builds leaves nothing behind. */
int um_shm_open_unnamed(const char *path, bool *named)
{
    *named = false;
    int fd = um_fd_own(open(um_shm_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, wanted_mode()));
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        *named = true;
        fd = um_fd_own(open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, wanted_mode()));
    }
    return fd;
}

int um_shm_give_name(int fd, const char *path)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Reserved pages: a full file system is an error here and no SIGBUS later. */
int um_shm_reserve(int fd, uint64_t len, const char *path)
{
    int rc;
    do {
        rc = posix_fallocate(fd, 0, (off_t)len);
    } while (rc == EINTR);
    return rc == 0 ? 0
                   : um_error_os(rc, "Core-5688-614",
                                 "%s: no room for a segment of %llu bytes: enlarge the file system of %s (containers: "
                                 "--shm-size), remove what is not used, or make the transmission window smaller",
                                 path, (unsigned long long)len, um_shm_directory());
}

void *um_shm_map(int fd, uint64_t off, uint64_t len, int protection)
{
    void *at = mmap(NULL, len, protection, MAP_SHARED | MAP_POPULATE, fd, (off_t)off);
    if (at == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(at, len, MADV_DONTFORK);
    return at;
}

int um_shm_identify(int fd, const char *path, dev_t *dev, ino_t *ino)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return um_error_os(errno, "Core-5688-615", "%s: fstat", path);
    }
    *dev = st.st_dev;
    *ino = st.st_ino;
    return 0;
}
