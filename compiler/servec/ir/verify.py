"""What must be true after each pass, whatever the user wrote. A failure is a defect of servec.

Run by the tests after every pass of every case, and by `servec dump`.
"""

from __future__ import annotations

from itertools import pairwise

from servec.ir.artifact import Artifact
from servec.ir.launch import Launch
from servec.ir.placement import Placed
from servec.ir.plan import Draft, Plan
from servec.ir.program import Program
from servec.ir.setting import Outcome, Rank, Setting, same


def verify(ir: object) -> None:
    """Raise AssertionError where an IR breaks a rule of its kind."""
    match ir:
        case Program():
            for server in ir.servers:
                names = [subject.name for subject in server.variants]
                assert all(name.startswith(server.model.name.value) for name in names), names
        case tuple():
            for item in ir:
                _item(item)
            _unique([item.path for item in ir if isinstance(item, Artifact)])
        case _:
            pass


def _item(item: object) -> None:
    match item:
        case Draft():
            assert item.formula_tp is None or item.formula_tp & (item.formula_tp - 1) == 0
            for need in item.needs:
                assert need.value is not False
                assert all(one.rank <= Rank.REQUIREMENT for one in need.definitions), need
        case Plan():
            _plan(item)
        case Placed():
            place, gpus = item.placement, item.plan.topology.gpus
            assert place.nodes * place.gpus_per_node == gpus, item
            assert (place.way is None) == (place.nodes == 1), item
            assert all(len(group) == place.nodes for group in place.groups), item
        case Launch():
            _launch(item)
        case Artifact():
            _artifact(item)


def _plan(plan: Plan) -> None:
    _unique([setting.knob for setting in plan.settings])
    gpus = plan.subject.all_gpus
    assert gpus is None or plan.topology.gpus <= gpus, plan.topology
    for setting in plan.settings:
        _setting(setting)


def _setting(setting: Setting) -> None:
    """History is strongest first, one definition won, and nobody lost to a weaker one."""
    ranks = [judged.definition.rank for judged in setting.history]
    assert all(one >= other for one, other in pairwise(ranks)), setting
    assert [judged.outcome for judged in setting.history].count(Outcome.WON) == 1, setting
    assert setting.history[0].outcome is Outcome.WON, setting
    assert setting.winner.rank is not Rank.ENGINE_DEFAULT, setting
    for judged in setting.history:
        if judged.outcome is Outcome.AGREES:
            assert same(judged.definition.value, setting.value), setting
        origin = judged.definition.origin
        assert origin.span is not None or origin.rule, setting


def _launch(launch: Launch) -> None:
    starts_itself = launch.plan.subject.told is not None
    assert bool(launch.command) != starts_itself, launch
    for group in launch.command:
        assert group.words, group
        assert group.origin.where, group
        assert not any("\x00" in str(word) for word in group.words), group
    names = [variable.name for variable in launch.env]
    assert names == sorted(names)
    _unique(names)


def _artifact(item: Artifact) -> None:
    assert item.text.endswith("\n"), item.path
    assert "\r" not in item.text, item.path
    parts = item.path.split("/")
    assert not item.path.startswith("/"), item.path
    assert ".." not in parts, item.path
    assert "" not in parts, item.path
    assert all(1 <= line <= item.text.count("\n") for line in item.traces), item.path


def _unique(names: list[str]) -> None:
    assert len(set(names)) == len(names), names
