# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""UEFI that boots by HTTP: what the role's DHCP says to it, by packets, and a boot of real firmware (OVMF)."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import dhcp
from ansible_collections.hetero.compute.tests.unit.drivers.boot.net_booted import MAC, OVER, OVMF, missing, proxy

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or bool(missing()), reason=f"needs root and {', '.join(missing()) or 'what is here'}"
)

#: linux/if_tun.h: TUNSETIFF, IFF_TAP and IFF_NO_PI.
TUNSETIFF, TAP_WITHOUT_HEADER = 0x400454CA, 0x1002
#: DHCP's options: the kind of client or server, the boot file, the client's kind of machine (RFC 4578), iPXE's own.
KIND, BOOT_FILE, MACHINE, IPXE = 60, 67, 93, 175
#: Kinds of machines: a PC with BIOS, x86-64 with UEFI by PXE and by HTTP, and ARM's with UEFI by HTTP.
BIOS, UEFI, UEFI_HTTP, ARM_HTTP = 0, 7, 16, 19
PXE_WORDS, HTTP_WORDS = b"PXEClient:Arch:%05d:UNDI:003001", b"HTTPClient:Arch:%05d:UNDI:003001"
LOADER = b"http://10.0.2.254/ipxe.efi"


@pytest.fixture(autouse=True)
def loopback():
    """In place of conftest's network: a board has one of its own."""


def _option(number, value):
    return bytes([number, len(value)]) + value


def _question(words, machine, ipxe):
    """A frame of the board with DHCPDISCOVER, as UEFI sends it (EDK2, HttpBootDhcp4.c)."""
    whole = dhcp.discover(MAC, b"xid1", flags=dhcp.BROADCAST)
    asked = bytes([1, 3, 6, 43, KIND, BOOT_FILE])
    options = _option(dhcp.MESSAGE_TYPE, bytes([dhcp.DISCOVER])) + _option(55, asked)
    options += _option(KIND, words % machine) + _option(MACHINE, struct.pack("!H", machine))
    body = whole[: dhcp.FIXED] + options + (_option(IPXE, b"\x01\x01\x00") if ipxe else b"") + b"\xff"
    body = struct.pack("!4H", dhcp.CLIENT_PORT, dhcp.SERVER_PORT, 8 + len(body), 0) + body
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 7, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
    return b"\xff" * 6 + dhcp.mac_bytes(MAC) + b"\x08\x00" + head + body


def _answer(frame):
    """({option: value}, the fixed part's boot file) of an offer to that question; None for any other frame."""
    said = frame[42:]
    if frame[12:14] != b"\x08\x00" or frame[23:24] != b"\x11" or said[:1] != b"\2" or said[4:8] != b"xid1":
        return None
    options, at = {}, dhcp.FIXED
    while said[at] != 0xFF:
        if said[at]:
            options[said[at]] = said[at + 2 : at + 2 + said[at + 1]]
            at += 1 + said[at + 1]
        at += 1
    return options, said[108:236].rstrip(b"\0")


def offered(words, machine, ipxe=False):
    """(option 60, boot file) that the board is offered which says this of itself, within 20 s."""
    tap = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", b"tap0", TAP_WITHOUT_HEADER))
        until, asked_at = time.monotonic() + 20, 0.0
        while time.monotonic() < until:
            if time.monotonic() > asked_at + 1:
                os.write(tap, _question(words, machine, ipxe))
                asked_at = time.monotonic()
            if select.select([tap], [], [], 0.2)[0]:
                answer = _answer(os.read(tap, 2048))
                if answer:
                    options, file = answer
                    assert options[dhcp.SERVER_ID] == socket.inet_aton("10.0.2.254")
                    return options.get(KIND), options.get(BOOT_FILE, file).rstrip(b"\0")
    finally:
        os.close(tap)
    raise AssertionError("no offer")


def test_uefi_that_boots_by_http_gets_a_url_and_others_what_they_got():
    """Lost: UEFI's boots by HTTP; or those of BIOS, UEFI by PXE and iPXE, to a URL or words that are not theirs."""
    with proxy(megabytes=0.01):
        assert offered(HTTP_WORDS, UEFI_HTTP) == (b"HTTPClient", LOADER)
        assert offered(PXE_WORDS, UEFI)[1] == b"ipxe.efi"
        assert offered(PXE_WORDS, BIOS)[1] == b"undionly.kpxe"
        assert offered(PXE_WORDS, UEFI, ipxe=True)[1] == b"boot.ipxe"
        assert offered(HTTP_WORDS, UEFI_HTTP, ipxe=True) == (None, b"boot.ipxe")
        # ipxe.efi is a program for x86-64
        assert offered(HTTP_WORDS, ARM_HTTP)[0] is None


def test_a_port_of_its_own_is_in_the_url():
    """Lost: UEFI's boots by HTTP, where another web server has port 80."""
    url = "http://10.0.2.254:8080"
    with proxy(megabytes=0.01, tftp_proxy_boot_http_port=8080, _tftp_proxy_http_url=url):
        assert offered(HTTP_WORDS, UEFI_HTTP) == (b"HTTPClient", url.encode() + b"/ipxe.efi")


def test_where_nothing_is_served_by_http_nobody_is_offered_it():
    """Lost: minutes of a boot, to a URL where no server is."""
    with proxy(http=False, megabytes=0.01):
        kind, file = offered(HTTP_WORDS, UEFI_HTTP)
        assert kind is None
        assert b"http" not in file


@pytest.mark.skipif(not OVMF.exists(), reason="needs ovmf")
def test_real_firmware_boots_by_http():
    """Lost: all of it, to one word that firmware takes otherwise than its rules say."""
    by_http_alone = [
        *("-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"),
        *("-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"),
        # the network card's own iPXE would be there in place of the firmware's driver
        *("-global", "virtio-net-pci.romfile="),
    ]
    flash = ["-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={OVMF}"]
    with proxy(megabytes=0.2) as served:
        seen = served.boot(*flash, *by_http_alone, seconds=300)
    kinds = list(dict.fromkeys((kind, name) for kind, name, _at in seen))
    assert kinds == [
        ("firmware", ""),
        ("http", "ipxe.efi"),
        ("tftp", "boot.ipxe"),
        *(("http", name) for name in ("01-00-1a-ca-00-57-90.ipxe", "vmlinux_0", "initrd_0", OVER)),
    ]
