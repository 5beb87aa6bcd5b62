# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long many boards take that are asked for at once, and what they wait for: simulated (simulated_boots.py).

`.venv/bin/python bench/storm.py` prints the tables of the guide to playbooks; with options, one line for a site of your
own.
`--lab-boards 16` prints a boards file of a lab with 16 boards, on which bench/provision.py measures what is simulated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from ansible_collections.hetero.compute.bench.big_site import boards  # noqa: E402
from ansible_collections.hetero.compute.bench.simulated_boots import Board, Pdu, Proxy, Site, limit, proxies, running  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import COLUMNS  # noqa: E402

LINKS = (1_000, 10_000, 25_000)  # Mbit/s
NUMBERS = (100, 1_000, 3_000, 10_000)
#: Minutes within which all boards of a site are to run, by as many proxy nodes as that needs.
MINUTES = 10.0
#: A PDU with APC's command line (AOS 5), as bench/pdu.py has it with 0.2 s a screen.
COMMAND_LINE = Pdu(order=0.61, single=Pdu.portion)
#: What of a site of 1,000 boards is another, beside Site().
OTHERS = {
    "as above": {},
    "boots_at_once: 24": dict(proxy=Proxy(at_once=24)),
    "boots_at_once: 48": dict(proxy=Proxy(at_once=48)),
    "boots_at_once: 200": dict(proxy=Proxy(at_once=200)),
    "PDUs with a command line": dict(pdu=COMMAND_LINE),
    "PDUs with 8 outlets": dict(pdu=Pdu(outlets=8)),
    "inrush: 4": dict(pdu=Pdu(inrush=4)),
    "inrush: 1": dict(pdu=Pdu(inrush=1)),
    "firmware of half a minute": dict(board=Board(firmware=30.0)),
    "roots are there (start)": dict(proxy=Proxy(root=0.0, many=0.0)),
    "2 processors": dict(proxy=Proxy(processors=2)),
}


def time_of(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def at_once(site: Site) -> str:
    places = site.proxy.places
    return "all" if places == inf else f"{places:,}"


def header() -> str:
    columns = f"{'link':10} {'boards':>7} {'at once':>8} {'first':>6} {'half':>7} {'all':>7}   {'limit':14}"
    return f"{columns}{'proxies':>7}"


def row(number: int, site: Site, minutes: float = MINUTES) -> str:
    runs = running(number, site)
    link = "none" if site.proxy.link is None else f"{site.proxy.link / 1000:g} Gbit/s"
    times = f"{time_of(runs[0]):>6} {time_of(runs[(number - 1) // 2]):>7} {time_of(runs[-1]):>7}"
    needed = proxies(number, site, 60 * minutes)
    which = limit(number, site)
    return f"{link:10} {number:>7,} {at_once(site):>8} {times}   {which:14}{needed or '-':>7}"


def sites() -> str:
    """The table of sites of any size, by the link of their proxy node."""
    rows = [row(number, Site(proxy=Proxy(link=link))) for link in LINKS for number in NUMBERS]
    return "\n".join([header(), *rows]) + "\n"


def others() -> str:
    """The table of what another setting gives 1,000 boards: how long all take, and their limit."""
    lines = [f"{'1,000 boards':28}" + "".join(f"{f'{link // 1000} Gbit/s':>10}   {'limit':14}" for link in LINKS[:2])]
    for name, other in OTHERS.items():
        cells = []
        for link in LINKS[:2]:
            site = Site(**other)
            site = replace(site, proxy=replace(site.proxy, link=link))
            cells.append(f"{time_of(running(1_000, site)[-1]):>10}   {limit(1_000, site):14}")
        lines.append(f"{name:28}{''.join(cells)}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def lab_boards(number: int) -> str:
    """A boards file for a lab whose boards are all of the sample's first kind."""
    kind = boards(1)[0].columns
    own = [dict(id=board, ip=f"10.0.2.{board + 1}", mac=f"02:00:00:00:01:{board:02x}") for board in range(number)]
    lines = [[str({**kind, **columns}[key]) for key in COLUMNS[:-1]] for columns in own]
    return "".join(f"{' '.join(line)} {json.dumps(kind['cpu_info'])}\n" for line in lines)


def above(least: float, kind: type[int] | type[float] = float) -> Callable[[str], float]:
    """What argparse reads a number with that is more than `least`."""

    def read(text: str) -> float:
        number = kind(text)
        if not least < number < inf:
            raise argparse.ArgumentTypeError(f"{text} is not above {least}")
        return number

    read.__name__ = "number"  # argparse's "invalid number value: 'x'"
    return read


def parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--boards", type=above(0, int), metavar="N", help="boards that are asked for at once")
    asked.add_argument("--link", type=above(0, int), default=1000, metavar="MBIT", help="the proxy's Mbit/s (1000)")
    asked.add_argument("--at-once", type=above(-1, int), default=0, metavar="N", help="tftp_proxy_boots_at_once")
    asked.add_argument("--processors", type=above(0, int), default=Proxy.processors, metavar="N", help="of the proxy")
    asked.add_argument("--outlets", type=above(0, int), default=Pdu.outlets, metavar="N", help="boards of one PDU")
    asked.add_argument("--inrush", type=above(0, int), metavar="N", help="inrush of each PDU")
    asked.add_argument("--order", type=above(-1), default=Pdu.order, metavar="S", help="seconds of a PDU for an order")
    asked.add_argument("--firmware", type=above(0), default=Board.firmware, metavar="S", help="seconds until it loads")
    asked.add_argument("--kernel", type=above(0), default=Board.kernel / 1e6, metavar="MB", help="by TFTP, for a board")
    asked.add_argument("--root", type=above(0), default=Board.root / 1e6, metavar="MB", help="by NFS, until it runs")
    asked.add_argument("--minutes", type=above(0), default=MINUTES, metavar="M", help="within which all are to run")
    asked.add_argument("--lab-boards", type=above(0, int), metavar="N", help="print a boards file for a lab")
    return asked


def main(words: list[str]) -> None:
    asked = parser().parse_args(words)
    if asked.lab_boards:
        print(lab_boards(asked.lab_boards), end="")
    elif asked.boards:
        proxy = Proxy(link=asked.link, at_once=asked.at_once, processors=asked.processors)
        pdu = Pdu(outlets=asked.outlets, inrush=asked.inrush, order=asked.order)
        board = Board(firmware=asked.firmware, kernel=asked.kernel * 1e6, root=asked.root * 1e6)
        print(header(), row(asked.boards, Site(board, pdu, proxy), asked.minutes), sep="\n")
    else:
        print(sites(), others(), sep="\n", end="")


if __name__ == "__main__":
    main(sys.argv[1:])
