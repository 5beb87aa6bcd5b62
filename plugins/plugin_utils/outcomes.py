# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node that says that a verb succeeded also says that its instances are as the verb leaves them.

A node that answers "running" to a stop contradicts itself. Whether what it answers is true is not checked.
"""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states, instance_states
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import (
    Shape,
    is_address,
    is_text,
    is_word,
    one_of,
    wrong,
)

#: What the plays say of instances that run: where each is, and at which address.
UP = dict(state=one_of([board_states.RUNNING, instance_states.RUNNING]), name=is_word, ip=is_address)
#: A board may be kept out of use when its instance is over.
OVER = (board_states.POWER_OFF, board_states.SHUTTING_DOWN, board_states.ERROR, board_states.MAINTENANCE)
#: State that module instance is asked for → what its answer has to say of each instance.
SHAPES: Mapping[str, Shape] = {
    "running": UP,
    "rebooted": UP,
    "rebuilt": UP,
    "migrated": UP,
    "stopped": dict(state=one_of([board_states.POWER_OFF, instance_states.STOPPED])),
    "extended": dict(name=is_word, until=is_text),
    "absent": dict(state=one_of([*OVER, instance_states.ENDING])),
}


def contradiction(instances: list[dict[str, Any]], state: str, many: int) -> str | None:
    """Return what in the instances of an answer cannot be after a verb that succeeded, or None.

    :param instances: as answers.checked lets them pass.
    :param state: what module instance was asked for.
    :param many: how many instances were asked for; an end is also one where some were ended before.
    """
    shape = SHAPES.get(state)
    if shape is None:
        return None
    for one in instances:
        key = wrong(one, shape)
        if key:
            said = brief(repr(one[key]), 80) if key in one else "not there"
            return f"{key} of {one.get('instance')} is {said}, and it is to be {state}"
    there = len({one.get("instance") for one in instances})
    if state != "absent" and there < many:
        return f"it names {there} of {many} instances that are to be {state}"
    return None
