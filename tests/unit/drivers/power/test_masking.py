# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shown of a text that has a PDU's password in it. Lost: the password, to whoever reads a play's output."""

from __future__ import annotations

import base64
import json
import re
import shlex
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.output import TooMuch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import snmp
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.masking import (
    HIDDEN,
    MASK,
    MOST,
    Mask,
)

SECRET = "Sup3r/S3cret <&\"'x"


def coded(text):
    return base64.b64encode(text.encode()).decode()


#: How programs print a secret otherwise than as it is.
FORMS = {
    "base64": coded(SECRET),
    "base64 without padding": coded(SECRET).rstrip("="),
    "basic": f"Authorization: Basic {coded(f'apc:{SECRET}')}",
    "basic, by another name": f"Authorization: Basic {coded(f'admin:{SECRET}')}",
    "url": quote(SECRET, safe=""),
    "url, a form": quote_plus(SECRET),
    "url, each letter": "".join(f"%{byte:02x}" for byte in SECRET.encode()),
    "json": json.dumps(SECRET),
    "json, slashes": json.dumps(SECRET).replace("/", "\\/"),
    "json, each letter": "".join(f"\\u{ord(letter):04x}" for letter in SECRET),
    "json in json": json.dumps(json.dumps(SECRET)),
    "xml": escape(SECRET, {'"': "&quot;"}),
    "xml, numbers": "".join(f"&#{ord(letter)};" for letter in SECRET),
    "shell": shlex.quote(SECRET),
    "shell, backslashes": re.sub(r"(\W)", r"\\\1", SECRET),
    "hex": SECRET.encode().hex(),
    "hex, large": SECRET.encode().hex().upper(),
    "hex, in words": re.sub("(....)", r"\1 ", SECRET.encode().hex()),
    "octal": "".join(f"\\{byte:03o}" for byte in SECRET.encode()),
    "python": "".join(f"\\x{byte:02x}" for byte in SECRET.encode()),
    "prefix": f"{SECRET[:7]}...",
    "prefix of base64": coded(SECRET)[:9],
    "suffix": f"...{SECRET[-6:]}",
    "reversed": SECRET[::-1],
    "escape sequence": f"{SECRET[:4]}\x1b[1m{SECRET[4:]}",
    "control": f"{SECRET[:4]}\b{SECRET[4:]}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_way_of_writing_it_is_shown(form):
    text = f"it has begun\nlogin {form} refused\nand is over\n"
    assert Mask([SECRET], "apc")(text) == f"it has begun\n{HIDDEN}\nand is over\n"


@pytest.mark.parametrize("code", ["%{:02x}", "\\x{:02x}", "\\{:03o}", "\\u{:04x}", "&#{};"])
def test_no_letter_of_a_code_is_lost(code):
    """Lost: a password of as few letters as a piece has, for one that was not decoded."""
    assert Mask(["Sup3rS"])("".join(code.format(ord(letter)) for letter in "Sup3rS")) == HIDDEN


def test_what_goes_over_several_lines_is_in_all_of_them():
    """Also where a line alone has too few letters of it."""
    for at in range(1, len(SECRET)):
        text = f"begun\nwith {SECRET[:at]}\n{SECRET[at:]} in it\nover"
        assert Mask([SECRET])(text) == f"begun\n{HIDDEN}\nover", at
    wrapped = f"begun\n{coded(SECRET)[:8]}\n    {coded(SECRET)[8:]}\nover"
    assert Mask([SECRET])(wrapped) == f"begun\n{HIDDEN}\nover"


def test_the_secret_itself_hides_no_other_words():
    """Lost: the reason of an error, for a word in it."""
    assert Mask([SECRET])(f"user apc: {SECRET} refused, 3 left") == f"user apc: {MASK} refused, 3 left"
    assert Mask(["Sup3rS3cret"])("no SUP3RS3CRET here") == f"no {MASK} here"
    harmless = "Unable to connect/login to fencing device at 10.0.100.9: 100% of 3 tries \\o/ &amp; %41 \\n"
    assert Mask([SECRET, "private"], "apc")(harmless) == harmless
    assert Mask([])(harmless) == Mask([None, ""])(harmless) == harmless


def test_a_short_one_is_hidden_as_a_word_only():
    """Lost: each word with those letters, and all reasons with them."""
    mask = Mask(["apc"], "apc")
    assert mask("apc: no capcity of APC apc1, apc.") == f"{MASK}: no capcity of APC apc1, {MASK}."
    assert mask(f"sent Basic {coded('apc:apc')}\nno") == f"{HIDDEN}\nno"
    assert Mask(["a'b"])("said a'b, xa'b") == f"said {MASK}, xa'b"


@pytest.mark.parametrize(
    ("secret", "user", "said", "shown"),
    [
        # each end of a word is looked at alone
        ("a-", "apc", "xa- a-x", f"xa- {MASK}x"),
        ("-a", "apc", "x-a -ax", f"x{MASK} -ax"),
        ("a'b", "apc", "'a'\"'\"'b'", HIDDEN),
        ('a"b', "apc", '{"password":"a\\"b"}', HIDDEN),
        ("a b", "apc", "password=a%20b", HIDDEN),
        ("a b", "apc", "password=a+b", HIDDEN),
        ("a&b", "apc", "a&amp;b", HIDDEN),
        ("a>b", "apc", "610x 613e62", HIDDEN),
        ("abc", "apc", "YWJj or else", HIDDEN),
        ("abcd", "apc", "YWJjZA or else", HIDDEN),
        ("a?>", "apc", "Basic YT8-", HIDDEN),
        ("abc", "", "Basic OmFiYw==", HIDDEN),
        ("abc", None, "Basic OmFiYw", HIDDEN),
        ("abc", "apc", "Basic OmFiYw", "Basic OmFiYw"),
        # five letters are a word alone; of six, no part is shown
        ("abcde", "apc", "xabcde abcde", f"xabcde {MASK}"),
        ("abcdef", "apc", "xabcdef", f"x{MASK}"),
        ("abcdef", "apc", "ABCDE abcde", "ABCDE abcde"),
        ("abc", "apc", "ABC abc", f"ABC {MASK}"),
    ],
)
def test_how_a_short_one_is_found(secret, user, said, shown):
    """Lost: a password of a few letters, in an error of a client that quotes it; or the error, for a part of a word."""
    assert Mask([secret], user)(said) == shown


def test_the_longer_of_two_is_hidden_whole():
    """Lost: the end of a password that begins with the community."""
    for secrets in (["rack", "rack-of-jo"], ["rack-of-jo", "rack"]):
        assert Mask(secrets)("said rack-of-jo, rack") == f"said {MASK}, {MASK}"
    assert MASK == "********"


@pytest.mark.parametrize(
    "within",
    [
        *(
            "\x1b]0;title\a",
            "\x1b]0;title\x1b\\",
            "\x1b[1;31m",
            "\x1b[?25l",
            "\x1b[1 q",
            "\x1b(B",
            "\x1b)0",
            "\x1b=",
            "\x1bM",
        ),
        *("\0", "\x1f", "\n", "\x7f", "\x9f", "\u2028", "\u2029"),
    ],
)
def test_what_nobody_sees_parts_no_secret(within):
    """Lost: a password that a terminal shows whole, for what it obeys in between."""
    assert Mask(["Sup3rS3cre"])(f"login Sup3r{within}S3cre no").strip() == HIDDEN


@pytest.mark.parametrize(
    "said",
    ["ab+cd+ef+gh", "ab  cd   ef gh", "ab\n    cd\n    ef\n    gh", "hg fe dc ba", "abcdefgh", "AB CD E", "d ef gh"],
)
def test_one_of_several_words(said):
    """Lost: a pass phrase of short words, each of which a form, or a screen that is wrapped, parts from the others."""
    assert Mask(["ab cd ef gh"])(said).splitlines() == [HIDDEN]


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "apc:"])
@pytest.mark.parametrize("code", [base64.b64encode, base64.urlsafe_b64encode])
def test_no_piece_of_it_encoded_is_shown(before, code):
    """Lost: six letters of a password, wherever what was encoded with it began."""
    secret = "\xff?~>~?~xyz"
    data = code(f"{before}{secret}".encode()).decode()
    first, end = -(-8 * len(before) // 6), (8 * len(f"{before}{secret}".encode())) // 6
    for at in range(first, end - 5):
        assert Mask([secret])(data[at : at + 6]) == HIDDEN, at
        assert Mask([secret])(data[at : at + 5]) != HIDDEN, at


def test_of_a_text_only_what_is_too_long_is_left_out():
    """Lost: the middle of what a PDU said, in which the reason may be; or seconds, to megabytes of it."""
    assert MOST == 65536
    whole = "a" * (MOST // 2) + "b" * (MOST // 2)
    assert Mask(["xyz"])(whole) == whole
    longer = f"a{whole}"
    assert Mask(["xyz"])(longer) == f"{longer[: MOST // 2]}\n…\n{longer[-(MOST // 2) :]}"


def test_each_line_stays_where_it_was():
    """Lost: which line it was; what is read line by line would have one less."""
    mask = Mask(["Sup3rS3cret"])
    assert mask("a\r\nSup3rS3\r\nb\r\n") == f"a\r\n{HIDDEN}\r\nb\r\n"
    assert mask("Sup3rS3\nb\n3rS3cret\nSup3rS3") == f"{HIDDEN}\nb\n{HIDDEN}\n"
    assert mask("Sup3rS3") == HIDDEN


def test_of_a_long_text_its_ends_are_shown():
    """Lost: seconds and memory, to a program that prints megabytes; or the secret where it was cut."""
    for shift in range(len(SECRET)):
        text = "-" * (MOST // 2 - shift) + SECRET + "\n" + "x\n" * MOST + coded(SECRET) + "\nover"
        shown = Mask([SECRET])(text)
        assert len(shown) < MOST + 100
        assert shown.endswith(f"x\n{HIDDEN}\nover")
        assert not any(SECRET[at : at + 6] in shown for at in range(len(SECRET) - 5)), shift


BODY = "#!/usr/bin/env python3\nimport sys\nsys.stdin.read()\nsys.stderr.write({said!r})\nsys.exit(4)\n"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("driver", ["fence", "command"])
def test_no_program_tells_it(tmp_path, driver, form):
    """Lost: the password, by an agent that prints the request that failed, or half of it in its last line."""
    path = tmp_path / ("fence_t" if driver == "fence" else "my_pdu")
    path.write_text(BODY.format(said=f"it has begun\nlogin {form} refused\n"))
    path.chmod(0o755)
    settings = {"driver": driver, "agent": str(path), "script": str(path), "host": "10.0.100.9", "outlets": ["5"]}
    secrets = {"username": "apc", "password": SECRET}
    opened = power.session("pdu-t", settings, secrets, Deadline(20), str(tmp_path))
    with pytest.raises(HeteroError) as caught, opened as pdu:
        pdu.status()
    assert HIDDEN in str(caught.value)
    assert form not in repr(caught.value.failure)


@pytest.mark.parametrize("driver", ["fence", "command"])
def test_the_last_of_two_lines_tells_nothing(tmp_path, driver):
    path = tmp_path / ("fence_t" if driver == "fence" else "my_pdu")
    path.write_text(BODY.format(said=f"login {SECRET[:-4]}\n{SECRET[-4:]}\n"))
    path.chmod(0o755)
    settings = {"driver": driver, "agent": str(path), "script": str(path), "host": "10.0.100.9", "outlets": ["5"]}
    opened = power.session("pdu-t", settings, {"password": SECRET}, Deadline(20), str(tmp_path))
    with pytest.raises(HeteroError) as caught, opened as pdu:
        pdu.status()
    assert HIDDEN in str(caught.value)


def test_an_outlet_that_is_called_as_the_password_is_told_to_nobody(tmp_path):
    path = tmp_path / "fence_t"
    path.write_text("#!/bin/sh\ncat >/dev/null\necho 1,lamp,ON\necho s3cretword,x,OFF\n")
    path.chmod(0o755)
    settings = {"driver": "fence", "agent": str(path), "host": "10.0.100.9"}
    with power.session("pdu-t", settings, {"password": "s3cretword"}, Deadline(20), str(tmp_path)) as pdu:
        assert pdu.status() == {"1": "on"}


def test_a_command_of_snmp_tells_no_community(monkeypatch):
    """Also one that prints without end."""
    one = snmp.Snmp("pdu-t", {"host": "10.0.100.9"}, {"community": "rack-of-jo"}, Deadline(20))
    one._folder = type("Folder", (), {"name": "/folder"})

    def ended(*_given, **_more):
        raise TooMuch("printed more than 4096 KiB", "pdu-t", "look", said=f"community {coded('rack-of-jo')}\n")

    monkeypatch.setattr(snmp, "ended", ended)
    with pytest.raises(TooMuch) as caught:
        one._ask("snmpget", "1.3")
    assert caught.value.facts["said"] == f"{HIDDEN}\n"
    answer = type("Done", (), {"returncode": 1, "stdout": "", "stderr": "Timeout: rack-of-j"})
    monkeypatch.setattr(snmp, "ended", lambda *_given, **_more: answer)
    with pytest.raises(HeteroError, match=r"no answer by SNMP \(\(a line with the password in it\)\)"):
        one._ask("snmpget", "1.3")
