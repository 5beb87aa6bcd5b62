# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many boards in one call, where a process may have few files open. If these fail, a request for a rack of boards ends
in a traceback halfway, with boards that are on, claimed, and cannot be taken back by the same call.

Tests core/descriptors.py, core/readiness.py.
"""

from __future__ import annotations

import fcntl
import os
import resource
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import descriptors, job
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.readiness import readable, writable
from ansible_collections.hetero.compute.tests.unit.boards.work.test_claims_given import present, proxy

__all__ = ["proxy"]


def fill(site, count, **fake):
    """Make a site a proxy with so many boards on one PDU, each claimed and ready, which boot as `fake` says."""
    fed = dict(pdu="pdu-r", driver="fake", fake=fake)
    site.config["pdus"]["pdu-r"] = {"driver": "fake", "path": str(site.folder / "pdu-r.json")}
    site.config["boards"] = {str(number): dict(fed, outlet=str(number + 1)) for number in range(count)}
    row = (site.folder / "tilera_boards").read_text().splitlines()[0].split(maxsplit=3)[3]
    macs = [f"00:1a:ca:00:{n >> 8:02x}:{n & 255:02x}" for n in range(count)]
    rows = [f"{n} 10.0.{2 + n // 250}.{n % 250 + 1} {macs[n]} {row}" for n in range(count)]
    (site.folder / "tilera_boards").write_text("\n".join(rows) + "\n")
    site.pdu("pdu-r", {str(outlet): "off" for outlet in range(1, count + 1)})
    site.write()
    site.claim_rack(count)


@pytest.fixture
def rack(site, request):
    """(a proxy with boards on one PDU, each claimed and ready; how many)."""
    fill(site, request.param, tftp=0.0, nfs=0.0, running=0.0)
    return site, request.param


@pytest.fixture
def few_files():
    """Lets this process have so many more open files than it has, and at most so many."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def limit(more, hard=None):
        there = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (there + more, hard or before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("rack", [60, pytest.param(1000, marks=pytest.mark.long)], indirect=True)
def test_a_rack_starts_and_stops_where_few_files_may_be_open_at_first(rack, few_files):
    """Lost: all of a request, to a limit that the process itself could have raised."""
    site, count = rack
    few_files(count // 2)
    started = site.run("start", *range(count))
    assert not started.get("failed"), started.get("msg")
    assert {board["state"] for board in started["boards"]} == {"running"}
    few_files(count // 2)
    stopped = site.run("stop", *range(count))
    assert not stopped.get("failed"), stopped.get("msg")
    assert {site.power(number) for number in range(count)} == {"off"}


def test_what_would_need_more_than_the_system_gives_is_refused_before_it_begins(monkeypatch):
    """Lost: half a rack, claimed and on, where the limit is hard."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    set_to = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: set_to.append(limits))
    descriptors.make_room(100)
    assert set_to == []
    descriptors.make_room(500)
    assert set_to == [(128 + 7 * 500, 4096)]
    with pytest.raises(Refused) as refused:
        descriptors.make_room(1000)
    assert "1000 boards: need 7128 open files at once, and this process may have 4096" in str(refused.value)
    assert "name at most 566 at once" in str(refused.value)
    descriptors.make_room(566)


def test_more_boards_than_could_be_worked_on_are_not_claimed(monkeypatch, proxy):
    """Lost: a rack, claimed for who can neither start nor stop it whole where the limit is hard."""
    most = descriptors.BESIDES + 2 * descriptors.OF_BOARD
    monkeypatch.setattr(resource, "getrlimit", lambda which: (most, most))
    with pytest.raises(Refused, match=r"3 boards: need .*: name at most 2 at once"):
        present(proxy, "lab", count=3)
    assert proxy.store.claims() == []
    present(proxy, "lab", count=2)
    assert [claim.board for claim in proxy.store.claims()] == [0, 1]


def test_files_beyond_the_first_thousand_are_waited_for():
    """Lost: a boot that was seen, to `filedescriptor out of range in select()`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reader, writer = os.pipe()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        high = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, 1500)
        assert high >= 1500
        assert readable([high], 0) == []
        assert writable([writer], 0) == [writer]
        os.write(writer, b"!")
        assert readable([high]) == [high]
        os.read(high, 1)
        os.close(writer)
        assert readable([high]) == [high], "its end is something to read"
        os.close(high)
    finally:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_fault_of_the_collection_in_the_background_is_said_in_words(monkeypatch):
    """Lost: what happened and what to do, to a traceback whose last line is all that a play shows."""
    ended = []
    monkeypatch.setattr(job, "detach", lambda run_folder: None)
    monkeypatch.setattr(job, "finish", ended.append)

    def breaks():
        raise KeyError("nobody foresaw it")

    job.in_background(SimpleNamespace(params={}), lambda: ("", {}), breaks)
    (result,) = ended  # pylint: disable=unreachable
    assert result["failed"]
    assert result["msg"].startswith(
        "a fault of this collection ended the work: KeyError: 'nobody foresaw it': run this"
    )
    assert "in breaks" in result["exception"]
