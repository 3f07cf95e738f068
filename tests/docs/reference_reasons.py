"""Every reason that a message can begin with, from the places in the code that give it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dpone_provider.adapters.mssql import features
from dpone_provider.domain import cells, effects
from dpone_provider.domain import collision as collisions
from dpone_provider.domain.cells import Feature
from dpone_provider.domain.collision import CollisionKind
from dpone_provider.domain.effects import EffectKind
from tests.docs.code_mentions import text_of
from tests.docs.pages import ROOT
from tests.docs.reference_invariants import registry
from tests.docs.tables import code, table

MAKERS = {"refuse": "refused", "busy": "busy", "fail": "failed", "unknown": "unknown", "Refusal": "refused"}
"""``Refusal`` is that of dbt's child: a compilation that is refused, a run that ends before it connects."""
ELSEWHERE = "as the message says"
OF_A_PROJECT = "change the dbt project, then compile again"


@dataclass(frozen=True, slots=True)
class Reason:
    """One place that gives a reason: its code, the class of the outcome, what to do next."""

    code: str
    outcome: str
    next_command: str


@dataclass(frozen=True, slots=True)
class Maker:
    """A function of a module that makes a failure of a reason that it is given: where among its arguments, and how."""

    place: int
    outcome: str
    next_command: str


def reasons() -> str:
    """Return every reason, in order, with what to do; a reason that several places give may have more than one way."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for each in all_reasons():
        outcomes, advice = found.setdefault(each.code, (set(), set()))
        outcomes.add(each.outcome)
        advice.add(each.next_command)
    rows = (
        (code(name), " or ".join(sorted(outcomes)), "; or: ".join(sorted(advice - {ELSEWHERE})) or ELSEWHERE)
        for name, (outcomes, advice) in sorted(found.items())
    )
    return table(("reason", "outcome", "next"), rows)


def all_reasons() -> Iterator[Reason]:
    """Yield the reasons that stand in the code, and the guards, whose names are reasons too."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "dpone_provider").rglob("*.py"))]
    shared = {name: text for tree in trees for name, text in texts_of(tree)}
    for tree in trees:
        yield from Module(tree, shared | dict(texts_of(tree))).reasons()
    for guard in registry().values():
        yield Reason(guard.name, "refused", guard.next_command)
    yield from reasons_of_kinds()


def reasons_of_kinds() -> Iterator[Reason]:
    """Yield the reasons that are the values of closed sets: of collisions, of effects, of what the matrix has not, and
    of what a database on SQL Server must not be."""
    for reason, made in features._MAKERS.items():
        yield Reason(reason, "refused", made("a database", "a feature").problem.next_command)
    for collision in CollisionKind:
        yield Reason(collision.value, "refused", collisions.CHANGE_ONE)
    for effect in EffectKind:
        yield Reason(effect.value, "refused", effects.next_command_of(effect))
    for feature in Feature:
        yield Reason(feature.value, "refused", cells.CHANGE_IT)


def texts_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the constants of text of a module, by name."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text)))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text)))
            ):
                yield name, text


@dataclass(frozen=True)
class Module:
    """One module's tree; ``texts`` are the constants of text that it may name, by name."""

    tree: ast.Module
    texts: Mapping[str, str]

    @cached_property
    def makers(self) -> Mapping[str, Maker]:
        """The product's own makers, and the functions here that hand a reason on to one."""
        found = {name: Maker(0, outcome, ELSEWHERE) for name, outcome in MAKERS.items()}
        for function in ast.walk(self.tree):
            if isinstance(function, ast.FunctionDef):
                names = [each.arg for each in function.args.args if each.arg != "self"]
                for inner in ast.walk(function):
                    match inner:
                        case ast.Call(func=ast.Name(id=maker), args=[ast.Name(id=given), *_]) if (
                            maker in MAKERS and given in names
                        ):
                            advice = self._advice(inner)
                            found[function.name] = Maker(names.index(given), MAKERS[maker], advice)
        return found

    def reasons(self) -> Iterator[Reason]:
        """Yield the reasons that are given here."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(func=ast.Name(id="Problem"), keywords=keywords):
                    named = {keyword.arg: keyword.value for keyword in keywords}
                    if isinstance(reason := named.get("reason"), ast.Constant):
                        yield Reason(str(reason.value), "unknown", self._advice(node))
                case ast.Call(func=ast.Name(id="Offence"), args=[ast.Constant(value=str(offence)), *_]):
                    yield Reason(offence, "refused", OF_A_PROJECT)
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                    maker = self.makers.get(name)
                    if maker is not None and maker.place < len(arguments):
                        yield from self._made(node, maker, arguments[maker.place])

    def _made(self, call: ast.Call, maker: Maker, given: ast.expr) -> Iterator[Reason]:
        match given:
            case ast.Constant(value=str(reason)):
                pass
            case ast.Name(id=name) if name in self.texts:
                reason = self.texts[name]
            case _:
                return
        here = self._advice(call)
        yield Reason(reason, maker.outcome, maker.next_command if here == ELSEWHERE else here)

    def _advice(self, call: ast.Call) -> str:
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "next_command"), None)
        match given:
            case None:
                return ELSEWHERE
            case ast.Name(id=name):
                return self.texts.get(name, ELSEWHERE)
            case _:
                return text_of(given, "…").replace("……", "…")
