#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# native.sh VERB ROOT, for build.sh, where ROOT's programs are another processor's and run under emulation: some of this machine's do their work
# meanwhile, and write the same, sooner.
#   lend        those that unpack, copy, compress and read kernel modules: into /hetero-native/bin there, first in PATH for mmdebstrap and
#               mkinitramfs (modules-at-once). What says what the processor is stays the root's own (dpkg, uname, ldconfig, ldd).
#   stand-in    the shell that runs packages' scripts, where it is the root's by its version, till scripts-done.
#   scripts-done  the root's own shell is back; and what packages would have compiled for Python, one by one, is.
#   take-back   leaves nothing of it.
set -euo pipefail
shopt -s nullglob
verb=$1 root=$2 native=/hetero-native
programs="dpkg-deb dpkg-split tar gzip xz zstd cpio depmod modinfo modprobe
    cat cp mv rm ln mkdir chmod chown touch mktemp readlink basename dirname find sort xargs sed grep cut head tail tr md5sum"
of() { ldd "$(command -v "$1")"; }
loader=$(of dpkg-deb | sed -n 's/^[[:space:]]*\(\/[^ ]*\) .*/\1/p')
# Where that loader looks for libraries: a folder with this processor's name, which a root of another has no other use for.
libraries=/usr/lib/$(of dpkg-deb | sed -n 's/.*=> .*\/\([^/]*\)\/libc[.]so.*/\1/p')

# copied PROGRAM FILE: this machine's PROGRAM, its libraries with it. It names its loader by a path that such a root does not have, and that is not
# made there: scripts would take its folder for one of the root's own. Slashes make the other path as long.
copied() {
    local place=$native/loader
    while [ ${#place} -lt ${#loader} ]; do place=${place%/*}//loader; done
    LC_ALL=C sed "s|$loader|$place|" "$(command -v "$1")" > "$root$2"
    chmod 755 "$root$2"
    of "$1" | sed -n 's/.*=> \([^ ]*\) .*/\1/p' | xargs cp -Lut "$root$libraries"
}

# same PACKAGE: whether this machine's is the root's, by what comes before Debian's own part of the version.
same() {
    local here there
    here=$(dpkg-query --show --showformat '${Version}' "$1" 2> /dev/null) || return 1
    there=$(dpkg-query --admindir="$root/var/lib/dpkg" --show --showformat '${Version}' "$1" 2> /dev/null) || return 1
    [ "${here%-*}" = "${there%-*}" ]
}

# stand_in PACKAGE FILE, and own FILE when that is over.
stand_in() {
    same "$1" || return 0
    mv "$root$2" "$root$native/own/"
    copied "$2" "$2"
}
own() { [ ! -e "$root$native/own/${1##*/}" ] || mv "$root$native/own/${1##*/}" "$root$1"; }

case $verb in
    lend)
        mkdir -p "$root$native/bin" "$root$native/own" "$root$native/compile" "$root$libraries"
        cp -L "$loader" "$root$native/loader"
        for program in $programs; do
            ! command -v "$program" > /dev/null || copied "$program" "$native/bin/$program"
        done
        # Each package with Python modules starts two Pythons for them: noted, for scripts-done.
        printf '%s\n' '#!/bin/sh' "printf '%s\\0' \"\$@\" > \"\$(mktemp $native/compile/XXXXXXXX)\"" > "$root$native/bin/py3compile"
        chmod 755 "$root$native/bin/py3compile"
        # apt gives dpkg a PATH of its own.
        echo "DPkg::Path \"$native/bin:/usr/sbin:/usr/bin:/sbin:/bin\";" > "$root/etc/apt/apt.conf.d/90hetero-native"
        ;;
    stand-in)
        stand_in dash /usr/bin/dash
        ;;
    scripts-done)
        own /usr/bin/dash
        rm "$root$native/bin/py3compile"
        python=$(chroot "$root" readlink -f /usr/bin/python3)
        stand_in "${python##*/}-minimal" "$python"
        for call in "$root$native"/compile/*; do xargs -0 chroot "$root" /usr/bin/py3compile < "$call"; done
        own "$python"
        ;;
    take-back)
        rm -rf "$root$native" "$root$libraries" "$root/etc/apt/apt.conf.d/90hetero-native"
        ;;
esac
