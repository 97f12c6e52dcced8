"""servec explain: where a value comes from, or what a finding means."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import click

from servec.catalog.given import knob_of
from servec.cli.session import Session, project_options
from servec.diag import codes
from servec.diag.findings import Severity
from servec.diag.suggest import nearest
from servec.ir.artifact import Artifact
from servec.ir.facts import Flag
from servec.ir.launch import Launch
from servec.ir.plan import Plan

CODE = re.compile(r"SV[0-9]{4}\Z", re.IGNORECASE)
PLACE = re.compile(r"(?P<path>.+):(?P<line>[0-9]+)\Z")


@click.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("what")
@click.argument("knob", required=False)
@project_options
def command(
    what: str, knob: str | None, project: str, sets: tuple[str, ...], strict: bool, style: str
) -> int:
    """Explain a finding's code, a model's knob, or a line of an emitted file.

    \b
    servec explain SV0203
    servec explain qwen3-8b max_model_len
    servec explain golden/qwen3-8b/bash/serve.sh:14
    """
    if CODE.match(what) and knob is None:
        return _code(what.upper())
    session = Session(project, sets, strict, style)
    done = session.compile()
    if done is None:
        return session.close()
    place = PLACE.match(what) if knob is None else None
    if place is None and knob is None and "/" in what:
        place = PLACE.match(f"{what}:0")
    if place is not None:
        _line(session, done.artifacts, Path(place["path"]), int(place["line"]), done.project.out)
    else:
        from servec.cli.named import launches_of

        for launch in launches_of(what, done, session):
            _knob(session, launch, knob)
    return session.close(Severity.ERROR)  # warnings are told by `build`


def _code(number: str) -> int:
    if number not in codes.BY_NUMBER:
        near = nearest(number, codes.BY_NUMBER)
        hint = f"; did you mean `{near}`?" if near else ""
        click.echo(f"servec: there is no finding `{number}`{hint}", err=True)
        return 1
    from servec.source.shipped import shipped_root

    page = shipped_root() / "docs" / "findings" / f"{number}.md"
    click.echo(page.read_text(encoding="utf-8"), nl=False)
    return 0


def _knob(session: Session, launch: Launch, name: str | None) -> None:
    """One knob's history, or all of them where none is named."""
    from servec.ir.text import plan_lines, setting_lines, subject_line

    if name is None:
        click.echo("\n".join(plan_lines(launch.plan)))
        return
    plan = launch.plan
    engine = plan.subject.engine.at(plan.subject.version.version)
    word = name.lstrip("-").replace("-", "_")
    topology = engine.topology_spellings.get(word)
    candidates = (engine.knob(word)[0], f"topology.{topology or word}", name)
    setting = next((found for knob in candidates if (found := plan.setting(knob))), None)
    if setting is not None:
        click.echo("\n".join([subject_line(plan.subject), *setting_lines(setting)]))
        return
    said = plan.subject.model.said.get(word)
    if said is not None and session.files is not None:
        line = (session.files.line(said.file, said.line) or "").strip()
        click.echo("\n".join([subject_line(plan.subject), f"  {line}  {said}"]))
        return
    flags = _flags(session, plan)
    flag = flags.get("--" + word.replace("_", "-"))
    if flag is not None:
        default = "the engine decides"
        if flag.default is not None:
            default = f"its default is {json.dumps(flag.default)}"
        click.echo(f"{subject_line(plan.subject)}\n  {flag.name}  nothing sets it: {default}")
        return
    known = [item.knob.removeprefix("topology.") for item in plan.settings]
    session.findings.add(
        codes.NO_SUCH_NAME,
        None,
        what=f"setting of `{plan.name}` called",
        name=name,
        known="its settings: " + ", ".join(known),
        suggestion=nearest(word, known) or nearest(word, map(knob_of, flags)),
    )


def _flags(session: Session, plan: Plan) -> Mapping[str, Flag]:
    """The flags of the plan's engine at its version; none where they were not read."""
    from servec.catalog.catalog import Catalog

    assert session.files is not None
    released = Catalog(session.files, session.findings).released(plan.subject.engine.name)
    return released.at(plan.subject.version.version).flags if released is not None else {}


def _line(
    session: Session, artifacts: tuple[Artifact, ...], path: Path, line: int, out: object
) -> None:
    from servec.ir.decl import OUT
    from servec.ir.text import setting_lines
    from servec.source.located import At

    assert session.root is not None
    folder = session.root / (out.value if isinstance(out, At) else OUT)
    artifact = _find(artifacts, path, folder)
    if artifact is None:
        problem, advice = "this is no file that servec writes", "name a file of the output folder"
        session.findings.add(
            codes.STALE_LINE, None, path=path, line=line, problem=problem, advice=advice
        )
        return
    lines = artifact.text.splitlines()
    if not 1 <= line <= len(lines):
        problem, advice = f"there is no line {line}", f"name one from 1 to {len(lines)} as `:LINE`"
        session.findings.add(
            codes.STALE_LINE, None, path=path, line=line, problem=problem, advice=advice
        )
        return
    written = path if path.exists() else folder / artifact.path
    if written.exists() and written.read_bytes() != artifact.content:
        problem, advice = "the file differs from what the sources say", "run `servec build` first"
        session.findings.add(
            codes.STALE_LINE, None, path=path, line=line, problem=problem, advice=advice
        )
        return
    click.echo(f"{artifact.path}:{line}: {lines[line - 1].strip()}")
    trace = artifact.traces.get(line)
    if trace is not None and trace.setting is not None:
        click.echo("\n".join(setting_lines(trace.setting)))
    else:
        click.echo(f"  {trace.origin.where if trace else 'servec writes this line itself'}")


def _find(artifacts: tuple[Artifact, ...], path: Path, folder: Path) -> Artifact | None:
    """The artifact that a path means, from the current folder or from the output folder."""
    by_path = {artifact.path: artifact for artifact in artifacts}
    for candidate in (path.resolve(), (folder.parent / path).resolve()):
        if folder.resolve() in candidate.parents:
            found = by_path.get(candidate.relative_to(folder.resolve()).as_posix())
            if found is not None:
                return found
    return by_path.get(path.as_posix())
