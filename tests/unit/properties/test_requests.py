# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, keys and numbers that a person may give by mistake. If these failed, a request would end in a traceback, or a
name would become a host name, a file or a boot entry that it must not be.
"""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.module import run
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.machine_identity import (
    fingerprint,
    parse_key,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import valid_instance
from ansible_collections.hetero.compute.plugins.modules import board_claim, board_image, board_info, tilera_boot
from ansible_collections.hetero.compute.tests.unit.properties.conftest import said

CPU = '{"vendor":"tilera","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLPYmxFQCbDXOYrVHhQDnHRlHvZnLLhDmTv0Rdq jackie@desk"
FLAVOR = {"name": "tp64.8x8", "cpu_arch": "tilepro64"}
LETTERS = "az09-_. A\n\r\0/\\é\u2028٣"
NAMES = st.text(LETTERS, max_size=70) | st.text(max_size=10) | st.from_regex(r"[a-z0-9-]{60,66}", fullmatch=True)
#: Ansible hands on bytes that are no UTF-8 as lone surrogates.
TEXTS = NAMES | st.text(st.characters(), max_size=6) | st.sampled_from(["\udc80", "x\ud800", "", " ", "-", "a" * 300])
KEYS = st.sampled_from([KEY, KEY + "\n" + KEY, "-----BEGIN OPENSSH PRIVATE KEY-----\nMARK", "ssh-rsa", ""]) | st.tuples(
    st.sampled_from(["ssh-ed25519", "ssh-rsa", "ssh-", "sk-a@b", "x"]),
    st.text("A/+=z0é", max_size=40) | st.from_regex(r"A[A-Za-z0-9+/]{15,20}={0,2}", fullmatch=True),
    TEXTS,
).map(" ".join)
NUMBERS = st.integers() | st.sampled_from([0, 1, -1, 2**31, 2**63, 2**64, 10**30])
SECONDS = st.floats() | st.sampled_from([0.0, -1.0, 1e308, 30.0])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FLAVORS = st.just(FLAVOR) | st.dictionaries(
    st.sampled_from(["name", "memory_mb", "vcpus", "local_gb", "flavorid", "cpu_arch", "cpu_info", "extra_specs", "x"]),
    JSON | st.sampled_from(["tp64", ">= 2", {"geometry": "8x8"}, {"capabilities:hypervisor": "s== x"}]),
    max_size=5,
)
GOOD = dict(instance="jackie", owner="jo", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
ODD = dict(
    instance=TEXTS,
    owner=TEXTS,
    flavor=FLAVORS,
    image=TEXTS,
    ssh_public_key=KEYS,
    board=st.none() | NUMBERS,
    count=st.integers(-1, 3) | NUMBERS,
    partial=st.booleans(),
    lease_hours=st.none() | SECONDS,
    move=st.booleans(),
    memory_tolerance=SECONDS,
)
#: Good requests with up to three odd fields.
REQUESTS = st.lists(st.sampled_from(sorted(ODD)), max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: ODD[name] for name in names}).map(lambda odd: {**GOOD, **odd})
)


@pytest.fixture
def proxy(tmp_path):
    """A module's arguments for a proxy with two boards."""
    rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:9{n} 10 16218 917 476 1 tilera_hv 1 {CPU}" for n in range(2)]
    (tmp_path / "tilera_boards").write_text("\n".join(rows) + "\n")
    wiring = {str(n): {"pdu": "pdu-a", "outlet": str(n), "driver": "fake"} for n in range(2)}
    config = dict(
        tftp_root=str(tmp_path / "tftpboot"),
        state_folder=str(tmp_path / "state"),
        run_folder=str(tmp_path / "run"),
        pdus={"pdu-a": {"driver": "fake", "path": str(tmp_path / "pdu.json")}},
        boards=wiring,
        roots_overcommit=10000,
    )
    image = tmp_path / "state" / "images" / ("1" * 64)
    image.mkdir(parents=True)
    (image / "image.json").write_text('{"arch": "tilepro64"}')
    (image.parent / "names").mkdir()
    (image.parent / "names" / "debian").write_text(f"{image.name}\n")
    (tmp_path / "pdu.json").write_text('{"outlets": {"0": "off", "1": "off"}}')
    (tmp_path / "proxy.json").write_text(json.dumps(config))
    files = dict(boards_file=str(tmp_path / "tilera_boards"), config=str(tmp_path / "proxy.json"))
    return dict(files, state_db=str(tmp_path / "state.db"))


def arguments(module, proxy, **given):
    """All arguments of a module."""
    return {**{name: spec.get("default") for name, spec in module.SPEC.options.items()}, **proxy, **given}


def served_or_explained(module, params, check):
    """A result or an error, either of which a module can return as JSON."""
    ended = []
    given = SimpleNamespace(params=params, check_mode=check)

    def end(**result):
        ended.append(json.dumps(result))
        raise SystemExit

    given.exit_json = given.fail_json = end
    try:
        run(given, module.work)
    except SystemExit:
        assert len(ended) == 1
    else:
        pytest.fail("the module went on after its end")


def test_instance_names(try_all):
    def names(text):
        name, error = said(valid_instance, text)
        if error:
            assert isinstance(error, BadInput)
            assert str(error).isprintable()
            return
        assert name == text
        assert re.match(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z", text)

    try_all(600, NAMES | JSON, names)


def test_keys(try_all):
    """A key that is taken can be named by its fingerprint in a diff; a private one is never shown."""

    def taken_or_refused(text):
        keys, error = said(parse_key, text)
        if error:
            assert "MARK" not in str(error)
            return
        lines = text.strip().splitlines()
        assert len(keys) == len(lines)
        assert all(fingerprint(line).startswith("SHA256:") for line in lines)

    try_all(400, KEYS, taken_or_refused)


def test_requests(try_all, proxy):
    def claimed(request):
        served_or_explained(board_claim, arguments(board_claim, proxy, **request), True)

    try_all(400, REQUESTS, claimed)


def test_requests_that_are_written(try_all, proxy):
    """Not only in check mode; what was claimed goes back."""

    def claimed(request):
        served_or_explained(board_claim, arguments(board_claim, proxy, **request), False)
        gone = dict(instance=request["instance"], owner=request["owner"], board=request.get("board"), state="absent")
        served_or_explained(board_claim, arguments(board_claim, proxy, **gone, timeout=0.0), False)

    try_all(100, REQUESTS, claimed)


def test_questions(try_all, proxy):
    """board_info, and what board_image and tilera_boot say to boards and images that are not there."""
    boards = st.lists(st.sampled_from([0, 1]) | NUMBERS, max_size=3)

    def asked(given):
        ids, text, number, seconds = given
        info = dict(boards=ids or None, instance=text or None, events=number, power=False, timeout=seconds)
        served_or_explained(board_info, arguments(board_info, proxy, **info), False)
        image = dict(boards=ids, image=text, name=text, checksum=text, arch=text, ssh_public_key=text, instance=text)
        served_or_explained(board_image, arguments(board_image, proxy, **image, timeout=0.1), True)
        boot = dict(boards=ids, timeout=min(number, 5), retries=number, instance=text, image=text)
        served_or_explained(tilera_boot, arguments(tilera_boot, proxy, **boot), True)

    try_all(200, st.tuples(boards, st.just("") | TEXTS, NUMBERS, SECONDS), asked)


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/a.tar", "http://[::1/a.tar", "http:///a.tar", "x://a\x01b"])
def test_odd_urls(proxy, url):
    """What is no URL is said to be none, before anything is asked of anybody."""
    image = dict(image=url, name="a", checksum="sha256:" + "0" * 64)
    with pytest.raises(HeteroError) as caught:
        board_image.work(arguments(board_image, proxy, **image), False)
    assert caught.value.thing == url
