# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One disk of a board wiped over a Shell, and the proof: noise written before, read back past all caches after.

Which board, and what follows from an error, is wiping.py's. On the board run only sh, dd, cmp, blockdev and blkdiscard,
and for a secure erase hdparm or nvme.
"""

from __future__ import annotations

import os
import random
import tempfile
import time

from ..errors import BadInput, HeteroError

DISCARD, ZERO, SECURE_ERASE = "discard", "zero", "secure_erase"
METHODS = (DISCARD, ZERO, SECURE_ERASE)

#: A canary is one block of noise without a zero byte. Drives have sectors of 512 or 4096 bytes (T10 SBC, T13 ACS).
BLOCK = 4096
MIB = 1 << 20
#: Canaries in the first megabyte, in the last one (partition tables, superblocks, RAID and LVM labels lie there), and
#: at random offsets between.
AT_EDGE, BETWEEN = 4, 16
#: Zeroes go out in pieces that take about so many seconds, so that progress is seen and a lost board is noticed.
PIECE_SECONDS, FIRST_PIECE, LARGEST_PIECE = 4.0, 16, 4096
#: What is written and read back here takes milliseconds a block; seconds for all of them.
CANARY_TIME = 300.0

LOOK = """
set -e
disk=$1 name=${1##*/}
blockdev --getsize64 "$disk"
say() { tr -cd ' -~' | sed 's/^ *//; s/ *$//'; echo; }
cat "/sys/block/$name/device/model" 2>/dev/null | say
for file in "/sys/block/$name/device/serial" "/sys/block/$name/serial"; do
    if [ -r "$file" ]; then say < "$file"; exit 0; fi
done
if [ -r "/sys/block/$name/device/vpd_pg80" ]; then tail -c +5 "/sys/block/$name/device/vpd_pg80" | say; else echo; fi
"""
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
found=$canaries.found wanted=$canaries.wanted zero=$canaries.zero
dd if=/dev/zero of="$zero" bs=4096 count=1 status=none
for block do
    dd if="$disk" of="$found" bs=4096 skip="$block" count=1 iflag=direct status=none
    dd if="$canaries" of="$wanted" bs=4096 skip=$number count=1 status=none
    if cmp -s "$found" "$zero"; then echo zero
    elif cmp -s "$found" "$wanted"; then echo canary
    else echo other
    fi
    number=$((number + 1))
done
rm "$found" "$wanted" "$zero"
"""
# Answers "done", or "unsupported" and the reason.
DISCARD_ALL = """
if said=$(blkdiscard "$1" 2>&1); then echo "done"; exit 0; fi
case $said in
    *[Nn]"ot supported"* | *"nappropriate ioctl"*) echo "unsupported $said" ;;
    *) echo "$said" >&2; exit 1 ;;
esac
"""
ZERO_PIECE = """
dd if=/dev/zero of="$1" bs="$2" seek="$3" count="$4" conv=notrunc,fsync oflag=direct status=none
"""
ERASE = """
disk=$1
case $disk in
    /dev/nvme*)
        command -v nvme > /dev/null || { echo "unsupported its RAM image has no program nvme"; exit 0; }
        nvme format "$disk" --ses=1 --force >&2 && echo "done"
        ;;
    *)
        command -v hdparm > /dev/null || { echo "unsupported its RAM image has no program hdparm"; exit 0; }
        about=$(hdparm -I "$disk" 2>&1)
        case $about in
            *"Security:"*) ;;
            *) echo "unsupported the disk has no ATA security"; exit 0 ;;
        esac
        if echo "$about" | grep -q '^[[:space:]]*frozen'; then
            echo "unsupported the disk's security is frozen"
            exit 0
        fi
        hdparm --user-master u --security-set-pass hetero "$disk" >&2 &&
            hdparm --user-master u --security-erase hetero "$disk" >&2 && echo "done"
        ;;
esac
"""


def wipe_disk(shell, device, method, verify, deadline, say):
    """Wipe one disk; the record of it.

    :param verify: prove it; without, the record says that it is not proven.
    :param say: called with a text when there is something to tell.
    :raises BadInput: the disk cannot do what is asked for, or is not one that can be proven; nothing is wrong with it.
    :raises HeteroError: Lost or TimedOut where the board went away, else the disk failed.
    """
    start = time.monotonic()
    size, model, serial = _look(shell, device, deadline)
    passes = []
    while True:
        canaries = Canaries(shell, device, size) if verify else None
        if canaries:
            canaries.write(deadline)
        done = _erase(shell, device, method, size, deadline, say)
        found = canaries.read(deadline) if canaries and done else []
        # A secure erase may leave noise; what was there must be gone all the same.
        kept = sum(word == "canary" or (word == "other" and method != SECURE_ERASE) for word in found)
        passes.append(dict(method=method, done=done, canaries=len(found), gone=len(found) - kept))
        if done and not kept:
            break
        if method != DISCARD:
            what = f"{kept} of {len(found)} blocks are still there after {method}"
            raise HeteroError(what, f"{shell_name(shell)} {device}", "replace the disk")
        why = f"ignores discard ({kept} of {len(found)} canaries survived)" if done else "cannot discard"
        say(f"{device}: {why}; writing zeroes")
        method = ZERO
    return dict(
        device=device,
        serial=serial,
        model=model,
        bytes=size,
        method=method,
        passes=passes,
        proven=bool(verify),
        canaries=dict(block=BLOCK, blocks=canaries.blocks) if canaries else None,
        seconds=round(time.monotonic() - start, 2),
    )


def shell_name(shell):
    """The board's name, where the shell knows it."""
    return getattr(shell, "name", "board")


def canary_blocks(size, chance=None):
    """Numbers of the blocks where canaries go, sorted: some in the first and the last megabyte, some between."""
    chance = chance or random.SystemRandom()
    blocks, edge = size // BLOCK, MIB // BLOCK
    if blocks < 2 * edge + BETWEEN:
        return list(range(blocks))
    first = {0, *chance.sample(range(1, edge), AT_EDGE - 1)}
    last = {blocks - 1, *chance.sample(range(blocks - edge, blocks - 1), AT_EDGE - 1)}
    between = set(chance.sample(range(edge, blocks - edge), BETWEEN))
    return sorted(first | last | between)


class Canaries:
    """Noise on a disk whose fate shows whether the disk was wiped."""

    def __init__(self, shell, device, size):
        self.shell = shell
        self.device = device
        self.blocks = canary_blocks(size)
        self.path = f"/tmp/hetero-canaries-{os.path.basename(device)}"

    def write(self, deadline):
        """Put them there, and see that the disk itself has them."""
        deadline = deadline.within(CANARY_TIME)
        with tempfile.NamedTemporaryFile(prefix="hetero-canaries-") as file:
            file.write(bytes(byte or 1 for byte in os.urandom(BLOCK * len(self.blocks))))
            file.flush()
            self.shell.put(file.name, self.path, deadline)
        self._run(WRITE, deadline)
        found = self.read(deadline)
        if set(found) != {"canary"}:
            lost = sum(word != "canary" for word in found)
            what = f"{lost} of {len(found)} blocks do not keep what is written to them"
            raise HeteroError(what, f"{shell_name(self.shell)} {self.device}", "replace the disk")

    def read(self, deadline):
        """What is where they were put: "zero", "canary" or "other" for each."""
        found = self._run(READ, deadline.within(CANARY_TIME)).split()
        if len(found) != len(self.blocks):
            what = f"{len(found)} of {len(self.blocks)} blocks could be read"
            raise HeteroError(what, f"{shell_name(self.shell)} {self.device}", "replace the disk")
        return found

    def _run(self, script, deadline):
        blocks = [str(block) for block in self.blocks]
        return self.shell.run(["sh", "-c", script, "sh", self.device, self.path, *blocks], deadline)


def _look(shell, device, deadline):
    """(bytes, model, serial) of a disk."""
    lines = shell.run(["sh", "-c", LOOK, "sh", device], deadline.within(CANARY_TIME)).splitlines() + ["", ""]
    size = int(lines[0]) if lines[0].isdigit() else 0
    if size < BLOCK:
        what = f"says that it has {lines[0] or 'no'} bytes"
        raise HeteroError(what, f"{shell_name(shell)} {device}", "look at the disk")
    return size, lines[1], lines[2]


def _erase(shell, device, method, size, deadline, say):
    """Do it; False where this disk cannot discard."""
    if method == ZERO:
        _zero(shell, device, size, deadline, say)
        return True
    script = DISCARD_ALL if method == DISCARD else ERASE
    word, _blank, why = shell.run(["sh", "-c", script, "sh", device], deadline).strip().partition(" ")
    if word == "done":
        return True
    if method == DISCARD and word == "unsupported":
        return False
    what = f"secure erase is not supported: {why or 'the disk did not say why'}"
    raise BadInput(what, f"{shell_name(shell)} {device}", "use method discard or zero")


def _zero(shell, device, size, deadline, say):
    whole, piece, at, told = size // MIB, FIRST_PIECE, 0, 0
    while at < whole:
        piece = min(piece, whole - at)
        start = time.monotonic()
        _zeroes(shell, device, MIB, at, piece, deadline)
        at += piece
        took = max(time.monotonic() - start, 0.01)
        piece = int(max(FIRST_PIECE, min(LARGEST_PIECE, piece * PIECE_SECONDS / took)))
        if at * 100 // whole != told:
            told = at * 100 // whole
            say(f"{device}: zeroes, {told} % of {size >> 20} MB")
    if size % MIB:
        _zeroes(shell, device, 512, whole * MIB // 512, size % MIB // 512, deadline)


def _zeroes(shell, device, unit, at, count, deadline):
    shell.run(["sh", "-c", ZERO_PIECE, "sh", device, str(unit), str(at), str(count)], deadline)
