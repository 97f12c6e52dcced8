"""declare: located values -> typed declarations.

Map(engine: "vlm" @ 3:13, gpu: 8 @ 4:5) -> Model(engine=At("vlm", 3:13)), and a finding:
  SV0201 at 4:5: unknown key `gpu`; did you mean `gpus`?
"""

from __future__ import annotations

import posixpath
import re

from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir import decl
from servec.ir.parsed import Parsed
from servec.ir.typed import read_record
from servec.ir.words import Item
from servec.source.files import PROJECT_FILE, Files
from servec.source.located import At, Node, Span

COMMAND_LINE = "<command line>"


def run(parsed: Parsed, sets: tuple[str, ...], files: Files, findings: Findings) -> decl.Sources:
    project = None
    if parsed.project is not None:
        project = read_record(decl.Project, parsed.project, findings)
    specs = []
    for path, node in parsed.specs.items():
        spec = read_record(decl.Spec, node, findings)
        if spec is not None:
            specs.append(Item(At(path, Span(path, 1, 1)), spec))
    project = project or decl.Project(span=Span(PROJECT_FILE, 1, 1))
    _check_out(project, findings)
    return decl.Sources(
        project=project,
        specs=tuple(specs),
        configs=parsed.configs,
        sets=_sets(sets, files, findings),
    )


def _check_out(project: decl.Project, findings: Findings) -> None:
    """The output folder is one of its own: everything in it is servec's to write and remove."""
    if project.out is None:
        return
    name = posixpath.normpath(project.out.value)
    problem = "is the project itself" if name == "." else ""
    if any(part.startswith(".") for part in name.split("/")) and not problem:
        problem = "is hidden"
    specs = [posixpath.normpath(item.value) for item in project.specs] or ["specs"]
    for other in (*specs, *decl.DATA_FOLDERS):
        if name == other:
            problem = "is a folder of sources"
        elif f"{name}/".startswith(f"{other}/"):
            problem = f"lies in the folder of sources `{other}`"
        elif f"{other}/".startswith(f"{name}/"):
            problem = f"holds the folder of sources `{other}`"
    if problem:
        findings.add(codes.BAD_OUTPUT, project.out.span, path=name, problem=problem)


def _sets(texts: tuple[str, ...], files: Files, findings: Findings) -> tuple[decl.Set, ...]:
    """`MODEL.KNOB=VALUE` of the command line; each is a line of a source of its own."""
    files.add(COMMAND_LINE, "\n".join(texts))
    found = []
    for number, text in enumerate(texts, 1):
        name, equals, value = text.partition("=")
        model, dot, knob = name.partition(".")
        span = Span(COMMAND_LINE, number, 1, max(len(text), 1))
        problem = _set_problem(text, model, dot, knob, equals)
        if problem:
            findings.add(codes.BAD_SET, span, text=text, problem=problem)
            continue
        node = _value(number, value, len(name) + 1, findings)
        if node is not None:
            at_model = At(model, Span(COMMAND_LINE, number, 1, len(model)))
            at_knob = At(knob, Span(COMMAND_LINE, number, len(model) + 2, len(knob)))
            found.append(decl.Set(model=at_model, knob=at_knob, value=node))
    return tuple(found)


def _set_problem(text: str, model: str, dot: str, knob: str, equals: str) -> str:
    if not text.isprintable():
        return "it has characters that no setting has"
    if not equals:
        return "there is no `=`"
    if not dot:
        return "there is no `.` between a model and a parameter"
    if not model or not knob:
        return "the model is missing" if not model else "the parameter is missing"
    return ""


def _value(line: int, text: str, indent: int, findings: Findings) -> Node | None:
    """The value as YAML reads it, at its place in the line."""
    from servec.source.yaml_reader import read_yaml

    padded = "\n" * (line - 1) + " " * indent + (text if text.strip() else '""')
    tried = Findings()
    node = read_yaml(COMMAND_LINE, padded, tried)
    span = Span(COMMAND_LINE, line, indent + 1, max(len(text), 1))
    problems = [finding.message for finding in tried]
    if not problems and re.search(r"(?:^|\s)#", text) and not re.match(r"\s*['\"]", text):
        problems = ["from `#` on it would be a comment; put it in quotes"]
    if problems:
        findings.add(codes.BAD_SET, span, text=text, problem=problems[0])
        return None
    return node
