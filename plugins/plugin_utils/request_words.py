# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a request whose value is a number or one of some words: what is wrong with them, and what to give instead.

Each check returns "" where nothing is wrong. A playbook names the options that it takes, as others may be anybody's
variables. request_values.py reads what they say; request_mistakes.py has what else may be wrong with a request.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipe_disk import METHODS, PROOFS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import MOST_SOFT_TIMEOUT
from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import MOST, Requested, number

Check = Callable[[Requested], str]

#: How a word says true or false; no word, and false itself, is false.
TRUTHS = ("", "true", "false", "yes", "no", "on", "off", "1", "0")
#: Characters of a value that an error repeats.
SHOWN = 60
#: Longest lease in hours (ten years), wait in minutes (a week), and test of a cable in seconds (a day).
MOST_HOURS, MOST_MINUTES, MOST_SECONDS = 87_600, 10_080, 86_400
#: One line of an OpenSSH public key, with what stands before it in an authorized_keys.
ONE_KEY = re.compile(r"(\S+ )?(ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]{16,}( |\Z)")
GIVE_INVENTORY = "Give the site's inventory (-i INVENTORY), or add the nodes to it"
NO_PROXY = f"the inventory has no proxy node: group proxies is empty. {GIVE_INVENTORY}"


def is_no(word: str, value: Any, remedy: str) -> str:
    """Return that an option is nothing that can be taken."""
    return f"{word} is {str(value)[:SHOWN]}: give {remedy}"


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _truth(word: str) -> Check:
    def check(asked: Requested) -> str:
        value = asked.filled(word)
        return "" if str(value).lower() in TRUTHS else is_no(word, value, "true or false")

    return check


def _whole(word: str, pattern: str, remedy: str) -> Check:
    """Return a check of a whole number, by the pattern of its text."""

    def check(asked: Requested) -> str:
        value = asked.said(word)
        return "" if value is None or re.fullmatch(pattern, str(value)) else is_no(word, value, remedy)

    return check


def _above_0(word: str, most: float, example: str) -> Check:
    def check(asked: Requested) -> str:
        value = asked.said(word)
        if value is None or 0 < number(value) <= most:
            return ""
        return is_no(word, value, f"a number above 0, of at most {most}, such as -e {word}={example}")

    return check


def _one_of(word: str, words: Sequence[str], read: Callable[[Requested], Any]) -> Check:
    """Return a check of one of some words, or none."""

    def check(asked: Requested) -> str:
        value = read(asked)
        return "" if value in ("", *words) else is_no(word, value, _or(words))

    return check


def _count(asked: Requested) -> str:
    if 1 <= asked.count <= MOST:
        return ""
    return is_no("count", asked.look("count"), f"a whole number from 1 to {MOST}, such as -e count=3")


def _hours(asked: Requested) -> str:
    value = asked.said("hours")
    plain = re.fullmatch("[0-9]*[.]?[0-9]+", str(value))
    if value in (None, "none") or (plain and 0 < float(str(value)) <= MOST_HOURS):
        return ""
    return is_no("hours", value, f"more than 0 and at most {MOST_HOURS}, such as -e hours=24, or none for no end")


def _html(asked: Requested) -> str:
    value = asked.filled("html")
    if not value:
        return ""
    if not isinstance(value, str) or os.path.isdir(os.path.realpath(value)):
        return is_no("html", value, "the name of a file, such as -e html=boards.html")
    folder = os.path.dirname(os.path.realpath(value))
    return "" if os.path.isdir(folder) else f"html is {brief(value)}: there is no folder {brief(folder)}"


def _numbers(asked: Requested) -> str:
    said, numbers = asked.numbers_asked, asked.numbers
    if not said:
        return ""
    if not numbers:
        remedy = f"whole numbers from 1 to {MOST}, with commas between them, such as -e numbers=2,5"
        return is_no("numbers", said, remedy)
    if asked.filled("_numbers_need_count", False) and (asked.count < 2 or max(numbers) > asked.count):
        most = max(*numbers, 2)
        return (
            f"numbers is {said[:SHOWN]}, and count {asked.count}: give count={most} or more, the highest number that "
            "there may be"
        )
    return ""


def _only_key(asked: Requested) -> str:
    value = asked.filled("only_key")
    if not value or ONE_KEY.match(str(value)):
        return ""
    return "only_key is no OpenSSH public key: give the line of the .pub file with which the instance was asked for"


def _proxy(asked: Requested) -> str:
    value, proxies = str(asked.filled("proxy")), asked.site["of"]["board"]
    if value in ("", *proxies):
        return ""
    if value in asked.look("groups").get("proxies", ()):
        return f"proxy is {value[:SHOWN]}, which without leaves out: name another"
    if proxies:
        return f"proxy: the inventory has no proxy node {value[:SHOWN]}: give one of {', '.join(proxies)}"
    return f"proxy: {NO_PROXY}"


def _wait(asked: Requested) -> str:
    if 0 <= asked.wait_minutes <= MOST_MINUTES:
        return ""
    return is_no("wait", asked.look("wait"), f"minutes from 0 to {MOST_MINUTES}, a week, such as -e wait=30")


WORDS: dict[str, Check] = dict(
    all=_truth("all"),
    attempts=_whole("attempts", "[1-9][0-9]{0,3}", "a whole number from 1 to 9999, such as -e attempts=2"),
    back=_truth("back"),
    boot_source=_one_of("boot_source", ("nfs", "disk"), lambda asked: asked.boot_source),
    count=_count,
    events=_whole("events", "[0-9]{1,6}", "a whole number from 0 to 999999, such as -e events=50"),
    force=_truth("force"),
    fresh=_truth("fresh"),
    hours=_hours,
    how=_one_of("how", ("auto", "soft", "hard"), lambda asked: asked.filled("how")),
    html=_html,
    json=_truth("json"),
    lines=_whole("lines", "([1-9][0-9]{0,3}|10000)", "a whole number from 1 to 10000, such as -e lines=20"),
    numbers=_numbers,
    only_key=_only_key,
    partial=_truth("partial"),
    placement=_one_of("placement", ("spread", "pack"), lambda asked: asked.placement),
    proxy=_proxy,
    replace=_truth("replace"),
    seconds=_above_0("seconds", MOST_SECONDS, "30"),
    soft_timeout=_above_0("soft_timeout", MOST_SOFT_TIMEOUT, "30"),
    wait=_wait,
    wipe=_one_of("wipe", METHODS, lambda asked: asked.wipe),
    wipe_verify=_one_of("wipe_verify", PROOFS, lambda asked: asked.wipe_verify),
)
