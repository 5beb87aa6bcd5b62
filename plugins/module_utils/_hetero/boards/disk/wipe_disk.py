# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wipe one disk of a board over a Shell, and prove it by noise that is written before and read back past all caches.

wipes.py chooses the board and decides what follows from an error. The board needs only sh, dd, cmp, blockdev and
blkdiscard, and for a secure erase hdparm or nvme.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, Protocol

from ...core.errors import BadInput, HeteroError
from .canaries import BLOCK, CANARY_TIME, MIB, Canaries, seen_from, shell_name

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...drivers.boot.shell import Shell

#: A function that is called with a text for people; one that works on a piece: (bytes of a unit, first unit, units).
Say = Callable[[str], None]
Piece = Callable[[int, int, int], None]

DISCARD, ZERO, SECURE_ERASE = "discard", "zero", "secure_erase"
METHODS = (DISCARD, ZERO, SECURE_ERASE)
#: Proofs of a wipe: the whole disk is read back, a sample of it, or nothing.
FULL, SAMPLE, NONE = "full", "sample", "none"
PROOFS = (FULL, SAMPLE, NONE)

#: Work of hours is done in pieces of about so many seconds, so that progress is seen and a lost board is noticed. The
#: size of the first piece, which is also the least, and of the largest one, in MiB.
PIECE_SECONDS, FIRST_PIECE, LARGEST_PIECE = 4.0, 16, 4096

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
# Prints "done", or "unsupported" and the reason.
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
# Prints whether all of a piece is zero; a piece that cannot be read is not. cmp exits with 2 where it has no option -n.
READ_PIECE = """
dd if="$1" bs="$2" skip="$3" count="$4" iflag=direct status=none | cmp -s -n $(($2 * $4)) - /dev/zero
case $? in 0) echo zero ;; 1) echo other ;; *) exit 1 ;; esac
"""
CAN_READ = "cmp -s -n 1 /dev/zero /dev/zero && echo yes || echo no"
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


class Manner(Protocol):
    """How a disk is to be wiped and proven (wipes.WipeRequest)."""

    @property
    def method(self) -> str: ...
    @property
    def verify(self) -> str: ...
    @property
    def samples(self) -> int: ...


def wipe_disk(shell: Shell, device: str, request: Manner, deadline: Deadline, say: Say) -> dict[str, Any]:
    """Wipe one disk; return the record of the wipe.

    :raises BadInput: the disk lacks the method, or the method or RAM image the proof; nothing is wrong with the disk.
    :raises HeteroError: Lost or TimedOut where the board went away; any other error is a failure of the disk.
    """
    start, method = time.monotonic(), request.method
    if request.verify == FULL:
        _can_read_back(shell, method, deadline)
    size, model, serial = _look(shell, device, deadline)
    passes: list[dict[str, Any]] = []
    while True:
        canaries = Canaries(shell, device, size, request.samples) if request.verify != NONE else None
        if canaries:
            canaries.write(deadline)
        done = _erase(shell, device, method, size, deadline, say)
        found = canaries.read(deadline) if canaries and done else []
        # A secure erase may leave noise on the disk, but the canaries must be gone.
        kept = sum(word == "canary" or (word == "other" and method != SECURE_ERASE) for word in found)
        passes.append(dict(method=method, done=done, canaries=len(found), gone=len(found) - kept))
        left = f"{kept} of {len(found)} blocks are still there" if kept else None
        if done and not left and request.verify == FULL:
            left = passes[-1]["left"] = _left(shell, device, size, deadline, say)
        if done and not left:
            break
        if method != DISCARD:
            raise HeteroError(f"{left} after {method}", f"{shell_name(shell)} {device}", "replace the disk")
        say(f"{device}: {f'ignores discard ({left})' if done else 'cannot discard'}; writing zeroes")
        method = ZERO
    return dict(
        device=device,
        serial=serial,
        model=model,
        bytes=size,
        method=method,
        passes=passes,
        proven=canaries is not None,
        verify=request.verify,
        canaries=dict(block=BLOCK, blocks=canaries.blocks) if canaries else None,
        seen_from=_seen_from(request, size),
        seconds=round(time.monotonic() - start, 2),
    )


def in_words(disk: dict[str, Any]) -> str:
    """Return in words, from the record of a wipe, what was done with the disk, and what the proof is worth."""
    wiped = f"{disk['device']} {disk['serial']}".rstrip() + f": {disk['bytes'] >> 20} MB by {disk['method']}"
    if not disk["proven"]:
        return f"{wiped}, not proven"
    if disk["verify"] == FULL:
        return f"{wiped}, all read back as zeroes"
    part = disk["seen_from"] * 100 / disk["bytes"]
    rest = f"a rest of {max(1, disk['seen_from'] >> 20)} MB ({part:.1f} %) or more would be seen with 95 %"
    return f"{wiped}, {disk['passes'][-1]['canaries']} canaries gone: {rest}"


def _seen_from(request: Manner, size: int) -> int | None:
    """Return the least bytes that the proof detects with 95 %; None without a proof."""
    return {FULL: 1, NONE: None}.get(request.verify, seen_from(size, request.samples))


def _can_read_back(shell: Shell, method: str, deadline: Deadline) -> None:
    if method == SECURE_ERASE:
        what = "what a secure erase leaves is the disk's own choice, so that all of it cannot be told from old data"
        raise BadInput(what, shell_name(shell), "use verify sample, or method zero")
    if shell.run(["sh", "-c", CAN_READ, "sh"], deadline.within(CANARY_TIME)).strip() != "yes":
        raise BadInput("the RAM image's cmp knows no -n", shell_name(shell), "use verify sample, or another RAM image")


def _look(shell: Shell, device: str, deadline: Deadline) -> tuple[int, str, str]:
    """Return (bytes, model, serial) of a disk."""
    lines = shell.run(["sh", "-c", LOOK, "sh", device], deadline.within(CANARY_TIME)).splitlines() + ["", ""]
    size = int(lines[0]) if lines[0].isdigit() else 0
    if size < BLOCK:
        what = f"says that it has {lines[0] or 'no'} bytes"
        raise HeteroError(what, f"{shell_name(shell)} {device}", "look at the disk")
    return size, lines[1], lines[2]


def _erase(shell: Shell, device: str, method: str, size: int, deadline: Deadline, say: Say) -> bool:
    """Erase a disk by a method; return False where the disk cannot discard."""
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
    raise BadInput(what, f"{shell_name(shell)} {device}", "use method discard or zero (-e wipe=zero)")


def _zero(shell: Shell, device: str, size: int, deadline: Deadline, say: Say) -> None:
    def act(unit: int, at: int, count: int) -> None:
        shell.run(["sh", "-c", ZERO_PIECE, "sh", device, str(unit), str(at), str(count)], deadline)

    for _start in _pieces(size, act, lambda part: say(f"{device}: zeroes, {part} % of {size >> 20} MB")):
        pass


def _left(shell: Shell, device: str, size: int, deadline: Deadline, say: Say) -> str | None:
    """Read the whole disk back; return where something is left, as a text; None where all bytes are zero."""
    found = []

    def act(unit: int, at: int, count: int) -> None:
        found.append(shell.run(["sh", "-c", READ_PIECE, "sh", device, str(unit), str(at), str(count)], deadline))

    for start in _pieces(size, act, lambda part: say(f"{device}: read back, {part} % of {size >> 20} MB")):
        if found.pop().strip() != "zero":
            return f"something from {start >> 20} MB on is still there, or cannot be read"
    return None


def _pieces(size: int, act: Piece, told: Callable[[int], None]) -> Iterator[int]:
    """Call `act` for one piece of a disk after the other; yield the byte at which each piece begins.

    :param size: bytes of the disk.
    :param act: takes the bytes of a unit, the number of the piece's first unit, and its number of units.
    :param told: called with the percentage whenever that changes.
    """
    whole, piece, at, before = size // MIB, FIRST_PIECE, 0, 0
    while at < whole:
        piece = min(piece, whole - at)
        start = time.monotonic()
        act(MIB, at, piece)
        yield at * MIB
        at += piece
        took = max(time.monotonic() - start, 0.01)
        piece = int(max(FIRST_PIECE, min(LARGEST_PIECE, piece * PIECE_SECONDS / took)))
        if at * 100 // whole != before:
            before = at * 100 // whole
            told(before)
    if size % MIB:
        act(512, whole * MIB // 512, size % MIB // 512)
        yield whole * MIB
