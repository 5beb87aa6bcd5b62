# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SNMP side of the lab's PDU (v1 and v2c, RFC 1157 and 3416): GET, GETNEXT and SET on the outlets of APC's tables.

It is there where the PDU's settings have `snmp`: {"port": 161, "tables": [names], "object_id": "1.3.6…", "read":
"public", "write": "private"}, all of them optional. The PDU switches its outlets.
"""

from __future__ import annotations

import asyncio
import bisect
import socket

from switched_pdu.terminal import Gone

INTEGER, STRING, NULL, OID, SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
GET, GETNEXT, RESPONSE, SET = 0xA0, 0xA1, 0xA2, 0xA3
NO_SUCH_OBJECT, END_OF_VIEW = 0x80, 0x82
#: RFC 3416, 3: error statuses; in version 1 the last three are noSuchName and badValue.
NO_SUCH_NAME, BAD_VALUE, NO_ACCESS, WRONG_VALUE, NOT_WRITABLE = 2, 3, 6, 10, 17
IN_VERSION_1 = {NO_ACCESS: NO_SUCH_NAME, NOT_WRITABLE: NO_SUCH_NAME, WRONG_VALUE: BAD_VALUE}

SYSTEM = (1, 3, 6, 1, 2, 1, 1)
APC = (1, 3, 6, 1, 4, 1, 318)
#: Verbs of a command value, with the seconds until then.
SIMPLE = {1: ("on", 0), 2: ("off", 0), 3: ("reboot", 0)}
DELAYED = {**SIMPLE, 4: ("on", 5), 5: ("off", 5), 6: ("reboot", 5), 7: ("cancel", 0)}
PLUS = {1: ("on", 0), 3: ("off", 0), 5: ("reboot", 0)}

#: PowerNet-MIB: (names, states, states' numbers, commands, verbs of a command, index before the outlet's number).
TABLES = {
    "MasterSwitch": ((1, 1, 4, 4, 2, 1, 4), (1, 1, 4, 4, 2, 1, 3), (1, 2), (1, 1, 4, 4, 2, 1, 3), SIMPLE, ()),
    "MasterSwitch Plus": ((1, 1, 6, 7, 1, 1, 4), (1, 1, 6, 7, 1, 1, 5), (1, 2), (1, 1, 6, 5, 1, 1, 5), PLUS, (1, 1)),
    "rPDU": (
        (1, 1, 12, 3, 5, 1, 1, 2),
        (1, 1, 12, 3, 5, 1, 1, 4),
        (1, 2),
        (1, 1, 12, 3, 3, 1, 1, 4),
        DELAYED,
        (),
    ),
    "rPDU2": ((1, 1, 26, 9, 2, 3, 1, 3), (1, 1, 26, 9, 2, 3, 1, 5), (2, 1), (1, 1, 26, 9, 2, 4, 1, 5), DELAYED, ()),
}


class BadPacket(Exception):
    """Not a message of SNMP v1 or v2c; a PDU does not answer it."""


# --- BER (X.690), as much as SNMP needs --------------------------------------------------------------------------


def pack(tag, data):
    length = bytes([len(data)]) if len(data) < 128 else bytes([0x82, *len(data).to_bytes(2, "big")])
    return bytes([tag]) + length + data


def pack_integer(number):
    return pack(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def pack_oid(oid):
    data = bytearray([40 * oid[0] + oid[1]])
    for arc in oid[2:]:
        parts = [arc & 127]
        while arc > 127:
            arc >>= 7
            parts.append(arc & 127 | 128)
        data += bytes(reversed(parts))
    return pack(OID, bytes(data))


def unpack(data, *tags):
    """(tag, value, what follows) of the first element; BadPacket where it has none of the tags."""
    if len(data) < 2 or (tags and data[0] not in tags):
        raise BadPacket
    length, start = data[1], 2
    if length & 128:
        start += length & 127
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data):
        raise BadPacket
    return data[0], data[start : start + length], data[start + length :]


def unpack_integer(data):
    tag, value, rest = unpack(data, INTEGER)
    return int.from_bytes(value, "big", signed=True), rest


def unpack_oid(data):
    if not data:
        raise BadPacket
    oid, arc = list(divmod(data[0], 40)), 0
    for byte in data[1:]:
        arc = arc << 7 | byte & 127
        if not byte & 128:
            oid.append(arc)
            arc = 0
    return tuple(oid)


# --- the agent ---------------------------------------------------------------------------------------------------


class Agent(asyncio.DatagramProtocol):
    """Answers each packet from what the outlets are just then."""

    def __init__(self, pdu):
        self._pdu = pdu
        self._answering = set()

    def connection_made(self, transport):
        self._transport = transport

    def datagram_received(self, data, addr):
        task = asyncio.ensure_future(self._answer(data, addr))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, data, address):
        try:
            await self._pdu.fault("snmp")
            self._transport.sendto(await self._reply(data), address)
        except (BadPacket, Gone):
            pass  # an SNMP agent that cannot or may not answer is silent

    async def _reply(self, data):
        _tag, message, _rest = unpack(data, SEQUENCE)
        version, rest = unpack_integer(message)
        _tag, community, rest = unpack(rest, STRING)
        kind, body, _rest = unpack(rest, GET, GETNEXT, SET)
        may_write = community == self._setting("write", "private").encode()
        if version not in (0, 1) or not (may_write or community == self._setting("read", "public").encode()):
            raise BadPacket
        request, body = unpack_integer(body)
        for _status_and_index in range(2):
            _number, body = unpack_integer(body)
        asked = []
        _tag, rest, _after = unpack(body, SEQUENCE)
        while rest:
            _tag, pair, rest = unpack(rest, SEQUENCE)
            _tag, oid, value = unpack(pair, OID)
            asked.append((unpack_oid(oid), value))
        if kind == SET:
            error, index = await self._set(asked, may_write)
            found = asked
        else:
            found, error, index = self._get(asked, following=kind == GETNEXT, exceptions=version == 1)
        if error:
            found = asked
        error = IN_VERSION_1.get(error, error) if version == 0 else error
        pairs = b"".join(pack(SEQUENCE, pack_oid(oid) + value) for oid, value in found)
        numbers = pack_integer(request) + pack_integer(error) + pack_integer(index)
        answer = pack(RESPONSE, numbers + pack(SEQUENCE, pairs))
        return pack(SEQUENCE, pack_integer(version) + pack(STRING, community) + answer)

    def _get(self, asked, following, exceptions):
        """([(OID, value)], error status, its index)."""
        values, found = self._values(), []
        order = sorted(values)
        for number, (oid, _value) in enumerate(asked, 1):
            if following:
                place = bisect.bisect_right(order, oid)
                oid = order[place] if place < len(order) else oid
                there = place < len(order)
            else:
                there = oid in values
            if not there and not exceptions:
                return [], NO_SUCH_NAME, number
            found.append((oid, values[oid] if there else pack(END_OF_VIEW if following else NO_SUCH_OBJECT, b"")))
        return found, 0, 0

    async def _set(self, asked, may_write):
        """(error status, its index): all of it is possible, or nothing is done."""
        commands, todo = self._commands(), []
        for number, (oid, value) in enumerate(asked, 1):
            if not may_write:
                return NO_ACCESS, number
            if oid not in commands:
                return NOT_WRITABLE, number
            outlet, verbs = commands[oid]
            if value[:1] != bytes([INTEGER]) or unpack_integer(value)[0] not in verbs:
                return WRONG_VALUE, number
            todo.append((verbs[unpack_integer(value)[0]], outlet))
        for action, outlet in todo:
            await self._pdu.command(action, [outlet])
        return 0, 0

    def _values(self):
        """{OID: value as BER} of all there is to read."""
        object_id = tuple(map(int, self._setting("object_id", "1.3.6.1.4.1.318.1.3.4.5").split(".")))
        values = {
            (*SYSTEM, 1, 0): pack(STRING, b"APC Switched Rack PDU (MB:v3.9.2 PF:v3.9.2 MN:AP7900)"),
            (*SYSTEM, 2, 0): pack_oid(object_id),
        }
        for names, states, (on, off), commands, _verbs, before in self._tables():
            for outlet in self._pdu.outlets:
                index = (*before, outlet.number)
                state = pack_integer(on if outlet.state == "on" else off)
                # A command that is read tells the state, in the numbers of commands, which are on 1 in all tables.
                values[(*APC, *commands, *index)] = pack_integer(1 if outlet.state == "on" else 2)
                values[(*APC, *states, *index)] = state
                values[(*APC, *names, *index)] = pack(STRING, outlet.name.encode())
        return values

    def _commands(self):
        """{OID: (number of the outlet, its verbs by value)} of all there is to write."""
        return {
            (*APC, *commands, *before, outlet.number): (outlet.number, verbs)
            for _names, _states, _numbers, commands, verbs, before in self._tables()
            for outlet in self._pdu.outlets
        }

    def _tables(self):
        return [TABLES[name] for name in self._setting("tables", TABLES)]

    def _setting(self, name, usual):
        return self._pdu.settings.get("snmp", {}).get(name, usual)


async def listen(pdu):
    """Answer SNMP for a PDU whose settings have it; it does so until the process ends."""
    if "snmp" not in pdu.settings:
        return
    address = pdu.settings["address"]
    place = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    if pdu.settings.get("device"):
        place.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, pdu.settings["device"].encode())
    place.bind((address, pdu.settings["snmp"].get("port", 161)))
    place.setblocking(False)
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: Agent(pdu), sock=place)
    print(f"SNMP listens on {address} port {place.getsockname()[1]}", flush=True)
