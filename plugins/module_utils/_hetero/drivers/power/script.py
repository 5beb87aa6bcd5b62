# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A script of the user's own, called as Nova's former bare-metal driver called its pdu_mgr: `SCRIPT HOST OUTLET MODE`.

Mode 1 is on, 2 off and 9 status, for which the script's last word is `on` or `off`. Mode 3 (reboot) is never used,
because off and on are each read back. Exit code 0 is success; a status of `off` may end with 2, as of fence agents.
HOST is empty where the PDU's settings name none: such a script knows by itself what it switches.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ...core.command import Limits, ended
from ...core.errors import BadInput, HeteroError
from ...core.output import MOST_OF_OTHERS
from ...core.this_node import THIS_NODE
from .driver import Answer
from .program import ProgramDriver

if TYPE_CHECKING:
    import subprocess

#: The modes of Nova's tile_pdu_on, tile_pdu_off and tile_pdu_status.
ON, OFF, STATUS = "1", "2", "9"
MODES = {"on": ON, "off": OFF}


class Script(ProgramDriver):
    """A PDU behind a script."""

    dialect = "command"
    needs_host = False  # only its script knows whether it needs one

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        """Yield wrong settings. The script knows what its host may be; it must only not look like an option."""
        host, script = str(settings.get("host") or ""), str(settings.get("script") or "")
        if not os.path.isabs(script):
            yield "script", BadInput(f"'{script}' is no script", name, "give the path of its script")
        elif not os.path.exists(script):
            what = f"program {script} is not installed"
            yield "script", HeteroError(what, name, f"put it there on {THIS_NODE}, for root to execute (chmod 755)")
        elif shutil.which(script) is None:
            what = f"program {script} cannot be run (Permission denied)"
            yield "script", HeteroError(what, name, f"let root execute it on {THIS_NODE} (chmod 755)")
        if host.startswith("-"):
            yield "host", BadInput(f"'{host}' is no host", name, "give its name or address")

    def login(self) -> None:
        self._must_be_right()
        script, host = self.settings["script"], str(self.settings.get("host") or "")
        if not self.settings.get("outlets"):
            raise BadInput("a script does not tell which outlets there are", self.name, "name its outlets")
        self._argv = [script, host]

    def logout(self) -> None:
        """Do nothing: the script keeps nothing open."""

    def status(self) -> dict[str, str]:
        return {outlet: self._one(outlet) for outlet in map(str, self.settings["outlets"])}

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        return {outlet: self._order(outlet, state) for outlet in outlets}

    def _order(self, outlet: str, state: str) -> Answer:
        done = self._run(outlet, MODES[state])
        return Answer(done.returncode == 0, self._words(done))

    def _one(self, outlet: str) -> str:
        done = self._run(outlet, STATUS)
        state = (done.stdout.split() or [""])[-1].lower()
        if (done.returncode, state) not in ((0, "on"), (0, "off"), (2, "off")):
            what = f"the script ended with {done.returncode} and said: {self._words(done)}"
            remedy = "let its last word be on or off for mode 9"
            raise HeteroError(what, f"outlet {outlet} of {self.name}", remedy)
        return state

    def _run(self, outlet: str, mode: str) -> subprocess.CompletedProcess[str]:
        # A script that wants the credentials reads them from standard input; others do not see them.
        secrets = "".join(f"{name}={secret}\n" for name, secret in self.secrets.items() if secret)
        argv, remedy = [*self._argv, outlet, mode], "look at its script, or raise timeout"

        def run(limit: float) -> subprocess.CompletedProcess[str]:
            return ended(argv, self.name, remedy, Limits(limit, MOST_OF_OTHERS), secrets)

        return self._asked(run, "run", "its script", remedy)
