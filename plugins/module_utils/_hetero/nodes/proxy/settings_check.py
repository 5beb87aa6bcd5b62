# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role tftp_proxy is about to write as proxy.json, read as verbs will read it: no set-up leaves a file that none
of them takes. And the values of its variables that other files get, whose programs would refuse these.

preflight.py and roots_check.py check what the values mean on this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from ...core.errors import BadInput, HeteroError
from ...core.spelling import in_spans
from ...core.typed_keys import ADDRESS, Kind, number, read_all
from ...images.store import ImageStore
from ...site import reservations
from ...site.proxy_config import FILE
from .. import plan_check

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...site.boards_file import Board
    from .setup_plan import Plan

VARIABLES = "tftp_proxy"
#: Settings of which the role makes folders: an empty text is none.
FOLDERS = ("tftp_root", "state_folder", "run_folder")
#: The low half of an IPv6 address.
HOST_BITS = 2**64 - 1


def _prefix(value: Any) -> str | None:
    """Return a value that 1 can be put behind, and be the first address of a network of 64 bits."""
    try:
        address = ipaddress.IPv6Address(value) if isinstance(value, str) and value.endswith("::") else None
    except ValueError:
        return None
    return value if address is not None and not int(address) & HOST_BITS else None


#: Variables that are no keys of proxy.json; what is empty is not looked at.
OTHERS = {
    "dhcp_router": ADDRESS,
    "dhcp_ra_prefix": Kind("an IPv6 prefix of 64 bits that ends with :: (fd00:1ab::), or nothing", _prefix),
    "timeout": number(0.1, 86400),
}


#: The key of proxy.json that the role makes of two variables, which http_check looks at.
OF_HTTP = "boot_http"
#: Variables of which several mistakes are said, each with its own place: the controller looks for other ones.
TABLES = (f"{VARIABLES}_owner_limits", f"{VARIABLES}_reservations")
#: Keys of proxy.json that a plan has a field for, by which the machine is looked at.
OF_PLAN = ("server", "tftp_root", "state_folder", "roots_overcommit", "root_gb", "ram_images", "wipe", "pdus")


def mistakes(plan: Plan) -> list[BadInput]:
    """Return all that is wrong with what `plan` would have written; the thing of each begins with the variable."""
    said = {**{key: getattr(plan, key) for key in OF_PLAN}, "boards": plan.wiring, **plan.settings}
    said.pop(OF_HTTP, None)
    wrong: list[HeteroError] = []
    read_all(FILE, said, VARIABLES, wrong)
    for key in FOLDERS:
        if key in said and said[key] is None:
            FILE.keys[key].kind.read(None, f"{VARIABLES}.{key}", wrong)
    for key, kind in OTHERS.items():
        value = getattr(plan, key)
        if value not in (None, ""):
            kind.read(value, f"{VARIABLES}.{key}", wrong)
    return [BadInput(one.what, str(one.thing).replace(".", "_", 1), one.remedy) for one in wrong]


def wrong_keys(wrong: Iterable[HeteroError]) -> set[str]:
    """Return the variables of these mistakes, without what all of them begin with."""
    return {_variable(one)[len(VARIABLES) + 1 :] for one in wrong}


def say(wrong: Sequence[HeteroError], found: Findings) -> None:
    """Report each of them as a defect, unless another look has said one of its variable, in TABLES of its place."""
    said = {str(defect.thing) for defect in found.defects}
    said |= {_variable(defect) for defect in found.defects} - {*TABLES}
    found.defects += [one for one in wrong if not {_variable(one), str(one.thing)} & said]


def _variable(error: HeteroError) -> str:
    return re.split(r"[.,\[]", str(error.thing), maxsplit=1)[0]


def reservations_here(plan: Plan, boards: Sequence[Board], found: Findings) -> None:
    """Report reservations of boards that are not in the boards file, and what plan_check.tables does.

    :param boards: of the boards file; none where that has mistakes.
    """
    table, names = plan.settings.get("reservations"), {board.name for board in boards}
    plan_check.tables(VARIABLES, plan.settings, found)
    for index, one in reservations.entries(table) if boards else ():
        wanted = (f"board{which}" if which.isdigit() else which for which in one.which)
        missing = [name for name in wanted if name not in names]
        if missing and one.end > time.time():
            what = f"names {', '.join(missing)}, and the boards file has {in_spans(board.id for board in boards)}"
            found.defect(f"{TABLES[1]}[{index}].which", what, "name boards of it, by number or as board3")


def ram_images(plan: Plan, found: Findings) -> None:
    """Report RAM images that are neither in the store nor to be imported, as notes: they can be imported later."""
    coming = {str(image.get("name")) for image in plan.images}
    store = ImageStore(os.path.join(plan.state_folder, "images"))
    for arch, name in plan.ram_images.items():
        if not isinstance(name, str) or name in coming:
            continue
        thing = f"{VARIABLES}_ram_images, {arch}"
        try:
            image = store.get(name)
        except HeteroError as error:
            found.note(thing, f"{name}: {error.what}", f"{error.remedy}, or name it in {VARIABLES}_images")
        else:
            if not image.ram:
                found.note(thing, f"{name} is no RAM image", 'give its image.json "ram": true, or name another')
