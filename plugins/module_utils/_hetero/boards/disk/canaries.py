# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Canaries: blocks of noise on a disk that show, if they are gone, that it was wiped, and what such a sample can miss.

wipe_disk.py writes and reads them. The board needs only sh, dd and cmp for them.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
from typing import TYPE_CHECKING

from ...core.errors import HeteroError

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...drivers.boot.shell import Shell

#: A canary is one block of noise without a zero byte. Drives have sectors of 512 or 4096 bytes (T10 SBC, T13 ACS).
BLOCK = 4096
MIB = 1 << 20
#: Canaries in the first megabyte and in the last one: partition tables, superblocks, RAID and LVM labels lie there.
AT_EDGE = 4
#: Canaries at random places between: the default, and the most that fit a command line.
SAMPLES, MOST = 64, 4096
#: Seconds for writing, and for reading all canaries. A block takes milliseconds; on a board that is emulated beside
#: other load, whose shell starts up to four programs for it, seconds.
CANARY_TIME = 900.0
#: The probability for which `seen_from` computes.
SURE = 0.95

WRITE = """
set -e
disk=$1 canaries=$2 number=0
shift 2
for block do
    dd if="$canaries" of="$disk" bs=4096 skip=$number seek="$block" count=1 conv=notrunc,fsync oflag=direct status=none
    number=$((number + 1))
done
"""
READ = """
set -e
disk=$1 canaries=$2 number=0
shift 2
found=$canaries.found one=$canaries.one wanted=$canaries.wanted zero=$canaries.zero
: > "$found"
for block do dd if="$disk" bs=4096 skip="$block" count=1 iflag=direct status=none >> "$found"; done
dd if=/dev/zero of="$zero" bs=4096 count=$# status=none
same=
if cmp -s "$found" "$zero"; then same=zero; elif cmp -s "$found" "$canaries"; then same=canary; fi
for block do
    if [ -n "$same" ]; then echo $same; continue; fi
    dd if="$found" of="$one" bs=4096 skip=$number count=1 status=none
    dd if="$canaries" of="$wanted" bs=4096 skip=$number count=1 status=none
    dd if=/dev/zero of="$zero" bs=4096 count=1 status=none
    if cmp -s "$one" "$zero"; then echo zero
    elif cmp -s "$one" "$wanted"; then echo canary
    else echo other
    fi
    number=$((number + 1))
done
rm -f "$found" "$one" "$wanted" "$zero"
"""


def canary_blocks(size: int, samples: int = SAMPLES, chance: random.Random | None = None) -> list[int]:
    """Return the sorted numbers of the canaries' blocks: some in the first and last megabyte, `samples` between.

    :param size: bytes of the disk.
    :param chance: the source of random numbers (default: the system's).
    """
    chance = chance or random.SystemRandom()
    blocks, edge = size // BLOCK, MIB // BLOCK
    if blocks < 2 * edge + samples:
        return sorted(chance.sample(range(blocks), min(blocks, samples + 2 * AT_EDGE)))
    first = {0, *chance.sample(range(1, edge), AT_EDGE - 1)}
    last = {blocks - 1, *chance.sample(range(blocks - edge, blocks - 1), AT_EDGE - 1)}
    between = set(chance.sample(range(edge, blocks - edge), samples))
    return sorted(first | last | between)


def seen_from(size: int, samples: int) -> int:
    """Return the least bytes of a disk that, if they were not wiped, `samples` blocks detect with probability SURE.

    A random block misses unwiped bytes that are the part p of the disk with probability 1 - p; all blocks miss them
    with (1 - p) ^ samples at most.
    """
    return math.ceil(size * (1 - (1 - SURE) ** (1 / samples)))


class Canaries:
    """Blocks of noise at random places of one disk."""

    def __init__(self, shell: Shell, device: str, size: int, samples: int) -> None:
        self.shell = shell
        self.device = device
        self.blocks = canary_blocks(size, samples)
        self.path = f"/tmp/hetero-canaries-{os.path.basename(device)}"

    def write(self, deadline: Deadline) -> None:
        """Write the canaries; raise HeteroError where they cannot be read back from the disk."""
        writing = deadline.within(CANARY_TIME)
        with tempfile.NamedTemporaryFile(prefix="hetero-canaries-") as file:
            file.write(bytes(byte or 1 for byte in os.urandom(BLOCK * len(self.blocks))))
            file.flush()
            self.shell.put(file.name, self.path, writing)
        self._run(WRITE, writing)
        found = self.read(deadline)
        if set(found) != {"canary"}:
            lost = sum(word != "canary" for word in found)
            what = f"{lost} of {len(found)} blocks do not keep what is written to them"
            raise HeteroError(what, f"{shell_name(self.shell)} {self.device}", "replace the disk")

    def read(self, deadline: Deadline) -> list[str]:
        """Return what is in each canary's place now: "zero", "canary" or "other"."""
        found = self._run(READ, deadline.within(CANARY_TIME)).split()
        if len(found) != len(self.blocks):
            what = f"{len(found)} of {len(self.blocks)} blocks could be read"
            raise HeteroError(what, f"{shell_name(self.shell)} {self.device}", "replace the disk")
        return found

    def _run(self, script: str, deadline: Deadline) -> str:
        blocks = [str(block) for block in self.blocks]
        return self.shell.run(["sh", "-c", script, "sh", self.device, self.path, *blocks], deadline)


def shell_name(shell: Shell) -> str:
    """Return the board's name, where the shell knows it, else "board"."""
    return getattr(shell, "name", "board")
