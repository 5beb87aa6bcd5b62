#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# container.sh FILE: an image for containers on accelerator hosts: a tar with image.json and root/ (Debian 12 with sshd), which
# starts as a board's root does, but for what LXC has mounted already.
set -euo pipefail
file=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$(dirname "$file")/container.XXXXXX")
trap 'rm -rf "$work"' EXIT
mmdebstrap --quiet --variant=minbase --include=openssh-server,iproute2 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/ssh/ssh_host_*' \
    bookworm "$work/root"
find "$work/root/dev" -mindepth 1 -delete # LXC fills it; an image store takes no device nodes
cp /bin/busybox "$work/root/usr/sbin/busybox-init"
for applet in init reboot poweroff; do ln -sf busybox-init "$work/root/usr/sbin/$applet"; done
printf '%s\n' '::sysinit:/bin/mkdir -p /run/sshd' '::respawn:/usr/sbin/sshd -D -e' '::ctrlaltdel:/sbin/reboot' \
    > "$work/root/etc/inittab"
printf '{"arch": "x86_64"}\n' > "$work/image.json"
tar -C "$work" --sort=name -cf "$file.partial" image.json root
mv "$file.partial" "$file"
