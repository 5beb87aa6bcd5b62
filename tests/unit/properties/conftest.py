# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many inputs the properties are tried on: over all files here 5,000 in `make test`, 100,000 in `make test-all`.

A property takes an input and fails, or does not: where an error is one of the good ends, `said` gives it.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

#: `make test-all` tries that many times more.
MORE = 20


def said(function, *args):
    """(what a call returned, None), or (None, the error with which it was refused). Any other error is a defect."""
    try:
        return function(*args), None
    except HeteroError as error:
        return None, error


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.long)])
def try_all(request, capsys):
    """A function that tries a property on `some` inputs of a strategy, or on MORE times as many; it says how many."""

    def run(some, strategy, true_of):
        tried = 0

        def counted(value):
            nonlocal tried
            tried += 1
            true_of(value)

        wanted = some * (MORE if request.param == "all" else 1)
        phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
        chosen = settings(max_examples=wanted, deadline=None, suppress_health_check=list(HealthCheck), phases=phases)
        chosen(given(strategy)(counted))()
        with capsys.disabled():
            print(f"\n{request.node.originalname}: {tried} inputs")
        assert tried >= wanted

    return run
