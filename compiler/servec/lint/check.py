"""Found command lines -> findings: which engine, which version, what it says of the words.

deploy.yaml: image vllm/vllm-openai:v0.10.0, args [--nnodes, "2"]
  -> SV0615 at deploy.yaml:9:14: vllm 0.10.0 has no flag `--nnodes`; it is there since 0.11.1
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from packaging.version import Version

from servec.catalog.calls import PYTHON, Called, called
from servec.catalog.catalog import Catalog
from servec.catalog.command_line import HOLE
from servec.catalog.engines import Engine
from servec.catalog.images import mentions
from servec.catalog.released import Released
from servec.catalog.verdicts import judge, unknown_variable
from servec.catalog.versions import first_that_holds
from servec.diag import codes
from servec.diag.findings import Findings
from servec.lint.find import Found
from servec.lint.find_any import find
from servec.lint.find_yaml import Unread
from servec.lint.shell import Word
from servec.source.located import Span


class _Line(NamedTuple):
    """An engine's own words, and what the program before them lets follow. `twice` is a word that
    calls a program again which the image has started, `program`."""

    engine: Engine
    words: tuple[Word, ...]
    call: Called
    image: str
    twice: Word | None = None
    program: str = ""


class Linter:
    """Holds files against the catalogue; engines are looked for once. `version` is that of the
    engines whose images do not tell theirs and that have releases around it; `versions` are those
    of single engines."""

    def __init__(
        self,
        catalog: Catalog,
        version: Version | None = None,
        versions: Mapping[str, Version] = MappingProxyType({}),
    ) -> None:
        self.catalog = catalog
        self.version = version
        self.versions = versions
        names = catalog.engine_names
        found = {name: catalog.engine(name) for name in names}
        self.engines = [engine for engine in found.values() if engine is not None]
        self.catalogued = {
            name: released for name in names if (released := catalog.released(name)) is not None
        }
        self.is_covered = any(
            known.covers(version) for known in self.catalogued.values() if known.has_versions
        )
        self.marks = re.compile("|".join(map(re.escape, sorted(set(self._marks())))))

    def _marks(self) -> Iterator[str]:
        """What a text has that holds a command line of an engine: its program, or its image."""
        for engine in self.engines:
            for call in (*engine.serve.calls, *engine.serve.known_calls):
                program = [word.value for word in call.program]
                yield program[2] if PYTHON.match(program[0]) and len(program) > 2 else program[0]
        for place, _ in self.catalog.images.others(""):
            yield place.rpartition("/")[2] if self.catalog.images.held_by(place) else place

    def lint(self, path: str, text: str, findings: Findings) -> int:
        """Findings about one file; how many command lines it has."""
        if not self.marks.search(text):
            return 0
        count = 0
        for found in find(path, text.replace("\r\n", "\n"), self.marks):
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
        first = texts[0].rpartition("/")[2] if texts else ""
        for start in range(len(words) if first in WRAPPERS else 1):
            if texts and (own := self._own(texts[start : start + PROGRAM])):
                engine, call = own
                is_run = first in WRAPPERS and "run" in texts[:start]
                image = found.image or (texts[start - 1] if is_run else "")
                has_own = any(text.startswith("--entrypoint") for text in texts[:start])
                follows = (found.is_container or is_run) and not has_own
                before = self._started(image) if follows else ""
                rest = words[start + call.words :]
                yield _Line(engine, rest, call, image, words[start] if before else None, before)
                return
        rest, image = self._in_container(found)
        holder = self._held_by(image)
        behind = self._behind(holder, image, rest[0].text) if holder and rest else None
        if holder and behind:
            yield _Line(holder, rest, behind, image)

    def _own(self, texts: list[str]) -> tuple[Engine, Called] | None:
        """The engine whose program the words begin with."""
        if texts[0].startswith("-"):
            return None
        for engine in self.engines:
            call = called(texts, engine.serve)
            if call is not None:
                return engine, call
        return None

    def _started(self, image: str) -> str:
        """The program that an engine's own image starts before other words; or nothing."""
        holder = self._held_by(image)
        if holder is None:
            return ""
        entry = first_that_holds(holder.serve.entry_points, self._version(holder, image))
        return " ".join(word.value for word in entry.program) if entry else ""

    def _behind(self, engine: Engine, image: str, first: str) -> Called | None:
        """How the words behind an image's own program are taken; None where they begin with
        another program."""
        if not _is_flag(first) and not _may_be_model(first):
            return None
        version = self._version(engine, image)
        entry = first_that_holds(engine.serve.entry_points, version)
        program = [word.value for word in entry.program] if entry else []
        call = called([*program, first], engine.serve) if program else None
        if call is not None:
            return call._replace(words=0)
        return Called(0, 1) if _is_flag(first) or engine.serve.entry_points else None

    def _in_container(self, found: Found) -> tuple[tuple[Word, ...], str]:
        """A container's words without a program, and its image: its own, or those that follow the
        image of `docker run`."""
        if found.is_container:
            return found.words, found.image
        texts = [word.text for word in found.words]
        run = _run_of(texts)
        image = next((text for text in texts[run:] if self._held_by(text)), "") if run else ""
        if not image or any(text.startswith("--entrypoint") for text in texts):
            return (), ""
        return found.words[texts.index(image, run) + 1 :], image

    def _held_by(self, image: str) -> Engine | None:
        name = self.catalog.images.held_by(image) if image else None
        return self.catalog.engine(name) if name else None

    def _version(self, engine: Engine, image: str) -> Version | None:
        """The version that an image with the engine in its name tells, or that was given."""
        told = None
        if image and (self._held_by(image) is engine or mentions(image, engine.name)):
            told = self.catalog.version_in(engine.name, image).version
        if told is not None:
            return told
        if engine.name in self.versions:
            return self.versions[engine.name]
        known = self.catalogued.get(engine.name)
        is_meant = not self.is_covered or (known is not None and known.covers(self.version))
        return self.version if is_meant else None

    def _judge(self, path: str, line: _Line, found: Found, findings: Findings) -> None:
        engine, released = line.engine, self.catalogued.get(line.engine.name)
        if released is None:
            return
        if line.twice is not None:
            span, advice = _span(path, line.twice), "give the container an entry point of its own"
            findings.add(codes.PROGRAM_TWICE, span, program=line.program, advice=advice)
        version = self._version(engine, line.image)
        texts = [word.text for word in line.words]
        for verdict in judge(texts, engine.serve, engine.name, released, version, line.call):
            if found.may_vary and verdict.code is codes.GIVEN_TWICE:
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
        for word in (*found.variables, *_given_to_run(found.words)):
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
    "else", "elif", "while", "until", "!", "{", "coproc", "xargs", "apptainer", "singularity",
    "strace", "unbuffer", "runuser", "chroot", "screen", "kubectl",
))  # fmt: skip
"""Programs and words that start the command that follows them."""
PROGRAM = 16
"""How many words a program may have, with Python's own options."""
RUNNERS = ("docker", "podman", "nerdctl")
GIVEN = re.compile(r"(?:-e|--env)(?:=|\Z)|-e(?=[A-Za-z_])")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BINARIES = re.compile(r"(?:/usr(?:/local)?)?/s?bin/")


def _is_flag(text: str) -> bool:
    return text.startswith("-")


def _may_be_model(text: str) -> bool:
    """Whether a bare word names a model rather than a program: a repository or a path."""
    return HOLE in text or ("/" in text and not BINARIES.match(text))


def _run_of(texts: Sequence[str]) -> int:
    """Where the words behind `docker run` begin; 0 where there is none."""
    place = next((at for at, text in enumerate(texts[:-1]) if text in RUNNERS), None)
    if place is None or "run" not in texts[place + 1 : place + 4]:
        return 0
    return texts.index("run", place + 1) + 1


def _given_to_run(words: Sequence[Word]) -> Iterator[Word]:
    """The names of the variables that `docker run` gives its container: `-e NAME=VALUE`."""
    run = _run_of([word.text for word in words])
    following = iter(words[run:] if run else ())
    for word in following:
        found = GIVEN.match(word.text)
        if found is None:
            continue
        begin = found.end()
        given = word if begin < len(word.text) else next(following, None)
        begin = begin if given is word else 0
        name = VARIABLE.match(given.text, begin) if given else None
        if given and name:
            column = given.column + begin
            yield given._replace(text=name[0], column=column, length=len(name[0]))


def _span(path: str, word: Word | None) -> Span:
    return Span(path, word.line, word.column, word.length) if word else Span(path, 1, 1)
