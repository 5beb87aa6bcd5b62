#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# board-arm64.sh FILE ARCH: as board.sh, for boards with 64-bit ARM processors. Made on a machine that cannot run any of
# it: packages are only unpacked (mmdebstrap's variant "extract", with a dpkg and apt configuration of its own, so that
# this machine's architectures stay as they are), and what their scripts would have set up for sshd is written here.
set -euo pipefail
file=$1
arch=$2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$file")/board-arm64.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
image=$work/image
mkdir -p "$image" "$work/kernel" "$work/busybox"

# By mmdebstrap's own apt for that architecture: kernel and busybox, unpacked elsewhere.
download='set -e
cd '"$work"'
export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
kernel=$(apt-cache depends linux-image-cloud-arm64 | sed -n "s/.*Depends: \(linux-image-[0-9].*\)/\1/p" | head -n 1)
apt-get -o APT::Sandbox::User=root download -qq busybox-static "$kernel"
dpkg-deb -x busybox-static_*.deb busybox
dpkg-deb -x linux-image-*.deb kernel'
# /bin, /sbin and /lib are links, as Debian's installer and usrmerge make them.
# In a mount namespace of its own: what mmdebstrap mounts below the root is nowhere where the trap removes files.
unshare --mount mmdebstrap --quiet --architectures=arm64 --variant=extract --include='?essential' --include=mount,openssh-server,iproute2 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --setup-hook='cd "$1" && mkdir -p usr/bin usr/sbin usr/lib && ln -s usr/bin usr/sbin usr/lib .' \
    --extract-hook="$download" bookworm "$image/root"
root=$image/root
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
echo 'sshd:*:100:65534::/run/sshd:/usr/sbin/nologin' >> "$root/etc/passwd"
cp "$root/usr/share/openssh/sshd_config" "$root/etc/ssh/sshd_config"
install -D -m 644 "$here/sshd.conf" "$root/etc/ssh/sshd_config.d/lab.conf"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root/etc/resolv.conf"
find "$root/dev" -mindepth 1 -delete # a board's kernel fills it; the image store takes no device nodes
cp "$work/busybox/bin/busybox" "$root/usr/sbin/busybox-init"
ln -sf busybox-init "$root/usr/sbin/init"
cp "$here/board-inittab" "$root/etc/inittab"
install -m 755 "$here/board-rc" "$root/etc/rc"

# An arm64 vmlinuz of Debian 12 is the plain Image that U-Boot's booti starts.
cp "$work"/kernel/boot/vmlinuz-* "$image/kernel"
version=$(basename "$work"/kernel/lib/modules/*)
depmod -b "$work/kernel" "$version"
# QEMU's machine "virt" has its network card on virtio-mmio.
initrd=$work/initrd
fill_initrd "$initrd" "$work/kernel" "sh mount umount insmod ip arp udhcpc switch_root cat echo mkdir sleep" \
    virtio_mmio virtio_net nfs nfsv3
cp "$work/busybox/bin/busybox" "$initrd/bin/busybox" # that architecture's in place of this machine's
cp "$here/initrd-init" "$initrd/init"
cp "$here/initrd-dhcp" "$initrd/etc/dhcp"
chmod 755 "$initrd/init" "$initrd/etc/dhcp"
pack_initrd "$initrd" "$image/initrd"

printf '{"arch": "%s", "cmdline": "quiet cryptomgr.notests"}\n' "$arch" > "$image/image.json"
tar -C "$image" --sort=name -cf "$file.partial" image.json kernel initrd root
mv "$file.partial" "$file"
