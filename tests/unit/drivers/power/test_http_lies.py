# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver http with devices that lie, passwords of any letters, and tables that cannot be right.

If these fail, what is wrong is lost to a traceback, or a board is taken for off that runs.
"""

from __future__ import annotations

import socket
import threading

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import http
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import Device

TABLE = dict(
    read={"path": "/relay/{outlet}"},
    state="/ison",
    on={"path": "/relay/{outlet}?turn=on"},
    off={"path": "/relay/{outlet}?turn=off"},
)


class Raw:
    """A device that answers each request with the same bytes."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer = self.server.accept()[0]
            except OSError:
                return
            with peer:
                peer.settimeout(60)
                try:
                    self.asked.append(peer.recv(65536))
                    peer.sendall(self.answer)
                except OSError:
                    pass


@pytest.fixture
def raw():
    made = []

    def start(answer):
        made.append(Raw(answer))
        return made[-1]

    yield start
    for one in made:
        one.server.close()


def said(tmp_path, secrets=None, seconds=60.0, **given):
    """What a look at a device says: its error, or its outlets."""
    settings = dict(dict(driver="http", host="127.0.0.1", port=1, outlets=["0"]), **given)
    if "api_table" not in settings:
        settings.setdefault("api", "shelly1")
    try:
        with power.session("plugs", settings, secrets or {}, Deadline(seconds), str(tmp_path)) as session:
            return str(session.status())
    except HeteroError as error:
        return str(error)


def challenge(words):
    return b"HTTP/1.1 401 no\r\nWWW-Authenticate: " + words + b"\r\nContent-Length: 0\r\n\r\n"


#: {name: (what is given, what the device answers)}
LIES = {
    "digest without realm": (dict(api="shelly2"), challenge(b'Digest nonce="y", qop="auth"')),
    "digest without nonce": (dict(api="shelly2"), challenge(b'Digest realm="y", qop="auth"')),
    "digest without words": (dict(api="shelly2"), challenge(b"Digest ")),
    "leads to no address": ({}, b"HTTP/1.1 302 x\r\nLocation: http://[::bad\r\nContent-Length: 0\r\n\r\n"),
    "leads to no text": ({}, b"HTTP/1.1 302 x\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n"),
    "host without a label": (dict(host="a..b"), None),
    "host with a long label": (dict(host="a" * 70), None),
    "header of other letters": (dict(api_table=dict(TABLE, headers={"X-Key": "ключ"})), b""),
    "header's name of other letters": (dict(api_table=dict(TABLE, headers={"ключ": "x"})), b""),
    "header over two lines": (dict(api_table=dict(TABLE, headers={"X-Key": "Zq7x\r\nT4mP9"})), b""),
}


@pytest.mark.parametrize("name", LIES)
def test_no_answer_and_no_table_ends_in_a_traceback(raw, tmp_path, capfd, name):
    """Lost: what is wrong, to "work inside it ended without an answer", and a traceback on the user's screen."""
    given, answer = LIES[name]
    device = raw(answer) if answer is not None else None
    more = {"port": device.port} if device else {}
    text = said(tmp_path, {"username": "admin", "password": "Zq7xT4mP9"}, **given, **more)
    shown = capfd.readouterr().err
    assert (" in _child" in shown, "ended without an answer" in text) == (False, False), (text, shown[:300])
    if "header" in name:
        assert "and that it has power" not in text, "its table is wrong, whatever the device does"
        assert "Zq7x" not in text, "a header may be a key"


@pytest.mark.parametrize("secrets", [{"password": "пароль-1957"}, {"password": "5€uro-1957"}, {"username": "админ"}])
@pytest.mark.parametrize("api", ["shelly1", "shelly2", "home_assistant"])
def test_a_password_of_any_letters_is_sent_or_refused_in_words(raw, tmp_path, capfd, api, secrets):
    """Lost: that the password is why, to "check its host and port"."""
    device = raw(challenge(b'Digest realm="x", nonce="y", qop="auth"'))
    outlets = {"home_assistant": ["switch.a"]}.get(api, ["0"])
    text = said(tmp_path, dict(dict(password="plain-1957"), **secrets), api=api, port=device.port, outlets=outlets)
    shown = capfd.readouterr().err
    assert (" in _child" in shown, "check its host" in text) == (False, False), (text, shown[:300])
    assert "credential" in text
    assert not [secret for secret in secrets.values() if secret in text + shown]


@pytest.mark.parametrize("values", [dict(is_off=[True]), dict(is_on=[1, 0], is_off=[0])])
def test_no_value_means_on_and_off(tmp_path, values):
    """Lost: a board that runs, taken for one that is off: what its state says was on the list of both."""
    settings = dict(driver="http", host="127.0.0.1", outlets=["0"], api_table=dict(TABLE, **values))
    assert [key for key, _error in http.Http.wrong("plugs", settings)] == ["api_table"]


def test_an_authority_that_is_not_there_is_named_as_that(tmp_path):
    """Lost: which setting is wrong, to "its files … check its host and port"."""
    text = said(tmp_path, tls=True, tls_ca="/nonexistent/ca.pem")
    assert "tls_ca" in text
    assert "check its host and port" not in text


def test_who_names_an_authority_does_not_send_a_password_in_the_clear(raw, tmp_path):
    """Lost: the password, to who listens: tls: true was forgotten beside tls_ca, and nothing said so."""
    device = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"ison": true}')
    text = said(tmp_path, {"password": "Zq7xT4mP9"}, port=device.port, tls_ca="/etc/ssl/plug.pem")
    assert device.asked == []
    assert "tls" in text


@pytest.mark.parametrize("outlet", ["..", "."])
def test_no_outlets_name_is_a_way_up(tmp_path, outlet):
    """Lost: whatever else a device does at the address above: a path with .. is another one."""
    settings = dict(driver="http", host="127.0.0.1", api="shelly1", outlets=[outlet])
    with pytest.raises(BadInput), power.session("plugs", settings, {}, Deadline(60), str(tmp_path)) as session:
        session.status()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad\r\n\r\n", b"", b"\x15\x03\x01\x00\x02\x02\x46"])
def test_what_speaks_no_tls_is_not_said_to_have_a_wrong_certificate(raw, tmp_path, answer):
    """Lost: the proof of who answers, switched off as printed (tls_verify: false), for a wrong port, or a device that
    hung up in the handshake, which is to be asked again.
    """
    device = raw(answer)
    for seconds in (10.0, 100.0):  # a busy machine needs longer to ask again
        text = said(tmp_path, {"password": "Zq7xT4mP9"}, seconds, port=device.port, tls=True)
        assert "certificate is not trusted" not in text
        assert "tls_verify" not in text
        if len(device.asked) > 1 or answer:
            break
    if answer == b"":
        assert len(device.asked) > 1, "it is asked again, as one that hangs up without TLS"


def test_an_outlet_that_is_gone_keeps_no_other_from_being_switched(tmp_path):
    """Lost: the end of each board of a Home Assistant, to one plug of it that was removed."""
    device = Device("home_assistant", {"switch.board3": True})
    given = dict(driver="http", api="home_assistant", host="127.0.0.1", port=device.port)
    given["outlets"] = ["switch.board3", "switch.board4"]
    deadline = Deadline(20.0)
    try:
        with power.session("home", given, {"password": device.password}, deadline, str(tmp_path)) as session:
            assert power.set_outlets(session, {"switch.board3": "off"}, deadline)["switch.board3"]["after"] == "off"
    finally:
        device.close()
