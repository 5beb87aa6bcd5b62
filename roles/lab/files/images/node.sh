#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# node.sh FOLDER PACKAGE…: the root file system that every lab node starts from: Debian 12 with systemd, sshd and Python.
# PACKAGEs are not installed but laid into a package repository inside it, so that roles install them there as on any
# other machine, although a lab node reaches no network.
set -euo pipefail
folder=$1
shift
partial=$folder.partial.$$
trap 'rm -rf --one-file-system "$partial"' EXIT
repository='set -e
chroot "$1" apt-get install -qq --yes --no-install-recommends --download-only '"$*"' >&2
mkdir -p "$1/srv/packages"
mv "$1"/var/cache/apt/archives/*.deb "$1/srv/packages/"
(cd "$1/srv/packages" && apt-ftparchive packages . > Packages)
rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/var/lib/apt/lists/*
echo "deb [trusted=yes] file:/srv/packages ./" > "$1/etc/apt/sources.list"
chroot "$1" apt-get update -qq >&2'
# In a mount namespace of its own: what mmdebstrap mounts below the root is nowhere where the trap removes files.
unshare --mount mmdebstrap --quiet --variant=minbase --skip=cleanup/apt/lists \
    --include=systemd,systemd-sysv,dbus,iproute2,python3,python3-apt,openssh-server,ca-certificates \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="$repository" \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id && : > "$1/etc/machine-id"' \
    bookworm "$partial"
mv "$partial" "$folder"
