#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# build.sh FOLDER NAME ARCHITECTURE ARCH RELEASE MIRROR CMDLINE PACKAGES [SLURM]: two images as the collection's image store takes them, made of
# Debian's own kernel and packages. FOLDER/NAME.tar holds image.json, kernel, initrd and root/; FOLDER/NAME-ram.tar holds the RAM system,
# which writes and wipes disks, and no root. ARCHITECTURE is Debian's name (amd64), ARCH what the boards file calls it; RELEASE a code
# name; PACKAGES more packages, with commas between them. With SLURM true, munge and slurmd among them wait for what user_data gives them.
set -euo pipefail
folder=$1 name=$2 architecture=$3 arch=$4 release=$5 mirror=$6 cmdline="rw${7:+ $7}" packages=$8 slurm=${9:-false}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$folder/.$name.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
image=$work/image ram=$work/ram root=$work/image/root
mkdir -p "$image" "$ram"
say() { echo "debian_image: $*"; }

# Debian's generic kernel has the drivers of all network cards and disks that Linux knows; udev in the initrd loads those that a board
# needs. The RAM system's programs are in the root, too: its initrd takes them from there.
say "packages of $release for $architecture"
include=linux-image-$architecture,initramfs-tools,zstd,busybox,dropbear-bin,fdisk,e2fsprogs,hdparm,nvme-cli
include+=,systemd-sysv,systemd-resolved,dbus,udev,kmod,openssh-server,iproute2,iputils-ping,ca-certificates,python3,cloud-init
# INITRD: the kernel's own scripts would pack an initrd before there is anything of ours to put into it
# (/etc/kernel/postinst.d/initramfs-tools). DPKG_FORCE: dpkg's own defaults, and no wait for the disk after each file (dpkg(1)): what a power
# cut leaves is no image.
export INITRD=No DPKG_FORCE=security-mac,downgrade,unsafe-io
# Programs of another processor are emulated: those that can, are this machine's instead, till customize.sh takes them out (native.sh).
lend=()
if [ "$(dpkg --print-architecture)" != "$architecture" ]; then
    lend=(--extract-hook="bash '$here/native.sh' lend \"\$1\"" --essential-hook="bash '$here/native.sh' stand-in \"\$1\"")
    PATH=/hetero-native/bin:$PATH
fi
# mmdebstrap mounts proc, sys and devices below the root: in a mount namespace of its own, since the trap removes what it finds there.
unshare --mount mmdebstrap --quiet --variant=minbase --architectures="$architecture" --include="$include${packages:+,$packages}" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    "${lend[@]}" --customize-hook="bash '$here/customize.sh' \"\$1\" '$here' '$work' '$slurm'" \
    "$release" "$root" "$mirror"

find "$root/dev" -mindepth 1 -delete # a board's kernel fills it; the image store takes no device nodes
cp "$image/kernel" "$ram/kernel"
say "archives"
python3 - "$arch" "$cmdline" "$image" "$ram" << 'PYTHON'
import json, sys
arch, cmdline, image, ram = sys.argv[1:]
with open(f"{image}/image.json", "w", encoding="ascii") as file:
    json.dump({"arch": arch, "cmdline": cmdline}, file)
with open(f"{ram}/image.json", "w", encoding="ascii") as file:
    json.dump({"arch": arch, "cmdline": f"{cmdline} hetero.ram".strip(), "ram": True, "console_key": True}, file)
PYTHON
tar -C "$ram" --sort=name -cf "$work/ram.tar" image.json kernel initrd
tar -C "$image" --sort=name -cf "$work/image.tar" image.json kernel initrd root
mv "$work/ram.tar" "$folder/$name-ram.tar"
mv "$work/image.tar" "$folder/$name.tar"
