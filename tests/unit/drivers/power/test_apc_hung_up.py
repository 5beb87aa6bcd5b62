# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU that hangs up during the login has meant, and what to do then. Real ssh and telnet: test_apc*.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy, HeteroError, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc

PINNED, LEGACY, KEPT = dict(host_key="ssh-rsa AAAA"), dict(legacy_ssh=True), dict(known_hosts="/state/known_hosts")
WAY = "check its host and port (10.0.0.9 port 23, as tftp_proxy_pdus has pdu-t)"
UPDATE = "update its firmware, or use telnet or SNMP"


def meant(screen, after=None, heard="", ended=True, **settings):
    """The error for a session that ended with this screen."""
    pdu = Apc("pdu-t", dict(settings, host="10.0.0.9", port=23), {"username": "apc"}, Deadline(1))
    odd = SimpleNamespace(what="its screen has no menu or command line of an APC")
    pdu._line = SimpleNamespace(screen=screen, words=screen, heard=heard, unknown=lambda wanted: (odd, wanted))
    return pdu._hung_up(Lost("the session ended", "pdu-t", "look at the PDU", ended=ended, screen=screen), after)


@pytest.mark.parametrize(
    ("screen", "settings", "what", "remedy"),
    [
        ("ssh: Could not resolve hostname x", {}, "cannot be reached", WAY),
        ("telnet: x: Name or service not known", {}, "cannot be reached", WAY),
        ("connect to host x: No route to host", {}, "cannot be reached", WAY),
        ("Network is unreachable", {}, "cannot be reached", WAY),
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED!",
            KEPT,
            "shows another ssh host key than before",
            "find out why; if it was replaced, remove its lines from /state/known_hosts",
        ),
        (
            "Host key verification failed.",
            {},
            "shows another ssh host key than before",
            "find out why; if it was replaced, remove its lines from known_hosts",
        ),
        (
            "Host key verification failed.",
            dict(PINNED, **KEPT),
            "shows another ssh host key than the one pinned",
            "find out why; if it was replaced, correct its host_key in tftp_proxy_pdus",
        ),
        ("Protocol major versions differ: 2 vs. 1", {}, "knows only version 1 of ssh", UPDATE),
        (
            "ssh_dispatch_run_fatal: Invalid key length",
            {},
            "shows an ssh host key that is too short to prove anything",
            "give it one of 1024 bits or more, or use telnet or SNMP",
        ),
        (
            "Unable to negotiate with x: no matching cipher found",
            {},
            "offers only ssh algorithms that are off by default",
            "set its legacy_ssh, or update its firmware",
        ),
        (
            "no matching host key type found",
            LEGACY,
            f"offers only ssh algorithms that the ssh of {THIS_NODE} does not have",
            UPDATE,
        ),
    ],
)
@pytest.mark.parametrize("after", [None, "the password"])
def test_what_asking_again_does_not_help_says_what_does(screen, settings, what, remedy, after):
    """Lost: the way out; the PDU would be waited for as one that is in use, or a key that is not its own trusted."""
    error = meant(screen, after, transport="ssh", **settings)
    assert type(error) is HeteroError  # pylint: disable=unidiomatic-typecheck
    assert (error.what, error.thing, error.facts["screen"]) == (f"{what}: {screen}", "pdu-t", screen)
    assert error.remedy == remedy
    assert "{" not in f"{error.what}{error.remedy}"


@pytest.mark.parametrize(
    ("transport", "after", "what"),
    [
        ("ssh", None, "takes no password by ssh: Permission denied (publickey)"),
        ("ssh", "the password", "refuses user 'apc' with the password given"),
        ("telnet", None, "refuses user 'apc' with the password given"),
    ],
)
def test_who_is_denied_is_told_by_what(transport, after, what):
    """Lost: whether the password is wrong, or the account takes none; three bad ones lock everybody out."""
    assert meant("Permission denied (publickey)", after, transport=transport).what == what


@pytest.mark.parametrize("transport", ["ssh", "telnet"])
@pytest.mark.parametrize(
    ("screen", "after", "ended", "what"),
    [
        ("Another user is logged in", None, True, "has no place for us: Another user is logged in"),
        ("Somebody else is here", "the password", True, "has no place for us: Somebody else is here"),
        ("The console is in use", "the password", False, "has no place for us: The console is in use"),
        ("", None, True, "has no place for us: it closed the connection"),
        ("Bye.", None, True, "has no place for us: Bye."),
    ],
)
def test_a_place_that_is_taken_is_waited_for(transport, screen, after, ended, what):
    """Lost: a play fails for a colleague who looks at the same PDU for a minute."""
    error = meant(screen, after, ended=ended, transport=transport)
    assert isinstance(error, Busy)
    assert (error.what, error.remedy) == (what, "wait for its other user")


def test_a_session_that_ends_after_the_password_may_be_another_users_or_the_credentials_fault():
    """Lost: a credential that is right, looked for a fault while a colleague's session is open."""
    error = meant("", "the password")
    assert (type(error), error.what) == (HeteroError, "closed the connection after the password")
    others = "see that nobody else has its one session, and that it is not busy"
    assert error.remedy == f"{others}; else check the credential of pdu-t"


@pytest.mark.parametrize("heard", ["switch> ", "router#", "Enable:", "what?", "50%", "$"])
def test_what_asks_for_something_else_is_no_apc(heard):
    """Lost: what answers at that address; it would be told as a PDU that is silent."""
    odd, wanted = meant(heard, "the password", heard=heard, ended=False)
    assert (odd.what, wanted) == ("its screen has no menu or command line of an APC", "menu or command line of an APC")


@pytest.mark.parametrize(("after", "heard"), [(None, "switch> "), ("the password", "Welcome to"), ("the password", "")])
def test_silence_is_told_as_silence(after, heard):
    error = meant(heard, after, heard=heard, ended=False)
    assert (type(error), error.what, error.remedy) == (Lost, "the session ended", "look at the PDU")
    assert (error.ended, error.facts) == (False, dict(screen=heard))
