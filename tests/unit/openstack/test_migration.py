# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova's files as people left them halfway, drawn at random. If these fail, a service of Nova starts with other cards
than before, or a migration shows a password, or never ends.
"""

from __future__ import annotations

import random

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack import migration, options, specs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack.releases import (
    ALIAS,
    DEVICE_SPEC,
    ENABLED,
)

CONF, DROP_IN = "/etc/nova/nova.conf", "/etc/nova/nova.conf.d/10.conf"
A, AGAIN = '{"name":"a","vendor_id":"10de","product_id":"1d01"}', '{"vendor_id":"10DE", "product_id":"1d01","name":"a"}'
B = '{"name":"b$$c","vendor_id":"8086","product_id":"154d"}'
TWO = '[{"vendor_id":"8086","product_id":"154d"},{"address":"0000:01:00.0"}]'
VALUES = (A, AGAIN, B, TWO, A.replace(",", ",\n    "))
FILTERS = ("PciPassthroughFilter", "ComputeFilter", "RamFilter", "CoreFilter", "RetryFilter")
NAMES = {
    "DEFAULT": ("pci_alias", "pci_passthrough_whitelist", "scheduler_default_filters", "scheduler_available_filters"),
    "pci": ("alias", "device_spec", "passthrough_whitelist"),
    "filter_scheduler": ("enabled_filters", "available_filters"),
    "database": ("connection",),
}


def drawn(by):
    """The text of a file that a person edited for years."""
    lines = []
    for _section in range(by.randint(1, 5)):
        section = by.choice(list(NAMES))
        lines.append(f"[{section}]")
        for name in by.choices(NAMES[section], k=by.randint(0, 4)):
            value = by.choice(VALUES)
            if name.endswith("filters"):
                value = ",".join(by.sample(FILTERS, by.randint(1, 4)))
            if "available" in name:
                value = by.choice(("nova.scheduler.filters.all_filters", "site.Filter"))
            lines.append(f"{name}{by.choice((' = ', '=', ': '))}{value}")
            lines += by.choice(([], [], ["# by hand"], [""]))
    return by.choice(("\n", "\n", "\r\n")).join(lines) + by.choice(("\n", ""))


def read(texts, kind, release, root):
    service = options.told(kind, release, options.PROGRAMS[kind])
    return options.Reading(service, options.Tree(str(root), texts))


def meant(reading, option):
    """The objects that a service takes of an option, each once."""
    return list(dict.fromkeys(one for said in reading.all(option) for one in specs.canonical(options.plain(said))))


@pytest.mark.parametrize("release", [15, 20, 26, 34])
def test_a_migrated_file_means_what_it_meant_and_is_migrated_once(release, tmp_path):
    """Lost: a card that guests had before, or its place before another; or a file that changes with each run."""
    wanted, migrated = (ALIAS, DEVICE_SPEC, ENABLED), 0
    for seed in range(300):
        by = random.Random(seed)
        texts = {CONF: drawn(by), **({DROP_IN: drawn(by)} if seed % 2 else {})}
        kind = by.choice(list(options.PROGRAMS))
        before = read(texts, kind, release, tmp_path)
        found = migration.migrated(before, wanted)
        after = read({**texts, **found.texts}, kind, release, tmp_path)
        for option in (ALIAS, DEVICE_SPEC):
            assert meant(after, option) == meant(before, option), (seed, texts)
            if any(text.startswith(f"half migrated: {option} ") for text in found.findings):
                given = [one for said in after.all(option) for one in specs.canonical(options.plain(said))]
                assert sorted(given) == sorted(set(given)), (seed, texts)
        again = migration.migrated(after, wanted)
        assert [path for path, text in again.texts.items() if after.tree.text(path) != text] == [], (seed, texts)
        assert not any("half migrated" in text for text in again.findings), (seed, texts)
        migrated += bool(found.texts)
    assert migrated > 100


@pytest.mark.parametrize(
    ("release", "given", "stays"),
    [
        (34, "RetryFilter,ComputeFilter", ["ComputeFilter"]),
        (34, "ComputeFilter,NUMATopologyFilter", ["ComputeFilter", "NUMATopologyFilter"]),
        (20, "RetryFilter,ComputeFilter", ["RetryFilter", "ComputeFilter"]),
    ],
)
def test_filters_by_a_name_that_a_release_does_not_read_are_taken_over(release, given, stays, tmp_path):
    """Lost: the filters that a site chose, silently, for Nova then takes its defaults; or the scheduler, which does not
    start with a filter that is gone.
    """
    texts = {CONF: f"[DEFAULT]\nscheduler_default_filters = {given}\n"}
    found = migration.migrated(read(texts, "scheduler", release, tmp_path), (ENABLED,))
    assert read({**texts, **found.texts}, "scheduler", release, tmp_path).value(ENABLED) == stays


def test_a_patch_shows_no_line_that_stays():
    """Lost: the password of Nova's database, which stands beside what changes, to a log of whoever runs the play."""
    old = "[database]\nconnection = mysql://nova:hunter2@db/nova\n[pci]\nalias = 1\n[x]\ntransport_url = hunter2\n"
    patch = migration.difference(CONF, old, old.replace("alias = 1", "alias = 2"))
    assert patch.splitlines() == [f"--- {CONF}", f"+++ {CONF}", "@@ -4 +4 @@", "-alias = 1", "+alias = 2"]
    assert migration.difference(CONF, None, "a = 1\n").splitlines()[2:] == ["@@ -0,0 +1 @@", "+a = 1"]
    assert migration.difference(CONF, old, old) == ""
