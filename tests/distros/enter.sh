#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Run a command in a system that lies in a folder.
#
# usage: unshare --mount --pid --fork --kill-child tests/distros/enter.sh ROOT COMMAND [WORD...]
#
# What is mounted here is mounted in the namespace that unshare makes: it is gone when the command
# ends, however it ends, and so is all that the command started.

set -eu

root=$1
shift
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
