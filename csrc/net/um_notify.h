/* Telling the service manager (systemd, Type=notify) how a daemon is. Any thread. */
#ifndef UM_NET_NOTIFY_H
#define UM_NET_NOTIFY_H

/* One state, for example "READY=1" or "STOPPING=1". Does nothing where nobody asked (environment NOTIFY_SOCKET), and
 * never waits; a manager that cannot be told is not a reason to stop. */
void um_notify(const char *state);

#endif
