# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors against boards: who fits, and what a user reads about those that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.filter.fits import FilterModule
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import (
    describe,
    grouped,
    rejections,
    summary,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import validate
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import read

ROOT = Path(__file__).parents[3]
BOARDS = read(ROOT / "roles" / "lab" / "files" / "tilera_boards")
TYPES = yaml.safe_load((ROOT / "playbooks" / "vars" / "instance_types.yml").read_text(encoding="utf-8"))[
    "hetero_instance_types"
]
fits = FilterModule().filters()["fits"]


def test_all_seven_default_types_are_there_and_valid():
    """The blueprints' instance types must work without any set-up."""
    assert list(TYPES) == ["t64.8x8", "tp64.8x8", "tgx.4x4", "tgx.6x6", "tgx.8x8", "tgx.10x10", "cg1.xlarge"]
    assert [flavor["flavorid"] for flavor in TYPES.values()] == [301, 302, 303, 304, 305, 306, 9]
    for name, flavor in TYPES.items():
        assert flavor["name"] == name
        validate(flavor)


def test_all_ten_boards_serve_tp64():
    """16218 MB is what is left of a nominal 16384, and used gigabytes are the last tenant's: no board may drop out."""
    assert [rejections(TYPES["tp64.8x8"], board) for board in BOARDS] == [[]] * 10
    assert [rejections(TYPES["tp64.8x8"], board.columns) for board in BOARDS] == [[]] * 10
    assert rejections(TYPES["tp64.8x8"], BOARDS[0], tolerance=0) == ["memory_mb 16218 < 16384"]
    assert [fits(TYPES, board.columns) for board in BOARDS] == [["tp64.8x8"]] * 10


def test_two_parts_in_a_hundred_may_be_missing_of_memory_and_of_nothing_else():
    """Lost: a fifth of the memory that a user asked for, or a board for which only its firmware's share is missing."""
    wanted = TYPES["tp64.8x8"]["memory_mb"]
    for lacking, why in ((0.0199, []), (0.0201, ["memory_mb {0} < 16384"]), (0.1, ["memory_mb {0} < 16384"])):
        have = round(wanted * (1 - lacking))
        board = replace(BOARDS[0], memory_mb=have)
        assert rejections(TYPES["tp64.8x8"], board) == [reason.format(have) for reason in why]
        assert fits(TYPES, board.columns) == ([] if why else ["tp64.8x8"])
    assert rejections(TYPES["tp64.8x8"], replace(BOARDS[0], local_gb=495)) == ["local_gb 495 < 500"]


def test_a_board_that_has_exactly_what_is_asked_for_serves_it():
    """Lost: all boards of a site whose flavors say to the last megabyte what its boards have."""
    board = BOARDS[0]
    exact = {"name": "mine", "memory_mb": board.memory_mb, "vcpus": board.vcpus, "local_gb": board.local_gb}
    assert rejections(exact, board, tolerance=0) == []
    for key in ("memory_mb", "vcpus", "local_gb"):
        have = exact[key]
        more = dict(exact, **{key: have + 1})
        assert rejections(more, board, tolerance=0) == [f"{key} {have} < {have + 1}"]
        assert fits({"mine": exact, "more": more}, board.columns, 0) == ["mine"]
    least = {"name": "mine", "memory_mb": 100}
    assert rejections(least, replace(board, memory_mb=98)) == []
    assert rejections(least, replace(board, memory_mb=97)) == ["memory_mb 97 < 100"]


def test_a_rejected_board_says_why():
    """ "No node" without a reason sends the user to the operator."""
    small = replace(BOARDS[0], memory_mb=8109, vcpus=0, local_gb=499)
    assert rejections(TYPES["tp64.8x8"], small) == ["memory_mb 8109 < 16384", "vcpus 0 < 1", "local_gb 499 < 500"]
    assert rejections(TYPES["tgx.4x4"], BOARDS[0]) == ["cpu_arch TILEPro64 is not tile-gx16"]
    assert rejections(TYPES["tp64.8x8"], replace(BOARDS[0], cpu_info={})) == ["has no cpu_arch", "has no geometry"]
    assert rejections(TYPES["tp64.8x8"], {"id": 1}) == [
        *("has no memory_mb", "has no vcpus", "has no local_gb"),
        *("has no cpu_arch", "has no geometry"),
    ]


def test_a_gpu_flavor_is_not_for_boards():
    """cg1.xlarge names no architecture: without its extra_specs a board would be handed out for it."""
    assert rejections(TYPES["cg1.xlarge"], BOARDS[0]) == [
        "hypervisor tilera_hv does not satisfy 's== LXC'",
        "has no gpus",
        "has no gpu_arch",
    ]


@pytest.mark.parametrize(
    ("cpu_info", "expected"),
    [
        ({"features": ["32bvliw", "2GbEMAC"]}, []),
        ({"features": ["32bVLIW", "10GbEMAC"]}, ["features has no 10GbEMAC"]),
        ({"features": "4DDR2"}, []),
        ({"topology": {"cores": 64}, "vendor": "Tilera"}, []),
        ({"topology": {"cores": 32, "threads": 2}}, ["has no topology.threads"]),
        ({"topology": {"cores": 64.5}}, ["topology.cores 64 < 64.5"]),
        ({"vendor": 1}, ["vendor tilera < 1"]),
        ({"features": "4DDR2, 32bvliw,9DDR9"}, ["features has no 9DDR9"]),
        ({"vendor": "tilera,intel"}, ["vendor tilera is not intel"]),
        ({"model": {"name": "x"}}, ["has no model.name"]),
    ],
)
def test_cpu_info_requirements(cpu_info, expected):
    """A flavor may ask for anything that the boards file says of the processor."""
    assert rejections({"cpu_info": cpu_info}, BOARDS[0]) == expected


@pytest.mark.parametrize("features", ["32bvliw,4DDR2", ["32bvliw"]])
def test_one_of_several_features_is_not_there(features):
    """Who reads that the features are "not" 9DDR9 looks for the one that is wrong, and none is."""
    board = replace(BOARDS[0], cpu_info=dict(BOARDS[0].cpu_info, features=features))
    assert rejections({"cpu_info": {"features": "9DDR9"}}, board) == ["features has no 9DDR9"]


@pytest.mark.parametrize(
    ("key", "requirement", "fit"),
    [
        ("vcpus", "= 10", True),
        ("vcpus", "= 11", False),
        ("vcpus", ">= 2", True),
        ("vcpus", "<= 9", False),
        ("vcpus", "== 10", True),
        ("vcpus", "!= 10", False),
        ("vcpus", "10", True),
        ("vcpus", 10, True),
        ("vcpus", "9", False),
        ("hypervisor", "s== tilera_hv", True),
        ("hypervisor", "s!= tilera_hv", False),
        ("hypervisor", "s== Tilera_HV", True),
        ("hypervisor", "= 2", False),
        ("hypervisor", "s<= tilera_hv", True),
        ("hypervisor", "s<= tilera_hu", False),
        ("hypervisor", "s< tilera_hw", True),
        ("hypervisor", "s> tilera_hu", True),
        ("hypervisor", "s>= tilera_hv", True),
        ("hypervisor", "<in> tilera", True),
        ("hypervisor_version", "s>= 2", False),
        ("geometry", "<or> 4x4 <or> 8x8", True),
        ("geometry", "<or> 4x4 <or> 6x6", False),
        ("features", "<all-in> 8x8Grid 4DDR2", True),
        ("features", "<all-in> 8x8Grid 8DDR3", False),
        ("vcpus", "<in> 1", True),
        ("cpu_arch", "s== tilepro64", True),
        ("cpu_arch", "s!= tilepro64", False),
        ("capabilities:cpu_info:arch", "s== TILEPro64", True),
        ("capabilities:topology:cores", ">= 65", False),
        ("hw:cpu_policy", "dedicated", True),
    ],
)
def test_extra_specs_operators(key, requirement, fit):
    """Flavors come from Nova with its operators; `=` is its "at least"."""
    reasons = rejections({"extra_specs": {key: requirement}}, BOARDS[0])
    assert bool(reasons) is not fit
    assert all(str(requirement) in reason for reason in reasons)


def test_what_is_not_for_the_node_hides_nothing_that_is():
    """Of a flavor that speaks to Nova's other parts as well, a board that does not fit would be given."""
    flavor = {"extra_specs": {"hw:cpu_policy": "dedicated", "quota:cpu_shares": "9", "vcpus": ">= 11"}}
    (reason,) = rejections(flavor, BOARDS[0])
    assert ">= 11" in reason


@pytest.mark.parametrize(
    ("flavor", "text"),
    [
        ({"name": "x", "memory_mb": "16384"}, "flavor x: memory_mb is '16384': give a whole number of 0 or more"),
        ({"name": "x", "vcpus": -1}, "flavor x: vcpus is -1: give a whole number of 0 or more"),
        ({"local_gb": True}, "flavor: local_gb is True: give a whole number of 0 or more"),
        ({"name": "x", "memory": 1}, "flavor x: unknown key 'memory': write memory_mb$"),
        ({"name": 7}, "flavor: name is 7: give a text"),
        ({"name": "x", "cpu_arch": None}, "flavor x: cpu_arch is None: give a text"),
        ({"name": "x", "flavorid": []}, "flavor x: flavorid is \\[\\]: give a number or a text"),
        ({"name": "x", "cpu_info": "8x8"}, "flavor x: cpu_info is '8x8': give a mapping"),
        ({"name": "x", "extra_specs": "s== LXC"}, "flavor x: extra_specs is 's== LXC': give a mapping such as"),
        ({"name": "x", "extra_specs": {1: "= 2"}}, "flavor x: extra_specs has 1 as a key: put it in quotes"),
        ({"name": "x", "extra_specs": {"gpus": "= two"}}, "flavor x: extra_specs.gpus is '= two': give '=' a number"),
        ({"name": "x", "extra_specs": {"gpus": []}}, "flavor x: extra_specs.gpus is \\[\\]: give it as text"),
        ({"name": "x", "extra_specs": {"hypervisor": "s=="}}, "extra_specs.hypervisor is 's==': give 's==' something"),
        (
            {"name": "x", "extra_specs": {"gpus": "<= 2"}},
            "flavor x: extra_specs.gpus is '<= 2': give the number of GPUs",
        ),
        (
            {"name": "x", "extra_specs": {"pci_passthrough:alias": "a1"}},
            "flavor x: extra_specs.pci_passthrough:alias is 'a1': write",
        ),
        (
            {"name": "x", "cpu_info": {"geometry": 8}},
            "flavor x: cpu_info.geometry is 8: give rows and columns",
        ),
        ({"name": "x", "cpu_info": {"a": {"b": None}}}, "flavor x: cpu_info.a.b is None: give the least number"),
        (
            {"vcpus": -1, "hue": 1},
            "flavor: vcpus is -1: give a whole number of 0 or more; unknown key 'hue': use n",
        ),
        (["tp64.8x8"], "flavor: is \\['tp64.8x8'\\]: give a mapping"),
        ({"cpu_info": {"features": []}}, "flavor: cpu_info.features is \\[\\]: list texts such as \\[sse4, aes\\]"),
        ({"cpu_info": {"features": ["aes", None]}}, "flavor: cpu_info.features is \\['aes', None\\]: list texts"),
        ({"cpu_info": {"features": ["aes", True]}}, "flavor: cpu_info.features is \\['aes', True\\]: list texts"),
    ],
)
def test_a_bad_flavor_is_named_with_its_key(flavor, text):
    """A slip in a flavor must not look like "no board fits"."""
    with pytest.raises(BadInput, match=f"^{text}|: {text}"):
        validate(flavor)


def test_a_list_of_texts_and_numbers_is_one():
    """Lost: a flavor for machines with certain features, refused with the advice to write what was written."""
    validate({"name": "x", "cpu_info": {"features": ["sse4", "aes"], "steppings": [1, 2.5]}})


def test_describe():
    """The answer repeats what was asked for, so that a wrong flavor is seen at once."""
    assert describe("tgx.8x8", TYPES["tgx.8x8"]) == "tgx.8x8 (tile-gx64, 8x8, 16384 MB, 500 GB)"
    assert describe("cg1.xlarge", TYPES["cg1.xlarge"]) == (
        "cg1.xlarge (16384 MB, 160 GB, hypervisor LXC, gpus 2, gpu_arch fermi)"
    )
    assert describe("any", {"extra_specs": {"gpus": ">= 2"}}) == "any (gpus >= 2)"
    assert describe("any", {}) == "any"


def test_summary_puts_the_same_reasons_together():
    """Forty boards must not be forty lines, and three must keep their names."""
    wrong = rejections(TYPES["tgx.8x8"], BOARDS[0])
    assert summary({board.name: wrong for board in BOARDS}) == ["10 boards: cpu_arch TILEPro64 is not tile-gx64"]
    rejected = {"board0": ["running jackie"], "board1": ["error"], "board2": ["error"], "board3": []}
    rejected.update({f"board{number}": ["maintenance"] for number in range(10, 14)})
    rejected.update({f"board{number}": ["vcpus 0 < 1", "has no cpu_arch"] for number in range(20, 32)})
    assert summary(rejected, noun="nodes") == [
        "12 nodes: vcpus 0 < 1, has no cpu_arch",
        " 4 nodes: maintenance",
        "board1, board2: error",
        "board0: running jackie",
    ]
    assert summary({}) == []


def test_filter_refuses_what_it_cannot_judge():
    """A template with its arguments mixed up must say so instead of naming nothing."""
    board = BOARDS[0].columns
    with pytest.raises(AnsibleFilterError, match="flavor small: vcpus is -1"):
        fits({"small": {"vcpus": -1}}, board)
    with pytest.raises(AnsibleFilterError, match="needs a mapping of instance types"):
        fits(["tp64.8x8"], board)
    with pytest.raises(AnsibleFilterError, match="needs a board"):
        fits(TYPES, "board0")
    for tolerance in (2, 1, -0.1, True):
        with pytest.raises(AnsibleFilterError, match=f"tolerance is {tolerance}: give a number from 0 to below 1"):
            fits(TYPES, board, tolerance)
    assert fits(TYPES, board, 0) == []
    assert fits(TYPES, board, 0.99) == ["tp64.8x8"]


@pytest.mark.parametrize(("same", "said"), [(3, "board0, board1, board2: off"), (4, "4 boards: off")])
def test_three_are_named_and_four_are_counted(same, said):
    """Three names are read at a glance; a rack of them hides the one that differs."""
    assert summary({**{f"board{number}": ["off"] for number in range(same)}, "board9": ["on"]})[0] == said


def test_one_of_its_kind_is_named_and_all_of_a_kind_are_counted():
    """Lost: the name of the only host of a site; or the word that all boards are out, in a list of their names."""
    told = [("boards", "board0", ["off"]), ("hosts", "h1", ["full"]), ("hosts", "h2", ["full"])]
    assert grouped(told, all_as_number=True) == ["2 hosts: full", "board0: off"]
    assert grouped(told) == ["h1, h2: full", "board0: off"]
    told.append(("hosts", "h3", ["off"]))
    assert grouped(told, all_as_number=True)[0] == "h1, h2: full"


def test_what_is_not_asked_for_is_not_missed():
    """Lost: a board of which the facts do not say all, for a flavor that wants none of that."""
    assert rejections({"name": "any"}, {"cpu_info": {}}) == []
    assert rejections({"memory_mb": 0}, {}) == []
    assert rejections({"memory_mb": 1}, {}) == ["has no memory_mb"]
