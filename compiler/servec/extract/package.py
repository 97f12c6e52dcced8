"""A released package -> its Python sources in the cache folder, and the digest of its wheel.

The wheel comes from the index that the user's pip is set up for, or is one in hand. Of a release
with several wheels it is that for Linux on x86_64 wherever servec runs, so that its digest is the
same for everyone. Only the `.py` files are unpacked, and a downloaded wheel is deleted then: what
is kept of it is its digest.
"""

from __future__ import annotations

import json
import lzma
import shutil
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from servec.extract import pip
from servec.extract.errors import ExtractionError
from servec.extract.folders import made_once

RECORD = "package.json"
SOURCES = "sources"
SOURCE_BYTES = 1 << 30
"""The most that the Python files of one package may come to."""
SOURCE_FILES = 100_000
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(60, 4, -1)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"),
)
"""The platforms of which a wheel is taken, the newest first; one for any platform is, too."""
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
    package = _recorded(target)
    assert package is not None, target
    return package


def _is_whole(target: Path) -> bool:
    return _recorded(target) is not None


def _has(target: Path, digest: str) -> bool:
    package = _recorded(target)
    return package is not None and package.sha256 == digest


def _recorded(target: Path) -> Package | None:
    """The package that a folder holds; None where it has no record that can be read."""
    try:
        said = json.loads((target / RECORD).read_text(encoding="utf-8"))
        package = Package(target / SOURCES, said["file"], said["sha256"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    return package if package.root.is_dir() else None


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
    words = ["download", *pip.QUIET, "--no-deps", "--ignore-requires-python"]
    words += ["--only-binary", ":all:", "--dest", str(folder)]
    words += [word for name in PLATFORMS for word in ("--platform", name)]
    pip.run([*words, requirement], f"{requirement} could not be downloaded", folder)


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
    if sum(item.file_size for item in members) > SOURCE_BYTES or len(members) > SOURCE_FILES:
        most = f"{SOURCE_FILES} Python files, or {SOURCE_BYTES >> 20} MiB of them"
        raise ExtractionError(f"{archive.filename} has more than {most}")
    for item in members:
        place = PurePosixPath(item.filename)
        if place.is_absolute() or ".." in place.parts or "\\" in item.filename:
            raise ExtractionError(f"{archive.filename} leads out of its folder: {item.filename}")
        target = folder.joinpath(*place.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(item) as packed, open(target, "wb") as file:
            shutil.copyfileobj(packed, file)
