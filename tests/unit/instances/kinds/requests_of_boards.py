# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request for boards, as module instance makes it of its arguments."""

from __future__ import annotations

import importlib

from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds.board import Request

SPEC = importlib.import_module("ansible_collections.hetero.compute.plugins.modules.instance").SPEC


def request(proxy, node, check=False, **given):
    params = {name: option.get("default") for name, option in SPEC.options.items()}
    params.update(dict(node.params, kind="board", instance="lab", timeout=10, created=[], numbers=[]), **given)
    return Request(proxy, params, check)
