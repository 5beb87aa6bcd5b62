# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of `hetero VERB`. If these fail, a verb reads another configuration than the one that is named."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.verb_parser import verb_parser


def test_a_verb_reads_its_nodes_configuration_or_the_one_that_is_named(capsys):
    """Lost: the node of a second proxy on one machine."""
    words = verb_parser("reap", "End what is over.", "/etc/hetero/proxy.json", "proxy")
    words.add_argument("--dry-run", action="store_true")
    assert words.parse_args([]).config == "/etc/hetero/proxy.json"
    found = words.parse_args(["--config", "/tmp/p.json", "--dry-run"])
    assert (found.config, found.dry_run) == ("/tmp/p.json", True)
    with pytest.raises(SystemExit):
        words.parse_args(["--help"])
    shown = capsys.readouterr().out
    assert "usage: hetero reap" in shown
    assert "End what is over." in shown
    assert "the proxy's configuration (/etc/hetero/proxy.json)" in " ".join(shown.split())
