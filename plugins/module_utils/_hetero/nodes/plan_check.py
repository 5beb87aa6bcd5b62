# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of roles' variables that would fail in the middle of a set-up, whatever the machine is to become: how often it
looks for leases, which images it is to have, and what the controller has found already.
"""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from ..claims.owner_limits import OTHERS
from ..core.command import ended
from ..core.errors import HeteroError
from ..core.typed_keys import PATH, read_all, shown
from ..images import sources
from ..site import reservations
from ..site.image_names import NAME
from ..site.leases import at
from ..site.owners import must_be_owner, same

if TYPE_CHECKING:
    from ..core.findings import Findings
    from ..core.typed_keys import Record

#: Longest text that is asked about, and what systemd prints of a time span; the sign is one of two letters.
SPAN_LENGTH, MICROSECONDS = 100, re.compile(r"^ *\S+s: (\d+)$", re.MULTILINE)
#: A timer that is due again at once starves the node; systemd's own word for never.
LEAST, NEVER = 10**6, 2**64 - 1
#: Keys of host.json that the roles' variables call differently.
CALLED = {"name": "inventory_hostname", "guests_folder": "kvm_guests_folder", "gpu_overrides": "gpu_lxc_overrides"}
#: How many reservations that are over are named, and what is done about them.
TOLD = 4
OVER = "correct the dates where they are wrong, or take it out"
#: What is wrong with an owner's second limit: accents are one character or two.
TWICE = "is there twice, typed in two ways that look alike"
SPANS = "give a time span of systemd of a second or more (30s, 5min)"


def of_role(role: str, params: Mapping[str, Any], found: Findings) -> None:
    """Check all of these, by the options that modules have for them; `role` begins the names of its variables."""
    said_before(params["mistakes"], found)
    images(f"{role}_images", params["images"], found)
    interval(f"{role}_reap_interval", params["reap_interval"], found)


def settings(role: str, kind: Record, given: Mapping[str, Any], found: Findings) -> None:
    """Check what the role is about to write as its part of host.json, by the reader that verbs have.

    :param kind: the Record of such a part.
    """
    wrong: list[HeteroError] = []
    read_all(kind, given, role, wrong)
    for key, declared in kind.keys.items():
        # nothing is what a verb has a default for, and no folder that the role could make
        if declared.kind is PATH and key in given and given[key] in (None, ""):
            PATH.read(given[key], f"{role}.{key}", wrong)
    said = {str(defect.thing) for defect in found.defects}
    for one in wrong:
        key, dot, inner = str(one.thing)[len(role) + 1 :].partition(".")
        variable = CALLED.get(key, f"{role}_{key}")
        if not {variable, f"{variable}{dot}{inner}"} & said:
            found.defect(f"{variable}{dot}{inner}", one.what, one.remedy)
    tables(role, given, found)


def tables(role: str, given: Mapping[str, Any], found: Findings) -> None:
    """Report owners of limits and reservations whom nobody can be, as a node that was set up before goes on with these,
    and note reservations that are over.
    """
    limits, table = given.get("owner_limits"), given.get("reservations")
    names = [name for name in limits if name != OTHERS] if isinstance(limits, dict) else []
    named = [(f"{role}_owner_limits.{name}", name) for name in names]
    named += [(f"{role}_reservations[{number}].owner", one.owner) for number, one in reservations.entries(table)]
    for place, name in named:
        try:
            must_be_owner(name)
        except HeteroError as error:
            found.defect(place, error.what, error.remedy)
    for number, name in enumerate(names):
        other = next((one for one in names[:number] if same(str(one), str(name))), None)
        if other is not None:
            found.defect(f"{role}_owner_limits.{name}", TWICE, "keep the one that is to hold")
    _over(f"{role}_reservations", table, found)


def _over(variable: str, table: Any, found: Findings) -> None:
    """Note the reservations whose dates are over by this machine's clock, as these may have a wrong year.

    :param table: as the role writes it (site/reservations.py).
    """
    now = time.time()
    over = [(number, one) for number, one in reservations.entries(table) if one.end <= now]
    if over:
        told = [f"[{number}] ({one.what} for {one.owner} until {at(one.end)})" for number, one in over[:TOLD]]
        more = f" and {len(over) - TOLD} more" if over[TOLD:] else ""
        found.note(variable, f"over is {', '.join(told)}{more}: nothing is reserved by that", OVER)


def said_before(mistakes: Iterable[Mapping[str, Any]], found: Findings) -> None:
    """Take over mistakes that the controller has found, each with thing, what and remedy."""
    for mistake in mistakes:
        found.defect(*(str(mistake.get(key, "")) for key in ("thing", "what", "remedy")))


def interval(variable: str, span: object, found: Findings) -> None:
    """Check how often a timer is due, as systemd reads it; if its program is missing, nothing is said."""
    if span is None or not shutil.which("systemd-analyze"):
        return
    text = str(span)
    if not text.isprintable() or len(text) > SPAN_LENGTH:
        found.defect(variable, f"is {shown(text)}", SPANS)
        return
    done = ended(["systemd-analyze", "timespan", "--", text], variable, SPANS)
    read = MICROSECONDS.search(done.stdout)
    if done.returncode or not read:
        found.defect(variable, f"is {shown(text)}, which is no time span to systemd", SPANS)
    elif not LEAST <= int(read.group(1)) < NEVER:
        found.defect(variable, f"is {shown(text)}, at which nothing could look for leases", SPANS)


def images(variable: str, given: Iterable[Mapping[str, Any]], found: Findings) -> None:
    """Check images to import: each has a name that the store takes, and comes from one place, where something is."""
    for number, image in enumerate(given):
        name = image.get("name")
        thing = f"{variable}, {name}" if name else f"{variable}[{number}]"
        if not isinstance(name, str) or not NAME.fullmatch(name):
            what = f"{shown(name)} is no name for an image" if name else "has no name"
            found.defect(thing, what, "give letters, digits, dots and dashes")
        places = [key for key in ("src", "url") if image.get(key)]
        if not places:
            found.defect(thing, "has neither src nor url", "name the folder or tar file on the node (src), or its url")
        elif len(places) > 1:
            found.defect(thing, "has both src and url", "keep the one that it is to come from")
        else:
            for error in sources.mistakes(str(image[places[0]]), image.get("checksum")):
                found.defect(thing, f"{error.thing}: {error.what}", error.remedy)
