"""Every IR as text, for `servec dump`, for cases and for the eye. One line a thing, indented.

qwen2.5-7b  vllm 0.29.0 (image catalogue)
  enable_prefix_caching = true   spec override     specs/ppl.yaml:9:7
    over false                   eval requirement  specs/ppl.yaml:14:27  (suppressed, unmet)
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from servec.ir.artifact import Artifact
from servec.ir.launch import Launch
from servec.ir.parsed import Parsed
from servec.ir.placement import Placed
from servec.ir.plan import Draft, Plan
from servec.ir.program import Program, Subject
from servec.ir.setting import Judged, Outcome, Setting
from servec.ir.shape import fields_of
from servec.source.located import At, List, Map, Node, Plain, plain

RANK_WIDTH, PLACE_COLUMN = 16, 44


def print_ir(ir: object) -> str:
    """The text of what a pass gave."""
    return "".join(f"{line}\n" for line in _lines(ir))


def _lines(ir: object) -> Iterator[str]:
    match ir:
        case Parsed():
            yield from _parsed(ir)
        case Program():
            for server in ir.servers:
                demands = ", ".join(demand.task for demand in server.demands)
                tasks = f"  tasks: {demands}" if demands else ""
                yield f"server {server.model.name.value}{tasks}"
                for subject in server.variants:
                    yield from (f"  {line}" for line in _subject(subject))
        case tuple():
            for item in ir:
                yield from _item(item)
        case _:
            yield from _record(ir, "")


def _item(item: object) -> Iterator[str]:
    match item:
        case Draft():
            yield from _draft(item)
        case Plan():
            yield from plan_lines(item)
        case Placed():
            yield from _placed(item)
        case Launch():
            yield from _launch(item)
        case Artifact():
            mode = " executable" if item.executable else ""
            yield f"{item.path}  {len(item.content)} bytes, {item.text.count(chr(10))} lines{mode}"
        case _:
            raise AssertionError(f"no text for {item!r}")


def _parsed(parsed: Parsed) -> Iterator[str]:
    sources = {"servec.yaml": parsed.project, **parsed.specs, **parsed.configs}
    for path, node in sources.items():
        if node is not None:
            yield path
            yield from _node(node, "  ")


def _node(node: Node, indent: str) -> Iterator[str]:
    match node:
        case Map(entries):
            for key, entry in entries.items():
                if isinstance(entry.value, At):
                    span = entry.value.span
                    yield f"{indent}{key}: {_value(entry.value.value)} @ {span.line}:{span.column}"
                else:
                    yield f"{indent}{key}:"
                    yield from _node(entry.value, indent + "  ")
        case List(items):
            for item in items:
                if isinstance(item, At):
                    yield f"{indent}- {_value(item.value)} @ {item.span.line}:{item.span.column}"
                else:
                    yield f"{indent}-"
                    yield from _node(item, indent + "  ")
        case At():
            yield f"{indent}{_value(node.value)} @ {node.span.line}:{node.span.column}"


def _record(record: object, indent: str) -> Iterator[str]:
    """A declaration: its class, and every field that was said."""
    yield f"{indent}{type(record).__name__}"
    for name in fields_of(type(record)):
        value = getattr(record, name)
        if name in ("span", "name", "configs") or value in (None, ()):
            continue
        yield from _field(name, value, indent + "  ")


def _field(name: str, value: object, indent: str) -> Iterator[str]:
    match value:
        case At() if isinstance(value, At):
            yield f"{indent}{name}: {_value(value.value)} @ {value.span.line}:{value.span.column}"
        case Map() | List():
            yield f"{indent}{name}: {_value(plain(value))}"
        case tuple():
            yield f"{indent}{name}:"
            for item in value:
                if hasattr(item, "key") and hasattr(item, "value"):
                    yield from _field(item.key.value, item.value, indent + "  ")
                else:
                    yield from _field("-", item, indent + "  ")
        case _:
            yield f"{indent}{name}:"
            yield from _record(value, indent + "  ")


def subject_line(subject: Subject) -> str:
    version = subject.version
    known = f"{version.version} ({version.source})" if version.version else "unknown version"
    return f"{subject.name}  {subject.engine.name} {known}"


def _subject(subject: Subject) -> Iterator[str]:
    facts, recipe = subject.facts, subject.recipe
    yield subject_line(subject)
    size = f"{facts.billions:g}B" if facts.billions is not None else "unknown size"
    gpus = f"{subject.gpus} × " if subject.gpus else ""
    yield (
        f"  {gpus}{subject.accelerator.name.value}, {subject.precision or 'unknown precision'}, "
        f"{size}, {subject.model_type}"
    )
    yield f"  recipe {recipe.name.value if recipe else 'none'} ({subject.recipe_choice})"


def _draft(draft: Draft) -> Iterator[str]:
    yield from _subject(draft.subject)
    yield f"  formula tp {draft.formula_tp or 'unknown'}" + (
        f": {draft.formula}" if draft.formula else ""
    )
    for need in draft.needs:
        tasks = ", ".join(task for task, _ in need.asked)
        yield f"  needs {need.requirement} = {_value(need.value)} ({tasks})"
        for item in need.definitions:
            place = item.origin.where
            yield _column(f"    {item.knob} = {_value(item.value)}", item.rank.words, place)


def plan_lines(plan: Plan) -> Iterator[str]:
    """A plan: its settings with their whole history."""
    yield subject_line(plan.subject)
    for setting in plan.settings:
        yield from setting_lines(setting)


def setting_lines(setting: Setting) -> Iterator[str]:
    """A setting: what holds, then what it stands over and why that lost."""
    winner = setting.winner
    yield _column(f"  {_assignment(setting)}", winner.rank.words, winner.origin.where)
    for judged in setting.history[1:]:
        item = judged.definition
        over = "and " if judged.outcome is Outcome.AGREES else "over"
        text = f"    {over} {_value(item.value)}"
        yield _column(text, item.rank.words, item.origin.where, _why(judged))


def _assignment(setting: Setting) -> str:
    winner = setting.winner
    text = f"{setting.knob} = {_value(setting.value)}"
    written = winner.name != winner.knob and winner.written != winner.value
    return f"{text} ({winner.name}: {_value(winner.written)})" if written else text


def _why(judged: Judged) -> str:
    match judged.outcome:
        case Outcome.SUPPRESSED:
            return "(suppressed, met)"
        case Outcome.UNMET:
            return "(suppressed, unmet: SV0501)"
        case _:
            return ""


def _column(text: str, rank: str, place: str, why: str = "") -> str:
    return f"{text:<{PLACE_COLUMN}} {rank:<{RANK_WIDTH}}  {place}{'  ' if why else ''}{why}"


def _placed(placed: Placed) -> Iterator[str]:
    place = placed.placement
    yield subject_line(placed.plan.subject)
    way = f", {place.way.name.value}, meeting at port {place.leader_port}" if place.way else ""
    yield f"  {place.nodes} × {place.gpus_per_node} GPUs{way}"
    for number, group in enumerate(place.groups):
        hosts = ", ".join(f"{host.name} ({host.address})" for host in group)
        yield f"  replica {number}: {hosts}"


def _launch(launch: Launch) -> Iterator[str]:
    yield subject_line(launch.plan.subject)
    for group in launch.command:
        rank = group.setting.winner.rank.words if group.setting else ""
        words = " ".join(_word(str(word)) for word in group.words)
        yield _column(f"  {words}", rank, group.origin.where, f"({group.who})" if group.who else "")
    for process in (launch.beside, launch.worker):
        if process is not None:
            words = " ".join(_word(str(word)) for group in process.groups for word in group)
            yield _column(f"  {words}", process.name, process.origin.where)
    for variable in launch.env:
        yield _column(
            f"  {variable.name}={_word(variable.value)}", "environment", variable.origin.where
        )
    for item in launch.node_env:
        when = f"where {item.given} is known" if item.given else f"without {item.lacking}"
        yield _column(
            f"  {item.name}={_word(str(item.value))}", "node", item.origin.where, f"({when})"
        )
    yield f"  port {launch.port}, served as {launch.served_name}, health {launch.health_path}"


def _word(word: str) -> str:
    return word if word and word.isprintable() and " " not in word else json.dumps(word)


def _value(value: Plain) -> str:
    return json.dumps(value, ensure_ascii=False)
