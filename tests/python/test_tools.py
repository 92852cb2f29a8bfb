"""The checkers find what they must find, and let pass what is right."""

import os
import subprocess
import sys
from importlib.metadata import distributions, entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import build_core  # noqa: E402
import check_layers  # noqa: E402
import check_sizes  # noqa: E402
import setup_venv  # noqa: E402
from check_sizes import Limit, Size  # noqa: E402
from cpp_functions import find_functions  # noqa: E402
from source_files import strip_comments  # noqa: E402


def layer_faults(path, *lines):
    return check_layers.check_file(path, "\n".join(lines))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("ir/graph.h", '#include "ops/op.h"'),
        ("ir/print_graph.cpp", '#include "ir/graph.h"'),
        ("codegen/emit.cpp", "#include <vector>"),
        ("compile.cpp", '#include "runtime/program.h"'),
        ("compile.h", '#include "report.h"'),
        ("bindings/python.cpp", '#include "compile.h"'),
        ("bindings/python.cpp", "#include <torch/csrc/utils/pybind.h>"),
        ("host_ops/register_random.cpp", "#include <ATen/ATen.h>"),
        ("config/settings.cpp", 'const char* value = std::getenv("STITCH_DUMP");'),
        ("device/stitch/math.cuh", '#include "device/stitch/prelude.cuh"'),
        ("plan/planner.cpp", '// #include <torch/all.h> and getenv("X") in a comment'),
        ("jit/nvrtc.cpp", 'std::snprintf(text, 8, "%d", 3); std::fprintf(stderr, "x");'),
        ("ptxsim/device.cpp", '#include "runtime/driver.h"'),
    ],
)
def test_layers_allow(path, line):
    assert layer_faults(path, line) == []


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [
        ("ops/op.h", '#include "ir/graph.h"', "ops (1) may not include ir (2)"),
        ("ops/op.h", '#include "config/settings.h"', "may not include config (1)"),
        ("stage/schedule.h", '  #  include "plan/stitch_plan.h"', "may not include plan (7)"),
        ("runtime/program.h", '#include "bindings/host.h"', "may not include bindings"),
        ("runtime/program.h", '#include "ptxsim/device.h"', "may not include ptxsim"),
        ("ir/graph.h", '#include "report.h"', "names the spine"),
        ("compile.cpp", '#include "bindings/host.h"', "may not include bindings"),
        ("ir/graph.h", '#include "../ops/op.h"', "names no room"),
        ("ir/graph.h", '#include "stuff/op.h"', "names no room"),
        ("jit/device_text.cpp", '#include "device/stitch/math.cuh"', "takes its text"),
        ("device/stitch/math.cuh", '#include "base/error.h"', "without other rooms"),
        ("device/stitch/math.cuh", "#include <cmath>", "no header but device/"),
        ("runtime/executor.cpp", "#include <ATen/ATen.h>", "bindings/ and host_ops/ see torch"),
        ("runtime/executor.cpp", "#include <Python.h>", "only bindings/ sees pybind11"),
        ("host_ops/kernel.cpp", "#include <pybind11/stl.h>", "only bindings/ sees pybind11"),
        ("bindings/host.cpp", "#include <cuda_runtime.h>", "no CUDA header"),
        ("jit/nvrtc.cpp", "#include <nvrtc.h>", "no CUDA header"),
        ("base/log.cpp", 'auto* level = getenv("STITCH_LOG");', "only config/ reads"),
        ("codegen/emit.cpp", "    case OpKind::k_add:", "column of ops/ops.def"),
        ("base/log.cpp", 'std::cout << "x";', "stdout"),
        ("stuff/log.cpp", "int x;", "is no room"),
    ],
)
def test_layers_refuse(path, line, words):
    (fault,) = (
        layer_faults(path, "", line)[:1]
        if path.startswith("stuff")
        else layer_faults(path, "", line)
    )
    assert words in fault
    assert fault.startswith(f"csrc/{path}:")


def test_layer_fault_names_its_line():
    text = '/* two\nlines */\n#include "ops/type.h"\n#include "plan/stitch_plan.h"\n'
    (fault,) = check_layers.check_file("ir/graph.h", text)
    assert fault.startswith("csrc/ir/graph.h:4: ")


def test_strip_comments_keeps_lines_and_literals():
    text = 'a = "// no"; // yes\n/* x\ny */ b = \'"\'; // "\nc = R"(// raw\n)";'
    assert strip_comments(text) == 'a = "// no"; \n\n b = \'"\'; \nc = R"(// raw\n)";'
    assert strip_comments(text, strip_literals=True) == 'a = ""; \n\n b = ""; \nc = "\n";'


FUNCTIONS = """\
#define STITCH_MACRO(x) \\
  do {                  \\
  } while (x)
namespace stitch {
namespace {
enum class Color { kRed, kBlue };
const int kTable[] = {1, 2, 3};
constexpr auto kLambda = [](int a) { return a; };

template <typename T, typename U>
std::map<T, U> pair_up(const std::vector<T>& keys,
                       std::function<void(int, int)> visit = {}) noexcept(true) {
  if (keys.empty()) {
    return {};
  }
  for (auto& key : keys) visit(key, "}");
}
}  // namespace

struct Box : Base<int> {
  explicit Box(int a, int b) : Base{a}, b_{b}, c_(a) { check(); }
  ~Box() {}
  int get() const { return b_; }
  bool operator==(const Box& other) const {
    return b_ == other.b_;
  }
  int b_{3};
 private:
  auto sum(std::array<int, 3> values, void* = nullptr) -> int {
    return values[0];
  }
};

void declared(int a, int b);

int Box::count(int a, int b, int c,
               int d, int e) {
  struct Local {
    int x = 0;
  };
  return a;
}
TEST(Suite, Name) {
}
}  // namespace stitch
"""


def test_cpp_functions_are_found():
    found = [(f.name, f.line, f.length, f.parameters) for f in find_functions(FUNCTIONS)]
    assert found == [
        ("pair_up", 10, 8, 2),
        ("Box", 21, 1, 2),
        ("~Box", 22, 1, 0),
        ("get", 23, 1, 0),
        ("operator_symbol", 24, 3, 1),
        ("sum", 29, 3, 2),
        ("Box::count", 36, 7, 5),
        ("TEST", 43, 2, 2),
    ]


def test_python_functions_are_found():
    text = "class A:\n    def f(self, a, *rest, b=1):\n        return a\n\nasync def g(): pass\n"
    found = {f.name: (f.line, f.length, f.parameters) for f in check_sizes.python_functions(text)}
    assert found == {"f": (2, 2, 2), "g": (5, 1, 0)}


def write_tree(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def size_faults(root, files, exceptions=None):
    write_tree(root, files)
    return check_sizes.hard_faults(check_sizes.measure_tree(root), exceptions or {})


LONG_FUNCTION = "void f() {\n" + "  g();\n" * 59 + "}\n"


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("csrc/ir/graph.cpp", "int x;\n" * 501, "csrc/ir/graph.cpp:1: lines: 501, limit 500"),
        ("csrc/ir/graph.h", "int x;\n" * 201, "csrc/ir/graph.h:1: lines: 201, limit 200"),
        ("csrc/compile.cpp", "int x;\n" * 201, "csrc/compile.cpp:1: lines: 201, limit 150"),
        ("csrc/device/stitch/a.cuh", "int x;\n" * 401, "a.cuh:1: lines: 401, limit 400"),
        ("tests/cpp/a_test.cpp", "int x;\n" * 601, "a_test.cpp:1: lines: 601, limit 600"),
        ("torch_stitch/a.py", "x = 1\n" * 401, "torch_stitch/a.py:1: lines: 401, limit 400"),
        ("csrc/ir/a.cpp", "\n" + LONG_FUNCTION, "a.cpp:2: f() lines: 61, limit 60"),
        ("tools/a.py", "def f():\n" + "    g()\n" * 80, "a.py:1: f() lines: 81, limit 80"),
        ("csrc/a.h", "void f(int a, int b, int c, int d, int e, int f, int g) {}", "parameters: 7"),
        ("csrc/ops/ops.def", "x" * 101, "csrc/ops/ops.def:1: columns: 101, limit 100"),
    ],
)
def test_hard_limits(tmp_path, path, text, fault):
    (found,) = size_faults(tmp_path, {path: text})
    assert fault in found


def test_limits_are_inclusive(tmp_path):
    files = {
        "csrc/ir/graph.cpp": "int x;\n" * 500,
        "csrc/ir/graph.h": "int x;\n" * 199 + "x" * 100,
        "csrc/ir/f.cpp": LONG_FUNCTION.replace("  g();\n", "", 1),
    }
    assert size_faults(tmp_path, files) == []


def test_totals_and_room_files(tmp_path):
    rooms = {f"csrc/ir/a{i}.{suffix}": "" for i in range(17) for suffix in ("h", "cpp")}
    device = {f"csrc/device/stitch/a{i}.cuh": "\n" * 400 for i in range(7)}
    package = {f"torch_stitch/a{i}.py": "\n" * 351 for i in range(5)}
    faults = size_faults(tmp_path, rooms | device | package)
    assert faults == [
        "csrc/device/*: lines in all: 2800, limit 2500",
        "torch_stitch/*: lines in all: 1755, limit 1734",
        "csrc/ir: files (pairs count once): 17, limit 16",
    ]


def test_exceptions_are_honoured_and_must_be_needed(tmp_path):
    files = {"csrc/ir/a.cpp": LONG_FUNCTION}
    reason = "a reason"
    assert size_faults(tmp_path, files, {("csrc/ir/a.cpp", "f() lines"): reason}) == []
    assert size_faults(tmp_path, files, {("csrc/ir/a.cpp", "* lines"): reason}) == []
    unused = {("csrc/ir/a.cpp", "f() lines"): reason, ("csrc/ir/b.cpp", "lines"): reason}
    (fault,) = size_faults(tmp_path, files, unused)
    assert fault == "csrc/ir/b.cpp: the exception for 'lines' is not needed"


def test_totals_have_no_exceptions(tmp_path):
    package = {f"torch_stitch/a{i}.py": "\n" * 351 for i in range(5)}
    row = ("torch_stitch/*", "lines in all")
    assert size_faults(tmp_path, package, {row: "a reason"}) == [
        "torch_stitch/*: lines in all: 1755, limit 1734",
        "torch_stitch/*: the exception for 'lines in all' is not needed",
    ]


def test_describe_names_place_value_and_limit():
    size = Size("csrc/ir/a.cpp", 7, "f() lines", 41, Limit("*", 40, 80))
    assert check_sizes.describe(size, size.limit.soft) == "csrc/ir/a.cpp:7: f() lines: 41, limit 40"


@pytest.mark.parametrize(
    ("version", "is_supported"),
    [
        ("2.10.1", False),
        ("2.11.0+cu130", True),
        ("2.13.1", True),
        ("2.14.0", False),
        ("2.2.0", False),
        ("3.12.0", False),
        (None, False),
    ],
)
def test_supported_torch(version, is_supported):
    assert setup_venv.is_supported_torch(version) == is_supported


def write_program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_find_tool_wants_one_that_runs_and_is_new_enough(tmp_path, monkeypatch):
    broken, old, good = (tmp_path / name for name in ("broken", "old", "good"))
    write_program(broken, "exit 1")
    write_program(old, "echo cmake version 3.9.6")
    write_program(good, "echo cmake version 3.22.1")
    candidates = [str(tmp_path / "absent"), str(broken), str(old), str(good)]
    monkeypatch.setattr(build_core, "tool_candidates", lambda name: candidates)
    assert build_core.find_tool("cmake", (3, 22)) == str(good)
    assert build_core.find_tool("cmake", (3, 23)) is None


def test_register_package_leaves_an_uninstallable_distribution(tmp_path, monkeypatch):
    stale = tmp_path / "torch_stitch-0.0.1.dist-info"
    stale.mkdir()
    monkeypatch.setattr(setup_venv, "site_packages", lambda: tmp_path)
    setup_venv.register_package()
    (found,) = distributions(path=[str(tmp_path)])
    assert found.metadata["Name"] == "torch_stitch"
    assert [e.value for e in found.entry_points] == ["torch_stitch.backend:stitch"]
    assert all(Path(file.locate()).exists() for file in found.files)
    path = (tmp_path / "torch_stitch_checkout.pth").read_text().strip()
    assert (tmp_path / path).resolve() == ROOT


def test_backend_is_registered():
    found = {entry.name: entry.value for entry in entry_points(group="torch_dynamo_backends")}
    assert found.get("stitch") == "torch_stitch.backend:stitch"


@pytest.mark.parametrize(
    ("reason", "is_allowed"),
    [
        ("no NVIDIA GPU", True),
        ("needs a machine of 12 GB", True),
        ("NVRTC is missing: pip install nvidia-cuda-nvrtc", False),
        ("no g++", False),
        ("could not import 'numpy'", False),
    ],
)
@pytest.mark.parametrize("in_ci", [True, False])
def test_ci_leaves_no_test_out_for_what_is_missing(
    reason, is_allowed, in_ci, request, monkeypatch
):
    plugins = request.config.pluginmanager.get_plugins()
    (ours,) = [plugin for plugin in plugins if hasattr(plugin, "fail_if_skipped_in_ci")]
    monkeypatch.setattr(ours, "IN_CI", in_ci)
    longrepr = ("test_x.py", 1, f"Skipped: {reason}")
    report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=longrepr)
    ours.fail_if_skipped_in_ci(report)
    assert (report.outcome == "failed") == (in_ci and not is_allowed)
    assert reason in str(report.longrepr)


@pytest.mark.parametrize(("in_ci", "status"), [("1", 2), ("0", 0), ("", 0)])
def test_make_fails_in_ci_without_the_cpp_tests(in_ci, status):
    command = ["make", "-o", "build-tests", "test-cpp", "TESTS=build/no-such-program"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"STITCH_CI": in_ci}
    )
    assert done.returncode == status and "GoogleTest was not found" in done.stdout


def test_the_set_up_fails_in_ci_where_something_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(setup_venv, "compiler_finds", lambda header: False)
    monkeypatch.setattr(setup_venv, "apt_install", lambda package: False)
    monkeypatch.setattr(setup_venv, "pip_install", lambda *names, is_optional: False)
    steps = [
        setup_venv.ensure_gtest,
        lambda: setup_venv.ensure_optional("NVRTC", ["nvrtc"], lambda: False, "no kernels"),
    ]
    for step in steps:
        monkeypatch.setattr(setup_venv, "IN_CI", False)
        step()
        assert "setup:" in capsys.readouterr().out
        monkeypatch.setattr(setup_venv, "IN_CI", True)
        with pytest.raises(SystemExit, match="nothing may be missing"):
            step()
