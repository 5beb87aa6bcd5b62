# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A NetBox that is played: lists of objects in pages over real HTTP, for who has the token."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

TOKEN = "0123456789abcdef0123456789abcdef01234567"


def device(number, name, address, maker="Dell", model="R630", **custom):
    return {
        "id": number,
        "name": name,
        "device_type": {"manufacturer": {"name": maker}, "model": model},
        "primary_ip4": {"id": number, "address": f"{address}/24"} if address else None,
        "custom_fields": custom or {},
    }


def interface(number, of, name, mac, mgmt_only=False):
    return {"id": number, "device": {"id": of}, "name": name, "mac_address": mac, "mgmt_only": mgmt_only}


def port(number, of, *ends):
    """A power port that is cabled to outlets: (PDU's id, its name, the outlet's name) of each."""
    peers = [{"id": 900 + number, "device": {"id": pdu, "name": name}, "name": outlet} for pdu, name, outlet in ends]
    kind = "dcim.poweroutlet" if peers else None
    return {
        "id": number,
        "device": {"id": of},
        "name": "PSU1",
        "connected_endpoints": peers,
        "connected_endpoints_type": kind,
    }


KNOWN = dict(memory_mb=8192, vcpus=4, local_gb=0, arch="x86_64")


def rack():
    """Three boards and their PDU."""
    return {
        "dcim/devices": [
            device(1, "jackie", "10.0.2.2", **KNOWN),
            device(2, "bob", "10.0.2.3", **KNOWN),
            device(3, None, None),
            device(9, "pdu-a", "10.0.100.1", "APC", "AP7921"),
        ],
        "dcim/interfaces": [
            interface(11, 1, "eth0", "02:00:00:00:04:01"),
            interface(12, 1, "ipmi", "02:00:00:00:04:99", mgmt_only=True),
            interface(13, 2, "eth0", "02:00:00:00:04:02"),
            interface(14, 2, "eth1", "02:00:00:00:04:03"),
            interface(15, 3, "eth0", None),
        ],
        "dcim/power-ports": [
            port(21, 1, (9, "pdu-a", "Outlet 8")),
            port(22, 2, (9, "pdu-a", "left")),
            port(23, 3, (9, "pdu-a", "1"), (9, "pdu-a", "2")),
        ],
    }


@contextmanager
def netbox(lists, **faults):
    """Serve these lists, and yield (address, what was asked).

    :param faults: most (objects in a page), cut (an answer's bytes that come), lost (objects that no page has), hides
        (the address that `next` names), redirects (where all are sent).
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            if "redirects" in faults:
                self.send_response(302)
                self.send_header("Location", faults["redirects"])
                self.end_headers()
                return
            if self.headers.get("Authorization") != f"Token {TOKEN}":
                self.answer(403, {"detail": "Invalid token"})
                return
            url = urlsplit(self.path)
            found = lists.get(url.path.partition("/api/")[2].strip("/"))
            if found is None:
                self.answer(404, {"detail": "Not found."})
                return
            self.answer(200, self.page(found, parse_qsl(url.query)))

        def page(self, found, query):
            given = dict(query)
            for key, of in (("id", lambda one: one["id"]), ("device_id", lambda one: one["device"]["id"])):
                wanted = {value for name, value in query if name == key}
                found = [one for one in found if not wanted or str(of(one)) in wanted]
            if "role" in given:
                found = [one for one in found if one["id"] < 9]
            start, most = int(given["offset"]), min(int(given["limit"]), faults.get("most", 50))
            count, found = len(found), found[: len(found) - faults.get("lost", 0)]
            following = start + most < count
            to = faults.get("hides", "http://127.0.0.1:1/api/")
            return {"count": count, "next": to if following else None, "results": found[start : start + most]}

        def answer(self, status, value):
            said = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(said[: faults.get("cut", len(said))])

        def log_message(self, *args):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
