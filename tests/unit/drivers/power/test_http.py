# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver http on devices of each kind. If these fail, a board behind such a plug is taken for on or off when it is not,
or the site's credential is told to somebody.

Tests drivers/power/http_apis.py.
"""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import quote, quote_plus

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import http, http_apis, web
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import (
    PASSWORD,
    USER,
    Device,
    certificate,
)

#: Two outlets of each kind, as it names them.
OUTLETS = {
    "shelly1": ("0", "1"),
    "shelly2": ("0", "1"),
    "tasmota": ("1", "2"),
    "home_assistant": ("switch.board3", "switch.board4"),
    "netio": ("1", "2"),
    "dli": ("1", "2"),
    "own": ("a", "b-1"),
}
OWN = dict(
    read={"path": "/plugs/{outlet}"},
    state="/0/plug/power",
    is_on=["up"],
    is_off=["down"],
    on={"path": "/plugs/{outlet}", "method": "PUT", "body": '{"power": "up"}'},
    off={"path": "/plugs/{outlet}", "method": "PUT", "body": '{"power": "down"}'},
)
SECRETS = {"username": USER, "password": PASSWORD}


@pytest.fixture
def device():
    """A device of a kind, by its name."""
    with contextlib.ExitStack() as stack:

        def start(kind, **more):
            one = Device(kind, dict.fromkeys(OUTLETS[kind], False), **more)
            stack.callback(one.close)
            return one

        yield start


def settings_of(device, **more):
    api = {"api_table": OWN} if device.kind == "own" else {"api": device.kind}
    return dict(api, driver="http", host="127.0.0.1", port=device.port, outlets=list(OUTLETS[device.kind]), **more)


@contextlib.contextmanager
def opened(device, folder, seconds=60.0, secrets=None, **more):
    deadline = Deadline(seconds)
    given = settings_of(device, **more)
    secrets = dict(SECRETS, password=device.password) if secrets is None else secrets
    with power.session("plugs", given, secrets, deadline, str(folder)) as session:
        yield session, deadline


def switched(device, folder, wanted, **more):
    with opened(device, folder, **more) as (session, deadline):
        results = power.set_outlets(session, wanted, deadline)
    return {outlet: (seen["before"], seen["after"]) for outlet, seen in results.items()}


@pytest.mark.parametrize("kind", OUTLETS)
def test_each_kind_is_read_and_switched(device, tmp_path, kind):
    """Lost: a board that stays dark, or runs on, behind a plug whose answer was read as another's."""
    one, (first, second) = device(kind), OUTLETS[kind]
    assert switched(one, tmp_path, {first: "on"}) == {first: ("off", "on")}
    assert one.outlets == {first: True, second: False}
    assert switched(one, tmp_path, {first: "cycled", second: "on"}) == {first: ("on", "on"), second: ("off", "on")}
    assert switched(one, tmp_path, {first: "off"}) == {first: ("on", "off")}
    with opened(one, tmp_path) as (session, _deadline):
        assert session.status() == {first: "off", second: "on"}


@pytest.mark.parametrize("kind", OUTLETS)
def test_what_does_not_follow_is_said(device, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(power, "WINDOW", 0.5)
    one, (first, _second) = device(kind), OUTLETS[kind]
    one.stuck.add(first)
    with pytest.raises(power.OutletsFailed, match=f"outlet {first} of plugs: still off"):
        switched(one, tmp_path, {first: "on"}, seconds=60)


@pytest.mark.parametrize("kind", OUTLETS)
def test_a_wrong_password_is_named_and_not_told(device, tmp_path, kind):
    """Lost: the password, in an error or a log; and where it is to be corrected."""
    one, secret = device(kind), "another-secret"
    with pytest.raises(HeteroError, match="correct the credential of plugs") as told, opened(
        one, tmp_path, secrets=dict(SECRETS, password=secret)
    ) as (session, _deadline):
        session.status()
    assert secret not in str(told.value)
    assert all(not is_on for is_on in one.outlets.values())


def test_the_only_relay_of_a_tasmota(tmp_path):
    """Such a device calls it POWER; one that says POWER for another relay tells nothing about that one."""
    one = Device("tasmota", {"1": False})
    try:
        given = dict(settings_of(one), outlets=["1"])
        with power.session("plugs", given, SECRETS, Deadline(20), str(tmp_path)) as session:
            assert session.status() == {"1": "off"}
        one.faults["body"] = '{"POWER": "ON"}'
        given["outlets"] = ["2"]
        with pytest.raises(HeteroError, match="no state that is known"), power.session(
            "plugs", given, SECRETS, Deadline(20), str(tmp_path)
        ) as session:
            session.status()
    finally:
        one.close()


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (dict(status=500), "outlet 0 of plugs: answers 500: out of order"),
        (dict(status=404, body=""), "answers 404: Not Found"),
        (dict(body="<html>log in</html>"), "no state that is known: <html>log in</html>"),
        (dict(body='{"ison": "maybe"}'), 'unknown ("maybe")'),
        (dict(body="[" * 100_000), "no state that is known"),
        (dict(body="{}"), "no state that is known: {}"),
        (dict(body="null"), "no state that is known: null"),
        (dict(redirect="http://127.0.0.1:1/"), "answers 302"),
        (dict(redirect="http://[::1/"), "answers against the rules of HTTP"),
        (dict(body="x" * (1 << 21)), "answers with more than 1024 KiB"),
        (dict(trickle=True), "no whole answer within "),
        (dict(after=30), "no "),
    ],
)
def test_what_a_device_may_answer(device, tmp_path, faults, said):
    """Lost: that nothing is known, to a guess; or the verb, to one that never ends."""
    one = device("shelly1")
    one.faults.update(faults)
    try:
        with opened(one, tmp_path, seconds=1.5 if {"trickle", "after"} & {*faults} else 60) as (session, _deadline):
            found = str(session.status())
    except HeteroError as error:
        found = str(error)
    assert said in found
    assert not any(one.outlets.values())


@pytest.mark.parametrize("challenge", ["Digest", 'Digest realm="plug"', 'Digest nonce="1", qop="auth"'])
def test_a_challenge_that_is_none_is_the_devices_fault(device, tmp_path, challenge):
    """Lost: what is wrong, to a traceback."""
    one = device("shelly2")
    one.faults["challenge"] = challenge
    said = r"plugs: answers against the rules of HTTP .*: see what answers there"
    with pytest.raises(HeteroError, match=said), opened(one, tmp_path) as (session, _deadline):
        session.status()


@pytest.mark.parametrize(
    ("kind", "secrets", "which"),
    [
        ("home_assistant", dict(password="žeton"), "password"),
        ("dli", dict(username="jürgen"), "username"),
    ],
)
def test_a_credential_that_cannot_be_sent_is_named(device, tmp_path, kind, secrets, which):
    one = device(kind)
    said = f"plugs: its {which} has characters that are not ASCII.*correct the credential of plugs"
    with pytest.raises(BadInput, match=said), opened(one, tmp_path, secrets=dict(SECRETS, **secrets)):
        pass
    assert one.asked == []


def test_an_order_that_is_refused_is_told(device, tmp_path):
    one = device("shelly1")
    with opened(one, tmp_path, seconds=8) as (session, deadline):
        session.status()
        one.faults["status"] = 503
        with pytest.raises(HeteroError, match="answers 503: out of order"):
            power.set_outlets(session, {"0": "on"}, deadline)


def test_nobody_there_is_said_with_its_address(device, tmp_path):
    one = device("netio")
    given = settings_of(one)
    one.shutdown()
    one.socket.close()
    said = r"plugs: no answer .*check its host and port \(127.0.0.1 port"
    for seconds in (4, 40):  # beside other load the first may be up before the answer that nobody is there
        with pytest.raises(HeteroError) as told, power.session(
            "plugs", given, SECRETS, Deadline(seconds), str(tmp_path)
        ) as session:
            session.status()
        if "no answer" in str(told.value):
            break
    assert told.match(said)


def test_a_password_in_an_address_is_told_to_nobody(device, tmp_path):
    """Lost: the password of a device that takes it in its address, with the first one that does not answer."""
    given = settings_of(device("tasmota"))
    given["port"] = 1  # where nobody listens, so that the library's error names the whole address
    for password in (PASSWORD, "two words & more", "Zq7xT4mP9"):
        for seconds in (1.5, 40):  # as above
            with pytest.raises(HeteroError) as told, power.session(
                "plugs", given, dict(SECRETS, password=password), Deadline(seconds), str(tmp_path)
            ) as session:
                session.status()
            if "no answer" in str(told.value):
                break
        assert told.match("no answer")
        for form in (password, quote(password), quote_plus(password)):
            assert form not in str(told.value)


def test_a_certificate_is_checked_unless_told_otherwise(device, tmp_path):
    """Lost: the password, to whoever answers in the device's place."""
    files = certificate(tmp_path)
    one = device("netio", certificate=files)
    with pytest.raises(HeteroError, match=r"certificate is not trusted.*tls_ca.*tls_verify"), opened(
        one, tmp_path, tls=True
    ) as (session, _deadline):
        session.status()
    assert one.asked == []
    assert switched(one, tmp_path, {"1": "on"}, tls=True, tls_ca=str(files[0])) == {"1": ("off", "on")}
    assert switched(one, tmp_path, {"1": "off"}, tls=True, tls_verify=False) == {"1": ("on", "off")}


def test_the_machines_own_proxy_gets_nothing(device, tmp_path, monkeypatch):
    """Lost: the password, to whatever http_proxy names, and a plug that is not reached by it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{other.getsockname()[1]}")
        assert switched(device("shelly1"), tmp_path, {"0": "on"}) == {"0": ("off", "on")}
        with pytest.raises(BlockingIOError):
            other.accept()


def test_all_outlets_at_once_are_asked_for_once(device, tmp_path):
    one = device("netio")
    with opened(one, tmp_path) as (session, _deadline):
        session.status()
    assert [asked[:2] for asked in one.asked] == [("GET", "/netio.json")]


@pytest.mark.parametrize("outlet", ["a/b", "1&on=true", "..%2f", "x y", "", "..", "0", "-1", "²", "9" * 999, "x" * 101])
@pytest.mark.parametrize("kind", ["dli", "own"])
def test_no_outlets_name_changes_what_is_asked(device, tmp_path, outlet, kind):
    """Lost: a plug that nobody named, switched by a slash in another one's name. (dli counts from 1.)"""
    if kind == "own" and outlet in ("0", "-1"):
        outlet = "."
    one = device(kind)
    given = dict(settings_of(one), outlets=[outlet])
    with pytest.raises(BadInput, match="is none that it can be asked for"), power.session(
        "plugs", given, SECRETS, Deadline(60), str(tmp_path)
    ) as session:
        session.status()
    assert one.asked == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "does not say which api it has"),
        ({"api": "shelley2"}, "no such api: shelley2: write shelly2"),
        ({"api": "netio", "api_table": OWN}, "has both"),
        ({"api_table": dict(OWN, raed=1)}, "unknown key raed: write read"),
        ({"api_table": {"true": OWN["on"], **OWN}}, "put on in quotes"),
        ({"api_table": {False: OWN["off"], **OWN}}, "put off in quotes"),
        ({"api_table": dict(OWN, on={"path": "relay"})}, "no on with a path that begins with /"),
        ({"api_table": dict(OWN, off="x")}, "no off with a path"),
        ({"api_table": dict(OWN, read=dict(OWN["read"], mehtod="PUT"))}, "unknown key read.mehtod: write method"),
        ({"api_table": dict(OWN, read=dict(OWN["read"], method="DELETE"))}, "no such read.method: DELETE"),
        ({"api_table": dict(OWN, read=dict(OWN["read"], body={"power": "up"}))}, r"a read\.body that is no text"),
        ({"api_table": dict(OWN, alone=1)}, "an alone that is no text"),
        ({"api_table": dict(OWN, is_on=True)}, r"no list for is_on: give .*is_on: \[true\]"),
        ({"api_table": dict(OWN, is_off=["up"])}, 'has "up" for on and for off'),
        ({"api_table": {**OWN, "is_on": ["x", 1], "is_off": [0, 1]}}, "has 1 for on and for off"),
        ({"api_table": {**{key: OWN[key] for key in OWN if key != "is_on"}, "is_off": [True]}}, "has true for on and"),
        ({"api_table": dict(OWN, state="power")}, "has no state"),
        ({"api_table": dict(OWN, auth="kerberos")}, "no such auth: kerberos"),
        ({"api_table": dict(OWN, headers="x")}, "no mapping for headers"),
        ({"api_table": dict(OWN, headers={"X-Key": "abc\r\nX-B: 1"})}, "has a header that HTTP cannot carry: give"),
        ({"api_table": dict(OWN, headers={"X Key": "abc"})}, "has a header that HTTP cannot carry"),
        ({"api_table": dict(OWN, headers={"X-Key": "žeton"})}, "has a header that HTTP cannot carry"),
        ({"api_table": dict(OWN, on={"path": "/a b"})}, "and has no space"),
        ({"api_table": dict(OWN, on={"path": "/a", "body": "\ud800"})}, r"a on\.body that is no text"),
        ({"api": "netio", "host": "a..b"}, "'a..b' is no host"),
        ({"api": "netio", "host": "1::2::3"}, "'1::2::3' is no host"),
        ({"api": "netio", "host": "x" * 64}, "is no host"),
        ({"api": "netio", "tls_ca": "/dev/null"}, "has tls_ca without tls"),
        ({"api": "netio", "tls": True, "tls_ca": "/none.pem"}, "its tls_ca /none.pem is not there: put"),
        ({"api_table": {"state": ""}}, "no read with a path"),
    ],
)
def test_what_is_wrong_with_its_settings(tmp_path, given, said):
    """Lost: that it is wrong, to the first board that waits for its power."""
    settings = dict({"host": "127.0.0.1"}, **given, driver="http", outlets=["1"])
    assert [str(error) for _key, error in http.Http.wrong("plugs", settings)][:1] != []
    with pytest.raises(BadInput, match=said):
        power.session("plugs", settings, {}, Deadline(60), str(tmp_path)).__enter__()


@pytest.mark.parametrize("alike", ["read", "on", "off"])
def test_two_outlets_that_are_asked_alike_are_refused(tmp_path, alike):
    """Lost: the power of a board, to the end of another one: both are the one relay of a table without {outlet}."""
    table = {
        "read": {"path": "/relay/{outlet}"},
        "state": "/ison",
        "on": {"path": "/relay/{outlet}?turn=on"},
        "off": {"path": "/relay", "method": "POST", "body": '{"relay": {outlet}, "turn": "off"}'},
    }

    def wrong(table, *outlets):
        given = {"driver": "http", "host": "127.0.0.1", "api_table": table, "outlets": outlets}
        return [str(error) for _key, error in http.Http.wrong("plugs", given)]

    one = {**table, alike: {"path": "/relay/0"}}
    assert (wrong(table, "0", "1"), wrong(one, "0"), wrong(one)) == ([], [], [])
    (said,) = wrong(one, "0", "1")
    assert said.startswith("plugs: its api_table asks the same for outlets 0, 1, which would be one: put {outlet} into")
    by_answer = {**table, "read": {"path": "/status"}, "state": "/relays/{outlet}/ison"}
    assert wrong(by_answer, "0", "1") == []


def test_whose_library_is_missing_is_told_which(device, tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(web, "import_module", missing)
    with pytest.raises(HeteroError, match="library requests is not installed: install python3-requests"), opened(
        device("netio"), tmp_path
    ):
        pass


@pytest.mark.parametrize(
    ("answer", "pointer", "value"),
    [
        ({"a": {"b": [1, 2]}}, "/a/b/1", 2),
        ({"a/b": {"~": 3}}, "/a~1b/~0", 3),
        ([{"ID": 7, "s": 1}, {"ID": 2, "s": 0}], "/ID=2/s", 0),
        (True, "", True),
        ([1], "/1", KeyError),
        ([1], "/x", KeyError),
        ({"a": None}, "/a", KeyError),
        ("text", "/a", KeyError),
        ([{"ID": 7}], "/ID=2/s", KeyError),
    ],
)
def test_a_pointer_leads_to_one_value_or_to_none(answer, pointer, value):
    if value is KeyError:
        with pytest.raises(KeyError):
            http_apis.found(answer, pointer)
    else:
        assert http_apis.found(answer, pointer) == value
