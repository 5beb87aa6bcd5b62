#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# board.sh FILE ARCH: an image for netbooted boards, as the collection's image store takes it: a tar with image.json,
# kernel, initrd and root/ (Debian 12 with sshd). ARCH is what the boards file calls the boards' architecture.
set -euo pipefail
file=$1
arch=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$(dirname "$file")/board.XXXXXX")
trap 'rm -rf "$work"' EXIT
image=$work/image
mkdir -p "$image" "$work/kernel" "$work/initrd"

# Debian's cloud kernel: small, LZ4-packed, with the virtio drivers that QEMU boards need. Unpacked, never installed.
cd "$work"
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
apt-get -o APT::Sandbox::User=root download -qq "$package"
dpkg-deb -x "$package"_*.deb "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$image/kernel"
version=$(basename "$work"/kernel/lib/modules/*)
depmod -b "$work/kernel" "$version"

# The initrd: busybox, the network and NFS modules in loading order, and a script that follows the kernel's own
# ip= and nfsroot= arguments.
initrd=$work/initrd
mkdir -p "$initrd"/{bin,dev,proc,sys,newroot,lib/modules,etc}
cp /bin/busybox "$initrd/bin/busybox"
for applet in sh mount umount insmod ip udhcpc switch_root cat echo mkdir sleep; do ln -s busybox "$initrd/bin/$applet"; done
for module in virtio_pci virtio_net nfs nfsv3; do
    modprobe -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | while read -r object; do
    cp "$object" "$initrd/lib/modules/"
    basename "$object" >> "$initrd/lib/modules/order"
done
cp "$here/initrd-init" "$initrd/init"
cp "$here/initrd-dhcp" "$initrd/etc/dhcp"
chmod 755 "$initrd/init" "$initrd/etc/dhcp"
(cd "$initrd" && find . | cpio -o -H newc --quiet -R 0:0 | lz4 -l -9 -q > "$image/initrd")

mmdebstrap --quiet --variant=minbase --include=openssh-server,iproute2 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/ssh/ssh_host_*' \
    bookworm "$image/root"
find "$image/root/dev" -mindepth 1 -delete # a board's kernel fills it; the image store takes no device nodes
cp /bin/busybox "$image/root/usr/sbin/busybox-init"
ln -sf busybox-init "$image/root/usr/sbin/init"
cp "$here/board-inittab" "$image/root/etc/inittab"
install -m 755 "$here/board-rc" "$image/root/etc/rc"
printf '{"arch": "%s", "cmdline": "quiet"}\n' "$arch" > "$image/image.json"
tar -C "$image" --sort=name -cf "$file.partial" image.json kernel initrd root
mv "$file.partial" "$file"
