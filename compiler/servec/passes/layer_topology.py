"""layer, the topology: what was said of it, the formula, and the GPUs -> tp, pp, dp and the rest.

formula tp 2, topology: {tp: 4}, 8 GPUs -> tp 4 (spec override), dp 2 (derived: 8 GPUs ÷ (4·1))
"""

from __future__ import annotations

from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import listed
from servec.ir.facts import CONFIG
from servec.ir.plan import Draft
from servec.ir.setting import Definition, Group, Judged, Origin, Outcome, Rank, Setting
from servec.ir.topology import Topology
from servec.passes.layer_sources import TOPOLOGY
from servec.source.located import Span

MOST = 65536
DEFAULTS = {"pp": 1, "replicas": 1}


def settle_topology(
    draft: Draft, said: dict[str, Setting], findings: Findings
) -> tuple[Topology, tuple[Setting, ...]] | None:
    """The topology and its settings in the order of `Topology`, or None with a finding."""
    bad = [item for key, item in said.items() if not _fits(key, item)]
    for setting in bad:
        winner = setting.winner
        problem = f"`{winner.name.removeprefix(TOPOLOGY)}` must be a whole number from 1 to {MOST}"
        if setting.knob.endswith("enable_dp_attention"):
            problem = f"`{winner.name}` must be true or false"
        findings.add(codes.BAD_TOPOLOGY, winner.origin.span, problem=problem, advice="")
    if bad:
        return None
    return _Topology(draft, said, findings).settle()


def in_own_words(
    draft: Draft, definitions: list[Definition], said: dict[str, Setting], findings: Findings
) -> list[Definition]:
    """tp as servec counts it, for one copy. With attention data parallelism some engines' own
    parameter counts all GPUs: there it is divided by dp."""
    engine = draft.subject.engine.at(draft.subject.version.version)
    attention = said.get("enable_dp_attention")
    if not (engine.tp_counts_all and attention is not None and attention.value is True):
        return definitions
    dp = said["dp"].value if "dp" in said else None
    found = []
    for item in definitions:
        count = item.value
        if item.name.removeprefix(TOPOLOGY) == "tp" or type(count) is not int:
            found.append(item)
        elif type(dp) is int and dp > 0 and count % dp == 0:
            found.append(item._replace(value=count // dp))
        else:
            lacks = f"{dp} does not divide it" if "dp" in said else "no dp is given"
            findings.add(
                codes.BAD_TOPOLOGY,
                item.origin.span,
                problem=f"with attention data parallelism `{item.name}: {count}` counts all GPUs, "
                f"tp times dp, and {lacks}",
                advice="write `topology: {tp: …, dp: …}`, where tp counts one copy",
            )
    return found


def _fits(key: str, setting: Setting) -> bool:
    value = setting.value
    if key == "enable_dp_attention":
        return isinstance(value, bool)
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST
    return whole or (value is None and key in ("ep", "cp", "dcp"))


class _Topology:
    def __init__(self, draft: Draft, said: dict[str, Setting], findings: Findings) -> None:
        self.draft = draft
        self.said = said
        self.findings = findings
        self.settings: dict[str, Setting] = {}

    def settle(self) -> tuple[Topology, tuple[Setting, ...]] | None:
        attention = bool(self.value("enable_dp_attention", False))
        pp = self.number("pp")
        tp = self.tp()
        if tp is None:
            return None
        dp = self.dp(tp, pp)
        if dp is None:
            return None
        topology = Topology(
            tp=tp,
            pp=pp,
            dp=dp,
            ep=self.optional("ep"),
            cp=self.optional("cp"),
            dcp=self.optional("dcp"),
            enable_dp_attention=attention,
            replicas=self.number("replicas"),
        )
        if not self.experts_fit(topology):
            return None
        keys = [key for key in Topology._fields if key in self.settings]
        return topology, tuple(self.settings[key] for key in keys)

    def experts_fit(self, topology: Topology) -> bool:
        """Whether ep fits the engine: some cut the GPUs of tp into groups of experts."""
        rules, ep = self.draft.subject.engine.serve.topology, topology.ep
        if rules.ep_divides_tp is None or not rules.ep_divides_tp.value or ep is None:
            return True
        gpus = topology.tp * (topology.dp if topology.enable_dp_attention else 1)
        if gpus % ep == 0:
            return True
        self.findings.add(
            codes.BAD_TOPOLOGY,
            self.said["ep"].winner.origin.span,
            problem=f"ep {ep} does not divide the {gpus} GPUs that tp spans",
            advice=f"{self.draft.subject.engine.name} wants a divisor of {gpus}",
        )
        return False

    def value(self, key: str, default: object) -> object:
        setting = self.said.get(key)
        if setting is None:
            return default
        self.settings[key] = setting
        return setting.value

    def number(self, key: str) -> int:
        value = self.value(key, DEFAULTS[key])
        assert isinstance(value, int)
        return value

    def optional(self, key: str) -> int | None:
        value = self.value(key, None)
        assert value is None or isinstance(value, int)
        return value

    def tp(self) -> int | None:
        setting = self.said.get("tp")
        formula = self.draft.formula_tp
        if setting is None and formula is None:
            subject = self.draft.subject
            place = subject.model.checkpoint or subject.model.name
            lacks = ["size"] if subject.facts.billions is None else []
            lacks += ["precision"] if subject.precision is None else []
            said = "`topology: {tp: …}`" + (" and `precision:`" if "precision" in lacks else "")
            self.findings.add(
                codes.MISSING_FACT,
                place.span,
                facts=listed(lacks),
                verb="is" if len(lacks) == 1 else "are",
                checkpoint=place.value,
                advice=f"give {said}, or {CONFIG}",
            )
            return None
        derived = self.derived("tp", formula, f"next power of two for {self.draft.formula}")
        if setting is None:
            assert derived is not None
            assert formula is not None
            self.settings["tp"] = derived
            return formula
        history = setting.history + tuple(
            Judged(
                item.definition, Outcome.AGREES if setting.value == formula else Outcome.OVERRULED
            )
            for item in (derived.history if derived else ())
        )
        self.settings["tp"] = Setting(Group.TOPOLOGY, history)
        assert isinstance(setting.value, int)
        return setting.value

    def dp(self, tp: int, pp: int) -> int | None:
        subject = self.draft.subject
        gpus = subject.all_gpus
        setting = self.said.get("dp")
        if setting is not None:
            dp = setting.value
            assert isinstance(dp, int)
        else:
            dp = max(gpus // (tp * pp), 1) if gpus else 1
        needs = tp * pp * dp
        if gpus is not None and needs > gpus:
            reason = f"tp {tp} · pp {pp} · dp {dp}"
            formula = self.draft.formula
            if "tp" not in self.said and formula:
                reason += f"; tp from {formula}"
            self.findings.add(
                codes.NOT_ENOUGH_GPUS, self.place(), needs=needs, has=gpus, reason=reason
            )
            return None
        if gpus is not None and needs < gpus:
            reason = f"tp {tp} · pp {pp} · dp {dp} uses {needs}"
            self.findings.add(
                codes.IDLE_GPUS, self.place(), idle=gpus - needs, gpus=gpus, reason=reason
            )
        rule = (
            f"{gpus} GPU{'s' * (gpus > 1)} ÷ (tp {tp} · pp {pp})"
            if gpus
            else "one copy unless told otherwise"
        )
        derived = self.derived("dp", dp, rule)
        self.settings["dp"] = setting or derived  # type: ignore[assignment]
        return dp

    def derived(self, key: str, value: int | None, rule: str) -> Setting | None:
        if value is None:
            return None
        knob, model = TOPOLOGY + key, self.draft.subject.model
        place = (model.gpus if key == "dp" else None) or model.hardware or model.name
        definition = Definition(
            knob, knob, value, value, Rank.DERIVED, Origin(place.span, "", rule)
        )
        return Setting(Group.TOPOLOGY, (Judged(definition, Outcome.WON),))

    def place(self) -> Span:
        """The smallest place that decides: what was said of tp or dp, else the GPUs."""
        said = [item for key in ("tp", "pp", "dp") if (item := self.said.get(key)) is not None]
        for item in sorted(said, key=lambda item: -int(str(item.value))):
            if item.winner.origin.span is not None:
                return item.winner.origin.span
        model = self.draft.subject.model
        return (model.gpus or model.hardware or model.name).span
