/* Finding OpenSSL. See um_tls_library.h. */
#include "net/um_tls_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"

static struct um_tls_library library;
static bool found;
static char why_not[256]; /* written once, before `found` is read */

static bool look_up(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name); /* also in what the library depends on: libcrypto */
    if (symbol == NULL) {
        snprintf(why_not, sizeof why_not, "it has no function %s", name);
        return false;
    }
    memcpy(function, &symbol, sizeof symbol);
    return true;
}

static bool look_up_all(void *handle)
{
#define UM_TLS_LOOK_UP(result, name, arguments)                                                                        \
    if (!look_up(handle, #name, &library.name)) {                                                                      \
        return false;                                                                                                  \
    }
    UM_TLS_FUNCTIONS(UM_TLS_LOOK_UP)
#undef UM_TLS_LOOK_UP
    return look_up(handle, "SSL_get1_peer_certificate", &library.get1_peer_certificate) ||
           look_up(handle, "SSL_get_peer_certificate", &library.get1_peer_certificate);
}

/* Never closed: OpenSSL leaves destructors for threads behind. It must not leave one for the end of the process, where
 * threads of contexts may still be at work. */
static void load(void)
{
    static const char *const names[] = {"libssl.so.3", "libssl.so.1.1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL) {
            if (why_not[0] == '\0') {
                const char *text = dlerror();
                snprintf(why_not, sizeof why_not, "%s", text != NULL ? text : "not found");
            }
        } else if (look_up_all(handle)) {
            found = library.OPENSSL_init_ssl(UM_OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
            snprintf(why_not, sizeof why_not, "%s cannot be initialised", names[i]);
        }
    }
}

const struct um_tls_library *um_tls_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!found) {
        um_error(UM_EOPNOTSUPP, "CoreApi-9565-12",
                 "use_tls 1: OpenSSL 3 or 1.1.1 is needed (libssl.so.3, libssl.so.1.1): %s; install it or set use_tls "
                 "0",
                 why_not);
        return NULL;
    }
    return &library;
}
