"""How the clock's numbers are fitted, on measurements that are made up."""

import pytest

from benchmarks import fit_clock

# What the made-up kernels take with issue_cycles and memory_queue, in us.
TRUTH = {"issue_cycles": 1.15, "memory_queue": 96}


def time_of(kernel, numbers):
    """Every second kernel is bound by one, the others by the other."""
    return (kernel + 1) * numbers["memory_queue" if kernel % 2 else "issue_cycles"]


def ask(numbers):
    rows = [
        {"kernel": f"k{i}", "measured_us": time_of(i, TRUTH), "clock_us": time_of(i, numbers)}
        for i in range(40)
    ]
    return [*rows, {"kernel": "k40", "measured_us": 1, "error": "a loop does not end"}]


def test_the_numbers_that_kernels_were_made_with_are_found():
    found = fit_clock.fit(ask)
    assert found["numbers"] == TRUTH
    assert found["fitted"]["mean_error"] == found["checked"]["mean_error"] == 0
    assert found["fitted"]["kernels"] + found["checked"]["kernels"] == 40
    assert set(found["mean_errors"]["issue_cycles"]) == set(fit_clock.VALUES["issue_cycles"])


def test_the_half_that_is_a_check_decides_nothing():
    def ask_with_odd_half(numbers):
        rows = ask(numbers)
        for row in fit_clock.halves(rows)[1]:
            row["clock_us"] = 2 * row["measured_us"]
        return rows

    found = fit_clock.fit(ask_with_odd_half)
    assert found["numbers"] == TRUTH
    assert (found["fitted"]["mean_error"], found["checked"]["mean_error"]) == (0, 1)


def test_halves_depend_on_names_alone():
    rows = ask(TRUTH)
    fitted, checked = fit_clock.halves(rows)
    assert min(len(fitted), len(checked)) >= 12
    again = fit_clock.halves(rows[::-1] + rows[:5])
    assert {row["kernel"] for row in again[0]} == {row["kernel"] for row in fitted}


def test_nothing_measured_is_said():
    with pytest.raises(SystemExit, match="no kernel"):
        fit_clock.fit(lambda numbers: [])


def test_numbers_are_written_where_the_clock_reads_them(tmp_path, monkeypatch):
    copy = tmp_path / "numbers.def"
    copy.write_text(fit_clock.NUMBERS.read_text())
    monkeypatch.setattr(fit_clock, "NUMBERS", copy)
    fit_clock.write({"issue_cycles": 1.3, "memory_queue": 7})
    assert "CLOCK_NUMBER(issue_cycles, 1.3, " in copy.read_text()
    assert "CLOCK_NUMBER(memory_queue, 7, " in copy.read_text()
