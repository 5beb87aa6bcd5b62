# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One requirement of a flavor's extra_specs against one value of a node, by the operators of Nova's release 34.

The caller knows which value a key stands for. The tests compare this file with Nova's own code.
"""

from __future__ import annotations

import operator
from typing import Any

from ..core.errors import BadInput

#: `=` means "at least" in Nova.
NUMBERS = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
TEXTS = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
}
MEMBERS = ("<in>", "<all-in>")
OR = "<or>"
#: All operators. A text that begins with anything else (`>`, `=2`) is compared as a whole.
OPERATORS = (*NUMBERS, *TEXTS, *MEMBERS, OR)


def satisfies(value: Any, requirement: Any, key: str = "requirement") -> bool:
    """Return whether a node's value meets a requirement such as `>= 2`, `s== LXC`, `<in> sse4` or `<or> a <or> b`.

    An operator takes only the word after it: `>= 3 <= 4` means `>= 3`. Without a word it is never met.

    :param value: None (unknown) meets nothing. A list is a list of words for `<in>` and `<all-in>`, which look for
        parts in a text. Any other value counts as its text, as in Nova's ComputeCapabilitiesFilter.
    :param requirement: a text, or a number, which is compared as text.
    :param key: the requirement's name in errors.
    :raises BadInput: Nova would raise too: a numeric operator without numbers, a list for an operator that takes none,
        a lone `<or>`.
    """
    requirement = _text(requirement, key)
    words = requirement.split()
    sign, operands = (words[0], words[1:]) if words else ("", [])
    if value is None:
        return False
    if not isinstance(value, (list, tuple)):
        value = str(value)
    if sign not in OPERATORS:
        return value == requirement
    if sign == OR:
        if not operands:
            raise BadInput(f"{requirement!r} has nothing to compare with", key, "write '<or> a <or> b'")
        # every second word is a value, whatever stands between
        return value in operands[::2]
    if not operands:
        return False
    if sign in NUMBERS:
        return NUMBERS[sign](_number(value, requirement, key), _number(operands[0], requirement, key))
    if sign in TEXTS:
        return _as_texts(sign, value, operands[0], requirement, key)
    return all(word in value for word in (operands if sign == "<all-in>" else operands[:1]))


def defect(requirement: object) -> tuple[str, str] | None:
    """Return (what, remedy) if a requirement is an error, or unmet by any value; None if it is sound."""
    if isinstance(requirement, bool) or not isinstance(requirement, (str, int, float)):
        return f"is {requirement!r}", "give it as text such as '= 2' or 's== LXC'"
    words = str(requirement).split()
    if not words or words[0] not in OPERATORS:
        return None
    if words[0] in NUMBERS and not (words[1:] and _is_number(words[1])):
        return f"is {requirement!r}", f"give '{words[0]}' a number, or compare text with 's=='"
    if not words[1:]:
        return f"is {requirement!r}", f"give '{words[0]}' something to compare with"
    return None


def _text(requirement: object, key: str) -> str:
    if isinstance(requirement, bool) or not isinstance(requirement, (str, int, float)):
        raise BadInput(f"is {requirement!r}", key, "give it as text such as '= 2' or 's== LXC'")
    return str(requirement)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(value: Any, requirement: str, key: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        what = f"{requirement!r} compares numbers, and {value!r} is none"
        raise BadInput(what, key, "compare texts with 's=='") from error


def _as_texts(sign: str, value: Any, operand: str, requirement: str, key: str) -> bool:
    try:
        return TEXTS[sign](value, operand)
    except TypeError as error:
        what = f"{requirement!r} compares texts, and {value!r} is a list"
        raise BadInput(what, key, "look into lists with '<in>' or '<all-in>'") from error
