/* What the parts of a segment (um_shm_*.c) call of each other: host and names, files,
 * locks, header. */
#ifndef UM_TRANSPORT_SHM_PARTS_H
#define UM_TRANSPORT_SHM_PARTS_H

#include <fcntl.h>

#include "transport/shm/um_shm_words.h"

/* um_shm_host.c */
void um_shm_make_path(char *out, size_t size, enum um_shm_kind kind, uint32_t session_id, unsigned transport_id);
/* Ids and path of a file in the directory; false: no name of this kind. */
bool um_shm_parse_name(enum um_shm_kind kind, const char *name, struct um_shm_entry *entry);

/* um_shm_file.c */
/* A new file with the mode of UM_SHM_MODE, under `path` only where the file system knows no files without a name
 * (*named). -1 + errno. */
int um_shm_open_unnamed(const char *path, bool *named);
int um_shm_set_owner(int fd, const char *path);                        /* UM_SHM_OWNER. -1 + error */
int um_shm_reserve(int fd, uint64_t len, const char *path);            /* -1 + error */
int um_shm_identify(int fd, const char *path, dev_t *dev, ino_t *ino); /* -1 + error */
void *um_shm_map(int fd, uint64_t off, uint64_t len, int protection);  /* NULL + errno */
int um_shm_give_name(int fd, const char *path);                        /* -1 + errno */
bool um_shm_has_name(const char *path, dev_t dev, ino_t ino);          /* does the name belong to this file? */
void um_shm_unlink_if_same(const char *path, dev_t dev, ino_t ino);

/* um_shm_locks.c */
int um_shm_lock_op(int fd, int command, short type, unsigned byte, struct flock *out); /* -1 + errno */
bool um_shm_held_elsewhere(int fd, unsigned byte);

/* um_shm_header.c */
void um_shm_describe(struct um_shm_header *header, const struct um_shm_spec *spec, uint32_t session_id);
bool um_shm_huge_pages(uint64_t ring_len); /* UM_SHM_HUGEPAGES */
int um_shm_refuse(const struct um_shm_segment *segment, const char *what, unsigned long long value); /* -1 + error */
/* Every field that is used later; `header` is a private copy. -1 + error. */
int um_shm_check_header(const struct um_shm_segment *segment, const struct um_shm_header *header, uint64_t file_len);
void um_shm_adopt_geometry(struct um_shm_segment *segment, const struct um_shm_header *header);

#endif
