#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# ram.sh FILE ARCH [BOARD…]: a RAM image for the lab's boards, as the collection's image store takes it: a tar with image.json
# ("ram": true), kernel and initrd. In the initrd: busybox, dropbear, sfdisk, mkfs.ext4 and the drivers of disk and network.
# With ids of boards it is for these, which are Tilera's: a kernel for each (vmlinux_N_1 of OpenStack's blueprint), no arguments
# for it, and what answers tile-monitor in dropbear's place.
set -euo pipefail
file=$1
arch=$2
boards=("${@:3}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$file")/ram.XXXXXX")
trap 'rm -rf "$work"' EXIT
image=$work/image initrd=$work/initrd
mkdir -p "$image" "$work/kernel" "$initrd"/{sbin,mnt,tmp,run,etc/ssh,root/.ssh}
cd "$work"
unpack_kernel linux-image-cloud-amd64 "$work/kernel"
applets=$(/bin/busybox --list | grep -vxE 'busybox|mke2fs|\[\[')
fill_initrd "$initrd" "$work/kernel" "$applets" virtio_pci virtio_net virtio_scsi sd_mod ext4

programs=(/usr/sbin/sfdisk /usr/sbin/mke2fs)
if [ ${#boards[@]} = 0 ]; then
    cp "$work"/kernel/boot/vmlinuz-* "$image/kernel"
    programs+=(/usr/sbin/dropbear /usr/bin/dropbearconvert /usr/bin/dropbearkey)
    about=', "console_key": true, "cmdline": "quiet"'
else
    mkdir "$image/kernel.d"
    for board in "${boards[@]}"; do
        # The blueprint's kernel has its root built in. Behind this one its word changes nothing, and shows which kernel a file is.
        { cat "$work"/kernel/boot/vmlinuz-* && echo TLR_ROOT=tmpfs; } > "$image/kernel.d/$board"
    done
    programs+=(/sbin/ip) # busybox's knows no rules with ports
    install -m 755 "$here/tile-agent" "$initrd/etc/tile-agent"
    install -m 755 "$here/tile-iptables" "$initrd/sbin/iptables"
    about=
fi
for program in "${programs[@]}"; do
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
pack_initrd "$initrd" "$image/initrd"
printf '{"arch": "%s", "ram": true%s}\n' "$arch" "$about" > "$image/image.json"
(cd "$image" && tar --sort=name -cf "$file.partial" image.json kernel* initrd)
mv "$file.partial" "$file"
