"""The JSON Schemas: kept, valid, and of one mind with the compiler."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import jsonschema_rs
import pytest
import servec
from servec.diag.findings import Findings
from servec.ir.decl import RdmaSite
from servec.ir.shape import changed
from servec.schema import KINDS, schema_of
from servec.source.files import Files, Folder
from servec.source.located import At, Span, plain
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tests.conftest import ROOT

FILES = {
    "project": ["servec.yaml"],
    "spec": sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("specs/*.yaml")),
    "recipe": sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("recipes/*.yaml")),
    "manifest": sorted(
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("serve.d/*/manifest.yaml")
    ),
    "extract": sorted(
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("serve.d/*/extract.yaml")
    ),
    "accelerators": ["catalogs/accelerators.yaml"],
    "instances": ["catalogs/instances.yaml"],
    "machine_images": ["catalogs/machine_images.yaml"],
    "images": ["catalogs/images.yaml"],
    "releases": sorted(
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("catalogs/engines/*.yaml")
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_schema_is_kept(kind: str, snapshot: SnapshotAssertion) -> None:
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == snapshot(extension_class=JSONSnapshotExtension)


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, paths in FILES.items() for path in paths]
)
def test_own_files_are_valid(kind: str, path: str) -> None:
    findings = Findings()
    node = Files(Folder(ROOT), findings).node(path)
    assert node is not None
    validator = jsonschema_rs.Draft202012Validator(schema_of(kind))
    assert [error.message for error in validator.iter_errors(plain(node))] == []


WRONG = [
    "models: {a: {checkpoint: x, engine: vllm, hardware: H100-80G, gpu: 8}}",
    "models: {a: {checkpoint: x, engine: vllm, hardware: H100-80G, gpus: 0}}",
    "models: {a: {checkpoint: x, engine: vllm, hardware: H100-80G, gpus: two}}",
    "models: {a: {checkpoint: x, engine: vllm, hardware: H100-80G, type: instruct}}",
    "models: {a: {checkpoint: x, engine: vllm, hardware: H100-80G, overrides: []}}",
    "models: {A_b: {checkpoint: x, engine: vllm, hardware: H100-80G}}",
    "models: {a--b: {checkpoint: x, engine: vllm, hardware: H100-80G}}",
    "models: []",
    "tasks: {t: {requires: {}}}",
    "matrix: {a: {hardware: []}}",
    "model: {}",
]


@pytest.mark.parametrize("text", WRONG)
def test_schema_and_compiler_refuse_alike(text: str) -> None:
    import yaml

    assert not jsonschema_rs.is_valid(schema_of("spec"), yaml.safe_load(text))
    result = servec.compile(tree={"specs/a.yaml": text, "servec.yaml": "targets: [bash]\n"})
    assert any(finding.code.number.startswith("SV02") for finding in result.findings)
    assert all(
        Path(finding.span.file).name == "a.yaml" for finding in result.findings if finding.span
    )


def test_a_declaration_is_frozen_and_whole() -> None:
    span = Span("a.yaml", 1, 1)
    found = RdmaSite(span=span, resource=At("rdma/ib", span))
    assert (found.hcas, found.gid_index) == ((), None)
    with pytest.raises(AttributeError, match="frozen"):
        found.gid_index = At(1, span)  # type: ignore[misc]
    with pytest.raises(TypeError, match="resource"):
        RdmaSite(span=span)
    with pytest.raises(TypeError, match="hca"):
        RdmaSite(span=span, resource=At("rdma/ib", span), hca=())  # type: ignore[call-arg]
    other = changed(found, hcas=(At("mlx5_0", span),))
    assert (other.resource, len(other.hcas), found.hcas) == (found.resource, 1, ())
