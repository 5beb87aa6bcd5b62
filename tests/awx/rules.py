# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX 24 takes and what it makes of it: surveys, answers, credential types, and the files that a job finds.

Written from what its API does (views and models of surveys, credential types and jobs); no live AWX was asked.
"""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import jinja2
import yaml

TYPES = {
    "text": str,
    "textarea": str,
    "password": str,
    "multiplechoice": str,
    "multiselect": str,
    "integer": int,
    "float": float,
}
#: A YAML file of a project that AWX offers as a playbook has such a line.
PLAYBOOK = re.compile(r"^\s*-?\s*(?:hosts|include|import_playbook):")
#: Names that AWX gives a job itself.
OWN = {"tower", "awx"}


def survey_problems(survey):
    """Why AWX would refuse this survey; [] where it takes it."""
    said = [f"{name} is no {kind.__name__}" for name, kind in _SURVEY if not isinstance(survey.get(name), kind)]
    if said or not survey["spec"]:
        return said or ["spec is empty"]
    seen = set()
    for number, question in enumerate(survey["spec"]):
        said += [f"question {number}: {why}" for why in _question_problems(question, seen)]
        seen.add(question.get("variable"))
    return said


_SURVEY = (("name", str), ("description", str), ("spec", list))
_QUESTION = (("type", str), ("question_name", str), ("variable", str), ("required", bool))


def _question_problems(question, seen):
    said = [f"{name} is no {kind.__name__}" for name, kind in _QUESTION if not isinstance(question.get(name), kind)]
    if said:
        return said
    kind, default = question["type"], question.get("default", "")
    if question["variable"] in seen:
        said.append(f"variable {question['variable']} twice")
    if kind not in TYPES:
        return [*said, f"type {kind} is unknown"]
    if default != "" and default.__class__ is not TYPES[kind]:  # a bool is an int to isinstance
        said.append(f"default {default!r} is no {TYPES[kind].__name__}")
    if isinstance(default, str) and default.startswith("$encrypted$"):
        said.append("an encrypted default that nobody gave")
    for name in ("min", "max"):
        if question.get(name) is not None and question[name].__class__ is not int:
            said.append(f"{name} is no integer")
    if kind in ("multiplechoice", "multiselect"):
        given = question.get("choices")
        if not isinstance(given, str) or given != "\n".join(filter(str.strip, given.splitlines())):
            return [*said, "choices are no lines of text"]
        wanted = default.split("\n") if default else []
        if not set(wanted) <= set(given.split("\n")) or (kind == "multiplechoice" and len(wanted) > 1):
            said.append(f"default {default!r} is no choice")
    return said


def answer_problems(question, answers):
    """Why AWX would refuse the answer to this question."""
    name, kind = question["variable"], question["type"]
    if name not in answers:
        return [f"{name} is missing"] if question["required"] else []
    value = answers[name]
    choices = question.get("choices", "").split("\n")
    if kind == "multiselect":
        return [] if isinstance(value, list) and set(value) <= set(choices) else [f"{name}: {value!r} are no choices"]
    if kind == "multiplechoice":
        return [] if value in choices else [f"{name}: {value!r} is no choice"]
    kinds = (int, float) if kind == "float" else (TYPES[kind],)
    if type(value) not in kinds:
        return [f"{name}: {value!r} is no {kind}"]
    size = len(value) if isinstance(value, str) else value
    low, high = question.get("min"), question.get("max")
    if (low is not None and size < low) or (high is not None and size > high):
        return [f"{name}: {value!r} is not within {low} and {high}"]
    return []


def launch(template, answers, edited=False):
    """The variables of a job that somebody launches with these answers; ValueError with all that AWX would refuse.

    :param edited: the survey was saved once more by AWX's own form, which gives each question a default, "".
    """
    spec = template["survey_spec"]["spec"] if template.get("survey_enabled") else []
    said = [why for question in spec for why in answer_problems(question, answers)]
    said += [f"{name} is not asked for" for name in set(answers) - {question["variable"] for question in spec}]
    if said and not template.get("ask_variables_on_launch"):
        raise ValueError("; ".join(said))
    variables = dict(template["extra_vars"])
    for question in spec:
        default = question.get("default", "" if edited else None)
        if default is not None and not answer_problems(question, {question["variable"]: default}):
            variables[question["variable"]] = default
    return {**variables, **answers}


def filled_in(values):
    """What AWX's launch form sends of its fields: nothing of those that were left empty."""
    return {name: value for name, value in values.items() if value not in ("", [])}


def credential_type_problems(inputs, injectors):
    """Why AWX would refuse this credential type."""
    said, fields = [], {field["id"]: field for field in inputs["fields"]}
    allowed = {
        "id",
        "label",
        "type",
        "format",
        "secret",
        "multiline",
        "help_text",
        "choices",
        "default",
        "ask_at_runtime",
    }
    for name, field in fields.items():
        if (
            not re.fullmatch(r"[a-zA-Z_]+[a-zA-Z0-9_]*", name)
            or name in OWN
            or set(field) - allowed
            or "label" not in field
        ):
            said.append(f"field {name}")
    said += [f"required {name}" for name in set(inputs.get("required", [])) - set(fields)]
    files = {name.partition(".")[2]: name for name in injectors.get("file", {})}
    if any(not re.fullmatch(r"template(\.[a-zA-Z_]\w*)?", name) for name in files.values()):
        said.append("file")
    if "" in files and len(files) > 1:
        said.append("file: one, or all with names")
    known = dict.fromkeys(fields, "x")
    known["tower"] = {"filename": "/x" if "" in files else dict.fromkeys(files, "/x")} if files else {}
    sandbox = jinja2.Environment(undefined=jinja2.StrictUndefined)
    for kind, entries in injectors.items():
        for name, text in entries.items():
            if kind == "env" and name.startswith("ANSIBLE_"):
                said.append(f"env {name}: may change Ansible's configuration")
            try:
                sandbox.from_string(text).render(known)
            except jinja2.TemplateError as error:
                said.append(f"{kind} {name}: {error}")
    return said


def inject(credential_type, inputs, folder):
    """The files of a credential, in `folder`, and the variables that a job gets by it."""
    injectors, names = credential_type["injectors"], {}
    for entry, text in injectors.get("file", {}).items():
        path = Path(folder) / f"tmp-{entry}"
        path.write_text(jinja2.Template(text, keep_trailing_newline=True).render(inputs))
        path.chmod(0o600)
        names[entry.partition(".")[2]] = str(path)
    known = {**inputs, "tower": {"filename": names.get("", names)}}
    return {name: jinja2.Template(text).render(known) for name, text in injectors.get("extra_vars", {}).items()}


def of_the_job(user):
    """What AWX tells each job of itself; each user has a number of their own."""
    number = crc32(user.encode())
    both = {"job_id": 42, "job_launch_type": "manual", "user_id": number, "user_name": user, "user_email": ""}
    return {f"{prefix}_{name}": value for prefix in ("tower", "awx") for name, value in both.items()}


class _Unsafe(str):
    """Text that is no template, whatever it looks like."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def extra_vars_file(variables, template):
    """The YAML that a job's ansible-playbook reads: templates only where the job template itself has them."""

    def harmless(value):
        if isinstance(value, dict):
            return {harmless(key): harmless(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [harmless(entry) for entry in value]
        return _Unsafe(value) if isinstance(value, str) else value

    own = template["extra_vars"]
    safe = {name: value for name, value in variables.items() if name in own and own[name] == value}
    rest = {name: harmless(value) for name, value in variables.items() if name not in safe}
    return yaml.dump(safe, Dumper=_Dumper) * bool(safe) + yaml.dump(rest, Dumper=_Dumper) * bool(rest)


def playbooks(project):
    """The playbooks that AWX offers of a project folder."""
    found = []
    for path in sorted(Path(project).rglob("*.y*ml")):
        parts = path.relative_to(project).parts[:-1]
        if not {"roles", "tasks", "group_vars", "host_vars"} & set(parts) and not any(
            part.startswith(".") for part in parts
        ):
            if any(map(PLAYBOOK.match, path.read_text().splitlines())):
                found.append(str(path.relative_to(project)))
    return found
