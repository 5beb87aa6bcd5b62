# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node whose boards are played; and a lab that moves in, where nobody knows which outlet feeds which board."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import CPU, Site, loopback, site

__all__ = ["lab", "loopback", "site"]

#: What the outlets of the lab feed in truth.
RACK = {
    "pdu-a": {"1": [7], "2": [0], "3": [9], "5": [4], "6": [2]},
    "pdu-b": {"1": [5], "2": [8], "4": [1], "5": [6], "6": [3]},
}


@contextmanager
def racked(pdus, boots, rack):
    """Boards boot and end with the outlets of PDUs that are files, whoever switches these.

    :param pdus: {PDU: its file}.
    :param boots: folder of the files of driver fake.
    """
    over, before = threading.Event(), {}

    def power(board, state):
        path = boots / f"board{board}"
        boot = json.loads(path.read_text()) if path.exists() else {"on": None, "boots": 0}
        boot = {"on": time.monotonic(), "boots": boot["boots"] + 1} if state == "on" else dict(boot, on=None)
        boots.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(boot))
        new.replace(path)

    def look():
        while not over.wait(0.005):
            for pdu, path in pdus.items():
                outlets = {}
                with suppress(ValueError):  # a test is just writing it
                    outlets = json.loads(path.read_text())["outlets"]
                for outlet, state in outlets.items():
                    if before.setdefault((pdu, outlet), "off") != state:
                        before[pdu, outlet] = state
                        for board in rack.get(pdu, {}).get(outlet, ()):
                            power(board, state)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Lab(Site):
    """Ten boards and two PDUs of eight outlets each; no board is wired. `rack` may be changed."""

    def __init__(self, folder):
        super().__init__(folder)
        rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:9{n} 10 16218 917 476 1 tilera_hv 1 {CPU}" for n in range(10)]
        (folder / "tilera_boards").write_text("\n".join(rows) + "\n")
        self.config["boards"] = {str(n): {"driver": "fake", "disk": "none"} for n in range(10)}
        self.rack = {pdu: dict(outlets) for pdu, outlets in RACK.items()}
        self.write()

    def outlets(self, pdu):
        return json.loads((self.folder / f"{pdu}.json").read_text())["outlets"]

    def set(self, pdu, outlet, state):
        self.pdu(pdu, dict(self.outlets(pdu), **{outlet: state}))

    @property
    def on(self):
        return [(pdu, outlet) for pdu in RACK for outlet, state in self.outlets(pdu).items() if state == "on"]

    def switched(self):
        """What was written down of outlets that are no board's."""
        with self.proxy() as proxy:
            return [event.text for event in proxy.store.events(limit=5000) if event.phase == "switch"]


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path)
    pdus = {pdu: tmp_path / f"{pdu}.json" for pdu in RACK}
    with racked(pdus, tmp_path / "run" / "fake-boots", made.rack):
        yield made
