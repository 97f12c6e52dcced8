"""Artifacts -> the output folder, and the folder held against them.

Each file is written beside its place and moved there, so that at any moment it is old or new, never
half. Equal files are left alone. A file is overwritten or removed only where servec wrote it, which
MANIFEST.sha256 or the mark in the file says; anything else in the folder is told and never touched,
and no link is followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.diag.suggest import nearest
from servec.emit.emit import MANIFEST, manifest_text
from servec.emit.header import GENERATED
from servec.ir import decl
from servec.ir.artifact import Artifact
from servec.ir.decl import OUT
from servec.output_difference import first_difference
from servec.pipeline import Compiled

TEMPORARY = ".servec-"
STALE = re.compile(r"\.servec-[0-9]+-")
MARK_BYTES = 400
"""How far into a file the mark of a generated one may stand."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a build did: paths from the output folder."""

    written: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]


def out_folder(root: Path, project: decl.Project, findings: Findings) -> Path | None:
    """The project's output folder, or None with a finding where it cannot be one."""
    name = project.out.value if project.out else OUT
    folder = root / name
    problem = ""
    try:
        if root.resolve() not in folder.resolve().parents:
            problem = "leads out of the project"
        elif folder.exists() and not folder.is_dir():
            problem = "is a file"
    except (OSError, RuntimeError):  # a ring of links
        problem = "leads nowhere"
    if problem:
        span = project.out.span if project.out else None
        findings.add(codes.BAD_OUTPUT, span, path=name, problem=problem)
        return None
    return folder


def limit_to(done: Compiled, names: tuple[str, ...], findings: Findings) -> tuple[Artifact, ...]:
    """The artifacts of the named plans or models; what is of all of them stays whole."""
    if not names:
        return done.artifacts
    known = sorted({n for p in done.plans for n in (p.name, p.subject.model.name.value)})
    shared = {name: root for name, root in done.program.others if root is not None}
    names = tuple(shared.get(name, name) for name in names)
    for name in names:
        if name not in known:
            findings.add(
                codes.NO_SUCH_NAME,
                None,
                what="model",
                name=name,
                known="known models: " + ", ".join(known),
                suggestion=nearest(name, known),
            )
    chosen = {
        plan.name
        for plan in done.plans
        if plan.name in names or plan.subject.model.name.value in names
    }
    return tuple(
        item for item in done.artifacts if "/" not in item.path or item.path.split("/")[0] in chosen
    )


def plans_of(artifacts: tuple[Artifact, ...]) -> set[str]:
    """The plans that artifacts are of."""
    return {item.path.split("/")[0] for item in artifacts if "/" in item.path}


def build(
    folder: Path, artifacts: tuple[Artifact, ...], findings: Findings, *, partial: bool
) -> Written | None:
    """Write what differs, remove what is left over (not in a partial build), and say what is not
    servec's. None with a finding where the folder cannot be written, or where a stranger's file
    stands in the place of an artifact: then nothing is written at all."""
    try:
        return _Build(folder, artifacts, findings, partial).run()
    except OSError as error:
        _cannot("write", folder, error, findings)
        return None


def check(
    folder: Path, artifacts: tuple[Artifact, ...], findings: Findings, *, partial: bool
) -> None:
    """Hold the folder against the artifacts: changed, missing and left-over files are findings."""
    before = _read_manifest(folder)
    wanted = {item.path for item in artifacts}
    for path in () if partial else _files(folder):
        if path not in wanted:
            shown, error = _shown(folder, path), Severity.ERROR
            if _digest(folder / path) in before.get(path, ()):
                findings.add(codes.LEFTOVER, None, path=shown)
            else:
                detail = "was not written by servec"
                findings.add(codes.FOREIGN, None, path=shown, detail=detail, severity=error)
    for item in artifacts:
        if item.path == MANIFEST and (partial or findings.errors):
            continue  # it follows the other files: told by itself only where it stands alone
        difference, shown = _difference(folder, item), _shown(folder, item.path)
        if difference == "missing":
            findings.add(codes.MISSING, None, path=shown)
        elif difference:
            findings.add(codes.CHANGED, None, path=shown, detail=difference)


class _Build:
    def __init__(
        self, folder: Path, artifacts: tuple[Artifact, ...], findings: Findings, partial: bool
    ) -> None:
        self.folder = folder
        self.artifacts = artifacts
        self.findings = findings
        self.partial = partial
        self.before = _read_manifest(folder)
        self.wanted = {item.path for item in artifacts}

    def run(self) -> Written | None:
        (manifest,) = (item for item in self.artifacts if item.path == MANIFEST)
        files = [item for item in self.artifacts if item.path != MANIFEST]
        differing = [item for item in files if _difference(self.folder, item)]
        for item in differing:
            self.refuse_foreign(item.path)
        if self.findings.errors:
            return None
        leftovers = [] if self.partial else sorted(set(self.before) - self.wanted)
        final = self.final_manifest(manifest)
        manifest_differs = bool(_difference(self.folder, final))
        if differing or leftovers:
            self.announce(differing)
        for item in differing:
            _write(self.folder, item.path, item.content, executable=item.executable)
        removed = [path for path in leftovers if self.remove(path)]
        if manifest_differs or differing or leftovers:
            _write(self.folder, MANIFEST, final.content, executable=False)
        self.tell_strangers()
        written = tuple(item.path for item in differing) + (MANIFEST,) * manifest_differs
        return Written(written, len(self.artifacts) - len(written), tuple(removed))

    def refuse_foreign(self, path: str) -> None:
        """Make a finding where servec would overwrite what it did not write."""
        if _is_foreign(self.folder, path, path in self.before):
            detail = "stands where servec would write, and servec did not write it"
            place = _blocking(self.folder, path) or path
            self.findings.add(
                codes.FOREIGN,
                None,
                path=_shown(self.folder, place),
                detail=detail,
                severity=Severity.ERROR,
            )

    def final_manifest(self, whole: Artifact) -> Artifact:
        """MANIFEST.sha256 as it must be in the end. A partial build leaves files as they were:
        those keep the digests that they were written with."""
        if not self.partial:
            return whole
        digests = {path: {digest} for digest, path in _digest_lines(whole.text)}
        kept = {path: found for path, found in self.before.items() if path not in self.wanted}
        return Artifact(MANIFEST, manifest_text(_one_each({**digests, **kept})))

    def announce(self, differing: list[Artifact]) -> None:
        """List what is about to be written beside what is there, so that after an interruption the
        next run knows both for its own."""
        listed = {path: set(found) for path, found in self.before.items()}
        for item in differing:
            listed.setdefault(item.path, set()).add(sha256(item.content).hexdigest())
        pairs = sorted((path, digest) for path, found in listed.items() for digest in found)
        text = "".join(f"{digest}  {path}\n" for path, digest in pairs)
        _write(self.folder, MANIFEST, text.encode(), executable=False)

    def remove(self, path: str) -> bool:
        """Remove a left-over file where its bytes are those that servec wrote."""
        target = self.folder / path
        if _blocking(self.folder, path) is not None:
            return False
        digest = _digest(target)
        if digest and digest not in self.before[path]:
            detail = "comes from no source any more, but was changed by hand: it is left alone"
            shown = _shown(self.folder, path)
            self.findings.add(codes.FOREIGN, None, path=shown, detail=detail)
            return False
        if digest:
            target.unlink()
        for parent in target.parents:
            if parent == self.folder or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()
        return bool(digest)

    def tell_strangers(self) -> None:
        known = self.wanted | set(self.before)
        for place, _, names in os.walk(self.folder):
            for name in names:
                if STALE.match(name) and _is_regular(Path(place, name)):
                    Path(place, name).unlink(missing_ok=True)
        for path in () if self.partial else _files(self.folder):
            if path not in known:
                detail, shown = "was not written by servec", _shown(self.folder, path)
                self.findings.add(codes.FOREIGN, None, path=shown, detail=detail)


def _one_each(digests: dict[str, set[str]]) -> dict[str, str]:
    return {path: min(found) for path, found in digests.items() if found}


def _read_manifest(folder: Path) -> dict[str, set[str]]:
    """Digests by path of what servec wrote before: after an interruption two for one path."""
    path = folder / MANIFEST
    if not _is_regular(path):
        return {}
    found: dict[str, set[str]] = {}
    for digest, name in _digest_lines(path.read_bytes().decode("utf-8", "replace")):
        found.setdefault(name, set()).add(digest)
    return found


def _digest_lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a MANIFEST.sha256 that are such lines, and stay in the folder."""
    for line in text.splitlines():
        digest, gap, path = line.partition("  ")
        inside = path and not path.startswith("/") and ".." not in path.split("/")
        if gap and len(digest) == 64 and inside:
            yield digest, path


def _difference(folder: Path, item: Artifact) -> str:
    """What differs between a file and its artifact, in a few words; empty where nothing does."""
    path = folder / item.path
    blocking = _blocking(folder, item.path)
    if blocking is not None:
        what = "a link" if os.path.islink(folder / blocking) else "something that is no file"
        where = "in its place" if blocking == item.path else f"at `{blocking}`"
        return f"{what} stands {where}"
    try:
        with open(path, "rb") as file:
            found = file.read()
            executable = bool(os.fstat(file.fileno()).st_mode & 0o100)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"it cannot be read ({(error.strerror or str(error)).lower()})"
    if found != item.content:
        return first_difference(found, item.content)
    if executable != item.executable:
        return "it is not executable" if item.executable else "it is executable"
    return ""


def _blocking(folder: Path, path: str) -> str | None:
    """The part of a path at which something stands that is neither the folder nor the file that
    servec writes: a link, a file in a folder's place, a pipe, a folder in the file's place."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        part = "/".join(parts[:count])
        try:
            mode = os.lstat(folder / part).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        fits = stat.S_ISREG(mode) if count == len(parts) else stat.S_ISDIR(mode)
        if not fits:
            return part
    return None


def _is_foreign(folder: Path, path: str, listed: bool) -> bool:
    """Whether something stands at an artifact's place that servec did not write: it is no plain
    file, or neither listed in MANIFEST.sha256 nor marked as generated."""
    if _blocking(folder, path) is not None:
        return True
    target = folder / path
    if listed or not target.exists():
        return False
    with open(target, "rb") as file:
        return GENERATED.encode() not in file.read(MARK_BYTES)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if _is_regular(path) else ""


def _write(folder: Path, path: str, content: bytes, *, executable: bool) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{TEMPORARY}{os.getpid()}-{target.name}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with open(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o755 if executable else 0o644)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, os.fspath(temporary)) from error


def _files(folder: Path) -> Iterator[str]:
    """Everything in the folder that is no folder, but hidden names, sorted. A link to a folder is
    not entered: it is a thing of its own."""
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*names, *links]):
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")


def _cannot(verb: str, folder: Path, error: OSError, findings: Findings) -> None:
    """A finding about a file that the system refuses, by its path in the folder."""
    name = os.fspath(error.filename) if error.filename is not None else os.fspath(folder)
    name = os.path.relpath(name, folder.parent)
    head, _, tail = name.rpartition("/")
    if STALE.match(tail):  # the file beside its place; the place is meant
        name = f"{head}/{STALE.sub('', tail)}"
    problem = (error.strerror or str(error)).lower()
    findings.add(codes.CANNOT_WRITE, None, verb=verb, path=name, problem=problem)


def _shown(folder: Path, path: str) -> str:
    return f"{folder.name}/{path}"
