# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC that speaks Redfish, on the wire: right as DSP0266 has it, or as a test says that it misbehaves."""

from __future__ import annotations

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USER, PASSWORD = "operator", "te'st-1957 ä"
SYSTEMS = "/redfish/v1/Systems"
SESSIONS = "/redfish/v1/SessionService/Sessions"
CHASSIS = "/redfish/v1/Chassis"
RESET = "#ComputerSystem.Reset"
#: Reset type → PowerState.
OBEYED = {"On": "On", "ForceOn": "On", "ForceOff": "Off", "GracefulShutdown": "Off"}


class RedfishBmc(ThreadingHTTPServer):
    """A BMC and its systems' power.

    :param systems: {Id: PowerState}.
    :param certificate: (certificate, key) files for TLS.
    """

    daemon_threads = True

    def __init__(self, systems=None, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.power = dict(systems or {"Self": "Off"})
        self.sessions, self.opened, self.asked, self.resets, self.boots = {}, 0, [], [], []
        self.times = []  # when it was asked
        self.allowed = list(OBEYED)
        self.transition = 0.0  # seconds that a system is on its way
        self.most = 8  # sessions
        self.no_sessions = False
        self.after = 0.0  # seconds before each answer
        self.faults = {}  # (method, end of the path) → function of this BMC that returns (status, text) or None
        self.chassis = {}  # {Id of a system: Ids of its chassis}
        self.metrics, self.consumed = {}, {}  # {Id of a chassis: its EnvironmentMetrics, its PowerConsumedWatts}
        self.links = ""  # what stands before each path that it tells
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def settings(self):
        return {"driver": "redfish", "host": "127.0.0.1", "port": self.server_address[1], "tls": False}

    @property
    def secrets(self):
        return {"username": USER, "password": PASSWORD}

    def close(self):
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request, client_address):
        """Whoever hung up, or did not trust the certificate, is no error of a test."""

    def system(self, name):
        """The resource of a system."""
        path = f"{SYSTEMS}/{name}"
        reset = {"target": f"{self.links}{path}/Actions/ComputerSystem.Reset"}
        if self.allowed is not None:
            reset["ResetType@Redfish.AllowableValues"] = self.allowed
        state = self.power[name]
        if isinstance(state, tuple):  # on its way: (state at the end, when that is)
            end, when = state
            state = f"Powering{end}"
            if time.monotonic() >= when:
                state = self.power[name] = end
        boot = {"BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd"]}
        told = {"@odata.id": path, "Id": name, "PowerState": state, "Boot": boot, "Actions": {RESET: reset}}
        ids = self.chassis.get(name)
        return dict(told, Links={"Chassis": [self.link(CHASSIS, one) for one in ids]}) if ids is not None else told

    def link(self, *parts):
        return {"@odata.id": f"{self.links}{'/'.join(parts)}"}

    def chassis_of(self, path):
        """The resource of a chassis, or what it links to; None where there is none."""
        name, _slash, part = path[len(CHASSIS) + 1 :].partition("/")
        systems = [self.link(SYSTEMS, system) for system, ids in self.chassis.items() if name in ids]
        if not part:
            told = {"Id": name, "Links": {"ComputerSystems": systems}}
            for key, there in (("EnvironmentMetrics", self.metrics), ("Power", self.consumed)):
                told.update({key: self.link(CHASSIS, name, key)} if name in there else {})
            return told if systems else None
        if part == "Power":
            return {"PowerControl": [{"MemberId": "0", "PowerConsumedWatts": self.consumed[name]}]}
        return self.metrics[name]

    def reset(self, name, kind):
        self.resets.append((name, kind))
        state = self.system(name)["PowerState"]
        if state.startswith("Powering"):
            return 409, error("The system is in transition", "Base.1.8.ResourceInUse")
        if state != OBEYED[kind]:
            self.power[name] = (OBEYED[kind], time.monotonic() + self.transition)
        return 204, ""


def error(message, kind="Base.1.8.GeneralError"):
    return {
        "error": {"code": kind, "message": "see", "@Message.ExtendedInfo": [{"MessageId": kind, "Message": message}]}
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        bmc, body = self.server, self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        bmc.asked.append((self.command, self.path, body))
        bmc.times.append(time.monotonic())
        time.sleep(bmc.after)
        for (method, end), fault in bmc.faults.items():
            said = fault(bmc) if method == self.command and self.path.endswith(end) else None
            if said is not None:
                return self._say(*said)
        if self.path == "/redfish/v1/":
            sessions = {} if bmc.no_sessions else {"Sessions": {"@odata.id": f"{bmc.links}{SESSIONS}"}}
            systems = {"@odata.id": f"{bmc.links}{SYSTEMS}"}
            return self._say(200, {"Id": "Root", "RedfishVersion": "1.6.0", "Systems": systems, "Links": sessions})
        if (self.command, self.path) == ("POST", SESSIONS):
            return self._open(json.loads(body))
        if self.headers.get("X-Auth-Token") not in bmc.sessions and not (bmc.no_sessions and self._basic()):
            return self._say(401, error("Invalid session"))
        return self._say(*self._told(body))

    def do_POST(self):
        self.do_GET()

    def do_PATCH(self):
        self.do_GET()

    def do_DELETE(self):
        self.do_GET()

    def _basic(self):
        return self.headers.get("Authorization", "").startswith("Basic ")

    def _open(self, given):
        bmc = self.server
        bmc.opened += 1
        if bmc.no_sessions:
            return self._say(405, "no such method")
        if (given["UserName"], given["Password"]) != (USER, PASSWORD):
            return self._say(401, error("The user name or password is wrong"))
        if len(bmc.sessions) >= bmc.most:
            return self._say(503, error("The maximum number of sessions is in use", "Base.1.8.SessionLimitExceeded"))
        number = str(bmc.opened)
        bmc.sessions[f"token-{number}"] = number
        where = f"{bmc.links}{SESSIONS}/{number}"
        return self._say(201, {"@odata.id": where}, Location=where, **{"X-Auth-Token": f"token-{number}"})

    def _told(self, body):
        bmc, path = self.server, self.path
        if self.command == "DELETE" and path.startswith(SESSIONS):
            del bmc.sessions[self.headers["X-Auth-Token"]]
            return 204, ""
        if path == SYSTEMS:
            return 200, {"Members": [{"@odata.id": f"{bmc.links}{SYSTEMS}/{name}"} for name in bmc.power]}
        if path.startswith(CHASSIS) and self.command == "GET" and bmc.chassis_of(path):
            return 200, bmc.chassis_of(path)
        name, _slash, action = path[len(SYSTEMS) + 1 :].partition("/")
        if not path.startswith(SYSTEMS) or name not in bmc.power:
            return 404, error("no such thing")
        if self.command == "GET":
            return 200, bmc.system(name)
        if self.command == "PATCH":
            bmc.boots.append((name, json.loads(body)["Boot"]))
            return 204, ""
        return bmc.reset(name, json.loads(body)["ResetType"])

    def _say(self, status, text, **headers):
        data = (text if isinstance(text, str) else json.dumps(text)).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_words):
        """Nothing of it belongs into the tests' output."""
