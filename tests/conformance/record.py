"""What came out, as tests/conformance/record.json."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.conformance.compare import Compared
from tests.conftest import ROOT

RECORD = Path(__file__).with_name("record.json")


def digest_of(engine: str) -> str:
    """The sha256 of an engine's catalogue."""
    return sha256((ROOT / "catalogs" / "engines" / f"{engine}.yaml").read_bytes()).hexdigest()


def write(results: dict[str, dict[str, Compared]], today: date) -> None:
    """Write the part of each engine; that of others stays."""
    engines = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for engine, compared in results.items():
        engines[engine] = {"date": today.isoformat(), **_engine(engine, compared)}
    text = json.dumps(dict(sorted(engines.items())), indent=2)
    RECORD.write_text(text + "\n", encoding="utf-8")


def _engine(engine: str, compared: dict[str, Compared]) -> dict[str, Any]:
    releases = {version: _release(result) for version, result in compared.items()}
    return {"catalogue_sha256": digest_of(engine), "releases": releases}


def _release(compared: Compared) -> dict[str, Any]:
    named = Counter(item.reason for item in compared.differences)
    return {
        "sha256": compared.sha256,
        "argvs": compared.argvs,
        "agreements": compared.argvs - len(compared.differences),
        "named_differences": dict(sorted(named.items())),
        "ways": compared.ways,
    }
