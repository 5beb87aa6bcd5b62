# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# Sourced by board.sh, board-arm64.sh and machine.sh: Debian's kernels, unpacked and never installed here, and first roots for them.

# unpack_kernel NAME FOLDER: the newest kernel that package NAME stands for; sets `version`.
unpack_kernel() {
    local package
    package=$(apt-cache depends "$1" | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    apt-get -o APT::Sandbox::User=root download -qq "$package"
    dpkg-deb -x "$package"_*.deb "$2"
    version=$(basename "$2"/lib/modules/*)
    depmod -b "$2" "$version"
}

# fill_initrd FOLDER KERNEL_FOLDER "APPLETS" MODULE…: busybox, and the modules with all they need, in loading order.
fill_initrd() {
    local initrd=$1 kernel=$2 applets=$3 name
    shift 3
    mkdir -p "$initrd"/{bin,dev,proc,sys,newroot,lib/modules,etc}
    cp /bin/busybox "$initrd/bin/busybox"
    for name in $applets; do ln -s busybox "$initrd/bin/$name"; done
    lay_modules "$initrd" "$kernel" order "$@"
}

# lay_modules INITRD KERNEL_FOLDER ORDER MODULE…: those that are not there yet, named in file ORDER as they are loaded.
lay_modules() {
    local initrd=$1 kernel=$2 order=$3 name object
    shift 3
    for name in "$@"; do
        modprobe -d "$kernel" -S "$version" --show-depends "$name" 2>/dev/null | awk '$1 == "insmod" {print $2}'
    done | awk '!seen[$0]++' | while read -r object; do
        [ ! -e "$initrd/lib/modules/$(basename "$object")" ] || continue
        cp "$object" "$initrd/lib/modules/"
        basename "$object" >> "$initrd/lib/modules/$order"
    done
}

# pack_initrd FOLDER FILE
pack_initrd() {
    (cd "$1" && find . | cpio -o -H newc --quiet -R 0:0 | lz4 -l -9 -q > "$2")
}
