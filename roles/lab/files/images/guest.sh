#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# guest.sh FILE: an image for guests on KVM hosts, of the kind that boards boot: a tar with image.json, kernel, initrd and root/,
# which is container.sh's with lspci. Small, since such a guest is emulated on a machine that is emulated itself.
set -euo pipefail
file=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$file")/guest.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
image=$work/image
mkdir -p "$image" "$work/kernel"
cd "$work"
bash "$here/container.sh" "$work/container.tar" pciutils /usr/bin/lspci
tar -C "$image" -xf "$work/container.tar" root
mkdir -p "$image/root/usr/share/misc"
: > "$image/root/usr/share/misc/pci.ids" # lspci -n wants no names

unpack_kernel linux-image-cloud-amd64 "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$image/kernel"
initrd=$work/initrd
fill_initrd "$initrd" "$work/kernel" "sh mount insmod ip switch_root cat echo mkdir sleep" virtio_pci virtio_net virtio_blk ext4
cp "$here/guest-init" "$initrd/init"
chmod 755 "$initrd/init"
pack_initrd "$initrd" "$image/initrd"
printf '{"arch": "x86_64", "cmdline": "quiet cryptomgr.notests no_timer_check"}\n' > "$image/image.json"
tar -C "$image" --sort=name -cf "$file.partial" image.json kernel initrd root
mv "$file.partial" "$file"
