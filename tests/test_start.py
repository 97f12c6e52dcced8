"""What a wrapper does before it starts: overrides by the environment, and the second gate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import servec
import yaml
from servec.api import shipped_catalog

from tests.wrapper import Started, start, write_wrapper

MODEL = """
models:
  m:
    checkpoint: org/model
    engine: {engine}
    engine_version: "{version}"
    hardware: H100-80G
    recipe: none
    topology: {{tp: 2}}
    image: registry.example/engine:v{version}
    {more}
"""
HOSTILE = [
    "8192",
    "a b",
    "line\nbreak",
    "x=y",
    'it\'s "quoted" \\ and `run` $(run) ${HOME}',
    "*",
    "[a-z]?",
    "~",
    "#no",
    "-1",
    "ünï→",
    "x" * 100_000,
    "\t \t",
    '{"a": [1, 2]}',
    "!history",
    "\x01\x7f",
]


def compiled(engine: str = "vllm", version: str = "0.29.0", more: str = "") -> servec.Result:
    spec = MODEL.format(engine=engine, version=version, more=more)
    return servec.compile(tree={"servec.yaml": "targets: [bash]\n", "specs/a.yaml": spec})


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    more = "overrides: {max_model_len: 4096, enable_prefix_caching: false, middleware: [a, b]}"
    return write_wrapper(compiled(more=more), tmp_path_factory.mktemp("wrapper"))


@pytest.fixture(scope="module")
def plain(wrapper: Path) -> Started:
    return start(wrapper)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
def test_value_arrives_as_one_word(wrapper: Path, plain: Started, value: str) -> None:
    """In the place of the flag that it replaces, and its variable is gone."""
    found = start(wrapper, VLLM_MAX_MODEL_LEN=value)
    wanted = list(plain.argv)
    wanted[wanted.index("4096")] = value
    assert found.argv == wanted
    assert "VLLM_MAX_MODEL_LEN" not in found.env
    assert found.stderr == "serve.sh: VLLM_MAX_MODEL_LEN sets --max-model-len\n"


def test_value_that_looks_like_a_flag_is_tied_to_it(wrapper: Path, plain: Started) -> None:
    found = start(wrapper, VLLM_MAX_MODEL_LEN="--host")
    at = plain.argv.index("--max-model-len")
    assert found.argv == [*plain.argv[:at], "--max-model-len=--host", *plain.argv[at + 2 :]]
    again = start(wrapper, VLLM_DTYPE="-x", VLLM_KV_CACHE_DTYPE="fp8")
    assert again.argv == [*plain.argv, "--dtype=-x", "--kv-cache-dtype", "fp8"]


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("ENABLE_LORA", "true", [], ["--enable-lora"]),
        ("ENABLE_LORA", "false", [], ["--no-enable-lora"]),
        ("ENABLE_PREFIX_CACHING", "true", ["--no-enable-prefix-caching"],
         ["--enable-prefix-caching"]),
        ("ENABLE_PREFIX_CACHING", "false", ["--no-enable-prefix-caching"],
         ["--no-enable-prefix-caching"]),
        ("DISABLE_LOG_STATS", "false", [], []),
        ("MIDDLEWARE", "c", ["--middleware", "a", "--middleware", "b"], ["--middleware", "c"]),
        ("SERVED_MODEL_NAME", "x", ["--served-model-name", "m"], ["--served-model-name", "x"]),
    ],
)  # fmt: skip
def test_variable_becomes_its_flag(
    wrapper: Path, plain: Started, name: str, value: str, old: list[str], new: list[str]
) -> None:
    """In the place of what says the same, else at the end."""
    found = start(wrapper, **{f"VLLM_{name}": value})
    place = plain.argv.index(old[0]) if old else len(plain.argv)
    assert plain.argv[place : place + len(old)] == old
    assert found.argv == [*plain.argv[:place], *new, *plain.argv[place + len(old) :]]
    assert f"VLLM_{name}" not in found.env


@pytest.mark.parametrize("name", ["BUILD_COMMIT", "API_KEY", "MODEL", "NNODES", "HF_TOKEN", "PORT"])
def test_variable_that_is_no_flag_is_left_alone(wrapper: Path, plain: Started, name: str) -> None:
    """Unknown ones, those that the engine reads itself, and what servec decides."""
    found = start(wrapper, **{f"VLLM_{name}": "YWI=Yw=="})
    assert found.argv == plain.argv
    assert found.env[f"VLLM_{name}"] == "YWI=Yw=="
    assert found.stderr == f"serve.sh: variables that set no flag, left as they are: VLLM_{name}\n"


def test_prefix_alone_is_no_flag(wrapper: Path, plain: Started) -> None:
    for value in ("x", "", "--trust-remote-code"):
        assert start(wrapper, VLLM_=value).argv == plain.argv


def test_names_are_read_alike_in_every_locale(wrapper: Path) -> None:
    found = start(wrapper, LC_ALL="tr_TR.UTF-8", VLLM_PIPELINE_PARALLEL_SIZE="2")
    assert found.argv[-2:] == ["--pipeline-parallel-size", "2"]
    assert found.env["LC_ALL"] == "tr_TR.UTF-8"


def test_values_that_are_urls_are_values(wrapper: Path, plain: Started) -> None:
    for name in ("OTLP_TRACES_ENDPOINT", "DATA_PARALLEL_ADDRESS"):
        found = start(wrapper, **{f"VLLM_{name}": "tcp://collector:4317"})
        assert found.argv == [
            *plain.argv,
            f"--{name.lower().replace('_', '-')}",
            "tcp://collector:4317",
        ]


def test_what_the_spec_sets_holds_and_is_told(tmp_path: Path) -> None:
    wrapper = write_wrapper(compiled(more='env: {VLLM_LOGGING_LEVEL: "INFO"}'), tmp_path)
    found = start(wrapper, VLLM_LOGGING_LEVEL="DEBUG")
    assert found.env["VLLM_LOGGING_LEVEL"] == "INFO"
    assert found.stderr == "serve.sh: set by the spec, whose values hold: VLLM_LOGGING_LEVEL\n"


def test_the_wrapper_s_own_names_do_not_leak(wrapper: Path) -> None:
    names = dict.fromkeys(("name", "key", "flag", "values", "found", "image", "base", "one"), "own")
    found = start(wrapper, VLLM_SEED="1", SERVEC_IMAGE="x/y:v0.30.0", **names)
    assert names.items() <= found.env.items()


def test_secrets_and_doors_cannot_be_set(tmp_path: Path) -> None:
    wrapper = write_wrapper(compiled("llama-cpp", "1.0.0"), tmp_path)
    before = start(wrapper).argv
    for name in ("HF_TOKEN", "API_KEY", "TOOLS", "MCP_SERVERS_JSON", "HF_REPO", "MODEL"):
        found = start(wrapper, **{f"LLAMA_ARG_{name}": "sesame"})
        assert found.argv == before
        assert "sesame" not in found.stderr


def test_engine_without_a_catalogue_names_what_it_does_not_take(tmp_path: Path) -> None:
    wrapper = write_wrapper(compiled("vllm-omni", "0.29.0"), tmp_path)
    before = start(wrapper)
    found = start(wrapper, VLLM_OMNI_SEED="1", VLLM_PORT="tcp://10.0.0.1:80", VLLM_SERVICE_HOST="x")
    assert found.argv == before.argv
    assert "left as they are: VLLM_OMNI_SEED" in found.stderr
    assert not {"VLLM_PORT", "VLLM_SERVICE_HOST"} & set(found.env)


@pytest.mark.parametrize(
    "engine", ["vllm", "sglang", "tensorrt-llm", "vllm-omni", "llama-cpp", "sim"]
)
def test_every_engine_s_wrapper_is_clean(engine: str, tmp_path: Path) -> None:
    """bash, shellcheck and shfmt have nothing to say."""
    wrapper = write_wrapper(compiled(engine, "1.2.0"), tmp_path)
    programs = Path(sys.executable).parent
    for words in (["bash", "-n"], [programs / "shellcheck", "-S", "style"],
                  [programs / "shfmt", "-d", "-i", "2", "-ci"]):  # fmt: skip
        done = subprocess.run([*words, wrapper], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), words


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"VLLM_MAX_MODEL_LEN": ""}, "VLLM_MAX_MODEL_LEN is empty"),
        ({"VLLM_ENABLE_LORA": "5"}, "VLLM_ENABLE_LORA is true or false"),
        ({"VLLM_ENABLE_LORA": ""}, "VLLM_ENABLE_LORA is true or false"),
    ],
)
def test_what_is_refused(wrapper: Path, variables: dict[str, str], reason: str) -> None:
    found = start(wrapper, **variables)
    assert (found.code, found.argv) == (2, [])
    assert f"serve.sh: {reason}; nothing is started" in found.stderr


def test_variables_of_kubernetes_services_change_nothing(wrapper: Path, plain: Started) -> None:
    services = {
        "VLLM_PORT": "tcp://10.0.0.7:8000",
        "VLLM_SERVICE_HOST": "10.0.0.7",
        "VLLM_SERVICE_PORT": "8000",
        "VLLM_SERVICE_PORT_HTTP": "8000",
        "VLLM_PORT_8000_TCP": "tcp://10.0.0.7:8000",
        "VLLM_PORT_8000_TCP_PROTO": "tcp",
        "VLLM_PORT_8000_TCP_PORT": "8000",
        "VLLM_PORT_8000_TCP_ADDR": "10.0.0.7",
        "VLLM_MAX_MODEL_LEN_PORT": "tcp://10.0.0.8:80",
    }
    assert start(wrapper, **services) == plain
    kept = start(wrapper, VLLM_PORT="5000")
    assert kept.env["VLLM_PORT"] == "5000"


@pytest.mark.parametrize("place", ["spec", "project"])
def test_overrides_can_be_forbidden(tmp_path: Path, place: str) -> None:
    spec = MODEL.format(engine="vllm", version="0.29.0", more="")
    site = "targets: [bash]\n"
    if place == "spec":
        spec += "    env_overrides: false\n"
    else:
        site += "env_overrides: false\n"
    result = servec.compile(tree={"servec.yaml": site, "specs/a.yaml": spec})
    wrapper = write_wrapper(result, tmp_path)
    found = start(wrapper, VLLM_MAX_MODEL_LEN="8192")
    assert found.argv == start(wrapper).argv
    assert found.env["VLLM_MAX_MODEL_LEN"] == "8192"


def test_spellings_are_the_engines_own(tmp_path: Path) -> None:
    """Another name of a flag replaces it, a twin in the environment is its flag."""
    two = write_wrapper(compiled("sglang", "0.5.15"), tmp_path / "sglang")
    found = start(two, SGLANG_TENSOR_PARALLEL_SIZE="4")
    assert found.argv[found.argv.index("--tp-size") + 1] == "4"
    assert "--tensor-parallel-size" not in found.argv
    three = write_wrapper(compiled("llama-cpp", "1.0.0"), tmp_path / "llama-cpp")
    found = start(three, LLAMA_ARG_N_GPU_LAYERS="12", LLAMA_ARG_FLASH_ATTN="on")
    assert found.argv[found.argv.index("--n-gpu-layers") + 1] == "12"
    assert found.argv[-2:] == ["--flash-attn", "on"]
    four = write_wrapper(compiled("tensorrt-llm", "1.2.0"), tmp_path / "tensorrt-llm")
    found = start(four, TRTLLM_MAX_BATCH_SIZE="8")
    assert found.argv[-2:] == ["--max_batch_size", "8"]


# --- the second gate -----------------------------------------------------------------------------

REFERENCES = [
    "vllm/vllm-openai:v0.8.4",
    "registry.example:5000/mirror/vllm-openai:v0.29",
    "registry.example:5000/vllm",
    "vllm/vllm-openai:v0.8.5-cu128",
    "vllm/vllm-openai:0.10.2rc1",
    "vllm/vllm-openai:v0.5.15.post1",
    "vllm/vllm-openai:24.08",
    "vllm/vllm-openai:nightly",
    "vllm/vllm-openai:latest@sha256:0123456789",
    "123456789012.dkr.ecr.eu-west-1.amazonaws.com/x:0.9.2-gpu-py312",
    "x@sha256:" + "9.9.9" * 8,
    "v0.9.0",
    "0.9.0.1",
    "0.9.0.dev3",
    "v0.9.1.4",
    "vllm/vllm-openai:2025.11.03",
    "vllm/vllm-openai:v2026.01.02",
    "vllm/vllm-openai:v0.25.0-rc1",
    "vllm/vllm-openai:v0.25.0-alpha1",
    "vllm/vllm-openai:v0.25.0-a100",
    "vllm/vllm-openai:v0.9.2.post1.dev3",
]


def versions_around(releases: set[str]) -> list[str]:
    """Each release, the one before it, a candidate of it, a patch of it."""
    found = ["0.0.1", "99.0.0"]
    for release in releases:
        major, minor, patch = map(int, release.split("."))
        before = f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{max(minor - 1, 0)}.99"
        found += [release, before, f"{release}rc1", f"{release}.post1", f"{release}.dev2"]
    return sorted(set(found))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_both_gates_say_the_same(engine: str, tmp_path: Path) -> None:
    """Over every algorithm and the versions around every gate."""
    contract = shipped_catalog().contract(engine)
    assert contract is not None
    since = {feature.since.value for feature in contract.version_features}
    newest = max(since, key=lambda text: tuple(map(int, text.split("."))), default="1.2.0")
    names = [item.value for item in contract.supported_algorithms]
    refused = 0
    for name in names:
        result = compiled(engine, newest, f"speculative: {{algorithm: {name}, model: o/d}}")
        wrapper = write_wrapper(result, tmp_path / name)
        for version in versions_around(since):
            available = not servec.capabilities(engine, version=version).why_not(name)
            found = start(wrapper, "--check", SERVEC_IMAGE=f"some/where:v{version}")
            assert found.code == (0 if available else 1), (name, version, found.stderr)
            refused += not available
            if not available:
                assert f"speculative decoding with {name} is there since" in found.stderr
    assert refused > 10 or not since


def test_wrapper_refuses_an_older_image_before_it_starts(tmp_path: Path) -> None:
    more = "speculative: {algorithm: mtp, num_tokens: 2}"
    wrapper = write_wrapper(compiled(more=more), tmp_path)
    found = start(wrapper, SERVEC_IMAGE="vllm/vllm-openai:v0.9.0")
    assert (found.code, found.argv) == (1, [])
    assert "mtp is there since vllm 0.11.0, and this is 0.9.0" in found.stderr
    assert "it was compiled for registry.example/engine:v0.29.0" in found.stderr
    newer = start(wrapper, SERVEC_IMAGE="vllm/vllm-openai:v0.33.0")
    assert newer.code == 0
    assert newer.argv == start(wrapper).argv
    assert "SERVEC_IMAGE" not in newer.env
    assert "compiled for vllm 0.29.0; vllm/vllm-openai:v0.33.0 has 0.33.0" in newer.stderr
    unknown = start(wrapper, SERVEC_IMAGE="vllm/vllm-openai:nightly")
    assert unknown.argv == newer.argv
    assert "version of vllm in `vllm/vllm-openai:nightly` is unknown" in unknown.stderr
    assert start(wrapper).stderr == ""


def test_what_two_versions_spell_alike_is_no_gate(tmp_path: Path) -> None:
    """Two rules of the manifest may give the same flag to two ranges of versions."""
    more = "overrides: {dp_size: 2}"
    for version, image in (("0.5.15", "v0.5.23"), ("0.5.22", "v0.5.20")):
        wrapper = write_wrapper(compiled("sglang", version, more), tmp_path / version)
        found = start(wrapper, "--check", SERVEC_IMAGE=f"lmsysorg/sglang:{image}")
        assert (found.code, found.stdout.splitlines()[-1]) == (0, "nothing is missing")
    found = start(wrapper, "--check", SERVEC_IMAGE="lmsysorg/sglang:v0.5.4")
    assert found.code == 1
    assert "`sglang serve` is there since sglang 0.5.5, and this is 0.5.4" in found.stderr


def test_image_of_another_engine_is_refused(wrapper: Path) -> None:
    found = start(wrapper, SERVEC_IMAGE="mirror.example/lmsysorg/sglang:v0.5.15")
    assert (found.code, found.argv) == (1, [])
    assert "is an image of sglang, not of vllm" in found.stderr


def test_wrapper_reads_references_as_the_compiler_does(tmp_path: Path) -> None:
    own = '{engine: vllm, version: "0.9.2"}'
    files = {
        "catalogs/images.yaml": f"own.example/a/vllm:stable: {own}\n",
        "servec.yaml": "targets: [bash]\n",
        "specs/a.yaml": MODEL.format(engine="vllm", version="0.1.0", more=""),
    }
    wrapper = write_wrapper(servec.compile(tree=files), tmp_path)
    told = {reference: servec.engine_version("vllm", reference).version for reference in REFERENCES}
    for reference, version in told.items():
        found = start(wrapper, "--check", SERVEC_IMAGE=reference)
        if version is None:
            assert f"in `{reference}` is unknown" in found.stderr, reference
            assert found.stdout.endswith("not checked\n")
        else:
            assert f"{reference} has {version}\n" in found.stderr, reference
            assert found.stdout.endswith("nothing is missing\n")
    for reference in ("own.example/a/vllm:stable", "mirror.example/vllm:stable"):
        found = start(wrapper, "--check", SERVEC_IMAGE=reference)
        assert f"{reference} has 0.9.2\n" in found.stderr
    assert len([version for version in told.values() if version]) > 6


def test_every_engine_with_algorithms_is_tried() -> None:
    catalog = shipped_catalog()
    contracts = {name: catalog.contract(name) for name in catalog.engine_names}
    having = {name for name, found in contracts.items() if found and found.supported_algorithms}
    assert having == {"vllm", "sglang", "tensorrt-llm"}


# --- what a server is given at its start ---------------------------------------------------------


def test_a_server_that_would_compute_on_the_cpu_is_not_started(tmp_path: Path) -> None:
    wrapper = write_wrapper(compiled("llama-cpp", "1.0.0"), tmp_path)
    assert start(wrapper).code == 0
    for seen in ("Available devices:", "", "ggml_cuda_init: failed to initialize CUDA: no device"):
        found = start(wrapper, DEVICES=seen)
        assert (found.code, found.argv) == (1, [])
        assert "sees no GPU" in found.stderr
    assert start(wrapper, DEVICES="", SERVEC_ALLOW_CPU="1").argv[:1] == ["--model"]


def test_the_api_key_is_a_variable(tmp_path: Path) -> None:
    wrapper = write_wrapper(compiled("vllm", "0.29.0"), tmp_path)
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "api-key").write_text("from-a-file\n")
    told = {"SERVEC_API_KEY": "from-a-variable"}, {"CREDENTIALS_DIRECTORY": str(credentials)}
    for variables, key in zip(told, ("from-a-variable", "from-a-file"), strict=True):
        found = start(wrapper, **variables)
        assert found.env["VLLM_API_KEY"] == key
        assert "SERVEC_API_KEY" not in found.env
        assert key not in " ".join(found.argv) + found.stderr
        assert key not in start(wrapper, "--print", **variables).stdout
    assert start(wrapper, VLLM_API_KEY="its-own").env["VLLM_API_KEY"] == "its-own"
    for key in ("two words", 'quo"te', "$(id)", "a\nb"):
        found = start(wrapper, SERVEC_API_KEY=key)
        assert (found.code, found.argv) == (1, [])
        assert key not in found.stderr
    (credentials / "api-key").write_text("\n")  # a key was meant: an open server is not
    for empty in ({"SERVEC_API_KEY": ""}, {"CREDENTIALS_DIRECTORY": str(credentials)}):
        found = start(wrapper, **empty)
        assert (found.code, found.argv) == (1, [])
        assert "the API key is empty" in found.stderr


def test_the_api_key_is_in_a_file_of_the_servers_own(tmp_path: Path) -> None:
    wrapper = write_wrapper(compiled("sglang", "0.5.15"), tmp_path)
    (tmp_path / "run").mkdir()
    found = start(wrapper, SERVEC_API_KEY="k.1", RUNTIME_DIRECTORY=str(tmp_path / "run"))
    assert found.argv[-2] == "--config"
    file = Path(found.argv[-1])
    assert file.parents[1] == tmp_path / "run"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert yaml.safe_load(file.read_text()) == {"api-key": "k.1"}
    assert "k.1" not in " ".join(found.argv)
    assert "SERVEC_API_KEY" not in found.env
    assert "--config" not in start(wrapper).argv
    second = start(wrapper, SERVEC_API_KEY="k.1", SGLANG_CONFIG="/x.yaml")
    assert (second.code, second.argv) == (1, [])
    assert "--config, of which there is one already" in second.stderr
    older = write_wrapper(compiled("sglang", "0.4.6.post5"), tmp_path / "older")
    assert "hand_over_key" not in older.read_text()


SITE_WITH_KEYS = """\
systemd: {api_key: /etc/servec/api-key}
kubernetes: {api_key: {secret: inference, key: token}}
"""


def test_a_key_in_a_file_beside_a_file_of_the_same_flag_is_refused() -> None:
    model = {
        "checkpoint": "org/m",
        "engine": "sglang",
        "engine_version": "0.5.15",
        "hardware": "H100-80G",
        "targets": ["systemd"],
        "recipe": "none",
        "topology": {"tp": 1},
        "overrides": {"config": "/x.yaml"},
    }
    site = "systemd: {api_key: /etc/servec/api-key}\n"
    tree = {"servec.yaml": site, "specs/m.yaml": yaml.safe_dump({"models": {"m": model}})}
    found = [str(item.code) for item in servec.compile(tree=tree).findings]
    assert "SV1021" in found


def test_the_site_says_where_the_key_is() -> None:
    models = {
        "v": ("vllm", "vllm/vllm-openai:v0.29.0"),
        "s": ("sglang", "lmsysorg/sglang:v0.5.15"),
        "t": ("tensorrt-llm", "nvcr.io/nvidia/tensorrt-llm/release:1.2.0"),
    }
    spec = "models:\n"
    for name, (engine, image) in models.items():
        spec += f"  {name}: {{checkpoint: org/m, engine: {engine}, image: '{image}', gpus: 1, "
        spec += "hardware: H100-80G, recipe: none, precision: bf16, topology: {tp: 1}}\n"
    result = servec.compile(tree={"servec.yaml": SITE_WITH_KEYS, "specs/a.yaml": spec})
    assert result.ok, result.findings
    open_servers = [item for item in result.findings if item.code.number == "SV1021"]
    assert [item.severity.word for item in open_servers] == ["warning"]
    assert "`t` is open" in open_servers[0].message
    texts = {path: content.decode() for path, content in result.artifacts.items()}
    for name in ("v", "s"):
        unit = texts[f"{name}/systemd/{name}.service"]
        assert "LoadCredential=api-key:/etc/servec/api-key\n" in unit
        assert ("RuntimeDirectory=servec/s\n" in unit) is (name == "s")
    assert "LoadCredential" not in texts["t/systemd/t.service"]
    pods = {}
    for name in models:
        deployment = yaml.safe_load(texts[f"{name}/kubernetes/deployment.yaml"])
        pods[name] = deployment["spec"]["template"]["spec"]
    reference = {"secretKeyRef": {"name": "inference", "key": "token"}}
    env = pods["v"]["containers"][0]["env"]
    assert {"name": "VLLM_API_KEY", "valueFrom": reference} in env
    server = pods["s"]["containers"][0]
    assert server["args"][-2:] == ["--config", "/run/secrets/servec/api-key.yaml"]
    (volume,) = [item for item in pods["s"]["volumes"] if item["name"] == "api-key"]
    assert volume["secret"]["secretName"] == "inference"
    assert volume["secret"]["items"] == [{"key": "token", "path": "api-key.yaml"}]
