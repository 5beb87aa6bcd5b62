# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pdu_mgr PDU_IP OUTLET MODE`, the blueprint's command: an outlet on, off, cycled or told, and always read back.

The PDU is looked up in the proxy's configuration; its driver, lock and credentials are the ones that modules use.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn, Sequence

from ...core.deadline import Deadline
from ...core.errors import BadInput
from ...core.printable import one_line
from ...drivers.power.outlets import session, set_outlets
from ...site.proxy_config import CONFIG, SET_UP, pdu, read_config

if TYPE_CHECKING:
    from ...drivers.power.outlets import Session
    from ...site.proxy_config import ProxyConfig

#: The blueprint's numbers; 3, reboot, is off seen and then on seen, as a PDU's own reboot leaves off what is off.
MODES = {"1": "on", "2": "off", "3": "cycled", "9": "status"}
#: Exit code of mode 9 for an outlet that is off, as fence agents have it; 0 is on, and any failure is 1.
OFF = 2
ENDS = """\
prints what was read back, as "pdu-a outlet 5: on".
exit code: 0 done, or for mode 9: on; 2 for mode 9: off; 1 any failure"""


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
    words.add_argument("outlet", metavar="OUTLET", help="the outlet, as the PDU calls it")
    words.add_argument("mode", metavar="MODE", choices=MODES, help="1 on, 2 off, 3 reboot (off, then on), 9 status")
    words.add_argument("--config", default=CONFIG, help="the proxy's configuration (%(default)s)")
    words.add_argument("--timeout", type=float, default=60.0, help="seconds to give up after (%(default)g)")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    config, state, deadline = read_config(options.config), MODES[options.mode], Deadline(options.timeout)
    name = named(config, options.pdu)
    settings, secrets = pdu(config, name)
    with session(name, settings, secrets, deadline, config.run_folder) as opened:
        if state == "status":
            seen = _status(opened, options.outlet)
        else:
            seen = set_outlets(opened, {options.outlet: state}, deadline)[options.outlet]["after"]
    sys.stdout.write(one_line(f"{name} outlet {options.outlet}: {seen}") + "\n")
    if state == "status":
        return {"on": 0, "off": OFF}.get(seen, 1)
    return 0


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
        known = ", ".join(f"{settings.get('host')} ({name})" for name, settings in sorted(pdus.items())) or "none"
        raise BadInput(f"no such PDU (known: {known})", address, SET_UP)
    return names[0]


def _status(opened: Session, outlet: str) -> str:
    status = opened.status()
    if outlet not in status:
        what = f"no such outlet (it has {', '.join(status)})"
        raise BadInput(what, f"outlet {outlet} of {opened.name}", "correct the outlet")
    return status[outlet]
