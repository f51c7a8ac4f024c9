/* Per-thread error state of the public API (lbm_errnum, lbm_errmsg).
 * Every layer reports failures through um_error(); no layer prints.
 * Thread: each thread sees only its own last error. */
#ifndef UM_BASE_ERROR_H
#define UM_BASE_ERROR_H

/* Values are those of the LBM_E* constants of lbm.h. */
enum um_errnum {
    UM_EINVAL = 1,
    UM_EWOULDBLOCK = 2,
    UM_ENOMEM = 3,
    UM_EOP = 4,
    UM_EOS = 5,
    UM_ETIMEDOUT = 6,
    UM_EUMENOREG = 8,
    UM_EOPNOTSUPP = 9,
    UM_EINPROGRESS = 10
};

/* Record an error for this thread; always returns -1, so that callers can
 * write `return um_error(UM_EINVAL, "CoreApi-5688-64", "...");`.
 * `id` is the operator-searchable identifier; the text becomes "id: text".
 * Preserves errno. The text is cut at 511 bytes. */
int um_error(int errnum, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As um_error(UM_EOS, ...) with ": <strerror(saved_errno)>" appended. */
int um_error_os(int saved_errno, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As um_error(UM_ENOMEM, ...): "<what>: out of memory (<bytes> bytes)". */
int um_error_nomem(const char *what, unsigned long bytes);

/* Set the state as given, without identifier; the text is cut at 511 bytes. */
void um_error_set(int errnum, const char *text);

int um_errnum(void);
const char *um_errmsg(void);

/* Carry an error from the thread that ran a command to the one that waits. */
struct um_error_state {
    int errnum;
    char text[512];
};
void um_error_save(struct um_error_state *out);
void um_error_restore(const struct um_error_state *state);

#endif
