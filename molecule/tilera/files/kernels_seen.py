# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes down each kernel that TFTP has for board 2. The word at its end (roles/lab/files/images) says its root."""

from __future__ import annotations

import time

NAME = "10.0.2.3/vmlinux_2"
WORD = b"TLR_ROOT="


def word():
    try:
        with open(f"/tftpboot/{NAME}", "rb") as file:
            file.seek(-32, 2)
            return WORD.decode() + file.read().split(WORD)[1].decode("ascii").strip()
    except (OSError, IndexError):
        return None


last = None
while True:
    now = word()
    if now and now != last:
        with open("/run/kernels-seen", "a", encoding="ascii") as seen:
            seen.write(f"{NAME} {now}\n")
    last = now
    time.sleep(0.1)
