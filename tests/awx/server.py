# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An AWX as the modules of awx.awx see it: objects by REST, kept in memory; it refuses what AWX refuses (rules.py)."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from ansible_collections.hetero.compute.tests.awx.rules import credential_type_problems, playbooks, survey_problems

TOKEN = "a-token"
SECRET = "$encrypted$"
#: What AWX fills in where nothing is said, as far as the modules compare it.
DEFAULTS = {
    "projects": {"scm_revision": "abc", "scm_branch": ""},
    "job_templates": {"extra_vars": "", "survey_spec": {}, "survey_enabled": False},
}


class Server:
    """`objects`: kind → list of objects; `writes`: requests that were not GET."""

    def __init__(self, project):
        self.objects, self.links, self.writes, self.lock = {}, {}, [], threading.Lock()
        self.offered = playbooks(project)
        self.make("organizations", {"name": "Default"})
        for team in ("people", "operators"):
            self.make("teams", {"name": team})
        server = self
        handler = type("Handler", (_Handler,), {"awx": server})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def make(self, kind, fields):
        number = sum(map(len, self.objects.values())) + 1
        url = f"/api/v2/{kind}/{number}/"
        related = {"survey_spec": f"{url}survey_spec/"} if kind == "job_templates" else {}
        shown = {"object_roles": {"execute_role": {"id": number}}} if kind == "job_templates" else {}
        for owner in self.objects.get("organizations", []):
            if owner["id"] == fields.get("organization"):
                shown["organization"] = {"id": owner["id"], "name": owner["name"]}
        made = {**DEFAULTS.get(kind, {}), **fields, "id": number, "url": url, "type": kind[:-1]}
        made.update(related=related, summary_fields=shown)
        self.objects.setdefault(kind, []).append(made)
        return made

    def named(self, kind):
        return {made["name"]: made for made in self.objects.get(kind, [])}

    def templates(self):
        """Job templates by name, with their extra_vars as a dict, as launch() takes them."""
        found = self.named("job_templates")
        return {name: {**made, "extra_vars": json.loads(made["extra_vars"])} for name, made in found.items()}

    def credentials_of(self, template):
        held = self.links.get(f"/api/v2/job_templates/{template['id']}/credentials/", [])
        return sorted(made["name"] for made in self.objects["credentials"] if made["id"] in held)

    def held_by(self, team):
        """How many roles a team has."""
        number = self.named("teams")[team]["id"]
        return sum(number in held for path, held in self.links.items() if path.endswith("/teams/"))

    def answer(self, method, path, query, data):
        """(status, body) of a request."""
        if method != "GET":
            self.writes.append((method, path, data))
        kind, number, sub = re.fullmatch(r"/api/v2/(\w+)/(?:(\d+)/(?:(\w+)/)?)?", path).groups()
        if number is None:
            return self._of_all(method, kind, query, data)
        if kind == "roles":
            return self._links(method, path, data)
        (made,) = (entry for entry in self.objects[kind] if entry["id"] == int(number))
        if sub == "survey_spec":
            return self._survey(method, made, data)
        if sub:
            return self._links(method, path, data)
        if method == "PATCH":
            wrong = self.problems(kind, {**made, **data})
            if wrong:
                return 400, {"detail": wrong}
            made.update(data)
        return 200, self._shown(kind, made)

    def problems(self, kind, fields):
        if kind == "credential_types":
            return credential_type_problems(fields["inputs"], fields["injectors"])
        if kind == "job_templates" and fields["playbook"] not in self.offered:
            return [f"playbook {fields['playbook']} is not in the project: {self.offered}"]
        return []

    def _of_all(self, method, kind, query, data):
        if method == "POST":
            wrong = self.problems(kind, data)
            return (400, {"detail": wrong}) if wrong else (201, self._shown(kind, self.make(kind, data)))
        found = [
            made
            for made in self.objects.get(kind, [])
            if all(str(made.get(name)) == value for name, (value,) in query.items())
        ]
        results = [self._shown(kind, made) for made in found]
        return 200, {"count": len(found), "next": None, "results": results}

    def _shown(self, kind, made):
        if kind != "credentials":
            return made
        (own,) = (entry for entry in self.objects["credential_types"] if entry["id"] == made["credential_type"])
        secret = {field["id"] for field in own["inputs"]["fields"] if field.get("secret")}
        inputs = {name: SECRET if name in secret else value for name, value in made.get("inputs", {}).items()}
        return {**made, "inputs": inputs}

    def _survey(self, method, made, data):
        if method == "POST":
            wrong = survey_problems(data)
            if wrong:
                return 400, {"error": wrong}
            made["survey_spec"] = data
        return 200, made["survey_spec"]

    def _links(self, method, path, data):
        held = self.links.setdefault(path, [])
        if method == "GET":
            return 200, {"count": len(held), "next": None, "results": [{"id": number} for number in held]}
        if data.get("disassociate"):
            held.remove(data["id"])
        else:
            held.append(data["id"])
        return 204, None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    awx = None

    def log_message(self, *words):
        pass

    def _answer(self):
        asked = urlparse(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        data = json.loads(self.rfile.read(length)) if length else {}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, body = 401, {}
        else:
            with self.awx.lock:
                status, body = self.awx.answer(self.command, asked.path, parse_qs(asked.query), data)
        said = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - http.server's names
