# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files a Nova service reads in which order, and which values count, given its command line and environment: as
oslo.config 10.7 and nova/api/openstack/wsgi_app.py of Nova 34 do it. config_files.py reads single files.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, Mapping

from ..core.errors import BadInput
from . import releases
from .config_files import CONF, parse, split, text_of

PROJECT = "nova"
#: Kind of node → program, as it stands in a process's arguments.
PROGRAMS = {"api": "nova-api", "compute": "nova-compute", "scheduler": "nova-scheduler"}
#: The API's name in a web server (nova/wsgi/osapi_compute.py).
WSGI_PROGRAM = "nova-api-os-compute"
#: Home of user nova in the packages of Debian, Ubuntu and Red Hat.
HOME = "/var/lib/nova"
#: What a dollar sign may begin (oslo.config's Template).
_DOLLAR = re.compile(r"\$(?:(\$)|([_a-z][\._a-z0-9]*)|\{([_a-z][\._a-z0-9]*)\})", re.IGNORECASE)


@dataclass(frozen=True)
class Service:
    """A Nova service as it is started. `found` says whether that was read from a running process."""

    kind: str
    program: str
    arguments: tuple[str, ...] = ()
    wsgi: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    home: str = HOME
    release: int = releases.NEWEST
    found: bool = False

    @property
    def command(self) -> str:
        return " ".join([self.program, *map(shlex.quote, self.arguments)])


class Tree:
    """The files of a machine below `root`, with some replaced by `texts` ({path: text, or None for no file})."""

    def __init__(self, root: str = "/", texts: Mapping[str, str | None] | None = None) -> None:
        self.root = root
        self.texts = dict(texts or {})

    def real(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def exists(self, path: str) -> bool:
        return self.texts[path] is not None if path in self.texts else os.path.exists(self.real(path))

    def folder_exists(self, path: str) -> bool:
        made = any(text is not None and name.startswith(path + "/") for name, text in self.texts.items())
        return made or os.path.isdir(self.real(path))

    def confs(self, folder: str) -> list[str]:
        """Return the *.conf files of a folder, sorted."""
        there = {os.path.join(folder, os.path.basename(name)) for name in glob.glob(self.real(folder) + "/*.conf")}
        there |= {name for name in self.texts if os.path.dirname(name) == folder and name.endswith(".conf")}
        return sorted(name for name in there if self.exists(name))

    def text(self, path: str) -> str | None:
        if path in self.texts:
            return self.texts[path]
        return text_of(self.real(path), path)

    def but(self, texts: Mapping[str, str | None]) -> Tree:
        """Return this tree with further texts in it."""
        return Tree(self.root, {**self.texts, **texts})


def folders(service: Service) -> list[str]:
    """Return the folders in which a service looks for nova.conf and nova.conf.d. The first one that has it counts."""
    found = [os.path.join(service.home, "." + PROJECT), service.home, "/etc/" + PROJECT, "/etc"]
    return found + [
        os.path.join(service.environment[name], "etc", PROJECT)
        for name in ("SNAP_COMMON", "SNAP")
        if service.environment.get(name)
    ]


def _found(service: Service, tree: Tree, extension: str) -> Iterator[str]:
    """Yield nova.conf and nova-compute.conf, or with another extension their folders, each where it is found first."""
    for name in (PROJECT, service.program):
        for folder in folders(service):
            path = os.path.join(folder, name + extension)
            if tree.exists(path) or tree.folder_exists(path):
                yield path
                break


def drop_in_folders(service: Service, tree: Tree) -> list[str]:
    """Return the folders of which a service reads all *.conf files.

    Folders in its arguments replace the default ones.
    """
    named = [path for option, path in _arguments(service) if option == "--config-dir"]
    if named:
        return named
    return list(_found(service, tree, ".conf.d")) if releases.reads_drop_ins(service.release) else []


def files(service: Service, tree: Tree) -> list[str]:
    """Return the files that a service reads, in order; a later one counts more.

    :raises BadInput: a file or folder is missing, so that the service would not start.
    """
    named = _arguments(service)
    order = []
    if not any(option == "--config-file" for option, _path in named):
        order += _wsgi_files(service) if service.wsgi else list(_found(service, tree, ".conf"))
    if not any(option == "--config-dir" for option, _path in named):
        for folder in drop_in_folders(service, tree):
            order += tree.confs(folder)
    for option, path in named:
        if option == "--config-dir" and not tree.folder_exists(path):
            raise _absent(service, path)
        order += tree.confs(path) if option == "--config-dir" else [path]
    for path in order:
        if not tree.exists(path):
            raise _absent(service, path)
    return order


def _absent(service: Service, path: str) -> BadInput:
    """Return the error for a file or folder that a service reads, and that is not there."""
    remedy = f"make it, or install Nova here first: {service.command} reads it"
    return BadInput("does not exist, and so the service does not start", path, remedy)


def _arguments(service: Service) -> list[tuple[str, str]]:
    """Return [(option, path)] of --config-file and --config-dir, in order."""
    named, words = [], list(service.arguments)
    while words:
        option, given, path = words.pop(0).partition("=")
        if option in ("--config-file", "--config-dir"):
            if not given and not words:
                raise BadInput(f"{option} has no path behind it", service.command, "give the command as it is started")
            named.append((option, _absolute(service, path if given else words.pop(0))))
    return named


def _absolute(service: Service, path: str) -> str:
    """Return a path of a service as an absolute one. Services are started in /."""
    if path == "~" or path.startswith("~/"):
        path = service.home + path[1:]
    return os.path.normpath(os.path.join("/", path))


def _wsgi_files(service: Service) -> list[str]:
    folder = service.environment.get("OS_NOVA_CONFIG_DIR", "/etc/" + PROJECT).strip()
    names = service.environment.get("OS_NOVA_CONFIG_FILES", "").split(";")
    names = ["api-paste.ini", "nova.conf"] if names == [""] else names
    return [_absolute(service, os.path.join(folder, name)) for name in names]


@dataclass(frozen=True)
class Given:
    """An option as a file gives it: under which name, in which line (from 1), with which value."""

    path: str
    section: str
    name: str
    value: str
    line: int


class Reading:
    """All configuration that a service reads."""

    def __init__(self, service: Service, tree: Tree) -> None:
        self.service = service
        self.tree = tree
        self.paths = files(service, tree)
        self.parsed = {path: parse(split(tree.text(path) or ""), CONF, path) for path in self.paths}

    def given(self, section: str, name: str) -> list[Given]:
        """Return all lines of the files that give an option under this name. A file that is read twice counts twice."""
        return [said for path in self.paths for said in self._in(path, section, name)]

    def drop_in_folder(self, default: str) -> str | None:
        """Return the folder from which the service would read a further file, or None.

        :param default: returned if there is no such folder yet and the release reads this one.
        """
        found = drop_in_folders(self.service, self.tree)
        if found:
            named = any(option == "--config-dir" for option, _path in _arguments(self.service))
            return found[-1] if named else found[0]
        return default if releases.reads_drop_ins(self.service.release) else None

    def all(self, option: str) -> list[Given]:
        """Return all lines that give an option, under all names that this release reads, in Nova's order."""
        found = []
        for path in self.paths:
            # oslo.config puts the deprecated names of a file before the new one
            for section, name in reversed(releases.names(option, self.service.release)):
                found += self._in(path, section, name)
        return found

    def _in(self, path: str, section: str, name: str) -> list[Given]:
        return [
            Given(path, section, name, option.value, option.line + 1) for option in self.parsed[path].of(section, name)
        ]

    def winner(self, option: str) -> Given | None:
        """Return what counts for a single-valued option, or None: the last file, its newest name, and of that the last
        line.
        """
        for path in reversed(self.paths):
            for section, name in releases.names(option, self.service.release):
                found = self._in(path, section, name)
                if found:
                    return found[-1]
        return None

    def value(self, option: str) -> list[str] | None:
        """Return an option's values as Nova reads them, or None if it is not given."""
        told = self._environment(option)
        if told is not None:
            return words(told)
        if option in releases.MULTI:
            return [plain(said) for said in self.all(option)] or None
        said = self.winner(option)
        return None if said is None else words(plain(said))

    def _environment(self, option: str) -> str | None:
        if self.service.release < releases.ROCKY:
            return None
        section, name = releases.names(option, self.service.release)[0]
        variable = f"OS_{section.upper()}__{name.upper()}"
        told = self.service.environment.get(variable)
        if told is not None and option in releases.MULTI:
            what = "is in the service's environment, of which Nova takes each letter for a value"
            raise BadInput(what, variable, "write it into a file instead")
        return told


def words(text: str) -> list[str]:
    """Return the words of a list as oslo.config reads it: separated by commas, with none at the end."""
    text = text.strip().rstrip(",")
    return [word.strip() for word in text.split(",")] if text else []


def plain(said: Given) -> str:
    """Return a value after Nova's replacement of $$; raise BadInput if a $ stands for another option."""

    def replaced(found: re.Match[str]) -> str:
        if found[1]:
            return "$"
        what = f"holds {found[0]}, which Nova replaces by its option of that name"
        raise BadInput(what, f"{said.path} line {said.line}", "write $$ for the sign itself")

    return _DOLLAR.sub(replaced, said.value.replace("\\$", "$$"))


def quoted(text: str) -> str:
    """Return a text so that Nova reads it unchanged."""
    return text.replace("$", "$$")


def of_process(kind: str, release: int, proc: str = "/proc") -> Service | None:
    """Return the service as it runs on this machine, or None if it does not run."""
    for path in sorted(glob.glob(os.path.join(proc, "[0-9]*"))):
        words_ = _strings(os.path.join(path, "cmdline"))
        for at, word in enumerate(words_[:3]):
            if os.path.basename(word) == PROGRAMS[kind]:
                return _service(kind, release, PROGRAMS[kind], words_[at + 1 :], False, path)
        if kind == "api" and words_ and os.path.basename(words_[0]).startswith("uwsgi"):
            if any("nova-api" in word and "metadata" not in word for word in words_):
                return _service(kind, release, WSGI_PROGRAM, _pyargv(words_), True, path)
    return None


def _service(kind: str, release: int, program: str, arguments: Iterable[str], wsgi: bool, process: str) -> Service:
    told = (pair.partition("=") for pair in _strings(os.path.join(process, "environ")))
    environment = {name: value for name, _sign, value in told}
    home = environment.get("HOME") or HOME
    return Service(kind, program, tuple(arguments), wsgi, environment, home, release, True)


def _pyargv(words_: list[str]) -> list[str]:
    """Return the arguments that uwsgi passes on as sys.argv."""
    for at, word in enumerate(words_):
        if word in ("--pyargv", "--pyargv="):
            return shlex.split(words_[at + 1]) if at + 1 < len(words_) else []
        if word.startswith("--pyargv="):
            return shlex.split(word.partition("=")[2])
    return []


def _strings(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace").rstrip("\0").split("\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        # the process ended meanwhile
        return []


def told(
    kind: str,
    release: int,
    command: str | None,
    wsgi: bool | None = None,
    environment: Mapping[str, str] | None = None,
    home: str | None = None,
) -> Service:
    """Return the service as the user says that it is started.

    :param command: its command line; None is the API in a web server, or the program without arguments.
    :param wsgi: whether it runs in a web server (default: the API without a command does).
    """
    line = shlex.split(command or "")
    in_server = (kind == "api" and not line) if wsgi is None else wsgi
    program = os.path.basename(line[0]) if line else WSGI_PROGRAM if in_server else PROGRAMS[kind]
    return Service(kind, program, tuple(line[1:]), in_server, dict(environment or {}), home or HOME, release)


def assumed(params: Mapping[str, Any], service: Service) -> list[str]:
    """Return notes for people if the way in which a service is started was only assumed."""
    if service.found or params["command"] is not None or params["wsgi"] is not None:
        return []
    how = "in a web server" if service.wsgi else "without arguments"
    return [f"{service.program} is taken to be started {how}, for it does not run and no command is given"]


def service(params: Mapping[str, Any]) -> Service:
    """Return the service of a module's parameters: as they say, else as it runs here, else as it is started by default.
    """
    kind, release = params["kind"], releases.number(params["release"])
    said = {name: params[name] for name in ("command", "wsgi", "environment", "home")}
    running = params["root"] == "/" and not any(value is not None for value in said.values())
    return (of_process(kind, release) if running else None) or told(kind, release, **said)
