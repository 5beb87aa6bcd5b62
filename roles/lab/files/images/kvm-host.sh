#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# kvm-host.sh FILE ARCH: an image for a board that is a KVM host, as the collection's image store takes it: a tar with
# image.json, kernel, initrd and root/ (Debian 12 with systemd, sshd, Python, libvirt and QEMU). Its kernel is the generic one:
# the cloud kernel has no pci-stub, and none of the drivers of what is plugged into such a machine.
set -euo pipefail
file=$1
arch=$2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kernel.sh"
work=$(mktemp -d "$(dirname "$file")/kvm-host.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
image=$work/image
mkdir -p "$image" "$work/kernel"

cd "$work"
unpack_kernel linux-image-amd64 "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$image/kernel"
initrd=$work/initrd
fill_initrd "$initrd" "$work/kernel" "sh mount umount insmod ip arp udhcpc switch_root cat echo mkdir sleep" \
    virtio_pci virtio_net nfs nfsv3
cp "$here/initrd-init" "$initrd/init"
cp "$here/initrd-dhcp" "$initrd/etc/dhcp"
chmod 755 "$initrd/init" "$initrd/etc/dhcp"
pack_initrd "$initrd" "$image/initrd"

# Under emulation each service costs seconds: none that this machine has no use for; libvirt starts when it is asked.
# In a mount namespace of its own: what mmdebstrap mounts below the root is nowhere where the trap removes files.
unshare --mount mmdebstrap --quiet --variant=minbase \
    --include=systemd,systemd-sysv,dbus,udev,kmod,iproute2,openssh-server,python3-minimal,python3-apt,nftables,pci.ids,pciutils \
    --include=fdisk,zstd,libvirt-daemon-system,libvirt-clients,qemu-system-x86,qemu-utils \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/ssh/ssh_host_*' \
    --customize-hook=': > "$1/etc/machine-id"' \
    --customize-hook='systemctl --root "$1" mask --quiet e2scrub_reap.service e2scrub_all.timer apt-daily.timer apt-daily-upgrade.timer \
        dpkg-db-backup.timer fstrim.timer libvirt-guests.service systemd-update-utmp.service' \
    --customize-hook='systemctl --root "$1" disable --quiet libvirtd.service' \
    bookworm "$image/root"
mv "$work/kernel/lib/modules" "$image/root/usr/lib/modules"
install -D -m 644 "$here/sshd.conf" "$image/root/etc/ssh/sshd_config.d/lab.conf"
echo SSHD_OPTS=-r > "$image/root/etc/default/ssh"
find "$image/root/dev" -mindepth 1 -delete # its kernel fills it; the image store takes no device nodes
printf '{"arch": "%s", "cmdline": "intel_iommu=on net.ifnames=0 cryptomgr.notests"}\n' "$arch" > "$image/image.json"
tar -C "$image" --sort=name -cf "$file.partial" image.json kernel initrd root
mv "$file.partial" "$file"
