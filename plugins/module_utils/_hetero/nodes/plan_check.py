# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of roles' variables that would fail in the middle of a set-up, whatever the machine is to become: how often it
looks for leases, which images it is to have, and what the controller has found already.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from ..core.command import ended
from ..core.errors import HeteroError
from ..core.typed_keys import PATH, read_all, shown
from ..images import sources
from ..site.image_names import NAME

if TYPE_CHECKING:
    from ..core.findings import Findings
    from ..core.typed_keys import Record

#: Longest text that is asked about, and what systemd prints of a time span; the sign is one of two letters.
SPAN_LENGTH, MICROSECONDS = 100, re.compile(r"^ *\S+s: (\d+)$", re.MULTILINE)
#: A timer that is due again at once starves the node; systemd's own word for never.
LEAST, NEVER = 10**6, 2**64 - 1
#: Keys of host.json that the roles' variables call differently.
CALLED = {"name": "inventory_hostname", "guests_folder": "kvm_guests_folder", "gpu_overrides": "gpu_lxc_overrides"}
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
        if variable not in said:
            found.defect(f"{variable}{dot}{inner}", one.what, one.remedy)


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
