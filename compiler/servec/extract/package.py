"""A released package -> its Python sources in the cache folder, and the digest of its wheel.

The wheel comes from the index that the user's pip is set up for, or is one in hand. Only the `.py`
files are unpacked, and a downloaded wheel is deleted then: what is kept of it is its digest.
"""

from __future__ import annotations

import json
import lzma
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from servec.extract.errors import ExtractionError
from servec.extract.folders import made_once

RECORD = "package.json"
SOURCES = "sources"
DOWNLOAD_SECONDS = 3600
SOURCE_BYTES = 1 << 30
"""The most that the Python files of one package may come to."""
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError,
           ValueError)  # fmt: skip
"""What reading an archive raises that is cut, changed or encrypted."""


@dataclass(frozen=True, slots=True)
class Package:
    """A release's sources: `root` is the folder that its modules are imported from."""

    root: Path
    file: str
    sha256: str


def package_of(name: str, version: Version, cache: Path, wheel: Path | None = None) -> Package:
    """The sources of a release: unpacked before, from the wheel in hand, or from the index."""
    target = cache / "packages" / f"{canonicalize_name(name)}-{version}"
    if wheel is None:
        made_once(target, lambda aside: _fetch(name, version, aside), _is_whole)
    else:
        _check_name(wheel, name, version)
        digest = _digest(wheel)
        made_once(target, lambda aside: _unpack(wheel, aside), lambda at: _has(at, digest))
    return _recorded(target)


def _is_whole(target: Path) -> bool:
    return (target / RECORD).is_file()


def _has(target: Path, digest: str) -> bool:
    return _is_whole(target) and _recorded(target).sha256 == digest


def _recorded(target: Path) -> Package:
    said = json.loads((target / RECORD).read_text(encoding="utf-8"))
    return Package(target / SOURCES, said["file"], said["sha256"])


def _fetch(name: str, version: Version, aside: Path) -> None:
    with tempfile.TemporaryDirectory(dir=aside) as folder:
        _download(f"{name}=={version}", Path(folder))
        wheels = sorted(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise ExtractionError(f"{name} {version} has no wheel in the index")
        _check_name(wheels[0], name, version)
        _unpack(wheels[0], aside)


def _download(requirement: str, folder: Path) -> None:
    """Let pip fetch one wheel; the user's own index settings hold."""
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"),
        *("--disable-pip-version-check", "--ignore-requires-python", "--only-binary", ":all:"),
        *("--dest", str(folder), requirement),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ExtractionError(f"{requirement} could not be downloaded in an hour") from error
    if done.returncode != 0:
        raise ExtractionError(f"{requirement} could not be downloaded: {pip_says(done.stderr)}")


def pip_says(text: str) -> str:
    """The last complaint of pip in its own words."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip said nothing"])[-1]


def _check_name(wheel: Path, name: str, version: Version) -> None:
    try:
        found, its_version, _, _ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename as error:
        raise ExtractionError(f"{wheel} is not named as a wheel is") from error
    if found != canonicalize_name(name) or its_version.public != version.public:
        raise ExtractionError(f"{wheel} is {found} {its_version}, not {name} {version}")


def _digest(wheel: Path) -> str:
    try:
        with open(wheel, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ExtractionError(f"{wheel}: {error.strerror or error}") from error


def _unpack(wheel: Path, aside: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            _copy_sources(archive, aside / SOURCES)
    except DAMAGED as error:
        raise ExtractionError(f"{wheel} is not a whole wheel: {error}") from error
    said = {"file": wheel.name, "sha256": _digest(wheel)}
    (aside / RECORD).write_text(json.dumps(said), encoding="utf-8")


def _copy_sources(archive: zipfile.ZipFile, folder: Path) -> None:
    members = [item for item in archive.infolist() if item.filename.endswith(".py")]
    if not members:
        raise ExtractionError(f"{archive.filename} has no Python file")
    if sum(item.file_size for item in members) > SOURCE_BYTES:
        limit = SOURCE_BYTES >> 20
        raise ExtractionError(f"{archive.filename} has more than {limit} MiB of Python files")
    for item in members:
        place = PurePosixPath(item.filename)
        if place.is_absolute() or ".." in place.parts or "\\" in item.filename:
            raise ExtractionError(f"{archive.filename} leads out of its folder: {item.filename}")
        target = folder.joinpath(*place.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(item))
