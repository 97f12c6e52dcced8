"""The shard interface: what a node agent is told, and what is refused."""

from __future__ import annotations

import builtins
import json
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import servec

from tests.field import shard_launch

HEAD = {
    "aliases": {"vllm": {"-tp": "--tensor-parallel-size"}},
    "defaults": {"vllm": {"--tensor-parallel-size": "1"}},
}
ONE = {"engine": "vllm", "model_path": "/models/m", "served_model_name": "m", "tp": 1}
TWO = {**ONE, "tp": 8, "pp": 2, "nodes": 2, "gpus_per_node": 8}
LEADER = {"leader_addr": "10.0.0.1", "leader_port": 29501, "mgmt_interface": "eno1"}


def launched(
    profile: Mapping[str, Any], shard: Mapping[str, Any] | None = None, **more: Any
) -> Any:
    version = more.pop("engine_version", None)
    return servec.launch({"profile": profile, "shard": shard or {}, **more}, engine_version=version)


def kinds(
    profile: Mapping[str, Any], shard: Mapping[str, Any] | None = None, **more: Any
) -> list[str]:
    with pytest.raises(servec.InvalidShard) as refused:
        launched(profile, shard, **more)
    errors = [item for item in refused.value.findings if item.severity.word == "error"]
    return [item.code.number for item in errors]


def test_a_plan_and_a_shard_of_the_same_profile_have_one_command() -> None:
    spec = """
models:
  m:
    checkpoint: /models/m
    engine: %s
    engine_version: "%s"
    hardware: H100-80G
    recipe: none
    targets: [bash]
    topology: {tp: 4, pp: 2}
    overrides: {%s: 4096}
    adapters: [{name: sql, path: /ad/sql, rank: 24}]
"""
    for engine, version, length in (
        ("vllm", "0.29.0", "max_model_len"),
        ("sglang", "0.5.14", "context_length"),
    ):
        result = servec.compile(
            tree={"servec.yaml": "", "specs/a.yaml": spec % (engine, version, length)}
        )
        assert result.ok, result.findings
        flag = "--" + length.replace("_", "-")
        profile = {
            **ONE, "engine": engine, "tp": 4, "pp": 2, "gpus_per_node": 8,
            "args": [flag, "4096"], "adapters": [{"name": "sql", "path": "/ad/sql", "rank": 24}],
        }  # fmt: skip
        shard = launched(profile, engine_version=version).commands[0]
        assert _sorted(shard.argv) == _sorted(result.launches[0].argv)


def _sorted(argv: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A command as its words up to the first flag and then its flags, whose order may differ: the
    words that are passed through stand last."""
    groups: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("-"):
            groups.append([])
        groups[-1].append(word)
    return sorted(map(tuple, groups))


def test_nothing_is_started_read_or_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"profile": TWO, "shard": {"rank": 1, **LEADER}}
    expected = servec.launch(request)  # what ships with servec is read once

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("a launch is pure")

    for where, name in (
        (builtins, "open"),
        (socket, "socket"),
        (subprocess, "Popen"),
        (Path, "read_bytes"),
    ):
        monkeypatch.setattr(where, name, refuse)
    assert servec.launch(request) == expected


def test_generated_variables_win_and_what_is_no_variable_is_dropped() -> None:
    found = launched({**ONE, "tp": 2, "env": {"HF_HUB_OFFLINE": "1"}}, {"gpu_indices": [3, 1]})
    inherited = [
        "PATH=/usr/bin",
        "CUDA_VISIBLE_DEVICES=0",
        "BROKEN",
        "=x",
        "OPTS=--a=b",
        "OPTS=--c",
    ]
    assert found.environment(inherited) == [
        "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=3,1", "HF_HUB_OFFLINE=1",
        "NCCL_IB_DISABLE=1", "OPTS=--c", "PATH=/usr/bin",
    ]  # fmt: skip


@pytest.mark.parametrize(("gid", "expected"), [(None, None), (0, "0"), (3, "3")])
def test_gid_index_0_is_an_index(gid: int | None, expected: str | None) -> None:
    shard = {"rank": 1, **LEADER, "hcas": ["mlx5_bond_0"], "gid_index": gid}
    assert launched(TWO, shard).env.get("NCCL_IB_GID_INDEX") == expected


def test_the_profile_s_own_variables_win_over_the_network_s() -> None:
    env = {"NCCL_IB_DISABLE": "0", "NCCL_SOCKET_IFNAME": "=eth7"}
    found = launched({**TWO, "env": env}, {"rank": 0, **LEADER}).env
    assert found["NCCL_IB_DISABLE"] == "0"
    assert found["NCCL_SOCKET_IFNAME"] == "=eth7"
    assert found["GLOO_SOCKET_IFNAME"] == "eno1"


def test_the_node_s_own_address_is_set_where_others_reach_it() -> None:
    leader = launched(TWO, {"rank": 0, **LEADER, "bind_addr": "0.0.0.0"})
    assert leader.env["VLLM_HOST_IP"] == "10.0.0.1"
    for address, expected in (
        ("10.0.0.2", "10.0.0.2"),
        ("", None),
        ("0.0.0.0", None),
        ("127.0.0.1", None),
    ):
        worker = launched(TWO, {"rank": 1, **LEADER, "bind_addr": address})
        assert worker.env.get("VLLM_HOST_IP") == expected


def test_an_address_of_ipv6_is_bracketed_before_its_port() -> None:
    profile = {**TWO, "engine": "sglang"}
    shard = {**LEADER, "leader_addr": "fd00::1", "rank": 1}
    args = launched(profile, shard).commands[0].args
    assert args[args.index("--dist-init-addr") + 1] == "[fd00::1]:29501"


def test_ray_is_the_way_of_versions_that_have_no_other() -> None:
    old = launched(TWO, {"rank": 0, **LEADER}, engine_version="0.10.2")
    assert [command.name for command in old.commands] == ["ray-head", "server"]
    assert [command.lifetime for command in old.commands] == ["sidecar", "main"]
    assert old.commands[1].wait_for_leader_port == "10.0.0.1:29501"
    assert "--nnodes" not in old.commands[1].args
    join = launched(TWO, {"rank": 1, **LEADER, "bind_addr": "10.0.0.2"}, engine_version="0.10.2")
    assert [command.name for command in join.commands] == ["ray-join"]
    assert join.commands[0].argv == (
        "ray", "start", "--block", "--address", "10.0.0.1:29501",
        "--node-ip-address", "10.0.0.2", "--num-gpus", "8",
    )  # fmt: skip
    assert not join.serves_http
    assert kinds(
        {**TWO, "launch_mode": "native"}, {"rank": 0, **LEADER}, engine_version="0.10.2"
    ) == ["SV1017"]


def test_a_key_is_handed_to_the_leader_alone_and_never_in_words() -> None:
    for engine, variable in (("vllm", "VLLM_API_KEY"), ("sglang", ""), ("sim", "SIM_API_KEY")):
        profile = {**TWO, "engine": engine}
        leader = launched(profile, {"rank": 0, **LEADER, "api_key": "k-1"})
        worker = launched(profile, {"rank": 1, **LEADER, "api_key": "k-1"})
        for found in (leader, worker):
            assert not any("k-1" in word for command in found.commands for word in command.argv)
        own = leader.commands[-1].env
        assert own.get(variable, "") == ("k-1" if variable else "")
        assert bool(leader.files) == (not variable)
        assert not worker.files
        assert "k-1" not in json.dumps([dict(command.env) for command in worker.commands])
    file = launched({**ONE, "engine": "sglang"}, {"api_key": 'a"b'}).files[0]
    assert file.mode == 0o600
    assert file.content == 'api-key: "a\\"b"\n'
    old = kinds({**ONE, "engine": "sglang"}, {"api_key": "k"}, engine_version="0.5.2")
    assert old == ["SV1021"]
    for key in ("a b", "a\nb", "ä"):
        assert kinds(ONE, {"api_key": key}) == ["SV0606"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("leader_addr", "10.0.0.1:1"),
        ("leader_addr", "[fd00::1]"),
        ("leader_addr", "-x"),
        ("bind_addr", "a b"),
        ("mgmt_interface", "-x"),
        ("hcas", ["a,b"]),
        ("gid_index", 2**70),
        ("api_key", b"k"),
        ("leader_addr", object()),
    ],
)
def test_a_fact_of_a_wrong_form_is_refused(key: str, value: object) -> None:
    with pytest.raises(servec.InvalidShard):
        servec.launch({"profile": ONE, "shard": {key: value}})


@pytest.mark.parametrize(
    "word",
    [
        "--port",
        "--port=1",
        "--tensor-parallel-size",
        "--tensor_parallel_size",
        "-tp",
        "--tensor-par",
        "--host",
        "--served-model-name",
        "--api-key",
        "--nnodes",
    ],
)
def test_a_flag_of_servec_s_own_is_refused_in_every_spelling(word: str) -> None:
    assert kinds({**ONE, "args": [word, "1"]}) == ["SV1016"]


@pytest.mark.parametrize(
    "word", ["--max-model-len", "--dtype", "--kv-transfer-config", "--pipeline"]
)
def test_other_flags_pass(word: str) -> None:
    expected = ["SV1016"] if word == "--pipeline" else []
    found = servec.check_profile({**ONE, "args": [word, "1"]})
    assert [item.code.number for item in found] == expected


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "PATH",
        "NCCL_NET_PLUGIN",
        "VLLM_HOST_IP",
        "SERVEC_X",
        "VLLM_API_KEY",
        "VLLM_SERVER_DEV_MODE",
        "CUDA_INJECTION64_PATH",
        "LD_BIND_NOW",
        "BASH_ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "IFS",
        "PERL5OPT",
        "PERL5LIB",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "RUBYOPT",
    ],
)
def test_unsafe_names_are_refused_where_a_profile_is_and_at_launch(name: str) -> None:
    profile = {**ONE, "env": {name: "x"}}
    assert kinds(profile) == ["SV0626"]
    assert [item.code.number for item in servec.check_profile(profile)] == ["SV0626"]


@pytest.mark.parametrize("name", ["PS4", "LD_DEBUG", "NODE_OPTIONS", "IFS", "PYTHONHOME"])
def test_a_spec_refuses_what_a_shard_refuses(name: str) -> None:
    model = {
        "checkpoint": "org/m",
        "engine": "vllm",
        "engine_version": "0.29.0",
        "precision": "bf16",
    }
    model |= {"hardware": "H100-80G", "recipe": "none", "topology": {"tp": 1}, "env": {name: "x"}}
    tree = {"specs/m.json": json.dumps({"models": {"m": model}})}
    found = [item.code.number for item in servec.compile(tree=tree).findings]
    assert set(found) & {"SV0626", "SV0605"}


HALF = "a\udc80b"


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        "x",
        3,
        *({"profile": {**ONE, key: HALF}} for key in ("model_path", "served_model_name", "name")),
        {"profile": {**ONE, "args": [HALF]}},
        {"profile": {**ONE, "env": {"A": HALF}}},
        {"profile": {**ONE, "env": {HALF: "a"}}},
        *(
            {"profile": ONE, "shard": {key: HALF}}
            for key in ("api_key", "bind_addr", "leader_addr", "mgmt_interface", "shard_id")
        ),
        {"profile": {**ONE, "model_path": "-m"}},
        {"profile": {**ONE, "model_path": "--trust-remote-code"}},
    ],
    ids=lambda value: ascii(value)[-40:],
)
def test_what_no_process_can_be_given_is_a_finding(request_: Any) -> None:
    with pytest.raises(servec.InvalidShard) as refused:
        servec.launch(request_)
    assert refused.value.findings
    for finding in refused.value.findings:
        assert finding.message.encode()


def test_what_has_more_digits_than_python_writes_is_a_finding() -> None:
    assert kinds({**ONE, "tp": 10**5000}) == ["SV0102"]


def test_what_is_nested_for_ever_is_a_finding() -> None:
    request: dict[str, Any] = {"profile": ONE}
    request["model"] = request
    with pytest.raises(servec.InvalidShard):
        servec.launch(request)


@pytest.mark.parametrize(
    ("profile", "shard", "number"),
    [
        ({"tp": 2}, {"gpu_indices": [0]}, "SV1006"),
        ({"tp": 2}, {"gpu_indices": [0, 1, 2]}, "SV1006"),
        ({"tp": 2}, {"gpu_indices": [3, 3]}, "SV0205"),
        ({"tp": 2}, {"gpu_indices": [0, 1], "gpu_uuids": ["GPU-a"]}, "SV1006"),
        ({"tp": 2}, {"gpu_uuids": ["GPU-a", "GPU-a"]}, "SV0205"),
        ({"tp": 2, "pp": 2, "gpus_per_node": 4}, {"gpu_indices": [0, 1]}, "SV1006"),
    ],
)
def test_the_gpus_of_a_shard_are_its_own_and_all(
    profile: dict[str, Any], shard: dict[str, Any], number: str
) -> None:
    assert kinds({**ONE, **profile}, shard) == [number]


@pytest.mark.parametrize(
    ("shard", "sees"),
    [
        ({}, None),
        ({"gpu_indices": []}, ""),
        ({"gpu_indices": [], "gpu_uuids": []}, ""),
        ({"gpu_indices": [1]}, "1"),
        ({"gpu_uuids": ["GPU-a"]}, "GPU-a"),
    ],
)
def test_no_list_of_gpus_is_not_an_empty_one(shard: dict[str, Any], sees: str | None) -> None:
    assert launched(ONE, shard).env.get("CUDA_VISIBLE_DEVICES") == sees


@pytest.mark.parametrize(
    ("more", "number"),
    [
        ({"args": ["--max-model-leng", "8"]}, "SV0615"),
        ({"args": ["--max-model-len", "many"]}, "SV0618"),
        ({"env": {"VLLM_NO_SUCH_SWITCH": "1"}}, "SV0620"),
    ],
)
def test_words_are_held_against_a_version_that_is_said(more: dict[str, Any], number: str) -> None:
    profile = {**ONE, **more}
    found = servec.check_profile(profile, engine_version="0.29.0")
    assert [item.code.number for item in found] == [number]
    (told,) = found
    assert told.span is not None
    assert told.span != servec.check_profile({**profile, "tp": 0})[0].span  # at the word
    assert servec.check_profile(profile) == []


@pytest.mark.parametrize("flag", ["--lora-modules", "--kv-events-config"])
def test_what_servec_decides_is_owned_though_it_is_not_asked_for(flag: str) -> None:
    assert kinds({**ONE, "args": [flag, "x"]}) == ["SV1016"]


def test_adapters_say_no_more_than_is_known_of_them() -> None:
    adapters = [{"name": "sql", "path": "/ad/sql"}]
    words = launched({**ONE, "engine": "sglang", "adapters": adapters}).commands[0].args
    assert words[-3:] == ("--enable-lora", "--lora-paths", "sql=/ad/sql")


def test_the_first_refusal_is_the_specific_one() -> None:
    profile = {
        "engine": "nope",
        "tp": 0,
        "model_path": "",
        "args": ["--port", "1"],
        "env": {"PATH": "x"},
    }
    found = servec.check_profile(profile)
    assert [item.code.number for item in found] == ["SV1001", "SV1002", "SV0301"]


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"profile": []},
        {"profile": {"engine": "vllm", "tp": "8"}},
        {"profile": {**ONE, "tpp": 1}},
        {"profile": ONE, "shard": {"rank": True}},
        {"profile": ONE, "gpus": {}},
        {"profile": {**ONE, "args": [1]}},
    ],
)
def test_what_is_no_request_is_a_finding(request_: dict[str, Any]) -> None:
    with pytest.raises(servec.InvalidShard) as refused:
        servec.launch(request_)
    assert refused.value.findings
    assert all(item.span is not None for item in refused.value.findings)


def test_what_is_carried_comes_back() -> None:
    shard = {
        "replica_id": "r",
        "shard_id": "s/1",
        "pool": "p",
        "fabric": "ib-a",
        "profile_fingerprint": "f",
    }
    assert launched(ONE, shard).carried == shard


def test_the_rows_runner_can_fail() -> None:
    row = {
        "id": "x",
        "group": "argv",
        "head": HEAD,
        "input": {"profile": ONE, "shard": {"gpu_indices": [0], "http_port": 8000}},
    }
    argv = [
        "vllm",
        "serve",
        "/models/m",
        "--host",
        "0.0.0.0",
        "--port",
        "8000",
        "--served-model-name",
        "m",
    ]
    assert shard_launch.check({**row, "expect": {"processes": [{"argv": argv}]}}) == []
    false: list[dict[str, Any]] = [
        {"processes": [{"argv": argv[:-2]}]},
        {"processes": [{"argv": [*argv, "--dtype", "auto"]}]},
        {"processes": [{"argv": ["sglang", *argv[1:]]}]},
        {"processes": [{"argv": argv, "argv_absent": ["--port"]}]},
        {"processes": [{"argv": argv}, {"argv": argv}]},
        {"processes": [{"argv": argv, "env": {"X": "1"}}]},
        {"env": {"CUDA_VISIBLE_DEVICES": "1"}},
        {"env_absent": ["CUDA_VISIBLE_DEVICES"]},
        {"serves_http": False},
        {"on_mig": True},
        {"error": {"kind": "owned_flag"}},
        {"something": 1},
    ]
    for expect in false:
        assert shard_launch.check({**row, "expect": expect}), expect
    refused = {**row, "input": {"profile": {**ONE, "tp": 0}, "shard": {}}}
    assert shard_launch.check({**refused, "expect": {"error": {"kind": "tp_not_positive"}}}) == []
    assert shard_launch.check({**refused, "expect": {"error": {"kind": "owned_flag"}}})
    assert shard_launch.check(
        {**refused, "expect": {"error": {"kind": "tp_not_positive", "contains": ["9"]}}}
    )
    assert shard_launch.check({**refused, "expect": {"env": {}}})


def refusals(tp: int, model: dict[str, Any]) -> list[tuple[str, str]]:
    """Codes and advice of what is refused of a profile."""
    profile = {"engine": "vllm", "model_path": "/m", "tp": tp}
    try:
        servec.launch({"profile": profile, "shard": {}, "model": model})
    except servec.InvalidShard as refused:
        return [(item.code.number, item.help) for item in refused.findings]
    return []


BLOCKS = {"quantization_config": {"weight_block_size": [128, 128]}}


@pytest.mark.parametrize("tp", [3, 8, 16, 10**18])
@pytest.mark.parametrize(
    "model",
    [
        {"num_attention_heads": 48, "num_key_value_heads": 6},
        {"num_attention_heads": 40, "num_key_value_heads": 10},
        {"num_attention_heads": 64, "intermediate_size": 1536, **BLOCKS},
        {"num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, **BLOCKS},
        {"num_attention_heads": 7},
    ],
)
def test_a_size_that_is_advised_fits_all_counts_of_the_model(
    tp: int, model: dict[str, Any]
) -> None:
    found = [advice for code, advice in refusals(tp, model) if code in ("SV1010", "SV1011")]
    assert found or tp < 100
    for advice in found:
        sizes = [int(word) for word in re.findall(r"\d+", advice)]
        assert sizes
        assert not any(refusals(size, model) for size in sizes)
