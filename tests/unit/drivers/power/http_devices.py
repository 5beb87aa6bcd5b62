# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices with an HTTP interface, on the wire, as their vendors' pages have them; each checks its credential.

Sources are those of http_apis.py. A Gen2 Shelly and a Digital Loggers switch ask for a digest (RFC 7616).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

USER, PASSWORD = "admin", "plug ä-1957"
#: Home Assistant gives out such a token.
TOKEN = "eyJ0eXAi.JKV1QiLCJh-bGc_iOiJ"
#: Algorithm of the digest that a kind of device asks for.
DIGESTS = {"shelly2": ("SHA-256", hashlib.sha256), "dli": ("MD5", hashlib.md5)}
NONCE = "dcd98b7102dd2f0e8b11d0f600bfb0c0"


class Device(ThreadingHTTPServer):
    """A device of one kind: `outlets` by name, `stuck` those that do not follow, and how it misbehaves.

    :param faults: {name: value}: `status` and `body` are answered in place of what is right, `after` seconds pass
        before an answer, `trickle` sends a byte a time for ever, `redirect` leads elsewhere; `challenge` is how a
        digest is asked for.
    """

    daemon_threads = True

    def __init__(self, kind, outlets, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.meters = {}  # outlet: (watts, counter), in the device's own units
        self.kind, self.outlets, self.stuck, self.faults, self.asked = kind, dict(outlets), set(), {}, []
        self.password = TOKEN if kind == "home_assistant" else PASSWORD
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def port(self):
        return self.server_address[1]

    def switch(self, outlet, is_on):
        if outlet not in self.stuck:
            self.outlets[outlet] = is_on

    def close(self):
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request, client_address):
        """Whoever hung up, or did not trust the certificate, is no error of a test."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer("")

    def do_POST(self):
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def do_PUT(self):
        self.do_POST()

    def _answer(self, body):
        device, parts = self.server, urlsplit(self.path)
        device.asked.append((self.command, self.path, body))
        if not self._is_known(parse_qs(parts.query)):
            return
        faults = device.faults
        time.sleep(faults.get("after", 0))
        if "redirect" in faults:
            self._say(302, "", Location=faults["redirect"])
        elif "status" in faults or "body" in faults:
            self._say(faults.get("status", 200), faults.get("body", "out of order"))
        elif "trickle" in faults:
            self._trickle()
        else:
            said = getattr(self, f"_{device.kind}")(unquote(parts.path), parse_qs(parts.query), body)
            self._say(404, "no such thing") if said is None else self._say(200, json.dumps(said))

    def _say(self, status, text, **headers):
        text = text.encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text)

    def _trickle(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while True:
            self.wfile.write(b" ")
            time.sleep(0.05)

    # ---- who asks

    def _is_known(self, query):
        kind, given = self.server.kind, self.headers.get("Authorization", "")
        if kind == "tasmota":
            if (query.get("user"), query.get("password")) != ([USER], [PASSWORD]):
                self._say(401, json.dumps({"WARNING": "Need user=<username>&password=<password>"}))
                return False
        elif kind == "home_assistant":
            if given != f"Bearer {TOKEN}":
                self._say(401, "401: Unauthorized")
                return False
        elif kind in DIGESTS:
            return self._proves(given, *DIGESTS[kind])
        elif given != f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}":
            self._say(401, "who are you", WWW_Authenticate='Basic realm="plug"')
            return False
        return True

    def _proves(self, given, algorithm, digest):
        """RFC 7616, 3.4."""
        fields = dict(re.findall(r'(\w+)="?([^",]*)"?', given.partition(" ")[2]))

        def hashed(*words):
            return digest(":".join(words).encode()).hexdigest()

        if fields.get("nonce") == NONCE:
            secret, what = hashed(USER, "plug", PASSWORD), hashed(self.command, self.path)
            if fields.get("response") == hashed(secret, NONCE, fields["nc"], fields["cnonce"], fields["qop"], what):
                return True
        challenge = f'Digest qop="auth", realm="plug", nonce="{NONCE}", algorithm={algorithm}'
        self._say(401, "", WWW_Authenticate=self.server.faults.get("challenge", challenge))
        return False

    # ---- what each kind answers; None where there is no such thing

    def _shelly1(self, path, query, _body):
        if path == "/status":
            meters = [
                {"power": watts, "is_valid": True, "total": total} for watts, total in self.server.meters.values()
            ]
            return {"relays": [{"ison": is_on} for is_on in self.server.outlets.values()], "meters": meters}
        outlet = path[len("/relay/") :]
        if outlet not in self.server.outlets:
            return None
        if "turn" in query:
            self.server.switch(outlet, query["turn"] == ["on"])
        return {"ison": self.server.outlets[outlet], "has_timer": False, "source": "http"}

    def _shelly2(self, path, query, _body):
        (outlet,) = query.get("id", ["none"])
        if outlet not in self.server.outlets:
            return None
        before = self.server.outlets[outlet]
        if path == "/rpc/Switch.Set":
            self.server.switch(outlet, query["on"] == ["true"])
            return {"was_on": before}
        watts, total = self.server.meters.get(outlet, (8.9, None))
        counter = {"aenergy": {"total": total, "by_minute": [0.1, 0.2, 0.3]}} if total is not None else {}
        return {"id": int(outlet), "source": "http", "output": before, "apower": watts, **counter}

    def _tasmota(self, path, query, _body):
        if query["cmnd"] == ["Status 0"]:
            return self._tasmota_status()
        name, _blank, order = query["cmnd"][0].partition(" ")
        outlet = name[len("Power") :]
        if path != "/cm" or outlet not in self.server.outlets:
            return {"Command": "Error"}
        if order:
            self.server.switch(outlet, order == "On")
        key = "POWER" if len(self.server.outlets) == 1 else f"POWER{outlet}"
        return {key: "ON" if self.server.outlets[outlet] else "OFF"}

    def _tasmota_status(self):
        states = {outlet: "ON" if is_on else "OFF" for outlet, is_on in self.server.outlets.items()}
        one = len(states) == 1
        sts = {"POWER": states["1"]} if one else {f"POWER{outlet}": state for outlet, state in states.items()}
        watts, totals = zip(*self.server.meters.values()) if self.server.meters else ((), ())
        lone = len(watts) == 1
        energy = {"Power": watts[0] if lone else watts, "Total": totals[0] if lone else totals, "Today": 0.1}
        sns = {"Time": "2026-01-01T00:00:00", **({"ENERGY": energy} if watts else {})}
        return {"Status": {"Module": 0}, "StatusSNS": sns, "StatusSTS": sts}

    def _home_assistant(self, path, _query, body):
        if self.command == "POST":
            outlet = json.loads(body)["entity_id"]
            if outlet in self.server.outlets:
                self.server.switch(outlet, path.endswith("/turn_on"))
            return []
        outlet = path[len("/api/states/") :]
        if outlet not in self.server.outlets:
            return None
        return {"entity_id": outlet, "state": "on" if self.server.outlets[outlet] else "off", "attributes": {}}

    def _netio(self, _path, _query, body):
        for order in json.loads(body)["Outputs"] if self.command == "POST" else []:
            self.server.switch(str(order["ID"]), order["Action"] == 1)
        outputs = [
            {"ID": int(outlet), "Name": f"output_{outlet}", "State": int(is_on), "Action": 6, **self._load(outlet)}
            for outlet, is_on in reversed(self.server.outlets.items())
        ]
        return {"Agent": {"Model": "NETIO 4All", "NumOutputs": len(outputs)}, "Outputs": outputs}

    def _load(self, outlet):
        return dict(zip(("Load", "Energy"), self.server.meters.get(outlet, ())))

    def _dli(self, path, _query, body):
        found = re.fullmatch(r"/restapi/relay/outlets/(\d+)/(state|physical_state)/", path)
        outlet = str(int(found[1]) + 1) if found else ""
        if outlet not in self.server.outlets or self.headers.get("X-CSRF") != "x":
            return None
        if self.command == "PUT":
            self.server.switch(outlet, body == "value=true")
        return self.server.outlets[outlet]

    def _own(self, path, _query, body):
        outlet = path.rpartition("/")[2]
        if outlet not in self.server.outlets:
            return None
        if self.command == "PUT":
            self.server.switch(outlet, json.loads(body)["power"] == "up")
        return [{"plug": {"power": "up" if self.server.outlets[outlet] else "down"}}]

    def log_message(self, *_words):
        """Nothing of it belongs into the tests' output."""


def certificate(folder, name="127.0.0.1"):
    """(certificate, key) files of a device that signed its certificate itself."""
    files = folder / "device.pem", folder / "device.key"
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{name}"]
    subprocess.run(
        ["openssl", "req", *words, "-out", files[0], "-keyout", files[1]], check=True, stderr=subprocess.DEVNULL
    )
    return files
