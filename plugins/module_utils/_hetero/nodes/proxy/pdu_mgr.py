# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pdu_mgr PDU_IP OUTLET MODE`, the blueprint's command: an outlet on, off, cycled or told, and always read back.

The PDU is looked up in the proxy's configuration; its driver, lock and credentials are the ones that modules use.
Nova's bare-metal drivers call it as well: in Essex with `>>` and a file's name behind, which no shell sees, and in
Havana without an outlet. A board that an instance has, by whatever tells of it, is switched for nobody who does not
force it.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Sequence

from ...boards.evidence.free_boards import served, unknown_tenant
from ...boards.power.last_outlet import Feeds
from ...boards.power.pdu_names import address as address_of
from ...boards.power.pdu_names import is_at, may_be_at
from ...boards.records.claim_records import Fed
from ...boards.records.proxy import Proxy
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Refused
from ...core.plays import play
from ...core.printable import one_line
from ...drivers.power.outlets import session, set_outlets
from ...site.boards_file import read
from ...site.proxy_config import CONFIG, NAME_ONE, files_of, pdu, read_config

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...drivers.power.outlets import Session
    from ...site.proxy_config import ProxyConfig

#: The blueprint's numbers; 3, reboot, is off seen and then on seen, as a PDU's own reboot leaves off what is off.
MODES = {"1": "on", "2": "off", "3": "cycled", "9": "status"}
#: Exit code of mode 9 for an outlet that is off, as fence agents have it; 0 is on, and any failure is 1.
OFF = 2
#: The remedies for a board that somebody has.
STOP = f"{play('stop_instance', instance='{name}')}, or add --force"
ADOPT = f"have {play('reconcile')} adopt it, or add --force"
UNKNOWN = (
    f"once it is known that the wiring is right, {play('reconcile', adopt='{name}')} takes its word; or add --force"
)
UNNAMED = f"add it to the boards file and have {play('reconcile')} adopt it, or add --force"
ENDS = """\
prints what was read back, as "pdu-a outlet 5: on".
without OUTLET, PDU_IP is the address of a board, or of a PDU that feeds one board.
'>>' and a file's name behind MODE are taken and mean nothing.
exit code: 0 done, or for mode 9: on; 2 for mode 9: off; 1 any failure"""


class OnlyNumber(NamedTuple):
    """A board that the boards file may not name."""

    id: int


class Words(argparse.ArgumentParser):
    """Wrong arguments end with 1 too: argparse's own 2 would say that the outlet is off."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(message, "arguments", self.format_usage().strip())


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = Words(
        prog="pdu_mgr",
        description="Switch an outlet of a PDU and read it back.",
        epilog=ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words.add_argument("pdu", metavar="PDU_IP", help="the PDU's address, or its name in the configuration")
    words.add_argument("outlet", metavar="OUTLET", nargs="?", help="the outlet, as the PDU calls it")
    words.add_argument("mode", metavar="MODE", choices=MODES, help="1 on, 2 off, 3 reboot (off, then on), 9 status")
    words.add_argument("--force", action="store_true", help="switch it although an instance has its board")
    words.add_argument("--config", default=CONFIG, help="the proxy's configuration (%(default)s)")
    words.add_argument("--timeout", type=float, default=60.0, help="seconds to give up after (%(default)g)")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(without_redirection(arguments))
    config, state, deadline = read_config(options.config), MODES[options.mode], Deadline(options.timeout)
    if options.outlet is None:
        name, outlet = only_outlet(config, options.config, options.pdu)
    else:
        name, outlet = named(config, options.pdu), options.outlet
    if state != "status" and not options.force:
        must_be_nobodys(config, options.config, name, outlet, cuts=state != "on")
    settings, secrets = pdu(config, name)
    with session(name, settings, secrets, deadline, config.run_folder) as opened:
        if state == "status":
            seen = _status(opened, outlet)
        else:
            opened.take_turn()
            if not options.force:  # an instance may have got the board while others had the PDU
                must_be_nobodys(config, options.config, name, outlet, cuts=state != "on")
            seen = set_outlets(opened, {outlet: state}, deadline)[outlet]["after"]
    sys.stdout.write(one_line(f"{name} outlet {outlet}: {seen}") + "\n")
    if state == "status":
        return {"on": 0, "off": OFF}.get(seen, 1)
    return 0


def without_redirection(arguments: Sequence[str]) -> Sequence[str]:
    """Return the words without a shell's `>> FILE` at their end, which Nova of Essex hands over as two words."""
    return arguments[:-2] if list(arguments[-2:-1]) == [">>"] else arguments


def only_outlet(config: ProxyConfig, path: str, address: str) -> tuple[str, str]:
    """Return (PDU name, outlet) of the board at an address, or of the one board that the PDU there feeds.

    :raises BadInput: no board has the address, or the PDU feeds none or several.
    """
    numbers = [str(board.id) for board in read(files_of(path)["boards_file"]) if board.ip == address]
    fed = [config.boards[number].fed for number in numbers if number in config.boards]
    if not numbers:
        name = named(config, address)
        fed = [wire.fed for wire in config.boards.values() if wire.pdu == name]
    outlets = [(pdu_name, str(outlet)) for pdu_name, outlet in filter(None, fed)]
    if len(outlets) != 1:
        what = f"feeds {len(outlets)} boards" if not numbers else "is a board's that no outlet is configured for"
        remedy = "name the outlet behind it, or give a board's address"
        raise BadInput(f"{what}, and no outlet is given", address, remedy)
    return outlets[0]


def must_be_nobodys(config: ProxyConfig, path: str, name: str, outlet: str, cuts: bool) -> None:
    """Raise Refused where somebody has a board that an outlet feeds or may feed, by the wiring or its record.

    The database tells who has a board; it may be older, so the board's root and the record of its claim count as well.
    So do boards whose line the boards file has lost.

    :param cuts: the outlet is to be switched off, at least for a moment; it may be that of a board of which nothing
        tells what feeds it.
    """
    if not config.boards:
        return
    with Proxy(files_of(path), "pdu_mgr", create=False, boardless=True) as proxy:
        claims = {claim.board: claim for claim in proxy.store.claims()}
        wired = (int(number) for number in config.boards if number.isdigit())
        for number in sorted({*claims, *proxy.boards, *wired, *proxy.store.kept_boards()}):
            claim = claims.get(number)
            feeds = _feeds(proxy, number, claim)
            if not any(may_be_at(config.pdus, fed, name, outlet) for fed in feeds):
                continue
            sure = any(is_at(config.pdus, fed, name, outlet) for fed in feeds)
            what = f"{'feeds' if sure else 'may feed'} board{number}, "
            if claim:
                what += f"which {claim.instance} of {claim.owner} has"
                raise Refused(what, f"outlet {outlet} of {name}", STOP.format(name=claim.instance))
            board = proxy.boards.get(number)
            whose = unknown_tenant(proxy, OnlyNumber(number))
            if whose and board is None:
                raise Refused(f"{what}not in the boards file, which {whose}", f"outlet {outlet} of {name}", UNNAMED)
            if whose:
                raise Refused(f"{what}of which status says: {whose}", f"outlet {outlet} of {name}", ADOPT)
            made_ready = served(proxy, board) if board else None
            if made_ready:
                way = f"{made_ready.remedy}; or add --force"
                raise Refused(f"{what}which {made_ready.what}", f"outlet {outlet} of {name}", way)
        for number in Feeds(proxy).unknown() if cuts else ():
            claim = claims.get(number)
            if claim:
                what = f"may feed board{number}, which {claim.instance} of {claim.owner} has: what does is not known"
                raise Refused(what, f"outlet {outlet} of {name}", UNKNOWN.format(name=claim.instance))


def _feeds(proxy: Proxy, board: int, claim: Claim | None) -> list[Fed]:
    """Return the outlets of a board: by the wiring, and the last that fed it, which may be another one."""
    feeds, wire = [], proxy.config.boards.get(str(board))
    if wire is not None and wire.fed:
        pdu_name, outlet = wire.fed
        feeds.append(Fed(pdu_name, str(outlet), address_of(proxy.config.pdus.get(pdu_name, {}))))
    with suppress(HeteroError):  # a record that cannot be read leaves the wiring
        kept = proxy.store.kept(board)
        fed = kept.fed if kept and (claim is None or kept.claim.is_same(claim)) else None
        if fed and not (fed.taken or fed.belied):
            feeds.append(fed)
    return feeds


def named(config: ProxyConfig, address: str) -> str:
    """Return the name of the PDU at an address.

    :raises BadInput: there is none, or more than one.
    """
    pdus = config.pdus
    if address in pdus:
        return address
    names = sorted(name for name, settings in pdus.items() if settings.get("host") == address)
    if len(names) > 1:
        raise BadInput(f"is the address of {', '.join(names)}", address, "name one of them")
    if not names:
        hosts = {name: settings.get("host") for name, settings in sorted(pdus.items())}
        known = ", ".join(f"{host} ({name})" if host else name for name, host in hosts.items()) or "none"
        raise BadInput(f"no such PDU (known: {known})", address, NAME_ONE)
    return names[0]


def _status(opened: Session, outlet: str) -> str:
    status = opened.status()
    if outlet not in status:
        what = f"no such outlet (it has {', '.join(status)})"
        raise BadInput(what, f"outlet {outlet} of {opened.name}", "correct the outlet")
    return status[outlet]
