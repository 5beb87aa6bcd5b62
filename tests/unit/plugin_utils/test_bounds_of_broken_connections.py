# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of which a stranger is root breaks each first connection and answers by the second at once. If this fails, it
fills the controller's disk or AWX's database, a line for each look, for two weeks.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.hetero.compute.plugins.plugin_utils import progress

JOB = dict(job="/run/hetero/job.1", python="/usr/bin/python3", limit=14 * 86400.0, after=0)
NOTHING = json.dumps(dict(events=[], done=False))
END = json.dumps(dict(events=[], done=True, result=json.dumps(dict(lines=["end"]))))


def test_what_is_printed_of_broken_connections_has_an_end(monkeypatch):
    told, asked = [], []
    monkeypatch.setattr(progress, "tell", told.append)
    monkeypatch.setattr(progress, "MOST_LINES", 10)

    class Follows(progress.Follows):
        module = "hetero.compute.instance"

        def _low_level_execute_command(self, *_words, **_how):
            asked.append(1)
            if len(asked) % 2:
                raise AnsibleConnectionFailure("Data could not be sent to remote host")
            return dict(rc=0, stdout=END if len(asked) > 1000 else NOTHING, stderr="")

    one = Follows.__new__(Follows)
    one._task = SimpleNamespace(delegate_to="p1", args=dict(instance="jackie"))
    one._play_context = SimpleNamespace(remote_addr="p1", timeout=10)
    one._connection = SimpleNamespace(has_pipelining=True, reset=lambda: None)
    one._follow(dict(JOB), json.loads(NOTHING))
    assert len(told) <= 12
