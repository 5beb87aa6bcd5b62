# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# In a container, as its root: each GPU's node that is there (`there N`), and each GPU that may be opened (`open N`), by its
# node or by one that root makes. A GPU that may be opened has no driver here ("No such device or address").
try() {
    said=$({ : < "$2"; } 2>&1)
    case $said in
    *"No such device or address"*) echo "open $1" ;;
    *"Operation not permitted"*) ;;
    *) echo "open $1: $said" ;;
    esac
}
for minor in 0 1 2 3; do
    if [ -e "/dev/nvidia$minor" ]; then
        echo "there $minor"
        try "$minor" "/dev/nvidia$minor"
    fi
    rm -f /tmp/made
    if mknod /tmp/made c 195 "$minor" 2>/dev/null; then
        try "$minor" /tmp/made
    fi
done
rm -f /tmp/made
