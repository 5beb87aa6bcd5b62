# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is to blame for a boot that stalled, in which words and with which evidence. boards/boot/boot_loop.py acts on it.

The proxy's own self-test comes first, because the proxy's fault looks like one of every board. Then come others on the
network who stand in the proxy's place. Last, what the board asked for shows whether the board works and its image does
not.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Collection, Container, Iterable

from ...core.printable import brief, one_line
from ...files import plain_file
from .driver import ENTRY, KERNEL, NFS, NFS_ROOT, SYSTEM, TFTP

if TYPE_CHECKING:
    from ...core.errors import StepFailed
    from ...site.boards_file import Board
    from .ssh import WrongHostKey

PROXY, NETWORK, IMAGE, BOARD, INSTANCE = "proxy", "network", "image", "board", "instance"
#: The first step of a boot driver that acts on boards: it waits for the system on which the others act.
MONITOR = "monitor"

#: Lines of the console that go with an error, and bytes of the log that are read for them.
CONSOLE_LINES = 20
CONSOLE_BYTES = 65536
#: Most bytes that are read to find as many lines beside what sshd says of the proxy's questions, and CONSOLE_LINES
#: beside a line that is longer than all that was read.
CONSOLE_MOST = 4 << 20
#: What may come before sshd's words: a time that the log's writer puts before each line (an ISO 8601 one as the lab's,
#: conserver's in brackets, a syslog's), or what names sshd. Each part has a bound, as a board can say lines in which a
#: part without one would be looked for from every letter to every other.
STAMP = (
    r"(?:\[[^]]{0,40}\d\d:\d\d:\d\d[^]]{0,40}\] ?|(?:[A-Z][a-z]{2,8} {1,2}\d{1,2} )?\S{0,40}\d\d:\d\d:\d\d\S{0,40} |"
    r".{0,120}sshd\S{0,40}: )?"
)
#: What OpenSSH's sshd says of who asked for its host key and left (drivers/boot/ssh.py; its packet.c and auth.c), and
#: the line before it where the connection ended earlier (kex.c), which names no address.
QUESTION = (
    STAMP + r"(?:Connection (?:closed|reset)|Disconnected) (?:by|from) "
    r"(?:(?:authenticating|invalid) user \S+ )?{ip} port \d+(?: \[preauth\])?"
)
CUT_OFF = re.compile(STAMP + r"(?:error: )?kex_exchange_identification: .*")
#: What conserver writes into a log by itself (its console.c and group.c), behind a time in brackets or without: that it
#: reached a console or lost it (`[-- Console up -- Sun Nov 29 03:00:00 2026]`); or only a time, of an empty line.
CONSERVERS, BETWEEN = "[-- ", " -- "
CLOCK = re.compile(r"\d\d:\d\d:\d\d")
#: Characters of the longest of these lines, and of sshd's: one names who attached, and two times.
CONSERVERS_WIDTH = 400
#: Characters of one console line that are shown; a terminal has 80 to 250.
CONSOLE_WIDTH = 1000
#: Colours (ECMA-48, SGR), which init systems write and which are left out. Other control characters are escaped.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
#: What a console says where a boot ends, each from where it is said to the end of its line, best first: Linux's panic,
#: the errors of PXE firmware (PXE specification 2.1, appendix), of iPXE and of U-Boot, and firmware without any system.
SIGNS = (
    re.compile(r"Kernel panic - not syncing.*"),
    re.compile(r"PXE-[EM][0-9A-F]{2}.*"),
    # a board that resets itself at once swallows the end; from the line's begin only: else it would be looked for from
    # each letter of a line
    re.compile(r"\A\s*\S.*\(https?://ipxe\.org/[0-9a-f]+\)?"),
    re.compile(r"TFTP error: .*|Retry (?:time|count) exceeded.*"),
    re.compile(r"No bootable device.*|Operating System not found.*", re.I),
)
#: What waits at the end of a console → words for it: agetty's question, U-Boot's prompt, iPXE's and that of an initrd.
PROMPTS = (
    (re.compile(r"\S+ login:"), "its system asks who logs in"),
    (re.compile(r"=>|U-Boot>"), "U-Boot waits at its prompt"),
    (re.compile(r"iPXE>"), "iPXE waits at its prompt"),
    (re.compile(r"\(initramfs\)"), "its initrd waits at a prompt"),
)
#: Most lines at the end of a log in which a sign is looked for, and characters of it that are said.
SIGN_LINES, SIGN_WIDTH = 1000, 200
#: Columns of the screen that a PC's firmware redirects to a serial line (SeaBIOS's sercon.c, and others').
SCREEN = 80
#: The time before a line, of any writer, in as many letters as in STAMP.
STAMPED = re.compile(r"^(?:\[[^]]{0,40}\d\d:\d\d:\d\d[^]]{0,40}\] ?|\S{0,40}\d\d:\d\d:\d\d\S{0,40} )")
TIMES = {1: "", 2: ", twice"}
#: Is added to the error of a board that did begin to boot.
SLOW = "; if it only needs longer, give it more: timeout (in the playbooks hetero_boot_timeout)"


def verdict(
    faults: Collection[str],
    asked: Container[str],
    wrong_key: WrongHostKey | None,
    kinds: Container[str] = (),
    strangers: Collection[str] = (),
) -> str:
    """Return who is to blame.

    :param faults: what the proxy's self-test found.
    :param asked: roles of the files that the board asked for.
    :param wrong_key: another host key answered after a verified power cycle.
    :param kinds: kinds of things seen. Only a kernel mounts a root, also one that was not asked for (flash).
    :param strangers: other machines that stand in the proxy's place. Their effects look like any fault of a board.
    """
    if faults:
        return PROXY
    if strangers:
        return NETWORK
    if wrong_key:
        return BOARD
    return IMAGE if KERNEL in asked or NFS in kinds else BOARD


def awaited(asked: Container[str], kinds: Container[str], flash: bool = False, root: str = NFS_ROOT) -> str:
    """Return the phase that a boot waits for: the one after what was last seen of it."""
    if NFS in kinds or (KERNEL in asked and root != NFS_ROOT):
        return "running"
    if KERNEL in asked or (flash and SYSTEM in kinds):
        return "nfs"
    return "flash" if flash else "tftp"


def stalled(
    asked: Collection[str],
    kinds: Collection[str],
    seconds: float,
    tries: int,
    console: str | None = None,
    flash: bool = False,
    root: str = NFS_ROOT,
) -> str:
    """Return the note of a boot that stalled ("stalled at tftp after 41 s, twice; console: board4.log").

    :param asked: roles of the files that the board asked for.
    :param kinds: kinds of things seen.
    :param seconds: how long the boot took until it was given up.
    :param tries: number of boots.
    :param flash: whether its kernel comes from its own flash memory.
    :param root: where its root lies.
    """
    times = TIMES.get(tries, f", {tries} times")
    if not kinds:
        text = f"no boot request within {seconds:.0f} s{times}"
    else:
        text = f"stalled at {awaited(asked, kinds, flash, root)} after {seconds:.0f} s{times}"
        if ENTRY in asked and KERNEL not in asked:
            text += " (boot entry fetched, kernel not asked for)"
        elif TFTP not in kinds and not asked:
            text += " (asked for an address only)"
    return f"{text}; console: {os.path.basename(console)}" if console else text


def failed_step(error: StepFailed | None, kinds: Container[str], tries: int) -> str | None:
    """Return the note of a boot in which a step of its driver failed, or None if it did not get that far.

    :param error: of the step, or None.
    """
    if error is None or (error.phase == MONITOR and NFS not in kinds):
        return None
    return f"{error.what}{TIMES.get(tries, f', {tries} times')} ({error.remedy})"


def wrong_feed(board: Board, pdu: str, outlet: str) -> str:
    """Return the note of a board whose address shows another host key although its own power was cycled."""
    return (
        f"outlet {outlet} of {pdu} does not feed this board, or its address is taken: {board.ip} shows another host key"
    )


def own_root(board: Board) -> str:
    """Return the note of a board that mounted its root in this boot and whose address shows another host key."""
    return (
        f"it has mounted its root, and {board.ip} shows another host key than the one that is known: its tenant may "
        "have made a new one, or another machine has its address"
    )


def console_size(path: str | None) -> int:
    """Return where the console's log ends now, in bytes. What a boot writes comes after it."""
    try:
        return os.path.getsize(path) if path else 0
    except OSError:
        return 0


def has_spoken(path: str | None, since: int) -> bool:
    """Return whether a console's log has grown since it ended at byte `since`, by more than what conserver itself
    writes there when it reaches the console or loses it. All is new in one that became shorter.
    """
    end = console_size(path)
    if not path or end in (0, since):
        return False
    try:
        with plain_file.opened(path) as file:
            file.seek(since if since < end else 0)
            added = file.read(CONSOLE_BYTES)
    except OSError:
        return True
    lines = added.decode("utf-8", "replace").splitlines()
    return len(added) == CONSOLE_BYTES or any(line.strip() and not _is_conservers(line) for line in lines)


def console_tail(path: str | None, since: int, most: int = CONSOLE_LINES, asked_by: str | None = None) -> list[str]:
    """Return the last lines, at most `most`, that a console's log got after byte `since`, safe to print.

    :param asked_by: the address whose questions for the board's ssh host key are left out, with what its sshd says of
        them; None to leave out nothing.
    """
    if not path:
        return []
    try:
        with plain_file.opened(path) as file:
            end = file.seek(0, os.SEEK_END)
            # A log that became shorter was rotated, so all of it is new.
            start = since if since <= end else 0
            size = CONSOLE_BYTES * (1 + most // 500)
            while True:
                begin = max(start, end - size)
                file.seek(begin)
                text = file.read(end - begin).decode("utf-8", "replace")
                lines = readable(lines_of(text), asked_by)
                enough = most if asked_by else min(most, CONSOLE_LINES)
                if len(lines) > enough or begin == start or size >= CONSOLE_MOST:
                    return lines[-most:]
                size *= 8
    except OSError as error:
        return [f"{path}: {error.strerror}"]


def lines_of(text: str, within: bool = False) -> list[str]:
    """Return the lines of a log's text. What a board writes over a line, behind a bare carriage return, is one as well.

    The log's writer puts a time before what comes behind a line's end, and nowhere else. So what begins with a time
    behind a bare carriage return, or where a line goes on, has a carriage return before it, which is shown: that time
    is the board's.

    :param within: whether the text begins within a line.
    """
    found: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n")):
        parts = line.split("\r")
        is_own = [number > 0 or not within, *(False for _part in parts[1:])]
        found += [part if own or not _seems_stamped(part) else f"\r{part}" for part, own in zip(parts, is_own)]
    return found


def _seems_stamped(text: str) -> bool:
    return bool(STAMPED.match(COLOURS.sub("", text).lstrip()))


def readable(lines: Iterable[str], asked_by: str | None) -> list[str]:
    """Return the lines of a log that a board said, safe to print: colours are left out, and so are empty lines.

    :param asked_by: as of console_tail.
    """
    shown = [_shown(line) for line in lines]
    return _without_questions([line for line in shown if line and not _is_conservers(line)], asked_by)


def with_sign(note: str, path: str | None, since: int) -> str:
    """Return the note of a boot that went wrong with what its console says of it, if that is one of SIGNS or PROMPTS.

    Of several lines with a sign the first is said: what follows an error is its consequence. A tenant's system writes
    there too, so that nothing is decided by it.

    :param path: the console's log, or None.
    :param since: byte of the log at which this boot begins.
    """
    lines = console_tail(path, since, SIGN_LINES)
    whole = _unwrapped(lines)
    for sign in SIGNS:
        found = next(filter(None, map(sign.search, whole)), None)
        if found:
            return f"{note}; its console says: {brief(STAMPED.sub('', found[0].lstrip()), SIGN_WIDTH)}"
    last = STAMPED.sub("", lines[-1]) if lines else ""
    return next((f"{note}; {words} (its console)" for prompt, words in PROMPTS if prompt.fullmatch(last)), note)


def _unwrapped(lines: list[str]) -> list[str]:
    """Return the lines with those put together again that a screen of SCREEN columns broke."""
    whole: list[str] = []
    goes_on = False
    for line in lines:
        said = STAMPED.sub("", line)
        if goes_on:
            whole[-1] += said
        else:
            whole.append(line)
        goes_on = len(said) == SCREEN
    return whole


def _without_questions(lines: list[str], asked_by: str | None) -> list[str]:
    """Return the lines without those in which sshd tells of an address that asked for its host key and logged in
    nowhere.
    """
    if not asked_by:
        return lines
    asked, named = re.compile(QUESTION.replace("{ip}", re.escape(asked_by))), f"{asked_by} port "
    left: list[str] = []
    for line in lines:
        if named not in line or len(line) > CONSERVERS_WIDTH or not asked.fullmatch(line):
            left.append(line)
        elif left and CUT_OFF.fullmatch(left[-1]):
            del left[-1]
    return left


def _is_conservers(line: str) -> bool:
    """Return whether conserver itself wrote a line, which is no long one. A tenant's lines are as many as it likes, so
    that none may take long.
    """
    if len(line) > CONSERVERS_WIDTH or not (line.startswith("[") and line.endswith("]")):
        return False
    time_ends = line.find("]")
    if time_ends == len(line) - 1 and CLOCK.search(line):
        return True
    words = line if line.startswith(CONSERVERS) else line[time_ends + 1 :]
    return words.startswith(CONSERVERS) and BETWEEN in words[len(CONSERVERS) : -1]


def _shown(line: str) -> str:
    line = COLOURS.sub("", line).expandtabs().rstrip()
    return one_line(line if len(line) <= CONSOLE_WIDTH else f"{line[: CONSOLE_WIDTH - 1]}…")
