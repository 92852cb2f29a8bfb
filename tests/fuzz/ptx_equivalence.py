"""Why a mutant that nothing tells from the original is the same kernel, read off its PTX.

Registers are in single-assignment form but for loops, so that a register stands for all its writes.
"""

import re
from collections import defaultdict

REGISTER = re.compile(r"%[a-z]+\d+")
INSTRUCTION = re.compile(r"\s*(?:@!?(%p\d+)\s+)?([\w.:]+)\s+(.*);")
FROM_MEMORY_OR_LANES = {"ld", "shfl", "atom", "vote", "match", "redux"}
FLOAT = re.compile(r"%(f|fd|h|hh)\d+")


def split_operands(text):
    """The operands without the address of a load or a store, and the registers of the address."""
    address = re.search(r"\[([^\]]*)\]", text)
    plain = re.sub(r"\[[^\]]*\]", "", text)
    return plain, REGISTER.findall(address[1]) if address else []


def name_apart(lines):
    """The lines, predicates that a block of its own declares named unlike those outside."""
    named, own = [], {}
    for line in lines:
        declared = re.match(r"\s*\.reg \.pred\s+(%p\d+);", line)
        if declared:
            own[declared[1]] = f"%plocal{len(named)}"
        for name, apart in own.items():
            line = re.sub(rf"{name}\b", apart, line)
        if line.strip() == "}":
            own = {}
        named.append(line)
    return named


class Flow:
    """Which registers each register is made from, and what uses it."""

    def __init__(self, lines):
        self.writes, self.uses = defaultdict(list), defaultdict(list)
        for number, line in enumerate(name_apart(lines), 1):
            match = INSTRUCTION.match(line)
            if match and not match[2].startswith("."):
                self.add(number, *match.groups())

    def add(self, number, guard, opcode, text):
        plain, address = split_operands(text)
        named = REGISTER.findall(plain)
        is_store = opcode.startswith(("st", "red", "bra", "bar"))
        first = plain.split(", ")[0] if not plain.startswith("{") else plain.split("}")[0]
        results = [] if is_store else REGISTER.findall(first)
        sources = named[len(results) :]
        for register in results:
            self.writes[register].append((opcode, text, sources + address))
        for register in sources:
            self.uses[register].append((number, opcode, results, "value"))
        for register in address:
            self.uses[register].append((number, opcode, [], "address"))
        if guard:
            self.uses[guard].append((number, opcode, [], "guard"))

    def closure(self, start, step):
        seen, waiting = set(), list(start)
        while waiting:
            register = waiting.pop()
            if register not in seen:
                seen.add(register)
                waiting += step(register)
        return seen

    def made_from(self, registers):
        return self.closure(registers, lambda r: [s for w in self.writes[r] for s in w[2]])

    def reaches(self, registers):
        return self.closure(registers, lambda r: [d for use in self.uses[r] for d in use[2]])

    def is_zero(self, register, assumed=frozenset()):
        """Whether it is zero in every lane: the upper half of what was widened from 32 bits."""
        return self.every_write(register, assumed, self.writes_zero)

    def is_narrow(self, register, assumed=frozenset()):
        """Whether its upper 32 bits are zero."""
        return self.every_write(register, assumed, self.writes_narrow)

    def every_write(self, register, assumed, holds):
        key = (register, holds.__name__)
        if key in assumed:  # around a loop: true unless another write says no
            return True
        writes = self.writes[register]
        return bool(writes) and all(holds(*write, assumed | {key}) for write in writes)

    def compares_arrivals(self, register):
        """Whether it is by which bits the counter of a grid barrier differs from what it was."""
        made = [sources for opcode, _, sources in self.writes[register] if opcode == "xor.b32"]
        if len(made) != 1 or len(self.writes[register]) != 1:
            return False
        opcodes = sorted(w[0].split(".")[0] for source in made[0] for w in self.writes[source])
        return opcodes == ["atom", "ld"]

    def writes_zero(self, opcode, text, sources, assumed):
        if opcode == "shr.u64":
            return text.endswith(", 32") and self.is_narrow(sources[0], assumed)
        same = opcode in ("cvt.u32.u64", "cvt.u64.u32", "mov.b32", "mov.u32") or "shfl" in opcode
        return bool(same and sources) and self.is_zero(sources[0], assumed)

    def writes_narrow(self, opcode, text, sources, assumed):
        if opcode == "cvt.u64.u32":
            return True
        if opcode in ("mov.u64", "mov.b64") and not sources:
            return text.split(", ")[-1].isdigit() and int(text.split(", ")[-1]) < 1 << 32
        if opcode == "bfi.b64":
            return text.endswith(", 32, 32") and (
                self.is_zero(sources[0], assumed) and self.is_narrow(sources[1], assumed)
            )
        carried = [s for s in sources if not s.startswith("%p")]
        same = opcode in ("selp.b64", "mov.u64", "mov.b64", "and.b64")
        return bool(same and carried) and all(self.is_narrow(s, assumed) for s in carried)


def why_way_is_free(flow, guard):
    """Why a branch may be taken always or never where it was guarded, or ""."""
    writes = [w for r in flow.made_from([guard] if guard else []) for w in flow.writes[r]]
    opcodes = {w[0].split(".")[0] for w in writes if not w[0].startswith("ld.param")}
    if not writes or opcodes & FROM_MEMORY_OR_LANES:
        return ""
    return (
        f"{guard} is made from indices of threads and blocks and numbers of the launch alone: all "
        "lanes ran, each element was written once and right, so no input can tell them apart"
    )


def why_equivalent(line, lines):
    """Why damage to that line changes nothing, or "" where no reason is known."""
    flow = Flow(lines)
    match = INSTRUCTION.match(lines[line - 1])
    if match is None or match[2].startswith(("st", "bar")):
        return ""
    if match[2] == "bra":
        return why_way_is_free(flow, match[1])
    result, *sources = REGISTER.findall(split_operands(match[3])[0])
    sources = [source for source in sources if source.startswith("%r")]
    if match[2].startswith("shfl") and sources and flow.is_zero(sources[0]):
        return f"{sources[0]} is zero in every lane: the upper half of an index of 32 bits"
    if match[2].startswith("setp") and sources and flow.compares_arrivals(sources[0]):
        return f"{sources[0]} is neither 0 nor -1: the block's own arrival has moved the counter"
    origins = flow.made_from(sources) | set(sources)
    opcodes = {write[0].split(".")[0] for origin in origins for write in flow.writes[origin]}
    reached = flow.reaches([result])
    uses = [use for register in reached for use in flow.uses[register]]
    is_stored = any(opcode.startswith("st") and kind == "value" for _, opcode, _, kind in uses)
    if opcodes & FROM_MEMORY_OR_LANES or is_stored or any(map(FLOAT.match, reached)):
        return ""
    sinks = sorted({number for number, _, _, kind in uses if kind != "value"})
    return (
        "it is made from thread and block indices alone and decides addresses and guards alone "
        f"(lines {', '.join(map(str, sinks))}): all lanes ran, each element was written once and "
        "right, so no input can tell them apart"
    )


def why_not_loaded(line, lines):
    """Why the same lanes have the number of that line on any inputs, instead of what they load.

    "" where it is no such number: it and its copies are in the place of nothing but what a guard
    keeps those lanes from loading.
    """
    move = re.match(r"\s*mov\.f32\s+(%f\d+), 0f", lines[line - 1])
    if not move:
        return ""
    flow, register = Flow(lines), move[1]
    copies = [d for use in flow.uses[register] if use[1] == "mov.f32" for d in use[2]]
    guards = [guard_of_load(register, lines) for register in (register, *copies)]
    if not all(why_way_is_free(flow, guard) for guard in guards):
        return ""
    return (
        f"lanes have it that {guards[0]}, which is made from indices of threads and blocks alone, "
        f"keeps from loading {register}"
    )


def guard_of_load(register, lines):
    """The predicate of the branch around the one load of a register, or ""."""
    loads = [n for n, x in enumerate(lines) if re.match(rf"\s*ld\.\S+\s+{register}, \[", x)]
    if len(loads) != 1:
        return ""
    for line in reversed(lines[: loads[0]]):
        if re.match(r"\$", line):
            return ""
        if branch := re.match(r"\s*@!?(%p\d+)\s+bra\s", line):
            return branch[1]
    return ""
