#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# machine.sh FOLDER SIZE PACKAGE…: what a lab node starts from that is a whole QEMU machine: kernel, initrd, and a disk of
# SIZE (sparse) with what node.sh makes of the PACKAGEs, and Debian's generic kernel, which has all that a server's has.
set -euo pipefail
folder=$1
size=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$folder")/machine.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
bash "$here/node.sh" "$work/root" "$@"

# What a container has from its host (modules and devices), and the PACKAGEs, which emulation would take minutes to
# install; but not the NFS servers, which are in each other's way: which of them a node gets is for roles.
ready=(kmod udev)
for package in "$@"; do
    case $package in nfs-*) ;; *) ready+=("$package") ;; esac
done
printf '#!/bin/sh\nexit 101\n' > "$work/root/usr/sbin/policy-rc.d"
chmod 755 "$work/root/usr/sbin/policy-rc.d"
DEBIAN_FRONTEND=noninteractive chroot "$work/root" \
    apt-get install -qq --yes --no-install-recommends "${ready[@]}" >&2
rm "$work/root/usr/sbin/policy-rc.d"

cd "$work"
unpack_kernel linux-image-amd64 "$work/kernel"
mkdir "$work/image"
cp "$work"/kernel/boot/vmlinuz-* "$work/image/kernel"
fill_initrd "$work/initrd" "$work/kernel" "sh mount insmod ip switch_root cat mkdir" virtio_pci virtio_net virtio_blk ext4
cp "$here/machine-init" "$work/initrd/init"
chmod 755 "$work/initrd/init"
pack_initrd "$work/initrd" "$work/image/initrd"

mv "$work/kernel/lib/modules" "$work/root/usr/lib/modules"
mke2fs -q -t ext4 -m 0 -E root_owner=0:0 -d "$work/root" "$work/image/disk" "$size"
mv "$work/image" "$folder"
