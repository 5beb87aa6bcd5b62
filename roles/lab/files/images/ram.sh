#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# ram.sh FILE ARCH: a RAM image for the lab's boards, as the collection's image store takes it: a tar with image.json
# ("ram": true), kernel and initrd. In the initrd: busybox, dropbear, sfdisk, mkfs.ext4 and the drivers of disk and network.
set -euo pipefail
file=$1
arch=$2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$file")/ram.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/image" "$work/kernel"
cd "$work"
unpack_kernel linux-image-cloud-amd64 "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$work/image/kernel"

initrd=$work/initrd
applets=$(/bin/busybox --list | grep -vxE 'busybox|mke2fs|\[\[')
fill_initrd "$initrd" "$work/kernel" "$applets" virtio_pci virtio_net virtio_scsi sd_mod ext4
mkdir -p "$initrd"/{sbin,mnt,tmp,run,etc/ssh,root/.ssh}
for program in /usr/sbin/dropbear /usr/bin/dropbearconvert /usr/bin/dropbearkey /usr/sbin/sfdisk /usr/sbin/mke2fs; do
    cp "$program" "$initrd/sbin/"
    ldd "$program" | grep -o '/[^ ]*' | grep -v : | while read -r library; do
        mkdir -p "$initrd$(dirname "$library")"
        [ -e "$initrd$library" ] || cp -L "$library" "$initrd$library"
    done
done
mv "$initrd/sbin/mke2fs" "$initrd/sbin/mkfs.ext4"
cp /etc/mke2fs.conf "$initrd/etc/"
echo 'root:x:0:0:root:/root:/bin/sh' > "$initrd/etc/passwd"
echo 'root:x:0:' > "$initrd/etc/group"
echo '/bin/sh' > "$initrd/etc/shells"
install -m 755 "$here/ram-init" "$initrd/init"
install -m 755 "$here/initrd-dhcp" "$initrd/etc/dhcp"
pack_initrd "$initrd" "$work/image/initrd"
printf '{"arch": "%s", "ram": true, "console_key": true, "cmdline": "quiet"}\n' "$arch" > "$work/image/image.json"
tar -C "$work/image" --sort=name -cf "$file.partial" image.json kernel initrd
mv "$file.partial" "$file"
