"""Artifacts -> the output folder, and the folder held against them.

Each file is written beside its place and moved there, so that at any moment it is old or new, never
half. Equal files are left alone. A file is removed only where MANIFEST.sha256 says that servec
wrote it and its bytes are still those; anything else in the folder is told and never touched.
"""

from __future__ import annotations

import os
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
from servec.pipeline import Compiled

TEMPORARY = ".servec-"


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


def build(
    folder: Path, artifacts: tuple[Artifact, ...], findings: Findings, *, partial: bool
) -> Written | None:
    """Write what differs, remove what is left over (not in a partial build), and say what is not
    servec's. None with a finding where the folder cannot be written, or where a stranger's file
    stands in the place of an artifact: then nothing is written at all."""
    try:
        before = _read_manifest(folder)
        differences = {item.path: _difference(folder, item) for item in artifacts}
        for item in artifacts:
            if differences[item.path] and _is_foreign(folder, item.path, before):
                detail = "stands where servec would write, and servec did not write it"
                shown, error = _shown(folder, item.path), Severity.ERROR
                findings.add(codes.FOREIGN, None, path=shown, detail=detail, severity=error)
        if findings.errors:
            return None
        differing = tuple(item for item in artifacts if differences[item.path])
        return _build(folder, artifacts, differing, before, findings, partial)
    except OSError as error:
        _cannot("write", folder, error, findings)
        return None


def _build(
    folder: Path,
    artifacts: tuple[Artifact, ...],
    differing: tuple[Artifact, ...],
    before: dict[str, str],
    findings: Findings,
    partial: bool,
) -> Written:
    wanted = {artifact.path for artifact in artifacts}
    leftovers = [] if partial else sorted(set(before) - wanted)
    if differing or leftovers:
        # What is about to be written is listed first, so that an interrupted run can be told from
        # a stranger's file by the next one.
        listed = {item.path: sha256(item.content).hexdigest() for item in differing}
        listed.pop(MANIFEST, None)
        _write(folder, MANIFEST, manifest_text({**before, **listed}).encode(), executable=False)
    for item in differing:
        if item.path != MANIFEST:
            _write(folder, item.path, item.content, executable=item.executable)
    removed = [path for path in leftovers if _remove(folder, path, before[path], findings)]
    for item in artifacts:
        if item.path == MANIFEST and _difference(folder, item):
            _write(folder, item.path, item.content, executable=False)
    _clear_temporaries(folder)
    known = wanted | set(before)
    for path in () if partial else _files(folder):
        if path not in known:
            detail = "was not written by servec"
            findings.add(codes.FOREIGN, None, path=_shown(folder, path), detail=detail)
    written = tuple(item.path for item in differing)
    return Written(written, len(artifacts) - len(differing), tuple(removed))


def check(
    folder: Path, artifacts: tuple[Artifact, ...], findings: Findings, *, partial: bool
) -> None:
    """Hold the folder against the artifacts: changed, missing and left-over files are findings."""
    try:
        _check(folder, artifacts, findings, partial)
    except OSError as error:
        _cannot("read", folder, error, findings)


def _check(
    folder: Path, artifacts: tuple[Artifact, ...], findings: Findings, partial: bool
) -> None:
    before = _read_manifest(folder)
    wanted = {item.path for item in artifacts}
    others = [] if partial else [path for path in _files(folder) if path not in wanted]
    for path in others:
        shown, error = _shown(folder, path), Severity.ERROR
        if before.get(path) == _digest(folder / path):
            findings.add(codes.LEFTOVER, None, path=shown)
        else:
            detail = "was not written by servec"
            findings.add(codes.FOREIGN, None, path=shown, detail=detail, severity=error)
    for item in artifacts:
        difference = _difference(folder, item)
        shown = _shown(folder, item.path)
        if difference == "missing":
            findings.add(codes.MISSING, None, path=shown)
        elif difference and (item.path != MANIFEST or not findings.errors):
            # MANIFEST.sha256 follows the other files: told by itself only where it stands alone.
            findings.add(codes.CHANGED, None, path=shown, detail=difference)


def _cannot(verb: str, folder: Path, error: OSError, findings: Findings) -> None:
    """A finding about a file that the system refuses, by its path in the folder."""
    name = os.fspath(error.filename) if error.filename is not None else os.fspath(folder)
    name = os.path.relpath(name, folder.parent)
    head, _, tail = name.rpartition("/")
    if tail.startswith(TEMPORARY):  # the file beside its place; the place is meant
        name = f"{head}/{tail.removeprefix(TEMPORARY).partition('-')[2]}"
    problem = error.strerror or str(error)
    findings.add(codes.CANNOT_WRITE, None, verb=verb, path=name, problem=problem.lower())


def _is_foreign(folder: Path, path: str, before: dict[str, str]) -> bool:
    """Whether something stands at an artifact's place that servec did not write: neither listed in
    MANIFEST.sha256 nor marked as generated."""
    target = folder / path
    if path in before or path == MANIFEST or not os.path.lexists(target):
        return False
    if target.is_dir() or target.is_symlink():
        return True
    with open(target, "rb") as file:
        return GENERATED.encode() not in file.read(400)


def _read_manifest(folder: Path) -> dict[str, str]:
    """Digests by path of what servec wrote before; lines that are none are passed over."""
    try:
        text = (folder / MANIFEST).read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return {}
    found = {}
    for line in text.splitlines():
        digest, gap, path = line.partition("  ")
        inside = path and not path.startswith("/") and ".." not in path.split("/")
        if gap and len(digest) == 64 and inside:
            found[path] = digest
    return found


def _difference(folder: Path, item: Artifact) -> str:
    """What differs between a file and its artifact, in a few words; empty where nothing does."""
    path = folder / item.path
    if os.path.islink(path):
        return "a link stands in its place"
    try:
        with open(path, "rb") as file:
            found = file.read()
            executable = bool(os.fstat(file.fileno()).st_mode & 0o100)
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except IsADirectoryError:
        return "a folder stands in its place"
    if found != item.content:
        return _first_difference(found, item.content)
    if executable != item.executable:
        return "it is not executable" if item.executable else "it is executable"
    return ""


def _first_difference(found: bytes, wanted: bytes) -> str:
    if found.replace(b"\r\n", b"\n") == wanted:
        return "its lines end with CR LF"
    if found + b"\n" == wanted:
        return "its last line does not end"
    old, new = found.split(b"\n"), wanted.split(b"\n")
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            here, there = _parts(one, other)
            return f"line {number} should be `{there}`, it is `{here}`"
    return f"it has {len(old) - 1} lines and should have {len(new) - 1}"


def _parts(one: bytes, other: bytes) -> tuple[str, str]:
    """Two lines cut down to where they begin to differ."""
    left, right = (line.decode("utf-8", "replace").strip() for line in (one, other))
    pairs = zip(left, right, strict=False)
    same = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
    start = max(0, same - 20) if max(len(left), len(right)) > 60 else 0
    return _cut(left, start), _cut(right, start)


def _cut(text: str, start: int) -> str:
    end = start + 60
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")


def _digest(path: Path) -> str:
    return "" if path.is_symlink() else sha256(path.read_bytes()).hexdigest()


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
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _remove(folder: Path, path: str, digest: str, findings: Findings) -> bool:
    target = folder / path
    try:
        same = sha256(target.read_bytes()).hexdigest() == digest
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not same:
        detail = "comes from no source any more, but was changed by hand: it is left alone"
        findings.add(codes.FOREIGN, None, path=_shown(folder, path), detail=detail)
        return False
    target.unlink()
    for parent in target.parents:
        if parent == folder or any(parent.iterdir()):
            break
        parent.rmdir()
    return True


def _files(folder: Path) -> Iterator[str]:
    """Every file of the folder but hidden ones, sorted. Links to folders are not entered."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")


def _clear_temporaries(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            if name.startswith(TEMPORARY):
                Path(place, name).unlink(missing_ok=True)


def _shown(folder: Path, path: str) -> str:
    return f"{folder.name}/{path}"
