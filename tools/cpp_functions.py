"""Finds the functions of C++ text by matching braces; macros that hide braces deceive it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from source_files import strip_comments


class Function(NamedTuple):
    name: str
    line: int
    length: int  # lines from the start of its signature to its closing brace
    parameters: int


def blank_preprocessor(code: str) -> str:
    directive = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
    return directive.sub(lambda match: "\n" * match[0].count("\n"), code)


def end_of_braces(code: str, position: int) -> int:
    """The position after the brace that closes the one just before `position`."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(code, position):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(code)


def holds_declarations(head: str) -> bool:
    """Whether the brace after `head` opens a namespace, class, struct or union."""
    head = re.sub(r"^\s*template\s*<.*>(?=\s*(?:class|struct|union)\b)", "", head, flags=re.S)
    head = re.sub(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]", "", head)
    return bool(re.match(r"\s*(inline\s+)?(namespace|extern|class|struct|union)\b[^()=]*$", head))


def is_unfinished(head: str) -> bool:
    """Whether the brace after `head` is an initialiser within a signature, not its body."""
    if head.count("(") > head.count(")"):  # f(Options options = {})
        return True
    has_member_list = re.search(r"\)[\w\s]*:(?!:)", head)  # Foo(int a) : a_{a} {}
    return bool(has_member_list) and bool(re.search(r"[\w>]\s*$", head))


def parse_signature(head: str) -> tuple[str, str] | None:
    """Name and parameter text, if `head` is the signature of a function."""
    head = re.sub(r"operator\s*(\(\s*\)|[^\s\w(]+)", "operator_symbol", head)
    head = re.sub(r"\b(noexcept|decltype|alignas|explicit)\s*\([^()]*\)|\[\[.*?\]\]", "", head)
    head = re.split(r"(?<=\))[\w\s]*(?:->|:(?!:))", head)[0]
    close = head.rfind(")")
    depth = 0
    for start in range(close, -1, -1):
        depth += (head[start] == ")") - (head[start] == "(")
        if depth == 0:
            break
    name = re.search(r"[~\w:]+\s*$", head[: max(close, 0) and start])
    if close < 0 or depth != 0 or not name or "=" in head[: name.start()]:
        return None
    return name[0].strip(), head[start + 1 : close]


def count_parameters(parameters: str) -> int:
    depth = commas = 0
    for character in parameters.replace("->", "").replace(">=", "").replace("<=", ""):
        depth += (character in "([{<") - (character in ")]}>")
        commas += character == "," and depth == 0
    return commas + 1 if parameters.strip() not in ("", "void") else 0


def find_functions(text: str) -> Iterator[Function]:
    """Functions with a body; lambdas and local classes belong to the function that holds them."""
    code = blank_preprocessor(strip_comments(text, strip_literals=True))
    position = head_start = 0
    while mark := re.compile(r"[;{}]").search(code, position):
        position = mark.end()
        head = code[head_start : mark.start()]
        if mark[0] != "{" or holds_declarations(head):
            if head.count("(") <= head.count(")"):
                head_start = position
            continue
        position = end_of_braces(code, position)
        if is_unfinished(head):
            continue
        skipped = re.match(r"\s*((public|private|protected)\s*:(?!:)\s*)*", head).end()
        signature = parse_signature(head[skipped:])
        if signature:
            first_line = code.count("\n", 0, head_start + skipped) + 1
            length = code.count("\n", 0, position) + 2 - first_line
            yield Function(signature[0], first_line, length, count_parameters(signature[1]))
            head_start = position
