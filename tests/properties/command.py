"""What tests of the command and of processes share: pages, what a command did, what a refusal looks like."""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-c", "from simdup.cli import main; main()"]
INTERRUPTED = b"simdup: interrupted: a file that was not finished is as it was; the same command begins anew\n"


@dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=pytest.fail)

    @property
    def conditions(self) -> Any:
        return without_names(self.json["conditions"])


Run = Callable[..., Ran]


def make_pages(count: int = 24, words: int = 80, seed: int = 39) -> list[str]:
    rng = random.Random(seed)
    vocabulary = [f"Word{i}" for i in range(900)]
    return [" ".join(rng.choices(vocabulary, k=words)) + "." for _ in range(count)]


def json_lines(texts: list[str], field: str = "text") -> bytes:
    return "".join(json.dumps({field: text}, ensure_ascii=False) + "\n" for text in texts).encode()


def refused(ran: Ran, *parts: str) -> None:
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("simdup: ")
    assert ran.err.count("\n") == 1
    assert ran.err.endswith("\n")
    assert re.search(".*".join(map(re.escape, parts)), ran.err), ran.err


def without_names(conditions: Any) -> Any:
    for condition in conditions.values():
        for pair in condition["closest"]:
            del pair["left"], pair["right"]
    return conditions


def launch(module: str, function: str, *arguments: Any) -> "subprocess.Popen[str]":
    """Start a function of a module of tests in a process of its own."""
    script = f"import sys; import {module} as module; module.{function}(*sys.argv[1:])"
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(root), *sys.path]))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def finish(process: "subprocess.Popen[str]") -> str:
    with process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out
