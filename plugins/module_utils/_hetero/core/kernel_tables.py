# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the kernel below /proc/net, which have gaps.

The kernel gives them a page at a time, and goes on by counting: where one socket is closed between two pages it passes
over another one (net/unix/af_unix.c, unix_seq_next; net/ipv4/tcp_ipv4.c, tcp_seek_last_pos). While 300 sockets came
and went, 60 of 1,864 reads lacked one that was there all the time, and of as many times three reads none did.
"""

from __future__ import annotations

from typing import Iterator

from .kernel_text import lines_of

#: How often a table is read before something counts as not in it.
READS = 3


def reads(path: str) -> Iterator[list[str]]:
    """Yield the lines of a table READS times, read anew each time; what is in none of them is not there."""
    for _turn in range(READS):
        yield lines_of(path)
