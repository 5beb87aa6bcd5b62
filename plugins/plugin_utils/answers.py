# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what owners answer, before plays compute with it. A node that answers anything else counts as failed, like
one that is down, and the others' answers count.

Only those parts are known here that plays, tables and pages use. Whether an answer is true is not checked.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import LONGEST, brief, one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import OF_HOSTS
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import (
    Shape,
    Test,
    are_hypervisors,
    are_known_hosts,
    are_reasons,
    are_texts,
    are_texts_by_name,
    each_of,
    is_address,
    is_hypervisor,
    is_instance,
    is_label,
    is_made,
    is_mapping,
    is_missing,
    is_number,
    is_text,
    is_truth,
    is_word,
    left_out,
    list_of,
    maybe,
    of,
    one_of,
    or_none,
    wrong,
)

NO_ANSWER = "what the node answers to {module} cannot be ({error}): see whether that node is sound, and set it up again"
#: What ssh itself says last on a terminal.
SSH_SAYS = "Shared connection to "
#: Most characters of the last line of a module that broke off: Python's error.
LAST_WORDS = 500
#: Most characters of all that a failed answer shows beside its message: Ansible prints it whole.
MOST_OF_FAILURE = 8 * 10**6
CLAIM = dict(
    instance=is_instance,
    request=is_instance,
    owner=is_text,
    name=is_word,
    created=is_made,
    ip=maybe(is_address),
    expires=maybe(is_number),
    image_hash=maybe(is_text),
    kind=maybe(is_text),
    board=maybe(is_number),
    console=maybe(is_text),
    image=maybe(is_text),
    mover=maybe(is_text),
    departure=maybe(is_text),
    leaves_for=maybe(is_text),
)
#: A claim of a compute host, whose console people sit down at by this path.
HOSTED_CLAIM = dict(CLAIM, kind=one_of(OF_HOSTS), console=is_text, console_bytes=maybe(is_number))
EVENT = dict(time=is_number, phase=is_text, text=maybe(is_text), seconds=maybe(is_number))
#: What the states of boards and of hosts' instances have in common.
STATE = dict(
    state=is_text,
    owner=maybe(is_text),
    image=maybe(is_text),
    note=maybe(is_text),
    since_seconds=maybe(is_number),
    lease_seconds=maybe(is_number),
    expires=maybe(is_number),
)
#: How a board gets what it boots (images/delivery.py).
MEANS = dict(
    dict.fromkeys(("arguments", "flash", "cmdline"), is_truth),
    driver=is_text,
    ram_image=or_none(is_text),
    ram_keys=left_out(is_truth),
)
FAILED = dict(time=is_number, what=is_text, text=is_text)
CHECKED = dict(time=is_number, passed=is_truth, text=is_text, figures=is_mapping)
#: How often a board did what was asked of it. A node of an earlier release says nothing of that.
HEALTH = dict(
    score=is_number,
    passed=left_out(is_number),
    of=left_out(is_number),
    failures=left_out(list_of(FAILED)),
    check=maybe(of(CHECKED)),
)
BOARD = dict(
    STATE,
    id=is_number,
    name=is_word,
    ip=is_address,
    arch=or_none(is_text),
    vcpus=is_number,
    memory_mb=is_number,
    local_gb=is_number,
    cpu_info=is_mapping,
    created=maybe(is_number),
    instance=maybe(is_instance),
    withheld=maybe(is_text),
    pdu=maybe(is_text),
    outlet=maybe(is_label),
    disks=maybe(are_texts),
    events=maybe(list_of(EVENT)),
    boot=maybe(of(MEANS)),
    health=maybe(of(HEALTH)),
    watts=maybe(is_number),
    energy_kwh=maybe(is_number),
    next=maybe(is_text),
)
#: An image of a proxy node's store.
IMAGE = dict(
    arch=is_text, ram=is_truth, arguments=left_out(is_truth), kernels=left_out(are_texts), initrds=left_out(are_texts)
)
#: An instance of a compute host, with what the table needs of it.
HOSTED = dict(
    STATE,
    instance=is_instance,
    ip=maybe(is_address),
    note=or_none(is_text),
    since_seconds=is_number,
    gpus=are_texts,
    events=maybe(list_of(EVENT)),
)
ROOTS = dict(dict.fromkeys(("promised", "there", "taken", "overcommit"), is_number), root_gb=left_out(is_number))
UNCLAIMED = dict(instance=or_none(is_text), name=is_text, text=is_text, created=maybe(is_number))
UNCLAIMED.update(leaves_for=maybe(is_text), kind=maybe(is_text), half=left_out(is_truth))
ENDED = dict(instance=is_instance, owner=is_text, time=is_made)
#: What only an operator can make free, and why.
STUCK: dict[str, Test] = dict(name=is_word, why=is_text)
#: Who waits, as status shows it.
WAITS: dict[str, Test] = dict(
    dict.fromkeys(("need", "position", "priority", "held", "asked"), is_number),
    request=is_instance,
    owner=is_text,
    flavor=is_text,
    expected=or_none(is_number),
    enough=left_out(is_truth),
    stuck=left_out(list_of(STUCK)),
)
#: What is reserved, as status shows it.
RESERVED: dict[str, Test] = dict(owner=is_text, text=is_text, start=is_number, end=is_number, lacks=or_none(is_text))
#: What it takes to be told of what happens (core/job_watch.py).
FOLLOW = dict(state_db=is_text, python=is_text, after=is_number, node=left_out(is_text))
#: [seconds since 1970, instances].
STEP = 2


def are_steps(value: object) -> bool:
    """Return whether this is a list of [seconds since 1970, number of instances]."""
    lists = value if isinstance(value, list) else [None]
    return all(isinstance(one, list) and len(one) == STEP and all(map(is_number, one)) for one in lists)


#: A place in a node's queue.
PLACE: dict[str, Test] = dict(
    asked=is_made,
    ahead=list_of(dict(request=is_instance, owner=is_text)),
    steps=are_steps,
    ends=list_of(dict(name=is_word, owner=is_text, when=is_number)),
    stuck=list_of(STUCK),
    **dict.fromkeys(("may", "held", "there", "possible"), is_number),
)
ALIKE = dict(instance=is_instance, owner=is_text)
DEVICE = dict(
    address=is_text,
    arch=or_none(is_text),
    holder=or_none(is_text),
    instance=or_none(is_text),
    since=maybe(is_number),
    healthy=is_truth,
    why_unhealthy=or_none(is_text),
    unsupported=or_none(is_text),
)
AMOUNT = dict(total=is_number, free=is_number)
FINDING = dict(found=is_text, done=or_none(is_text))
#: What reconcile found of a board, or of a host's instance.
LOOKED_AT = dict(
    dict.fromkeys(("recorded", "power", "ssh"), or_none(is_text)),
    name=is_word,
    instance=or_none(is_instance),
    found=list_of(FINDING),
)
#: A line for people that a play shows by itself.
LINE = dict(node=or_none(is_text), text=is_text)
#: An instance as the host to which it moves is to have it (compute_host/departures.py), which looks at it itself.
CAME: dict[str, Test] = dict(
    dict.fromkeys(("instance", "request"), is_instance),
    flavor=of(dict(name=is_text)),
    image=is_text,
    bytes=is_number,
    files=is_mapping,
    kinds=are_texts,
    state=is_text,
    other=is_text,
    comes_from=left_out(is_text),
    ran=is_truth,
)


def are_pieces(value: object) -> bool:
    """Return whether this is a list of [name of a file, number of its piece]."""
    lists = value if isinstance(value, list) else [None]
    return all(isinstance(one, list) and len(one) == STEP and is_text(one[0]) and is_number(one[1]) for one in lists)


#: What a module of a claim says where it fails, which the scheduler reads.
FAILURE = dict(rejected=left_out(are_reasons), unfit=maybe(is_mapping), room=maybe(is_number))
#: Module → its answer. Keys that only some requests return may be missing, so that one shape serves all.
SHAPES: dict[str, Shape] = {
    "board_info": dict(
        claims=list_of(CLAIM),
        boards=list_of(BOARD),
        roots=of(ROOTS),
        unclaimed=left_out(list_of(UNCLAIMED)),
        ended=left_out(list_of(ENDED)),
        alike=left_out(list_of(ALIKE)),
        images=maybe(each_of(IMAGE)),
        pdu_errors=left_out(are_texts_by_name),
        queue=left_out(list_of(WAITS)),
        reservations=left_out(list_of(RESERVED)),
        offers=left_out(each_of(dict(may=is_number, why=are_texts))),
        follow=left_out(of(FOLLOW)),
    ),
    "host_info": dict(
        name=maybe(is_word),
        claims=list_of(HOSTED_CLAIM),
        boards=is_missing,
        instances=list_of(HOSTED),
        gpus=list_of(DEVICE),
        devices=maybe(list_of(DEVICE)),
        hypervisor=is_hypervisor,
        hypervisors=are_hypervisors,
        cpu_arch=is_text,
        unsupported=or_none(is_text),
        capacity=of(dict.fromkeys(("memory_mb", "vcpus", "local_gb"), of(AMOUNT))),
        unclaimed=left_out(list_of(UNCLAIMED)),
        ended=left_out(list_of(ENDED)),
        alike=left_out(list_of(ALIKE)),
        queue=left_out(list_of(WAITS)),
        reservations=left_out(list_of(RESERVED)),
        offers=left_out(each_of(dict(may=is_number, why=are_texts))),
        follow=left_out(of(FOLLOW)),
    ),
    "board_reconcile": dict(
        dict.fromkeys(("others", "ended", "not_adopted", "removed", "gone", "kept", "unseen"), are_texts),
        boards=list_of(dict(LOOKED_AT, changed=is_truth)),
        lines=list_of(LINE),
    ),
    "host_reconcile": dict(
        dict.fromkeys(("others", "unseen"), are_texts),
        instances=list_of(dict(LOOKED_AT, kind=one_of(OF_HOSTS))),
        domains=list_of(dict(FINDING, domain=is_text, address=is_text)),
    ),
    "gpu_reconcile": dict(
        findings=list_of(
            dict(FINDING, kind=is_text, **dict.fromkeys(("container", "address", "error"), or_none(is_text)))
        )
    ),
    "image_store": dict(table=are_texts),
    "ticket": dict(place=or_none(of(PLACE))),
    "board_console_info": dict(name=is_word, command=or_none(is_text), follow=or_none(is_text)),
    "instance_copy": dict(
        came=left_out(of(CAME)),
        has=left_out(is_mapping),
        todo=left_out(are_pieces),
        piece=left_out(of(dict(file=is_text, number=is_number, offset=is_number, length=is_number, sha256=is_text))),
        digests=left_out(are_texts_by_name),
        ran=left_out(is_truth),
        taken=left_out(is_truth),
        lines=left_out(list_of(LINE)),
    ),
    "instance": dict(
        instances=list_of(
            dict(
                # none of a board that a dry run would claim
                instance=maybe(is_instance),
                owner=maybe(is_text),
                name=maybe(is_word),
                kind=maybe(is_text),
                board=left_out(is_number),
                ip=maybe(is_address),
                known_hosts=maybe(are_known_hosts),
                created=maybe(is_made),
                image_hash=maybe(is_text),
                until=maybe(is_text),
            )
        ),
        failure=maybe(of(FAILURE)),
        left=left_out(are_texts_by_name),
    ),
}


def no_answer(module: str, error: str) -> dict[str, Any]:
    """Return the failure of a node whose answer to a module cannot be; `error` says what of it."""
    return dict(failed=True, changed=False, msg=NO_ANSWER.format(module=module, error=error))


def checked(result: dict[str, Any], module: str) -> dict[str, Any]:
    """Return a module's result, or instead a failure that says what in it cannot be."""
    shape = SHAPES.get(module, {})
    if result.get("failed") or result.get("unreachable"):
        # nothing of a failed answer is believed that says what there is
        left = {key: value for key, value in result.items() if key not in shape or module == "instance"}
        if not of(FAILURE)(left.get("failure")):
            left.pop("failure", None)
        if len(repr(left)) > MOST_OF_FAILURE:
            left = {key: left[key] for key in ("failed", "unreachable") if key in left}
        said = [str(result.get(key) or "") for key in ("module_stdout", "module_stderr")]
        broke = [line for line in "\n".join(said).splitlines() if line.strip() and not line.startswith(SSH_SAYS)]
        if broke:  # what Ansible says of it names no reason
            msg = NO_ANSWER.format(module=module, error=f"it broke off: {one_line(brief(broke[-1], LAST_WORDS))}")
        else:
            msg = brief(str(result.get("msg") or "failed without a word"), LONGEST)
        return dict(left, msg=msg)
    key = wrong(result, shape)
    if key is None:
        return result
    given = brief(repr(result[key]), 80) if key in result else "not there"
    return no_answer(module, f"{key} is {given}")
