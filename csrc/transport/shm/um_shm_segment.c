/* Shared-memory segments: files in the directory of the segments, built complete
 * before they get their name, locked by the living. Used by the transports (on
 * the loop, the locks on any thread) and the resource managers. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"

#define CREATE_TRIES 8
#define LOCK_TRIES 100
#define LOCK_TRY_US 500
#define HUGE_PAGE (2u * 1024u * 1024u)
#define DEFAULT_MODE 0666u

_Static_assert(sizeof(struct um_shm_header) == 4096, "the header is a page");
_Static_assert(offsetof(struct um_shm_header, sm_interval_ms) == 0x58, "layout");
_Static_assert(offsetof(struct um_shm_header, tail) == 0x100 && offsetof(struct um_shm_header, oldest) == 0x180,
               "layout");
_Static_assert(offsetof(struct um_shm_header, activity) == 0x200 && offsetof(struct um_shm_header, join_epoch) == 0x280,
               "layout");
_Static_assert(sizeof(struct um_shm_slot) == UM_SHM_SLOT_SIZE && offsetof(struct um_shm_slot, read_pos) == 0x80,
               "layout");
_Static_assert(sizeof(struct um_shm_control) == 4096 && offsetof(struct um_shm_control, futex) == 0x80, "layout");

static const char *const segment_magic[] = {[UM_SHM_IPC] = "UMIPC\0\0\1", [UM_SHM_SMX] = "UMSMX\0\0\1"};
static const char *const control_magic[] = {[UM_SHM_IPC] = "UMIPS\0\0\1", [UM_SHM_SMX] = "UMSXS\0\0\1"};
static const char *const prefix[] = {[UM_SHM_IPC] = "LBTIPC_", [UM_SHM_SMX] = "LBTSMX_"};

/* ---- forks ---- */

/* A lock belongs to the open file description, which a child shares through descriptors and mappings. Its copies of the
 * descriptors are closed, and mappings are not inherited, so that a child does not keep the locks of a dead parent. */

static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static struct um_list fork_segments = {&fork_segments, &fork_segments}; /* fork_lock */
static struct um_list fork_controls = {&fork_controls, &fork_controls}; /* fork_lock */

static void before_fork(void)
{
    pthread_mutex_lock(&fork_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&fork_lock);
}

static void after_fork_in_child(void)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &fork_segments)
    {
        close(UM_CONTAINER_OF(it, struct um_shm_segment, fork_node)->fd);
        UM_CONTAINER_OF(it, struct um_shm_segment, fork_node)->fd = -1;
    }
    UM_LIST_FOREACH(it, &fork_controls)
    {
        close(UM_CONTAINER_OF(it, struct um_shm_control_object, fork_node)->fd);
        UM_CONTAINER_OF(it, struct um_shm_control_object, fork_node)->fd = -1;
    }
    pthread_mutex_unlock(&fork_lock);
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void fork_enter(struct um_list *list, struct um_list *node)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
    pthread_mutex_lock(&fork_lock);
    um_list_push_back(list, node);
    pthread_mutex_unlock(&fork_lock);
}

static void fork_leave(struct um_list *node)
{
    pthread_mutex_lock(&fork_lock);
    um_list_remove(node);
    pthread_mutex_unlock(&fork_lock);
}

/* ---- host and processes ---- */

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

/* ---- locks ---- */

static int lock_op(int fd, int command, short type, unsigned byte, struct flock *out)
{
    struct flock request = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;
    do {
        rc = fcntl(fd, command, &request);
    } while (rc < 0 && errno == EINTR);
    if (out != NULL) {
        *out = request;
    }
    return rc;
}

bool um_shm_lock_try(const struct um_shm_segment *segment, unsigned byte)
{
    return lock_op(segment->fd, F_OFD_SETLK, F_WRLCK, byte, NULL) == 0;
}

/* Not for ever: a process may be stopped while it holds the lock. */
int um_shm_lock_wait(const struct um_shm_segment *segment, unsigned byte)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (um_shm_lock_try(segment, byte)) {
            return 0;
        }
        usleep(LOCK_TRY_US);
    }
    return um_error_os(errno, "Core-6976-140", "%s: lock %u is held by another process", segment->path, byte);
}

void um_shm_lock_give(const struct um_shm_segment *segment, unsigned byte)
{
    (void)lock_op(segment->fd, F_OFD_SETLK, F_UNLCK, byte, NULL);
}

static bool held_elsewhere(int fd, unsigned byte)
{
    struct flock found;
    return lock_op(fd, F_OFD_GETLK, F_WRLCK, byte, &found) == 0 && found.l_type != F_UNLCK;
}

bool um_shm_lock_held(const struct um_shm_segment *segment, unsigned byte)
{
    return held_elsewhere(segment->fd, byte);
}

/* ---- names ---- */

static void make_path(char *out, size_t size, enum um_shm_kind kind, uint32_t session_id, unsigned transport_id)
{
    snprintf(out, size, "%s/%s%x_%u", um_shm_directory(), prefix[kind], session_id, transport_id);
}

static void unlink_if_same(const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    if (lstat(path, &st) == 0 && st.st_dev == dev && st.st_ino == ino) {
        (void)unlink(path);
    }
}

void um_shm_unlink(const struct um_shm_segment *segment)
{
    unlink_if_same(segment->path, segment->dev, segment->ino);
}

/* UM_SHM_MODE in octal, else 0666; either after the umask. UM_SHM_OWNER is "uid:gid", -1 for unchanged. */
static mode_t wanted_mode(void)
{
    const char *text = getenv("UM_SHM_MODE");
    char *end = NULL;
    unsigned long mode = text != NULL ? strtoul(text, &end, 8) : DEFAULT_MODE;
    return text != NULL && (*end != '\0' || end == text || mode > 0777) ? DEFAULT_MODE : (mode_t)mode;
}

static int set_owner(int fd, const char *path)
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

/* ---- files ---- */

/* A file without a name where the file system has them: a process killed while it builds leaves nothing behind. */
static int open_unnamed(const char *path, bool *named)
{
    *named = false;
    int fd = open(um_shm_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, wanted_mode());
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        *named = true;
        fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, wanted_mode());
    }
    return fd;
}

static int give_name(int fd, const char *path)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Reserved pages: a full file system is an error here and no SIGBUS later. */
static int reserve(int fd, uint64_t len, const char *path)
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

static void *map(int fd, uint64_t off, uint64_t len, int protection)
{
    void *at = mmap(NULL, len, protection, MAP_SHARED | MAP_POPULATE, fd, (off_t)off);
    if (at == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(at, len, MADV_DONTFORK);
    return at;
}

static int identify(int fd, const char *path, dev_t *dev, ino_t *ino)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return um_error_os(errno, "Core-5688-615", "%s: fstat", path);
    }
    *dev = st.st_dev;
    *ino = st.st_ino;
    return 0;
}

/* ---- creation ---- */

static void adopt_geometry(struct um_shm_segment *segment, const struct um_shm_header *header)
{
    segment->session_id = header->session_id;
    segment->transport_id = header->transport_id;
    segment->max_receivers = header->max_receivers;
    segment->rec_align = header->rec_align;
    segment->datagram_max = header->datagram_max;
    segment->flags = header->flags;
    segment->ring_len = header->ring_len;
    segment->ring_off = header->ring_off;
    segment->total_len = header->total_len;
    segment->sm_interval_ms = header->sm_interval_ms;
}

static bool huge_pages(uint64_t ring_len)
{
    const char *wish = getenv("UM_SHM_HUGEPAGES");
    return wish != NULL && wish[0] == '1' && ring_len >= HUGE_PAGE;
}

static void describe(struct um_shm_header *header, const struct um_shm_spec *spec, uint32_t session_id)
{
    uint64_t page = huge_pages(spec->ring_len) ? HUGE_PAGE : 4096;
    uint64_t ring_off = UM_SHM_POOL_OFF + (uint64_t)UM_SHM_SLOT_SIZE * spec->max_receivers;
    memcpy(header->magic, segment_magic[spec->kind], sizeof header->magic);
    header->version = UM_SHM_VERSION;
    header->endian_tag = UM_SHM_ENDIAN_TAG;
    header->pool_off = UM_SHM_POOL_OFF;
    header->slot_size = UM_SHM_SLOT_SIZE;
    header->max_receivers = spec->max_receivers;
    header->rec_align = spec->rec_align;
    header->ring_off = (ring_off + page - 1) / page * page;
    header->ring_len = spec->ring_len;
    header->total_len = (header->ring_off + spec->ring_len + 4095) / 4096 * 4096;
    header->datagram_max = spec->datagram_max;
    header->flags = spec->flags;
    header->session_id = session_id;
    header->transport_id = spec->transport_id;
    header->src_pid = (uint32_t)getpid();
    header->src_start_time = um_shm_start_time(header->src_pid);
    header->sm_interval_ms = spec->sm_interval_ms;
}

static void set_pointers(struct um_shm_segment *segment, void *base)
{
    segment->header = base;
    segment->slots = (struct um_shm_slot *)((uint8_t *)base + UM_SHM_POOL_OFF);
}

/* Reserve, fill and lock the file behind segment->fd. */
static int build(struct um_shm_segment *segment, const struct um_shm_header *plan)
{
    if (set_owner(segment->fd, segment->path) != 0 || reserve(segment->fd, plan->total_len, segment->path) != 0 ||
        identify(segment->fd, segment->path, &segment->dev, &segment->ino) != 0) {
        return -1;
    }
    void *base = map(segment->fd, 0, plan->total_len, PROT_READ | PROT_WRITE);
    if (base == NULL) {
        return um_error_os(errno, "Core-5688-616", "%s: mapping %llu bytes", segment->path,
                           (unsigned long long)plan->total_len);
    }
    if (huge_pages(plan->ring_len)) {
        (void)madvise((uint8_t *)base + plan->ring_off, plan->ring_len, MADV_HUGEPAGE);
    }
    adopt_geometry(segment, plan);
    set_pointers(segment, base);
    segment->ring = (uint8_t *)base + plan->ring_off;
    memcpy(base, plan, offsetof(struct um_shm_header, pad0));
    if (!um_shm_lock_try(segment, UM_SHM_LOCK_SOURCE)) {
        return um_error_os(errno, "Core-6976-143", "%s: source lock", segment->path);
    }
    atomic_store_explicit(&segment->header->state, UM_SHM_READY, memory_order_release);
    return 0;
}

/* A named file may have been taken for a leftover before it was locked. */
static bool name_is_ours(const struct um_shm_segment *segment)
{
    struct stat st;
    return lstat(segment->path, &st) == 0 && st.st_ino == segment->ino && st.st_dev == segment->dev;
}

static void discard(struct um_shm_segment *segment)
{
    if (segment->header != NULL) {
        munmap(segment->header, segment->total_len);
    }
    if (segment->fd >= 0) {
        close(segment->fd);
    }
    segment->fd = -1;
    segment->header = NULL;
}

enum create_result { CREATED, CREATE_AGAIN, CREATE_FAILED };

static enum create_result create_once(struct um_shm_segment *segment, const struct um_shm_spec *spec)
{
    struct um_shm_header *plan = um_calloc(1, sizeof *plan);
    bool named = false;
    enum create_result result = CREATE_FAILED;
    if (plan == NULL) {
        um_error_nomem("segment header", sizeof *plan);
        return CREATE_FAILED;
    }
    describe(plan, spec, um_random_u32_nonzero());
    make_path(segment->path, sizeof segment->path, spec->kind, plan->session_id, spec->transport_id);
    segment->fd = open_unnamed(segment->path, &named);
    if (segment->fd < 0) {
        result = errno == EEXIST ? CREATE_AGAIN : CREATE_FAILED;
        um_error_os(errno, "Core-5688-617", "%s: cannot be created in %s", segment->path, um_shm_directory());
    } else if (build(segment, plan) == 0) {
        result = CREATED;
        if (named ? !name_is_ours(segment) : give_name(segment->fd, segment->path) != 0) {
            result = named || errno == EEXIST ? CREATE_AGAIN : CREATE_FAILED;
            um_error_os(named ? EEXIST : errno, "Core-5688-617", "%s: cannot be named", segment->path);
        }
    }
    if (result != CREATED) {
        if (named && segment->fd >= 0) {
            unlink_if_same(segment->path, segment->dev, segment->ino);
        }
        discard(segment);
    }
    um_free(plan);
    return result;
}

int um_shm_create(struct um_shm_segment *segment, const struct um_shm_spec *spec)
{
    memset(segment, 0, sizeof *segment);
    segment->fd = -1;
    segment->kind = spec->kind;
    segment->is_source = true;
    um_list_init(&segment->fork_node);
    um_shm_reclaim_dead(spec->kind);
    for (int i = 0; i < CREATE_TRIES; i++) {
        enum create_result result = create_once(segment, spec);
        if (result == CREATED) {
            fork_enter(&fork_segments, &segment->fork_node);
            return 0;
        }
        if (result == CREATE_FAILED) {
            return -1;
        }
    }
    return -1;
}

/* ---- attaching ---- */

static int refuse(const struct um_shm_segment *segment, const char *what, unsigned long long value)
{
    return um_error(UM_EINVAL, "Core-6976-127", "%s: %s %llu: not a segment that can be joined", segment->path, what,
                    value);
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Every field that is used later; `header` is a private copy. */
static int check_header(const struct um_shm_segment *segment, const struct um_shm_header *header, uint64_t file_len)
{
    bool smx = segment->kind == UM_SHM_SMX;
    if (memcmp(header->magic, segment_magic[segment->kind], sizeof header->magic) != 0) {
        return um_error(UM_EINVAL, "Core-6976-126", "%s: not a segment of libum", segment->path);
    }
    if (header->version >> 16 != UM_SHM_VERSION >> 16) {
        return um_error(UM_EINVAL, "Core-6976-128", "%s: segment version 0x%08x, expected 0x%08x: use the same library",
                        segment->path, header->version, UM_SHM_VERSION);
    }
    if (header->endian_tag != UM_SHM_ENDIAN_TAG) {
        return refuse(segment, "byte order", header->endian_tag);
    }
    if (header->total_len != file_len) {
        return refuse(segment, "length", header->total_len);
    }
    if (header->session_id != segment->session_id || header->transport_id != segment->transport_id) {
        return refuse(segment, "session id", header->session_id);
    }
    if (header->pool_off != UM_SHM_POOL_OFF || header->slot_size != UM_SHM_SLOT_SIZE || header->max_receivers < 1 ||
        header->max_receivers > UM_SHM_RECEIVERS_MAX) {
        return refuse(segment, "receiver slots", header->max_receivers);
    }
    uint64_t pool_end = UM_SHM_POOL_OFF + (uint64_t)UM_SHM_SLOT_SIZE * header->max_receivers;
    if (header->ring_off < pool_end || header->ring_off % 4096 != 0 || header->ring_off > file_len) {
        return refuse(segment, "ring offset", header->ring_off);
    }
    if (header->ring_len < 64 || header->ring_len > file_len - header->ring_off ||
        (smx ? !is_power_of_two(header->ring_len) : header->ring_len % 32 != 0)) {
        return refuse(segment, "ring length", header->ring_len);
    }
    if (smx ? header->rec_align != 16 && (header->rec_align != 64 || header->ring_len < 4096)
            : header->rec_align != 32) {
        return refuse(segment, "record alignment", header->rec_align);
    }
    if (header->datagram_max < 16 || header->datagram_max > header->ring_len / 2) {
        return refuse(segment, "datagram size", header->datagram_max);
    }
    return 0;
}

static int open_existing(struct um_shm_segment *segment, struct stat *st)
{
    segment->fd = open(segment->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (segment->fd < 0) {
        return um_error_os(errno, "Core-6976-129", "%s: cannot be opened", segment->path);
    }
    if (fstat(segment->fd, st) != 0 || !S_ISREG(st->st_mode) || st->st_size < 8192) {
        return um_error(UM_EINVAL, "Core-6976-130", "%s: not a segment (no regular file of two pages or more)",
                        segment->path);
    }
    const char *same_uid = getenv("UM_SHM_SAME_UID");
    if (same_uid != NULL && same_uid[0] == '1' && st->st_uid != geteuid()) {
        return um_error(UM_EINVAL, "Core-6976-131", "%s: owned by user %u, UM_SHM_SAME_UID allows only %u",
                        segment->path, (unsigned)st->st_uid, (unsigned)geteuid());
    }
    segment->dev = st->st_dev;
    segment->ino = st->st_ino;
    return 0;
}

/* Read with a system call first: a file that shrinks meanwhile cannot fault here. */
static int read_header(struct um_shm_segment *segment, uint64_t file_len)
{
    struct um_shm_header header;
    if (pread(segment->fd, &header, sizeof header, 0) != (ssize_t)sizeof header) {
        return um_error(UM_EINVAL, "Core-6976-130", "%s: header cannot be read", segment->path);
    }
    if (check_header(segment, &header, file_len) != 0) {
        return -1;
    }
    if (atomic_load_explicit(&header.state, memory_order_relaxed) != UM_SHM_READY) {
        return refuse(segment, "state", atomic_load_explicit(&header.state, memory_order_relaxed));
    }
    if (!um_shm_source_alive(segment)) {
        return um_error(UM_EINVAL, "Core-6976-132", "%s: its source (process %u) is gone: not joined", segment->path,
                        header.src_pid);
    }
    adopt_geometry(segment, &header);
    return 0;
}

int um_shm_attach(struct um_shm_segment *segment, enum um_shm_kind kind, uint32_t session_id, uint16_t transport_id)
{
    struct stat st;
    memset(segment, 0, sizeof *segment);
    segment->kind = kind;
    segment->session_id = session_id;
    segment->transport_id = transport_id;
    um_list_init(&segment->fork_node);
    make_path(segment->path, sizeof segment->path, kind, session_id, transport_id);
    if (open_existing(segment, &st) != 0 || read_header(segment, (uint64_t)st.st_size) != 0) {
        discard(segment);
        return -1;
    }
    void *front = map(segment->fd, 0, segment->ring_off, PROT_READ | PROT_WRITE);
    void *ring = front == NULL ? NULL : map(segment->fd, segment->ring_off, segment->ring_len, PROT_READ);
    if (ring == NULL) {
        um_error_os(errno, "Core-6976-134", "%s: mapping %llu bytes", segment->path,
                    (unsigned long long)segment->total_len);
        if (front != NULL) {
            munmap(front, segment->ring_off);
        }
        discard(segment);
        return -1;
    }
    set_pointers(segment, front);
    segment->ring = ring;
    fork_enter(&fork_segments, &segment->fork_node);
    return 0;
}

void um_shm_close(struct um_shm_segment *segment)
{
    if (segment->header == NULL) {
        return;
    }
    if (segment->is_source) {
        atomic_store_explicit(&segment->header->state, UM_SHM_CLOSED, memory_order_release);
        atomic_fetch_add_explicit(&segment->header->activity, 1, memory_order_release);
        um_shm_unlink(segment);
        munmap(segment->header, segment->total_len);
    } else {
        munmap(segment->ring, segment->ring_len);
        munmap(segment->header, segment->ring_off);
    }
    fork_leave(&segment->fork_node);
    if (segment->fd >= 0) {
        close(segment->fd);
    }
    segment->fd = -1;
    segment->header = NULL;
    segment->slots = NULL;
    segment->ring = NULL;
}

/* ---- slots ---- */

/* Registration lock held. The lock of a slot outlives its in_use word when the receiver died. */
static int find_slot(struct um_shm_segment *segment)
{
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        if (atomic_load_explicit(&segment->slots[i].in_use, memory_order_acquire) == UM_SHM_SLOT_FREE &&
            um_shm_lock_try(segment, UM_SHM_LOCK_SLOT + i)) {
            return (int)i;
        }
    }
    return um_error(UM_EINVAL, "Core-6976-114", "%s: no more free receiver slots (%u)", segment->path,
                    segment->max_receivers);
}

static void fill_slot(struct um_shm_segment *segment, struct um_shm_slot *slot, uint32_t slot_flags,
                      uint32_t ctx_session_id)
{
    slot->generation++;
    slot->pid = (uint32_t)getpid();
    slot->start_time = um_shm_start_time(slot->pid);
    slot->flags = slot_flags;
    slot->ctx_session_id = ctx_session_id;
    atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_JOINING, memory_order_release);
}

int um_shm_slot_take(struct um_shm_segment *segment, uint32_t slot_flags, uint32_t ctx_session_id, uint64_t *start)
{
    struct um_shm_header *header = segment->header;
    if (um_shm_lock_wait(segment, UM_SHM_LOCK_REGISTRATION) != 0) {
        return -1;
    }
    int index = -1;
    if (atomic_load_explicit(&header->state, memory_order_acquire) != UM_SHM_READY) {
        refuse(segment, "state", atomic_load_explicit(&header->state, memory_order_relaxed));
    } else {
        index = find_slot(segment);
    }
    if (index >= 0) {
        struct um_shm_slot *slot = &segment->slots[index];
        fill_slot(segment, slot, slot_flags, ctx_session_id);
        atomic_store_explicit(&slot->read_pos, atomic_load_explicit(&header->tail, memory_order_acquire),
                              memory_order_relaxed);
        atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_ACTIVE, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        *start = atomic_load_explicit(&header->tail, memory_order_acquire);
        atomic_store_explicit(&slot->read_pos, *start, memory_order_release);
        atomic_fetch_add_explicit(&header->join_epoch, 1, memory_order_release);
    }
    um_shm_lock_give(segment, UM_SHM_LOCK_REGISTRATION);
    return index;
}

void um_shm_slot_leave(struct um_shm_segment *segment, int index)
{
    atomic_store_explicit(&segment->slots[index].in_use, UM_SHM_SLOT_FREE, memory_order_release);
    atomic_fetch_add_explicit(&segment->header->join_epoch, 1, memory_order_release);
    um_shm_lock_give(segment, UM_SHM_LOCK_SLOT + (unsigned)index);
}

bool um_shm_slot_reap(struct um_shm_segment *segment, uint32_t index)
{
    struct um_shm_slot *slot = &segment->slots[index];
    if (atomic_load_explicit(&slot->in_use, memory_order_acquire) == UM_SHM_SLOT_FREE ||
        !um_shm_lock_try(segment, UM_SHM_LOCK_SLOT + index)) {
        return false;
    }
    /* Free now, or freed by its receiver since the look above: both are right with the lock in hand. */
    bool was_used = atomic_exchange_explicit(&slot->in_use, UM_SHM_SLOT_FREE, memory_order_acq_rel) != UM_SHM_SLOT_FREE;
    if (was_used) {
        atomic_fetch_add_explicit(&segment->header->join_epoch, 1, memory_order_release);
    }
    um_shm_lock_give(segment, UM_SHM_LOCK_SLOT + index);
    return was_used;
}

uint32_t um_shm_receivers(const struct um_shm_segment *segment, bool reading_only)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        uint32_t state = atomic_load_explicit(&segment->slots[i].in_use, memory_order_acquire);
        count += state >= (reading_only ? UM_SHM_SLOT_READING : UM_SHM_SLOT_ACTIVE);
    }
    return count;
}

/* ---- control objects ---- */

static int map_control(struct um_shm_control_object *object)
{
    object->map = map(object->fd, 0, sizeof *object->map, PROT_READ | PROT_WRITE);
    return object->map != NULL ? 0 : um_error_os(errno, "Core-5688-651", "%s: mapping", object->path);
}

static void discard_control(struct um_shm_control_object *object)
{
    if (object->map != NULL) {
        munmap(object->map, sizeof *object->map);
    }
    if (object->fd >= 0) {
        close(object->fd);
    }
    object->map = NULL;
    object->fd = -1;
}

static int build_control(struct um_shm_control_object *object, enum um_shm_kind kind, bool named)
{
    if (set_owner(object->fd, object->path) != 0 || reserve(object->fd, sizeof *object->map, object->path) != 0 ||
        identify(object->fd, object->path, &object->dev, &object->ino) != 0 || map_control(object) != 0) {
        return -1;
    }
    object->map->version = UM_SHM_VERSION;
    object->map->pid = (uint32_t)getpid();
    object->map->start_time = um_shm_start_time(object->map->pid);
    memcpy(object->map->magic, control_magic[kind], sizeof object->map->magic);
    if (lock_op(object->fd, F_OFD_SETLK, F_WRLCK, UM_SHM_LOCK_SOURCE, NULL) != 0 ||
        (!named && give_name(object->fd, object->path) != 0)) {
        return um_error_os(errno, "Core-5688-653", "%s: cannot be named", object->path);
    }
    return 0;
}

int um_shm_control_create(struct um_shm_control_object *object, enum um_shm_kind kind)
{
    memset(object, 0, sizeof *object);
    object->fd = -1;
    object->is_owner = true;
    um_list_init(&object->fork_node);
    um_shm_reclaim_dead(kind);
    object->session_id = um_random_u32_nonzero();
    make_path(object->path, sizeof object->path, kind, object->session_id, 0);
    bool named;
    object->fd = open_unnamed(object->path, &named);
    if (object->fd < 0) {
        return um_error_os(errno, "Core-5688-651", "%s: cannot be created", object->path);
    }
    if (build_control(object, kind, named) != 0) {
        if (named) {
            (void)unlink(object->path);
        }
        discard_control(object);
        return -1;
    }
    fork_enter(&fork_controls, &object->fork_node);
    return 0;
}

int um_shm_control_attach(struct um_shm_control_object *object, enum um_shm_kind kind, uint32_t session_id)
{
    struct stat st;
    memset(object, 0, sizeof *object);
    object->session_id = session_id;
    um_list_init(&object->fork_node);
    make_path(object->path, sizeof object->path, kind, session_id, 0);
    object->fd = open(object->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (object->fd < 0 || fstat(object->fd, &st) != 0) {
        int saved = errno;
        discard_control(object);
        return um_error_os(saved, "Core-5688-651", "%s: cannot be opened", object->path);
    }
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof *object->map || map_control(object) != 0 ||
        memcmp(object->map->magic, control_magic[kind], sizeof object->map->magic) != 0) {
        discard_control(object);
        return um_error(UM_EINVAL, "Core-5688-651", "%s: not a control object of libum", object->path);
    }
    fork_enter(&fork_controls, &object->fork_node);
    return 0;
}

void um_shm_control_close(struct um_shm_control_object *object)
{
    if (object->map == NULL) {
        return;
    }
    if (object->is_owner) {
        unlink_if_same(object->path, object->dev, object->ino);
    }
    fork_leave(&object->fork_node);
    discard_control(object);
}

/* ---- listing and reclaiming ---- */

static bool parse_name(enum um_shm_kind kind, const char *name, struct um_shm_entry *entry)
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

static void inspect(struct um_shm_entry *entry)
{
    uint32_t pid = 0;
    int fd = open(entry->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        entry->alive = true; /* another user's: nothing can be said, so nothing is touched */
        return;
    }
    off_t at = entry->transport_id == 0 ? (off_t)offsetof(struct um_shm_control, pid)
                                        : (off_t)offsetof(struct um_shm_header, src_pid);
    if (pread(fd, &pid, sizeof pid, at) == (ssize_t)sizeof pid) {
        entry->pid = pid;
    }
    entry->alive = held_elsewhere(fd, UM_SHM_LOCK_SOURCE);
    close(fd);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct um_shm_entry *)a)->path, ((const struct um_shm_entry *)b)->path);
}

static int grow(struct um_shm_entry **entries, int count)
{
    if (count % 16 != 0) {
        return 0;
    }
    struct um_shm_entry *more = um_realloc(*entries, (size_t)(count + 16) * sizeof *more);
    if (more == NULL) {
        return um_error_nomem("list of segments", (unsigned long)(count + 16) * sizeof *more);
    }
    *entries = more;
    return 0;
}

int um_shm_list(enum um_shm_kind kind, struct um_shm_entry **out)
{
    DIR *directory = opendir(um_shm_directory());
    int count = 0;
    *out = NULL;
    if (directory == NULL) {
        return um_error_os(errno, "Core-6976-135", "%s: cannot be read", um_shm_directory());
    }
    struct dirent *item;
    struct um_shm_entry entry;
    while ((item = readdir(directory)) != NULL) {
        if (!parse_name(kind, item->d_name, &entry)) {
            continue;
        }
        if (grow(out, count) != 0) {
            closedir(directory);
            um_free(*out);
            *out = NULL;
            return -1;
        }
        inspect(&entry);
        (*out)[count++] = entry;
    }
    closedir(directory);
    if (count > 1) {
        qsort(*out, (size_t)count, sizeof **out, by_path);
    }
    return count;
}

/* The lock is kept until the name is gone, so that nobody can take the object for a living one. */
int um_shm_reclaim(const struct um_shm_entry *entry)
{
    struct stat st;
    int fd = open(entry->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? 0 : um_error_os(errno, "Core-6976-136", "%s: cannot be opened", entry->path);
    }
    int rc = 0;
    if (lock_op(fd, F_OFD_SETLK, F_WRLCK, UM_SHM_LOCK_SOURCE, NULL) != 0) {
        rc = 1;
    } else if (fstat(fd, &st) == 0 && st.st_nlink > 0 && unlink(entry->path) != 0 && errno != ENOENT) {
        rc = um_error_os(errno, "Core-6976-137", "%s: cannot be removed", entry->path);
    }
    close(fd);
    return rc;
}

int um_shm_reclaim_dead(enum um_shm_kind kind)
{
    struct um_shm_entry *entries;
    int count = um_shm_list(kind, &entries);
    int removed = 0;
    for (int i = 0; i < count; i++) {
        if (!entries[i].alive && um_shm_reclaim(&entries[i]) == 0) {
            removed++;
            um_log(UM_LOG_NOTICE, "Core-6976-138", "%s: left by process %u, which is gone: removed", entries[i].path,
                   entries[i].pid);
        }
    }
    um_free(entries);
    return removed;
}
