# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The public key of a request, or what is wrong with the one that was given."""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like

#: A line of an OpenSSH public key, as module_utils/_hetero/roots/machine_identity.py takes it; nothing else goes to a
#: node or to its events.
KEY = re.compile(r"(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]{16,}={0,2}( .*)?")
#: The user's own keys, in this order, if no other was given; ssh logs in with each of them by itself.
OWN = ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub")
PRIVATE = "PRIVATE KEY"
#: The site's folder of public keys, beside its inventory or where one stands; NAME.pub in it is meant by key=NAME.
SITE_KEYS, SUFFIX = os.path.join("files", "keys"), ".pub"
#: A name of a key: no path, and no file's name.
NAME = re.compile(r"(?!.*\.pub\Z)[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}")
#: The first word of a key's text, which is what -e leaves of one that is not quoted.
FIRST_WORD = re.compile(r"(ssh|ecdsa|sk)-[a-z0-9@.-]+")
#: Bytes of a file of that folder that are read, and names of it that an error lists.
MOST, LISTED = 65536, 20


def login_key(
    asked: Mapping[str, Any], in_a_job: bool = False, default: Any = None, sources: Iterable[Any] = ()
) -> dict[str, str]:
    """Return `given` (the key's text, or ""), `public` (that, or the default), `problem` and `missing`.

    The last two say in words, without a word of the key, what is wrong, and that there is none; "" otherwise.

    :param asked: the request's `key` (text) and `key_file`.
    :param in_a_job: whether a form asks. It names no file, because what runs the job may read the secrets of others.
    :param default: the site's key, if it has one.
    :param sources: paths of the inventory, as ansible_inventory_sources has them.
    """
    text, named = (str(asked.get(name) or "") for name in ("key", "key_file"))
    by_name = None if named else _by_name(text, _beside(sources), in_a_job)
    if by_name:
        given, problem = by_name
    else:
        given = text if not named or in_a_job else _read(named)
        problem = _problem(text, named, given, in_a_job)
    home = os.path.join(os.environ.get("HOME", ""), ".ssh")
    own = [path for path in (os.path.join(home, name) for name in OWN) if os.path.isfile(path)]
    if given or default is not None or own:
        public = given or (_read(own[0]) if default is None else str(default))
        return dict(given=given, public=public, problem=problem, missing="")
    return dict(given="", public="", problem=problem, missing="" if problem else _missing(home, in_a_job))


def _beside(sources: Iterable[Any]) -> list[str]:
    """Return the site's folders of keys that there are: beside each source of the inventory, else where one stands.

    A source that is a folder has them beside it, too: Ansible takes each file in it for an inventory.
    """
    folders = [os.path.dirname(os.path.abspath(str(source))) for source in sources if "," not in str(source)]
    found = [os.path.join(folder, SITE_KEYS) for folder in folders]
    there = [folder for folder in dict.fromkeys(found) if os.path.isdir(folder)]
    own = os.path.join(os.getcwd(), SITE_KEYS)
    return there or ([own] if os.path.isdir(own) else [])


def _by_name(text: str, folders: Iterable[str], in_a_job: bool) -> tuple[str, str] | None:
    """Return the key of that name in the site's folders, and what is wrong with it; None where `text` is no name.

    What is no name is told as before: a file's name where one stands, what -e left of a text, and any word where the
    site has no such folder.
    """
    if not NAME.fullmatch(text) or (not in_a_job and os.path.isfile(text)):
        return None
    paths = {path[: -len(SUFFIX)]: (folder, path) for folder in reversed(list(folders)) for path in _names(folder)}
    if text in paths:
        path = os.path.join(*paths[text])
        shown, given = os.path.join(SITE_KEYS, paths[text][1]), _read(path, MOST)
        if PRIVATE in given:
            return "", f"{shown} holds a private key: take it out of that folder, and put its .pub file there"
        lines = [line.strip() for line in given.splitlines() if line.strip()]
        if lines and all(KEY.fullmatch(line) for line in lines):
            return given, ""
        return "", f"{shown} is no file with OpenSSH public keys: put the .pub file of key {text} there"
    if not paths or FIRST_WORD.fullmatch(text):
        return None
    if in_a_job:  # it shows no names of others, and no error repeats what a form was given
        return "", f"{SITE_KEYS} of the project has no key of that name: give one of its names, or the text of a key"
    near, names = like(text, paths), sorted(paths)
    others = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    remedy = f"write key={near}" if near else "give one of these, key_file=FILE, or the text of a key"
    return "", f"{SITE_KEYS} has no key {text} (it has {', '.join(names[:LISTED])}{others}): {remedy}"


def _names(folder: str) -> list[str]:
    """Return the names of the files of keys in a folder."""
    try:
        there = os.listdir(folder)
    except OSError as error:
        raise AnsibleFilterError(f"{folder} cannot be read ({error.strerror}): let who runs this read it") from error
    names = [name for name in there if name.endswith(SUFFIX) and NAME.fullmatch(name[: -len(SUFFIX)])]
    return [name for name in names if os.path.isfile(os.path.join(folder, name))]


def _read(path: str, most: int = -1) -> str:
    """Return the text of a file, or its first `most` characters; "" if there is none that can be read."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return file.read(most).rstrip()
    except (OSError, UnicodeDecodeError, ValueError):
        return ""


def _problem(text: str, named: str, given: str, in_a_job: bool) -> str:
    lines = [line.strip() for line in given.splitlines() if line.strip()]
    wrong = [number for number, line in enumerate(lines, 1) if not KEY.fullmatch(line)]
    if named and in_a_job:
        return "key_file is for the command line; in a job give the text of the key (key)"
    if named and text:
        return "Give key (the text) or key_file (its file), not both"
    if lines and not wrong:
        return ""
    if in_a_job:
        return _problem_of_a_form(given)
    if PRIVATE in given:
        return (
            "That is a private key: give the .pub file beside it (key_file=FILE, key=TEXT or hetero_ssh_public_key)"
        )
    if named and not given and not os.path.exists(os.path.expanduser(named)):
        return f"{named}: there is no such file: key_file names the .pub file"
    if named:
        return f"{named} is no file with OpenSSH public keys: key_file names the .pub file"
    if len(lines) > 1:
        return (
            f"line {wrong[0]} of key is no OpenSSH public key; a key is one line: give key_file=FILE, or the whole text"
        )
    if text and " " not in text and os.path.isfile(os.path.expanduser(text)):
        return f"key is the text of a key, and {text} is a file: give key_file={text}"
    if text.endswith(SUFFIX) and " " not in text:
        return f"key is the text of a key, and {text} the name of a file: give key_file={text}"
    cut = "give key_file=FILE, or the text, which -e cuts at its first blank unless it is quoted once more"
    if NAME.fullmatch(text) and not FIRST_WORD.fullmatch(text):
        cut += f"; or put it beside the inventory, as {SITE_KEYS}/{text}{SUFFIX}"
    return f"key is no OpenSSH public key: {cut}" if text else ""


def _problem_of_a_form(given: str) -> str:
    """Return what is wrong with the text that a form was given, without a word of it; "" where it was given none.

    Who fills in a form has no command line, and a job refuses key_file.
    """
    if PRIVATE in given:
        return "That is a private key: give the text of the .pub file beside it"
    what = "one line of key" if len(given.splitlines()) > 1 else "key"
    remedy = f"give the whole line of the .pub file, or the name of a key that the project has in {SITE_KEYS}"
    return f"{what} is no OpenSSH public key: {remedy}" if given else ""


def _missing(home: str, in_a_job: bool) -> str:
    names = ", ".join(os.path.join(home, name) for name in OWN)
    remedy = (
        "give the text of one (key), or set hetero_ssh_public_key"
        if in_a_job
        else "give one (-e key_file=FILE, -e key=TEXT, or hetero_ssh_public_key in the inventory), or make one: "
        "ssh-keygen -t ed25519"
    )
    return f"No public key was given, and there is none of {names}: {remedy}"
