# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback of no event: what each forked process of a play would make of templates anew is kept (tests/builds.py).

Ansible forks a process for each task, which compiles the task's templates and all variables that they name, and loads
filters. The filters are loaded before the forks; and code is kept for all plays, by Ansible's release, a template's
words and what else the compiler goes by. A template that does not compile is tried each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os

from ansible.plugins.callback import CallbackBase
from ansible.release import __version__
from jinja2 import __version__ as jinja_version
from jinja2.environment import TemplateExpression

try:
    from ansible._internal._templating import _jinja_bits
except ImportError:  # an older Ansible, which compiles otherwise
    _jinja_bits = None

DOCUMENTATION = """
name: kept_templates
type: aggregate
short_description: Keep compiled templates for all plays
description: Keeps what Jinja makes of templates in the folder that the environment's HETERO_BUILDS names.
author: hetero.compute contributors (@hetero-compute)
"""


class Kept:
    """Code by what it was made from, each in a file of its own."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def get(self, made_from, make):
        path = os.path.join(self.folder, hashlib.sha1(repr(made_from).encode()).hexdigest())
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            return marshal.load(file)
        code = make()
        with open(f"{path}.{os.getpid()}", "wb") as file:
            marshal.dump(code, file)
        os.rename(file.name, path)
        return code


def what_counts(environment):
    """All that the compiler goes by beside the template: marks, and what backslashes and templates in constants are."""
    marks = [getattr(environment, name) for name in _jinja_bits._TEMPLATE_OVERRIDE_FIELD_NAMES]
    compiling = _jinja_bits._TemplateCompileContext.current(optional=True)
    embedded = _jinja_bits._TemplateConfig.allow_embedded_templates
    return marks, sorted(environment.extensions), embedded, compiling and compiling.escape_backslashes


def keep(environment_class, kept):
    """Have templates and expressions that are compiled by an environment of the class kept."""
    compile_template, compile_expression = environment_class.compile, environment_class.compile_expression

    def template(environment, source, *words, **named):
        def make():
            return compile_template(environment, source, *words, **named)

        if words or named or not isinstance(source, str):
            return make()
        return kept.get(("template", str(source), what_counts(environment)), make)

    def expression(environment, source, undefined_to_none=True):
        def make():
            made = []

            def remember(*words, **named):
                made.append(compile_template(environment, *words, **named))
                return made[-1]

            environment.compile = remember
            try:
                compile_expression(environment, source, undefined_to_none)
            finally:
                del environment.compile
            return made[-1]

        code = kept.get(("expression", str(source), what_counts(environment)), make)
        made = environment.template_class.from_code(environment, code, environment.make_globals(None), None)
        return TemplateExpression(made, undefined_to_none)

    environment_class.compile, environment_class.compile_expression = template, expression


def load_before_forks():
    """What each forked process would load again: filters and tests of Ansible and of this collection, Jinja's lexer."""
    environment = _jinja_bits.AnsibleEnvironment()
    environment.lexer  # noqa: B018
    for plugins in (environment.filters, environment.tests):
        for name in ("ansible.builtin.nothing", "hetero.compute.nothing"):
            plugins.get(name)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kept_templates"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if _jinja_bits:
            folder = os.path.join(os.environ["HETERO_BUILDS"], f"templates-{__version__}-{jinja_version}")
            keep(_jinja_bits.AnsibleEnvironment, Kept(folder))
            load_before_forks()
