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
SKF_LL_OFF = 0xFFE00000  #: linux/filter.h, -0x200000: an offset from here counts from the frame's first byte.
BPF_MAXINS = 4096  #: linux/bpf_common.h
#: Passes UDP to port 67 or 69, and TCP to port 2049 with SYN and without ACK; no later fragments.
REQUESTS = [
    (_LDH, 0, 0, 6),  # flags and fragment offset
    (_JSET, 13, 0, 0x1FFF),  # a later fragment has no ports: drop
    (_LDXMSH, 0, 0, 0),  # X = length of the IP header
    (_LDB, 0, 0, 9),  # protocol
    (_JEQ, 0, 3, UDP),
    (_LDH_X, 0, 0, 2),  # UDP destination port
    (_JEQ, 7, 0, DHCP_PORT),
    (_JEQ, 6, 7, TFTP_PORT),
    (_JEQ, 0, 6, TCP),
    (_LDH_X, 0, 0, 2),  # TCP destination port
    (_JEQ, 0, 4, NFS_PORT),
    (_LDB_X, 0, 0, 13),  # TCP flags
    (_AND, 0, 0, SYN | ACK),
    (_JEQ, 0, 1, SYN),
    (_RET, 0, 0, 0xFFFF),  # pass
    (_RET, 0, 0, 0),  # drop
]
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
    if 2 * len(wanted) + 2 + len(REQUESTS) > BPF_MAXINS:
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
