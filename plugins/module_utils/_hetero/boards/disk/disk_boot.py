# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phase 1 of boot source disk: a board that runs from RAM gets its root unpacked to its disk. Phase 2 is a normal boot.

A marker on the disk, which is written last, decides: a disk with the marker of its claim is not unpacked again.
verbs/lifecycle.py decides whether a board may begin or go on.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Iterable, cast

from ...core.deadline import Deadline
from ...core.errors import HeteroError, Lost, Refused, TimedOut
from ...core.plays import play
from ...drivers.boot.blame import IMAGE, PROXY
from ...drivers.boot.driver import DISK_ROOT
from ...drivers.boot.shell import NoProgram
from ...images.choice import image_of
from ...images.root_archive import archive_of
from ...roots.disk_root import ARCHIVES, own_names
from ...roots.place import Place
from ...roots.provision import prepare_files
from ...site import board_states
from ..boot.boot_entry import ensure_entry
from ..boot.ram_boot import in_ram
from ..power import presence
from ..power.outlet_power import outlet_power
from ..work.board_work import refuse

if TYPE_CHECKING:
    from ...drivers.boot.shell import Shell
    from ...images.root_archive import Archive
    from ...roots.disk_files import Made
    from ..boot.boot_options import BootOptions
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork

#: A function that runs a script on a board, as `_run` does: (script, deadline, words …, stdin).
Run = Callable[..., str]

#: Seconds for a partition table and a file system (one of terabytes takes a minute).
FORMAT_TIME = 300.0
#: Seconds for bringing an archive to the board, and for unpacking it; both end as soon as they are done. A gigabyte
#: takes 10 s at 100 MB/s, and 100 times that on an old board's disk.
UPLOAD_TIME = 3600.0
UNPACK_TIME = 3600.0
#: Seconds for asking the PDUs whether boards that may run have power.
OUTLETS_TIME = 60.0
LONGEST = OUTLETS_TIME + 2 * FORMAT_TIME + UPLOAD_TIME + 2 * UNPACK_TIME
#: Seconds between two reports of an upload's progress: people are to see each step within two.
TELL = 1.0
#: The factor by which a file system is larger than the files in it.
OVERHEAD = 1.1
MOUNT = "/mnt"
NOT_READY = f"{play('reconcile')} restores it from own.tar and its claim; or rebuild the instance for a new root"
#: The remedy for a tenant's disk that does not show its root: only a cable may be at fault.
SEE_TO_IT = (
    f"nothing is touched: look at the disk and its cable, then {play('start_instance', instance='{name}')}; "
    f"only once its tenant gives up what is on it, {play('rebuild_instance', instance='{name}', fresh='true')}"
)

# The marker of a whole root is the file .hetero-root in the root itself.
# Prints "there", "other" (files, but not this claim's) or "none", and on the next lines the error, where there was one.
LOOK = """
part=$1 mount=$2 marker=$3
mkdir -p "$mount"
why=$(mount -t ext4 -o ro "$part" "$mount" 2>&1) || { echo none; echo "$why"; exit 0; }
found=$(cat "$mount/.hetero-root" 2>&1) || why=$found
umount "$mount"
if [ "$found" = "$marker" ]; then echo there; else echo other; echo "$why"; fi
"""
# Prints the free kilobytes of the new file system, which stays mounted.
FORMAT = """
set -e
disk=$1 part=$2 mount=$3
# A DOS partition table ends at 2 TiB.
label=dos
[ "$(blockdev --getsize64 "$disk")" -lt 2199023255552 ] || label=gpt
printf 'label: %s\\n,,L\\n' "$label" | sfdisk -q --wipe always --wipe-partitions always "$disk" >&2
tries=0
until [ -e "$part" ]; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || { echo "no $part after $disk was partitioned" >&2; exit 1; }
    sleep 0.1
done
mkfs.ext4 -q -F "$part" >&2
mkdir -p "$mount"
mount -t ext4 "$part" "$mount"
mkdir "$mount/.hetero"
df -k "$mount" | tail -n 1 | sed 's/.* \\([0-9][0-9]*\\)  *[0-9]*% .*/\\1/'
"""
# Checks the sums of both archives as they arrived, and unpacks them only where these are right.
UNPACK = """
set -e
part=$1 mount=$2 root=$3 own=$4
cd "$mount/.hetero"
printf '%s  root.tar.gz\\n%s  own.tar\\n' "$root" "$own" | sha256sum -c > sums || { cat sums >&2; exit 3; }
tar -C "$mount" -xzpf root.tar.gz
tar -C "$mount" -xpf own.tar
cd /
rm -r "$mount/.hetero"
sync
umount "$mount"
mount -t ext4 "$part" "$mount"
"""
# Runs after the disk was mounted anew, so what is compared comes from the disk. The marker is written last.
CHECK = """
set -e
mount=$1 names=$2 marker=$3
cd "$mount"
sums=$(sha256sum -c 2>&1) || { echo "$sums" | grep -v ': OK$' | head -n 1 >&2; exit 1; }
found=$(find . -xdev | grep -vc '^\\./lost+found')
[ "$found" = "$names" ] || { echo "$found names on the disk, not $names" >&2; exit 1; }
echo "$marker" > .hetero-root.new
sync
mv .hetero-root.new .hetero-root
cd /
sync
umount "$mount"
"""


def wanted(work: BoardWork) -> bool:
    """Return whether a board is to be looked at in RAM before it may boot from its disk."""
    if not work.claim or work.claim.boot_source != DISK_ROOT:
        return False
    made = _made(work)
    return work.as_rebuilt or made is None or made.unpacked is None or not made.sure


def may_run(work: BoardWork) -> bool:
    """Return whether a board may be at work from its disk, so that only an outlet that is off allows a boot into RAM.

    Before its root is recorded as unpacked, a board has power only for the unpacking. Its disk is looked at before
    anything is written to it.
    """
    if not work.claim or work.claim.boot_source != DISK_ROOT or work.as_rebuilt:
        return False
    made = _made(work)
    return made is not None and (made.unpacked is not None or work.state == board_states.RUNNING)


def _made(work: BoardWork) -> Made | None:
    return Place(work.proxy, work.board).disk.made()


def _claim(work: BoardWork) -> Claim:
    """Return the claim of a board that is to be looked at in RAM, which always has one."""
    return cast("Claim", work.claim)


def lay(proxy: Proxy, works: Iterable[BoardWork], options: BootOptions) -> None:
    """Run phase 1 for those boards that need it; works that fail are over, other boards are off and ready to boot.

    :param works: BoardWork of each board, locked and read, its boot entry in place.
    """
    for work in works:
        work.from_its_disk = may_run(work)
    works = [work for work in works if wanted(work)]
    works = _from_off(proxy, works)
    for work in works:
        device = proxy.root_partition(work.board)
        work.note(f"{work.board.name} {device}", {"root": None}, {"root": _claim(work).image})
        if not options.check and Place(proxy, work.board).disk.made() is None:
            # Refuse before its power is cut: without made.json its files cannot be told from another's.
            refuse(work, f"what is known of the root of {work.instance} cannot be read", NOT_READY)
        elif options.check:
            work.line("ram", f"would boot into RAM, and unpack its root to {device} where it is not there")
        else:
            work.move(board_states.BOOTING)
    if options.check:
        return
    works = [work for work in works if not work.over]
    in_ram(proxy, works, options, _lay)
    for work in works:
        if not work.failed:
            # Mark it only once it is off: a board that is on with this mark was switched on for its own system.
            Place(proxy, work.board).disk.mark(unpacked=time.time(), sure=True)
            place = Place(proxy, work.board)
            prepare_files(place, image_of(proxy, _claim(work)), DISK_ROOT, work.change, [])
            ensure_entry(work)
        elif work.disk_left and work.state == board_states.BOOTING and work.record.power == "off":
            # Leave it like a stopped board, so that a start brings it up once its disk is there again.
            work.move(board_states.SHUTTING_DOWN)
            work.move(board_states.POWER_OFF, work.disk_left)


def _from_off(proxy: Proxy, works: list[BoardWork]) -> list[BoardWork]:
    """Return the works whose boards may be booted into RAM; a board that may run and has power starts as usual.

    A boot into RAM cuts the power. A board that shows its own key runs as it should; any other one with power is left
    to a person.
    """
    found = {work.board.id: {"id": work.board.id} for work in works if may_run(work)}
    errors = outlet_power(proxy, list(found.values()), Deadline(OUTLETS_TIME)) if found else {}
    looked = []
    for work in works:
        power = found.get(work.board.id, {"power": "off"})["power"]
        work.only_from_off = work.board.id in found
        if power is None:
            error = errors.get(work.pdu, "no answer")
            work.say("error", f"the board is left as it is: {error}")
            work.fail(PROXY, error)
        elif power == "off" and not _runs(work):
            looked.append(work)
        else:
            work.only_from_off = False
    return looked


def _runs(work: BoardWork) -> bool:
    """Return whether a board runs from its disk although its made.json, perhaps an older copy, has no unpacked root."""
    older = not work.only_from_off and not work.as_rebuilt and _claim(work).host_key
    return bool(older) and work.proxy.store.has_run(_claim(work)) and presence.shown(work) == presence.OWN_KEY


def remember(works: Iterable[BoardWork]) -> None:
    """Mark boards that came up from their disks (they show their key), so that the next start needs no look in RAM."""
    for work in works:
        if (
            not work.failed
            and work.state == board_states.RUNNING
            and work.claim
            and work.claim.boot_source == DISK_ROOT
        ):
            made, disk = _made(work), Place(work.proxy, work.board).disk
            if made and not work.change.check and not (made.sure and made.unpacked):
                disk.mark(sure=True, unpacked=made.unpacked or time.time())


def doubt(works: Iterable[BoardWork]) -> None:
    """Mark boards that did not come up from their disks, so that the next start looks at the disk in RAM first."""
    for work in works:
        if work.blame == IMAGE and work.claim and work.claim.boot_source == DISK_ROOT:
            disk = Place(work.proxy, work.board).disk
            if disk.made():
                disk.mark(sure=False)


def _lay(work: BoardWork, shell: Shell) -> None:
    """Look at the disk of a board that runs from RAM, and unpack the root unless the claim's whole root is there."""
    proxy, board = work.proxy, work.board
    disk = Place(proxy, board).disk
    made: Any = disk.made()  # never None: `lay` has checked that before the board was switched
    archive = archive_of(proxy.folder(ARCHIVES), image_of(proxy, _claim(work)), Deadline(UNPACK_TIME))
    device, part = proxy.disks(board)[0], proxy.root_partition(board)
    marker = hashlib.sha256(f"{made.claim} {archive.sha256} {made.own_sha256}".encode()).hexdigest()
    run = partial(_run, work, shell)
    found, _line, why = run(LOOK, Deadline(FORMAT_TIME), part, MOUNT, marker).strip().partition("\n")
    if found != "there" and made.unpacked:
        holds = "holds other files now" if found == "other" else "cannot be mounted now, or is another disk"
        said = f" ({' '.join(why.split())})" if why else ""
        work.disk_left = f"{part} was {work.instance}'s, and {holds}{said}"
        raise Refused(work.disk_left, board.name, SEE_TO_IT.format(name=work.instance))
    if found == "there":
        work.say("unpack", f"{part} has the root of {work.instance} already, whole")
    else:
        free = int(run(FORMAT, Deadline(FORMAT_TIME), device, part, MOUNT).split()[-1]) << 10
        needed = int(archive.unpacked * OVERHEAD) + archive.size
        if free < needed:
            text = f"image {_claim(work).image} takes {needed >> 20} MB, {part} has {free >> 20} MB"
            # The board is sound, so it can be given back.
            work.move(board_states.SHUTTING_DOWN, text)
            work.fail(IMAGE, f"{board.name}: {text}: ask for another flavor, or choose another image")
            return
        _upload(work, shell, archive, disk.own)
        _unpack(work, run, archive, disk.own, made, part, marker)


def _upload(work: BoardWork, shell: Shell, archive: Archive, own: str) -> None:
    start, deadline = time.monotonic(), Deadline(UPLOAD_TIME)
    told = [start]

    def progress(done: int, size: int) -> None:
        if time.monotonic() - told[0] >= TELL:
            told[0] = time.monotonic()
            work.say("upload", f"{done / 1e6:.0f} of {size / 1e6:.0f} MB ({done * 100 // size} %)", told[0] - start)

    work.say("upload", f"0 of {archive.size / 1e6:.0f} MB (0 %)")
    shell.put(own, f"{MOUNT}/.hetero/own.tar", deadline)
    shell.put(archive.path, f"{MOUNT}/.hetero/root.tar.gz", deadline, progress)
    work.say("upload", f"root archive is there, {archive.size / 1e6:.0f} MB", time.monotonic() - start)


def _unpack(work: BoardWork, run: Run, archive: Archive, own: str, made: Made, part: str, marker: str) -> None:
    start, deadline = time.monotonic(), Deadline(UNPACK_TIME)
    names = {f"./{name[2:]}".rstrip("/") if name.startswith("./") else name for name in archive.names}
    work.say("unpack", f"{len(names)} files to {part}")
    run(UNPACK, deadline, part, MOUNT, archive.sha256, made.own_sha256)
    with tempfile.NamedTemporaryFile("w", prefix="hetero-sums-", encoding="utf-8", errors="surrogateescape") as sums:
        sums.writelines(f"{digest}  {name}\n" for name, digest in sorted(archive.sample.items()))
        sums.flush()
        count = len(names | set(own_names(own)))
        run(CHECK, deadline, MOUNT, str(count), marker, stdin=sums.name)
    text = f"{part} verified: archive {archive.sha256[:12]} as received, {count} files, {len(archive.sample)} compared"
    work.say("unpack", text, time.monotonic() - start)


def _run(work: BoardWork, shell: Shell, script: str, deadline: Deadline, *words: str, stdin: str | None = None) -> str:
    """Run a script on the board; put the board into state error where the script fails although the board answers.

    A program that the RAM system lacks says nothing against the board: the claim stays, and goes on with another image.
    """
    try:
        return shell.run(["sh", "-c", script, "sh", *words], deadline, stdin)
    except (Lost, TimedOut):
        raise
    except NoProgram as error:
        work.fail(PROXY, error)
        raise
    except HeteroError as error:
        work.quarantine(f"its disk cannot be used: {error.what}")
        raise
