#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# container.sh FILE [PACKAGE PROGRAM]: an image for containers on compute hosts: a tar with image.json and root/, which is
# busybox and Debian's sshd with the libraries that it loads. Any root with an ssh server will do; this one is copied in a
# moment. With PACKAGE, its PROGRAM is in it, too.
set -euo pipefail
file=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$(dirname "$file")/container.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
debian=$work/debian
root=$work/root
# In a mount namespace of its own: what mmdebstrap mounts below the root is nowhere where the trap removes files.
unshare --mount mmdebstrap --quiet --variant=extract --include="openssh-server,busybox-static${2:+,$2}" bookworm "$debian"
mkdir -p "$root"/{bin,dev,etc/ssh,lib64,proc,root,run,sbin,sys,tmp,usr/sbin,var/log}
chmod 1777 "$root/tmp"
chmod 700 "$root/root"

cp "$debian/bin/busybox" "$root/bin/busybox"
for applet in $("$root/bin/busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
for applet in init poweroff reboot; do ln -s ../bin/busybox "$root/sbin/$applet"; done

for program in /usr/sbin/sshd ${3:-}; do
    install -D "$debian$program" "$root$program"
    chroot "$debian" /lib64/ld-linux-x86-64.so.2 --list "$program" | grep -o '/[^ ]*\.so[^ ]*' | while read -r library; do
        install -D "$debian$library" "$root$library"
    done
done

printf 'root:x:0:0:root:/root:/bin/sh\nsshd:x:100:100::/run/sshd:/bin/false\nnobody:x:65534:65534::/:/bin/false\n' > "$root/etc/passwd"
printf 'root:x:0:\nsshd:x:100:\nnogroup:x:65534:\n' > "$root/etc/group"
printf 'PasswordAuthentication no\nPidFile none\n' | cat - "$here/sshd.conf" > "$root/etc/ssh/sshd_config"
printf '%s\n' '::sysinit:/bin/mkdir -p /run/sshd' '::respawn:/usr/sbin/sshd -D -e -r' '::ctrlaltdel:/sbin/reboot' > "$root/etc/inittab"
printf '{"arch": "x86_64"}\n' > "$work/image.json"
tar -C "$work" --sort=name -cf "$file.partial" image.json root
mv "$file.partial" "$file"
