# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cgroup of one version or of both, in folders; real ones are in test_v1.py and test_v2.py.

Tests devices/cgroup/devices.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import DeviceCgroup, of_path
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import V2, Program
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs

GPU = parse("c 195:0 rw")
MOUNTS = """\
36 31 0:33 / {0}/devices rw,relatime - cgroup cgroup rw,devices
37 31 0:34 / {0}/freezer rw,relatime - cgroup cgroup rw,freezer
41 31 0:38 / {0}/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
"""


@pytest.fixture
def host(tmp_path):
    """A /proc with mounts of both versions, and cgroups of the names given, each in those folders."""

    def build(**folders):
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/mountinfo").write_text(MOUNTS.format(tmp_path))
        for folder, names in folders.items():
            for name in names:
                (tmp_path / folder / name).mkdir(parents=True)
        return str(tmp_path / "proc")

    return build


@pytest.mark.parametrize(
    ("v1", "v2", "version", "missing"),
    [
        (V1("/a"), None, "v1", "v2"),
        (None, V2("/b"), "v2", "v1"),
        (V1("/a"), V2("/b"), "hybrid", None),
    ],
)
def test_the_version_is_told(v1, v2, version, missing):
    """Lost: which of the two a remedy is for; a program compares these words."""
    cgroup = DeviceCgroup("jackie", v1, v2)
    assert cgroup.version == version
    if missing == "v1":
        with pytest.raises(Refused, match="jackie: has no device cgroup of v1: it is v2"):
            cgroup.allow_v1(GPU)
    if missing == "v2":
        for change in (lambda: cgroup.forbid([GPU], "ledger-7"), lambda: cgroup.unforbid("ledger-7")):
            with pytest.raises(Refused, match="jackie: has no device cgroup of v2: it is v1"):
                change()


def test_all_that_counts_is_looked_at_once(monkeypatch, tmp_path):
    """Lost: what one of the two versions denies."""
    (tmp_path / "devices.list").write_text("c 195:0 rw\nc 1:3 rwm\n")
    program = Program(7, "", device_programs.lxc([parse("c 195:* rw")], 0))
    monkeypatch.setattr(V2, "effective", [program])
    v1, v2 = V1(str(tmp_path)), V2(str(tmp_path))
    both = DeviceCgroup("jackie", v1, v2).look()
    assert both == ("jackie", v1, [GPU, parse("c 1:3 rwm")], [program])
    assert DeviceCgroup("jackie", v1, None).look() == ("jackie", v1, [GPU, parse("c 1:3 rwm")], [])
    assert DeviceCgroup("jackie", None, v2).look() == ("jackie", None, [], [program])
    cgroup = DeviceCgroup("jackie", v1, v2)
    assert [cgroup.may("c", *numbers, "rw") for numbers in ((195, 0), (195, 1), (1, 3))] == [True, False, False]
    assert cgroup.verdict(parse("c 195:0 rwm")) == "partly"
    assert cgroup.allows_everything() is False
    assert [(side.version, side.allows) for side in cgroup.sides(parse("c 1:3 rw"))] == [("v1", True), ("v2", False)]


@pytest.mark.parametrize("limitable", [True, False])
def test_a_program_is_put_where_it_counts_for_the_cgroup_alone(monkeypatch, tmp_path, limitable):
    """Lost: a device of the whole machine; or the number of the program, by which bpftool finds it."""
    monkeypatch.setattr(V2, "forbid", lambda side, rules, owner: (side.path, rules, owner))
    monkeypatch.setattr(V2, "unforbid", lambda side, owner: (side.path, owner))
    cgroup = DeviceCgroup("jackie", None, V2(str(tmp_path)))
    if limitable:
        (tmp_path / "cgroup.type").write_text("domain\n")
        assert cgroup.forbid([GPU], "ledger-7") == (str(tmp_path), [GPU], "ledger-7")
    else:
        with pytest.raises(Refused, match="whole machine"):
            cgroup.forbid([GPU], "ledger-7")
    assert cgroup.unforbid("ledger-7") == (str(tmp_path), "ledger-7")


@pytest.mark.parametrize("path", ["a/b", "/a/b", "a//b/", "{}/devices/a/b", "{}/unified/a/b"])
def test_a_cgroup_is_named_by_its_folder_or_its_name(host, tmp_path, path):
    """Lost: one of its halves, and with it half of what counts."""
    proc, path = host(devices=["a/b"], unified=["a/b"], freezer=["a/b", "c"]), path.format(tmp_path)
    found = of_path(path, proc)
    assert found == (f"cgroup {path}", V1(f"{tmp_path}/devices/a/b"), V2(f"{tmp_path}/unified/a/b"))


def test_the_half_that_there_is_counts(host, tmp_path):
    """Lost: each cgroup that only one version has."""
    proc = host(devices=["a"], unified=["b"], freezer=["c"])
    assert of_path("a", proc)[1:] == (V1(f"{tmp_path}/devices/a"), None)
    assert of_path("b", proc)[1:] == (None, V2(f"{tmp_path}/unified/b"))
    for path in ("c", f"{tmp_path}/freezer/c", f"{tmp_path}/proc"):
        with pytest.raises(BadInput, match="is no device cgroup") as refused:
            of_path(path, proc)
        points = f"{tmp_path}/devices, {tmp_path}/unified"
        assert refused.value.remedy == f"name a directory below one of: {points}"
        assert refused.value.thing == f"cgroup {path}"


def test_a_host_without_cgroups_is_told(host, tmp_path):
    """Lost: what is missing there."""
    proc = host()
    (tmp_path / "proc/self/mountinfo").write_text("")
    with pytest.raises(BadInput, match="name a directory below one of: none mounted"):
        of_path("a", proc)
