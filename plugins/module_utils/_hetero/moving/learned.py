# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring of a proxy node as it was learned, in a new file of variables beside the inventory.

A file that is there stays, whatever is in it.
"""

from __future__ import annotations

import os
import shlex
from typing import Any, Mapping

from ..core.changes import Change
from ..core.errors import BadInput, Refused, naming
from ..core.plays import play
from ..files.whole_file import as_before, write_whole
from .written import boards_lines
from .yaml_lines import comment

HEAD = (
    "Learned by {cabling}: tftp_proxy_boards of {host}, all of it",
    "To look at it: {proxy} --limit {host} --check --diff -e @{path}",
    "To keep it: put it in place of tftp_proxy_boards in the variables of {host}, such as host_vars/{host}.yml",
)
#: What Ansible calls files of variables.
ENDINGS = (".yml", ".yaml", ".json")


def write_wiring(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Write `wiring` of the proxy node `host` into `file`; without `wiring`, only look whether it can be written.

    :raises Refused: the file is there.
    :raises BadInput: Ansible would read it in place of another file that is there.
    """
    path, wiring, change = os.path.realpath(params["file"]), params["wiring"], Change(check_mode)
    if os.path.lexists(path):
        raise Refused("is there, and stays; nothing was written", path, "name another file")
    folder = os.path.dirname(path)
    if os.path.basename(os.path.dirname(folder)) in ("host_vars", "group_vars"):
        # of a folder and a file of one name Ansible reads the folder alone
        hidden = next((f"{folder}{end}" for end in ENDINGS if os.path.exists(f"{folder}{end}")), None)
        if hidden:
            raise BadInput(f"would keep Ansible from reading {hidden}", path, "name a file outside that folder")
    lines = []
    if wiring:
        said = dict(cabling=play("cabling", learn="…"), proxy=play("proxy"))
        said.update(host=params["host"], path=shlex.quote(path))
        head = "".join(f"{comment(line.format(**said)).strip()}\n" for line in HEAD)
        wires = {int(number): wire for number, wire in wiring.items()}
        text = head + "".join(boards_lines(dict(sorted(wires.items())), {}))
        if change.note(path, {"lines": []}, {"lines": text.splitlines()}) and not check_mode:
            with naming(path):
                os.makedirs(folder, exist_ok=True)
                write_whole(path, text, **as_before(path, 0o644))
        lines.append(f"{path} has them, as tftp_proxy_boards of {params['host']}")
    return {**change.result, "lines": lines, "boards": [], "questions": [], "vault": [], "notes": []}
