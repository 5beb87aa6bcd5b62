# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of the nginx by which boards boot: before the set-up, and once it should serve."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import http_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan

BOOT = b"#!ipxe\nthe script"
GOOD = {("GET", "/boot.ipxe"): (200, BOOT)}


@contextmanager
def serving(answers):
    """A web server on the wire that answers (method, path) so, and all else with 404; its port."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            status, data = answers.get((self.command, self.path), (404, b"no"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = answer  # noqa: N815 - http.server's names

        def log_message(self, *_words):
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def checked(tmp_path, port, seconds=0.3):
    (tmp_path / "boot.ipxe").write_bytes(BOOT)
    http_check.check_http("127.0.0.1", port, str(tmp_path), Deadline(seconds))


def test_a_server_that_gives_what_it_must_and_nothing_else_passes(tmp_path):
    with serving(GOOD) as port:
        checked(tmp_path, port, 20)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({}, "boot.ipxe cannot be fetched: refused .404 Not Found"),
        ({("GET", "/boot.ipxe"): (200, b"")}, "boot.ipxe cannot be fetched: it is empty"),
        ({("GET", "/boot.ipxe"): (200, b"another's")}, "the file that comes is not the one in"),
        ({**GOOD, ("GET", "/tilera_boards"): (200, b"boards")}, "/tilera_boards is given to anyone"),
        ({**GOOD, ("GET", "/"): (200, b"list")}, "list of its files. is given to anyone"),
        ({**GOOD, ("PUT", "/boot.ipxe"): (201, b"")}, "/boot.ipxe can be overwritten by anyone"),
    ],
)
def test_a_server_that_does_not_is_named(tmp_path, answers, said):
    """Lost: a set-up that says it works, though no board boots by HTTP, or each has the boards file."""
    with serving(answers) as port, pytest.raises(HeteroError, match=said) as error:
        checked(tmp_path, port)
    assert f"127.0.0.1:{port}" in str(error.value)


def test_a_port_that_nobody_holds_is_said(tmp_path):
    with serving(GOOD) as port:
        pass
    with pytest.raises(HeteroError, match=f"port {port} is held by nobody.*journalctl -u hetero-http"):
        checked(tmp_path, port)


@pytest.fixture
def machine(monkeypatch):
    """A function that looks at a machine on which these programs hold the port and these units are active."""

    def look(holders=(), units=(), **plan):
        found = Findings()
        monkeypatch.setattr(http_check, "port_holders", lambda *_port: set(holders))
        monkeypatch.setattr(http_check, "_is_active", lambda unit: unit in units)
        http_check.nginx(Plan("10.0.2.254", **{"boot_http": True, **plan}), found)
        return [str(defect) for defect in found.defects], found.facts["nginx_idle"]

    return look


def test_another_web_server_on_the_port_is_said_before_anything_is_changed(machine):
    """Lost: a web server of the site, or a proxy node whose boards all go back to TFTP and nobody knows why."""
    assert machine()[0] == []
    assert machine(["nginx"], ["hetero-http.service"])[0] == []
    (defect,), idle = machine(["nginx"], ["nginx.service"])
    assert "port 80/tcp (HTTP): is held by nginx: give tftp_proxy_boot_http_port another" in defect
    assert not idle
    assert len(machine(["apache2"], ["hetero-http.service"], boot_http_port=8080)[0]) == 1
    assert machine(["apache2"], boot_http=False)[0] == []


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_number_that_is_no_port_is_said(machine, port):
    """Lost: a proxy node on which nginx does not start."""
    assert f"tftp_proxy_boot_http_port: {port} is no port" in machine(boot_http_port=port)[0][0]
    assert machine(boot_http_port=port, boot_http=False)[0] == []


def test_an_nginx_of_the_site_is_left_alone(tmp_path, monkeypatch):
    """Lost: the site's own web pages, which the set-up would switch off; or a page of Debian's on all addresses."""
    monkeypatch.setattr(http_check, "_is_active", lambda unit: False)
    assert http_check.is_idle(str(tmp_path / "none"))
    (tmp_path / "default").touch()
    assert http_check.is_idle(str(tmp_path))
    monkeypatch.setattr(http_check, "_is_active", lambda unit: unit == "nginx.service")
    assert not http_check.is_idle(str(tmp_path))
    monkeypatch.setattr(http_check, "_is_active", lambda unit: False)
    (tmp_path / "wiki").touch()
    assert not http_check.is_idle(str(tmp_path))
