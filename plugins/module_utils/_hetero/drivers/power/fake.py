# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU that is a JSON file, for tests: `{"outlets": {"1": "off"}, "faults": {…}}` at the path in setting `path`.

Its `meters`, where it has any, are {outlet: {"watts": …, "kwh": …}}. Faults: `stuck` (outlets that report success and
do not switch), `welded` (the same, but that they switch on), `refused` (outlets that are refused), `busy` (number of
logins that find the PDU in use), `hang` (nothing answers). They are in the file, so that a test can change them.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...core.errors import BadInput, Busy, Lost
from .drawn import Drawn
from .driver import Answer, PowerDriver


class Fake(PowerDriver):
    """Outlets in a file, which is read each time and replaced by each change, so that processes share it."""

    dialect = "fake"
    measures = True
    needs_host = False  # its file is named by path
    _has_meters = False

    def login(self) -> None:
        data = self._read()
        if data["faults"].get("busy", 0) > 0:
            data["faults"]["busy"] -= 1
            self._write(data)
            raise Busy("another user is logged in", self.name, "wait for its other user")
        self._hang(data)

    def logout(self) -> None:
        """Do nothing: nothing is kept open."""

    def status(self) -> dict[str, str]:
        data = self._read()
        self._hang(data)
        return data["outlets"]

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        data = self._read()
        self._hang(data)
        refused, stuck = data["faults"].get("refused", ()), data["faults"].get("stuck", ())
        welded = data["faults"].get("welded", ()) if state == "off" else ()
        data["outlets"].update({outlet: state for outlet in outlets if outlet not in (*refused, *stuck, *welded)})
        self._write(data)
        return {outlet: Answer(False, "refused") if outlet in refused else Answer(True, "done") for outlet in outlets}

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        if not self._has_meters:
            return {}  # without reading the file of thousands of played boards once more
        data = self._read()
        self._hang(data)
        return {outlet: Drawn(**one) for outlet, one in data.get("meters", {}).items() if outlet in outlets}

    def _hang(self, data: dict[str, Any]) -> None:
        if data["faults"].get("hang"):
            while not self.deadline.passed:
                self.deadline.nap()
            raise Lost("no answer", self.name, "look at the PDU, or raise timeout")

    def _read(self) -> dict[str, Any]:
        path = self.settings["path"]
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot be read ({error})", path, f"write the file of fake PDU {self.name}") from error
        data.setdefault("faults", {})
        self._has_meters = bool(data.get("meters"))
        return data

    def _write(self, data: dict[str, Any]) -> None:
        path = self.settings["path"]
        new = f"{path}.{os.getpid()}"
        with open(new, "w", encoding="utf-8") as file:
            file.write(json.dumps(data))  # ten times faster than json.dump, which plays of many boards wait for
        os.replace(new, path)
