#!/usr/bin/env bash
# private_namespaces.sh FOLDER... -- COMMAND...: run a command with processes, a network, shared
# memory and temporary folders of its own, so that several processes of the tests may have a lab
# each. The folders stay visible where they are.
set -euo pipefail

export PRIVATE_NAMESPACES=1
exec unshare --mount --pid --net --ipc --fork --kill-child --mount-proc bash -euo pipefail -c '
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir /run/lock /run/kept /run/cgroup
    kept=()
    until [[ $1 == -- ]]; do
        mkdir "/run/kept/${#kept[@]}"
        mount --rbind "$1" "/run/kept/${#kept[@]}"
        kept+=("$1")
        shift
    done
    shift
    for folder in /tmp /var/tmp /dev/shm; do
        mount -t tmpfs -o mode=1777 tmpfs "$folder"
    done
    for number in "${!kept[@]}"; do
        if [[ ${kept[number]} =~ ^/(tmp|var/tmp|dev/shm|run)/ ]]; then
            mkdir -p "${kept[number]}"
            mount --rbind "/run/kept/$number" "${kept[number]}"
        fi
    done
    # /sys shows the network of the process that mounted it.
    mount --rbind /sys/fs/cgroup /run/cgroup
    mount -t sysfs sysfs /sys
    mount --rbind /run/cgroup /sys/fs/cgroup
    ip link set lo up
    code=0
    # Not exec: the first process of a namespace ignores signals, and has to wait for orphans.
    "$@" || code=$?
    exit "$code"
' private_namespaces "$@"
