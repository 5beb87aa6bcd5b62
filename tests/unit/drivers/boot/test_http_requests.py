# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose name is read from a request by HTTP, and which segments count as a request for every file."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import packet_sockets, phases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.http_requests import (
    UNKNOWN_NAME,
    asked_name,
)

#: TCP's header: 20 bytes, and with options 32.
HEADER = bytes(12) + b"\x50" + bytes(7)
LONGER = bytes(12) + b"\x80" + bytes(19)
IPXE = b"GET /%s HTTP/1.1\r\nConnection: keep-alive\r\nUser-Agent: iPXE/1.0.0+\r\nHost: 10.0.2.254\r\n\r\n"


@pytest.mark.parametrize("header", [HEADER, LONGER])
@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (IPXE % b"vmlinux_0", "vmlinux_0"),
        (IPXE % b"tftpboot/01-00-1a-ca-00-57-90.ipxe", "01-00-1a-ca-00-57-90.ipxe"),
        (b"GET http://10.0.2.254/initrd_0 HTTP/1.0\r\n\r\n", "initrd_0"),
        (b"HEAD /ipxe.efi HTTP/1.1\r\nHost: x\r\n\r\n", "ipxe.efi"),
        (b"GET /initrd_0 HTTP/1.1\n\n", "initrd_0"),
        (b"", ""),
    ],
)
def test_a_request_in_one_segment_names_its_file(header, request_, name):
    """Lost: phases of a boot by HTTP, and with them who is to blame where one stalls."""
    assert asked_name(header + request_) == name


@pytest.mark.parametrize(
    "payload",
    [
        b"GET /ini",
        b"trd_0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /initrd_0 HTTP/1.1\r\nHost: x\r\n",
        b"\r\n",
        b"\r\n" + IPXE % b"initrd_0",
        IPXE % b"other" + IPXE % b"initrd_0",
        b"GET /other HTTP/1.1\n\nGET /initrd_0 HTTP/1.1\r\n\r\n",
        b"GET /other HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
        IPXE % b"%69nitrd_0",
        IPXE % b"initrd_0?x",
        IPXE % b"initrd_0#x",
        b"GET  /initrd_0 HTTP/1.1\r\n\r\n",
        b"GET /initrd_0\r\n\r\n",
        b"GET /initrd_0\r\n",
        b"POST /initrd_0 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
    ],
)
def test_what_hides_its_name_counts_as_a_request_for_every_file(payload):
    """Lost: the proof of a wipe, to who fetches the RAM system's key by a request that is cut in pieces."""
    assert asked_name(HEADER + payload) == UNKNOWN_NAME


def test_a_header_that_is_cut_off_asks_for_nothing():
    """Lost: the watch of all boards, to one packet that ends too soon."""
    for length in range(len(HEADER)):
        assert asked_name(HEADER[:length]) == ""


def test_programs_end_where_they_say():
    """Lost: all phases, where a filter of the kernel lets nothing through, or everything."""
    for port in (0, 80):
        program = packet_sockets.requests(port)
        passes = len(program) - 2
        assert [code for code, *_rest in program[passes:]] == [6, 6]
        for at, (code, true, false, _operand) in enumerate(program[:passes]):
            assert code & 0x07 == 0x05 or true == false == 0
            assert at + 1 + max(true, false) <= passes + 1
    assert packet_sockets.requests() == packet_sockets.REQUESTS
    assert phases.Wire().http_port == 0
