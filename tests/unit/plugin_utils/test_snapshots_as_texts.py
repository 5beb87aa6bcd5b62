# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of which each is one text. If these fail, status shows another site than there is, or takes ten seconds.

Tests plugin_utils/filters/snapshots.py, plugin_utils/filters/status_page.py.
"""

from __future__ import annotations

import json
import re

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import packed, seen
from ansible_collections.hetero.compute.tests.unit.plugin_utils.site import lab
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_answers import HOST

SILENT = dict(item="p2", msg="no route")


def both(tmp_path):
    """{whether they are texts: snapshots of a proxy node, of one that is silent, and of a host}."""
    answers = dict(p1=dict(lab(tmp_path / "lab").result()), p2=SILENT)
    whole = snapshots(answers), snapshots(dict(gpu1=HOST), hosts=True)
    said = {name: packed(answer) if "claims" in answer else answer for name, answer in answers.items()}
    texts = snapshots(said, as_text=True), snapshots(dict(gpu1=packed(HOST)), hosts=True, as_text=True)
    return {False: whole, True: texts}


def timeless(value):
    """A text without the time at which the snapshots were taken, which differs."""
    return re.sub(r'"taken_at": [0-9.]+|\d\d:\d\d:\d\d', "", value)


def test_a_text_has_all_that_is_known(tmp_path):
    """Lost: what is in none of them, from the table, the page, or the line of JSON."""
    made = both(tmp_path)
    (boards, hosts), (texts, texts_of_hosts) = made[False], made[True]
    assert status_table(texts, hosts=texts_of_hosts) == status_table(boards, hosts=hosts)
    assert timeless(status_page(texts, hosts=texts_of_hosts)) == timeless(status_page(boards, hosts=hosts))
    (line,) = status_table(texts, hosts=texts_of_hosts, as_json=True)
    assert timeless(line) == timeless(json.dumps(dict(proxies=boards, hosts=hosts)))


def test_which_of_them_could_not_be_asked_is_seen_without_reading_it(tmp_path):
    """Lost: the words at the play's end; or a file for the inventory of what was not said."""
    texts, texts_of_hosts = both(tmp_path)[True]
    assert {name: one["error"] for name, one in {**texts, **texts_of_hosts}.items()} == dict(
        p1=None, p2="no route", gpu1=None
    )
    assert seen(texts)["p1"]["boards"]
    assert json.loads(texts["p1"]["packed"])["error"] is None
