"""Replicas over several nodes: every rank's command and environment, in each target."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import servec
import yaml
from servec.passes.carried import WRAPPER_OWN

from tests.conftest import ROOT
from tests.wrapper import Started, start, write_wrapper

RESULT = servec.compile(ROOT)
GROUPS = [launch for launch in RESULT.launches if launch.placement.way is not None]
LEADER, SECOND = "10.0.0.1", "10.0.0.2"
FACTS = {
    "SERVEC_LEADER_ADDRESS": LEADER,
    "SERVEC_INTERFACE": "eno1",
    "SERVEC_HCAS": "mlx5_0,mlx5_1",
    "SERVEC_GID_INDEX": "3",
}
CRD = ROOT.parent / "shared/facts/crds/leaderworkerset.x-k8s.io_v1_LeaderWorkerSet.json"
COLLECTIVES = ("NCCL_", "GLOO_")


def test_the_page_has_the_ways_of_the_manifests(blessing: bool) -> None:
    page, head = ROOT / "docs/findings/SV1017.md", "| --- | --- | --- | --- |\n"
    rows = ""
    for path in sorted((ROOT / "serve.d").glob("*/manifest.yaml")):
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
        for way in manifest["serve"].get("nodes", ()):
            asked = "yes" if way.get("asked") else "no"
            versions = way.get("versions", "all")
            rows += f"| {manifest['engine']} | `{way['name']}` | {versions} | {asked} |\n"
    text = page.read_text(encoding="utf-8")
    fresh = re.sub(re.escape(head) + r"(\|.*\n)*", lambda _: head + rows, text)
    if blessing:
        page.write_text(fresh, encoding="utf-8")
    assert fresh == text or blessing
    assert rows in fresh


def started(launch: Any, rank: int, folder: Path, **variables: str) -> Started:
    """What a rank's engine is given, with the facts of the site or else of FACTS."""
    wrapper = write_wrapper(RESULT, folder, launch.plan.name)
    facts = {} if launch.placement.groups else FACTS | {"SERVEC_NODE_ADDRESS": f"10.0.0.{rank + 1}"}
    words = ("--rank", str(rank))
    if rank == 0 and launch.beside is not None:
        words += ("--only", launch.beside.name)
        beside = folder / str(launch.beside.groups[0][0])
        beside.write_text((folder / launch.argv[0]).read_text())
        beside.chmod(0o755)
    return start(wrapper, *words, **facts, **variables)


def test_there_are_groups_of_each_kind() -> None:
    ways = {(launch.plan.subject.engine.name, launch.placement.way.name.value) for launch in GROUPS}
    assert {("vllm", "native"), ("vllm", "ray"), ("sglang", "native")} <= ways


@pytest.mark.parametrize(
    "launch", [item for item in GROUPS if item.beside is None], ids=lambda item: item.plan.name
)
def test_ranks_differ_only_in_their_rank(launch: Any, tmp_path: Path) -> None:
    ranks = [started(launch, rank, tmp_path) for rank in range(launch.placement.nodes)]
    assert all(one.code == 0 for one in ranks), [one.stderr for one in ranks]
    flags = {flag.flag.value for flag in launch.placement.way.flags if flag.who is not None}
    rank_flags = {
        flag.flag.value
        for flag in launch.placement.way.flags
        if flag.value is not None and "{rank}" in flag.value.value
    }
    alike = []
    for rank, one in enumerate(ranks):
        words = [word for word in one.argv if word not in flags]
        for flag in rank_flags:
            place = words.index(flag)
            assert words[place + 1] == str(rank)
            del words[place : place + 2]
        alike.append(words)
    assert all(words == alike[0] for words in alike)


@pytest.mark.parametrize("launch", GROUPS, ids=lambda item: item.plan.name)
def test_the_collectives_agree_on_every_rank(launch: Any, tmp_path: Path) -> None:
    found = []
    for rank in range(launch.placement.nodes):
        env = started(launch, rank, tmp_path).env
        found.append({name: env[name] for name in env if name.startswith(COLLECTIVES)})
    assert all(env == found[0] for env in found)
    assert found[0]["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"  # as they are, not as beginnings of names
    assert found[0]["NCCL_IB_DISABLE"] == "0"
    assert found[0]["NCCL_SOCKET_IFNAME"] == found[0]["GLOO_SOCKET_IFNAME"] == "eno1"


def test_ports_are_distinct_on_every_host() -> None:
    tree = {
        "servec.yaml": "nodes:\n"
        + "".join(f"  n{k}: {{address: 10.0.0.{k}, interface: eno1}}\n" for k in (1, 2, 3)),
        "specs/m.yaml": yaml.safe_dump(
            {"models": {f"m{k}": _model(["n1", "n2"] if k < 3 else ["n2", "n3"]) for k in range(4)}}
        ),
    }
    result = servec.compile(tree=tree)
    assert result.ok, result.findings
    taken = []
    for launch in result.launches:
        host = launch.placement.groups[0][0].name
        taken += [(host, launch.port), (host, launch.placement.leader_port)]
    assert len(set(taken)) == len(taken)
    assert {port for host, port in taken if host == "n1"} >= {8000, 8001, 8002, 29500, 29510, 29520}


def test_a_port_that_a_user_gives_twice_is_told() -> None:
    models = {name: _model(["n1", "n2"]) | {"overrides": {"port": 9000}} for name in ("a", "b")}
    site = "nodes: {n1: {address: a, interface: e}, n2: {address: b, interface: e}}\n"
    tree = {"servec.yaml": site, "specs/m.yaml": yaml.safe_dump({"models": models})}
    codes = [finding.code.number for finding in servec.compile(tree=tree).findings]
    assert codes == ["SV1023"]


def _model(hosts: list[str], **more: Any) -> dict[str, Any]:
    return {
        "checkpoint": "org/m",
        "engine": "vllm",
        "engine_version": "0.29.0",
        "hardware": "H100-80G",
        "gpus": 8,
        "nodes": 2,
        "recipe": "none",
        "topology": {"tp": 16},
        "targets": ["bash"],
        "hosts": hosts,
        **more,
    } | {"precision": "bf16"}


@pytest.mark.parametrize(
    "launch", [item for item in GROUPS if item.beside is None], ids=lambda item: item.plan.name
)
def test_a_shard_of_the_same_profile_has_the_same_command(launch: Any, tmp_path: Path) -> None:
    """`servec launch` and the wrapper are two ways to one command."""
    plan = launch.plan
    own = {"host", "port", "served_model_name"}
    words = []
    for group in launch.command:
        knob = group.setting.winner.knob if group.setting else ""
        if knob and not knob.startswith("topology.") and knob not in own:
            words += [str(word) for word in group.words]
    if plan.topology.dp > 1 or plan.topology.ep:
        pytest.skip("a profile has tensor and pipeline parallelism only")
    for rank in range(launch.placement.nodes):
        found = servec.launch(
            {
                "profile": {
                    "engine": plan.subject.engine.name,
                    "model_path": plan.subject.model.checkpoint.value,
                    "served_model_name": launch.served_name,
                    "tp": plan.topology.tp,
                    "pp": plan.topology.pp,
                    "nodes": launch.placement.nodes,
                    "gpus_per_node": launch.placement.gpus_per_node,
                    "args": words,
                },
                "shard": {
                    "rank": rank,
                    "leader_addr": LEADER,
                    "leader_port": launch.placement.leader_port,
                    "mgmt_interface": "eno1",
                    "bind_addr": "0.0.0.0",
                },
            },
            engine_version=str(plan.subject.version.version),
        )
        one = started(launch, rank, tmp_path)
        assert list(found.commands[-1].args[1:]) == one.argv[1:]
        assert found.env["NCCL_SOCKET_IFNAME"] == one.env["NCCL_SOCKET_IFNAME"]


def test_a_rank_without_facts_is_refused(tmp_path: Path) -> None:
    launch = next(item for item in GROUPS if not item.placement.groups and item.beside is None)
    wrapper = write_wrapper(RESULT, tmp_path, launch.plan.name)
    for words, said in (
        ((), "--rank 0 to --rank 1"),
        (("--rank", "2"), "--rank 0 to --rank 1"),
        (("--rank", "x$(touch /tmp/never)"), "--rank 0 to --rank 1"),
        (("--rank",), "--rank wants one value"),
        (("--rank", "1"), "SERVEC_LEADER_ADDRESS"),
    ):
        found = start(wrapper, *words)
        assert (found.code, found.argv) == (2, [])
        assert said in found.stderr


@pytest.mark.parametrize("word", ["--print", "--check", ""])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--rank 1 --only ray-head", "there is no ray-head on rank 1"),
        ("--rank 0 --only bogus", "there is no bogus on rank 0"),
        ("--rank 0 --replica ../x", "--replica 0"),
        ("--rank 0 --replica 7", "--replica 0"),
        ("--rank 0 --bogus", "unknown argument --bogus"),
    ],
)
def test_what_is_not_started_is_not_shown(words: str, word: str, said: str, tmp_path: Path) -> None:
    launch = next(item for item in GROUPS if item.beside is not None)
    wrapper = write_wrapper(RESULT, tmp_path, launch.plan.name)
    found = start(wrapper, *words.split(), *[word] * bool(word), **FACTS)
    assert (found.code, found.stdout) == (2, "")
    assert said in found.stderr


@pytest.mark.parametrize("words", ["--print --rank 1", "--check x", "--print --print"])
@pytest.mark.parametrize("name", [GROUPS[0].plan.name, "qwen3-8b"])
def test_words_after_the_last_are_told(words: str, name: str, tmp_path: Path) -> None:
    rank = {"SERVEC_RANK": "0"} if name != "qwen3-8b" else {}
    found = start(write_wrapper(RESULT, tmp_path, name), *words.split(), **FACTS, **rank)
    assert (found.code, found.stdout) == (2, "")
    assert f"unknown argument {words.split()[1]}" in found.stderr


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("SERVEC_LEADER_ADDRESS=10.0.0.1", ""),
        ("# why\r\n\r\nSERVEC_LEADER_ADDRESS=10.0.0.1\r\nSERVEC_INTERFACE=eno1\r\n", ""),
        ("  \n  # why\nSERVEC_LEADER_ADDRESS=10.0.0.1\n", ""),
        ("export SERVEC_LEADER_ADDRESS=10.0.0.1\n", "`export SERVEC_LEADER_ADDRESS` is not"),
        (" SERVEC_LEADER_ADDRESS=10.0.0.1\n", "` SERVEC_LEADER_ADDRESS` is not"),
        ('SERVEC_LEADER_ADDRESS="10.0.0.1"\n', "`SERVEC_LEADER_ADDRESS` is not"),
        ("SERVEC_LEADER_ADDRESS=10.0.0.1 \n", "`SERVEC_LEADER_ADDRESS` is not"),
        ("SERVEC_LEADER_ADDRESS=10.0.0.1\nSERVEC_INTERFASE=e", "`SERVEC_INTERFASE` is not"),
    ],
)
def test_a_file_of_facts_is_read_or_refused(file: str, told: str, tmp_path: Path) -> None:
    launch = next(item for item in GROUPS if item.placement.groups)
    wrapper = write_wrapper(RESULT, tmp_path, launch.plan.name)
    wrapper.with_name("node-0-1.env").write_bytes(file.encode())
    found = start(wrapper, "--rank", "1")
    assert found.code == (2 if told else 0)
    assert told in found.stderr
    if not told:
        assert found.argv[found.argv.index("--master-addr") + 1] == "10.0.0.1"


def test_an_operator_beats_the_site(tmp_path: Path) -> None:
    launch = next(item for item in GROUPS if item.placement.groups)
    wrapper = write_wrapper(RESULT, tmp_path, launch.plan.name)
    found = start(
        wrapper, "--rank", "1", SERVEC_LEADER_ADDRESS="fd00::1", SERVEC_HCAS="", SERVEC_RANK="0"
    )
    assert found.argv[found.argv.index("--master-addr") + 1] == "fd00::1"
    assert found.argv[found.argv.index("--node-rank") + 1] == "1"
    assert found.env["NCCL_IB_DISABLE"] == "1"
    assert "NCCL_IB_HCA" not in found.env
    assert "NCCL_IB_GID_INDEX" not in found.env
    assert found.env["VLLM_HOST_IP"] == SECOND


# --- two processes on the leader ----------------------------------------------------------------

RAY = """#!/bin/bash
echo "ray $*${VLLM_API_KEY+ with a key}${SERVEC_API_KEY+ with a key}" >>"$LOG"
trap 'echo "ray stopped" >>"$LOG"; exit 0' TERM
if [[ $2 == --head ]]; then exec {python} -u "$(dirname "$0")/listen.py"; fi
sleep 60 &
wait
"""
LISTEN = """
import os, signal, socket, sys, time
log = open(os.environ["LOG"], "a")
def stop(*_):
    log.write("ray stopped\\n"); log.flush(); os._exit(0)
signal.signal(signal.SIGTERM, stop)
time.sleep(float(os.environ.get("RAY_DELAY", "0.3")))
server = socket.create_server((os.environ["ADDRESS"], 29500))
end = time.time() + float(os.environ.get("RAY_LIFE", "30"))
while time.time() < end:
    time.sleep(0.05)
"""
SERVER = """#!/bin/bash
trap 'echo "server stopped" >>"$LOG"; kill %1; exit 7' TERM
sleep "${SERVER_LIFE-30}" &
echo "server $RAY_ADDRESS" >>"$LOG"
wait $!
exit 3
"""


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    launch = next(item for item in GROUPS if item.beside is not None)
    wrapper = write_wrapper(RESULT, tmp_path, launch.plan.name)
    (tmp_path / "ray").write_text(RAY.replace("{python}", sys.executable))
    (tmp_path / "listen.py").write_text(LISTEN)
    (tmp_path / "vllm").write_text(SERVER)
    for name in ("ray", "vllm"):
        (tmp_path / name).chmod(0o755)
    return wrapper


def _address(wrapper: Path) -> str:
    """A loopback address of a test's own."""
    digest = sha256(str(wrapper).encode()).digest()
    return f"127.{digest[0]}.{digest[1]}.{max(digest[2], 2)}"


def _run(wrapper: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    folder, address = wrapper.parents[2], _address(wrapper)
    return subprocess.Popen(
        ["bash", str(wrapper), *words],
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "LOG": str(folder / "log"),
            "ADDRESS": address,
            "SERVEC_LEADER_ADDRESS": address,
            **variables,
        },
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell cannot trap what was ignored when it began, as HUP is under nohup.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


def _log(wrapper: Path, wanted: str, seconds: float = 15) -> list[str]:
    log = wrapper.parents[2] / "log"
    end = time.time() + seconds
    while time.time() < end:
        lines = log.read_text().splitlines() if log.exists() else []
        if any(line.startswith(wanted) for line in lines):
            return lines
        time.sleep(0.05)
    raise AssertionError(log.read_text() if log.exists() else "no log")


def _nobody_is_left(pid: int) -> bool:
    end = time.time() + 5
    while time.time() < end:
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_the_wrapper_ends_with_the_server(pair: Path) -> None:
    process = _run(pair, "--rank", "0", SERVER_LIFE="1")
    assert process.wait(30) == 3
    lines = _log(pair, "ray stopped")
    assert lines[0].startswith("ray start --head --block")
    assert lines[1] == f"server {_address(pair)}:29500"  # only after the port answers
    assert _nobody_is_left(process.pid)


def test_the_wrapper_hands_on_a_signal(pair: Path) -> None:
    process = _run(pair, "--rank", "0")
    _log(pair, "server ")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 7
    lines = _log(pair, "ray stopped")
    assert lines[-2:] == ["server stopped", "ray stopped"]
    assert _nobody_is_left(process.pid)


@pytest.mark.parametrize(
    "name", ["HUP", "QUIT", "USR1", "ALRM", "PIPE", "XCPU", "STKFLT", "SEGV", "RTMIN"]
)
def test_no_signal_leaves_the_two_behind(pair: Path, name: str) -> None:
    process = _run(pair, "--rank", "0")
    _log(pair, "server ")
    process.send_signal(signal.Signals[f"SIG{name}"])
    assert process.wait(30) == 7
    assert _log(pair, "ray stopped")[-2:] == ["server stopped", "ray stopped"]
    assert _nobody_is_left(process.pid)


@pytest.mark.parametrize("wait", [0.0, 0.5])
def test_a_server_that_ends_at_once_ends_the_other(pair: Path, wait: float) -> None:
    (pair.parents[2] / "vllm").write_text('#!/bin/bash\necho "server" >>"$LOG"\nexec sleep 30\n')
    process = _run(pair, "--rank", "0")
    _log(pair, "server")
    time.sleep(wait)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 128 + signal.SIGTERM
    assert _log(pair, "ray stopped")[-1] == "ray stopped"
    assert _nobody_is_left(process.pid)


def test_the_key_reaches_the_server_alone(pair: Path) -> None:
    process = _run(pair, "--rank", "0", SERVER_LIFE="1", SERVEC_API_KEY="k")
    assert process.wait(30) == 3
    assert not any("with a key" in line for line in _log(pair, "ray stopped"))
    (pair.parents[2] / "log").unlink()
    with socket.create_server((_address(pair), 29500)):  # the leader answers
        process = _run(pair, "--rank", "1", SERVEC_API_KEY="k")
        assert "with a key" not in _log(pair, "ray start")[-1]
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize(
    ("name", "value", "is_right"),
    [
        ("SERVEC_LEADER_ADDRESS", "fd00::1", True),
        ("SERVEC_LEADER_ADDRESS", "fe80::1%eth0", True),
        ("SERVEC_LEADER_ADDRESS", "gpu-1.rack", True),
        ("SERVEC_LEADER_ADDRESS", "[fd00::1]", False),
        ("SERVEC_LEADER_ADDRESS", "10.0.0.1:29500", False),
        ("SERVEC_LEADER_ADDRESS", "http://a", False),
        ("SERVEC_LEADER_ADDRESS", "a b", False),
        ("SERVEC_LEADER_ADDRESS", "-x", False),
        ("SERVEC_HCAS", "mlx5_0,", False),
        ("SERVEC_GID_INDEX", "x", False),
        ("SERVEC_INTERFACE", "-x", False),
    ],
)
def test_a_fact_of_a_wrong_form_starts_nothing(
    pair: Path, name: str, value: str, is_right: bool
) -> None:
    found = start(pair, "--rank", "1", "--print", **{"SERVEC_LEADER_ADDRESS": "a", name: value})
    assert (found.code == 0) is is_right
    assert (name in found.stderr) is not is_right


def test_the_server_does_not_outlive_the_other_process(pair: Path) -> None:
    process = _run(pair, "--rank", "0", RAY_LIFE="2")
    assert process.wait(30) == 1
    assert "ray-head has ended: the server is stopped" in process.stderr.read()
    _log(pair, "server stopped")
    assert _nobody_is_left(process.pid)


def test_the_server_does_not_outlive_it_either_where_nobody_reads(pair: Path) -> None:
    """Telling fails where the standard error is closed; stopping must not."""
    folder = pair.parents[2]
    quiet = folder / "quiet.sh"
    quiet.write_text(f"exec bash {pair} --rank 0 2>&-\n")
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "LOG": str(folder / "log"),
        "ADDRESS": _address(pair),
        "SERVEC_LEADER_ADDRESS": _address(pair),
        "RAY_LIFE": "2",
    }
    process = subprocess.Popen(["bash", quiet], env=environment, start_new_session=True)
    assert process.wait(30) == 1
    _log(pair, "server stopped")
    assert _nobody_is_left(process.pid)


def test_nothing_starts_beside_a_process_that_fails(pair: Path) -> None:
    (pair.parents[2] / "ray").write_text("#!/bin/bash\nexit 5\n")
    process = _run(pair, "--rank", "0")
    assert process.wait(30) == 1
    assert "nothing is started" in process.stderr.read()


def test_a_worker_waits_for_the_leader(pair: Path) -> None:
    worker = _run(pair, "--rank", "1")
    time.sleep(1.5)
    assert not (pair.parents[2] / "log").exists()
    leader = _run(pair, "--rank", "0", "--only", "ray-head")
    lines = _log(pair, f"ray start --block --address {_address(pair)}:29500")
    assert len(lines) == 2
    for process in (worker, leader):
        process.terminate()
        process.wait(30)


def test_a_worker_does_not_wait_for_ever(pair: Path) -> None:
    worker = _run(pair, "--rank", "1", SERVEC_WAIT_SECONDS="1")
    assert worker.wait(30) == 1
    assert "does not answer; nothing is started" in worker.stderr.read()


@pytest.mark.parametrize("value", ["10s", "08", "1.5", "abc", "-1", "1e3", "$(touch x)", "a[0]"])
@pytest.mark.parametrize("rank", ["0", "1"])
def test_how_long_to_wait_is_asked_once(pair: Path, rank: str, value: str) -> None:
    found = start(pair, "--rank", rank, SERVEC_LEADER_ADDRESS="::1", SERVEC_WAIT_SECONDS=value)
    assert (found.code, found.stdout) == (2, "")
    assert len(found.stderr.splitlines()) == 1
    assert f"not `{value}`; nothing is started" in found.stderr


def test_the_wait_is_in_seconds_whatever_a_probe_takes(pair: Path) -> None:
    """An address that drops what is sent to it holds a connection up for two minutes."""
    slow = pair.parents[2] / "timeout"
    slow.write_text('#!/bin/bash\necho "$1" >>"$LOG"\nsleep "$1"\nexit 124\n')
    slow.chmod(0o755)
    began = time.monotonic()
    worker = _run(pair, "--rank", "1", SERVEC_WAIT_SECONDS="5")
    assert worker.wait(30) == 1
    assert 4 <= time.monotonic() - began < 12
    assert set(_log(pair, "2")) == {"2"}


# --- Kubernetes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("launch", GROUPS, ids=lambda item: item.plan.name)
def test_a_group_of_pods(launch: Any) -> None:
    name = launch.plan.name
    path = f"{name}/kubernetes/leaderworkerset.yaml"
    tree = yaml.safe_load(RESULT.artifacts[path])
    spec = tree["spec"]["leaderWorkerTemplate"]
    assert spec["size"] == launch.placement.nodes
    leader, worker = (spec[part]["spec"] for part in ("leaderTemplate", "workerTemplate"))
    server, node = leader["containers"][0], worker["containers"][0]
    assert "startupProbe" in server
    assert not {"startupProbe", "readinessProbe", "livenessProbe", "ports"} & set(node)
    service = yaml.safe_load(RESULT.artifacts[f"{name}/kubernetes/service.yaml"])
    labels = [spec[part]["metadata"]["labels"] for part in ("leaderTemplate", "workerTemplate")]
    chosen = [service["spec"]["selector"].items() <= label.items() for label in labels]
    assert chosen == [True, False]
    environments = [
        {item["name"]: item.get("value") for item in container["env"]}
        for container in (server, node)
    ]
    for environment in environments:
        assert environment["NCCL_SOCKET_IFNAME"] == environment["GLOO_SOCKET_IFNAME"] == "eth0"
        assert "CUDA_VISIBLE_DEVICES" not in environment  # the device plugin sets it
    names = [[item["name"] for item in container["env"]] for container in (server, node)]
    for order in names:  # a variable is made of those before it
        assert "VLLM_HOST_IP" not in order or order.index("SERVEC_NODE_ADDRESS") == 0
    assert "$(LWS_LEADER_ADDRESS)" in json.dumps(node)
    gpus = [
        container["resources"]["limits"]["nvidia.com/gpu"]
        for pod in (leader, worker)
        for container in (*pod.get("initContainers", ()), *pod["containers"])
        if "resources" in container
    ]
    assert gpus == [str(launch.placement.gpus_per_node)] * 2


@pytest.mark.skipif(not CRD.is_file(), reason="the schema of LeaderWorkerSet is not here")
@pytest.mark.parametrize("launch", GROUPS, ids=lambda item: item.plan.name)
def test_a_group_fits_its_own_schema(launch: Any) -> None:
    schema = jsonschema.Draft202012Validator(json.loads(CRD.read_text())["schema"])
    path = f"{launch.plan.name}/kubernetes/leaderworkerset.yaml"
    tree = yaml.safe_load(RESULT.artifacts[path])
    assert [error.message for error in schema.iter_errors(tree)] == []
    tree["spec"]["leaderWorkerTemplate"]["sizes"] = 2
    assert not schema.is_valid(tree)


def test_a_user_cannot_write_a_placeholder() -> None:
    """Text that looks like a slot or an expansion is text in every target."""
    value = "{leader_address} $(LWS_LEADER_ADDRESS) $leader_address"
    model = _model([], env={"NOTE": value}, overrides={"served_model_name": value})
    del model["hosts"]
    model |= {"image": "vllm/vllm-openai:v0.29.0", "targets": ["bash", "kubernetes"]}
    tree = {"specs/m.yaml": yaml.safe_dump({"models": {"m": model}})}
    result = servec.compile(tree=tree)
    assert result.ok, result.findings
    group = yaml.safe_load(result.artifacts["m/kubernetes/leaderworkerset.yaml"])
    server = group["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0]
    escaped = value.replace("$(", "$$(")
    assert escaped in server["args"]
    assert {"name": "NOTE", "value": escaped} in server["env"]
    with tempfile.TemporaryDirectory() as folder:
        found = start(write_wrapper(result, Path(folder)), "--rank", "0", SERVEC_LEADER_ADDRESS="x")
    assert value in found.argv
    assert found.env["NOTE"] == value


@pytest.mark.parametrize(
    ("one", "other", "shares"), [("d1", "d1", True), ("d1", "d2", False), ("d1", "", False)]
)
def test_nvlink_is_of_a_shared_domain(one: str, other: str, shares: bool, tmp_path: Path) -> None:
    nodes = {
        name: {"address": name, "interface": "e"} | ({"nvlink_domain": domain} if domain else {})
        for name, domain in (("n1", one), ("n2", other))
    }
    models = yaml.safe_dump({"models": {"m": _model(["n1", "n2"])}})
    tree = {"servec.yaml": yaml.safe_dump({"nodes": nodes}), "specs/m.yaml": models}
    result = servec.compile(tree=tree)
    for rank in ("0", "1"):
        env = start(write_wrapper(result, tmp_path), "--rank", rank).env
        assert ("NCCL_MNNVL_ENABLE" in env, "NCCL_CUMEM_ENABLE" in env) == (shares, shares)


def test_a_spec_has_no_variable_of_the_wrapper() -> None:
    """Every name that a wrapper assigns is refused in `env`: it would be exported in its place."""
    text = (ROOT / "templates/serve.sh.j2").read_text(encoding="utf-8")
    text = re.sub(r"\{%.*?%\}|^ *#.*$|\{\{|\}\}", " ", text, flags=re.M)
    names = set(re.findall(r"(?:^|[\s;(])([a-z_]+)\+?=", text))
    names |= set(re.findall(r"\bfor \(?\(?([a-z_]+)", text))
    for said in re.findall(r"\b(?:local|read)((?: -\w+)*(?: [a-z_]+(?:=\S*)?)+)$", text, re.M):
        names |= set(re.findall(r"(?<![-\w])([a-z_]+)(?==|\s|$)", said))
    assert {"hcas", "only", "argv", "waited"} <= names
    assert names <= WRAPPER_OWN
    for name in ("hcas", "only", "LWS_LEADER_ADDRESS", "EXECIGNORE"):
        models = {"models": {"m": _model([], env={name: "1"})}}
        del models["models"]["m"]["hosts"]
        result = servec.compile(tree={"specs/m.yaml": yaml.safe_dump(models)})
        assert {item.code.number for item in result.findings} & {"SV0605", "SV0626"}, name


@pytest.mark.parametrize(
    ("site", "wanted"),
    [
        ("fabric: ibb", "`fabric` must be one that `n1` has an adapter on: ib; it is `ibb`"),
        ("kubernetes: {rdma: {resource: nvidia.com/gpu}}", "`kubernetes.rdma.resource` must be"),
    ],
)
def test_a_site_that_would_lose_its_adapters_or_gpus(site: str, wanted: str) -> None:
    nodes = "".join(
        f"  n{k}: {{address: n{k}, interface: e, hcas: {{mlx5_0: ib}}}}\n" for k in (1, 2)
    )
    model = _model(["n1", "n2"], targets=["bash", "kubernetes"], image="vllm/vllm-openai:v0.29.0")
    models = yaml.safe_dump({"models": {"m": model}})
    tree = {"servec.yaml": f"{site}\nnodes:\n{nodes}", "specs/m.yaml": models}
    messages = [item.message for item in servec.compile(tree=tree).findings]
    assert any(message.startswith(wanted.partition(";")[0]) for message in messages), messages


def test_two_roles_of_one_model() -> None:
    """Each is told its part, and the plan of eval runners says it."""
    model = _model([], engine="sglang", engine_version="0.5.10", nodes=1, topology={"tp": 8})
    del model["hosts"]
    models = {f"m-{role}": model | {"role": role} for role in ("prefill", "decode")}
    result = servec.compile(tree={"specs/m.yaml": yaml.safe_dump({"models": models})})
    assert result.ok, result.findings
    plans = yaml.safe_load(result.artifacts["infer_plans.yaml"])["models"]
    for launch in result.launches:
        (assignment,) = plans[launch.plan.name]["assignments"]
        role = launch.plan.name.removeprefix("m-")
        assert assignment["role"] == role
        assert launch.argv[launch.argv.index("--disaggregation-mode") + 1] == role


def test_the_gid_index_is_each_nodes_own() -> None:
    site = (
        "nodes:\n"
        "  n1: {address: a, interface: e, hcas: {mlx5_0: f}, gid_index: 0}\n"
        "  n2: {address: b, interface: e, hcas: {mlx5_0: f}, gid_index: 5}\n"
    )
    tree = {
        "servec.yaml": site,
        "specs/m.yaml": yaml.safe_dump({"models": {"m": _model(["n1", "n2"])}}),
    }
    result = servec.compile(tree=tree)
    files = [result.artifacts[f"m/bash/node-0-{rank}.env"].decode() for rank in (0, 1)]
    assert ["SERVEC_GID_INDEX=0\n" in files[0], "SERVEC_GID_INDEX=5\n" in files[1]] == [True, True]


def test_a_nodes_facts_are_explained() -> None:
    from servec.diag.findings import Findings
    from servec.pipeline import run
    from servec.source.files import Files, Folder

    findings = Findings()
    files = Files(Folder(ROOT), findings)
    (second,) = [
        item
        for item in run(files, findings).artifacts
        if item.path == "deepseek-r1/bash/node-0-1.env"
    ]
    told = {}
    for number, line in enumerate(second.text.splitlines(), 1):
        if not line.startswith("#"):
            span = second.traces[number].origin.span
            assert span is not None
            told[line.partition("=")[0]] = (files.line(span.file, span.line) or "")[
                span.column - 1 :
            ]
    assert told["SERVEC_LEADER_ADDRESS"].startswith(LEADER)
    assert told["SERVEC_NODE_ADDRESS"].startswith(SECOND)
    assert told["SERVEC_HCAS"].startswith("mlx5_0")
    assert told["SERVEC_GID_INDEX"].startswith("3")


def _judged(site: str) -> list[str]:
    """The findings on a servec.yaml."""
    found = servec.compile(tree={"servec.yaml": site, "specs/m.yaml": "models: {}\n"}).findings
    return [item.message for item in found if item.code.number == "SV0205"]


@pytest.mark.parametrize(
    "address",
    [
        *("--x", "-", ":::", "300.1.1.1", "a..b", ".", "a.", "10.0.0.1:80", "10.0.0", "1", "a_b"),
        *("x-", "1::2::3", "1:2:3:4:5:6:7:8:9", "[::1]", "a" * 64, "a\n", "10.0.0.01", ""),
    ],
)
def test_what_is_no_address(address: str) -> None:
    site = yaml.safe_dump({"nodes": {"g": {"address": address}}})
    (told,) = _judged(site)
    assert told.startswith("`nodes.g.address` must be an IP address or a host's name")


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "fd00::1", "1:2:3:4:5:6:7:8", "::", "gpu-1", "GPU1.rack.example", "1a"]
)
def test_what_is_an_address(address: str) -> None:
    assert _judged(yaml.safe_dump({"nodes": {"g": {"address": address}}})) == []


@pytest.mark.parametrize(
    "interface", ["-x", ".", "..", "a b", "a/b", "a" * 16, "", "x\n", "eno1", "bond0.100", "a-b_c"]
)
def test_what_is_an_interface(interface: str) -> None:
    site = yaml.safe_dump({"nodes": {"g": {"address": "n", "interface": interface}}})
    wanted = [] if interface in ("eno1", "bond0.100", "a-b_c") else ["`nodes.g.interface` must"]
    assert [told[:24] for told in _judged(site)] == wanted


@pytest.mark.parametrize(
    "site",
    [
        {"kubernetes": {"api_key": {"secret": "s", "key": "."}}},
        {"kubernetes": {"api_key": {"secret": "s", "key": ".."}}},
        {"systemd": {"api_key": "/"}},
        {"systemd": {"api_key": "/etc/keys/"}},
        {"out": "a\nb"},
        {"specs": ["a\tb"]},
    ],
)
def test_what_is_no_place(site: dict[str, Any]) -> None:
    (told,) = _judged(yaml.safe_dump(site))
    assert "must be" in told
