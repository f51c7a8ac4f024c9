"""Compiles the binding `um_cffi._native` against a build tree of the library (cffi API mode).

Run by the Makefile: UM_BUILD_DIR (default `build`) holds include/ and lib/; the module goes to
$UM_BUILD_DIR/python/um_cffi/, where the package finds it. What is declared here is what the Python code uses.
"""

from __future__ import annotations

import os
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent

DECLARATIONS = """
typedef ... lbm_context_t;
typedef ... lbm_context_attr_t;
typedef ... lbm_topic_t;
typedef ... lbm_src_t;
typedef ... lbm_rcv_t;
typedef ... lbm_wildcard_rcv_t;
typedef ... lbm_src_topic_attr_t;
typedef ... lbm_rcv_topic_attr_t;
typedef ... lbm_wildcard_rcv_attr_t;
typedef ... lbm_event_queue_t;
typedef unsigned long int lbm_ulong_t;
typedef unsigned int lbm_uint_t;

typedef struct lbm_timeval_t_stct { lbm_ulong_t tv_sec; lbm_ulong_t tv_usec; } lbm_timeval_t;
typedef struct lbm_msg_t_stct {
    char source[...];
    char topic_name[...];
    int type;
    int flags;
    const char *data;
    size_t len;
    lbm_uint_t sequence_number;
    lbm_timeval_t tsp;
    ...;
} lbm_msg_t;

typedef struct { lbm_ulong_t num_clients; lbm_ulong_t bytes_buffered; ...; } lbm_src_transport_stats_tcp_t;
typedef struct { lbm_ulong_t bytes_rcved; lbm_ulong_t lbm_msgs_rcved; lbm_ulong_t lbm_msgs_no_topic_rcved;
                 lbm_ulong_t lbm_reqs_rcved; ...; } lbm_rcv_transport_stats_tcp_t;
typedef struct lbm_src_transport_stats_t_stct {
    int type; char source[...]; ...;
} lbm_src_transport_stats_t;
typedef struct lbm_rcv_transport_stats_t_stct {
    int type; char source[...]; ...;
} lbm_rcv_transport_stats_t;

typedef struct { uint64_t messages_sent, bytes_sent, receivers, session_dropped, session_dropped_bytes,
                 session_unsent_bytes, session_ignored_messages, session_filtered_bytes,
                 session_unheard_bytes; } um_src_stats_t;
typedef struct { uint64_t sources, delivered, missing, lost, discarded, late, duplicates, malformed, headless,
                 not_assembled, no_room, unfinished, not_queued, session_malformed; } um_rcv_stats_t;
typedef struct { uint64_t resolver_unknown_sender, resolver_refused_patterns, unicast_malformed, unicast_foreign,
                 unicast_unsupported, unicast_unmatched, unicast_corrupt, unicast_refused,
                 unicast_unsent; } um_context_stats_t;

#define LBM_OK ...
#define LBM_FAILURE ...
#define LBM_EINVAL ...
#define LBM_EWOULDBLOCK ...
#define LBM_EOPNOTSUPP ...
#define LBM_ETIMEDOUT ...
#define LBM_MSG_DATA ...
#define LBM_MSG_BOS ...
#define LBM_MSG_EOS ...
#define LBM_MSG_REQUEST ...
#define LBM_MSG_UNRECOVERABLE_LOSS ...
#define LBM_MSG_UNRECOVERABLE_LOSS_BURST ...
#define LBM_MSG_NO_SOURCE_NOTIFICATION ...
#define LBM_MSG_FLUSH ...
#define LBM_SRC_NONBLOCK ...
#define LBM_SRC_BLOCK ...
#define LBM_SRC_EVENT_CONNECT ...
#define LBM_SRC_EVENT_DISCONNECT ...
#define LBM_SRC_EVENT_WAKEUP ...
#define LBM_TRANSPORT_STAT_TCP ...

const char *lbm_version(void);
const char *lbm_errmsg(void);
int lbm_errnum(void);
int lbm_config(const char *fname);

int lbm_context_attr_create(lbm_context_attr_t **attr);
int lbm_context_attr_delete(lbm_context_attr_t *attr);
int lbm_context_attr_str_setopt(lbm_context_attr_t *attr, const char *optname, const char *optval);
int lbm_context_attr_str_getopt(lbm_context_attr_t *attr, const char *optname, char *optval, size_t *optlen);
int lbm_context_create(lbm_context_t **ctxp, const lbm_context_attr_t *attr, void *proc, void *clientd);
int lbm_context_delete(lbm_context_t *ctx);
int lbm_context_str_getopt(lbm_context_t *ctx, const char *optname, char *optval, size_t *optlen);

int lbm_src_topic_attr_create(lbm_src_topic_attr_t **attr);
int lbm_src_topic_attr_delete(lbm_src_topic_attr_t *attr);
int lbm_src_topic_attr_str_setopt(lbm_src_topic_attr_t *attr, const char *optname, const char *optval);
int lbm_src_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol, const lbm_src_topic_attr_t *attr);
typedef int (*lbm_src_cb_proc)(lbm_src_t *src, int event, void *ed, void *clientd);
int lbm_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq);
int lbm_src_delete(lbm_src_t *src);
int lbm_src_send(lbm_src_t *src, const char *msg, size_t len, int flags);
int lbm_src_flush(lbm_src_t *src);
int lbm_src_retrieve_transport_stats(lbm_src_t *src, lbm_src_transport_stats_t *stats);

int lbm_rcv_topic_attr_create(lbm_rcv_topic_attr_t **attr);
int lbm_rcv_topic_attr_delete(lbm_rcv_topic_attr_t *attr);
int lbm_rcv_topic_attr_str_setopt(lbm_rcv_topic_attr_t *attr, const char *optname, const char *optval);
int lbm_rcv_topic_lookup(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                         const lbm_rcv_topic_attr_t *attr);
typedef int (*lbm_rcv_cb_proc)(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd);
int lbm_rcv_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq);
int lbm_rcv_delete(lbm_rcv_t *rcv);
int lbm_context_retrieve_rcv_transport_stats(lbm_context_t *ctx, int *num, lbm_rcv_transport_stats_t *stats);

int lbm_wildcard_rcv_attr_create(lbm_wildcard_rcv_attr_t **attr);
int lbm_wildcard_rcv_attr_delete(lbm_wildcard_rcv_attr_t *attr);
int lbm_wildcard_rcv_attr_str_setopt(lbm_wildcard_rcv_attr_t *attr, const char *optname, const char *optval);
int lbm_wildcard_rcv_create(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                            const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr,
                            lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq);
int lbm_wildcard_rcv_delete(lbm_wildcard_rcv_t *wrcv);

const char *um_version(void);
int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms);
int um_src_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms);
int um_src_stats(lbm_src_t *src, um_src_stats_t *stats);
int um_rcv_stats(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats);
int um_wildcard_rcv_stats(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats);
int um_context_stats(lbm_context_t *ctx, um_context_stats_t *stats);

const lbm_src_transport_stats_tcp_t *um_py_src_tcp(const lbm_src_transport_stats_t *stats);
const lbm_rcv_transport_stats_tcp_t *um_py_rcv_tcp(const lbm_rcv_transport_stats_t *stats);

extern "Python" int um_py_on_message(lbm_rcv_t *, lbm_msg_t *, void *);
extern "Python" int um_py_on_source_event(lbm_src_t *, int, void *, void *);
"""

SOURCE = """
#include <lbm/lbm.h>
#include <lbm/um.h>

/* Members of anonymous unions are out of cffi's reach. */
static const lbm_src_transport_stats_tcp_t *um_py_src_tcp(const lbm_src_transport_stats_t *stats)
{
    return &stats->transport.tcp;
}
static const lbm_rcv_transport_stats_tcp_t *um_py_rcv_tcp(const lbm_rcv_transport_stats_t *stats)
{
    return &stats->transport.tcp;
}
"""


def main() -> None:
    build = (ROOT / os.environ.get("UM_BUILD_DIR", "build")).resolve()
    target = build / "python" / "um_cffi"
    stamp = target / "_build.stamp"
    inputs = [Path(__file__), *sorted((build / "include" / "lbm").glob("*.h"))]
    if stamp.exists() and all(path.stat().st_mtime <= stamp.stat().st_mtime for path in inputs):
        return
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    ffi.set_source(
        "um_cffi._native",
        SOURCE,
        include_dirs=[str(build / "include")],
        library_dirs=[str(build / "lib")],
        runtime_library_dirs=[str(build / "lib")],
        libraries=["um"],
    )
    target.mkdir(parents=True, exist_ok=True)
    print(f"-- compiling the Python binding into {target}", flush=True)
    ffi.compile(tmpdir=str(build / "python"))
    stamp.touch()


if __name__ == "__main__":
    main()
