# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh disable=SC2154
#
# What only looks is answered here, in the words of virsh.py: a verb looks dozens of times, and a shell is there in a
# twelfth of the time that Python takes. Everything else, and each failure, is that file's; so is a word that may be a
# UUID. virsh.program() sets $root before this, and begins Python after it.
defined=$root/etc/libvirt/qemu running=$root/run/libvirt/qemu found= whole=
end='
'
while :; do
    case $1 in
        -c) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done

say() {
    printf '%s\n' "$words" >> "$root/virsh"
    printf '%s' "$1"
    exit
}

names() {
    for file in "$defined"/*.xml; do
        [ -e "$file" ] || continue
        name=${file##*/}
        found=$found${name%.xml}$end
    done
    for file in "$running"/*.xml; do
        [ ! -e "$file" ] || [ -e "$defined/${file##*/}" ] || return 1
    done
}

xml() {
    {
        while IFS= read -r line || [ "$line" ]; do
            whole=$whole$line$end
        done < "$1"
    } 2> /dev/null || return
    whole="<domain${whole#*<domain}"
    printf '%s\n' "$words" >> "$root/virsh"
    printf '%s' "${whole%</domain>*}</domain>"
    exit
}

words=$*
if [ ! -e "$root/kill-at" ] && [ ! -e "$root/fail-$1" ]; then
    case "$1 $2" in
        list\ *) [ -e "$root/forgot" ] || ! names || say "$found" ;;
        *\ | *-*-*-*-*) ;;
        domstate\ * | dominfo\ * | dumpxml\ *)
            live=$running/$2.xml kept=$defined/$2.xml auto=disable lasts=yes
            [ -e "$live" ] || live=
            [ -e "$kept" ] || kept=
            case "$1 $live$kept" in
                *\ ) ;;
                domstate\ *)
                    [ ! "$live" ] || say "running$end$end"
                    say "shut off$end$end"
                    ;;
                dominfo\ *)
                    [ "$kept" ] || lasts=no
                    [ ! -e "$defined/autostart/$2.xml" ] || auto=enable
                    say "Name:           $2${end}Persistent:     $lasts${end}Autostart:      $auto$end"
                    ;;
                *)
                    case " $words " in
                        *' --inactive '*) xml "${kept:-$live}" ;;
                        *) xml "${live:-$kept}" ;;
                    esac
                    ;;
            esac
            ;;
    esac
fi
