"""What type checkers read: _core.pyi says what the built module has, and the package is marked."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import torch_stitch
from torch_stitch import _core

PACKAGE = Path(torch_stitch.__file__).parent
STUB = ast.parse((PACKAGE / "_core.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
# What pybind gives to every class, and what object declares well enough.
COMMON = {"__init__", "__new__", "__module__", "__doc__", "__repr__", "__str__", "__dict__"}
COMMON |= {"__weakref__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__"}
COMMON |= {"_boxed_call", "_pybind11_conduit_v1_", "__annotations__"}


def names_in(body):
    """What the nodes of a stub define, aliases of types left out."""
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) != "TypeAlias":
            found.add(node.target.id)
    return found


def parameters_of(node):
    """Names, those of `self` and of `*` and `**` left out; whether they may be given by name."""
    given = node.args
    names = [a.arg for a in given.posonlyargs + given.args]
    return [name for name in names if name != "self"], not given.posonlyargs


def signature_of(function):
    """The same of a bound C++ function, as pybind writes it."""
    (text,) = re.findall(r"^\w+\((.*)\) -> ", function.__doc__ or "", re.M)[:1]
    names = re.findall(r"(?:^|, )(\w+)(?=:| =)", re.sub(r"\[[^][]*(\[[^][]*\])*[^][]*\]", "", text))
    names = [name for name in names if name != "self"]
    return names, not any(re.fullmatch(r"arg\d+", name) for name in names)


def test_the_stub_names_exactly_what_the_module_has():
    built = {name for name in vars(_core) if not name.startswith("__")}
    assert names_in(STUB.body) == built


@pytest.mark.parametrize("name", CLASSES)
def test_the_stub_of_a_class_names_exactly_what_it_has(name):
    node, built = CLASSES[name], getattr(_core, name)
    expected = {"ops"} if name == "KernelError" else set(vars(built)) - COMMON
    found = names_in(node.body) - COMMON
    # Comparing needs both, and the stub may leave what follows from the other.
    assert {n for n in expected if not n.startswith("__pybind")} - {"__ne__", "__hash__"} <= found
    assert found <= expected | {"__hash__", "__call__"}
    assert callable(built) and issubclass(built, Exception) == name.endswith("Error")
    assert [base.id for base in node.bases] in ([], [built.__mro__[1].__name__])


def functions():
    """What the stub defines of which the module says what it takes."""
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            yield pytest.param(node, getattr(_core, node.name), id=node.name)
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            is_property = isinstance(method, ast.FunctionDef) and method.decorator_list
            if isinstance(method, ast.FunctionDef) and not is_property:
                bound = vars(getattr(_core, node.name)).get(method.name)
                says = re.match(r".*\(.*->", getattr(bound, "__doc__", None) or "")
                if says and method.name not in COMMON:
                    yield pytest.param(method, bound, id=f"{node.name}.{method.name}")


@pytest.mark.parametrize("node, built", [*functions()])
def test_parameters_have_their_names_in_the_stub(node, built):
    (names, by_name), (expected, is_named) = parameters_of(node), signature_of(built)
    if node.name.startswith("__"):  # of operators, which are not given by name
        assert len(names) == len(expected)
    elif is_named:
        assert names == [n for n in expected if n not in ("kwargs", "args") or n in names]
        assert by_name or not names
    else:
        assert len(names) == len([n for n in expected if n not in ("kwargs", "args")])
        assert not by_name


def test_the_package_is_marked_as_typed_and_ships_what_says_so():
    shipped = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert (PACKAGE / "py.typed").is_file()
    assert shipped["package-data"]["torch_stitch"] == ["py.typed", "*.pyi"]


def test_every_function_of_the_package_is_annotated():
    """So says mypy too, where it is installed."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = node.args
                named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
                named += [x for x in (given.vararg, given.kwarg) if x]
                bare = [a.arg for a in named if not a.annotation and a.arg != "self"]
                assert not bare and node.returns, f"{path.name}:{node.lineno} {node.name} {bare}"


@pytest.mark.parametrize("name", torch_stitch.__all__)
def test_public_names_say_what_they_do(name):
    public = getattr(torch_stitch, name)
    assert len(inspect.getdoc(public) or "") > 60
