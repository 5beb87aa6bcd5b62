# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Nova service has of its PCI options, beside Nova's own reading of the same files. If this fails, options are
written where the service does not look, and nobody sees it.

Tests openstack/device_match.py, openstack/specs.py.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack import filters, options, pci, specs
from ansible_collections.hetero.compute.plugins.modules.nova_pci import work
from ansible_collections.hetero.compute.tests.turns import todays

#: A way to start a service: (name, kind, command, in a web server, environment)
STARTS = [
    ("no arguments", "scheduler", "nova-scheduler", False, {}),
    ("no arguments", "compute", "nova-compute", False, {}),
    ("--config-file", "scheduler", "nova-scheduler --config-file=/etc/nova/nova.conf", False, {}),
    ("--config-file", "compute", "nova-compute --config-file /etc/nova/nova.conf --config-file=~/own.conf", False, {}),
    ("--config-dir", "scheduler", "nova-scheduler --config-dir /etc/nova/extra --debug", False, {}),
    (
        "--config-dir",
        "compute",
        "nova-compute --config-dir=/etc/nova/extra --config-file=/etc/nova/nova.conf --config-dir=/etc/more",
        False,
        {},
    ),
    ("WSGI", "api", None, True, {}),
    ("WSGI", "api", None, True, {"OS_NOVA_CONFIG_DIR": " /etc/other ", "OS_NOVA_CONFIG_FILES": "b.conf;a.conf"}),
    ("WSGI", "api", "nova-api-os-compute --config-dir=/etc/nova/extra", True, {}),
    ("environment", "scheduler", "nova-scheduler", False, {"OS_FILTER_SCHEDULER__ENABLED_FILTERS": "A, B"}),
    ("environment", "compute", "nova-compute", False, {"SNAP": "/etc/snap"}),
]
#: Files that one or other of them reads, and some that none does.
FILES = [
    *("etc/nova/nova.conf", "etc/nova.conf", "etc/nova/nova-compute.conf", "etc/nova-scheduler.conf"),
    *("etc/nova/nova.conf.d/10-a.conf", "etc/nova/nova.conf.d/zz.conf", "etc/nova/nova.conf.d/no.txt"),
    *("etc/nova.conf.d/b.conf", "etc/nova/nova-scheduler.conf.d/c.conf", "etc/nova/extra/d.conf", "etc/more/e.conf"),
    *(
        "etc/home/own.conf",
        "etc/home/.nova/nova.conf",
        "etc/other/a.conf",
        "etc/other/b.conf",
        "etc/snap/etc/nova/nova.conf",
    ),
    *("etc/nova/api-paste.ini", "etc/nova/nova-api-os-compute.conf.d/f.conf", "etc/nova/nova.conf.d/.hidden.conf"),
]
#: Always there, or the service would not start.
NEEDED = [
    *("etc/nova/nova.conf", "etc/nova/extra/d.conf", "etc/home/own.conf", "etc/more/e.conf", "etc/other/a.conf"),
    *("etc/other/b.conf", "etc/nova/api-paste.ini"),
]
NEW = [
    *(("pci", "alias"), ("pci", "device_spec"), ("filter_scheduler", "enabled_filters")),
    *(("filter_scheduler", "available_filters"), ("filter_scheduler", "pci_in_placement")),
]
OLD = [
    *(("DEFAULT", "pci_alias"), ("DEFAULT", "pci_passthrough_whitelist"), ("pci", "passthrough_whitelist")),
    *(("DEFAULT", "scheduler_default_filters"), ("DEFAULT", "scheduler_available_filters")),
]
NAMES = {"new": NEW, "old": OLD, "both": [*NEW, *OLD]}
FILTERS = ["ComputeFilter", "PciPassthroughFilter", "A, B", "A,B ,", "", '"A,B"', "  A", "RamFilter,\n   ComputeFilter"]
CASES = 8
K2 = {"vendor_id": "10de", "product_id": "11be"}
A1 = dict(K2, name="k2")


def value(draw, name, sound):
    """Values are told apart by a number; some are quoted, hold dollar signs, or go on in a next line."""
    if name == "pci_in_placement":
        return draw.choice(["true", "False", "yes"])
    if "filters" in name:
        return draw.choice(FILTERS)
    spec = json.dumps({"name": f"a{draw.randrange(1000)}", "vendor_id": "10de", "product_id": "11bf"})
    forms = [spec, spec, f'"{spec}"', spec.replace(", ", ",\n  ")]
    return draw.choice(forms if sound else [*forms, spec.replace("10de", "$$x"), r"\$1 $ 5$"])


def text(draw, names, sound):
    lines = []
    for _number in range(draw.randrange(4)):
        section, name = draw.choice(names)
        section = draw.choice([section, section, section.upper() if section == "pci" else section])
        lines += [f"[{section}]", f"{name}{draw.choice([' = ', '=', ' : '])}{value(draw, name, sound)}"]
        lines += draw.choice([[], ["# a comment"], [""], ["other = 1"]])
    return "\n".join(lines) + draw.choice(["\n", ""])


def lay(draw, root, names, sound=False):
    for path in FILES:
        if path in NEEDED or draw.random() < 0.4:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text(draw, names, sound))
    # a file that must be there is missing
    if not sound and draw.random() < 0.35:
        (root / draw.choice(NEEDED)).unlink()


def ours(service, root):
    try:
        return with_defaults(pci.effective(service, options.Tree(str(root))))
    except BadInput:
        return dict(error="refused")


def with_defaults(found):
    """What Nova has where nobody tells it."""
    defaults = dict(enabled_filters=filters.defaults(34), available_filters=[filters.ALL])
    return {name: defaults.get(name, []) if value is None else value for name, value in found.items()}


@pytest.mark.dear
@pytest.mark.parametrize("days", [4, pytest.param(1, marks=pytest.mark.long)])
def test_each_way_of_starting_a_service_reads_what_nova_reads(ask_nova, tell, tmp_path, days):
    draw = random.Random(6)
    cases, mine = [], []
    for start, kind, command, wsgi, environment in STARTS:
        for which, names in NAMES.items():
            for _number in range(CASES):
                root = tmp_path / f"{len(cases)}"
                lay(draw, root, names)
                service = options.told(kind, 34, command, wsgi, environment, "/etc/home")
                argv = [f"/usr/bin/{service.program}", *service.arguments]
                told = dict(environment, HOME="/etc/home")
                cases.append(dict(start=start, names=which, root=str(root), argv=argv, environment=told, wsgi=wsgi))
                mine.append(ours(service, root))
    # two of the eight of each way and each kind of names a day
    cases, mine = todays(cases, days), todays(mine, days)
    answers = ask_nova("effective", cases)
    tally, differ = Counter(), []
    for case, found, answer in zip(cases, mine, answers):
        answer = dict(error="refused") if "error" in answer else answer
        tally[
            case["start"], case["names"], "refused" if "error" in answer else "told" if set_(answer) else "default"
        ] += 1
        if found != answer:
            differ.append((case, found, answer))
    tell("started         names  cases  told  defaults  refused")
    for start in dict.fromkeys(case["start"] for case in cases):
        for which in NAMES:
            counts = [tally[start, which, outcome] for outcome in ("told", "default", "refused")]
            tell(f"{start:<15} {which:<5} {sum(counts):6} {counts[0]:5} {counts[1]:9} {counts[2]:8}")
            assert counts[0] >= 0.5 * sum(counts) or days > 1
    assert differ == [], f"{len(differ)} differ"
    # a day's share may have hardly one of them
    refused = sum(count for (_start, _names, outcome), count in tally.items() if outcome == "refused")
    assert refused >= 10 or days > 1


@pytest.mark.dear
def test_what_is_written_is_what_nova_then_has(ask_nova, tell, tmp_path):
    """Files of any shape, and our options put into them: Nova has them, and all else that it had before."""
    draw = random.Random(7)
    cases, wrote, where = [], [], Counter()
    for start, kind, command, wsgi, environment in STARTS:
        for names in [*NAMES.values()] * 2 if start != "environment" else ():
            root = tmp_path / f"{len(cases)}"
            lay(draw, root, names, sound=True)
            before = ours(options.told(kind, 34, command, wsgi, environment, "/etc/home"), root)
            said = dict(command=command, wsgi=wsgi, environment=environment, home="/etc/home", root=str(root))
            asked = dict(kind=kind, release="34", aliases=[A1], device_specs=[K2], migrate=draw.random() < 0.3)
            result = work(dict(said, **asked, state="present"), False)
            service = options.told(kind, 34, command, wsgi, environment, "/etc/home")
            argv = [f"/usr/bin/{service.program}", *service.arguments]
            told = dict(environment, HOME="/etc/home")
            cases.append(dict(root=str(root), argv=argv, environment=told, wsgi=wsgi))
            # an old list that Nova does not read is taken up when it is migrated
            told_filters = None if asked["migrate"] else before["enabled_filters"]
            wrote.append((kind, before, told_filters, result))
    for (kind, before, told_filters, result), answer in zip(wrote, ask_nova("effective", cases)):
        assert with_defaults(result["effective"]) == answer
        for option, kinds in pci.NEEDED.items():
            if kind in kinds and option in ("alias", "device_spec"):
                values = [json.loads(text) for text in answer[option]]
                assert (A1 if option == "alias" else K2) in values
                assert {one for text in before[option] for one in specs.canonical(text)} <= set(map(canon, values))
        if kind == "scheduler":
            assert filters.PCI in answer["enabled_filters"]
        if kind == "scheduler" and told_filters is not None:
            kept = [name for name in told_filters if not filters.gone(name, 34)]
            assert set(answer["enabled_filters"]) == {*kept, filters.PCI}
        where["a file of our own" if any("hetero-pci" in path for path in result["files"]) else "a file that wins"] += 1
    tell(f"{len(cases)} written: " + ", ".join(f"{count} into {place}" for place, count in where.items()))
    assert min(where.values()) >= 10


def canon(value):
    return specs.canonical(json.dumps(value))[0]


def set_(answer):
    """Whether any option has a value that is not the default."""
    told = answer["alias"] or answer["device_spec"] or answer["pci_in_placement"]
    return told or answer["enabled_filters"] != filters.defaults(34) or answer["available_filters"] != [filters.ALL]
