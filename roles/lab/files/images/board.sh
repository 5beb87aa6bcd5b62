#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# board.sh FILE ARCH DISK: an image for netbooted boards, as the collection's image store takes it: a tar with image.json,
# kernel, initrd and root/ (Debian 12 with sshd, and the python3 that Ansible's modules need). ARCH is what the boards
# file calls the boards' architecture; with DISK true its initrd can mount a root on a disk.
set -euo pipefail
file=$1
arch=$2
disk=$3
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$file")/board.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
image=$work/image
mkdir -p "$image" "$work/kernel"

# Debian's cloud kernel: small, LZ4-packed, with the virtio drivers that QEMU boards need.
cd "$work"
unpack_kernel linux-image-cloud-amd64 "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$image/kernel"

# The initrd follows the kernel's own ip=, root= and nfsroot= arguments.
initrd=$work/initrd
fill_initrd "$initrd" "$work/kernel" "sh mount umount insmod ip arp udhcpc switch_root cat echo mkdir sleep" \
    virtio_pci virtio_net nfs nfsv3
[ "$disk" != true ] || lay_modules "$initrd" "$work/kernel" order-disk virtio_scsi sd_mod ext4
cp "$here/initrd-init" "$initrd/init"
cp "$here/initrd-dhcp" "$initrd/etc/dhcp"
chmod 755 "$initrd/init" "$initrd/etc/dhcp"
pack_initrd "$initrd" "$image/initrd"

# In a mount namespace of its own: what mmdebstrap mounts below the root is nowhere where the trap removes files.
unshare --mount mmdebstrap --quiet --variant=minbase --include=openssh-server,iproute2,python3 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/ssh/ssh_host_*' \
    bookworm "$image/root"
find "$image/root/dev" -mindepth 1 -delete # a board's kernel fills it; the image store takes no device nodes
cp /bin/busybox "$image/root/usr/sbin/busybox-init"
for applet in init reboot poweroff; do ln -sf busybox-init "$image/root/usr/sbin/$applet"; done
cp "$here/board-inittab" "$image/root/etc/inittab"
install -m 755 "$here/board-rc" "$image/root/etc/rc"
install -D -m 644 "$here/sshd.conf" "$image/root/etc/ssh/sshd_config.d/lab.conf"
printf '{"arch": "%s", "cmdline": "quiet cryptomgr.notests"}\n' "$arch" > "$image/image.json"
tar -C "$image" --sort=name -cf "$file.partial" image.json kernel initrd root
mv "$file.partial" "$file"
