/* Which certificates are those of our peers, beyond that a trusted authority has signed
 * them. See um_tls.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/um_tls.h"

#define NAME_MAX_LEN 255u

/* `address`: the one that the connection goes to or comes from. */
static bool has_address(const struct um_tls_library *lib, um_x509 *certificate, int fd)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    char ip[INET_ADDRSTRLEN];
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
           inet_ntop(AF_INET, &peer.sin_addr, ip, sizeof ip) != NULL && lib->X509_check_ip_asc(certificate, ip, 0) == 1;
}

static bool has_name(const struct um_tls_library *lib, um_x509 *certificate, const char *name, int fd)
{
    struct in_addr address;
    if (strcmp(name, "address") == 0) {
        return has_address(lib, certificate, fd);
    }
    return inet_pton(AF_INET, name, &address) == 1 ? lib->X509_check_ip_asc(certificate, name, 0) == 1
                                                   : lib->X509_check_host(certificate, name, 0, 0, NULL) == 1;
}

const char *um_tls_check_names(const struct um_tls *tls, const um_ssl *ssl, int fd)
{
    const char *text = tls->peer_names;
    if (text == NULL) {
        return NULL;
    }
    um_x509 *certificate = tls->lib->get1_peer_certificate(ssl);
    bool good = false;
    while (certificate != NULL && *text != '\0' && !good) {
        char name[NAME_MAX_LEN + 1];
        size_t from = strspn(text, " ,"), len = strcspn(text + from, " ,");
        if (len > 0 && len <= NAME_MAX_LEN) {
            snprintf(name, sizeof name, "%.*s", (int)len, text + from);
            good = has_name(tls->lib, certificate, name, fd);
        }
        text += from + len;
    }
    tls->lib->X509_free(certificate);
    tls->lib->ERR_clear_error();
    return good ? NULL : "it has none of the names of um_tls_peer_names";
}
