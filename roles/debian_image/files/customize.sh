#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# customize.sh ROOT HERE WORK SLURM: build.sh's mmdebstrap calls this when all packages are set up in ROOT. Takes kernel and initrds out of it,
# and leaves it as a board finds it.
set -euo pipefail
root=$1 here=$2 work=$3 slurm=$4
[ ! -d "$root/hetero-native" ] || bash "$here/native.sh" scripts-done "$root"
version=$(basename "$root"/lib/modules/*)

# An initrd that finds the root, and one that is the RAM system. Both have all drivers (initramfs.conf(5), MODULES=most).
initramfs=$root/etc/initramfs-tools at_once=$root/usr/share/initramfs-tools/conf-hooks.d/hetero-modules-at-once
install -m 644 "$here/modules-at-once" "$at_once"
for when in nfs-premount init-bottom; do install -D -m 755 "$here/pin-proxy" "$initramfs/scripts/$when/hetero-pin-proxy"; done
install -D -m 755 "$here/own-address" "$initramfs/scripts/init-bottom/hetero-own-address"
chroot "$root" mkinitramfs -c zstd -o /boot/initrd "$version"
install -m 755 "$here/ram-programs" "$initramfs/hooks/hetero-ram-programs"
install -m 755 "$here/ram-system" "$initramfs/scripts/init-premount/hetero-ram-system"
chroot "$root" mkinitramfs -c zstd -o /boot/initrd-ram "$version"
rm "$at_once" "$initramfs/hooks/hetero-ram-programs" "$initramfs/scripts/init-premount/hetero-ram-system"
mv "$root/boot/initrd" "$work/image/initrd"
mv "$root/boot/initrd-ram" "$work/ram/initrd"
cp "$root/boot/vmlinuz-$version" "$work/image/kernel"
rm -rf "$root"/boot/* "$root"/vmlinuz* "$root"/initrd.img*

# The proxy puts a host key and the name into each root; the network is the one that the kernel came by. Without names of a host of its own for
# NVMe over a network, nvme(1) makes them of the board's firmware.
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/hostname" "$root/etc/machine-id" "$root/var/lib/dbus/machine-id" "$root"/etc/nvme/host{id,nqn}
# The key that package munge has made would be every root's, and nothing starts before user_data has given it another.
if [ "$slurm" = true ]; then
    rm -f "$root/etc/munge/munge.key"
    chroot "$root" systemctl --quiet disable munge.service slurmd.service
    install -D -m 644 "$here/slurm.cfg" "$root/etc/cloud/cloud.cfg.d/91-hetero-slurm.cfg"
fi
: > "$root/etc/machine-id"
install -D -m 644 "$here/network" "$root/etc/systemd/network/05-netboot.network"
install -D -m 644 "$here/cloud.cfg" "$root/etc/cloud/cloud.cfg.d/90-hetero.cfg"
for unit in systemd-networkd.service systemd-resolved.service; do chroot "$root" systemctl --quiet enable "$unit"; done
chroot "$root" systemctl --quiet disable systemd-networkd-wait-online.service e2scrub_reap.service
ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
[ ! -d "$root/hetero-native" ] || bash "$here/native.sh" take-back "$root"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/*.log "$root"/var/log/apt
