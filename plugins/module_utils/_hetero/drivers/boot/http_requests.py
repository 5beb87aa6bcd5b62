# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file a board asks for by HTTP, read from one segment of TCP.

Firmware sends a request as one segment. A client that cuts one in pieces, or puts two into one segment, may get any
file without its name being seen, so such a segment counts as a request for every file. So does one whose name the
server (role tftp_proxy, nginx.conf.j2) would read as another one's.
"""

from __future__ import annotations

import re

#: The name of a file if a request cannot be read. No firmware sends requests in fragments, and packets come faster than
#: they are read only if somebody floods the network.
UNKNOWN_NAME = "?"
#: A request of HTTP/1 (RFC 9112) for a file: its target, then header lines.
REQUEST = re.compile(rb"(?:GET|HEAD) ([^ \r\n]*) HTTP/1\.[01]\r?\n")
#: An empty line, with which a request ends.
END = re.compile(rb"\n\r?\n")
#: Letters of targets that mean themselves. nginx decodes %41, and cuts a target off at ? and #.
PLAIN = re.compile(rb"[-A-Za-z0-9._/:+]*")


def asked_name(segment: bytes) -> str:
    """Return the file's name without folders; UNKNOWN_NAME where it cannot be told, "" where nothing is asked for.

    :param segment: from TCP's header on.
    """
    payload = segment[(segment[12] >> 4) * 4 :] if len(segment) > 12 else b""
    if not payload:
        return ""
    ends = [end.end() for end in END.finditer(payload)]
    asked = REQUEST.match(payload)
    if asked is None or ends != [len(payload)] or not PLAIN.fullmatch(asked[1]):
        return UNKNOWN_NAME
    return asked[1].decode("ascii").rsplit("/", 1)[-1]
