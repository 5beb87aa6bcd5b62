# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices with outlets in SNMP, on the wire, as their makers' MIBs have them: each a table of its own.

Sources are those of snmp_tables.py. The messages are the lab's (roles/lab/files/switched_pdu/snmp.py).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "roles" / "lab" / "files"))

from switched_pdu import snmp as wire

#: What may be set in each.
COMMUNITY = "rack of jo"
#: RFC 3416, 3.
NO_ACCESS, NOT_WRITABLE = 6, 17
POE, SERVER_TECH, EATON = "1.3.6.1.2.1.105.1.1.1", "1.3.6.1.4.1.1718", "1.3.6.1.4.1.534.6.6.7.6.6.1"
RARITAN, CPS = "1.3.6.1.4.1.13742.6.4.1.2.1", "1.3.6.1.4.1.3808.1.1"
GEIST, GUDE, OWN = "1.3.6.1.4.1.21239.5.2.3.5.1", "1.3.6.1.4.1.28507.58.1.3.1.2.1.3", "1.3.6.1.4.1.32473.1"


class Kind(NamedTuple):
    """A kind of device.

    :param object_id: its sysObjectID.
    :param state: the column of states; `on` and `off` are its numbers, `neither` another one and what that is called.
    :param orders: {(column, value): what it does}.
    :param outlets: {name: index}.
    """

    object_id: str
    state: str
    on: int
    off: int
    neither: tuple
    orders: dict
    outlets: dict


KINDS = {
    "PoE": Kind(
        "1.3.6.1.4.1.9.1.1208",
        f"{POE}.6",
        3,
        1,
        (2, "searching"),
        {(f"{POE}.3", 1): "on", (f"{POE}.3", 2): "off"},
        {"1": "1.1", "2": "1.2", "48": "1.48", "2:2": "2.2"},
    ),
    "Raritan": Kind(
        "1.3.6.1.4.1.13742.6",
        f"{RARITAN}.3",
        7,
        8,
        (-1, "unknown (-1)"),
        {(f"{RARITAN}.2", 1): "on", (f"{RARITAN}.2", 0): "off", (f"{RARITAN}.2", 2): "cycle"},
        {"1": "1.1", "2": "1.2", "2:1": "2.1"},
    ),
    "Sentry4": Kind(
        "1.3.6.1.4.1.1718.4",
        f"{SERVER_TECH}.4.1.8.3.1.1",
        1,
        2,
        (0, "unknown (0)"),
        {(f"{SERVER_TECH}.4.1.8.5.1.2", 1): "on", (f"{SERVER_TECH}.4.1.8.5.1.2", 2): "off"},
        {"1": "1.1.1", "2": "1.1.2", "1.2:1": "1.2.1", "2:1": "2.1.1", "2.2:1": "2.2.1"},
    ),
    "Sentry3": Kind(
        "1.3.6.1.4.1.1718.3",
        f"{SERVER_TECH}.3.2.3.1.5",
        1,
        0,
        (5, "on error"),
        {(f"{SERVER_TECH}.3.2.3.1.11", 1): "on", (f"{SERVER_TECH}.3.2.3.1.11", 2): "off"},
        {"1": "1.1.1", "2": "1.1.2", "1.2:1": "1.2.1"},
    ),
    "Eaton": Kind(
        "1.3.6.1.4.1.534.6.6.7",
        f"{EATON}.2",
        1,
        0,
        (3, "pending on"),
        {(f"{EATON}.4", 0): "on", (f"{EATON}.3", 0): "off", (f"{EATON}.5", 0): "cycle"},
        {"1": "0.1", "2": "0.2", "1:1": "1.1"},
    ),
    "CyberPower ePDU2": Kind(
        "1.3.6.1.4.1.3808.1.1.6",
        f"{CPS}.6.6.1.4.1.5",
        1,
        2,
        (3, "unknown (3)"),
        {(f"{CPS}.6.6.1.5.1.5", 1): "on", (f"{CPS}.6.6.1.5.1.5", 2): "off"},
        {"1": "1", "2": "2", "24": "24"},
    ),
    "CyberPower ePDU": Kind(
        "1.3.6.1.4.1.3808.1.1.3",
        f"{CPS}.3.3.5.1.1.4",
        1,
        2,
        (9, "unknown (9)"),
        {(f"{CPS}.3.3.3.1.1.4", 1): "on", (f"{CPS}.3.3.3.1.1.4", 2): "off"},
        {"1": "1", "2": "2", "8": "8"},
    ),
    "Vertiv": Kind(
        "1.3.6.1.4.1.21239.42.1.53",
        f"{GEIST}.4",
        1,
        2,
        (6, "rebooting"),
        {(f"{GEIST}.6", 2): "on", (f"{GEIST}.6", 4): "off", (f"{GEIST}.6", 1): "cancel"},
        {"1": "1", "2": "2", "36": "36"},
    ),
    "Gude": Kind(
        "1.3.6.1.4.1.28507.58",
        GUDE,
        1,
        0,
        (2, "unknown (2)"),
        {(GUDE, 1): "on", (GUDE, 0): "off"},
        {"1": "1", "2": "2", "12": "12"},
    ),
    "own table": Kind(
        "1.3.6.1.4.1.32473",
        f"{OWN}.7",
        5,
        6,
        (7, "unknown (7)"),
        {(f"{OWN}.8", 2): "on", (f"{OWN}.9", 3): "off"},
        {"0": "4.0", "7": "4.7", "5:7": "5.7"},
    ),
}
#: The table of the last one, as the inventory of its site has it.
TABLE = {
    "state": f".{OWN}.7",
    "is_on": [5],
    "is_off": [6],
    "on": {"column": f"{OWN}.8", "value": 2},
    "off": {"column": f"{OWN}.9", "value": 3},
    "first": 4,
}


def numbers(oid):
    return tuple(map(int, oid.split(".")))


class Agent(wire.Agent):
    """Answers from the states of a Device."""

    def _values(self):
        device = self._pdu
        values = {numbers("1.3.6.1.2.1.1.2.0"): wire.pack_oid(numbers(device.object_id))}
        for index, state in device.states.items():
            for column, _value in device.kind.orders:
                values[numbers(f"{column}.{index}")] = wire.pack_integer(1)
            values[numbers(f"{device.kind.state}.{index}")] = wire.pack_integer(state)
        for oid, value in device.measures.items():
            values[numbers(oid)] = wire.pack_integer(value)
        return values

    def _commands(self):
        commands = {}
        for (column, value), verb in self._pdu.kind.orders.items():
            for index in self._pdu.states:
                _index, verbs = commands.setdefault(numbers(f"{column}.{index}"), (index, {}))
                verbs[value] = verb
        return commands

    async def _set(self, asked, may_write):
        refused = [numbers(index) for index in self._pdu.refused]
        for number, (oid, _value) in enumerate(asked, 1):
            if any(oid[-len(index) :] == index for index in refused):
                return self._pdu.error, number
        return await super()._set(asked, may_write)


class Device:
    """A device of one kind: `states` by index, `stuck` indexes that do not follow, `refused` those that are refused.

    :param object_id: its sysObjectID, where that is another one.
    """

    def __init__(self, name, object_id=None, indexes=None):
        self.kind = KINDS[name]
        self.object_id = object_id or self.kind.object_id
        self.settings = {"snmp": {"object_id": self.object_id, "write": COMMUNITY}}
        self.measures = {}  # {OID: number}
        self.states = dict.fromkeys(indexes or self.kind.outlets.values(), self.kind.off)
        self.stuck, self.refused, self.error, self.silent, self.done = set(), set(), NOT_WRITABLE, False, []
        self._loop, ready = asyncio.new_event_loop(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60)

    def _run(self, ready):
        asyncio.set_event_loop(self._loop)
        end = self._loop.create_datagram_endpoint(lambda: Agent(self), local_addr=("127.0.0.1", 0))
        transport, _agent = self._loop.run_until_complete(end)
        self.port = transport.get_extra_info("sockname")[1]
        ready.set()
        self._loop.run_forever()
        transport.close()

    async def fault(self, _name):
        if self.silent:
            raise wire.Gone

    async def command(self, verb, indexes):
        self.done += [(verb, index) for index in indexes]
        for index in indexes:
            if index not in self.stuck:
                self.states[index] = {"on": self.kind.on, "off": self.kind.off}[verb]

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
