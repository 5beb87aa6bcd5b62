# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.status_table`: nodes, as board_info and host_info return them, in an aligned table."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence, Tuple

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.capacity import SETTING, Promises
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.compute_hosts import rejections
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age, left, size_text
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import BY_HYPERVISOR
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.moves import FROM, TO, moving, without_halves
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import MOVED, WHICH
from ansible_collections.hetero.compute.plugins.plugin_utils import heard
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_number
from ansible_collections.hetero.compute.plugins.plugin_utils.columns import aligned, left_beside, wrapped
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.fits import fits as types_that_fit
from ansible_collections.hetero.compute.plugins.plugin_utils.plain_values import plain
from ansible_collections.hetero.compute.plugins.plugin_utils.reserved_lines import reserved
from ansible_collections.hetero.compute.plugins.plugin_utils.snapshots import devices
from ansible_collections.hetero.compute.plugins.plugin_utils.waiting_lines import waiting

#: A node's cells; the last one is the parts of its note.
Row = Tuple[Any, ...]

HEADING = ("NODE", "KIND", "ARCH", "FITS", "STATE", "INSTANCE", "OWNER", "ADDRESS", "IMAGE", "SINCE", "NOTE")
#: Cells from INSTANCE to SINCE where no instance is.
NOBODY = ("-",) * 5
#: State of a claimed board that its proxy's boards file does not name, and what to do about it.
UNNAMED = "not in the boards file"
#: State of a node that could not be asked.
UNASKED = "not asked"
WAY_OUT = f"add its row; or, where the board is gone for good, {play('reconcile', forget='{name}')} ends the claim"
#: The line of a PDU that refused the last session, or did not answer.
PDU_SAID = "PDU {name}: {said}"
#: The note of a board that failed lately: its score, and how many of its newest boots and checks failed.
HEALTH = "health {score}: {failed} of {of} failed"
OUT_OF_USE = (board_states.ERROR, board_states.MAINTENANCE)
#: The note of an instance that several hosts have, as where one was put back as a whole to before it moved.
TWICE = f"is on {{others}}, too: {MOVED}{WHICH}"
#: Characters of a row with its note. Most notes are short, and are best read beside what they are about.
WIDEST = 120


def row(board: dict[str, Any], fits: Mapping[str, Any], proxy: str | None = None) -> Row:
    """Return a board's cells as text, with the parts of its note, and its proxy's name if that is given."""
    since = board.get("since_seconds")
    return (
        f"{board['name']} of {proxy}" if proxy else board["name"],
        "board",
        board["arch"] or "-",
        ", ".join(types_that_fit(fits, board)) or "-",
        board["state"],
        board.get("instance") or "-",
        board.get("owner") or "-",
        board.get("ip") or "-",
        board.get("image") or "-",
        "-" if since is None else age(since),
        (", ".join(filter(None, (lease(board), drawn(board), following(board)))), board.get("note"), health(board)),
    )


def health(board: dict[str, Any]) -> str:
    """Return how often a free or used board failed lately ("health 80: 4 of 20 failed"), "" if it never did.

    The note of a board that is out of use says why it is.
    """
    known = board.get("health")
    if not known or known.get("passed") == known.get("of") or board["state"] in OUT_OF_USE:
        return ""
    return HEALTH.format(score=known["score"], failed=known["of"] - known["passed"], of=known["of"])


def following(board: dict[str, Any]) -> str:
    """Return who gets a board next ("next: lab-8 (queue 1)"), or "" where nobody waits for it."""
    return f"next: {board['next']}" if board.get("next") else ""


def unnamed_rows(seen: dict[str, Any], proxy: str | None = None) -> Iterator[Row]:
    """Yield the row of each claim whose board is not in its proxy's boards file."""
    named = {board.get("id") for board in seen["boards"]}
    for claim in seen.get("claims") or ():
        if claim.get("board") not in named | {None}:
            name = f"{claim['name']} of {proxy}" if proxy else claim["name"]
            note = WAY_OUT.format(name=claim["instance"])
            of_it = (claim["instance"], claim["owner"], "-", claim.get("image") or "-", "-")
            yield (name, "board", "-", "-", UNNAMED, *of_it, ("", note))


def unasked_row(name: str | None, kind: str, error: str, alone: bool) -> Row:
    """Return the row of a node that could not be asked, with what to do about it.

    :param alone: whether it is the site's only node, without which nobody is left to ask.
    """
    # in brackets: the error may end in a command, which a colon or full stop after it would spoil
    note = error.rstrip(".") if alone else f"{error.rstrip('.')} (mend that, or leave it out: -e without={name})"
    return (name or "-", kind, "-", "-", UNASKED, *NOBODY, ("", note))


def host_rows(name: str, host: dict[str, Any], fits: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a host's rows: one for each instance, the first of them with the host, then one for what nobody gets."""
    gpus = devices(host)
    free = sum(1 for gpu in gpus if is_free(gpu))
    own = [
        name,
        ", ".join(BY_HYPERVISOR[one].row for one in host.get("hypervisors") or [host.get("hypervisor") or "LXC"]),
        architectures(gpus),
        ", ".join(flavor for flavor, wanted in fits.items() if not rejections(wanted, host)) or "-",
        f"{free} of {len(gpus)} free",
    ]
    seen = [
        (
            one["instance"],
            *(one.get(key) or "-" for key in ("owner", "ip", "image")),
            age(one["since_seconds"]),
            (lease(one), said_of(one)),
        )
        for one in host["instances"]
    ]
    seen += [(*NOBODY, ("", f"{gpu['address']}: {why}")) for gpu in gpus for why in [trouble(gpu)] if why]
    if host["unsupported"]:
        seen.append((*NOBODY, ("", host["unsupported"])))
    for number, cells in enumerate(seen or [(*NOBODY, ("", ""))]):
        yield (*(own if number == 0 else [""] * len(own)), *cells)


def is_free(gpu: dict[str, Any]) -> bool:
    return not (gpu["holder"] or gpu["unsupported"]) and gpu["healthy"]


def architectures(gpus: Sequence[dict[str, Any]]) -> str:
    """Return "fermi ×4", or for several kinds "fermi ×2, kepler ×1"."""
    archs = [gpu["arch"] or "unknown" for gpu in gpus]
    return ", ".join(f"{arch} ×{archs.count(arch)}" for arch in sorted(set(archs))) or "-"


def said_of(instance: dict[str, Any]) -> str:
    """Return an instance's GPUs, and its state unless it runs."""
    runs = instance["state"] == "running" and not instance.get("moves")
    state = "" if runs else ": ".join(filter(None, (instance["state"], instance["note"])))
    return "; ".join(filter(None, (", ".join(instance["gpus"]), state)))


def trouble(gpu: dict[str, Any]) -> str | None:
    """Return why a GPU is not free although no instance has it, or None."""
    if gpu["unsupported"] or not gpu["healthy"]:
        return gpu["unsupported"] or gpu["why_unhealthy"]
    return f"{gpu['holder']} has it" if gpu["holder"] and not gpu["instance"] else None


def lease(board: dict[str, Any]) -> str:
    """Return what is left of a board's lease ("lease 3 h left"), or "" if it has no end."""
    seconds = board.get("lease_seconds")
    return "" if seconds is None else f"lease {left(seconds)}"


def drawn(board: dict[str, Any]) -> str:
    """Return what a board draws, and has drawn for its claim ("41 W, 1.2 kWh"), as far as its device tells."""
    told = [(board.get("watts"), ".0f", "W"), (board.get("energy_kwh"), ".1f", "kWh")]
    return ", ".join(f"{value:{form}} {unit}" for value, form, unit in told if is_number(value) and value >= 0)


def status_table(
    boards: Any, fits: Mapping[str, Any] | None = None, hosts: Any = None, as_json: bool = False
) -> list[str]:
    boards, hosts = heard.seen(boards), heard.seen(hosts or {})
    if as_json:
        return [heard.as_json({"proxies": boards, "hosts": hosts})]
    by_proxy = boards if isinstance(boards, dict) else {None: {"boards": boards}}
    listed = [seen.get("boards") if isinstance(seen, dict) else None for seen in by_proxy.values()]
    if not all(isinstance(those, (list, tuple)) and all(map(_is_board, those)) for those in listed):
        raise AnsibleFilterError(
            "hetero.compute.status_table needs a list of boards, as board_info returns them, or what filter snapshots "
            "makes, before the bar"
        )
    wanted = plain(fits or {})
    several = sum(1 for seen in by_proxy.values() if seen["boards"] or seen.get("claims")) > 1
    rows, alone = [], len(by_proxy.keys() - {None}) + len(hosts) == 1
    for proxy, seen in by_proxy.items():
        of = proxy if several else None
        rows += [unasked_row(proxy, "proxy", seen["error"], alone)] if seen.get("error") else []
        rows += [*(row(board, wanted, of) for board in seen["boards"]), *unnamed_rows(seen, of)]
    for name, host in _at_home(hosts).items():
        silent = [unasked_row(name, "host", host["error"], alone)] if host["error"] else []
        rows += silent or host_rows(name, host, wanted)
    promises = [roots(proxy, seen["roots"]) for proxy, seen in by_proxy.items() if _promises(seen)]
    told = [text for proxy, seen in by_proxy.items() for text in pdus(proxy, seen)]
    every = {**by_proxy, **hosts}
    return _lines(rows) + promises + told + waiting(every.values()) + reserved(every)


def _at_home(hosts: Mapping[str, Any]) -> dict[str, Any]:
    """Return hosts with each instance once, also one that moves from one to another, whose note says so."""
    results = [{**host, "item": name} for name, host in hosts.items()]
    found = moving(results, "instances")
    notes = {(one.arrives, one.instance): FROM.format(host=one.leaves) for one in found if one.was_started}
    goes = [one for one in found[::-1] if not one.was_started]  # of several moves of one the first is told
    notes.update({(one.leaves, one.instance): TO.format(host=one.arrives) for one in goes})
    shown, left = {}, without_halves(results, found, "instances")
    notes.update(_twice(left))
    for result in left:
        node = result.pop("item")
        told = [
            dict(one, note=note, moves=True) if note else one
            for one in result.get("instances") or ()
            for note in [notes.get((node, one["instance"]))]
        ]
        shown[node] = {**result, "instances": told} if "instances" in result else result
    return shown


def _twice(results: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return {(node, instance): note} of the instances that several hosts have by one claim."""
    places: dict[tuple[str, Any], dict[str, str]] = {}
    for result in results:
        for one in result.get("instances") or ():
            by_name = places.setdefault((one["instance"], one.get("created")), {})
            by_name.setdefault(str(one.get("name") or result["item"]), result["item"])  # a host may have two names
    return {
        (node, instance): TWICE.format(others=", ".join(other for other in nodes.values() if other != node))
        for (instance, created), nodes in places.items()
        if created is not None and len(nodes) > 1
        for node in nodes.values()
    }


def _lines(rows: Sequence[Row]) -> list[str]:
    """Return rows as a table. What of a note has no room comes below; of a lease, and of what is drawn, all stays."""
    room = left_beside([HEADING[:-1], *(cells for *cells, _note in rows)], WIDEST)
    beside, below = [HEADING], []
    for *cells, (lent, *said) in rows:
        parts = list(filter(None, said))
        notes = [", ".join(filter(None, (lent, "; ".join(parts[:some])))) for some in range(len(parts) + 1)]
        some = max(some for some, note in enumerate(notes) if len(note) <= room or not some)
        beside.append((*cells, notes[some]))
        below.append(wrapped("; ".join(parts[some:])) if parts[some:] else [])
    heading, *lines = aligned(beside)
    return [heading, *(text for line, more in zip(lines, below) for text in (line, *more))]


def roots(proxy: str | None, fields: dict[str, Any]) -> str:
    """Return a line that says what the roots of a proxy are promised."""
    promised, there, taken = (size_text(fields[key]) for key in ("promised", "there", "taken"))
    promises = Promises(fields["promised"], fields["there"], fields["overcommit"])
    over = ""
    if promises.overcommit > 1:
        most = f"{size_text(promises.limit)} may be promised ({SETTING} is {promises.overcommit:g})"
        over = f"; {most}, in the hope that not all roots fill up"
    end = ": no further root can be given" if promises.full else ""
    return f"roots on {proxy}: {promised} promised of {there} there, {taken} taken{over}{end}"


def pdus(proxy: str | None, seen: Any) -> Iterator[str]:
    """Yield a line for each PDU of a proxy that refused the last session, or did not answer."""
    errors = seen.get("pdu_errors") if isinstance(seen, dict) else None
    for name, said in sorted((errors or {}).items()):
        prefix = f"{name}: "
        text = PDU_SAID.format(name=name, said=said[len(prefix) :] if said.startswith(prefix) else said)
        yield f"{text}, on {proxy}" if proxy else text


def _promises(seen: Any) -> bool:
    return isinstance(seen, dict) and bool((seen.get("roots") or {}).get("promised"))


def _is_board(board: object) -> bool:
    return isinstance(board, dict) and "state" in board
