/* The datagram that systemd expects. See um_notify.h. */
#define _GNU_SOURCE
#include "net/um_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void um_notify(const char *state)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = name == NULL ? 0 : strlen(name);
    if (len == 0 || len >= sizeof to.sun_path || (name[0] != '/' && name[0] != '@')) {
        return;
    }
    memcpy(to.sun_path, name, len);
    if (name[0] == '@') {
        to.sun_path[0] = '\0'; /* an abstract address */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}
