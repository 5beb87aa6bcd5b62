# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packet sockets to which the kernel passes only wanted packets. A filter in Python would need a whole core while roots
are served at full speed, and would lose packets.

The sockets get frames before the packet filter drops them and, unless they are bound to one interface, those of all.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from typing import Iterable, List, Tuple

#: Instructions of classic BPF: code, instructions to skip if true and if false, operand.
Program = List[Tuple[int, int, int, int]]

ETH_P_IP, ETH_P_ARP = 0x0800, 0x0806
SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33  # asm-generic/socket.h
DHCP_PORT, TFTP_PORT, NFS_PORT = 67, 69, 2049
UDP, TCP = 17, 6
SYN, ACK = 0x02, 0x10
#: asm-generic/socket.h, linux/if_packet.h: the numbers of packets that came, and that were lost, since the last
#: reading.
SOL_PACKET, PACKET_STATISTICS = 263, 6
#: Bytes for packets that come while the reader is busy; a request takes less than 1 KB of it.
ROOM = 4 << 20
STATISTICS = struct.Struct("II")
LONGEST = 1 << 16  #: no IP packet is longer

# Classic BPF (linux/filter.h), as `tcpdump -d` prints it, for packets that begin at the IP header (SOCK_DGRAM). Jumps
# count instructions to skip.
_LD, _LDB, _LDH, _LDXMSH, _LDH_X, _LDB_X = 0x20, 0x30, 0x28, 0xB1, 0x48, 0x50
_AND, _JA, _JEQ, _JSET, _RET = 0x54, 0x05, 0x15, 0x45, 0x06
_RSH, _ADD_X, _TAX, _JGT_X = 0x74, 0x0C, 0x07, 0x2D
MORE_FRAGMENTS = 0x2000  #: in the half word with the fragment offset (RFC 791)
SKF_LL_OFF = 0xFFE00000  #: linux/filter.h, -0x200000: an offset from here counts from the frame's first byte.
BPF_MAXINS = 4096  #: linux/bpf_common.h
#: Places to which an instruction jumps, in place of a number: the two with which `_whole` ends a program.
_PASS, _DROP = -1, -2


def _whole(program: Program) -> Program:
    """Return a program with its two ends, and with numbers in place of jumps to them."""
    passes, drops = len(program), len(program) + 1

    def skip(at: int, to: int) -> int:
        return {_PASS: passes - at - 1, _DROP: drops - at - 1}.get(to, to)

    lines = enumerate(program)
    jumps = [(code, skip(at, true), skip(at, false), operand) for at, (code, true, false, operand) in lines]
    return [*jumps, (_RET, 0, 0, 0xFFFF), (_RET, 0, 0, 0)]


def requests(http_port: int = 0) -> Program:
    """Return a program that passes boards' requests, and no later fragments: UDP to port 67 or 69, TCP to port 2049
    with SYN and without ACK, and TCP to `http_port` that has a payload.

    What a board sends there is requests; its acknowledgements for a kernel of 30 MB are not passed.

    :param http_port: 0 for none.
    """
    program: Program = [
        (_LDH, 0, 0, 6),  # flags and fragment offset
        (_JSET, _DROP, 0, 0x1FFF),  # a later fragment has no ports
        (_LDXMSH, 0, 0, 0),  # X = length of the IP header
        (_LDB, 0, 0, 9),  # protocol
        (_JEQ, 0, 3, UDP),
        (_LDH_X, 0, 0, 2),  # UDP destination port
        (_JEQ, _PASS, 0, DHCP_PORT),
        (_JEQ, _PASS, _DROP, TFTP_PORT),
        (_JEQ, 0, _DROP, TCP),
        (_LDH_X, 0, 0, 2),  # TCP destination port
        (_JEQ, 0, 3 if http_port else _DROP, NFS_PORT),
        (_LDB_X, 0, 0, 13),  # TCP flags
        (_AND, 0, 0, SYN | ACK),
        (_JEQ, _PASS, _DROP, SYN),
    ]
    if http_port:
        program += [
            (_JEQ, 0, _DROP, http_port),
            (_LDH, 0, 0, 6),
            (_JSET, _PASS, 0, MORE_FRAGMENTS),  # a packet's first part may end before TCP's header does
            (_LDB_X, 0, 0, 12),  # the upper half is the length of TCP's header in words
            (_AND, 0, 0, 0xF0),
            (_RSH, 0, 0, 2),
            (_ADD_X, 0, 0, 0),
            (_TAX, 0, 0, 0),  # X = length of both headers
            (_LDH, 0, 0, 2),  # length of the packet
            (_JGT_X, _PASS, _DROP, 0),
        ]
    return _whole(program)


#: The filter where boards boot by TFTP alone.
REQUESTS = requests()
#: Passes UDP to or from port 67; no later fragments.
DHCP = [
    (_LDH, 0, 0, 6),
    (_JSET, 8, 0, 0x1FFF),
    (_LDXMSH, 0, 0, 0),
    (_LDB, 0, 0, 9),
    (_JEQ, 0, 5, UDP),
    (_LDH_X, 0, 0, 0),
    (_JEQ, 2, 0, DHCP_PORT),
    (_LDH_X, 0, 0, 2),
    (_JEQ, 0, 1, DHCP_PORT),
    (_RET, 0, 0, 0xFFFF),
    (_RET, 0, 0, 0),
]


def from_macs(macs: Iterable[str]) -> Program:
    """Return instructions before a filter that drop frames of other senders; none if there are too many MACs to fit."""
    wanted = sorted({int(mac.replace(":", "")[4:], 16) for mac in macs})
    if 2 * len(wanted) + 2 + len(requests(http_port=1)) > BPF_MAXINS:
        return []
    program = [(_LD, 0, 0, SKF_LL_OFF + 8)]  # the last four bytes of the sender's MAC
    for left, mac in zip(range(len(wanted), 0, -1), wanted):
        program += [(_JEQ, 0, 1, mac), (_JA, 0, 0, 2 * left - 1)]
    return [*program, (_RET, 0, 0, 0)]


def attach_filter(sock: socket.socket, program: Program) -> None:
    """Let only packets that the program passes reach `sock`."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))


def ear(protocol: int, program: Program, interface: str) -> socket.socket:
    """Return a packet socket that gets only what the program passes.

    :param protocol: ETH_P_IP or ETH_P_ARP.
    :param interface: the only interface that it listens on; "" for all.
    :raises OSError: there is no such interface, or the process is not root.
    """
    # Without a protocol it gets nothing before it is bound.
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0 if interface else socket.htons(protocol))
    try:
        if program:
            attach_filter(sock, program)
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        if interface:
            sock.bind((interface, protocol))
    except OSError:
        sock.close()
        raise
    return sock


def lost(sock: socket.socket) -> bool:
    """Return whether this socket lost packets since the last call."""
    counts = sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, STATISTICS.size)
    return STATISTICS.unpack(counts)[1] > 0
