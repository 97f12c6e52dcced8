"""The wrapper serve.sh: the compiled command, one flag a line, in the engine's own template.

Templates are frames of shell text; every value enters them already quoted. They run sandboxed and
with every undefined name an error, so a project's own template can do no more than place text.
"""

from __future__ import annotations

from functools import cached_property

from jinja2 import DictLoader, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.runtime import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from servec.diag import codes
from servec.diag.findings import Findings
from servec.emit.bash_nodes import node_names, node_words
from servec.emit.header import header
from servec.emit.shell import expanded, quote, where
from servec.emit.start import start_words
from servec.ir.artifact import Artifact, Trace
from servec.ir.launch import Launch, Words
from servec.source.files import Files
from servec.source.located import Span
from servec.source.shipped import MARK

FRAME = "serve.sh.j2"
INDENT = "  "


class Wrappers:
    """Renders wrappers; templates are compiled once a run."""

    def __init__(self, files: Files, findings: Findings) -> None:
        self.files = files
        self.findings = findings
        self._texts: dict[str, str] = {}

    @cached_property
    def _frame(self) -> str:
        own = f"templates/{FRAME}"
        return own if self.files.exists(own) else MARK + own

    @cached_property
    def _templates(self) -> ImmutableSandboxedEnvironment:
        self._texts[FRAME] = self.files.text(self._frame) or ""
        return ImmutableSandboxedEnvironment(
            loader=DictLoader(self._texts),
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
        )

    def render(self, launch: Launch) -> Artifact | None:
        """serve.sh of a launch, or None with a finding where the engine's template is broken."""
        path = launch.plan.subject.engine.wrapper
        argv = [INDENT + _line(group) for group in launch.host_command]
        exports = [f"export {item.name}={quote(item.value)}" for item in launch.env]
        try:
            if path not in self._texts:
                self._templates  # noqa: B018  (the frame is read first)
                self._texts[path] = self.files.text(path) or ""
            template = self._templates.get_template(path)
            strange = set(template.blocks) - set(self._templates.get_template(FRAME).blocks)
            if strange:
                known = ", ".join(self._templates.get_template(FRAME).blocks)
                problem = f"the frame has no block `{min(strange)}`; it has {known}"
                self._broken(launch, 1, problem)
                return None
            text = template.render(
                header=header(launch.plan),
                model=launch.plan.name,
                argv="\n".join(argv),
                exports="\n".join(exports),
                names=[quote(variable.name) for variable in launch.env],
                node_names=node_names(launch),
                **start_words(launch),
                **node_words(launch),
            )
        except TemplateNotFound as error:
            self._broken(launch, 1, f"there is no template `{error.name}`; the frame is {FRAME}")
            return None
        except TemplateError as error:
            line = error.lineno if isinstance(error, TemplateSyntaxError) else 1
            in_frame = isinstance(error, TemplateSyntaxError) and error.name == FRAME
            self._broken(launch, line, str(error), self._frame if in_frame else "")
            return None
        traces = self._traces(launch, text, argv, exports)
        if traces is None:
            self._broken(launch, 1, "the template does not place `argv` and `exports`")
            return None
        return Artifact(f"{launch.plan.name}/bash/serve.sh", text, executable=True, traces=traces)

    def _traces(
        self, launch: Launch, text: str, argv: list[str], exports: list[str]
    ) -> dict[int, Trace] | None:
        """What each line of the command and the environment came from."""
        start = _line_of(text, argv)
        if start is None:
            return None
        traces = {
            start + index: Trace(group.setting, group.origin)
            for index, group in enumerate(launch.host_command)
        }
        if exports:
            first = _line_of(text, exports)
            if first is None:
                return None
            for index, variable in enumerate(launch.env):
                traces[first + index] = Trace(None, variable.origin)
        return traces

    def _broken(self, launch: Launch, line: int, problem: str, place: str = "") -> None:
        engine = launch.plan.subject.engine
        span = Span(place or engine.wrapper, line, 1)
        advice = "a wrapper places `argv`, `exports`, `names` and `header` in shell text"
        self.findings.add(
            codes.BROKEN_ENGINE, span, engine=engine.name, problem=problem, advice=advice
        )


def _line(group: Words) -> str:
    """A flag and its values; a file of options is beside the wrapper."""
    if group.who:
        return where("leads" if group.who == "leader" else "joins", group.words)
    words = " ".join(map(expanded, group.words[:-1] if group.file else group.words))
    if not group.file:
        return words
    path = f'"$(dirname -- "$(readlink -f -- "${{BASH_SOURCE[0]-$0}}")")"/{quote(group.file)}'
    return f"{words} {path}"


def _line_of(text: str, block: list[str]) -> int | None:
    position = text.find("\n".join(block))
    return None if position < 0 else text.count("\n", 0, position) + 1
