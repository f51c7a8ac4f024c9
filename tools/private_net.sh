#!/bin/sh
# Runs a command in a network namespace of its own with only a loopback interface, multicast routed over it, so that
# tests and the demo neither see nor disturb any real network. Sets UM_PRIVATE_NET=1 there. Where namespaces are not
# permitted the command runs in the present network with UM_PRIVATE_NET=0.
if [ "$UM_PRIVATE_NET" = 1 ]; then
    exec "$@"
fi
# An old kernel may know one of these settings already or not at all; the command finds out.
setup='ip link set lo up multicast on || ip link set lo up; ip route add 224.0.0.0/4 dev lo || :; UM_PRIVATE_NET=1 exec "$@"'
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
    exec unshare --net sh -c "$setup" sh "$@"
fi
if unshare --user --map-root-user --net true 2>/dev/null; then
    exec unshare --user --map-root-user --net sh -c "$setup" sh "$@"
fi
UM_PRIVATE_NET=0 exec "$@"
