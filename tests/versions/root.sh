#!/usr/bin/env bash
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# root.sh FOLDER SUITE MIRROR COMPONENTS KEYRING [PACKAGE]: a Debian or Ubuntu with its Python, and what modules and
# controllers of hetero.compute ask of a machine. Nothing in it is ours but the folders where machines.py mounts.
set -euo pipefail
folder=$1
partial=$folder.partial.$$
trap 'rm -rf --one-file-system "$partial"' EXIT
packages=python3,python3-netaddr,python3-pexpect,python3-venv,ca-certificates,e2fsprogs,iproute2,kmod,openssh-client,procps
# In a mount namespace of its own: what mmdebstrap mounts below the root is nowhere where the trap removes files.
unshare --mount mmdebstrap --quiet --variant=minbase --components="$4" --keyring="$5" --include="$packages${6:+,$6}" \
    --customize-hook='mkdir -p "$1/hetero/project" "$1/hetero/environment" "$1/hetero/node"' \
    --customize-hook='rm -f "$1/etc/resolv.conf" && touch "$1/etc/resolv.conf"' \
    "$2" "$partial" "$3"
mv "$partial" "$folder"
