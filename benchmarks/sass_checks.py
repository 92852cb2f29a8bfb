"""Whether the clock reads SASS right: each instruction as the vendor's disassembler has it, and the
control bits, which that does not print, such that each result is waited for before it is read.
"""

import re
from collections import defaultdict

from benchmarks.nvdisasm import run_nvdisasm, split_ours
from torch_stitch import _core

INSTRUCTION_BYTES = 16
NO_SCOREBOARD = 7
FLOW = re.compile(r"(@!?U?P\w+ )?(\w+)( .*)?")
TARGET = re.compile(r"`\(0x([0-9a-f]+)\)")
ENDS = ("BRA", "EXIT", "RET", "BRX", "JMP")  # nothing follows them, unless a condition may not hold
OUT_OF_SIGHT = ("CALL", "RET", "BRX", "JMP")  # what is waited for there is not followed


def decode_ours(instructions):
    """Byte -> (guard, name, operands), as run_nvdisasm has them."""
    return {
        i * INSTRUCTION_BYTES: split_ours(instruction["text"])
        for i, instruction in enumerate(instructions)
    }


def find_unequal(ours, theirs):
    """Byte in hexadecimal -> (ours, theirs), of instructions that differ or stand on one side."""
    places = sorted(ours.keys() | theirs.keys())
    pairs = {hex(at): (ours.get(at), theirs.get(at)) for at in places}
    return {at: pair for at, pair in pairs.items() if pair[0] != pair[1]}


def successors(instructions):
    """Of each instruction the places that may be next; a place beyond the code is none."""
    joins = defaultdict(list)  # convergence barrier -> where its lanes go on
    flows = [FLOW.fullmatch(instruction["text"]).groups() for instruction in instructions]
    targets = [
        [int(target, 16) // INSTRUCTION_BYTES for target in TARGET.findall(operands or "")]
        for *_, operands in flows
    ]
    for (_, name, operands), target in zip(flows, targets, strict=True):
        if name == "BSSY":
            joins[re.search(r"B\d+", operands)[0]] += target
    found = []
    for i, (guard, name, operands) in enumerate(flows):
        words = [word for word in re.split(r",\s*", (operands or "").strip()) if word]
        unconditional = not guard and not any(re.fullmatch(r"!?U?P\d|UR\d+", w) for w in words)
        following = [] if name in ENDS and unconditional else [i + 1]
        if name in ("BRA", "WARPSYNC"):
            following += targets[i]
        elif name == "BSYNC":
            ends = joins[re.search(r"B\d+", operands)[0]]  # the compiler uses few, again and again
            following = [i + 1] if i + 1 in ends or not unconditional else [*ends]
        found.append([at for at in following if at < len(instructions)])
    return found


def is_waited_for(instruction):
    """Whether a scoreboard says that its result is there: its own, or a later instruction's."""
    return bool(instruction["queue"]) or instruction["scoreboard"] != NO_SCOREBOARD


def opposite(guard):
    return guard.replace("@!", "@") if "!" in guard else guard.replace("@", "@!")


def step(instruction, pending):
    """What an instruction touches too early, and what is pending behind it.

    `pending` holds (register, scoreboard, queue, guard) of results that may be on their way; the
    guard is "" where its predicate has been set anew since.
    """
    guard, name, _ = FLOW.fullmatch(instruction["text"]).groups()
    guard, sets = (guard or "").strip(), instruction["sets"]
    left = {one for one in pending if not instruction["wait_mask"] >> one[1] & 1}
    anew = () if guard else sets  # else by other lanes perhaps
    touched = {*instruction["reads"], *anew}
    early = {r for r, *_, of in left if r in touched and not (guard and of == opposite(guard))}
    if name in OUT_OF_SIGHT:
        return early, frozenset()
    board, queue = instruction["scoreboard"], instruction["queue"]
    found = {one for one in left if one[0] not in anew}
    if is_waited_for(instruction):
        found |= {(register, board, queue, guard) for register in sets}
    behind = set()
    for register, of, its_queue, its_guard in found:
        if of == NO_SCOREBOARD and its_queue == queue:
            of = board
        behind.add((register, of, its_queue, "" if its_guard.lstrip("@!") in sets else its_guard))
    return early, frozenset(behind)


def find_unwaited(instructions):
    """Byte in hexadecimal -> text and registers, of each instruction that reads a result, or sets
    its register anew, which on some path nothing has waited for.

    Behind calls, and where only a register says what is next, nothing is pending.
    """
    following, found = successors(instructions), {}
    pending = {}  # place -> what may be on its way before it
    for entry in range(len(instructions)):
        if entry in pending:
            continue
        pending[entry], places = frozenset(), [entry]
        while places:
            at = places.pop()
            early, left = step(instructions[at], pending[at])
            if early:
                text = instructions[at]["text"]
                found[hex(at * INSTRUCTION_BYTES)] = f"{text}: {', '.join(sorted(early))}"
            for place in following[at]:
                before = pending.get(place)
                after = left | (before or frozenset())
                if after != before:
                    pending[place] = after
                    places.append(place)
    return found


def check_cubin(cubin, path, nvdisasm):
    """kernel -> what is counted and found of it; without `nvdisasm` nothing is "unequal".

    `path` is where that finds the cubin.
    """
    path.write_bytes(cubin)
    theirs = run_nvdisasm(nvdisasm, path) if nvdisasm else {"": None}
    checked = {}
    for kernel, code in theirs.items():
        instructions = _core.list_instructions(cubin, kernel)
        checked[kernel] = {
            "instructions": len(instructions),
            "results": sum(bool(i["sets"]) and is_waited_for(i) for i in instructions),
            "unwaited": find_unwaited(instructions),
        }
        if code is not None:
            checked[kernel]["unequal"] = find_unequal(decode_ours(instructions), code)
    return checked
