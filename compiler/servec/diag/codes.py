"""Every code, in one table: what it is called, what it says, what to do.

Hundreds are stages: 01 reading, 02 declarations, 03 binding and sizing, 04 layers,
05 requirements, 06 gates, 07 artifacts, 08 the output folder, 09 projects and commands,
10 shards and many nodes, 11 objects of Kubernetes.
A code has a page in docs/findings/ and an example in tests/mistakes/; a number is never used again.
"""

from __future__ import annotations

from servec.diag.findings import Code, Severity

# A table reads best as one.
# fmt: off
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

# --- 01: reading ---------------------------------------------------------------------------------
NOT_UTF8 = Code(
    "SV0101", ERROR, "file is not UTF-8",
    "byte {offset} (0x{byte:02x}) is not UTF-8", "save the file as UTF-8",
)
SYNTAX = Code("SV0102", ERROR, "syntax error", "{problem}")
DUPLICATE_KEY = Code(
    "SV0103", ERROR, "duplicate key",
    "`{key}` is given twice in one mapping", "keep one of the two",
)
TAG = Code("SV0104", ERROR, "tag", "the tag `{tag}` is refused", "write the value without a tag")
MERGE_KEY = Code(
    "SV0105", ERROR, "merge key",
    "the merge key `<<` is refused: readers of YAML 1.2 do not have it", "write the keys out",
)
AMBIGUOUS_SCALAR = Code(
    "SV0106", ERROR, "ambiguous scalar",
    "readers of YAML disagree about `{text}`", "write {instead}",
)
KEY_NOT_TEXT = Code(
    "SV0107", ERROR, "key is not text", "a key must be text",
    "put the key in quotes; `{{{{ … }}}}` of a template must be filled in first",
)
TOO_LARGE = Code(
    "SV0108", ERROR, "file is too large or too deep", "{problem} in one file", "{advice}",
)
BAD_ALIAS = Code(
    "SV0109", ERROR, "bad alias",
    "the alias `*{name}` {problem}", "write the value out",
)
SECOND_DOCUMENT = Code(
    "SV0110", ERROR, "second document",
    "a second YAML document starts here", "keep one document in a file",
)
EMPTY_FILE = Code(
    "SV0111", ERROR, "empty file", "the file holds no value", "write it or remove it",
)
UNREADABLE = Code(
    "SV0112", ERROR, "file cannot be read", "cannot read this file: {problem}",
    "make it a readable file, or take it away",
)

# --- 02: declarations ----------------------------------------------------------------------------
UNKNOWN_KEY = Code(
    "SV0201", ERROR, "unknown key",
    "unknown key `{key}` in {where}", "{known}",
)
WRONG_TYPE = Code(
    "SV0202", ERROR, "wrong type", "{where} must be {wanted}, this is {found}", "{advice}",
)
UNKNOWN_ACCELERATOR = Code(
    "SV0203", ERROR, "unknown accelerator", "unknown accelerator `{name}`", "{known}",
)
MISSING_KEY = Code("SV0204", ERROR, "missing key", "{where} has no `{key}`", "{advice}")
BAD_VALUE = Code("SV0205", ERROR, "value is not allowed", "{where} must be {wanted}, not {value}")
PROFILES = Code(
    "SV0206", ERROR, "legacy profiles",
    "`profiles` is the older form of a recipe, in one layer",
    "move what depends on the GPU under `hardware:` and parsers and tool choice under "
    "`capabilities:` (`instruct`, `base`)",
)
BAD_NAME = Code(
    "SV0207", ERROR, "name does not fit",
    "`{name}` cannot name {what}",
    "use at most {limit} lower-case letters, digits and single `-`, beginning and ending with a "
    "letter or digit: it names files, units and objects",
)
BAD_VERSION = Code(
    "SV0208", ERROR, "not a version", "`{text}` is not {what} of PEP 440", "{advice}",
)
DECLARED_TWICE = Code(
    "SV0209", ERROR, "declared twice", "{what} `{name}` is declared twice", "keep one of the two",
)
MIXED_MODEL = Code(
    "SV0210", ERROR, "model is of two kinds",
    "{keys} cannot stand beside `{kind}`",
    "take them out: a model is served (`checkpoint`), shares another's server (`base`), or is "
    "somebody else's (`endpoint`)",
)
WRONG_VOCABULARY = Code(
    "SV0211", ERROR, "word of the other vocabulary",
    "`{word}` is a word of {theirs}; {ours} says `{right}`", "write `{right}`",
)
BROKEN_ENGINE = Code(
    "SV0212", ERROR, "engine folder is broken", "engine `{engine}`: {problem}", "{advice}",
)
SIZE_RANGES = Code(
    "SV0213", ERROR, "size ranges", "the size range of `{recipe}` {problem}", "{advice}",
)
CONTRACT = Code("SV0214", ERROR, "manifest contradicts itself", "{problem}", "{advice}")
WRONG_GATE = Code(
    "SV0215", WARNING, "manifest contradicts the engine's catalogue", "{problem}", "{advice}",
)

# --- 03: binding and sizing ----------------------------------------------------------------------
UNKNOWN_ENGINE = Code(
    "SV0301", ERROR, "unknown engine", "unknown engine `{name}`, known are {known}",
    "write the name of one; a new engine is a folder in `serve.d/`",
)
UNKNOWN_RECIPE = Code("SV0302", ERROR, "unknown recipe", "unknown recipe `{name}`", "{known}")
NO_RECIPE = Code(
    "SV0303", ERROR, "no recipe fits",
    "no recipe of family `{family}` is for {size}B parameters",
    "{ranges}; pin one with `recipe:`, or say `recipe: none`",
)
NO_FAMILY = Code(
    "SV0304", ERROR, "no recipe family", "no recipe family is known for {what}",
    "pin one with `recipe:`, or say `recipe: none` and give all in `overrides:`",
)
MISSING_FACT = Code(
    "SV0305", ERROR, "a fact about the model is missing",
    "the {facts} of `{checkpoint}` {verb} not known", "{advice}",
)
UNKNOWN_MODEL = Code("SV0306", ERROR, "unknown model", "unknown model `{name}`", "{known}")
BASE_CYCLE = Code(
    "SV0307", ERROR, "base cycle", "`base` leads back to where it came from: {chain}",
    "let one of them be served by itself",
)
TWO_TYPES = Code(
    "SV0308", ERROR, "two types on one server",
    "`{model}` is `{type}`, but its server `{root}` is `{root_type}`",
    "give both the same type, or serve the checkpoint twice",
)
VERSIONS_DISAGREE = Code(
    "SV0309", ERROR, "image and engine version disagree",
    "`image` is version {image} ({source}), `engine_version` says {version}", "keep one of the two",
)
VERSION_UNKNOWN = Code(
    "SV0310", NOTE, "engine version is unknown",
    "the version of `{engine}` is unknown: {reason}",
    "nothing is gated by version; give `engine_version`, or an image whose version can be read",
)
NOT_SERVED = Code(
    "SV0311", ERROR, "model has no server of its own",
    "`{name}` has no server of its own", "name a model that has a `checkpoint`",
)
PLAN_NAMES = Code(
    "SV0312", ERROR, "plan names collide", "two plans are called `{name}`",
    "take one of the two values out of the matrix",
)
CONFIG_MISSING = Code(
    "SV0313", ERROR, "config file is missing", "there is no file `{path}` in the project",
    "paths are from the project's root, and stay inside it",
)
NOT_ENOUGH_GPUS = Code(
    "SV0314", ERROR, "not enough GPUs",
    "{needs} GPUs are needed ({reason}), there are {has}",
    "give more GPUs, another accelerator, or a smaller topology",
)
IDLE_GPUS = Code(
    "SV0315", NOTE, "idle GPUs", "{idle} of {gpus} GPUs stay idle: {reason}",
    "give fewer GPUs, or a topology that uses them",
)
NO_LEAF = Code(
    "SV0316", WARNING, "recipe has no layer for this hardware",
    "recipe `{recipe}` has no hardware layer for {accelerator}, {precision}, {engine}",
    "the engine's defaults hold; add the leaf to the recipe, or set what matters in `overrides:`",
)
ENGINE_DISABLED = Code(
    "SV0317", ERROR, "engine is disabled", "engine `{engine}` is disabled for this site",
    "serve the model with another one, or enable it in servec.yaml",
)
MODEL_CONFIG = Code(
    "SV0319", ERROR, "model config is not usable", "{key} of a model's config must be {wanted}",
    "give the config.json that comes with the checkpoint",
)
OTHER_IMAGE = Code(
    "SV0320", ERROR, "image of another engine",
    "the image is one of engine `{theirs}`, the model is served by `{engine}`",
    "give an image of `{engine}`",
)
OTHER_PRECISION = Code(
    "SV0321", WARNING, "precision is not the weights'",
    "`precision: {said}`, but the weights of `{checkpoint}` are {facts}",
    "leave `precision:` out, or quantize while loading with the engine's `quantization` parameter",
)
NO_FORMAT = Code(
    "SV0322", WARNING, "accelerator lacks the number format",
    "{accelerator} does not compute in {precision}",
    "take another accelerator, or set the engine's `dtype` to one of: {formats}",
)
UNKNOWN_MACHINE_IMAGE = Code(
    "SV0323", ERROR, "unknown machine image", "unknown machine image `{name}`", "{known}",
)

# --- 04: layers ----------------------------------------------------------------------------------
TWO_VALUES = Code(
    "SV0401", ERROR, "two values at one rank",
    "`{knob}` has two values of equal strength: {one} and {other} ({rank})", "keep one of the two",
)
BAD_TOPOLOGY = Code("SV0402", ERROR, "topology does not work out", "{problem}", "{advice}")
NO_FLAG = Code(
    "SV0403", WARNING, "engine has no such parallelism",
    "engine `{engine}` has no flag for {what}: it is left out{idle}",
    "take it out of the spec, plan with fewer GPUs, or take an engine that has it",
)
BAD_SET = Code(
    "SV0404", ERROR, "setting on the command line", "`--set {text}`: {problem}",
    "write MODEL.KNOB=VALUE, the value as in YAML",
)

# --- 05: requirements ----------------------------------------------------------------------------
UNMET = Code(
    "SV0501", WARNING, "requirement is not met",
    "`{requirement}` of {tasks} is not met: `{knob}` is {value}, set by the {rank}",
    "remove that setting, or accept it: the user's value stands",
)
NO_RULE = Code(
    "SV0502", ERROR, "no rule for a requirement",
    "engine `{engine}` {version} has no rule for `{requirement}`",
    "serve the model with another engine or version, or drop the requirement",
)

# --- 06: gates -----------------------------------------------------------------------------------
UNTESTED_VERSION = Code(
    "SV0601", WARNING, "version was not tested",
    "recipe `{recipe}` was tested with {engine} {tested}, this is {version}",
    "take a tested version, or test this one and add it to `tested_versions`",
)
KNOWN_ISSUE = Code(
    "SV0602", WARNING, "known issue", "recipe `{recipe}`: {issue}",
    "when it is mended, say in the recipe which `versions:` have it",
)
LOCKED_ENV = Code(
    "SV0603", ERROR, "environment undoes determinism",
    "`{name}` must be `{value}` for `deterministic: true`", "remove one of the two",
)
SECRET = Code(
    "SV0604", ERROR, "secret in a source",
    "`{name}` is a secret: it would stand in the sources and in what is made from them",
    "{advice}", conceal=True,
)
BAD_ENV_NAME = Code(
    "SV0605", ERROR, "not an environment name", "`{name}` cannot name an environment variable",
    "use letters, digits and `_`, not beginning with a digit, and none of bash or the wrapper",
)
UNREPRESENTABLE = Code(
    "SV0606", ERROR, "value cannot be passed",
    "`{knob}` cannot be passed on: {problem}", "{advice}",
)
OWNED = Code(
    "SV0607", ERROR, "servec sets this itself", "`{knob}` is set by servec", "{advice}",
)
SET_TWICE = Code(
    "SV0608", ERROR, "one flag is set twice",
    "`{knob}` and `{other}` both set {flag}", "keep one of the two",
)
NO_ALGORITHM = Code(
    "SV0609", ERROR, "no such speculative decoding", "{problem}", "{advice}",
)
BAD_FEATURE = Code("SV0610", ERROR, "feature of the engine", "{problem}", "{advice}")
ADAPTERS = Code("SV0611", ERROR, "adapters cannot be served", "{problem}", "{advice}")
VARIABLE_TWICE = Code(
    "SV0612", ERROR, "one variable is set twice", "{one} and {other} both set `{name}`",
    "keep one of the two",
)
OLD_DRIVER = Code(
    "SV0613", WARNING, "driver is older than the image needs",
    "the image needs driver {need} or newer, {machine} comes with {have}", "{advice}",
)
CONTRADICTION = Code(
    "SV0614", ERROR, "settings contradict one another", "{one}, but {other}", "{advice}",
)
UNKNOWN_FLAG = Code(
    "SV0615", ERROR, "flag that this version does not have",
    "{engine} {version} has no flag `{flag}`{history}", "{advice}",
)
CUT_SHORT = Code(
    "SV0616", WARNING, "flag is cut short", "`{word}` is short for `{flag}`",
    "write it out: a version in which two flags begin so refuses it",
)
AMBIGUOUS_FLAG = Code(
    "SV0617", ERROR, "flag may mean several", "`{word}` may mean {others}",
    "write out the one that is meant",
)
BAD_FLAG_VALUE = Code(
    "SV0618", ERROR, "value that the flag does not take", "`{flag}` {wanted}, not {value}",
    "{advice}",
)
DEPRECATED = Code(
    "SV0619", WARNING, "flag is deprecated", "`{flag}` is deprecated in {engine} {version}",
    "{advice}",
)
UNKNOWN_VARIABLE = Code(
    "SV0620", WARNING, "variable that this version does not read",
    "{engine} {version} does not read `{name}`{history}", "{advice}",
)
UNKNOWN_NAME = Code(
    "SV0621", ERROR, "name that this version does not know",
    "{engine} {version} knows no {what} `{name}`{where}{history}", "{advice}",
)
GIVEN_TWICE = Code(
    "SV0622", WARNING, "flag is given twice", "`{flag}` is given twice",
    "the last one counts; keep one",
)
RENAMED = Code(
    "SV0623", NOTE, "parameter under another name",
    "{written} is {become} in {engine} {version}", "write it so to see no note",
)
CATALOGUE_ENDS = Code(
    "SV0624", WARNING, "version is beyond the catalogue",
    "what {engine} {version} accepts is taken from {release}, the {end} release that was read",
    "`servec catalog extract {engine} {version}` reads it",
)
STRAY_WORD = Code(
    "SV0625", ERROR, "word that belongs to no flag", "`{word}` belongs to no flag",
    "name its flag, or take it out",
)
REFUSED_VARIABLE = Code(
    "SV0626", ERROR, "variable that is refused", "`{name}` is refused: {reason}",
    "{advice}",
)
TEMPLATE = Code(
    "SV0627", WARNING, "template that cannot be read",
    "the command lines of this template are not checked: {problem}",
    "render it first, and give what it renders to `servec lint -`",
)
PROGRAM_TWICE = Code(
    "SV0629", ERROR, "program that the image starts already",
    "the image starts `{program}` before these words", "take `{program}` out here, or {advice}",
)
NOT_CHECKED = Code(
    "SV0630", WARNING, "command that is not checked",
    "`{words}` starts no server of {engine}: nothing of it is checked", "it begins with {known}",
)
NOT_EXPANDED = Code(
    "SV0628", WARNING, "variable that nothing expands",
    "`{text}` reaches the engine as it stands: no target expands it",
    "write the value; what differs from host to host belongs into `nodes` of servec.yaml, or into"
    " the host's environment file",
)

# --- 07: lowering and artifacts ------------------------------------------------------------------
NO_IMAGE = Code(
    "SV0701", ERROR, "target needs an image", "the target `{target}` needs `image:`", "{advice}",
)
NO_COMMAND = Code(
    "SV0702", WARNING, "engine is no command of a host",
    "`{engine}` is a container that starts itself: nothing is made for {targets}",
    "say `targets: [kubernetes]` for this model",
)

NAME_TWICE = Code(
    "SV0703", ERROR, "one name for what two models have",
    "the {what} `{name}` is of `{one}` and of `{other}`",
    "give one of them another name",
)

# --- 08: the output folder -----------------------------------------------------------------------
CHANGED = Code(
    "SV0801", ERROR, "artifact differs", "`{path}` differs from what the sources say: {detail}",
    "run `servec build`",
)
MISSING = Code("SV0802", ERROR, "artifact is missing", "`{path}` is missing", "run `servec build`")
LEFTOVER = Code(
    "SV0803", ERROR, "artifact is left over", "`{path}` comes from no source any more",
    "run `servec build`",
)
FOREIGN = Code(
    "SV0804", WARNING, "file in the output folder is not servec's",
    "`{path}` {detail}", "move it out of the output folder",
)
CANNOT_WRITE = Code(
    "SV0805", ERROR, "cannot write", "cannot {verb} `{path}`: {problem}",
    "make room for it, or give servec the right to it",
)
BAD_OUTPUT = Code(
    "SV0806", ERROR, "output folder does not fit", "the output folder `{path}` {problem}",
    "give a folder of its own inside the project",
)

# --- 09: projects and commands -------------------------------------------------------------------
NO_PROJECT = Code(
    "SV0901", ERROR, "no project", "there is no servec.yaml in `{folder}` or above it",
    "{advice}",
)
NO_SUCH_NAME = Code("SV0902", ERROR, "unknown name", "there is no {what} `{name}`", "{known}")
STALE_LINE = Code(
    "SV0903", ERROR, "nothing to explain here", "`{path}:{line}`: {problem}", "{advice}",
)
NO_SPECS = Code(
    "SV0904", WARNING, "no models", "no spec declares a model to serve", "add one under {folders}",
)
NO_SPEC_FOLDER = Code(
    "SV0905", ERROR, "folder of specs is missing", "there is no folder `{folder}` in the project",
    "make it, or name the right one in servec.yaml under `specs:`",
)
UNREAD_RELEASE = Code(
    "SV0906", ERROR, "release was not read", "{what} was not read into the catalogue: {problem}",
    "what was read before is kept: run it again when that is mended",
)

# --- 10: shards and many nodes -------------------------------------------------------------------
NO_MODEL_PATH = Code(
    "SV1001", ERROR, "no model", "the profile has no model",
    "give `model_path`: a hub id, or a path that the server sees",
)
TP_NOT_POSITIVE = Code(
    "SV1002", ERROR, "tensor parallelism below 1", "tp is {tp}",
    "give the number of GPUs that one copy of the model is cut over: 1 or more",
)
RANK_OUT_OF_RANGE = Code(
    "SV1003", ERROR, "rank outside the replica",
    "rank {rank} is none of the {nodes} node{s}, which are 0 to {last}", "count ranks from 0",
)
MIXED_FABRIC = Code(
    "SV1004", ERROR, "RDMA adapters of two fabrics",
    "the RDMA adapters are of {fabrics}: no traffic passes from one to the other",
    "give those of one fabric",
)
NO_GPUS_PER_NODE = Code(
    "SV1005", ERROR, "GPUs of a node not said",
    "{nodes} nodes, and nothing says how many GPUs of each", "give `gpus_per_node`",
)
GPUS_DO_NOT_ADD_UP = Code(
    "SV1006", ERROR, "GPUs do not add up", "{has}, but {needs}", "{advice}",
)
NODE_TOO_SMALL = Code(
    "SV1007", ERROR, "node has too few GPUs", "the shard needs {needs} GPUs, the node has {has}",
    "take a larger node, or more of them",
)
MIXED_GPUS = Code(
    "SV1008", ERROR, "GPUs of different kinds",
    "one group over different GPUs: {kinds}", "give GPUs of one kind",
)
LOW_CAPABILITY = Code(
    "SV1009", ERROR, "GPU is too old for a quantization",
    "{quantization} needs compute capability {needs}, {gpu} has {has}",
    "take another quantization, or a newer GPU",
)
HEADS_NOT_DIVISIBLE = Code(
    "SV1010", ERROR, "attention heads cannot be split", "{problem}", "{advice}",
)
BLOCK_NOT_DIVISIBLE = Code(
    "SV1011", ERROR, "quantized blocks cannot be split",
    "{width} {total} ÷ {parts} = {part}, and a quantized block is {block} wide",
    "{advice}",
)
EXPERTS_NOT_DIVISIBLE = Code(
    "SV1012", ERROR, "experts cannot be split",
    "{experts} experts cannot be spread over {parts} GPUs evenly", "{advice}",
)
NO_LEADER = Code(
    "SV1013", ERROR, "leader is not said", "{nodes} nodes, and {problem}",
    "give the address and the port that rank 0 meets the others on",
)
LOOPBACK_LEADER = Code(
    "SV1014", ERROR, "leader that no other node reaches",
    "`{address}` is this node to every node", "give the leader's address in the nodes' network",
)
NO_KV_EVENTS = Code(
    "SV1015", ERROR, "no events of the KV cache", "{engine} publishes no KV cache events",
    "leave `kv_events` out",
)
OWNED_FLAG = Code(
    "SV1016", ERROR, "flag that servec sets itself", "`{flag}` is set by servec", "{advice}",
    conceal=True,
)
NO_NODES = Code(
    "SV1017", ERROR, "engine does not span nodes", "{problem}", "{advice}",
)
LAUNCH_MODES = Code(
    "SV1018", ERROR, "two ways over several nodes", "`{flag}` asks for {other}, but this is {way}",
    "{advice}",
)
MIG_PARALLEL = Code(
    "SV1019", ERROR, "one model over several MIG instances",
    "tp {tp} · pp {pp} over MIG instances, which do not talk to one another",
    "take one larger instance, or whole GPUs",
)
MIG_BY_INDEX = Code(
    "SV1020", ERROR, "MIG instance by index", "index {index} names no GPU that CUDA counts",
    "give `gpu_uuids`: an instance of MIG is named by its UUID",
)
NO_KEY_CHANNEL = Code(
    "SV1021", ERROR, "no way to hand over the API key", "{problem}", "{advice}",
)
NO_INTERFACE = Code(
    "SV1022", WARNING, "no interface for the nodes' bootstrap",
    "{nodes} nodes, and nothing says over which interface they meet",
    "give `{key}`: on a node with several, bootstrap may take the wrong one and hang",
)
PORT_TWICE = Code(
    "SV1023", ERROR, "one port for two things", "{one} and {other} are both port {port}",
    "give each a port of its own",
)
HCA_PREFIX = Code(
    "SV1024", WARNING, "name that means several adapters",
    "`{name}` takes in {others} too: NCCL reads a plain name as the beginning of names",
    "set NCCL_IB_HCA in `env` to `=` and the names",
)
GID_UNUSED = Code(
    "SV1025", WARNING, "GID index without RDMA adapters",
    "a GID index {index} is given and no RDMA adapter", "give `hcas`, or leave it out",
)
UNKNOWN_HOST = Code(
    "SV1026", ERROR, "unknown host", "`{name}` is no host of the site", "{advice}",
)
HOSTS_DO_NOT_FIT = Code("SV1027", ERROR, "hosts do not fit", "{problem}", "{advice}")
HALF_A_PAIR = Code("SV1028", ERROR, "one role without the other", "{problem}", "{advice}")
CONNECTORS_DIFFER = Code(
    "SV1029", ERROR, "roles without a common connector", "{problem}", "{advice}",
)
NO_RDMA = Code(
    "SV1030", NOTE, "pods of several nodes without RDMA",
    "{nodes} nodes, and nothing gives their pods RDMA: NCCL goes over TCP on {interface}",
    "give servec.yaml `kubernetes: {{interface: …, rdma: {{resource: …}}}}` as the cluster has it",
)

# --- 11: objects of Kubernetes -------------------------------------------------------------------
OBJECT_NAME = Code(
    "SV1101", ERROR, "name that an object may not have",
    "{what} has {form}, not `{name}`", "give another name",
)
OBJECT_LABEL = Code("SV1102", ERROR, "label of a wrong form", "{problem}", "write it so")
OBJECT_WORD = Code(
    "SV1103", ERROR, "word that the API server does not know",
    "`{word}` is none of the words here, which are {known}", "take one of them",
)
OBJECT_PORT = Code("SV1104", ERROR, "port of a wrong form", "{problem}", "give another")
OBJECT_TWICE = Code(
    "SV1105", ERROR, "one name for two things", "the {what} `{name}` is there twice",
    "give each its own, or take one out",
)
MOUNT_WITHOUT_VOLUME = Code(
    "SV1106", ERROR, "mount of no volume", "no volume is called `{name}`",
    "give the pod the volume, or take the mount out",
)
REQUEST_OVER_LIMIT = Code(
    "SV1107", ERROR, "request above its limit",
    "more {resource} is requested than the limit allows",
    "raise the limit to the request",
)
DEVICES = Code(
    "SV1108", ERROR, "devices counted wrongly", "`{resource}` {problem}",
    "give whole devices, and the request and the limit alike",
)
OBJECT_PROBE = Code(
    "SV1109", ERROR, "number below what is allowed", "{problem}", "give a number that is allowed",
)
NO_ROLLOUT = Code(
    "SV1110", ERROR, "rollout that cannot begin",
    "no pod may be added and none may be missing, so that none is ever replaced",
    "let one of them be 1",
)
SELECTOR_WITHOUT_LABEL = Code(
    "SV1111", ERROR, "selector that its own pods do not have",
    "the template has no label `{label}`", "give the template the label",
)
BUDGET = Code(
    "SV1112", ERROR, "disruption budget of two bounds, or of none",
    "one of `minAvailable` and `maxUnavailable` is wanted, and {count} is there", "give one",
)
OBJECT_GRACE = Code(
    "SV1113", ERROR, "sleep beyond the grace period",
    "`preStop` sleeps {sleep} s, and the pod is killed after {grace} s",
    "raise `terminationGracePeriodSeconds` above it",
)
CLAIM_NOT_THERE = Code(
    "SV1114", ERROR, "claim that the pod does not have",
    "`resourceClaims` of the pod has no `{name}`", "give the pod the claim",
)
SCALES_NOTHING = Code(
    "SV1115", WARNING, "autoscaler of nothing",
    "there is no {kind} `{name}` among these objects", "name one that is there",
)
SELECTS_NOTHING = Code(
    "SV1116", WARNING, "selector that finds nothing",
    "nothing among these objects has the labels that {what} wants",
    "give it labels that are there",
)
NO_SUCH_PORT = Code(
    "SV1117", ERROR, "port that is not there",
    "no port is called `{name}`", "name one that is there",
)
LARGE_CONFIG_MAP = Code(
    "SV1118", ERROR, "ConfigMap above 1 MiB",
    "it has {size:,} bytes, and at most 1,048,576 are kept",
    "put large files into a volume",
)
MADE_NAME = Code(
    "SV1119", ERROR, "name too long for what is made of it",
    "`{made}` will have {length} characters, and a StatefulSet's name at most {longest}",
    "give a shorter name",
)
OBJECT_QUANTITY = Code(
    "SV1120", ERROR, "quantity of a wrong form", "`{text}` is no quantity",
    "write a number and k, M, G, T, Ki, Mi, Gi or Ti, or m for thousandths",
)

BY_NUMBER: dict[str, Code] = {
    code.number: code for code in list(globals().values()) if isinstance(code, Code)
}
