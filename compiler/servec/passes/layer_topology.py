"""layer, the topology: what was said of it, the formula, and the GPUs -> tp, pp, dp and the rest.

formula tp 2, topology: {tp: 4}, 8 GPUs -> tp 4 (spec override), dp 2 (derived: 8 GPUs ÷ (4·1))
"""

from __future__ import annotations

from servec.catalog.engines import EngineAt
from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir.plan import Draft, Topology
from servec.ir.setting import Definition, Group, Judged, Origin, Outcome, Rank, Setting
from servec.passes.layer_sources import TOPOLOGY
from servec.source.located import Span

MOST = 65536
DEFAULTS = {"pp": 1, "replicas": 1}


def settle_topology(
    draft: Draft, said: dict[str, Setting], findings: Findings
) -> tuple[Topology, tuple[Setting, ...]] | None:
    """The topology and its settings in the order of `Topology`, or None with a finding."""
    subject = draft.subject
    bad = [item for key, item in said.items() if not _fits(key, item)]
    for setting in bad:
        winner = setting.winner
        problem = f"`{winner.name.removeprefix(TOPOLOGY)}` must be a whole number from 1 to {MOST}"
        if setting.knob.endswith("enable_dp_attention"):
            problem = f"`{winner.name}` must be true or false"
        findings.add(codes.BAD_TOPOLOGY, winner.origin.span, problem=problem, advice="")
    if bad:
        return None
    return _Topology(draft, said, findings, subject.engine.at(subject.version.version)).settle()


def _fits(key: str, setting: Setting) -> bool:
    value = setting.value
    if key == "enable_dp_attention":
        return isinstance(value, bool)
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST
    return whole or (value is None and key in ("ep", "cp", "dcp"))


class _Topology:
    def __init__(
        self, draft: Draft, said: dict[str, Setting], findings: Findings, engine: EngineAt
    ) -> None:
        self.draft = draft
        self.said = said
        self.findings = findings
        self.engine = engine
        self.settings: dict[str, Setting] = {}

    def settle(self) -> tuple[Topology, tuple[Setting, ...]] | None:
        attention = bool(self.value("enable_dp_attention", False))
        pp = self.number("pp")
        tp = self.tp(attention)
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
        keys = [key for key in Topology._fields if key in self.settings]
        return topology, tuple(self.settings[key] for key in keys)

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

    def tp(self, attention: bool) -> int | None:
        setting = self.said.get("tp")
        formula = self.draft.formula_tp
        if setting is None and formula is None:
            subject = self.draft.subject
            place = subject.model.checkpoint or subject.model.name
            self.findings.add(
                codes.MISSING_FACT,
                place.span,
                fact="size" if subject.facts.billions is None else "precision",
                checkpoint=place.value,
                advice="give `topology: {tp: …}`, or `config:` with the config.json",
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
        return self.canonical_tp(setting) if attention else setting.value

    def canonical_tp(self, setting: Setting) -> int | None:
        """With attention data parallelism some engines count tp over all GPUs: theirs is tp·dp."""
        counts = self.engine.manifest.topology.tp_counts
        native = not setting.winner.name.startswith(TOPOLOGY)
        value = setting.value
        assert isinstance(value, int)
        if not native or counts is None or counts.value != "all":
            return value
        dp = self.said.get("dp")
        if dp is None or not isinstance(dp.value, int) or value % dp.value != 0:
            self.findings.add(
                codes.BAD_TOPOLOGY,
                setting.winner.origin.span,
                problem=f"with attention data parallelism `{setting.winner.name}: {value}` counts "
                "all GPUs, so the data-parallel size must be given and divide it",
                advice="or write `topology: {tp: …, dp: …}`, where tp counts one copy",
            )
            return None
        return value // dp.value

    def dp(self, tp: int, pp: int) -> int | None:
        subject = self.draft.subject
        gpus = subject.gpus
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
        for key in ("tp", "dp"):
            setting = self.said.get(key)
            if setting is not None and setting.winner.origin.span is not None:
                return setting.winner.origin.span
        model = self.draft.subject.model
        return (model.gpus or model.hardware or model.name).span
