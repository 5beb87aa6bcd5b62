# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents and arguments with a few things wrong in them, by a seed: what hands, templates and copies make of them."""

from __future__ import annotations

import copy
import json

#: Long inputs: one word, and many.
LONG = ("M" * 5000, "M " * 2500)
TEXTS = [
    "",
    " ",
    "x",
    "0",
    "1",
    "-1",
    "on",
    "jackie",
    "a\0b",
    "\ud800",
    "\udcff",
    "é\u202e",
    "../..",
    "-x",
    "a b",
    "\n",
]
TEXTS += ["10.0.2.1", "10.0.2.0/24", "00:1a:ca:00:57:90", "/dev/null/x", "/proc/1/x", "relative/path", "{{ x }}", *LONG]
INTEGERS = [0, 1, -1, 5, 64, 65536, 2**31, 2**63, -(2**63) - 1, 10**30]
FLOATS = [0.0, -1.0, 0.5, 30.0, 1e18, 1e308, float("inf"), float("-inf"), float("nan")]
OTHERS = [None, True, False, [], [[]], [None], ["x", 1], {}, {"": None}, {"a": {"b": [0]}}, {"M" * 300: {}}]
VALUES = [*TEXTS, *INTEGERS, *FLOATS, *OTHERS]


def _value(random):
    """Of one's own: another change may change it."""
    return copy.deepcopy(random.choice(VALUES))


def _places(document, at=()):
    """Each value in a document, as the way to it."""
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in children:
        yield (*at, key)
        yield from _places(value, (*at, key))


def document(random, whole, keys):
    """A JSON document with some of its values changed, taken away, or added under one of `keys`."""
    changed = copy.deepcopy(whole)
    for _time in range(random.choice([1, 1, 1, 2, 3])):
        places = list(_places(changed))
        if not places:
            break
        *way, last = random.choice(places)
        holder = changed
        for key in way:
            holder = holder[key]
        how = random.random()
        if how < 0.15:
            del holder[last]
        elif how < 0.35 and isinstance(holder, dict):
            holder[random.choice([*keys, *TEXTS])] = _value(random)
        elif how < 0.45 and isinstance(holder, dict):
            holder[random.choice(TEXTS)] = holder.pop(last)
        else:
            holder[last] = _value(random)
    return changed


def data(random, whole):
    """Bytes of a file with pieces cut out, put in, or put elsewhere."""
    odd = [
        b"\0",
        b"\r",
        b"\xff",
        b"NaN",
        b"1e999",
        b"[" * 3000,
        b'"',
        b"{",
        b"}",
        b"\\",
        b"\n",
        b"M" * 3000,
        b"9" * 5000,
    ]
    for _time in range(random.choice([1, 1, 2, 3])):
        at, length = random.randrange(len(whole) + 1), random.choice([0, 1, 10, 200])
        piece = random.choice([*odd, b"", whole[at : at + 20]])
        whole = whole[:at] + piece + whole[at + length :]
    return whole


def text_of(random, changed):
    """A document as its file holds it: mostly whole, sometimes torn."""
    text = json.dumps(changed).encode()
    return data(random, text) if random.random() < 0.15 else text


def _argument(random, spec):
    """A value that Ansible hands on for an option: of its type, whatever else it is."""
    if "choices" in spec:
        return random.choice(spec["choices"])
    kind = spec.get("type", "str")
    if kind == "list":
        return [_argument(random, {"type": spec.get("elements", "str")}) for _one in range(random.randint(0, 3))]
    if kind == "dict":
        return {random.choice(TEXTS): _value(random) for _one in range(random.randint(0, 3))}
    return random.choice({"int": INTEGERS, "float": FLOATS, "bool": [True, False]}.get(kind, TEXTS))


def arguments(random, options, given):
    """Arguments of a module with one to three of them odd."""
    changed = dict(given)
    for name in random.sample(sorted(options), min(len(options), random.randint(1, 3))):
        inside = isinstance(given.get(name), dict) and random.random() < 0.8
        changed[name] = document(random, given[name], ()) if inside else _argument(random, options[name])
    return changed
