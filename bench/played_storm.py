# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A start of many played boards beside the simulated one: `bench/played_storm.py [BOARDS …]`, from the root folder.

The product's own verb runs, with its places, its PDU's line and inrush; boards and PDU are played, so a board takes
what one takes alone, and no link is there. So this shows whether boards wait for each other as simulated_boots.py has
it, and not how fast a link or a processor is. A played board begins to boot when its outlet is read back, which is at
the end of an order: with inrush, half of them run later than is simulated, and all of them at the same time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from ansible_collections.hetero.compute.bench.simulated_boots import Board, Pdu, Proxy, Site, running  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import RATE  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_many_boards import fill  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import Site as Played  # noqa: E402

BOARD = Board()
#: (boots_at_once, 0 for no limit; inrush).
SETTINGS = ((4, None), (12, 4), (0, 2))


def measured(boards: int, at_once: int, inrush: int | None) -> tuple[float, ...]:
    """Seconds until each of so many boards is told to run."""
    mounted = BOARD.firmware + BOARD.kernel / RATE
    with tempfile.TemporaryDirectory() as folder:
        site = Played(Path(folder))
        fill(site, boards, tftp=BOARD.firmware, nfs=mounted, running=BOARD.alone)
        site.config["boots_at_once"] = at_once
        site.config["pdus"]["pdu-r"].update(dict(inrush=inrush) if inrush else {})
        site.write()
        begin = time.time()
        result = site.run("start", *range(boards))
        if result.get("failed"):
            sys.exit(result["msg"])
        return tuple(
            sorted(event.time - begin for board in range(boards) for event in site.events(board, ("running",)))
        )


def simulated(boards: int, at_once: int, inrush: int | None) -> tuple[float, ...]:
    pdu = Pdu(outlets=boards, inrush=inrush, login=0.0, order=0.0, portion=0.0, single=0.0)
    return running(boards, Site(BOARD, pdu, Proxy(link=None, at_once=at_once or None, root=0.0, many=0.0)))


def main(numbers: list[int]) -> None:
    print(f"{'boards':>6} {'at once':>8} {'inrush':>7}   {'played: half, all run':>24} {'simulated':>18}", flush=True)
    for boards in numbers:
        for setting in SETTINGS:
            print(f"{boards:>6} {setting[0] or 'all':>8} {setting[1] or '-':>7}  ", end="", flush=True)
            for width, ends in ((14, measured(boards, *setting)), (8, simulated(boards, *setting))):
                print(f"{ends[(boards - 1) // 2]:>{width}.1f} s {ends[-1]:>6.1f} s", end="", flush=True)
            print(flush=True)


if __name__ == "__main__":
    main([int(boards) for boards in sys.argv[1:]] or [16, 24])
