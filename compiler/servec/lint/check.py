"""Found command lines -> findings: which engine, which version, what it says of the words.

deploy.yaml: image vllm/vllm-openai:v0.10.0, args [--nnodes, "2"]
  -> SV0615 at deploy.yaml:9:14: vllm 0.10.0 has no flag `--nnodes`; it is there since 0.11.1
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from packaging.version import Version

from servec.catalog.calls import Called, called
from servec.catalog.catalog import Catalog
from servec.catalog.engines import Engine
from servec.catalog.released import Released
from servec.catalog.verdicts import judge, unknown_variable
from servec.diag import codes
from servec.diag.findings import Findings
from servec.lint.find import Found, in_text
from servec.lint.find_yaml import Unread, in_yaml, is_yaml
from servec.lint.shell import Word
from servec.source.located import Span


class _Line(NamedTuple):
    """An engine's own words, and what the program before them lets follow."""

    engine: Engine
    words: tuple[Word, ...]
    call: Called
    image: str


class Linter:
    """Holds files against the catalogue; engines are looked for once."""

    def __init__(self, catalog: Catalog, version: Version | None = None) -> None:
        self.catalog = catalog
        self.version = version
        names = catalog.engine_names
        found = {name: catalog.engine(name) for name in names}
        self.engines = [engine for engine in found.values() if engine is not None]
        known = [released for name in names if (released := catalog.released(name))]
        # A version that is said for all is that of the engines that have such a release.
        self.is_covered = any(released.covers(version) for released in known if version)
        self.marks = re.compile("|".join(map(re.escape, sorted(set(self._marks())))))

    def _marks(self) -> Iterator[str]:
        """What a text has that holds a command line of an engine: its program, or its image."""
        for engine in self.engines:
            for call in (*engine.serve.calls, *engine.serve.known_calls):
                yield max((word.value for word in call.program), key=len)
        for place, _ in self.catalog.images.others(""):
            yield place

    def lint(self, path: str, text: str, findings: Findings) -> int:
        """Findings about one file; how many command lines it has."""
        if not self.marks.search(text):
            return 0
        count = 0
        text = text.replace("\r\n", "\n")
        for found in (
            in_yaml(text, self.marks) if is_yaml(path, text) else in_text(text, self.marks)
        ):
            if isinstance(found, Unread):
                code = codes.TEMPLATE if found.is_template else codes.SYNTAX
                span = Span(path, found.line, found.column)
                findings.add(code, span, problem=found.problem)
                continue
            for line in self._lines(found):
                count += 1
                self._judge(path, line, found, findings)
        return count

    def _lines(self, found: Found) -> Iterator[_Line]:
        """The engine that a command starts: its program may stand behind others, as `exec` and
        `docker run IMAGE` do; a container's words may leave it out."""
        words = found.words
        texts = [word.text for word in words]
        if not self.marks.search("\n".join((found.image, *texts))):
            return
        for start in range(len(words) if not texts or texts[0] in WRAPPERS else 1):
            for known in self.engines:
                call = called(texts[start:], known.serve) if not _is_flag(texts[start]) else None
                if call is not None:
                    image = found.image or self._image_among(texts[:start])
                    rest = words[start + call.words :]
                    yield _Line(known, rest, call, image)
                    return
        rest, image = self._in_container(found)
        name = self.catalog.images.engine_of(image) if image else None
        engine = self.catalog.engine(name) if name else None
        if engine is not None and rest and _is_flag(rest[0].text):
            yield _Line(engine, rest, Called(0, 1), image)

    def _in_container(self, found: Found) -> tuple[tuple[Word, ...], str]:
        """A container's words without a program, and its image: its own, or those that follow the
        image of `docker run`."""
        if found.is_container:
            return found.words, found.image
        texts = [word.text for word in found.words]
        image = self._image_among(texts)
        runs = [place for place, text in enumerate(texts[:-1]) if text in RUNNERS]
        begins = runs and "run" in texts[runs[0] + 1 : runs[0] + 3]
        if not image or not begins or any(text.startswith("--entrypoint") for text in texts):
            return (), ""
        return found.words[texts.index(image) + 1 :], image

    def _image_among(self, texts: Sequence[str]) -> str:
        return next((text for text in texts if self.catalog.images.engine_of(text)), "")

    def _judge(self, path: str, line: _Line, found: Found, findings: Findings) -> None:
        engine, released = line.engine, self.catalog.released(line.engine.name)
        if released is None:
            return
        version = None
        if line.image:
            version = self.catalog.version_in(engine.name, line.image).version
        if version is None and (released.covers(self.version) or not self.is_covered):
            version = self.version
        texts = [word.text for word in line.words]
        call = line.call
        for verdict in judge(
            texts,
            engine.serve,
            engine.name,
            released,
            version,
            call.positionals,
            refused=call.refused,
        ):
            if found.is_template and verdict.code is codes.GIVEN_TWICE:
                continue  # each may stand under its own condition
            word = line.words[verdict.place] if verdict.place < len(line.words) else None
            findings.put(verdict.at(_span(path, word)))
        self._variables(path, engine, released, version, found, findings)

    def _variables(
        self,
        path: str,
        engine: Engine,
        released: Released,
        version: Version | None,
        found: Found,
        findings: Findings,
    ) -> None:
        for word in found.variables:
            prefix = engine.manifest.env_var_prefix.value
            verdict = unknown_variable(
                word.text, prefix, engine.name, engine.serve, released, version
            )
            if verdict is not None:
                findings.put(verdict.at(_span(path, word)))


WRAPPERS = frozenset((
    "exec", "sudo", "env", "nohup", "time", "timeout", "numactl", "taskset", "nice", "ionice",
    "stdbuf", "setsid", "chrt", "srun", "mpirun", "mpiexec", "docker", "podman", "nerdctl", "tini",
    "dumb-init", "gosu", "su-exec", "nsys", "uv", "poetry", "conda", "command", "if", "then", "do",
    "else", "while", "until", "!", "{", "/usr/bin/env", "/usr/bin/tini", "/sbin/tini",
))  # fmt: skip
"""Programs and words that start the command that follows them."""
RUNNERS = ("docker", "podman", "nerdctl")


def _is_flag(text: str) -> bool:
    return text.startswith("-")


def _span(path: str, word: Word | None) -> Span:
    return Span(path, word.line, word.column, word.length) if word else Span(path, 1, 1)
