# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own flavors. If these fail, a slip in one of them is found when a request says "no node", or never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.filter.flavors import FilterModule
from ansible_collections.hetero.compute.plugins.plugin_utils.flavors_file import FlavorsFile

DEFAULTS = yaml.safe_load(
    (Path(__file__).parents[3] / "playbooks" / "vars" / "instance_types.yml").read_text(encoding="utf-8")
)["hetero_instance_types"]
flavors = FilterModule().filters()["flavors"]

GOOD = """\
arm.small: &small
  memory_mb: 4096
  vcpus: 4
  local_gb: 50
  cpu_arch: aarch64
arm.big:
  <<: *small
  memory_mb: 8192
  flavorid: arm-2
  cpu_info: {features: "crc32,sha2", topology: {cores: 8}}
"""
BAD = """\
# the site's own
arm.small:
  memory_mb: 4 GB
  vcpus: 4
  cpu_archs: aarch64
tp64.mine:
  flavorid: 302
  cpu_info:
    geometry: 8*8
    topology: {cores: ~}
gpu.one:
  flavorid: 7
  extra_specs:
    hypervisor: s==
    gpus: two
gpu.two: {flavorid: "7", name: gpu.2}
7: {vcpus: 1}
gpu.three: [1]
"""
#: Line, and what a person reads there.
WRONG = [
    "3:3: flavor arm.small: memory_mb is '4 GB': give a whole number of 0 or more",
    "5:3: flavor arm.small: unknown key 'cpu_archs': write cpu_arch",
    "7:3: flavor tp64.mine: flavorid 302 is tp64.8x8's already: give each flavor its own, or leave it out",
    "9:5: flavor tp64.mine: cpu_info.geometry is '8*8': give rows and columns of cores, such as 8x8",
    "10:16: flavor tp64.mine: cpu_info.topology.cores is None: give the least number, or texts",
    "14:5: flavor gpu.one: extra_specs.hypervisor is 's==': give 's==' something to compare with",
    "15:5: flavor gpu.one: extra_specs.gpus is 'two': give the number of GPUs, such as '= 2'",
    "16:11: flavor gpu.two: flavorid 7 is gpu.one's already",
    "16:26: flavor gpu.two: name is 'gpu.2': write gpu.two, or leave it out",
    "17:1: 7 is no name of a flavor: give one line of text",
    "18:1: flavor gpu.three: is [1]: give a mapping",
]


@pytest.fixture
def write(tmp_path):
    def one(text, name="flavors.yml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return one


def said(path, own=None):
    """The lines of the error, without the file's folder."""
    with pytest.raises(AnsibleFilterError) as caught:
        flavors(DEFAULTS, own, path)
    return [line.replace(f"{path}:", "") for line in str(caught.value).splitlines()]


def test_defaults_variables_and_a_file_are_one_table(write):
    """Each way in, with the flavor's name given to it; one of the site's own replaces a default of its name."""
    own = {"tp64.8x8": dict(DEFAULTS["tp64.8x8"], memory_mb=8192), "plain": {}}
    table = flavors(DEFAULTS, own, write(GOOD))
    assert list(table) == [*DEFAULTS, "plain", "arm.small", "arm.big"]
    assert (table["tp64.8x8"]["memory_mb"], table["plain"]) == (8192, {"name": "plain"})
    assert (table["arm.big"]["memory_mb"], table["arm.big"]["cpu_arch"]) == (8192, "aarch64")
    assert flavors(DEFAULTS, None, "") == DEFAULTS
    assert flavors(DEFAULTS, file=write("")) == DEFAULTS


def test_json_and_a_file_of_variables_are_the_same(write):
    plain = flavors(DEFAULTS, file=write(GOOD))
    data = {name: flavor for name, flavor in plain.items() if name not in DEFAULTS}
    for indent in (None, 2, "\t"):
        assert flavors(DEFAULTS, file=write(json.dumps(data, indent=indent), "flavors.json")) == plain
    assert flavors(DEFAULTS, file=write(yaml.safe_dump({"hetero_extra_instance_types": data}))) == plain


def test_all_that_is_wrong_is_said_at_once_and_where(write):
    """Who corrects one line a run gives up before the last."""
    lines = said(write(BAD))
    assert len(lines) == len(WRONG), lines
    for line, wanted in zip(lines, WRONG):
        assert line.startswith(wanted)
    under = said(write("hetero_extra_instance_types:\n" + "".join(f"  {line}\n" for line in BAD.splitlines())))
    places = [f"{int(line.partition(':')[0]) + 1}:{int(line.split(':')[1]) + 2}:" for line in WRONG]
    assert [line.startswith(place) for line, place in zip(under, places)] == [True] * len(WRONG), under


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: {vcpus: 1}\nb: {vcpus: 1}\na: {vcpus: 2}\n", ["3:1: a is here twice: line 1 has it already"]),
        ("a:\n  vcpus: 1\n  vcpus: 2\n", ["3:3: vcpus is here twice: line 2 has it already"]),
        ("a: {vcpus: 1\nb: 2\n", ["2:2: is no YAML: "]),
        ("a: {vcpus: =}\n", ["1:12: is no YAML: could not determine a constructor"]),
        ("- a\n", ["1:1: is no mapping of flavors by name: write NAME"]),
        ("? [a, b]\n: {}\n", ["1:3: a key that is no text: put it in quotes"]),
        ("a: &a\n  cpu_info: *a\n", ["1:4: goes deeper than 20 mappings"]),
        (b"a: \xff\n", [" is no UTF-8 text"]),
        ("a: \x00\n", [" is no YAML: unacceptable character"]),
        ("hetero_extra_instance_types: [a]\n", ["1:30: is no mapping"]),
        ("a: {cpu_info: {8: 8}}\n", ["1:16: flavor a: cpu_info.8 is no text as a key: put it in quotes"]),
    ],
)
def test_what_is_no_table_at_all(write, text, wanted):
    lines = said(write(text))
    assert len(lines) == len(wanted), lines
    assert all(line.startswith(start) for line, start in zip(lines, wanted)), lines


def test_a_file_that_is_not_there(tmp_path):
    assert said(str(tmp_path / "none.yml")) == [" cannot be read: No such file or directory"]


def test_variables_have_no_lines_but_all_else(write):
    path = write("arm.small: {vcpus: x}\n")
    assert said(path, {"arm.small": {"vcpus": -1, "memory": 1}, "other": 7}) == [
        "hetero_extra_instance_types: flavor arm.small: vcpus is -1: give a whole number of 0 or more",
        "hetero_extra_instance_types: flavor arm.small: unknown key 'memory': write memory_mb",
        "hetero_extra_instance_types: flavor other: is 7: give a mapping with memory_mb, vcpus, local_gb, cpu_arch ...",
        " flavor arm.small is in hetero_extra_instance_types as well: leave one out",
        "1:13: flavor arm.small: vcpus is 'x': give a whole number of 0 or more",
    ]
    with pytest.raises(AnsibleFilterError, match="hetero_extra_instance_types is no mapping of flavors by name"):
        flavors(DEFAULTS, ["arm.small"])


def test_what_is_wrong_is_told_in_the_order_of_the_file(write):
    """Lost: the way through a long file, to whoever corrects it from its top; or the flavors that are right."""
    path = write("z: {vcpus: x}\na: {vcpus: 1}\nm: {vcpus: y}\n")
    file = FlavorsFile(path, DEFAULTS)
    assert [line.replace(f"{path}:", "").partition(": ")[0] for line in file.defects] == ["1:5", "3:5"]
    assert list(file.flavors) == ["z", "a", "m"]


def test_a_file_that_says_nothing_has_no_flavors_and_no_mistake(write):
    """Lost: all requests, to a file of comments that somebody begins with."""
    for text in ("", "# none yet\n", "hetero_extra_instance_types:\n", "---\n..."):
        file = FlavorsFile(write(text), DEFAULTS)
        assert (file.flavors, file.defects) == ({}, [])
